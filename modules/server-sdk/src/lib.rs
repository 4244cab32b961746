// SPDX-License-Identifier: Apache-2.0
//! Write server modules for NetServ nodes in Rust: components of WASI 0.2 for `wasm32-wasip2`.
//!
//! A module that only answers HTTP needs nothing of this: any `wasi:http/proxy` component runs. This crate has the node's
//! building blocks ([`kv`], [`messages`], [`channel`], [`cache`] and the others) and two traits that save most of the boilerplate:
//! [`http::HttpModule`] and [`tcp::TcpModule`].
//!
//! ```no_run
//! use netserv_server_sdk::http::{HttpModule, Request, Response};
//! use netserv_server_sdk::{http_module, kv};
//!
//! struct Visitors;
//!
//! impl HttpModule for Visitors {
//!     fn handle(_: Request) -> Response {
//!         match kv::increment(b"visitors", 1) {
//!             Ok(count) => Response::text(200, format!("you are number {count}\n")),
//!             Err(error) => Response::text(500, format!("no state: {error:?}\n")),
//!         }
//!     }
//! }
//!
//! http_module!(Visitors);
//! # fn main() {}
//! ```

#[allow(
    missing_docs,
    unsafe_code,
    unused_qualifications,
    clippy::all,
    clippy::allow_attributes_without_reason,
    reason = "generated; the documentation is in wit/"
)]
#[doc(hidden)]
pub mod bindings;
pub mod channel;
pub mod http;
pub mod mpegts;
pub mod page;
pub mod resident;
pub mod state;
pub mod tcp;
pub mod udp;

/// Control messages, which the module's user sends by `netserv tell`, and the way back.
pub mod control {
    #[doc(inline)]
    pub use crate::bindings::imports::netserv::control::requester::{Error as NotifyError, notify};
    #[doc(inline)]
    pub use crate::bindings::imports::netserv::control::{inbox, topics::last, types::Message};
}

#[doc(inline)]
pub use bindings::imports::netserv::{
    compress1_0_0::codec as compress, compress1_1_0::streams::coded, connection::flow as connection, crypto::crypto,
    hash::digest as hash, kv::store as kv, log::log, media1_0_0::media, media1_1_0::jobs,
    messages::exchange as messages, metrics::counters, node::info as node, properties::properties, search::search,
    sip::parser as sip,
};
#[doc(inline)]
pub use bindings::imports::{netserv::cache1_1_0::entries as cache, wasi};
