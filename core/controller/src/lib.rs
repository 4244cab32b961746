// SPDX-License-Identifier: Apache-2.0
//! Admission, life cycle, filters, leases and quotas of a node.
#![forbid(unsafe_code)]

mod counters;

use std::collections::VecDeque;

use netserv_model::command::{Command, Event, InstalledRecord, ModuleSlot, RequestId};
use netserv_model::policy::NodePolicy;
use netserv_model::request::{Load, ModuleStatus, NodeReport, Outcome, Request};
use netserv_model::{Instant, ModuleName, Now, Refusal, RefusalKind, UserId};

pub use counters::Counters;

/// Decides what runs on a node.
#[derive(Debug)]
pub struct Controller {
    policy: NodePolicy,
    commands: VecDeque<Command>,
    counters: Counters,
    load: Load,
}

impl Controller {
    /// Returns a controller without modules.
    pub fn new(policy: NodePolicy) -> Controller {
        Controller { policy, commands: VecDeque::new(), counters: Counters::default(), load: Load::default() }
    }

    /// Takes over the modules of an earlier run; call once, before anything else.
    pub fn restore(&mut self, now: Now, records: Vec<InstalledRecord>) {
        let _ = (now, records);
    }

    /// Takes a request, which is answered exactly once by [`Command::Answer`].
    pub fn handle_request(&mut self, now: Now, id: RequestId, request: Request) {
        let _ = now;
        let refusal = Refusal::new(RefusalKind::NodeFailed, "the controller is a skeleton");
        let report = NodeReport {
            node: self.policy.node.clone(),
            address: std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
            outcome: Outcome::Refused(refusal),
            took_us: 0,
            load: None,
            modules: Vec::new(),
            blocks: Vec::new(),
            policy: None,
        };
        self.counters.answered(request.body.method(), &report.outcome);
        self.commands.push_back(Command::Answer { request: id, report: Box::new(report) });
    }

    /// Takes the result of a command, or news of a container.
    pub fn handle_event(&mut self, now: Now, event: Event) {
        let _ = (now, event);
    }

    /// Does what is due; calling it early does nothing.
    pub fn handle_timeout(&mut self, now: Now) {
        let _ = now;
    }

    /// Puts another policy in force; modules that it does not allow are removed.
    pub fn set_policy(&mut self, now: Now, policy: NodePolicy) {
        let _ = now;
        self.policy = policy;
    }

    /// Sets what PROBE says of the load; `containers` and `modules` are counted by the controller itself.
    pub fn set_load(&mut self, load: Load) {
        self.load = load;
    }

    /// Returns the next command to carry out.
    pub fn poll_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// Returns when [`Controller::handle_timeout`] is due next, and for what.
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        None
    }

    /// Returns the installed modules by user and install order; packet counts are left at zero.
    pub fn modules(&self, now: Now) -> Vec<ModuleStatus> {
        let _ = now;
        Vec::new()
    }

    /// Returns a module's place in its user's container, by which its packet counts are found.
    pub fn slot(&self, user: &UserId, module: &ModuleName) -> Option<ModuleSlot> {
        let _ = (user, module);
        None
    }

    /// Returns the module at a place of a user's container.
    pub fn module_at(&self, user: &UserId, slot: ModuleSlot) -> Option<&ModuleName> {
        let _ = (user, slot);
        None
    }

    /// Returns the load with the controller's own counts filled in.
    pub fn load(&self) -> Load {
        self.load
    }

    /// Returns what was counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}
