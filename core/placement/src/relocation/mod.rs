// SPDX-License-Identifier: Apache-2.0
//! The steps by which a running module moves with its state from one node to another, one request to one node at a time.
//!
//! The nodes hold what is known of a relocation: who has the module in which epoch, and whether it stands still there. So one that
//! begins anew goes on wherever an earlier one ended. Until a request of the next epoch has come by, the module is the old node's, which
//! goes on by itself after a while; if the new one takes longer than that to begin, both have it until the relocation is given again.
//!
//! Packets wait for the module while it is at neither: at the old node those that come while it stands still, and at the new one, from
//! just before then, those that come another way than from the old one, which would have passed by.

use std::net::IpAddr;
use std::time::Duration;

use netserv_model::api::RequestResult;
use netserv_model::request::{Ask, ModuleState, ModuleStatus, NodeReport, Outcome, StateSource};
use netserv_model::target::Target;
use netserv_model::{Digest, ModuleName, NodeId, RefusalKind};
use netserv_wire::nslp::RequestBuilder;

use crate::limits::{EPOCHS_AHEAD_MAX, TRIES_MAX};

/// What is to be moved, and where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The module.
    pub module: ModuleName,
    /// The node that has it.
    pub old: NodeId,
    /// The node that is to have it.
    pub new: NodeId,
    /// Where the state is put.
    pub store: String,
    /// Where it is fetched.
    pub fetch: String,
    /// For how long the module may stand still until the old node has it go on.
    pub freeze: Duration,
}

/// A request to one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask the old node for the module.
    AskOld,
    /// Ask the new one.
    AskNew,
    /// Have the old one go on that stands still from an earlier try, in its epoch.
    GoOn(u64),
    /// Ask the new one whether it would take the module in this epoch, and have it make ready what takes time.
    Try(u64),
    /// Have packets wait at the new one that do not come from where the old one is, which is about to stand still.
    Buffer(u64, IpAddr),
    /// Have the old one stand still and put the state where it is fetched.
    Export,
    /// Have the new one begin with the state in this epoch.
    Begin(u64, Digest),
    /// Ask the new one whether it began: an answer may be lost that said so, or say what is not true.
    Check,
    /// Have the old one go on after all, in its epoch.
    CallOff(u64),
    /// Have the old one let go of what is of an epoch before this.
    Release(u64),
}

/// How a relocation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The epoch in which the new node has the module.
    pub epoch: u64,
    /// Whether an earlier one had done a part of it.
    pub resumed: bool,
    /// The digest and the bytes of the state, unless an earlier one moved it.
    pub state: Option<(Digest, u64)>,
}

/// Why a relocation ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// What happened.
    pub cause: String,
    /// What to do about it.
    pub fix: String,
    /// Which node has the module.
    pub owner: Owner,
}

/// Which of the two nodes has the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The old one, where it goes on.
    Old,
    /// The new one, in this epoch; the old one has not let go of it yet.
    New(u64),
    /// Neither.
    None,
    /// It is not known: the same relocation finds out.
    Unknown,
}

/// A relocation under way.
#[derive(Clone, Debug)]
pub struct Relocation {
    plan: Plan,
    next: Result<Step, Box<Result<Moved, Stopped>>>,
    old: Option<ModuleStatus>,
    /// Where the old node is, and the new one.
    addresses: [Option<IpAddr>; 2],
    epoch: u64,
    resumed: bool,
    state: Option<(Digest, u64)>,
    /// How often the new node was still making ready.
    tries: u32,
    /// Why it is called off.
    failure: Option<Stopped>,
    /// Whether the new node is still at it,
    is_begun: bool,
    /// or says that it has it.
    says_so: bool,
}

impl Relocation {
    /// Returns one that begins, or goes on with what an earlier one began.
    pub fn new(plan: Plan) -> Relocation {
        Relocation {
            plan,
            next: Ok(Step::AskOld),
            old: None,
            addresses: [None; 2],
            epoch: 0,
            resumed: false,
            state: None,
            tries: 0,
            failure: None,
            is_begun: false,
            says_so: false,
        }
    }

    /// Returns what is to be done next, which is answered by [`Relocation::answered`].
    ///
    /// # Errors
    /// Nothing is: how it ended.
    pub fn next(&self) -> Result<Step, Result<Moved, Stopped>> {
        self.next.clone().map_err(|ended| *ended)
    }

    /// Returns the node that a step is for.
    pub fn node(&self, step: Step) -> &NodeId {
        match step {
            Step::AskOld | Step::GoOn(_) | Step::Export | Step::CallOff(_) | Step::Release(_) => &self.plan.old,
            Step::AskNew | Step::Try(_) | Step::Buffer(..) | Step::Begin(..) | Step::Check => &self.plan.new,
        }
    }

    /// Returns the request of a step; `setup` is one for the module as it is to be, without epoch and target.
    pub fn request(&self, step: Step, setup: impl FnOnce() -> RequestBuilder) -> RequestBuilder {
        let Plan { module, store, fetch, freeze, .. } = &self.plan;
        let request = match step {
            Step::AskOld | Step::AskNew | Step::Check => RequestBuilder::probe(&[Ask::Modules]),
            Step::GoOn(0) | Step::CallOff(0) => setup(),
            Step::GoOn(epoch) | Step::CallOff(epoch) => setup().epoch(epoch),
            Step::Try(epoch) => setup().epoch(epoch).prepare(),
            Step::Buffer(epoch, old) => setup().epoch(epoch).prepare().buffer(old),
            Step::Export => {
                let export = RequestBuilder::export(module, store).freeze(freeze.as_secs());
                self.addresses[1].into_iter().fold(export, RequestBuilder::buffer)
            }
            Step::Begin(epoch, digest) => setup().epoch(epoch).state(&StateSource { url: fetch.clone(), digest }),
            Step::Release(epoch) => RequestBuilder::remove(module).epoch(epoch),
        };
        request.target(&Target { nodes: vec![self.node(step).clone()], ..Target::default() })
    }

    /// Takes what came of the step, or why it got no answer.
    pub fn answered(&mut self, answer: Result<&RequestResult, String>) {
        let Ok(step) = self.next else { return };
        let report = answer.and_then(|result| report(result, self.node(step)));
        self.next = match self.after(step, report) {
            Ok(next) => Ok(next),
            Err(ended) => Err(Box::new(ended)),
        };
    }

    fn after(&mut self, step: Step, report: Result<&NodeReport, String>) -> Result<Step, Result<Moved, Stopped>> {
        let Plan { old, new, module, .. } = &self.plan;
        let again = || "see `netserv path` for the nodes that are there, then give the same command again".to_owned();
        let stopped = |cause, fix: String, owner| Err(Stopped { cause, fix, owner });
        let done = |report: Result<&NodeReport, String>| match report {
            Ok(report) if report.outcome.is_ok() && !report.outcome.is_not_targeted() => Ok(report.outcome.clone()),
            Ok(report) => Err(format!("{}: {}", report.node, report.outcome)),
            Err(cause) => Err(cause),
        };
        let ended = match (step, report) {
            // Who does not take the question may have the module all the same.
            (Step::AskOld | Step::AskNew, Ok(report)) if !report.outcome.is_ok() => {
                stopped(format!("{}: {}", report.node, report.outcome), again(), Owner::Unknown)
            }
            (Step::AskOld | Step::AskNew, Err(cause)) => stopped(cause, again(), Owner::Unknown),
            (Step::AskOld, Ok(report)) => {
                self.old = there(report, module).cloned();
                self.addresses[0] = address(report);
                return Ok(Step::AskNew);
            }
            (Step::AskNew, Ok(report)) => {
                self.addresses[1] = address(report);
                return self.compare(there(report, module));
            }
            (Step::GoOn(_), report) => match done(report) {
                Ok(_) => return Ok(Step::Try(self.epoch)),
                Err(cause) => stopped(cause, "give the same command again".to_owned(), Owner::Unknown),
            },
            (Step::Try(epoch), Ok(report))
                if report.outcome.is_refused_for(RefusalKind::InProgress) && self.tries < TRIES_MAX =>
            {
                self.tries += 1;
                return Ok(Step::Try(epoch));
            }
            // What cannot wait is missed, and nothing else.
            (Step::Buffer(..), _) => return Ok(Step::Export),
            (Step::Try(epoch), report) => match done(report) {
                Ok(_) => return Ok(self.addresses[0].map_or(Step::Export, |address| Step::Buffer(epoch, address))),
                Err(cause) => stopped(cause, format!("it is on {old} as before"), Owner::Old),
            },
            (Step::Export, report) => match done(report) {
                Ok(Outcome::Exported { digest, bytes }) => {
                    self.state = Some((digest, bytes));
                    return Ok(Step::Begin(self.epoch, digest));
                }
                Ok(other) => {
                    stopped(format!("{old} did not export: {other}"), "look at its log".to_owned(), Owner::Old)
                }
                Err(cause) => stopped(cause, format!("it goes on on {old}"), Owner::Old),
            },
            (Step::Begin(..), report) => {
                self.is_begun =
                    report.as_ref().is_ok_and(|report| report.outcome.is_refused_for(RefusalKind::InProgress));
                let said = done(report);
                self.says_so = said.is_ok();
                let cause = said.err().unwrap_or_else(|| format!("{new} says that it has {module}, and has not"));
                let fix = format!("see why, then try again; it goes on on {old}");
                self.failure = Some(Stopped { cause, fix, owner: Owner::Old });
                return Ok(Step::Check);
            }
            // Who has said that it has it is believed unless it says something else.
            (Step::Check, Err(_)) if self.says_so => return Ok(Step::Release(self.epoch)),
            (Step::Check, Ok(report)) if !report.outcome.is_ok() && self.says_so => {
                return Ok(Step::Release(self.epoch));
            }
            (Step::Check, Ok(report)) if !report.outcome.is_ok() => self.called_off(Owner::Unknown),
            (Step::Check, Ok(report)) => match there(report, module).filter(|there| there.epoch == self.epoch) {
                Some(there) if is_beginning(there) => stopped(still_beginning(new), again(), Owner::Unknown),
                Some(_) => return Ok(Step::Release(self.epoch)),
                None if self.is_begun => stopped(still_beginning(new), again(), Owner::Unknown),
                None => return Ok(Step::CallOff(self.old.as_ref().map_or(0, |old| old.epoch))),
            },
            (Step::Check, Err(_)) => self.called_off(Owner::Unknown),
            (Step::CallOff(_), report) => match done(report) {
                Ok(_) => self.called_off(Owner::Old),
                Err(_) => self.called_off(Owner::Unknown),
            },
            (Step::Release(epoch), report) => match &report {
                Ok(report) if report.outcome.is_refused_for(RefusalKind::NotInstalled) => self.moved(epoch),
                Ok(_) | Err(_) => match done(report) {
                    Ok(_) => self.moved(epoch),
                    Err(cause) => {
                        stopped(cause, format!("{new} has it; give the same command again"), Owner::New(epoch))
                    }
                },
            },
        };
        Err(ended)
    }

    /// Goes on by what both nodes have.
    fn compare(&mut self, new: Option<&ModuleStatus>) -> Result<Step, Result<Moved, Stopped>> {
        let Plan { old: old_node, new: new_node, module, .. } = &self.plan;
        if new.is_some_and(is_beginning) {
            let fix = "give the same command again".to_owned();
            return Err(Err(Stopped { cause: still_beginning(new_node), fix, owner: Owner::Unknown }));
        }
        match (&self.old, new) {
            (None, None) => {
                let cause = format!("neither {old_node} nor {new_node} has {module}");
                Err(Err(Stopped { cause, fix: "install it: `netserv setup`".to_owned(), owner: Owner::None }))
            }
            (None, Some(new)) => {
                self.resumed = true;
                Err(self.moved(new.epoch))
            }
            // Nobody gave it that, and the next owner would have to be later.
            (Some(old), Some(new)) if new.epoch.saturating_sub(old.epoch) > EPOCHS_AHEAD_MAX => {
                let cause =
                    format!("{new_node} says that it has {module} in epoch {}, {old_node} in {}", new.epoch, old.epoch);
                Err(Err(Stopped { cause, fix: "look at both nodes".to_owned(), owner: Owner::Unknown }))
            }
            (Some(old), Some(new)) if new.epoch > old.epoch => {
                self.resumed = true;
                Ok(Step::Release(new.epoch))
            }
            (Some(old), new) => {
                self.epoch = new.map_or(old.epoch, |new| new.epoch.max(old.epoch)) + 1;
                self.resumed = old.state == ModuleState::Frozen;
                Ok(if self.resumed { Step::GoOn(old.epoch) } else { Step::Try(self.epoch) })
            }
        }
    }

    fn moved(&self, epoch: u64) -> Result<Moved, Stopped> {
        Ok(Moved { epoch, resumed: self.resumed, state: self.state })
    }

    fn called_off(&mut self, owner: Owner) -> Result<Moved, Stopped> {
        let cause = self.failure.take().unwrap_or_else(|| unreachable!("it is called off for a failure"));
        let fix = if owner == Owner::Old { cause.fix } else { "give the same command again".to_owned() };
        Err(Stopped { fix, owner, ..cause })
    }
}

/// Returns what a node said.
fn report<'a>(result: &'a RequestResult, node: &NodeId) -> Result<&'a NodeReport, String> {
    result.nodes.iter().find(|report| report.node == *node).ok_or_else(|| {
        let why = result.incomplete.as_ref().map(|refusal| format!(": {}", refusal.detail)).unwrap_or_default();
        format!("{node} did not answer{why}")
    })
}

/// Returns where a node is, as the one before it knows it.
fn address(report: &NodeReport) -> Option<IpAddr> {
    Some(report.address).filter(|address| !address.is_unspecified())
}

/// Returns a node's module, and not only its connections.
fn there<'a>(report: &'a NodeReport, module: &ModuleName) -> Option<&'a ModuleStatus> {
    report.modules.iter().find(|status| status.module.name == *module && status.state != ModuleState::Draining)
}

/// Returns whether it may still come to nothing.
fn is_beginning(status: &ModuleStatus) -> bool {
    match status.state {
        ModuleState::Fetching | ModuleState::Starting => true,
        ModuleState::Running
        | ModuleState::Frozen
        | ModuleState::BackingOff
        | ModuleState::Quarantined
        | ModuleState::Draining => false,
    }
}

fn still_beginning(node: &NodeId) -> String {
    format!("{node} has not begun with it yet")
}

#[cfg(test)]
mod tests;
