// SPDX-License-Identifier: Apache-2.0
//! The node's side: it asks the launcher for containers, and holds its ends of what it shares with them.

pub(crate) mod build;
pub(crate) mod clock;
pub(crate) mod container;
pub(crate) mod detached;
pub(crate) mod launcher;
pub(crate) mod media;
pub(crate) mod ring;
