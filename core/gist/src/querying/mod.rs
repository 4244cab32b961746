// SPDX-License-Identifier: Apache-2.0
//! The querying node (RFC 5971 §6.2): Query, Response, Confirm, refresh, and what hinders them.

mod completion;
mod connections;
mod errors;
mod handshake;
mod icmp;
mod invalidate;
mod response;

pub(crate) use completion::connected;
pub(crate) use connections::{accept, end, end_overrun};
pub(crate) use errors::on_error;
pub(crate) use handshake::{proceed, timeout};
pub(crate) use icmp::on_icmp_error;
pub(crate) use invalidate::{Doubt, invalidate};
pub(crate) use response::on_response;
