// SPDX-License-Identifier: Apache-2.0
//! Running `iptables-save`.

use std::io;
use std::process::{Child, Command, Output, Stdio};

use netserv_plane::DriverError;

/// Returns all tables of each version as text.
///
/// Without the tool there is nothing to see: an empty list.
pub(super) fn save_all() -> Result<Vec<String>, DriverError> {
    let started = TOOLS.map(|tool| (tool, start(tool)));
    let mut saved = Vec::new();
    for (tool, child) in started {
        if let Some(child) = child? {
            saved.push(String::from_utf8_lossy(&finish(tool, child)?.stdout).into_owned());
        }
    }
    Ok(saved)
}

const TOOLS: [&str; 2] = ["iptables-save", "ip6tables-save"];
const MESSAGE_CHARS_MAX: usize = 400;

fn start(tool: &'static str) -> Result<Option<Child>, DriverError> {
    match Command::new(tool).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
        Ok(child) => Ok(Some(child)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(DriverError::system("starting iptables-save", error)),
    }
}

fn finish(tool: &'static str, child: Child) -> Result<Output, DriverError> {
    let output = child.wait_with_output().map_err(|error| DriverError::system("waiting for iptables-save", error))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("Permission denied") || said.contains("you must be root") {
        return Err(DriverError::NotPermitted { what: "reading packet filter rules" });
    }
    let message = said.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MESSAGE_CHARS_MAX).collect();
    Err(DriverError::Rules { command: tool, message })
}
