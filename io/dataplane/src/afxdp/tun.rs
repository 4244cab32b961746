// SPDX-License-Identifier: Apache-2.0
//! The way of single packets to the kernel, as if they had come in by a link of their own.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use super::kernel::Kernel;
use super::sys::device;
use crate::DriverError;

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
        let failed = |source| DriverError::System { what: "setting up a TUN device", source };
        let interfaces = kernel.interfaces()?;
        let index = interfaces.iter().find(|(_, interface)| interface.name == name).map(|(index, _)| *index);
        let index = index.ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))?;
        // Sources are right or wrong for the link where a packet came in, which is not this one.
        let strict = read("ipv4", "all", "rp_filter").is_some_and(|value| value != "0");
        write("ipv4", &name, "rp_filter", if strict { "2" } else { "0" }).map_err(failed)?;
        if interfaces.values().any(|interface| interface.forwards_v4) {
            write("ipv4", &name, "forwarding", "1").map_err(failed)?;
        }
        if read("ipv6", &name, "forwarding").is_some() {
            // No addresses, and nothing sent by itself.
            write("ipv6", &name, "addr_gen_mode", "1").map_err(failed)?;
            if interfaces.values().any(|interface| interface.forwards_v6) {
                write("ipv6", &name, "forwarding", "1").map_err(failed)?;
            }
        }
        kernel.set_up(index)?;
        Ok(Tun { name, file: Arc::new(file) })
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
