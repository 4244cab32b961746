// SPDX-License-Identifier: Apache-2.0
//! Modules that move between nodes: which of them has a module in which epoch, and where states and addresses go.

pub(crate) mod epochs;
pub(crate) mod exports;
pub(crate) mod floating;
pub(crate) mod freezing;
