// SPDX-License-Identifier: Apache-2.0
//! The programs in which instructions are counted.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::callgrind::{self, Counts};

/// A program with cases.
pub(crate) struct Program {
    /// Its section of the table.
    pub(crate) section: &'static str,
    place: Place,
}

enum Place {
    /// This program.
    Own,
    /// The ignored tests whose names have `guards::` in them, of a target of the workspace.
    Tests { package: &'static str, target: &'static str },
}

impl Program {
    /// Returns all there are.
    pub(crate) fn all() -> [Program; 3] {
        let tests = |section, package, target| Program { section, place: Place::Tests { package, target } };
        [
            Program { section: "core", place: Place::Own },
            tests("worker", "netserv-worker", "all"),
            tests("packet-loop", "netserv-packet-loop", "netserv_packet_loop"),
        ]
    }

    /// Counts the instructions of its cases.
    ///
    /// # Errors
    /// If it cannot be built, found or run.
    pub(crate) fn count(&self) -> Result<Counts> {
        match self.place {
            Place::Own => callgrind::count(&std::env::current_exe()?, &["cases"]),
            Place::Tests { package, target } => {
                let program = test_program(package, target)?;
                callgrind::count(&program, &["guards::", "--ignored", "--nocapture", "--test-threads=1"])
            }
        }
    }
}

/// Builds a target's tests, as all tests are built so that nothing is built twice, and returns where they are.
fn test_program(package: &str, target: &str) -> Result<PathBuf> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["test", "--workspace", "--no-run", "--quiet", "--message-format=json"])
        .stderr(Stdio::inherit())
        .output()
        .context("cargo cannot be run")?;
    ensure!(output.status.success(), "the tests cannot be built");
    find(&String::from_utf8_lossy(&output.stdout), package, target)
        .with_context(|| format!("{package} has no tests named `{target}`"))
}

/// Returns where the tests of a target are, by cargo's messages.
fn find(messages: &str, package: &str, target: &str) -> Option<PathBuf> {
    let mut messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.find_map(|message| {
        let id = message["package_id"].as_str()?;
        // A package that is not named as its folder has its name behind the folder's.
        let of_package = id.contains(&format!("/{package}#")) || id.contains(&format!("#{package}@"));
        let wanted = of_package && message["target"]["name"] == target && message["profile"]["test"] == true;
        if wanted { message["executable"].as_str().map(PathBuf::from) } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_by_cargos_messages() {
        let line = |id: &str, target: &str, test: bool, executable: &str| {
            let (id, target) = (format!("path+file:///x/{id}"), format!("{{\"name\":\"{target}\"}}"));
            let profile = format!("{{\"test\":{test}}}");
            format!(r#"{{"package_id":"{id}","target":{target},"profile":{profile},"executable":{executable}}}"#)
        };
        let messages = [
            line("app/netservd#0.1.0", "netservd", false, r#""/t/netservd""#),
            line("app/netservd#0.1.0", "netservd", true, r#""/t/deps/netservd-1""#),
            line("io/worker#netserv-worker@0.1.0", "netserv_worker", true, r#""/t/deps/lib-1""#),
            line("io/worker#netserv-worker@0.1.0", "all", true, r#""/t/deps/all-1""#),
            "not json".to_owned(),
        ];
        let check = |package, target, expected: Option<&str>| {
            assert_eq!(find(&messages.join("\n"), package, target), expected.map(PathBuf::from));
        };
        check("netservd", "netservd", Some("/t/deps/netservd-1"));
        check("netserv-worker", "all", Some("/t/deps/all-1"));
        check("netserv", "netservd", None);
    }
}
