// SPDX-License-Identifier: Apache-2.0
//! The meters of modules and workers. What ended has its last count read before it is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use netserv_container::{Process, stored_bytes};
use netserv_model::effect::{EffectId, EffectOutcome, ModuleSlot};
use netserv_model::usage::{Held, Meters, ModuleMeter, NetworkMeter, WorkerMeter};
use netserv_model::{ModuleName, UserId, WorkerId};
use netserv_packet_loop::PacketCommand;
use netserv_packet_loop::meters::ModuleCounts;
use tokio::sync::oneshot;

use super::Workers;
use crate::effects::ticket::Ticket;
use crate::limits::METERED_MAX;

/// The runs of modules and workers of which the last count was not read.
#[derive(Default)]
pub(super) struct Metered {
    modules: BTreeMap<EffectId, ModuleRun>,
    /// Workers that were killed or ended.
    gone: Vec<WorkerRun>,
}

struct ModuleRun {
    worker: WorkerId,
    slot: ModuleSlot,
    module: ModuleName,
    ended: bool,
}

struct WorkerRun {
    worker: WorkerId,
    generation: u64,
    process: Process,
}

impl Metered {
    /// Returns whether there is room for one more. There always is, unless nobody reads.
    pub(super) fn has_room(&self) -> bool {
        self.modules.len() + self.gone.len() < METERED_MAX
    }

    /// Takes note of a load; what was in its place counts no more.
    pub(super) fn begin(&mut self, load: EffectId, worker: &WorkerId, slot: ModuleSlot, module: ModuleName) {
        self.end(worker, Some(slot));
        self.note(load, worker, slot, module);
    }

    /// Takes note of a load into a place that is free.
    pub(super) fn note(&mut self, load: EffectId, worker: &WorkerId, slot: ModuleSlot, module: ModuleName) {
        self.modules.insert(load, ModuleRun { worker: worker.clone(), slot, module, ended: false });
    }

    /// Takes note that modules of a worker count no more: the one in a place, or all.
    pub(super) fn end(&mut self, worker: &WorkerId, slot: Option<ModuleSlot>) {
        let theirs = |run: &&mut ModuleRun| run.worker == *worker && slot.is_none_or(|slot| slot == run.slot);
        self.modules.values_mut().filter(theirs).for_each(|run| run.ended = true);
    }

    /// Kills a worker, and keeps it until it is known how long it was on a processor.
    pub(super) fn bury(&mut self, worker: &WorkerId, generation: u64, process: Process) {
        process.kill();
        self.gone.push(WorkerRun { worker: worker.clone(), generation, process });
    }

    /// Returns the loads that count no more, in order, and forgets them.
    fn take_ended(&mut self) -> BTreeMap<EffectId, ModuleRun> {
        self.modules.extract_if(.., |_, run| run.ended).collect()
    }
}

impl Workers {
    /// Reads all meters; those of `networks` were read just now.
    pub(super) fn read_meters(&mut self, networks: Vec<NetworkMeter>, ticket: Ticket) {
        let (workers, held) = self.read_workers();
        let mut runs = self.metered.take_ended();
        let (reply, counts) = oneshot::channel();
        let ended = runs.keys().copied().collect();
        self.parts.packets.send(PacketCommand::ReadMeters { ended, reply: reply.into() });
        let still = |(load, run): (&EffectId, &ModuleRun)| {
            let ModuleRun { worker, slot, module, ended } = run;
            let (worker, module) = (worker.clone(), module.clone());
            (*load, ModuleRun { worker, slot: *slot, module, ended: *ended })
        };
        runs.extend(self.metered.modules.iter().map(still));
        tokio::spawn(async move {
            // A packet thread that ended took its counts along.
            let modules = modules(runs, &counts.await.unwrap_or_default());
            let meters = Meters { modules, workers, networks, held };
            ticket.answer(EffectOutcome::Metered(Box::new(meters)), None);
        });
    }

    fn read_workers(&mut self) -> (Vec<WorkerMeter>, BTreeMap<UserId, Held>) {
        let (mut workers, mut files) = (Vec::new(), BTreeSet::new());
        let running =
            self.workers.iter_mut().map(|(worker, running)| (worker, running.generation, &mut running.process));
        let ending = self.ending.iter_mut().map(|(generation, ending)| ending.run(*generation));
        for (worker, generation, process) in running.chain(ending) {
            workers.push(read(worker, generation, process, false));
            files.insert((worker.user.clone(), process.memory_file().map(Path::to_owned)));
        }
        self.metered.gone.retain_mut(|WorkerRun { worker, generation, process }| {
            let ended = process.exit().is_some();
            workers.push(read(worker, *generation, process, ended));
            !ended
        });
        let mut held: BTreeMap<UserId, Held> = BTreeMap::new();
        for (user, file) in files {
            held.entry(user).or_default().memory_bytes += file.map_or(0, memory);
        }
        let stored = self.parts.stored.as_deref().map(stored_bytes).unwrap_or_else(|| Ok(BTreeMap::new()));
        let stored = stored.inspect_err(|error| tracing::warn!(%error, "what users keep on disk is not measured"));
        for (user, bytes) in stored.unwrap_or_default() {
            held.entry(user).or_default().disk_bytes = bytes;
        }
        (workers, held)
    }
}

fn read(worker: &WorkerId, generation: u64, process: &mut Process, ended: bool) -> WorkerMeter {
    let cpu_ns = u64::try_from(process.cpu_time().as_nanos()).unwrap_or(u64::MAX);
    WorkerMeter { worker: worker.clone(), generation: EffectId(generation), cpu_ns, ended }
}

/// Returns how much memory a container holds; nothing if it is gone.
fn memory(file: PathBuf) -> u64 {
    std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

fn modules(runs: BTreeMap<EffectId, ModuleRun>, counts: &ModuleCounts) -> Vec<ModuleMeter> {
    let meter = |(load, run): (EffectId, ModuleRun)| {
        let count = counts.get(&load)?;
        let ModuleRun { worker, module, ended, .. } = run;
        Some(ModuleMeter { load, worker, module, packets: count.packets, busy: count.busy, ended })
    };
    runs.into_iter().filter_map(meter).collect()
}
