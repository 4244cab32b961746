// SPDX-License-Identifier: Apache-2.0
//! Which drivers there are, which of them work on this machine, and how to open one.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use netserv_model::api::DeviceInfo;

use crate::afxdp::{self, Afxdp};
#[cfg(doc)]
use crate::limits;
use crate::nfqueue::{self, Nfqueue};
use crate::{Driver, DriverError, dummy};

/// A kind of forwarding plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DriverKind {
    /// AF_XDP sockets, packets taken off the devices by an XDP program.
    Afxdp,
    /// In memory, for tests; never chosen by itself.
    Dummy,
    /// The kernel's own forwarding, packets taken out by netfilter.
    Nfqueue,
}

/// Whether a driver works here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The driver.
    pub kind: DriverKind,
    /// `Err` with the reason in a form for people, if it does not.
    pub usable: Result<(), String>,
    /// How it would serve each device, as far as can be told without touching it; empty for planes that serve none by
    /// themselves.
    pub devices: Vec<DeviceInfo>,
    /// What people should know, a sentence each: devices that it would leave alone and why, what is slower than it could
    /// be.
    pub notes: Vec<String>,
}

/// What a driver has to know to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverConfig {
    /// The name of this node among those that share the network namespace and the machine; it is in the names of all
    /// that the driver adds to the system. Characters other than `a-z A-Z 0-9 - _ .` become `_`.
    pub instance: String,
    /// The mark (`SO_MARK`) on all that the node sends itself; such packets are not received again. Not zero.
    pub mark: u32,
    /// The lowest netfilter queue number to use; the first free one from here on is taken.
    pub queue: u16,
    /// Packets that may wait in the kernel for this driver.
    pub queue_packets: u32,
    /// Bytes that the kernel may use for packets on their way to this driver, netlink's own needs included.
    pub receive_buffer_bytes: usize,
    /// The interfaces that `afxdp` takes; all of them that are Ethernet, if none is named.
    pub interfaces: Vec<String>,
    /// Whether packets pass unseen, rather than being lost, when more come than are taken, or when nobody takes them
    /// for [`limits::HEARTBEAT_MAX`].
    pub fail_open: bool,
    /// Whether `afxdp` forwards in its XDP program what no filter wants, rather than leaving it to the kernel. Such packets
    /// pass no rules of the kernel's packet filter and no queueing discipline.
    pub xdp_forward: bool,
    /// How long `afxdp` looks for packets again and again before it sleeps; `None` sleeps at once.
    pub busy_poll: Option<Duration>,
}

impl DriverKind {
    /// Every kind, in the order in which `auto` tries them; afxdp comes second until the end-to-end tests pass with it.
    pub const ALL: [DriverKind; 3] = [DriverKind::Nfqueue, DriverKind::Afxdp, DriverKind::Dummy];

    /// Returns the name used in configuration files.
    pub fn as_str(self) -> &'static str {
        match self {
            DriverKind::Afxdp => "afxdp",
            DriverKind::Dummy => "dummy",
            DriverKind::Nfqueue => "nfqueue",
        }
    }

    /// Finds out whether the driver works here, without leaving anything behind.
    pub fn probe(self) -> Probe {
        let usable = match self {
            DriverKind::Afxdp => afxdp::probe().map_err(|error| error.to_string()),
            DriverKind::Dummy => Ok(()),
            DriverKind::Nfqueue => nfqueue::probe().map_err(|error| error.to_string()),
        };
        Probe { kind: self, usable, devices: Vec::new(), notes: Vec::new() }
    }

    /// Opens the driver.
    ///
    /// # Errors
    /// Says what is lacking.
    pub fn open(self, config: &DriverConfig) -> Result<Box<dyn Driver>, DriverError> {
        match self {
            DriverKind::Afxdp => Ok(Box::new(Afxdp::open(config)?)),
            DriverKind::Dummy => Ok(Box::new(dummy::Dummy::new().0)),
            DriverKind::Nfqueue => Ok(Box::new(Nfqueue::open(config)?)),
        }
    }
}

impl fmt::Display for DriverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for DriverKind {
    type Err = DriverError;

    fn from_str(name: &str) -> Result<DriverKind, DriverError> {
        let names = || format!("there are auto, {}", DriverKind::ALL.map(DriverKind::as_str).join(", "));
        let kind = DriverKind::ALL.into_iter().find(|kind| kind.as_str() == name);
        kind.ok_or_else(|| DriverError::NoDriver { name: name.chars().take(40).collect(), why: names() })
    }
}

impl DriverConfig {
    /// Returns the configuration that a node uses unless told otherwise.
    pub fn new(instance: &str) -> DriverConfig {
        DriverConfig {
            instance: instance.to_owned(),
            mark: MARK_DEFAULT,
            queue: 0x4e00,
            queue_packets: 8192,
            receive_buffer_bytes: 64 * 1024 * 1024,
            interfaces: Vec::new(),
            fail_open: true,
            xdp_forward: false,
            busy_poll: None,
        }
    }
}

/// The mark of a node's own packets: `NetS` in ASCII.
pub const MARK_DEFAULT: u32 = 0x4e65_7453;

/// Returns the driver of this name; for `auto`, the best that works here, which is never `dummy`.
///
/// # Errors
/// Says which names there are, or why each of the drivers does not work here.
pub fn choose(name: &str) -> Result<DriverKind, DriverError> {
    if name != "auto" {
        return name.parse();
    }
    let mut reasons = Vec::new();
    for kind in DriverKind::ALL.into_iter().filter(|kind| *kind != DriverKind::Dummy) {
        match kind.probe().usable {
            Ok(()) => return Ok(kind),
            Err(reason) => reasons.push(format!("{kind}: {reason}")),
        }
    }
    Err(DriverError::NoDriver { name: name.to_owned(), why: reasons.join("; ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_chosen_by_name() {
        assert_eq!(choose("dummy").unwrap(), DriverKind::Dummy);
        assert_eq!(choose("nfqueue").unwrap(), DriverKind::Nfqueue);
        let unknown = choose("quantum").unwrap_err().to_string();
        assert_eq!(unknown, "no driver `quantum` here: there are auto, nfqueue, afxdp, dummy");
    }

    /// Whether `nfqueue` works depends on who runs this; either way nobody gets a node that only looks like one.
    #[test]
    fn the_dummy_is_never_chosen_by_itself() {
        assert!(choose("auto").map_or(true, |kind| kind != DriverKind::Dummy));
        assert_eq!(DriverKind::Dummy.probe().usable, Ok(()));
        assert_eq!(DriverKind::Dummy.open(&DriverConfig::new("test")).unwrap().name(), "dummy");
    }
}
