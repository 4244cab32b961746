// SPDX-License-Identifier: Apache-2.0
//! The executor's side of containers' networks: who wants one, and who needs it no longer.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use anyhow::Result;
use netserv_model::command::{Event as ControllerEvent, FilterId, ModuleSlot};
use netserv_model::verdict::FailureMode;
use netserv_model::{Filter, Flavour, Refusal, RefusalKind, UserId, WorkerId};
use netserv_wire::container::frames::{PartKind, ToWorker};

use super::Executor;
use crate::config::Config;
use crate::launcher::Job;
use crate::network::Permits;

impl Executor {
    /// Takes over what users' containers may do in their networks.
    pub(super) fn set_networks(&mut self, config: &Config) {
        for (user, permits) in self.book.set_users(config, &self.store) {
            if let Some(networks) = self.parts.as_ref().and_then(|parts| parts.networks.as_ref()) {
                networks.permit(&user, &permits);
            }
            self.tell_permits(&user, permits);
        }
    }

    /// Tells a user's worker what its modules may do from here on. A JVM is held to it by the kernel alone.
    fn tell_permits(&self, user: &UserId, permits: Permits) {
        let Some(running) = self.workers.get(&WorkerId::new(user.clone(), Flavour::Wasm)) else { return };
        let Permits { listen, connect } = permits;
        // A worker that does not read is seen when it is to load something.
        let _ = running.control.send(&ToWorker::Permit { connect, listen }, &[]);
    }

    /// Has a user's network removed if nothing of the user's runs, starts or is installed.
    pub(super) fn spare_network(&mut self, user: &UserId) {
        let used = self.workers.keys().chain(self.starting.keys()).any(|worker| worker.user == *user)
            || self.installed.keys().any(|(owner, _)| owner == user);
        if used || !self.book.let_go(user) {
            return;
        }
        if let Some(parts) = &self.parts {
            if let Some(networks) = &parts.networks {
                networks.revoke(user);
            }
            // If nobody takes jobs any more, the node is ending.
            let _ = parts.launches.send(Job::RemoveNetwork(user.clone()));
        }
    }

    /// Returns the listening sockets that intercepted connections arrive at, in the network of a worker's container.
    #[expect(clippy::unnecessary_wraps, reason = "the kernel may refuse them")]
    pub(super) fn listeners(&self, _worker: &WorkerId) -> Result<Vec<(PartKind, OwnedFd)>> {
        Ok(Vec::new())
    }

    /// Has connections between others handed to a module.
    pub(super) fn intercept(
        &mut self,
        id: FilterId,
        _worker: &WorkerId,
        _slot: ModuleSlot,
        _filter: &Filter,
        _on_failure: FailureMode,
    ) {
        let refusal = Refusal::new(RefusalKind::NodeFailed, "this node hands no connections to modules");
        self.happened.push_back(ControllerEvent::FilterFailed { id, refusal });
    }

    /// Treats new connections of a rule as its failure mode says.
    pub(super) fn suspend_intercept(&mut self, _id: FilterId) {}

    /// Takes a rule away.
    pub(super) fn end_intercept(&mut self, _id: FilterId) {}

    /// Gives a worker sockets with which it can speak for others, none if there can be none.
    pub(super) fn send_sockets(&mut self, worker: &WorkerId, _count: u32, v6: bool) {
        let Some(running) = self.workers.get(worker) else { return };
        // A worker that does not read is seen when it is to load something.
        let _ = running.control.send(&ToWorker::Sockets { v6 }, &[]);
    }

    /// Returns the addresses of a user's container; none if it has no network.
    pub fn addresses(&self, user: &UserId) -> Vec<IpAddr> {
        self.book.addresses(user).to_vec()
    }

    /// Returns how many packets the firewall of each user's container dropped, by reason.
    pub fn container_drops(&self) -> BTreeMap<UserId, BTreeMap<String, u64>> {
        let networks = self.parts.as_ref().and_then(|parts| parts.networks.as_ref());
        networks.map(|networks| networks.dropped()).unwrap_or_default()
    }
}
