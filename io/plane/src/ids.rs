// SPDX-License-Identifier: Apache-2.0
//! Names of packets and of interfaces.

pub use netserv_netlink::routes::InterfaceId;

/// Names one received packet until its verdict is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(pub u64);
