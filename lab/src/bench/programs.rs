// SPDX-License-Identifier: Apache-2.0
//! The C programs of `lab/bench-c`: generator, sink, null verdict.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::node::workspace;

/// Where the built programs are.
pub struct Programs {
    /// The directory of all of them, and of the objects that `trial` gives to the kernel.
    pub dir: PathBuf,
    /// Sends at a rate through a router and counts what arrives.
    pub trial: PathBuf,
    /// Sends at a steady rate from a socket.
    pub udpgen: PathBuf,
    /// Counts and times what arrives at a socket.
    pub udpsink: PathBuf,
}

impl Programs {
    /// Builds what is not built.
    ///
    /// # Errors
    /// The C compiler or a library is missing; its own words are in the error.
    pub fn build() -> Result<Programs> {
        let dir = workspace().join("target/bench-c");
        let output = Command::new("make")
            .arg("--silent")
            .arg("-C")
            .arg(workspace().join("lab/bench-c"))
            .arg(format!("OUT={}", dir.display()))
            .output()
            .context("cannot run make; install it, clang-14 and libnetfilter-queue-dev")?;
        ensure!(output.status.success(), "lab/bench-c: {}", String::from_utf8_lossy(&output.stderr).trim());
        let program = |name: &str| dir.join(name);
        Ok(Programs { trial: program("trial"), udpgen: program("udpgen"), udpsink: program("udpsink"), dir })
    }
}
