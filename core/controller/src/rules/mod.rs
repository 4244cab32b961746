// SPDX-License-Identifier: Apache-2.0
//! The rules of modules: which packets they see, and which connections they take over.
//!
//! A module that is loaded gets its rules of connections first. Then its rules of packets come and its predecessor's go
//! in one change, which puts it in force: before it everything is as it was, after it the predecessor is gone.

pub(crate) mod buffering;
pub(crate) mod install;
pub(crate) mod names;
