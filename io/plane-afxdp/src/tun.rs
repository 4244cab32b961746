// SPDX-License-Identifier: Apache-2.0
//! The way of single packets to the kernel, as if they had come in by a link of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;

use netserv_plane::DriverError;

use super::kernel::{Interface, Kernel};
use super::sys::device;

/// A TUN device that nothing is ever routed to. It is gone when this is dropped or the process ends in whatever way.
pub(super) struct Tun {
    name: String,
    file: Arc<File>,
}

impl Tun {
    /// Makes the device of an instance.
    pub fn open(instance: &str, kernel: &Kernel) -> Result<Tun, DriverError> {
        let name = device_name(instance);
        let file = device::open_tun(&name).map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => DriverError::Unsupported {
                what: "the device for packets to the kernel",
                why: format!("`{name}` exists: another node of this name runs here"),
            },
            _ => DriverError::system("making a TUN device", error),
        })?;
        let tun = Tun { name, file: Arc::new(file) };
        tun.set_up(kernel)?;
        Ok(tun)
    }

    /// Puts back what somebody took away: the device, that it is up, and how it is set. `interfaces` and `addresses` are the
    /// namespace's. Returns what that was, for people.
    pub fn restore(
        &self,
        kernel: &Kernel,
        interfaces: &BTreeMap<u32, Interface>,
        addresses: &BTreeSet<IpAddr>,
    ) -> Result<Vec<&'static str>, DriverError> {
        let own = interfaces.values().find(|interface| interface.name == self.name);
        let mut missing = Vec::new();
        if own.is_none() {
            device::attach_tun(&self.file, &self.name)
                .map_err(|error| DriverError::system("making a TUN device again", error))?;
            missing.push("the device");
        }
        let wanted = settings(&self.name, interfaces);
        if own.is_some_and(|own| !own.up) {
            missing.push("that it is up");
        }
        if own.is_some() && wanted.iter().any(|setting| setting.is_other(&self.name)) {
            missing.push("how it is set");
        }
        if checks_sources() && !addresses.contains(&ADDRESS.into()) {
            missing.push("its address");
        }
        if !missing.is_empty() {
            self.set_up(kernel)?;
        }
        Ok(missing)
    }

    fn set_up(&self, kernel: &Kernel) -> Result<(), DriverError> {
        let failed = |source| DriverError::System { what: "setting up a TUN device", source };
        let interfaces = kernel.interfaces()?;
        let index = interfaces.iter().find(|(_, interface)| interface.name == self.name).map(|(index, _)| *index);
        let index = index.ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))?;
        for setting in settings(&self.name, &interfaces) {
            write(setting.family, &self.name, setting.switch, setting.value).map_err(failed)?;
        }
        if checks_sources() {
            kernel.add_link_address(index, ADDRESS)?;
        }
        kernel.set_up(index)
    }

    /// Lets the kernel receive a packet; returns whether it took it.
    pub fn send(&self, packet: &[u8]) -> bool {
        (&*self.file).write(packet).is_ok()
    }

    /// Returns the device's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what packets are written to, one by one.
    pub fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }
}

/// Returns whether sources are checked on all devices.
fn checks_sources() -> bool {
    read("ipv4", "all", "rp_filter").is_some_and(|value| value != "0")
}

/// The device's address where sources are checked: even loosely, the kernel takes none by a device without an address.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(169, 254, 78, 1);

/// A switch of the device, and what it is to be.
struct Setting {
    family: &'static str,
    switch: &'static str,
    value: &'static str,
}

impl Setting {
    fn is_other(&self, device: &str) -> bool {
        read(self.family, device, self.switch).is_some_and(|value| value != self.value)
    }
}

/// Returns the switches of the device and what each is to be, as the other devices are set.
fn settings(device: &str, interfaces: &BTreeMap<u32, Interface>) -> Vec<Setting> {
    // Sources are right or wrong for the link where a packet came in, which is not this one.
    let loosely = if checks_sources() { "2" } else { "0" };
    let mut settings = vec![Setting { family: "ipv4", switch: "rp_filter", value: loosely }];
    let others = || interfaces.values().filter(|interface| interface.name != device);
    if others().any(|interface| interface.forwards_v4) {
        settings.push(Setting { family: "ipv4", switch: "forwarding", value: "1" });
    }
    if read("ipv6", device, "forwarding").is_some() {
        // No addresses, and nothing sent by itself.
        settings.push(Setting { family: "ipv6", switch: "addr_gen_mode", value: "1" });
        if others().any(|interface| interface.forwards_v6) {
            settings.push(Setting { family: "ipv6", switch: "forwarding", value: "1" });
        }
    }
    settings
}

/// Returns the name of an instance's device, which has at most 15 bytes.
pub(super) fn device_name(instance: &str) -> String {
    let safe = instance.len() <= NAME_BYTES_MAX - PREFIX.len()
        && instance.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if safe && !instance.is_empty() {
        return format!("{PREFIX}{instance}");
    }
    let sum = instance.bytes().fold(0x811c_9dc5_u32, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{PREFIX}{sum:08x}")
}

const PREFIX: &str = "nsv-";
const NAME_BYTES_MAX: usize = 15;

fn path(family: &str, device: &str, switch: &str) -> PathBuf {
    PathBuf::from(format!("/proc/sys/net/{family}/conf/{device}/{switch}"))
}

fn read(family: &str, device: &str, switch: &str) -> Option<String> {
    std::fs::read_to_string(path(family, device, switch)).ok().map(|text| text.trim().to_owned())
}

fn write(family: &str, device: &str, switch: &str, value: &str) -> std::io::Result<()> {
    std::fs::write(path(family, device, switch), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices_are_short_and_differ() {
        assert_eq!(device_name("pop1"), "nsv-pop1");
        for name in ["a-very-long-instance-name", "", "a/b", "a b"] {
            assert_eq!(device_name(name).len(), 12, "{name}");
        }
        assert_ne!(device_name("a-very-long-instance-name"), device_name("a-very-long-instance-name2"));
    }
}
