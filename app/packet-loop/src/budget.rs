// SPDX-License-Identifier: Apache-2.0
//! What the modules of a user may still send of their own: two nodes whose modules answer each other's packets must not
//! fill the line between them.

use std::time::{Duration, Instant};

use netserv_model::policy::NetworkRate;

use crate::limits::{
    INJECTED_BITS_BURST_MAX, INJECTED_BITS_PER_SECOND_MAX, INJECTED_BURST_MAX, INJECTED_PER_SECOND_MAX,
};

/// How much the modules of one user may send of their own in the long run, over all its workers. At once they may send as
/// much as in a second, but not more than [`INJECTED_BURST_MAX`] packets and [`INJECTED_BITS_BURST_MAX`] bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendLimits {
    /// Packets in a second.
    pub packets_per_second: u32,
    /// Bits of whole IP packets in a second.
    pub bits_per_second: u64,
}

impl Default for SendLimits {
    fn default() -> SendLimits {
        SendLimits { packets_per_second: INJECTED_PER_SECOND_MAX, bits_per_second: INJECTED_BITS_PER_SECOND_MAX }
    }
}

impl From<NetworkRate> for SendLimits {
    /// What an operator lets a user's network send, modules may send too, but not more than a user without such limits.
    fn from(rate: NetworkRate) -> SendLimits {
        let most = SendLimits::default();
        let packets = u32::try_from(rate.packets_per_second).unwrap_or(u32::MAX);
        SendLimits {
            packets_per_second: packets.min(most.packets_per_second),
            bits_per_second: rate.bits_per_second.min(most.bits_per_second),
        }
    }
}

/// What is left of a user's limits.
pub(super) struct Budget {
    packets: Bucket,
    bits: Bucket,
}

impl Budget {
    pub(super) fn new(limits: SendLimits, now: Instant) -> Budget {
        Budget {
            packets: Bucket::new(limits.packets_per_second.into(), INJECTED_BURST_MAX.into(), now),
            bits: Bucket::new(limits.bits_per_second, INJECTED_BITS_BURST_MAX, now),
        }
    }

    /// Takes what a packet of so many bytes needs; false if there is not enough at this time.
    pub(super) fn take(&mut self, bytes: usize, now: Instant) -> bool {
        let may = self.packets.has_some(now) && self.bits.has_some(now);
        if may {
            self.packets.take(1);
            self.bits.take(8 * i64::try_from(bytes).expect("a packet is short"));
        }
        may
    }
}

/// So much in a second, and not more than a burst of it at once. The last to take may go into debt.
struct Bucket {
    per_second: u64,
    burst: i64,
    left: i64,
    filled_at: Instant,
}

impl Bucket {
    fn new(per_second: u64, burst_max: u64, now: Instant) -> Bucket {
        let burst = i64::try_from(per_second.min(burst_max)).unwrap_or(i64::MAX);
        Bucket { per_second, burst, left: burst, filled_at: now }
    }

    fn has_some(&mut self, now: Instant) -> bool {
        if self.left <= 0 {
            self.fill(now);
        }
        self.left > 0
    }

    fn take(&mut self, count: i64) {
        self.left -= count;
    }

    fn fill(&mut self, now: Instant) {
        let rate = u128::from(self.per_second);
        let grown = now.saturating_duration_since(self.filled_at).as_nanos() * rate / SECOND_NS;
        let left = self.left.saturating_add(i64::try_from(grown).unwrap_or(i64::MAX));
        if left >= self.burst {
            (self.left, self.filled_at) = (self.burst, now);
        } else if grown > 0 {
            // What does not make up a whole one counts for the next time.
            let taken = u64::try_from((grown * SECOND_NS).div_ceil(rate)).unwrap_or(u64::MAX);
            (self.left, self.filled_at) = (left, self.filled_at + Duration::from_nanos(taken));
        }
    }
}

const SECOND_NS: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_in_a_burst_and_then_at_their_rate() {
        check(SendLimits { packets_per_second: 100, ..SendLimits::default() }, 60, 100, 100);
        check(SendLimits::default(), 60, INJECTED_BURST_MAX, INJECTED_PER_SECOND_MAX);
    }

    #[test]
    fn bits_come_in_a_burst_and_then_at_their_rate() {
        check(SendLimits { bits_per_second: 1_000_000, ..SendLimits::default() }, 1250, 100, 100);
        let burst = u32::try_from(INJECTED_BITS_BURST_MAX / 8 / 2500).unwrap();
        check(SendLimits { packets_per_second: u32::MAX, ..SendLimits::default() }, 2500, burst, 5000);
    }

    /// A packet of more bits than may be sent at once is sent, and paid for afterwards.
    #[test]
    fn a_large_packet_is_paid_for_afterwards() {
        let now = Instant::now();
        let mut budget = Budget::new(SendLimits { bits_per_second: 8000, ..SendLimits::default() }, now);
        assert!(budget.take(3000, now));
        assert!(!budget.take(20, now + Duration::from_secs(2)));
        assert!(budget.take(20, now + Duration::from_millis(2001)));
    }

    #[test]
    fn a_limit_of_nothing_lets_nothing_through() {
        for limits in [
            SendLimits { packets_per_second: 0, ..SendLimits::default() },
            SendLimits { bits_per_second: 0, ..SendLimits::default() },
        ] {
            let now = Instant::now();
            let mut budget = Budget::new(limits, now);
            assert!(!budget.take(20, now) && !budget.take(20, now + Duration::from_secs(3600)));
        }
    }

    /// Asserts how many packets may be sent at once, and how many in each of ten seconds after that, asked for every
    /// 250 microseconds.
    fn check(limits: SendLimits, bytes: usize, burst: u32, per_second: u32) {
        let begun = Instant::now();
        let mut budget = Budget::new(limits, begun);
        let mut take_all = |now| (0..).take_while(|_| budget.take(bytes, now)).count();
        assert_eq!(take_all(begun), usize::try_from(burst).unwrap());
        let steps = (1..=40_000_u32).map(|step| begun + Duration::from_micros(250) * step);
        let sent: usize = steps.map(&mut take_all).sum();
        let expected = 10 * usize::try_from(per_second).unwrap();
        assert!((expected - expected / 100 - 6..=expected).contains(&sent), "{sent} of {expected} with {limits:?}");
        let rested = take_all(begun + Duration::from_secs(3600));
        assert!(rested <= usize::try_from(burst).unwrap() + 1 && rested >= 1, "{rested}");
    }
}
