// SPDX-License-Identifier: Apache-2.0
//! By what an XDP program sees that packets are taken.

use rustix::time::{ClockId, clock_gettime};

use super::layout;
use super::sys::memory::Words;
use crate::limits;

/// `struct heart` in `bpf/common.h`, with a beat for each lane. What a lane does not take in time passes; the other lanes'
/// packets are not concerned.
pub(super) struct Heart(Words);

impl Heart {
    /// Takes the words of the map, for so many lanes; each of them has just beaten.
    pub fn new(words: Words, lanes: usize, fail_open: bool) -> Heart {
        let heart = Heart(words);
        (0..lanes).for_each(|lane| heart.beat(lane));
        heart.0.store(layout::LANES_WORD, u64::try_from(lanes).expect("there are few lanes"));
        let silence_max = u64::try_from(limits::HEARTBEAT_MAX.as_nanos()).expect("a short time");
        heart.0.store(layout::SILENCE_MAX_WORD, if fail_open { silence_max } else { 0 });
        heart
    }

    /// Says that a lane takes packets.
    pub fn beat(&self, lane: usize) {
        let now = clock_gettime(ClockId::MonotonicCoarse);
        let nanoseconds =
            u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0);
        self.0.store(layout::BEATS_WORD + lane, nanoseconds);
    }
}
