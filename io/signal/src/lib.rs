// SPDX-License-Identifier: Apache-2.0
//! The way of signaling messages in and out of the node: [`Interceptor`] takes GIST queries for others out of the
//! forwarding path, [`SignalSocket`] sends and receives datagrams of the node itself, [`Routes`] knows the node's
//! addresses and which of them the kernel would send from.

mod control;
mod interceptor;
pub mod limits;
mod socket;
mod unreachable;

pub use interceptor::{Intercepted, Interceptor, InterceptorCounters};
pub use netserv_plane::Passage;
pub use netserv_plane::routes::{LocalAddress, LocalAddresses, RouteMonitor, Routes};
pub use socket::{QModeHeader, Received, SendCounters, SignalConfig, SignalKind, SignalSocket};
pub use unreachable::UnreachableKind;
