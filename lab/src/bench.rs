// SPDX-License-Identifier: Apache-2.0
//! `./dev bench`: the figures of SPECIFICATION.md that need a running system.

use anyhow::Result;

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Shorter runs, wider spread.
    #[arg(long)]
    pub quick: bool,
}

/// Measures and prints.
///
/// # Errors
/// Something could not be measured.
pub fn run(_options: &Options) -> Result<()> {
    anyhow::bail!("not there yet")
}
