// SPDX-License-Identifier: Apache-2.0
//! Control messages: to running modules, and what modules tell the requesters of their SETUPs.
//!
//! A message is taken once it is in the inbox of the running instance. Its number is above those of all messages that the
//! module took before, so none is taken twice. The last one of each topic is kept for as long as the module is installed:
//! each instance that is loaded later gets it before others.

pub(crate) mod tells;
pub(crate) mod told;
