// SPDX-License-Identifier: Apache-2.0
//! What a driver has to know to be opened.

use std::time::Duration;

#[cfg(doc)]
use crate::limits;

/// Whether packets that no filter wants are forwarded in XDP. They then pass no rules of the kernel's packet filter, no
/// queueing discipline and no policy of IPsec, and no connection is tracked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdpForward {
    /// Where there is none of these.
    #[default]
    Auto,
    /// Whatever there is.
    On,
    /// Never.
    Off,
}

/// What a driver has to know to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverConfig {
    /// The name of this node among those that share the network namespace and the machine; it is in the names of all
    /// that the driver adds to the system. Characters other than `a-z A-Z 0-9 - _ .` become `_`.
    pub instance: String,
    /// The mark (`SO_MARK`) on all that the node sends itself; such packets are not received again. Not zero.
    pub mark: u32,
    /// The lowest netfilter queue number to use; the first free ones from here on are taken.
    pub queue: u16,
    /// Packets of 1,500 bytes that may wait in the kernel for this driver, in each queue; shorter ones may be more.
    pub queue_packets: u32,
    /// Bytes that the kernel may use for packets on their way to this driver, netlink's own needs included.
    pub receive_buffer_bytes: usize,
    /// The interfaces that `afxdp` takes; all of them that are Ethernet, if none is named.
    pub interfaces: Vec<String>,
    /// Whether packets pass unseen, rather than being lost, when more come than are taken, or when nobody takes them
    /// for [`limits::HEARTBEAT_MAX`].
    pub fail_open: bool,
    /// Whether `afxdp` forwards in its XDP program what no filter wants, rather than leaving it to the kernel.
    pub xdp_forward: XdpForward,
    /// How long `afxdp` looks for packets again and again before it sleeps; `None` sleeps at once.
    pub busy_poll: Option<Duration>,
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
            xdp_forward: XdpForward::Auto,
            busy_poll: None,
        }
    }
}

/// The mark of a node's own packets: `NetS` in ASCII.
pub const MARK_DEFAULT: u32 = 0x4e65_7453;
