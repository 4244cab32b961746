// SPDX-License-Identifier: Apache-2.0
//! The executor's side of containers' networks: who wants one, and who needs it no longer.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

use anyhow::anyhow;
use netserv_container::ControlError;
use netserv_model::effect::{Event as ControllerEvent, Load, ModuleSlot};
use netserv_model::{Flavour, Refusal, RefusalKind, UserId, WorkerId};
use netserv_wire::container::frames::ToWorker;

use crate::config::Config;
use crate::effects::Executor;
use crate::effects::networks::Permits;
use crate::effects::networks::jobs::{Interception, NetworkJob};
use crate::effects::workers::launches::Job;
use crate::event::{NetworkEvent, SocketWish};

impl Executor {
    /// Takes over what users' containers may do in their networks.
    pub(in crate::effects) fn set_networks(&mut self, config: &Config) {
        for (user, permits) in self.book.set_users(config, &self.store) {
            if let Some(networks) = self.parts.as_ref().and_then(|parts| parts.networks.as_ref()) {
                networks.grant(&user, &permits);
            }
            self.change_network(NetworkJob::Permit(user.clone()));
            self.tell_permits(&user, permits);
        }
    }

    /// Tells a user's worker what its modules may do from here on. A JVM is held to it by the kernel alone.
    fn tell_permits(&mut self, user: &UserId, permits: Permits) {
        let Permits { listen, connect } = permits;
        self.tell(&WorkerId::new(user.clone(), Flavour::Wasm), ToWorker::Permit { connect, listen });
    }

    /// Has a user's network removed if nothing of the user's runs, ends, starts or is installed.
    pub(in crate::effects) fn spare_network(&mut self, user: &UserId) {
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

    /// Has listening sockets made for a module that is to be loaded, in the network of its worker's container.
    pub(in crate::effects) fn ask_for_listeners(&mut self, load: Load) {
        if load.worker.flavour != Flavour::Wasm {
            return self.load_with(load, Err(anyhow!("bundles do not take over connections between others")));
        }
        let job = NetworkJob::Listeners(Box::new(load.clone()));
        self.busy = self.change_network(job);
        if !self.busy {
            self.load_with(load, Err(anyhow!(NO_NETWORKS)));
        }
    }

    /// Takes note that a worker has no listening sockets any more, for a module or for all.
    pub(in crate::effects) fn drop_listeners(&self, worker: &WorkerId, slot: Option<ModuleSlot>) {
        self.change_network(NetworkJob::DropListeners(worker.clone(), slot));
    }

    /// Has connections between others handed to a module.
    pub(in crate::effects) fn intercept(&mut self, rule: Interception) {
        let id = rule.id;
        self.busy = self.change_network(NetworkJob::Intercept(rule));
        if !self.busy {
            let refusal = Refusal::new(RefusalKind::NoNetwork, NO_NETWORKS);
            self.happened.push_back(ControllerEvent::FilterFailed { id, refusal });
        }
    }

    /// Has sockets made with which a worker can speak for others, none if there can be none.
    ///
    /// Bundles take over nothing, so a Java worker that asks has been taken over itself.
    pub(in crate::effects) fn ask_for_sockets(&mut self, worker: &WorkerId, count: u32, v6: bool) {
        let Some(running) = self.workers.get_mut(worker) else { return };
        // One that asks twice gets one answer.
        if std::mem::replace(&mut running.sockets_asked[usize::from(v6)], true) {
            return;
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let wish = SocketWish { worker: worker.clone(), generation: running.generation, v6, count };
        if worker.flavour != Flavour::Wasm || !self.change_network(NetworkJob::Sockets(wish.clone())) {
            self.give_sockets(&wish, &[]);
        }
    }

    /// Takes what the thread of networks did.
    pub fn network_changed(&mut self, event: NetworkEvent) {
        match event {
            NetworkEvent::Listeners(load, made) => {
                self.busy = false;
                // Of one that is gone, its death was told.
                if self.workers.contains_key(&load.worker) {
                    self.load_with(*load, made);
                }
            }
            NetworkEvent::Sockets(wish, sockets) => self.give_sockets(&wish, &sockets),
            NetworkEvent::Intercepted(id, installed) => {
                self.busy = false;
                if let Err(refusal) = installed {
                    self.happened.push_back(ControllerEvent::FilterFailed { id, refusal });
                }
            }
        }
    }

    fn give_sockets(&mut self, wish: &SocketWish, sockets: &[OwnedFd]) {
        let SocketWish { worker, generation, v6, .. } = wish;
        let running = self.workers.get_mut(worker).filter(|running| running.generation == *generation);
        let Some(running) = running else { return };
        running.sockets_asked[usize::from(*v6)] = false;
        let borrowed: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
        let frame = ToWorker::Sockets { v6: *v6 };
        if let Err(ControlError::Full) = running.control.send(&frame, &borrowed) {
            // It asks again once it reads that there are none: nobody keeps sockets for it.
            self.tell(worker, frame);
        }
    }

    /// Has the thread of networks do something, if there is one; returns whether it will.
    pub(in crate::effects) fn change_network(&self, job: NetworkJob) -> bool {
        let jobs = self.parts.as_ref().and_then(|parts| parts.network_jobs.as_ref());
        jobs.is_some_and(|jobs| jobs.send(job).is_ok())
    }

    /// Returns the addresses of a user's container; none if it has no network.
    pub fn addresses(&self, user: &UserId) -> Vec<IpAddr> {
        self.book.addresses(user).to_vec()
    }

    /// Returns what finds out how many packets the firewall of each user's container dropped, by reason. That takes 13 µs
    /// for each, and waits for rules that are being changed.
    pub fn container_drops(&self) -> impl FnOnce() -> BTreeMap<UserId, BTreeMap<String, u64>> + Send + use<> {
        let networks = self.parts.as_ref().and_then(|parts| parts.networks.clone());
        move || networks.map(|networks| networks.dropped()).unwrap_or_default()
    }
}

const NO_NETWORKS: &str = "this node's containers have no networks";
