// SPDX-License-Identifier: Apache-2.0
//! The C programs of `lab/bench-c`: generator, sink, null verdict.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::node::workspace;

/// Where the built programs are.
pub struct Programs {
    /// Sends and takes, with a bound on what is on its way.
    pub udploop: PathBuf,
    /// Sends at a steady rate.
    pub udpgen: PathBuf,
    /// Counts and times what arrives.
    pub udpsink: PathBuf,
    /// Passes every packet of a netfilter queue.
    pub nfq_null: PathBuf,
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
            .context("cannot run make; install it, and libnetfilter-queue-dev")?;
        ensure!(output.status.success(), "lab/bench-c: {}", String::from_utf8_lossy(&output.stderr).trim());
        let program = |name: &str| dir.join(name);
        Ok(Programs {
            udploop: program("udploop"),
            udpgen: program("udpgen"),
            udpsink: program("udpsink"),
            nfq_null: program("nfq_null"),
        })
    }
}
