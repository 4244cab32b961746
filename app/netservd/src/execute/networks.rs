// SPDX-License-Identifier: Apache-2.0
//! The executor's side of containers' networks: who wants one, and who needs it no longer.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use netserv_container::ControlError;
use netserv_model::command::{Event as ControllerEvent, FilterId, ModuleSlot};
use netserv_model::verdict::FailureMode;
use netserv_model::{Filter, Flavour, Refusal, RefusalKind, UserId, WorkerId};
use netserv_wire::container::frames::{PartKind, ToWorker};

use super::Executor;
use crate::config::Config;
use crate::launcher::Job;
use crate::network::{Networks, Permits};

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
    fn tell_permits(&mut self, user: &UserId, permits: Permits) {
        let Permits { listen, connect } = permits;
        self.tell(&WorkerId::new(user.clone(), Flavour::Wasm), ToWorker::Permit { connect, listen });
    }

    /// Has a user's network removed if nothing of the user's runs, ends, starts or is installed.
    pub(super) fn spare_network(&mut self, user: &UserId) {
        let used = self.workers.keys().chain(self.starting.keys()).any(|worker| worker.user == *user)
            || self.has_ending(user)
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

    /// Returns the listening sockets that a module's intercepted connections arrive at, in the network of its worker's
    /// container; none if the worker has them.
    pub(super) fn listeners(&self, worker: &WorkerId, slot: ModuleSlot) -> Result<Vec<(PartKind, OwnedFd)>> {
        ensure!(worker.flavour == Flavour::Wasm, "bundles do not take over connections between others");
        self.networks().context("this node's containers have no networks")?.listeners(worker, slot)
    }

    /// Takes note that a worker has no listening sockets any more, for a module or for all.
    pub(super) fn drop_listeners(&self, worker: &WorkerId, slot: Option<ModuleSlot>) {
        let Some(networks) = self.networks() else { return };
        let changed = networks.change_interceptions(|all| {
            all.drop_ports(worker, slot);
            None
        });
        debug_assert!(changed.is_ok(), "nothing is carried out");
    }

    /// Has connections between others handed to a module.
    pub(super) fn intercept(
        &mut self,
        id: FilterId,
        worker: &WorkerId,
        slot: ModuleSlot,
        filter: &Filter,
        on_failure: FailureMode,
    ) {
        let no_network = || Refusal::new(RefusalKind::NoNetwork, "this node's containers have no networks");
        let installed = self.networks().ok_or_else(no_network).and_then(|networks| {
            let installed = networks.change_interceptions(|all| {
                all.install(id, worker, slot, filter, on_failure);
                Some(worker.user.clone())
            });
            installed.inspect_err(|_| {
                let forgotten = networks.change_interceptions(|all| {
                    all.forget(id);
                    Some(worker.user.clone())
                });
                if let Err(refusal) = forgotten {
                    tracing::warn!(%worker, %refusal, "a refused interception is left in the container's network");
                }
            })
        });
        if let Err(refusal) = installed {
            tracing::warn!(%worker, %filter, %refusal, "connections cannot be intercepted");
            self.happened.push_back(ControllerEvent::FilterFailed { id, refusal });
        }
    }

    /// Treats new connections of a rule as its failure mode says.
    pub(super) fn suspend_intercept(&mut self, id: FilterId) {
        let suspended = self.networks().map(|networks| networks.change_interceptions(|all| all.suspend(id)));
        if let Some(Err(refusal)) = suspended {
            tracing::warn!(%refusal, filter = id.0, "connections are still handed to a module that is down");
        }
    }

    /// Takes a rule away.
    pub(super) fn end_intercept(&mut self, id: FilterId) {
        let ended = self.networks().map(|networks| networks.change_interceptions(|all| all.end(id, Instant::now())));
        if let Some(Err(refusal)) = ended {
            tracing::warn!(%refusal, filter = id.0, "connections are still handed to a module that goes");
        }
    }

    /// Gives a worker sockets with which it can speak for others, none if there can be none.
    ///
    /// Bundles take over nothing, so a Java worker that asks has been taken over itself.
    pub(super) fn send_sockets(&mut self, worker: &WorkerId, count: u32, v6: bool) {
        let made = self.networks().filter(|_| worker.flavour == Flavour::Wasm).map(|networks| {
            let made = networks.sockets(&worker.user, v6, usize::try_from(count).unwrap_or(usize::MAX));
            made.inspect_err(|error| tracing::warn!(%worker, %error, "a worker gets no sockets for connections"))
        });
        let sockets = made.and_then(Result::ok).unwrap_or_default();
        let Some(running) = self.workers.get_mut(worker) else { return };
        let borrowed: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
        let frame = ToWorker::Sockets { v6 };
        if let Err(ControlError::Full) = running.control.send(&frame, &borrowed) {
            // It asks again once it reads that there are none: nobody keeps sockets for it.
            self.tell(worker, frame);
        }
    }

    fn networks(&self) -> Option<&Networks> {
        self.parts.as_ref()?.networks.as_deref()
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
