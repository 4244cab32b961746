// SPDX-License-Identifier: Apache-2.0
//! A reflector of Internet radio streams, as AMnet had one: connections to radio servers are taken over, the first listener's request
//! goes on to the server, and all who ask for the same stream are served from that one connection.
//!
//! What it does is in [`reflector`], which knows of its node by [`host::Host`] alone: [`head`] tells requests and answers, [`stream`] is one
//! connection to a server with [`ring`] of its newest frames ([`frames`]) and its [`listener`]s, [`icy`] takes titles out and puts them in,
//! [`joining`] finds where a source goes on after an outage, and [`passing`] hands on what is no stream.

pub mod frames;
pub mod head;
pub mod host;
pub mod icy;
pub mod joining;
pub mod limits;
pub mod listener;
mod module;
pub mod passing;
pub mod reflector;
pub mod ring;
pub mod settings;
pub mod stream;
pub mod wire;

#[cfg(test)]
mod testing;
