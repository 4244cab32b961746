// SPDX-License-Identifier: Apache-2.0
//! `netserv relocate`.
//!
//! The nodes hold what is known of a relocation: who has the module in which epoch, and whether it stands still there. So the same
//! command, given again, goes on wherever an earlier one ended. Until the new node has taken the next epoch, the module is the old
//! one's, which goes on by itself after a while; from then on it is the new one's.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use clap::Args;
use netserv_model::api::RequestResult;
use netserv_model::request::{Ask, ModuleState, ModuleStatus, NodeReport, Outcome, StateSource};
use netserv_model::target::Target as Nodes;
use netserv_model::{Digest, ModuleName, NodeId, Refusal, RefusalKind};
use netserv_wire::nslp::RequestBuilder;
use serde::Serialize;

use super::setup::{Target, Wanted};
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::request::{Account, Identity, Travel};
use crate::units::{format_bytes, parse_duration, parse_freeze};

/// Move a running module with its state from one node of a path to another
///
/// The old node has the module see nothing any more and writes its state to --store; the new one begins with it in the next epoch; the
/// old one lets go. If something fails on the way, the module goes on where it was. A command that was ended in the middle is given
/// once more. What the module is to be there (filters, properties, floating addresses) is said as in `netserv setup`.
#[derive(Args)]
pub struct Relocate {
    #[command(flatten)]
    wanted: Wanted,
    /// The destination of the path that both nodes are on: an address or a name
    #[arg(long, value_name = "DEST")]
    to: String,
    /// The source of the flow whose path is meant [default: the address that this node would use]
    #[arg(long, value_name = "SRC")]
    from: Option<IpAddr>,
    /// The node that has the module
    #[arg(long, value_name = "NAME")]
    old_node: NodeId,
    /// The node that is to have it
    #[arg(long, value_name = "NAME")]
    node: NodeId,
    /// Where the state is put by an HTTP PUT, and fetched
    #[arg(long, value_name = "URL")]
    store: String,
    /// Where it is fetched, if that is not where it is put
    #[arg(long, value_name = "URL")]
    fetch: Option<String>,
    /// Addresses of yours that lead to the module wherever it is, with commas between
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    floating: Vec<IpAddr>,
    /// For how long the module may stand still until the old node has it go on
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
        let travel = Travel { from: self.from, timeout: self.timeout, session: None, round_trip: false };
        let path = Path { client, account, travel, to: &self.to };
        let module = target.module.name.clone();
        let (old, new) = self.owners(&path, &module, output).await?;
        let shown = |epoch, resumed, state| Shown {
            module: module.clone(),
            old_node: self.old_node.clone(),
            node: self.node.clone(),
            epoch,
            resumed,
            state,
        };
        let shown = match (&old, &new) {
            (None, None) => {
                let cause = format!("neither {} nor {} has {module}", self.old_node, self.node);
                return Err(Failure::new(cause, "install it: `netserv setup`"));
            }
            (None, Some(new)) => shown(new.epoch, true, None),
            (Some(old), Some(new)) if new.epoch > old.epoch => {
                self.release(&path, &module, new.epoch, output).await?;
                shown(new.epoch, true, None)
            }
            (Some(old), new) => {
                let next = new.as_ref().map_or(old.epoch, |new| new.epoch.max(old.epoch)) + 1;
                let is_still = old.state == ModuleState::Frozen;
                if is_still {
                    self.thaw(&path, &target, old.epoch, output).await?;
                }
                let state = self.transfer(&path, &target, (old.epoch, next), output).await?;
                self.release(&path, &module, next, output).await?;
                shown(next, is_still, Some(state))
            }
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

    /// Asks both nodes for the module.
    async fn owners(
        &self,
        path: &Path<'_>,
        module: &ModuleName,
        output: &Output,
    ) -> Result<(Option<ModuleStatus>, Option<ModuleStatus>), Failure> {
        output.note(format!("ask {} and {} for {module}", self.old_node, self.node));
        let nodes = [self.old_node.clone(), self.node.clone()];
        let result = path.send(RequestBuilder::probe(&[Ask::Modules]), &nodes, output).await?;
        let of = |node: &NodeId| {
            let report = answer(&result, node)?;
            Ok(report.modules.iter().find(|status| status.module.name == *module && is_there(status)).cloned())
        };
        Ok((of(&self.old_node)?, of(&self.node)?))
    }

    /// Has the old node stand still and the new one begin in the next epoch, or the old one go on.
    async fn transfer(
        &self,
        path: &Path<'_>,
        target: &Target,
        (epoch, next): (u64, u64),
        output: &Output,
    ) -> Result<ShownState, Failure> {
        let (old, new) = (std::slice::from_ref(&self.old_node), std::slice::from_ref(&self.node));
        let setup = || self.wanted.builder(target).epoch(next).floating(&self.floating);
        output.note(format!("ask {} whether it would take it", self.node));
        let would = path.send(setup().dry_run(), new, output).await?;
        done(&would, &self.node, &format!("it is on {} as before", self.old_node))?;

        let began = Instant::now();
        output.note(format!("export its state from {}", self.old_node));
        let export = RequestBuilder::export(&target.module.name, &self.store).freeze(self.freeze.as_secs());
        let exported = path.send(export, old, output).await?;
        let report = done(&exported, &self.old_node, "it goes on there")?;
        let Outcome::Exported { digest, bytes } = report.outcome else {
            let cause = format!("{} did not export: {}", self.old_node, report.outcome);
            return Err(Failure::new(cause, "look at its log; the module goes on there").with_exit(Exit::NodeRefused));
        };
        output.note(format!("install it on {}", self.node));
        let url = self.fetch.clone().unwrap_or_else(|| self.store.clone());
        let begin = setup().state(&StateSource { url, digest });
        let failure = match path.send(begin, new, output).await {
            Ok(result) => done(&result, &self.node, "see why, then try again").err(),
            Err(failure) => Some(failure),
        };
        if let Some(failure) = failure {
            // An answer may be lost that said it was done.
            let (_, there) = self.owners(path, &target.module.name, output).await.map_err(|_| again(&failure))?;
            if there.is_none_or(|there| there.epoch != next) {
                self.thaw(path, target, epoch, output).await.map_err(|_| again(&failure))?;
                return Err(Failure { fix: format!("{}; it goes on on {}", failure.fix, self.old_node), ..failure });
            }
        }
        let still_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(ShownState { digest, bytes, still_ms })
    }

    /// Has the old node let go.
    async fn release(&self, path: &Path<'_>, module: &ModuleName, epoch: u64, output: &Output) -> Result<(), Failure> {
        output.note(format!("remove it from {}", self.old_node));
        let remove = RequestBuilder::remove(module).epoch(epoch);
        let result = path.send(remove, std::slice::from_ref(&self.old_node), output).await?;
        let report = answer(&result, &self.old_node)?;
        let is_gone = |refusal: &Refusal| refusal.kind == RefusalKind::NotInstalled;
        if matches!(&report.outcome, Outcome::Refused(refusal) if is_gone(refusal)) {
            return Ok(());
        }
        done(&result, &self.old_node, &format!("{} has it; give the same command again", self.node)).map(|_| ())
    }

    /// Has the old node go on.
    async fn thaw(&self, path: &Path<'_>, target: &Target, epoch: u64, output: &Output) -> Result<(), Failure> {
        output.note(format!("have it go on on {}", self.old_node));
        let setup = self.wanted.builder(target).floating(&self.floating);
        let setup = if epoch == 0 { setup } else { setup.epoch(epoch) };
        let result = path.send(setup, std::slice::from_ref(&self.old_node), output).await?;
        done(&result, &self.old_node, "give the same command again").map(|_| ())
    }
}

/// A path that requests take to single nodes.
struct Path<'a> {
    client: &'a Client,
    account: Account,
    travel: Travel,
    to: &'a str,
}

impl Path<'_> {
    async fn send(&self, builder: RequestBuilder, nodes: &[NodeId], output: &Output) -> Result<RequestResult, Failure> {
        let target = Nodes { nodes: nodes.to_vec(), ..Nodes::default() };
        let message = self.account.sign(builder.target(&target))?;
        self.travel.send(self.client, output, message, Some(self.travel.path_to(self.to)?)).await
    }
}

/// Returns what a node said.
///
/// # Errors
/// It said nothing.
fn answer<'a>(result: &'a RequestResult, node: &NodeId) -> Result<&'a NodeReport, Failure> {
    result.nodes.iter().find(|report| report.node == *node).ok_or_else(|| {
        let why = result.incomplete.as_ref().map(|refusal| format!(": {}", refusal.detail)).unwrap_or_default();
        let cause = format!("{node} did not answer{why}");
        Failure::new(cause, "see `netserv path` for the nodes that are there, then give the same command again")
            .with_exit(Exit::NodeRefused)
    })
}

/// Returns what a node said that did what it was asked for.
///
/// # Errors
/// It did not; `fix` says what to do, and where the module is.
fn done<'a>(result: &'a RequestResult, node: &NodeId, fix: &str) -> Result<&'a NodeReport, Failure> {
    let report = answer(result, node)?;
    if report.outcome.is_ok() && !report.outcome.is_not_targeted() {
        return Ok(report);
    }
    Err(Failure::new(format!("{node}: {}", report.outcome), fix).with_exit(Exit::NodeRefused))
}

/// Says that it is not known which of the nodes has the module.
fn again(failure: &Failure) -> Failure {
    Failure { cause: failure.cause.clone(), fix: "give the same command again".to_owned(), exit: Exit::NodeRefused }
}

/// Returns whether a node has the module, and not only its connections.
fn is_there(status: &ModuleStatus) -> bool {
    status.state != ModuleState::Draining
}
