// SPDX-License-Identifier: Apache-2.0
//! `netserv node drain`.

use std::time::Duration;

use clap::Args;
use netserv_api::{DrainReport, DrainRequest};

use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::report::{count, modules};
use netserv_api::Client;

/// How long the node may take to hold to it.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(60);
/// How often the node is asked what is left.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Drain the node before maintenance: it accepts no new modules, and users move theirs away
///
/// A node cannot sign for its users, so it moves no module by itself. It notifies the users of its modules
/// (`node-maintenance`) and reports the drain in PROBE. They move their modules by `netserv relocate`. A module
/// that stays runs until its lease ends. The node renews no lease and refuses SETUPs of other modules
/// (`maintenance`). The operator's own services stay. The drain survives restarts and lasts until --undo.
#[derive(Args)]
pub struct Drain {
    /// End the drain
    #[arg(long, conflicts_with = "wait")]
    undo: bool,
    /// Wait until no module is left, and show those that are
    #[arg(long)]
    wait: bool,
}

impl Drain {
    /// Has the node drained, or not any more.
    ///
    /// # Errors
    /// The node cannot be reached, or cannot keep it.
    pub async fn run(&self, client: &Client, output: &mut Output) -> Result<Exit, Failure> {
        let request = DrainRequest { maintenance: !self.undo };
        let mut report: DrainReport = client.post("/v1/drain", &request, DRAIN_TIME_MAX).await?;
        let mut shown = None;
        while self.wait && report.maintenance && !report.left.is_empty() && !output.is_closed() {
            if shown.replace(report.left.len()) != Some(report.left.len()) {
                show(&report, output)?;
            }
            tokio::time::sleep(LOOK_EVERY).await;
            report = client.get("/v1/drain").await?;
        }
        show(&report, output)?;
        // Somebody else may have undone it.
        let is_done = report.maintenance != self.undo && (!self.wait || report.left.is_empty());
        Ok(if is_done { Exit::Done } else { Exit::Incomplete })
    }
}

fn show(report: &DrainReport, output: &mut Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.json_line(report);
    }
    match (report.maintenance, report.left.as_slice()) {
        (false, _) => output.line("the node takes modules"),
        (true, []) => output.line("the node takes nothing new, and has no module of a user"),
        (true, left) => {
            output.line(format!("the node takes nothing new; {} left", count(left.len() as u64, "module")));
            modules(left.iter().map(|module| (None, module))).write(output);
        }
    }
    Ok(())
}
