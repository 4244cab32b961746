// SPDX-License-Identifier: Apache-2.0
//! What all workers share, whatever they run modules on: the link to the node, and the building blocks.
//!
//! Nothing here knows of Wasm or of Java.

pub mod clock;
pub mod compute;
pub mod error;
pub mod failure;
pub mod limits;
pub mod link;
pub mod media;
pub mod shared;
pub mod storage;
pub mod sys;
pub mod wakeup;
