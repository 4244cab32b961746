// SPDX-License-Identifier: Apache-2.0
//! When the module of a rule moves.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use netserv_model::Digest;
use netserv_model::limits::{FREEZE_TIME_MAX, PACKAGE_BYTES_MAX};
use netserv_placement::Moves;
use netserv_placement::candidates::Needs;
use netserv_repository::package;
use schemars::JsonSchema;
use serde::Deserialize;

/// The module of the rule is on one node of the way, the best one, and goes to another one with its state: when the operator drains its
/// node, and for what is said here.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Move {
    /// Below this URL states are put by an HTTP PUT,
    pub store: String,
    /// and fetched below this one; the same if it is not said.
    #[serde(default)]
    pub fetch: Option<String>,
    /// The file of the module's package, read at each start and reload: nodes that lack what its manifest needs are not asked to take it.
    /// Without it they refuse it when it comes there.
    #[serde(default)]
    pub package: Option<PathBuf>,
    /// Its node has too much to do if its load average for each processor is over this at `looks` in a row; without it, that is no reason.
    #[serde(default)]
    pub load_over: Option<f64>,
    /// A node takes it for that reason if its own is at this or below; half of `load-over` if it is not said.
    #[serde(default)]
    pub load_until: Option<f64>,
    /// Whether it goes along when the way to the clients has led by other nodes at `looks` in a row.
    #[serde(default)]
    pub follow: bool,
    /// So many looks in a row: 1 to 100.
    #[serde(default = "looks")]
    pub looks: u32,
    /// How often nodes are asked, in seconds: 1 to 3,600.
    #[serde(default = "every_s")]
    pub every_s: u64,
    /// For how many seconds a module that moved stays where it is, unless that node is drained: 86,400 at most.
    #[serde(default = "rest_s")]
    pub rest_s: u64,
    /// For how many seconds the module may stand still while it moves: 1 to 60.
    #[serde(default = "freeze_s")]
    pub freeze_s: u64,
}

impl Move {
    /// Returns when it moves.
    pub fn rule(&self) -> Moves {
        let until = self.load_until.or(self.load_over.map(|over| over / 2.0)).unwrap_or_default();
        Moves {
            load_over: self.load_over.map(permille),
            load_until: permille(until),
            follow: self.follow,
            looks: self.looks,
            every: Duration::from_secs(self.every_s),
            rest: Duration::from_secs(self.rest_s),
        }
    }

    /// Checks what the shape of a file and [`Moves::check`] do not hold.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self) -> Result<()> {
        let urls = [Some(&self.store), self.fetch.as_ref()];
        let wrong = urls.into_iter().flatten().find(|url| {
            let scheme = url.starts_with("https://") || url.starts_with("http://");
            !scheme || url.contains(char::is_whitespace)
        });
        ensure!(wrong.is_none(), "`move` has {wrong:?}, which is no URL of HTTP");
        let loads = [self.load_over, self.load_until];
        let is_load = |load: &f64| load.is_finite() && *load >= 0.0;
        ensure!(loads.iter().flatten().all(is_load), "`move`: a load is a number from 0 on");
        let range = 1..=FREEZE_TIME_MAX.as_secs();
        ensure!(range.contains(&self.freeze_s), "`move`: `freeze-s` is not from 1 to {}", FREEZE_TIME_MAX.as_secs());
        Ok(())
    }
}

/// Returns what the package of that digest needs.
///
/// # Errors
/// The file is no package, or another one.
pub fn needs(path: &Path, digest: Digest) -> Result<Needs> {
    let mut bytes = Vec::new();
    let file = File::open(path).and_then(|file| file.take(PACKAGE_BYTES_MAX + 1).read_to_end(&mut bytes));
    file.with_context(|| format!("`package`: cannot read {}", path.display()))?;
    let package = package::read(&bytes).with_context(|| format!("`package`: {} is none", path.display()))?;
    let found = package.digest();
    ensure!(found == digest, "`package`: {} is {found}, and not the rule's {digest}", path.display());
    Ok(Needs::of(package.manifest(), &package.flavours()))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` ends at the type's bounds")]
fn permille(load: f64) -> u32 {
    (load * 1000.0) as u32
}

fn looks() -> u32 {
    3
}

fn every_s() -> u64 {
    10
}

fn rest_s() -> u64 {
    600
}

fn freeze_s() -> u64 {
    30
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_package_is_said_so() {
        let dir = tempfile::tempdir().unwrap();
        let (there, digest) = (dir.path().join("m.nsm"), format!("sha256:{}", "0".repeat(64)).parse().unwrap());
        std::fs::write(&there, b"no package").unwrap();
        for (path, expected) in [(there, "is none"), (dir.path().join("gone"), "cannot read")] {
            let error = format!("{:#}", needs(&path, digest).unwrap_err());
            assert!(error.contains("`package`") && error.contains(expected), "{error}");
        }
    }
}
