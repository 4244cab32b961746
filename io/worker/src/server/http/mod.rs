// SPDX-License-Identifier: Apache-2.0
//! Modules that answer HTTP requests: an instance for each request, connections that outlive an upgrade.

pub mod body;
pub mod connection;
pub mod service;
pub mod site;
