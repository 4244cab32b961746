// SPDX-License-Identifier: Apache-2.0
//! The path of one packet: from the driver, or a module that made it, through containers and to the driver.
//!
//! Each step is a function of the parts that it is lent.

mod answers;
mod buffering;
mod entering;
mod filter_changes;
mod injected;
mod judge;
mod leaving;
mod output;
mod returned;
mod traced;

pub(crate) use buffering::{release_buffered, resume_buffered, trim_buffered};
pub(crate) use entering::admit;
pub(crate) use filter_changes::change_filters;
pub(crate) use returned::{end_worker, take_returned};
