// SPDX-License-Identifier: Apache-2.0
//! What the modules of a user may still send beyond what came in, packets that they make and bytes that they add to others: two
//! nodes whose modules answer each other's packets must not fill the line between them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use netserv_model::UserId;
use netserv_model::policy::NetworkRate;

use crate::limits::{
    INJECTED_BITS_BURST_MAX, INJECTED_BITS_PER_SECOND_MAX, INJECTED_BURST_MAX, INJECTED_PER_SECOND_MAX,
};

/// How much the modules of one user may send of their own in the long run, over all its workers: packets that they make, and
/// what they add to the length of others. At once they may send as much as in a second, but not more than [`INJECTED_BURST_MAX`] packets and [`INJECTED_BITS_BURST_MAX`] bits.
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

/// What is left of the users' limits, over all lanes; clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Budgets(Arc<Mutex<ByUser>>);

#[derive(Default)]
struct ByUser {
    budgets: BTreeMap<UserId, Arc<Budget>>,
    /// How many changes of limits took hold.
    changes: u64,
}

impl ByUser {
    fn of(&mut self, user: &UserId) -> &Arc<Budget> {
        let new = || Arc::new(Budget::new(SendLimits::default(), Instant::now()));
        self.budgets.entry(user.clone()).or_insert_with(new)
    }
}

impl Budgets {
    /// Returns what is left of a user's limits, which are the usual ones unless it has others.
    pub(crate) fn of(&self, user: &UserId) -> Arc<Budget> {
        self.lock().of(user).clone()
    }

    /// Says how much a user's modules may send of their own, from now on. All lanes are told of each change, in the same
    /// order, and number them from 1 on; the first lane to hear of one makes it for all of them.
    pub(crate) fn set(&self, change: u64, user: &UserId, limits: SendLimits, now: Instant) {
        let mut by_user = self.lock();
        if change > by_user.changes {
            by_user.changes = change;
            by_user.of(user).set(limits, now);
        }
    }

    fn lock(&self) -> MutexGuard<'_, ByUser> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is left of a user's limits. Lanes take of it at the same time, and none waits for another.
pub(crate) struct Budget {
    begun: Instant,
    packets: Bucket,
    bits: Bucket,
}

impl Budget {
    pub(crate) fn new(limits: SendLimits, now: Instant) -> Budget {
        let budget = Budget { begun: now, packets: Bucket::default(), bits: Bucket::default() };
        budget.set(limits, now);
        budget
    }

    fn set(&self, limits: SendLimits, now: Instant) {
        let now_ns = self.nanos(now);
        self.packets.set(limits.packets_per_second.into(), INJECTED_BURST_MAX.into(), now_ns);
        self.bits.set(limits.bits_per_second, INJECTED_BITS_BURST_MAX, now_ns);
    }

    /// Takes what a packet of so many bytes needs; false if there is not enough at this time.
    pub(crate) fn take(&self, bytes: usize, now: Instant) -> bool {
        if !self.packets.take(1, self.nanos(now)) {
            return false;
        }
        let may = self.take_bytes(bytes, now);
        if !may {
            self.packets.give_back(1);
        }
        may
    }

    /// Takes what so many bytes need that are added to a packet; false if there is not enough at this time.
    pub(crate) fn take_bytes(&self, bytes: usize, now: Instant) -> bool {
        self.bits.take(8 * u64::try_from(bytes).unwrap_or(u64::MAX / 8), self.nanos(now))
    }

    fn nanos(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.begun).as_nanos()).unwrap_or(u64::MAX)
    }
}

/// So much in a second, and not more than a burst of it at once. The last to take may go into debt.
#[derive(Default)]
struct Bucket {
    per_second: AtomicU64,
    /// How long an empty bucket takes to fill.
    fills_in_ns: AtomicU64,
    /// When it is full again.
    full_ns: AtomicU64,
}

impl Bucket {
    fn set(&self, per_second: u64, burst_max: u64, now_ns: u64) {
        self.per_second.store(per_second, Ordering::Relaxed);
        self.fills_in_ns.store(self.time_of(per_second.min(burst_max)), Ordering::Relaxed);
        self.full_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Takes so much if there is a whole one left; false if there is not.
    fn take(&self, count: u64, now_ns: u64) -> bool {
        if self.per_second.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let (cost_ns, one_ns) = (self.time_of(count), self.time_of(1));
        let fills_in_ns = self.fills_in_ns.load(Ordering::Relaxed);
        let less = |full_ns: u64| {
            let missing_ns = full_ns.saturating_sub(now_ns);
            (missing_ns.saturating_add(one_ns) <= fills_in_ns).then(|| full_ns.max(now_ns).saturating_add(cost_ns))
        };
        self.full_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn give_back(&self, count: u64) {
        self.full_ns.fetch_sub(self.time_of(count), Ordering::Relaxed);
    }

    /// How long it takes to gain so much.
    fn time_of(&self, count: u64) -> u64 {
        let per_second = u128::from(self.per_second.load(Ordering::Relaxed));
        let time_ns = (u128::from(count) * SECOND_NS).checked_div(per_second).unwrap_or(0);
        u64::try_from(time_ns).unwrap_or(u64::MAX)
    }
}

const SECOND_NS: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// What a full budget does not gain is lost, also if little of it was taken long ago.
    #[test]
    fn a_rested_budget_has_one_burst_and_no_more() {
        let limits = SendLimits { packets_per_second: 1000, ..SendLimits::default() };
        let begun = Instant::now();
        let budget = Budget::new(limits, begun);
        assert!(budget.take(60, begun));
        let now = begun + Duration::from_secs(3600);
        assert_eq!((0..5000).filter(|_| budget.take(60, now)).count(), 1000);
        assert!(!budget.take(60, now + Duration::from_micros(999)));
        let after_1_ms = now + Duration::from_millis(1);
        assert!(budget.take(60, after_1_ms) && !budget.take(60, after_1_ms));
    }

    /// Four lanes take as fast as they can, for a while: together no more than one may.
    #[test]
    fn a_budget_holds_over_all_lanes() {
        let limits = SendLimits { packets_per_second: 5000, ..SendLimits::default() };
        let begun = Instant::now();
        let budget = Budget::new(limits, begun);
        let take = || {
            let mut taken = 0_u32;
            while begun.elapsed() < Duration::from_millis(400) {
                taken += u32::from(budget.take(60, Instant::now()));
            }
            taken
        };
        let taken: u32 = std::thread::scope(|scope| {
            let lanes: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            lanes.into_iter().map(|lane| lane.join().unwrap()).sum()
        });
        let most = INJECTED_BURST_MAX + u32::try_from(begun.elapsed().as_millis()).unwrap() * 5 + 1;
        assert!(taken <= most && taken > INJECTED_BURST_MAX + 1000, "{taken}, at most {most}");
    }

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
        let budget = Budget::new(SendLimits { bits_per_second: 8000, ..SendLimits::default() }, now);
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
            let budget = Budget::new(limits, now);
            assert!(!budget.take(20, now) && !budget.take(20, now + Duration::from_secs(3600)));
        }
    }

    /// Asserts how many packets may be sent at once, and how many in each of ten seconds after that, asked for every
    /// 250 microseconds.
    fn check(limits: SendLimits, bytes: usize, burst: u32, per_second: u32) {
        let begun = Instant::now();
        let budget = Budget::new(limits, begun);
        let mut take_all = |now| (0..).take_while(|_| budget.take(bytes, now)).count();
        assert_eq!(take_all(begun), usize::try_from(burst).unwrap());
        let steps = (1..=40_000_u32).map(|step| begun + Duration::from_micros(250) * step);
        let sent: usize = steps.map(&mut take_all).sum();
        let expected = 10 * usize::try_from(per_second).unwrap();
        assert!((expected - expected / 100 - 6..=expected).contains(&sent), "{sent} of {expected} with {limits:?}");
        let rested = take_all(begun + Duration::from_secs(3600));
        assert_eq!(rested, usize::try_from(burst).unwrap());
    }
}
