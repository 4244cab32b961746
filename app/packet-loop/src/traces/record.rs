// SPDX-License-Identifier: Apache-2.0
//! What a followed packet carries along.

use std::time::{Duration, SystemTime};

use netserv_model::effect::ModuleSlot;
use netserv_model::trace::{TraceEgress, TraceFlow, TraceOrigin, TracePacket, TraceStep, TraceVerdict};
use netserv_model::verdict::FailureMode;
use netserv_model::{DropReason, Flow, ModuleRef, Verdict, WorkerId};
use netserv_wire::container::ring::Answer;

use super::tap::{TraceId, Traced};
use crate::limits::TRACE_STEPS_MAX;
use crate::module_filter::ModuleFilter;

/// What a traced packet carries along.
pub(crate) struct Record {
    pub(crate) taps: Vec<TraceId>,
    pub(crate) traced: Traced,
    pub(crate) bytes_max: usize,
    /// The modules that want it, in the order of their filters.
    wanted: Vec<(WorkerId, ModuleSlot, Option<ModuleRef>)>,
    /// The modules that it is shown to where it is, in the order of their turns.
    asked: Vec<ModuleSlot>,
    /// Whether a container holds it.
    inside: bool,
}

impl Record {
    pub(crate) fn new(
        taps: Vec<TraceId>,
        origin: TraceOrigin,
        flow: Option<Flow>,
        bytes: &[u8],
        bytes_max: usize,
    ) -> Record {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let time_us = u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX);
        let packet = TracePacket::new(time_us, origin, flow.map(TraceFlow::from), bytes.len());
        let bytes = bytes[..bytes.len().min(bytes_max)].to_vec();
        let traced = Traced { packet, bytes, changed: Vec::new() };
        Record { taps, traced, bytes_max, wanted: Vec::new(), asked: Vec::new(), inside: false }
    }

    pub(crate) fn step(&mut self, step: TraceStep) {
        if self.traced.packet.steps.len() < TRACE_STEPS_MAX {
            self.traced.packet.steps.push(step);
        } else {
            self.traced.packet.steps_left_out += 1;
        }
    }

    /// Notes the filters that match.
    pub(crate) fn want<'a>(&mut self, module_filters: impl Iterator<Item = &'a ModuleFilter>) {
        for module_filter in module_filters {
            let (user, module) = (module_filter.worker.user.clone(), module_filter.module.clone());
            if !self.wants(&module_filter.worker, module_filter.slot) {
                self.wanted.push((module_filter.worker.clone(), module_filter.slot, module.clone()));
            }
            self.step(TraceStep::Filter {
                user,
                module,
                filter: module_filter.filter.clone(),
                on_failure: module_filter.on_failure,
            });
        }
    }

    /// Notes the filters that match from here on, in the place of those before.
    pub(crate) fn want_instead<'a>(&mut self, module_filters: impl Iterator<Item = &'a ModuleFilter>) {
        self.wanted.clear();
        self.want(module_filters);
    }

    /// Notes the worker that shows the packet to those of its modules that are loaded.
    pub(crate) fn enter(&mut self, worker: &WorkerId, loaded: &[ModuleSlot]) {
        self.step(TraceStep::Container { user: worker.user.clone(), flavour: worker.flavour });
        self.note_missing(worker, loaded);
        self.inside = true;
        self.asked = loaded.iter().copied().filter(|slot| self.wants(worker, *slot)).collect();
    }

    /// Notes that the packet gets its failure verdict.
    pub(crate) fn fail(
        &mut self,
        worker: &WorkerId,
        loaded: &[ModuleSlot],
        reason: DropReason,
        on_failure: FailureMode,
    ) {
        if !std::mem::take(&mut self.inside) && reason != DropReason::ContainerGone {
            self.note_missing(worker, loaded);
        }
        for slot in std::mem::take(&mut self.asked) {
            self.module(worker, slot, TraceVerdict::Unanswered);
        }
        self.step(TraceStep::Failure { user: worker.user.clone(), reason, on_failure });
    }

    fn note_missing(&mut self, worker: &WorkerId, loaded: &[ModuleSlot]) {
        let missing = |(owner, slot, _): &&(WorkerId, ModuleSlot, _)| owner == worker && !loaded.contains(slot);
        let missing: Vec<ModuleSlot> = self.wanted.iter().filter(missing).map(|(_, slot, _)| *slot).collect();
        for slot in missing {
            self.module(worker, slot, TraceVerdict::NotLoaded);
        }
    }

    /// Notes what the modules did. The container names only the last that dropped or changed the packet, or the first
    /// that failed on it.
    pub(crate) fn answer(&mut self, worker: &WorkerId, answer: Answer, decided: Option<ModuleSlot>) {
        // One that failed is still to get its failure verdict.
        self.inside = answer == Answer::Failed;
        let asked = std::mem::take(&mut self.asked);
        let turn = decided.and_then(|decided| asked.iter().position(|slot| *slot == decided));
        for (at, slot) in asked.iter().enumerate() {
            let verdict = match (answer, turn) {
                (Answer::Pass, _) => TraceVerdict::Passed,
                (Answer::Drop, Some(turn)) if turn == at => TraceVerdict::Dropped,
                (Answer::Drop, Some(turn)) if turn < at => TraceVerdict::NotAsked,
                (Answer::Modified, Some(turn)) if turn == at => TraceVerdict::Modified,
                (Answer::Modified, Some(turn)) if turn < at => TraceVerdict::Passed,
                (Answer::Failed, Some(turn)) if turn == at => TraceVerdict::Failed,
                (Answer::Drop | Answer::Modified | Answer::Failed, Some(_) | None) => TraceVerdict::WentOn,
            };
            self.module(worker, *slot, verdict);
        }
        if turn.is_none() {
            self.decided_by_unknown(worker, answer);
        }
    }

    /// Notes an answer without a module, or of one that was not asked: the container is believed in the answer alone.
    fn decided_by_unknown(&mut self, worker: &WorkerId, answer: Answer) {
        let verdict = match answer {
            Answer::Pass => return,
            Answer::Drop => TraceVerdict::Dropped,
            Answer::Modified => TraceVerdict::Modified,
            Answer::Failed => TraceVerdict::Failed,
        };
        self.step(TraceStep::Module { user: worker.user.clone(), module: None, verdict });
    }

    fn module(&mut self, worker: &WorkerId, slot: ModuleSlot, verdict: TraceVerdict) {
        let known = self.wanted.iter().find(|(owner, at, _)| owner == worker && *at == slot);
        let module = known.and_then(|(_, _, module)| module.clone());
        self.step(TraceStep::Module { user: worker.user.clone(), module, verdict });
    }

    fn wants(&self, worker: &WorkerId, slot: ModuleSlot) -> bool {
        self.wanted.iter().any(|(owner, at, _)| owner == worker && *at == slot)
    }

    pub(crate) fn end(&mut self, verdict: Verdict, reason: Option<DropReason>, egress: Option<TraceEgress>) {
        let packet = &mut self.traced.packet;
        (packet.verdict, packet.reason, packet.egress) = (verdict, reason, egress);
    }
}
