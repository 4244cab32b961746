// SPDX-License-Identifier: Apache-2.0
//! The way of signaling messages in and out of the node: [`Interceptor`] takes GIST queries for others out of the
//! forwarding path, [`SignalSocket`] sends and receives datagrams of the node itself, [`Routes`] knows the node's
//! addresses and which of them the kernel would send from.

mod control;
mod interceptor;
mod socket;
mod unreachable;

pub use crate::Passage;
pub use crate::routes::{LocalAddress, LocalAddresses, RouteMonitor, Routes};
pub use interceptor::{Intercepted, Interceptor, InterceptorCounters};
pub use socket::{QModeHeader, Received, SendCounters, SignalConfig, SignalKind, SignalSocket};
pub use unreachable::UnreachableKind;
