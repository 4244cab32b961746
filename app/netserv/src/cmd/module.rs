// SPDX-License-Identifier: Apache-2.0
//! `netserv module`.

mod build;
mod new;
mod package;
mod template;
mod test;
pub mod worker;

use clap::Subcommand;
pub use package::read_package;

use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Make, sign, look into and test modules
#[derive(Subcommand)]
pub enum Module {
    /// Make a folder with a new packet module in Rust, ready to build, with a test
    New(new::New),
    /// Build a module's code and package it
    Build(build::Build),
    /// Sign a package
    Sign(package::Sign),
    /// Show what is in a package
    Inspect(package::Inspect),
    /// Run a module's packet tests: recorded packets in, expected packets out
    Test(test::Test),
}

impl Module {
    /// Carries out the command.
    ///
    /// # Errors
    /// A file, a build or a package is not as it should be.
    pub fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        match self {
            Module::New(new) => new.run(output),
            Module::Build(build) => build.run(output),
            Module::Sign(sign) => sign.run(output),
            Module::Inspect(inspect) => inspect.run(output),
            Module::Test(test) => test.run(output),
        }
    }
}
