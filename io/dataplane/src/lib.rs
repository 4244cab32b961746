// SPDX-License-Identifier: Apache-2.0
//! Forwarding planes: where packets come from and go back to.
//!
//! [`Driver`] is the contract between the packet thread and a forwarding plane. [`dummy`] works in memory and without
//! root, [`nfqueue`] takes packets out of the kernel's own forwarding path. [`wrap`] holds wrappers that fit around any
//! driver. [`signal`] is the way of signaling messages in and out of the node, which does not go through a driver.
//! [`choose`] says which drivers work on this machine and opens one.
//!
//! Everything acts in the network namespace of the calling thread.

pub mod batch;
pub mod choose;
pub mod driver;
pub mod dummy;
pub mod error;
mod filters;
mod inject;
pub mod limits;
mod netlink;
pub mod nfqueue;
mod packet;
mod rules;
mod sockaddr;
mod sys;

pub use batch::{Batch, Packet};
pub use choose::{DriverConfig, DriverKind, Probe};
pub use driver::{Change, Counters, Driver, FilterTable, Final, InterfaceId, PacketId};
pub use error::DriverError;
