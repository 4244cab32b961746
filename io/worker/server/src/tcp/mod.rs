// SPDX-License-Identifier: Apache-2.0
//! Modules that handle TCP connections as events.

pub mod buffers;
pub mod connection;
pub mod guest;
pub mod queue;
pub mod service;
pub mod table;
pub mod wit;
