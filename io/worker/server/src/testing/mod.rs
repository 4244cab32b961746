// SPDX-License-Identifier: Apache-2.0
//! Server modules without sockets: for `netserv module test` and `bench`.

pub mod code;
pub mod http;
pub mod tcp;
