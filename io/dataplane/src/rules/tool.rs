// SPDX-License-Identifier: Apache-2.0
//! Running `iptables-restore` and `iptables-save`.

use std::io::{self, Write};
use std::process::{Child, Command, Output, Stdio};

use netserv_wire::ip::IpVersion;

use crate::DriverError;

/// Hands each script to the table of its version, all at the same time; one outcome for each.
pub(super) fn restore(scripts: &[(IpVersion, String)]) -> Vec<Result<(), DriverError>> {
    let started: Vec<_> = scripts
        .iter()
        .map(|(version, script)| {
            let tool = restore_tool(*version);
            let child = start(tool, &["--noflush", "--wait", LOCK_SECONDS], Stdio::piped());
            (tool, script, child)
        })
        .collect();
    started.into_iter().map(|(tool, script, child)| finish(tool, child?, script).map(drop)).collect()
}

/// Returns the `mangle` table of each version as text. Without the tool there are no rules of ours: an empty list.
pub(super) fn save(versions: &[IpVersion]) -> Result<Vec<(IpVersion, String)>, DriverError> {
    save_with(versions, &["-t", "mangle"])
}

/// Returns all tables of each version as text.
pub(super) fn save_all(versions: &[IpVersion]) -> Result<Vec<(IpVersion, String)>, DriverError> {
    save_with(versions, &[])
}

fn save_with(versions: &[IpVersion], arguments: &[&str]) -> Result<Vec<(IpVersion, String)>, DriverError> {
    let started: Vec<_> = versions
        .iter()
        .map(|version| (*version, save_tool(*version), start(save_tool(*version), arguments, Stdio::null())))
        .collect();
    let mut saved = Vec::new();
    for (version, tool, child) in started {
        match child {
            Ok(child) => {
                let output = finish(tool, child, "")?;
                saved.push((version, String::from_utf8_lossy(&output.stdout).into_owned()));
            }
            Err(DriverError::MissingTool { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(saved)
}

/// How long the tool waits for another one to let go of the tables.
const LOCK_SECONDS: &str = "5";
const MESSAGE_CHARS_MAX: usize = 400;

fn restore_tool(version: IpVersion) -> &'static str {
    match version {
        IpVersion::V4 => "iptables-restore",
        IpVersion::V6 => "ip6tables-restore",
    }
}

fn save_tool(version: IpVersion) -> &'static str {
    match version {
        IpVersion::V4 => "iptables-save",
        IpVersion::V6 => "ip6tables-save",
    }
}

fn start(tool: &'static str, arguments: &[&str], input: Stdio) -> Result<Child, DriverError> {
    let mut command = Command::new(tool);
    command.args(arguments).stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            return DriverError::MissingTool { tool, package: "iptables" };
        }
        DriverError::system("starting iptables", error)
    })
}

fn finish(tool: &'static str, mut child: Child, script: &str) -> Result<Output, DriverError> {
    if let Some(mut input) = child.stdin.take()
        && let Err(error) = input.write_all(script.as_bytes())
    {
        // The tool ended early, and says why on its standard error.
        tracing::debug!(%error, tool, "rules were not read to their end");
    }
    let output = child.wait_with_output().map_err(|error| DriverError::system("waiting for iptables", error))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("Permission denied") || said.contains("you must be root") {
        return Err(DriverError::NotPermitted { what: "changing packet filter rules" });
    }
    let message = said.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MESSAGE_CHARS_MAX).collect();
    Err(DriverError::Rules { command: tool, message })
}
