// SPDX-License-Identifier: Apache-2.0
//! Has the kernel do what is wanted of networks that containers are in, one thing after the other on a thread of its own:
//! each takes milliseconds, and more on a busy machine.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::{Context as _, Result};
use netserv_model::effect::{FilterId, Load, ModuleSlot};
use netserv_model::verdict::FailureMode;
use netserv_model::{Filter, Refusal, UserId, WorkerId};
use tokio::sync::mpsc;

use crate::effects::networks::Networks;
use crate::event::{Event, NetworkEvent, SocketWish};

/// What is to be done.
#[derive(Debug)]
pub enum NetworkJob {
    /// A user's network is to permit what is granted.
    Permit(UserId),
    /// A module is to be loaded, whose intercepted connections need listening sockets. Answered.
    Listeners(Box<Load>),
    /// A worker has no listening sockets any more, for a module or for all.
    DropListeners(WorkerId, Option<ModuleSlot>),
    /// A worker wants sockets with which it speaks for others. Answered.
    Sockets(SocketWish),
    /// Connections between others are to be handed to a module. Answered.
    Intercept(Interception),
    /// New connections of a rule are to be treated as its failure mode says.
    Suspend(FilterId),
    /// A rule is to be taken away.
    End(FilterId),
}

/// A rule of interception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interception {
    /// Its number.
    pub id: FilterId,
    /// The module's worker.
    pub worker: WorkerId,
    /// The module's place there.
    pub slot: ModuleSlot,
    /// Which connections.
    pub filter: Filter,
    /// What happens to new ones while the module is down.
    pub on_failure: FailureMode,
}

/// Starts the thread. It ends when the sender is dropped.
///
/// # Errors
/// The system gives no thread.
pub fn start(networks: Arc<Networks>, events: mpsc::Sender<Event>) -> Result<Sender<NetworkJob>> {
    // Few wait: the executor goes on with commands of the controller when those that are answered have been, and gives each
    // worker one batch of sockets at a time. The others come of such commands, and of reloads.
    let (jobs, inbox) = channel();
    let thread = std::thread::Builder::new().name("networks".to_owned());
    thread.spawn(move || run(&networks, &inbox, &events)).context("thread for networks")?;
    Ok(jobs)
}

fn run(networks: &Networks, inbox: &Receiver<NetworkJob>, events: &mpsc::Sender<Event>) {
    loop {
        let answer = match inbox.recv_timeout(SWEEP_TIME) {
            Ok(job) => work(networks, job),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if answer.is_some_and(|answer| events.blocking_send(Event::Network(answer)).is_err()) {
            return;
        }
        networks.sweep();
    }
}

/// How often rules are looked through whose connections had their time.
const SWEEP_TIME: Duration = Duration::from_secs(1);

fn work(networks: &Networks, job: NetworkJob) -> Option<NetworkEvent> {
    match job {
        NetworkJob::Permit(user) => networks.permit(&user),
        NetworkJob::Listeners(load) => {
            let made = networks.listeners(&load.worker, load.slot);
            return Some(NetworkEvent::Listeners(load, made));
        }
        NetworkJob::DropListeners(worker, slot) => {
            let changed = networks.change_interceptions(|all| {
                all.drop_ports(&worker, slot);
                None
            });
            debug_assert!(changed.is_ok(), "nothing is carried out");
        }
        NetworkJob::Sockets(wish) => {
            let made = networks.sockets(&wish.worker.user, wish.v6, wish.count);
            let made = made.inspect_err(|error| {
                tracing::warn!(worker = %wish.worker, %error, "a worker gets no sockets for connections");
            });
            return Some(NetworkEvent::Sockets(wish, made.unwrap_or_default()));
        }
        NetworkJob::Intercept(rule) => {
            let installed = intercept(networks, &rule);
            return Some(NetworkEvent::Intercepted(rule.id, installed));
        }
        NetworkJob::Suspend(id) => {
            if let Err(refusal) = networks.change_interceptions(|all| all.suspend(id)) {
                tracing::warn!(%refusal, filter = id.0, "connections are still handed to a module that is down");
            }
        }
        NetworkJob::End(id) => {
            let now = std::time::Instant::now();
            if let Err(refusal) = networks.change_interceptions(|all| all.end(id, now)) {
                tracing::warn!(%refusal, filter = id.0, "connections are still handed to a module that goes");
            }
        }
    }
    None
}

fn intercept(networks: &Networks, rule: &Interception) -> Result<(), Refusal> {
    let Interception { id, worker, slot, filter, on_failure } = rule;
    let installed = networks.change_interceptions(|all| {
        all.install(*id, worker, *slot, filter, *on_failure);
        Some(worker.user.clone())
    });
    installed.inspect_err(|refusal| {
        tracing::warn!(%worker, %filter, %refusal, "connections cannot be intercepted");
        let forgotten = networks.change_interceptions(|all| {
            all.forget(*id);
            Some(worker.user.clone())
        });
        if let Err(refusal) = forgotten {
            tracing::warn!(%worker, %refusal, "a refused interception is left in the container's network");
        }
    })
}
