// SPDX-License-Identifier: Apache-2.0
//! `netserv module`.

mod adapt;
mod bench;
mod build;
mod check;
mod code;
mod code_dir;
mod files;
mod inspect;
mod new;
mod push;
mod run;
mod sign;
mod source;
mod template;
mod test;
pub mod worker;

use clap::Subcommand;
pub use files::read_package;

use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Make, test, run, measure, sign and publish modules
#[derive(Subcommand)]
pub enum Module {
    New(new::New),
    Build(build::Build),
    Sign(sign::Sign),
    Inspect(inspect::Inspect),
    Test(test::Test),
    Run(run::Run),
    Bench(bench::Bench),
    Push(push::Push),
    Adapt(adapt::Adapt),
}

impl Module {
    /// Carries out the command.
    ///
    /// # Errors
    /// A file, a build or a package is not as it should be.
    pub async fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        match self {
            Module::New(new) => new.run(output),
            Module::Build(build) => build.run(output),
            Module::Sign(sign) => sign.run(output),
            Module::Inspect(inspect) => inspect.run(output),
            Module::Test(test) => test.run(output),
            Module::Run(run) => run.run(output).await,
            Module::Bench(bench) => bench.run(output),
            Module::Adapt(adapt) => adapt.run(output),
            Module::Push(push) => push.run(output),
        }
    }
}
