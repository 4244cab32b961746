// SPDX-License-Identifier: Apache-2.0
//! What modules are shown and make, counted by load of a module. A count stays until it was read after its end.

use std::collections::BTreeMap;

use netserv_model::effect::{EffectId, ModuleSlot};
use netserv_model::limits::MODULES_PER_CONTAINER_MAX;
use netserv_model::usage::Traffic;

/// What one load of a module did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModuleCount {
    /// Packets that it was shown (in), and that it made and that were sent (out).
    pub packets: Traffic,
    /// How often it was found at work.
    pub busy: u64,
}

/// The counts of several loads.
pub type ModuleCounts = BTreeMap<EffectId, ModuleCount>;

/// Adds counts to others: a load counts in every lane.
pub(crate) fn add(counts: &mut ModuleCounts, more: impl Iterator<Item = (EffectId, ModuleCount)>) {
    for (load, ModuleCount { packets, busy }) in more {
        let sum = counts.entry(load).or_default();
        sum.packets.add(packets);
        sum.busy += busy;
    }
}

/// The counts of the modules of one ring, by their place.
pub(crate) struct RingMeters(Box<[Meter; MODULES_PER_CONTAINER_MAX]>);

#[derive(Clone, Copy, Default)]
struct Meter {
    load: Option<EffectId>,
    count: ModuleCount,
}

impl Default for RingMeters {
    fn default() -> RingMeters {
        RingMeters(Box::new([Meter::default(); MODULES_PER_CONTAINER_MAX]))
    }
}

impl RingMeters {
    /// Counts for another load in a place from here on; returns what the one before counted.
    pub(crate) fn begin(&mut self, slot: ModuleSlot, load: EffectId) -> Option<(EffectId, ModuleCount)> {
        let meter = self.meter(slot)?;
        let before = std::mem::replace(meter, Meter { load: Some(load), count: ModuleCount::default() });
        before.load.map(|load| (load, before.count))
    }

    /// Counts a packet for the modules whose bits are set.
    pub(crate) fn shown(&mut self, mut modules: u64, bytes: usize) {
        while modules != 0 {
            let packets = &mut self.0[modules.trailing_zeros() as usize % MODULES_PER_CONTAINER_MAX].count.packets;
            packets.packets_in += 1;
            packets.bytes_in += bytes as u64;
            modules &= modules - 1;
        }
    }

    /// Counts a packet that a module made and that was sent.
    pub(crate) fn made(&mut self, slot: Option<ModuleSlot>, bytes: usize) {
        if let Some(meter) = slot.and_then(|slot| self.meter(slot)) {
            meter.count.packets.packets_out += 1;
            meter.count.packets.bytes_out += bytes as u64;
        }
    }

    /// Counts that a module was found at work.
    pub(crate) fn busy(&mut self, slot: ModuleSlot) {
        if let Some(meter) = self.meter(slot) {
            meter.count.busy += 1;
        }
    }

    /// Returns the counts.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (EffectId, ModuleCount)> {
        self.0.iter().filter_map(|meter| Some((meter.load?, meter.count)))
    }

    /// Forgets loads of an ordered list.
    pub(crate) fn forget(&mut self, loads: &[EffectId]) {
        for meter in self.0.iter_mut() {
            meter.load = meter.load.filter(|load| loads.binary_search(load).is_err());
        }
    }

    fn meter(&mut self, slot: ModuleSlot) -> Option<&mut Meter> {
        self.0.get_mut(usize::from(slot.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_load_has_its_count() {
        let mut meters = RingMeters::default();
        let [first, last] = [ModuleSlot(0), ModuleSlot(63)];
        assert_eq!(meters.begin(first, EffectId(1)), None);
        meters.begin(last, EffectId(2));
        meters.shown(1 | 1 << 63, 100);
        meters.shown(1, 50);
        meters.made(Some(last), 60);
        meters.made(None, 60);
        meters.busy(last);
        let packets =
            |packets_in, bytes_in, packets_out, bytes_out| Traffic { packets_in, bytes_in, packets_out, bytes_out };
        let counted = [
            (EffectId(1), ModuleCount { packets: packets(2, 150, 0, 0), busy: 0 }),
            (EffectId(2), ModuleCount { packets: packets(1, 100, 1, 60), busy: 1 }),
        ];
        assert!(meters.counts().eq(counted));
        assert_eq!(meters.begin(first, EffectId(3)), Some(counted[0]));
        meters.forget(&[EffectId(2)]);
        assert!(meters.counts().eq([(EffectId(3), ModuleCount::default())]));
    }
}
