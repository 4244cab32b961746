// SPDX-License-Identifier: Apache-2.0
//! Signaling messages in and out of the node: [`Interceptor`] takes GIST queries for others out of the forwarding path,
//! [`SignalSocket`] sends and receives datagrams of the node itself.

mod control;
mod interceptor;
pub mod limits;
mod socket;
mod unreachable;

pub use interceptor::{Intercepted, Interceptor, InterceptorCounters};
pub use socket::{QModeHeader, Received, SendCounters, SignalConfig, SignalKind, SignalSocket};
pub use unreachable::UnreachableKind;
