// SPDX-License-Identifier: Apache-2.0
//! The running traces, and what they know of modules.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use netserv_model::effect::ModuleSlot;
use netserv_model::{Filter, Flow, ModuleRef, WorkerId};
use tokio::sync::mpsc;

use super::tap::{Tap, TraceId, Traced};
use crate::module_filter::ModuleFilter;

/// The running traces.
#[derive(Default)]
pub(crate) struct Tracer {
    taps: Vec<Tap>,
    /// The loaded modules of each worker in the order of loading, which is that of their turns.
    loaded: BTreeMap<WorkerId, Vec<ModuleSlot>>,
    /// What is in the places of each worker, or was there last.
    names: BTreeMap<WorkerId, BTreeMap<ModuleSlot, ModuleRef>>,
}

impl Tracer {
    /// Returns whether any trace runs.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        !self.taps.is_empty()
    }

    pub(crate) fn add(&mut self, tap: Tap) {
        self.taps.push(tap);
    }

    pub(crate) fn remove(&mut self, id: TraceId) {
        self.taps.retain(|tap| tap.id != id);
    }

    /// Notes that a worker is new, or gone.
    pub(crate) fn forget_modules(&mut self, worker: &WorkerId) {
        self.loaded.remove(worker);
    }

    /// Notes whose a filter is.
    pub(crate) fn note_filter(&mut self, module_filter: &ModuleFilter) {
        if let Some(module) = &module_filter.module {
            self.names.entry(module_filter.worker.clone()).or_default().insert(module_filter.slot, module.clone());
        }
    }

    /// Notes that a module is loaded, or is no more.
    pub(crate) fn note_module(&mut self, worker: &WorkerId, slot: ModuleSlot, loaded: bool) {
        let modules = self.loaded.entry(worker.clone()).or_default();
        if !loaded {
            modules.retain(|one| *one != slot);
        } else if !modules.contains(&slot) {
            // One that is loaded in the place of another keeps its turn.
            modules.push(slot);
        }
    }

    /// Returns the loaded modules of a worker, in the order of their turns.
    pub(crate) fn loaded(&self, worker: &WorkerId) -> &[ModuleSlot] {
        self.loaded.get(worker).map_or(&[], Vec::as_slice)
    }

    /// Returns the module in a place of a worker's, or that was there last.
    pub(crate) fn name(&self, worker: &WorkerId, slot: ModuleSlot) -> Option<ModuleRef> {
        self.names.get(worker)?.get(&slot).cloned()
    }

    /// Returns the traces that follow a packet, and how many of its bytes they want at most.
    pub(crate) fn followers(&self, flow: Option<&Flow>, now_ns: u64) -> (Vec<TraceId>, usize) {
        let (mut ids, mut bytes) = (Vec::new(), 0);
        for tap in &self.taps {
            let wanted = tap.filters.iter().any(|filter| match flow {
                Some(flow) => filter.matches(flow),
                None => *filter == Filter::default(),
            });
            if !wanted {
                continue;
            }
            if tap.counts.second.take(now_ns) {
                ids.push(tap.id);
                bytes = bytes.max(tap.bytes);
            } else {
                tap.counts.skipped.fetch_add(1, Ordering::Relaxed);
            }
        }
        (ids, bytes)
    }

    /// Gives a record to the traces that follow it.
    pub(crate) fn tell(&self, taps: &[TraceId], traced: &Traced) {
        for tap in self.taps.iter().filter(|tap| taps.contains(&tap.id)) {
            let mut traced = traced.clone();
            traced.bytes.truncate(tap.bytes);
            traced.changed.truncate(tap.bytes);
            if let Err(mpsc::error::TrySendError::Full(_)) = tap.sink.try_send(traced) {
                tap.counts.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
