// SPDX-License-Identifier: Apache-2.0
//! What demos have in common: titles, times that are promised, pictures and requests.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use netserv_model::api::RequestResult;

use crate::netns::Lab;
use crate::node::{LabUser, installed, workspace};
use crate::patience::{Load, grown};

/// How long a command waits for the answers of nodes, on a machine that is not busy.
const REQUEST_WAIT: Duration = Duration::from_secs(10);

/// Makes the folder for an application's pictures and returns it: below the source tree's `target/demo`, or below
/// `netserv-demo` in the current folder if this program is installed.
pub(super) fn picture_folder(app: &str) -> Result<PathBuf> {
    let folder = match installed() {
        Some(_) => std::env::current_dir()?.join("netserv-demo"),
        None => workspace().join("target/demo"),
    };
    let folder = folder.join(app);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// Sends a request of a user from the sender.
pub(super) fn signed(lab: &Lab, user: &LabUser, args: &[&str]) -> Result<RequestResult> {
    let (key, timeout) = (user.key.to_string_lossy(), request_timeout());
    lab.request("sender", &[args, &["--user", &user.name, "--key", &key, "--timeout", &timeout]].concat())
}

/// Returns how long a command waits for the answers of nodes, as the command line has it.
pub(super) fn request_timeout() -> String {
    format!("{}s", grown(REQUEST_WAIT).as_secs())
}

/// Says how a time compares with the one that is promised.
///
/// # Errors
/// It is longer, in a release build on a machine that is not busy.
pub(super) fn hold(what: &str, took: Duration, promised: Duration) -> Result<()> {
    let load = Load::now();
    let [took_s, promised_s] = [took, promised].map(|time| time.as_secs_f64());
    let told = format!("{what} took {took_s:.2} s; promised: {promised_s:.0} s; {load}");
    let excuse = excuse(cfg!(debug_assertions), load);
    let note = excuse.map(|why| format!("; {why}, so the figure does not count")).unwrap_or_default();
    println!("  {told}{note}");
    ensure!(took <= promised || excuse.is_some(), "{told}");
    Ok(())
}

/// Returns why a time that was measured does not count; nothing if it does.
pub(super) fn excuse(is_debug: bool, load: Load) -> Option<&'static str> {
    match (is_debug, load.is_busy()) {
        (false, false) => None,
        (false, true) => Some("the machine is busy"),
        (true, false) => Some("this is a debug build"),
        (true, true) => Some("the machine is busy, and this is a debug build"),
    }
}

pub(super) fn title(text: &str) {
    println!("\n── {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_in_a_release_build_on_a_machine_that_is_not_busy() {
        let (idle, busy) = (Load { average: 1.9, cores: 2 }, Load { average: 2.0, cores: 2 });
        assert_eq!(excuse(false, idle), None);
        for (is_debug, load) in [(true, idle), (false, busy), (true, busy)] {
            let why = excuse(is_debug, load).unwrap();
            assert_eq!((why.contains("debug"), why.contains("busy")), (is_debug, load.is_busy()), "{why}");
        }
    }

    #[test]
    fn a_promise_that_is_kept_holds_everywhere() {
        hold("this", Duration::from_millis(10), Duration::from_secs(3)).unwrap();
    }
}
