// SPDX-License-Identifier: Apache-2.0
//! Forwarding planes: where packets come from and go back to.
//!
//! [`Driver`] is the contract between the packet thread and a forwarding plane, [`FilterTable`] that between the thread for
//! filters and the plane. [`dummy`] is a plane in memory, without root. [`wrap`] has wrappers that fit around any driver.
//!
//! Planes share the rest: the book-keeping of filters, signaling messages on their way to the interceptor ([`Passage`]), and
//! packets of modules on their way to the kernel ([`inject`]).
//!
//! Everything acts in the network namespace of the calling thread.

pub mod batch;
mod config;
pub mod counted;
pub mod destinations;
pub mod driver;
pub mod dummy;
pub mod error;
pub mod filters;
mod ids;
pub mod inject;
pub mod limits;
pub mod packet;
mod passage;
pub mod sockaddr;
pub mod sys;
pub mod wrap;

pub use batch::{Batch, Packet};
pub use config::{DriverConfig, MARK_DEFAULT, XdpForward};
pub use counted::{DestinationCount, DestinationCounters};
pub use driver::{Change, Counters, Driver, Egress, FilterTable, Final};
pub use error::DriverError;
pub use ids::{InterfaceId, PacketId};
pub use passage::Passage;
