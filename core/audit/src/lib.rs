// SPDX-License-Identifier: Apache-2.0
//! The audit log: who asked what, who decided, and by which evidence.
//!
//! [`Chain`] makes lines of entries, each with the digest of the line before. [`Reader`] takes the bytes of all files, the oldest first,
//! and finds the lines again, and [`Check`] says whether each is the one that was written after the one before. [`Shares`] keeps a flood of
//! decisions about one user from filling the log.
//!
//! A chain has no secret: who may write the files can make a new one from any line on. Then its newest digest differs from one that was noted
//! elsewhere before.
#![forbid(unsafe_code)]

mod chain;
mod check;
pub mod limits;
mod reader;
mod shares;
#[cfg(test)]
mod tests;
mod wanted;

pub use chain::{Chain, first_of_file, name_of_file};
pub use check::{Check, DAMAGED, LEFT_OUT, LOST};
pub use reader::{Found, Reader};
pub use shares::{Share, Shares, Whose};
pub use wanted::Wanted;
