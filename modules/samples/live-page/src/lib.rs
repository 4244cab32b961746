// SPDX-License-Identifier: Apache-2.0
//! A page that shows what is said and how many packets pass, as it happens: a module of both roles.
//!
//! Both parts publish server-sent events to the topic `page` of the module's channel: the packet part the number of packets,
//! each second in which there were some, and the server part what clients say. Whoever opens the page gets the last events and then
//! those that come.

#[cfg(not(target_os = "wasi"))]
pub mod packets;
#[cfg(target_os = "wasi")]
mod page;
