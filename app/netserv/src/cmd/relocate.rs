// SPDX-License-Identifier: Apache-2.0
//! `netserv relocate`.
//!
//! The steps are those of [`netserv_placement::relocation`]. The same command, given again, goes on wherever an earlier one ended.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use clap::Args;
use netserv_model::{Digest, ModuleName, NodeId};
use netserv_placement::relocation::{Moved, Owner, Plan, Relocation, Step, Stopped};
use serde::Serialize;

use super::setup::Wanted;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::request::{Identity, Travel};
use crate::units::{format_bytes, parse_duration, parse_freeze};
use netserv_api::Client;

/// Move a running module with its state from one node of a path to another
///
/// The old node pauses the module and writes its state to --store. The new node starts it from that state in the
/// next epoch, and then the old node removes it. If a step fails, the module resumes on the old node; run the same
/// command again to continue. Name filters, properties and floating addresses as in `netserv setup`.
#[derive(Args)]
pub struct Relocate {
    #[command(flatten)]
    wanted: Wanted,
    /// Destination of the path that both nodes are on: an address or a name
    #[arg(long, value_name = "DEST")]
    to: String,
    /// Source of the flow whose path the request follows [default: the address that this node would use]
    #[arg(long, value_name = "SRC")]
    from: Option<IpAddr>,
    /// Node that has the module
    #[arg(long, value_name = "NAME")]
    old_node: NodeId,
    /// Node to which the module moves
    #[arg(long, value_name = "NAME")]
    node: NodeId,
    /// URL to which the old node writes the state (HTTP PUT) and from which the new node fetches it
    #[arg(long, value_name = "URL")]
    store: String,
    /// URL from which the new node fetches the state, if it differs from --store
    #[arg(long, value_name = "URL")]
    fetch: Option<String>,
    /// Your addresses that follow the module from node to node, separated by commas
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    floating: Vec<IpAddr>,
    /// Longest pause of the module; after that, the old node resumes it
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_freeze)]
    freeze: Duration,
    /// How long to wait for each response stack
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    timeout: Duration,
    #[command(flatten)]
    identity: Identity,
}

/// What `-j` shows.
#[derive(Debug, Serialize)]
struct Shown {
    module: ModuleName,
    old_node: NodeId,
    node: NodeId,
    /// The epoch in which the new node has it.
    epoch: u64,
    /// Whether an earlier command had done a part of it.
    resumed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<ShownState>,
}

/// The state, and how long the module was nowhere.
#[derive(Debug, Serialize)]
struct ShownState {
    digest: Digest,
    bytes: u64,
    /// Milliseconds from asking for it until the answer came that the new node has the module: the module saw nothing for less.
    still_ms: u64,
}

impl Relocate {
    /// Moves the module, or goes on with what an earlier command began.
    ///
    /// # Errors
    /// A node refuses or does not answer; the module is at one of the two then, as the fix says.
    pub async fn run(self, client: &Client, output: &mut Output) -> Result<Exit, Failure> {
        let target = self.wanted.target(output)?;
        let account = self.identity.account()?;
        let travel = Travel {
            from: self.from,
            timeout: self.timeout,
            for_path: Vec::new(),
            session: None,
            round_trip: false,
            return_only: false,
        };
        let path = travel.path_to(&self.to)?;
        let module = target.module.name.clone();
        let mut relocation = Relocation::new(Plan {
            module: module.clone(),
            old: self.old_node.clone(),
            new: self.node.clone(),
            store: self.store.clone(),
            fetch: self.fetch.clone().unwrap_or_else(|| self.store.clone()),
            freeze: self.freeze,
        });
        let (mut began, mut still, mut exit) = (None, Duration::ZERO, Exit::NodeRefused);
        let ended = loop {
            let step = match relocation.next() {
                Ok(step) => step,
                Err(ended) => break ended,
            };
            output.note(said(step, relocation.node(step), &module));
            match step {
                Step::Export => began = Some(Instant::now()),
                Step::Check => still = began.take().map_or(still, |began| began.elapsed()),
                Step::AskOld
                | Step::AskNew
                | Step::GoOn(_)
                | Step::Try(_)
                | Step::Buffer(..)
                | Step::Begin(..)
                | Step::CallOff(_)
                | Step::Release(_) => {}
            }
            let request = relocation.request(step, || self.wanted.builder(&target).floating(&self.floating));
            let message = account.sign(travel.bind(request, Some(path)))?;
            let sent = travel.send(client, output, message, Some(path)).await;
            exit = sent.as_ref().err().map_or(Exit::NodeRefused, |failure| failure.exit);
            relocation.answered(sent.as_ref().map_err(|failure| failure.cause.clone()));
        };
        match ended {
            Ok(moved) => self.show(&module, &moved, still, output),
            Err(Stopped { cause, fix, owner: Owner::None }) => Err(Failure::new(cause, fix)),
            Err(Stopped { cause, fix, .. }) => Err(Failure::new(cause, fix).with_exit(exit)),
        }
    }

    fn show(&self, module: &ModuleName, moved: &Moved, still: Duration, output: &mut Output) -> Result<Exit, Failure> {
        let still_ms = u64::try_from(still.as_millis()).unwrap_or(u64::MAX);
        let shown = Shown {
            module: module.clone(),
            old_node: self.old_node.clone(),
            node: self.node.clone(),
            epoch: moved.epoch,
            resumed: moved.resumed,
            state: moved.state.map(|(digest, bytes)| ShownState { digest, bytes, still_ms }),
        };
        if output.is_json() {
            output.json(&shown)?;
            return Ok(Exit::Done);
        }
        output.line(format!("{module} is on {} in epoch {}", shown.node, shown.epoch));
        if let Some(ShownState { bytes, still_ms, .. }) = shown.state {
            output.line(format!("its state of {} was on the way for less than {still_ms} ms", format_bytes(bytes)));
        }
        Ok(Exit::Done)
    }
}

/// Says what is done next.
fn said(step: Step, node: &NodeId, module: &ModuleName) -> String {
    match step {
        Step::AskOld | Step::AskNew | Step::Check => format!("ask {node} for {module}"),
        Step::GoOn(_) | Step::CallOff(_) => format!("have it go on on {node}"),
        Step::Try(_) => format!("ask {node} whether it would take it"),
        Step::Buffer(..) => format!("have packets wait for it on {node}"),
        Step::Export => format!("export its state from {node}"),
        Step::Begin(..) => format!("install it on {node}"),
        Step::Release(_) => format!("remove it from {node}"),
    }
}
