// SPDX-License-Identifier: Apache-2.0
//! What can be said of a machine before the driver is opened, without touching its devices.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use netserv_model::api::DeviceInfo;
use netserv_plane::{DriverConfig, DriverError};

use super::devices::{choose_devices, wanted_devices};
use super::features::{Ability, Features};
use super::kernel::{Interface, Kernel};
use super::pacing::{BUSY_MAX, once_free};
use super::plane::Served;
use super::ports::Ports;
use super::program::Program;
use super::share::Share;
use super::sys::bpf::AttachMode;
use super::sys::memory::{FRAME_BYTES, FRAME_BYTES_RECEIVED};
use super::tun::Tun;
use crate::limits;

/// Finds out whether the driver works here, without leaving anything behind.
///
/// # Errors
/// Says what is lacking.
pub fn probe() -> Result<(), DriverError> {
    let kernel = Kernel::open()?;
    let devices = choose_devices(&DriverConfig::new("probe"), &kernel.interfaces()?)?;
    drop(Program::load(false)?);
    let mut ports =
        Ports::open(&BTreeMap::new(), FRAME_BYTES * limits::BATCH_PACKETS_MAX, None, Share { lane: 0, lanes: 1 })?;
    if let Some(device) = devices.keys().next() {
        let served = Served::alone(*device);
        once_free(Instant::now() + BUSY_MAX, || ports.add(&served))?;
    }
    // A process that this one is just starting may have the device of the probe before for a moment.
    let number = PROBES.fetch_add(1, Ordering::Relaxed);
    drop(Tun::open(&format!("p{}-{number}", std::process::id()), &kernel)?);
    Ok(())
}

static PROBES: AtomicU32 = AtomicU32::new(0);

/// Tells how each device would be served if none is named, and what people should know of the others, a sentence each.
///
/// A device is asked for nothing: what stands here is what its driver says that it can do.
pub fn prospects() -> (Vec<DeviceInfo>, Vec<String>) {
    let asked = Kernel::open().and_then(|kernel| kernel.interfaces());
    let abilities = Features::open().and_then(|features| match features {
        Some(features) => features.of_devices().map(Some),
        None => Ok(None),
    });
    match (asked, abilities) {
        (Ok(interfaces), Ok(abilities)) => tell(&interfaces, abilities.as_ref()),
        (Err(error), _) | (_, Err(error)) => (Vec::new(), vec![error.to_string()]),
    }
}

fn tell(
    interfaces: &BTreeMap<u32, Interface>,
    abilities: Option<&BTreeMap<u32, Ability>>,
) -> (Vec<DeviceInfo>, Vec<String>) {
    let wanted = wanted_devices(&[], interfaces);
    let (mut served, mut notes) = (Vec::new(), Vec::new());
    if abilities.is_none() {
        notes.push(
            "this kernel does not tell what devices can do for XDP (Linux 6.3 does), so nothing is forwarded in XDP"
                .to_owned(),
        );
    }
    for (index, interface) in interfaces {
        if let Some(queues) = wanted.get(index) {
            let ability = abilities.map(|abilities| abilities.get(index).copied().unwrap_or_default());
            served.push(describe(interface, *queues, ability));
            notes.extend(notes_on(interface, ability));
        } else {
            notes.extend(why_not_served(interface));
        }
    }
    (served, notes)
}

fn describe(interface: &Interface, queues: u32, ability: Option<Ability>) -> DeviceInfo {
    let mode = match ability {
        Some(ability) if ability.is_native() => AttachMode::Native.as_str(),
        Some(_) => AttachMode::Generic.as_str(),
        None => "native or generic",
    };
    let queues_max = u32::try_from(limits::QUEUES_MAX).expect("a small number");
    DeviceInfo {
        name: interface.name.clone(),
        mode: mode.to_owned(),
        zero_copy: ability.is_some_and(Ability::is_zero_copy),
        queues: queues.min(queues_max),
        left_to_kernel: None,
    }
}

fn notes_on(interface: &Interface, ability: Option<Ability>) -> Vec<String> {
    let name = &interface.name;
    let packet_bytes_max = usize::try_from(FRAME_BYTES_RECEIVED).expect("a frame is short") - ETHERNET_BYTES;
    let long = interface.mtu > packet_bytes_max;
    let notes = [
        (ability.is_some_and(|ability| !ability.is_native()), "has no XDP in its driver, so packets take a slower way"),
        (
            ability.is_some_and(|ability| !ability.is_target()),
            "cannot send what another device has received, so what leaves by it is not forwarded in XDP",
        ),
        (!interface.up, "is down"),
        (!interface.forwards_v4 && !interface.forwards_v6, "does not forward"),
    ];
    let notes = notes.iter().filter(|(holds, _)| *holds).map(|(_, note)| format!("`{name}` {note}"));
    let long = long.then(|| format!("`{name}` has packets of over {packet_bytes_max} bytes, which pass unseen"));
    notes.chain(long).collect()
}

fn why_not_served(interface: &Interface) -> Option<String> {
    let name = &interface.name;
    if interface.station.is_none() {
        return (!interface.is_loopback)
            .then(|| format!("`{name}` is no Ethernet, so its packets come by a netfilter queue"));
    }
    if interface.vlan.is_some() {
        return Some(format!("`{name}` is served by way of the device below it"));
    }
    interface.enslaved.then(|| format!("`{name}` is a port of another device, and is served only if it is named"))
}

/// Bytes in front of a packet, with a tag.
const ETHERNET_BYTES: usize = 18;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_device_is_told_of() {
        let device = |name: &str| Interface { name: name.to_owned(), ..Interface::example() };
        let interfaces = BTreeMap::from([
            (1, Interface { station: None, is_loopback: true, ..device("lo") }),
            (2, device("eth0")),
            (3, Interface { mtu: 9000, up: false, ..device("eth1") }),
            (4, Interface { enslaved: true, ..device("port") }),
            (5, Interface { vlan: Some((2, 7)), ..device("eth0.7") }),
            (6, Interface { station: None, ..device("wg0") }),
            (7, device("ns0a1b2c3dn0")),
        ]);
        let can = Ability::of(true, true, true);
        let abilities = BTreeMap::from([(2, can), (3, Ability::default())]);
        let (served, notes) = tell(&interfaces, Some(&abilities));
        let modes: Vec<_> = served.iter().map(|one| (one.name.as_str(), one.mode.as_str(), one.zero_copy)).collect();
        assert_eq!(modes, [("eth0", "native", true), ("eth1", "generic", false)]);
        for (name, count) in
            [("lo", 0), ("eth0", 0), ("eth1", 4), ("port", 1), ("eth0.7", 1), ("wg0", 1), ("ns0a1b2c3dn0", 0)]
        {
            let quoted = format!("`{name}`");
            assert_eq!(notes.iter().filter(|note| note.starts_with(&quoted)).count(), count, "{name}: {notes:?}");
        }
        let (served, notes) = tell(&interfaces, None);
        assert!(served.iter().all(|one| one.mode == "native or generic") && notes[0].contains("6.3"));
    }
}
