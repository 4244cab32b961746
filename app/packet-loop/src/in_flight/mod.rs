// SPDX-License-Identifier: Apache-2.0
//! The packets that the loop has: inside containers, or waiting for modules that move.

mod buffered;
mod pending;

pub(crate) use buffered::{Buffered, Waiting};
pub(crate) use pending::{Held, Journey, Pending, Stop, length_of};
