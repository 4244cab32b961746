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
pub mod batch;
pub mod choose;
mod config;
mod counted;
mod destinations;
pub mod driver;
pub mod dummy;
pub mod error;
mod filters;
mod ids;
mod inject;
pub mod limits;
pub mod nfqueue;
mod packet;
mod rules;
pub mod signal;
mod sockaddr;
mod sys;
pub mod wrap;

pub use batch::{Batch, Packet};
pub use choose::{DriverKind, Probe};
pub use config::{DriverConfig, MARK_DEFAULT, XdpForward};
pub use counted::{DestinationCount, DestinationCounters};
pub use driver::{Change, Counters, Driver, Egress, FilterTable, Final};
pub use error::DriverError;
pub use ids::{InterfaceId, PacketId};
