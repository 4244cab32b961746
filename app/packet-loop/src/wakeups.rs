// SPDX-License-Identifier: Apache-2.0
//! When sleeping workers are woken: to wake one costs as much as many packets.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use netserv_model::limits::BATCH_PACKETS_MAX;

use crate::limits::{
    SLEEPERS_FEW, UNWOKEN_PACKETS_EACH_MAX, UNWOKEN_PACKETS_MAX, UNWOKEN_TIME_EACH, UNWOKEN_TIME_FEW_MAX,
    UNWOKEN_TIME_MAX, WAKES_PER_TURN_MAX,
};
use crate::workers::{RingEnd, Shown, WorkerSlot, Workers};

/// The sleeping workers with published packets.
#[derive(Default)]
pub(crate) struct Wakeups {
    /// Each with since when it has them, the oldest first.
    sleepers: VecDeque<(Instant, WorkerSlot)>,
    /// A worker was woken, and may wait for this core.
    woke: bool,
}

impl Wakeups {
    /// Returns how many workers wait to be woken.
    pub(crate) fn len(&self) -> usize {
        self.sleepers.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sleepers.is_empty()
    }

    /// Returns whether a worker was woken since the last call.
    pub(crate) fn take_woke(&mut self) -> bool {
        std::mem::take(&mut self.woke)
    }

    /// Lets workers see their packets. Those that sleep are left to [`Wakeups::wake`].
    pub(crate) fn publish(&mut self, workers: &mut Workers, now: Instant) {
        workers.publish_staged(|workers, slot| {
            let is_few = self.sleepers.len() <= SLEEPERS_FEW;
            let Some(end) = workers.end(slot) else { return };
            match end.show(now, if is_few { UNWOKEN_PACKETS_MAX } else { UNWOKEN_PACKETS_EACH_MAX }) {
                // It answers soon.
                Shown::Awake => drop(workers.activate(slot)),
                Shown::Asleep => self.sleepers.push_back((now, slot)),
                Shown::Ripe(since) => self.sleepers.push_front((since, slot)),
                Shown::Known => {}
            }
        });
    }

    /// Wakes sleepers that have waited for long enough, the first to wait first, after a turn in which so many packets
    /// came. If they `may_spin`, they look for packets again and again from here on.
    pub(crate) fn wake(&mut self, workers: &mut Workers, now: Instant, came: usize, may_spin: bool) {
        let mut woken = 0;
        while woken < WAKES_PER_TURN_MAX
            && let Some((since, slot)) = self.sleepers.front().copied()
        {
            // One that was woken meanwhile is skipped.
            if let Some(end) = workers.end(slot).filter(|end| end.unwoken_since == Some(since)) {
                let waited = now.duration_since(since);
                if !end.is_ripe && waited < patience(self.sleepers.len(), came) {
                    return;
                }
                workers.activate(slot);
                self.woke |= workers.end(slot).is_some_and(RingEnd::wake);
                if may_spin {
                    workers.let_spin(slot);
                }
                woken += 1;
            }
            self.sleepers.pop_front();
        }
    }
}

/// Returns how long sleepers wait for more packets, of which so many came in this turn. A loop that has caught up wakes them at
/// once, and one that has not wakes fewer of them, with more packets each.
pub(crate) fn patience(sleepers: usize, came: usize) -> Duration {
    match came {
        0 => Duration::ZERO,
        BATCH_PACKETS_MAX if sleepers <= SLEEPERS_FEW => UNWOKEN_TIME_FEW_MAX,
        _ if sleepers <= SLEEPERS_FEW => Duration::ZERO,
        _ => UNWOKEN_TIME_EACH.saturating_mul(u32::try_from(sleepers).unwrap_or(u32::MAX)).min(UNWOKEN_TIME_MAX),
    }
}
