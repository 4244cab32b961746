// SPDX-License-Identifier: Apache-2.0
//! Netlink, by which programs and the Linux kernel talk: messages, sockets, and tables of the packet filter.
//!
//! A [`Socket`] asks one question, or has one set of [`Requests`] carried out, at a time. [`nftables`] makes the requests that
//! change tables of nf_tables.
#![forbid(unsafe_code)]

pub mod generic;
mod limits;
pub mod message;
pub mod nftables;
mod requests;
pub mod routes;
pub mod rtnetlink;
mod socket;

pub use requests::{Refused, Requests};
pub use socket::{Family, Socket};
