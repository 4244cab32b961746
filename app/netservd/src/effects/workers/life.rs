// SPDX-License-Identifier: Apache-2.0
//! How workers start and end, and whose fault an end is.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use netserv_container::{Container, ControlError, Exit, ExitCause};
use netserv_model::effect::{ModuleSlot, WorkerNews};
use netserv_model::policy::ContainerLimits;
use netserv_model::{DropReason, Refusal, RefusalKind, UserId, WorkerId};
use netserv_packet_loop::PacketCommand;
use netserv_wire::container::frames::StorageFailures;

use super::exports::Exports;
use super::launches::Job;
use super::outbox::Outbox;
use super::tells::{NotifyBudget, Tells};
use super::watch::{remind, watch};
use super::{Dying, Launch, LogBudget, Running, Starting, Workers};
use crate::effects::ticket::Ticket;
use crate::event::{ContainerEvent, Launched, UserNetwork};
use crate::readable::readable;

/// How long it may take to learn how a worker ended that was killed.
const EXIT_WAIT: Duration = Duration::from_millis(500);
/// The code with which a worker ends when a module does not come to an end that must not be waited for.
const EXIT_STALLED: i32 = 70;

impl Workers {
    /// Has a worker started. The ticket's effect is its generation.
    pub(super) fn start(
        &mut self,
        worker: &WorkerId,
        limits: ContainerLimits,
        network: Result<Option<UserNetwork>, Refusal>,
        ticket: Ticket,
    ) {
        self.forget_worker(worker, DropReason::ContainerGone);
        let generation = ticket.id().0;
        if !self.metered.has_room() {
            let detail = "nobody reads what workers used before";
            return ticket.refuse(Refusal::new(RefusalKind::NodeFailed, detail));
        }
        let network = match network {
            Ok(network) => network,
            Err(refusal) => return ticket.refuse(refusal),
        };
        if let Some(network) = &network {
            self.networks.insert(worker.user.clone(), network.clone());
        }
        self.starting.insert(worker.clone(), Starting { generation, limits, network, waits: true });
        self.ask_for_waiting(&worker.user);
        ticket.done();
    }

    fn ask_for(&mut self, launch: Launch) {
        let (worker, generation) = (launch.worker.clone(), launch.generation);
        if self.parts.launches.send(Job::Start(launch)).is_err() {
            let refusal = Refusal::new(RefusalKind::NodeFailed, "nobody starts workers; restart netservd");
            self.launched(Launched { worker, generation, result: Err(refusal) });
        }
    }

    /// Asks for a user's next worker, unless one is being started. One that takes another's place waits for its end.
    pub(super) fn ask_for_waiting(&mut self, user: &UserId) {
        let wanted = || self.starting.iter().filter(|(worker, _)| worker.user == *user);
        if wanted().any(|(_, starting)| !starting.waits) {
            return;
        }
        let next = wanted().map(|(worker, _)| worker).find(|worker| !self.is_ending(worker)).cloned();
        let Some(worker) = next else { return };
        let Some(starting) = self.starting.get_mut(&worker) else { return };
        starting.waits = false;
        let (generation, limits) = (starting.generation, starting.limits);
        let network = starting.network.as_ref().map(|network| network.network.clone());
        let beside = self.workers.iter().find(|(other, _)| other.user == worker.user);
        let beside = beside.map(|(_, running)| running.process.pid());
        self.ask_for(Launch { worker, generation, limits, beside, network });
    }

    /// Takes a worker that was started, unless it is not wanted any more.
    pub fn launched(&mut self, launched: Launched) {
        let Launched { worker, generation, result } = launched;
        if self.starting.get(&worker).is_none_or(|starting| starting.generation != generation) {
            // Dropping a container ends it.
            return;
        }
        self.starting.remove(&worker);
        let adopted = result.and_then(|container| {
            self.adopt(&worker, generation, container).map_err(|error| {
                let detail = format!("the worker cannot be watched: {error}");
                Refusal::new(RefusalKind::NodeFailed, detail)
            })
        });
        if let Err(refusal) = adopted {
            tracing::warn!(%worker, %refusal, "a worker could not be started");
            self.tell_news(&worker, generation, WorkerNews::Died { refusal, culprit: None });
        }
        self.ask_for_waiting(&worker.user);
        self.leave_network(&worker.user);
    }

    fn adopt(&mut self, worker: &WorkerId, generation: u64, container: Container) -> std::io::Result<()> {
        let real_time = container.may_be_real_time();
        let (control, rings, process) = container.split();
        let probes: Vec<_> = rings.iter().map(netserv_container::HostRing::activity_probe).collect();
        // Of several that its threads are in, it is not known which one ended it.
        let inside = Box::new(move || {
            let mut inside = probes.iter().filter_map(|probe| probe().module);
            let first = inside.next()?;
            inside.all(|other| other == first).then_some(first)
        });
        let event = ContainerEvent { worker: worker.clone(), generation, overdue: false };
        for fd in [readable(&control)?, readable(&process)?] {
            tokio::spawn(watch(fd, event.clone(), self.parts.events.clone()));
        }
        let prefixes = self.sources(&worker.user);
        let rings = rings.into();
        self.parts.packets.send(PacketCommand::AddWorker { worker: worker.clone(), generation, rings, prefixes });
        let running = Running {
            control: Outbox::new(control),
            send_again: None,
            process,
            inside,
            real_time,
            generation,
            ready: false,
            serves: false,
            stats_asked: false,
            sockets_asked: [false; 2],
            storage: StorageFailures::default(),
            pinned: BTreeMap::new(),
            dying: None,
            log: LogBudget::default(),
            tells: Tells::default(),
            notifies: NotifyBudget::default(),
            exports: Exports::default(),
        };
        self.workers.insert(worker.clone(), running);
        Ok(())
    }

    /// Kills a worker whose control channel ended; how it ended is known a little later.
    pub(super) fn let_die(&mut self, event: &ContainerEvent, error: &ControlError) {
        let Some(running) = self.workers.get_mut(&event.worker) else { return };
        running.process.kill();
        let detail = format!("the control channel broke: {error}");
        let refusal = Refusal::new(RefusalKind::NodeFailed, detail);
        running.dying = Some(Dying { refusal, hung_up: matches!(error, ControlError::Closed) });
        running.stats_asked = false;
        let (worker, reason) = (event.worker.clone(), DropReason::ContainerGone);
        self.parts.packets.send(PacketCommand::RemoveWorker { worker, reason });
        let overdue = ContainerEvent { overdue: true, ..event.clone() };
        tokio::spawn(remind(Instant::now() + EXIT_WAIT, overdue, self.parts.events.clone()));
        self.see_it_die(event);
    }

    pub(super) fn see_it_die(&mut self, event: &ContainerEvent) {
        let Some(running) = self.workers.get_mut(&event.worker) else { return };
        let hung_up = running.dying.as_ref().is_some_and(|dying| dying.hung_up);
        match running.process.exit().cloned() {
            Some(exit) if hung_up => self.worker_ended(&event.worker, &exit),
            Some(exit) => self.worker_died(&event.worker, exit.refusal(), None),
            None if event.overdue => {
                if let Some(Dying { refusal, .. }) = running.dying.take() {
                    self.worker_died(&event.worker, refusal, None);
                }
            }
            None => {}
        }
    }

    /// Takes note that a worker ended by itself. The module that it was in did that, or drove it to that.
    pub(super) fn worker_ended(&mut self, worker: &WorkerId, exit: &Exit) {
        let Some(running) = self.workers.get(worker) else { return };
        let inside = (running.inside)();
        let culprit = match exit.cause {
            ExitCause::Unknown => None,
            ExitCause::Code(_) | ExitCause::Signal(_) | ExitCause::OutOfMemory | ExitCause::OutOfCpuTime => {
                inside.filter(|slot| running.pinned.contains_key(slot))
            }
        };
        let refusal = why_ended(exit, culprit);
        tracing::warn!(%worker, %refusal, ?culprit, "a worker ended by itself");
        self.worker_died(worker, refusal, culprit);
    }

    /// Kills a worker that broke the rules, if it is still this one, and tells the controller.
    pub fn condemn(&mut self, worker: &WorkerId, generation: u64, refusal: Refusal, culprit: Option<ModuleSlot>) {
        // The packet loop's report may have been under way while the worker was replaced.
        if self.workers.get(worker).is_some_and(|running| running.generation == generation) {
            self.kill_worker(worker, refusal, culprit);
        }
    }

    pub(super) fn kill_worker(&mut self, worker: &WorkerId, refusal: Refusal, culprit: Option<ModuleSlot>) {
        tracing::warn!(%worker, %refusal, ?culprit, "a worker is killed");
        self.worker_died(worker, refusal, culprit);
    }

    pub(super) fn worker_died(&mut self, worker: &WorkerId, refusal: Refusal, culprit: Option<ModuleSlot>) {
        let reason = if refusal.kind == RefusalKind::Stalled { DropReason::Stalled } else { DropReason::ContainerGone };
        let generation = self.workers.get(worker).map(|running| running.generation);
        if self.forget_worker(worker, reason)
            && let Some(generation) = generation
        {
            // The controller stops no worker that is dead.
            self.leave_network(&worker.user);
            self.tell_news(worker, generation, WorkerNews::Died { refusal, culprit });
        }
    }

    /// Ends a worker and forgets it; returns whether there was one.
    pub(super) fn forget_worker(&mut self, worker: &WorkerId, reason: DropReason) -> bool {
        let Some(running) = self.take_worker(worker, reason) else { return false };
        self.metered.bury(worker, running.generation, running.process);
        true
    }

    pub(super) fn take_worker(&mut self, worker: &WorkerId, reason: DropReason) -> Option<Running> {
        self.starting.remove(worker);
        let mut running = self.workers.remove(worker)?;
        running.tells.end(None);
        running.exports.end(None);
        self.cancel_media_of(worker, None);
        self.drop_listeners(worker, None);
        // Before its process ends, so that its packets get their verdict at once.
        self.parts.packets.send(PacketCommand::RemoveWorker { worker: worker.clone(), reason });
        running.pinned.values().for_each(|digest| self.parts.repository.unpin(&worker.user, *digest));
        self.stats.retain(|(owner, _), _| owner != worker);
        self.metered.end(worker, None);
        Some(running)
    }
}

/// Says why a worker ended by itself, and which module drove it to that, if one did.
pub(super) fn why_ended(exit: &Exit, culprit: Option<ModuleSlot>) -> Refusal {
    let refusal = exit.refusal();
    match (exit.cause, culprit) {
        (ExitCause::Code(EXIT_STALLED), _) => Refusal { kind: RefusalKind::Stalled, ..refusal },
        (ExitCause::Code(_) | ExitCause::Signal(_), Some(_)) => Refusal { kind: RefusalKind::Trapped, ..refusal },
        (ExitCause::Code(_) | ExitCause::Signal(_), None)
        | (ExitCause::OutOfMemory | ExitCause::OutOfCpuTime | ExitCause::Unknown, _) => refusal,
    }
}
