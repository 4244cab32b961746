// SPDX-License-Identifier: Apache-2.0
//! Modules that answer HTTP requests: an instance for each request, connections that outlive an upgrade.

mod again;
pub mod body;
mod chunks;
pub mod client_hello;
pub mod connection;
pub mod forwarding;
pub mod heads;
pub mod held;
pub mod hop_by_hop;
mod intercepted;
pub mod interim;
pub mod kept;
mod lingering;
pub mod opening;
pub mod passing;
pub mod patience;
pub mod presence;
mod requests;
mod rewound;
pub mod service;
pub mod site;
mod streams;
pub mod upgrade;
pub mod upstream;
