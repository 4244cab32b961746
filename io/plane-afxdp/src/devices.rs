// SPDX-License-Identifier: Apache-2.0
//! Which devices the driver takes.

use std::collections::BTreeMap;

use netserv_model::container_link::is_container_link;
use netserv_plane::{DriverConfig, DriverError};

use super::kernel::Interface;

/// Returns the devices to be served, with the number of queues that they can have. Links to containers come and go, and
/// each would take sockets of its own, so they are left to the kernel unless they are named.
pub(super) fn wanted_devices(names: &[String], interfaces: &BTreeMap<u32, Interface>) -> BTreeMap<u32, u32> {
    let wanted = |interface: &Interface| match names.is_empty() {
        true => !interface.enslaved && interface.vlan.is_none() && !is_container_link(&interface.name),
        false => names.contains(&interface.name),
    };
    let devices = interfaces.iter().filter(|(_, interface)| interface.station.is_some() && wanted(interface));
    devices.map(|(index, interface)| (*index, interface.queues.max(1))).collect()
}

/// Returns the devices to take, with the number of their queues.
pub(super) fn choose_devices(
    config: &DriverConfig,
    interfaces: &BTreeMap<u32, Interface>,
) -> Result<BTreeMap<u32, u32>, DriverError> {
    let unsupported = |why: String| Err(DriverError::Unsupported { what: "AF_XDP", why });
    for name in &config.interfaces {
        if !interfaces.values().any(|interface| interface.name == *name) {
            tracing::warn!(name, "there is no such interface yet");
        }
    }
    let devices = wanted_devices(&config.interfaces, interfaces);
    match devices.is_empty() {
        true if config.interfaces.is_empty() => unsupported("there is no Ethernet interface here".to_owned()),
        true => unsupported(format!("there is no interface `{}`", config.interfaces.join("`, `"))),
        false => Ok(devices),
    }
}
