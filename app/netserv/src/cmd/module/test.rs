// SPDX-License-Identifier: Apache-2.0
//! `netserv module test`.

use std::path::PathBuf;

use clap::Args;

use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Run a module's packet tests: recorded packets in, expected packets out
#[derive(Args)]
pub struct Test {
    /// The module's folder, with netserv.toml in it
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

impl Test {
    pub fn run(self, _output: &mut Output) -> Result<Exit, Failure> {
        Ok(Exit::Done)
    }
}
