// SPDX-License-Identifier: Apache-2.0
//! What the control loop wants, carried out by the loop of each lane.

use std::sync::mpsc::TryRecvError;
use std::time::Instant;

use netserv_model::effect::{EffectId, FilterId};
use netserv_model::verdict::FailureMode;
use netserv_model::{Flavour, WorkerId};

use crate::in_flight::Stop;
use crate::lanes::Reply;
use crate::meters::{self, ModuleCounts};
use crate::module_filter::ModuleFilter;
use crate::workers::Workers;
use crate::{PacketCommand, PacketLoop, bit};

impl PacketLoop {
    /// Carries out what the control loop wants; returns whether the loop is to end.
    pub(crate) fn take_commands(&mut self) -> bool {
        loop {
            match self.commands.try_recv() {
                Ok(PacketCommand::Stop) | Err(TryRecvError::Disconnected) => return true,
                Ok(command) => self.carry_out(command),
                Err(TryRecvError::Empty) => return false,
            }
        }
    }

    pub(crate) fn carry_out(&mut self, command: PacketCommand) {
        match command {
            PacketCommand::AddWorker { worker, generation, rings, prefixes } => {
                self.add_worker(&worker, generation, &rings, prefixes);
                self.tracer.forget_modules(&worker);
            }
            PacketCommand::RemoveWorker { worker, reason } => {
                let slot = self.workers.of(&worker);
                self.remove_worker(slot, reason);
                self.tracer.forget_modules(&worker);
            }
            PacketCommand::SetPrefixes { user, prefixes } => {
                for flavour in Flavour::ALL {
                    if let Some(end) = self.workers.end_of(&WorkerId::new(user.clone(), flavour)) {
                        end.prefixes.clone_from(&prefixes);
                    }
                }
            }
            PacketCommand::SetSendLimits { user, limits } => {
                self.limit_changes += 1;
                self.place.budgets().set(self.limit_changes, &user, limits, Instant::now());
            }
            PacketCommand::ChangeFilters { add, remove, known } => {
                let mut waits_change = add.iter().any(|(_, module_filter)| module_filter.buffers.is_some());
                for (id, module_filter) in add {
                    let stop = module_filter.stop(&mut self.workers, id);
                    if let Some(buffers) = module_filter.buffers {
                        self.buffered.wait_by(id, buffers, Instant::now());
                    }
                    self.filters.insert(id, module_filter.filter.clone(), stop);
                    if module_filter.buffers.is_none() {
                        self.tracer.note_filter(&module_filter);
                    }
                    self.module_filters.insert(id, module_filter);
                }
                for id in remove {
                    self.filters.remove(id);
                    self.module_filters.remove(&id);
                    waits_change |= self.buffered.wait_no_longer_by(id);
                }
                if waits_change {
                    self.match_buffered();
                }
                // Whoever waits for all lanes to know it waits for this one no longer.
                drop(known);
            }
            PacketCommand::SetCallTime { worker, slot, call } => {
                if let Some(end) = self.workers.end_of(&worker) {
                    end.set_call_time(slot, call);
                }
            }
            PacketCommand::SetLoaded { worker, slot, loaded } => {
                self.tracer.note_module(&worker, slot, loaded);
                if let Some(end) = self.workers.end_of(&worker) {
                    end.loaded = if loaded { end.loaded | bit(slot) } else { end.loaded & !bit(slot) };
                }
            }
            PacketCommand::Meter { worker, slot, load } => {
                let before = self.workers.end_of(&worker).and_then(|end| end.meters.begin(slot, load));
                self.metered.extend(before);
            }
            PacketCommand::ReadMeters { ended, reply } => self.read_meters(&ended, &reply),
            PacketCommand::Devices(reply) => {
                if self.place.leads() {
                    reply.add(|devices| *devices = self.driver.devices());
                }
            }
            PacketCommand::Trace(tap) => self.tracer.add(tap),
            PacketCommand::EndTrace(id) => self.tracer.remove(id),
            PacketCommand::Stop => {}
        }
    }

    fn read_meters(&mut self, ended: &[EffectId], reply: &Reply<ModuleCounts>) {
        reply.add(|counts| {
            let metered = self.metered.iter().map(|(load, count)| (*load, *count));
            meters::add(counts, metered);
            for end in self.workers.ends_mut() {
                meters::add(counts, end.meters.counts());
                end.meters.forget(ended);
            }
        });
        self.metered.retain(|load, _| ended.binary_search(load).is_err());
    }
}

impl ModuleFilter {
    fn stop(&self, workers: &mut Workers, id: FilterId) -> Stop {
        let bit = bit(self.slot);
        let closed = if self.on_failure == FailureMode::Closed { bit } else { 0 };
        let (modules, wait) = if self.buffers.is_some() { (0, Some(id)) } else { (bit, None) };
        Stop { worker: workers.of(&self.worker), modules, closed, wait }
    }
}
