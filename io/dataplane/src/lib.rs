// SPDX-License-Identifier: Apache-2.0
//! Forwarding planes: where packets come from and go back to.
//!
//! [`Driver`] is the contract between the packet thread and a forwarding plane. [`dummy`] works in memory and without
//! root, [`nfqueue`] takes packets out of the kernel's own forwarding path, [`afxdp`] off the devices before it. [`wrap`]
//! holds wrappers that fit around any driver. [`signal`] is the way of signaling messages in and out of the node, which
//! goes through a driver only where that has to take them off its devices. [`choose`] says which drivers work on this
//! machine and opens one.
//!
//! Everything acts in the network namespace of the calling thread.

pub mod afxdp;
pub mod choose;
pub mod nfqueue;
mod rules;
pub mod signal;

pub use netserv_plane::{
    Batch, Change, Counters, DestinationCount, DestinationCounters, Driver, DriverConfig, DriverError, Egress,
    FilterTable, Final, InterfaceId, MARK_DEFAULT, Packet, PacketId, Passage, XdpForward, batch, driver, dummy, error,
    limits, wrap,
};
use netserv_plane::{counted, destinations, filters, inject, packet, routes, sockaddr, sys};

pub use choose::{DriverKind, Probe};
