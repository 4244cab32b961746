// SPDX-License-Identifier: Apache-2.0
//! One node as a pure machine: GIST, NSLP and controller behind one drain.
//!
//! After each [`Node::handle`], take every [`Node::poll_output`], then re-arm from [`Node::poll_timeout`]. The outputs are a
//! function of what is recorded ([`recording`]): configuration, policy, seed and the inputs with their times. The daemon
//! and the simulated world run the same `Node`; they differ in who carries out the effects.
//!
//! What the shell around it must keep to:
//! - Outputs are taken before the next input.
//! - Each [`Output::Do`] is answered by one [`Input::Done`], also after [`Output::Abandon`]; a stray one is counted.
//! - [`Input::Post`] is answered by one [`Output::Reply`], [`Input::Ask`] by one [`Output::Fresh`],
//!   [`Input::Policy`] by one [`Output::Applied`], [`Input::Stop`] by one [`Output::Stopped`].
//! - After an error that ends its connection, a program gets nothing more; [`Input::ApplicationGone`] follows for each.
#![forbid(unsafe_code)]

mod application_calls;
mod applications;
mod calls;
mod config;
mod drain;
mod input;
mod lanes;
pub mod limits;
mod node;
mod output;
pub mod recording;
mod routes;
#[cfg(test)]
mod tests;

/// The engines, for what is shown and set of them; only the node calls them.
pub use netserv_controller as controller;
pub use netserv_gist as gist;
pub use netserv_nslp as nslp;

pub use applications::{ApplicationConfig, ApplicationCounters, ClientId};
pub use config::NodeConfig;
pub use input::{CallId, Ends, Input, OwnedDatagram, Token, What};
pub use node::{Node, NodeCounters, View};
pub use output::Output;
