// SPDX-License-Identifier: Apache-2.0
//! Makes trouble on purpose, the same trouble again for the same seed.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use netserv_model::api::DeviceInfo;

use crate::{
    Batch, Change, Counters, DestinationCounters, Driver, DriverError, Egress, FilterTable, Final, PacketId, Passage,
    limits,
};

/// Which trouble to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// Where the random numbers start.
    pub seed: u64,
    /// Received packets that are dropped before anybody sees them, in a thousand.
    pub drop_per_mille: u16,
    /// Received packets that are sent on once more, in a thousand.
    pub duplicate_per_mille: u16,
    /// Verdicts that are held back for [`FaultPlan::delay`], in a thousand.
    pub delay_per_mille: u16,
    /// How long they are held back.
    pub delay: Duration,
    /// The call that fails, counted from 1 over `receive`, `inject`, `flush` and changes of filters. Tests make the
    /// 1st, 2nd, 3rd, … call fail until a run is long enough to pass.
    pub failing_call: Option<u64>,
}

/// A driver that makes trouble.
#[derive(Debug)]
pub struct Fault<D> {
    inner: D,
    plan: FaultPlan,
    random: u64,
    calls: Arc<Calls>,
    delayed: BTreeMap<(Instant, u64), (PacketId, Delayed)>,
    next_delayed: u64,
    made: Made,
}

/// How much trouble was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// Packets dropped.
    pub dropped: u64,
    /// Packets duplicated.
    pub duplicated: u64,
    /// Verdicts delayed.
    pub delayed: u64,
}

#[derive(Debug)]
struct Calls {
    made: AtomicU64,
    failing: Option<u64>,
}

#[derive(Debug)]
enum Delayed {
    Pass,
    Drop,
    Replace(Vec<u8>),
}

impl<D: Driver> Fault<D> {
    /// Wraps a driver.
    pub fn new(inner: D, plan: FaultPlan) -> Fault<D> {
        Fault {
            inner,
            plan,
            random: plan.seed,
            calls: Arc::new(Calls { made: AtomicU64::new(0), failing: plan.failing_call }),
            delayed: BTreeMap::new(),
            next_delayed: 0,
            made: Made::default(),
        }
    }

    /// Returns how much trouble was made so far.
    pub fn made(&self) -> Made {
        self.made
    }

    /// Returns how many calls were made that could have failed.
    pub fn calls(&self) -> u64 {
        self.calls.made.load(Ordering::Relaxed)
    }

    /// Returns when the next delayed verdict is due; `flush` or `receive` have to be called then.
    pub fn next_due(&self) -> Option<Instant> {
        self.delayed.first_key_value().map(|((due, _), _)| *due)
    }

    fn happens(&mut self, per_mille: u16) -> bool {
        per_mille > 0 && self.next_random() % 1000 < u64::from(per_mille)
    }

    /// SplitMix64.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn release(&mut self, now: Instant) {
        while self.next_due().is_some_and(|due| due <= now)
            && let Some((_, (id, verdict))) = self.delayed.pop_first()
        {
            match &verdict {
                Delayed::Pass => self.inner.finish(id, Final::Pass),
                Delayed::Drop => self.inner.finish(id, Final::Drop),
                Delayed::Replace(bytes) => self.inner.finish(id, Final::Replace(bytes)),
            }
        }
    }
}

impl Calls {
    fn count(&self) -> Result<(), DriverError> {
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        if self.failing == Some(number) { Err(DriverError::Fault(number)) } else { Ok(()) }
    }
}

impl<D: Driver> Driver for Fault<D> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn intercept(&mut self) -> Result<Option<Passage>, DriverError> {
        self.inner.intercept()
    }

    fn destination_counters(&self) -> Arc<dyn DestinationCounters> {
        self.inner.destination_counters()
    }

    fn filters(&self) -> Arc<dyn FilterTable> {
        Arc::new(FaultTable { inner: self.inner.filters(), calls: Arc::clone(&self.calls) })
    }

    fn receive(&mut self, batch: &mut Batch, timeout: Option<Duration>) -> Result<usize, DriverError> {
        self.calls.count()?;
        self.release(Instant::now());
        let due_in = self.next_due().map(|due| due.saturating_duration_since(Instant::now()));
        let timeout = match (timeout, due_in) {
            (Some(timeout), Some(due_in)) => Some(timeout.min(due_in)),
            (timeout, due_in) => timeout.or(due_in),
        };
        self.inner.receive(batch, timeout)?;
        let mut lost = Vec::new();
        for packet in batch.iter() {
            if self.happens(self.plan.drop_per_mille) {
                lost.push(packet.id);
                self.made.dropped += 1;
            } else if self.happens(self.plan.duplicate_per_mille) && self.inner.inject(packet.bytes).is_ok() {
                self.made.duplicated += 1;
            }
        }
        batch.remove(&lost);
        lost.into_iter().for_each(|id| self.inner.finish(id, Final::Drop));
        Ok(batch.len())
    }

    fn finish(&mut self, packet: PacketId, verdict: Final<'_>) {
        if self.delayed.len() >= limits::DELAYED_MAX || !self.happens(self.plan.delay_per_mille) {
            return self.inner.finish(packet, verdict);
        }
        let verdict = match verdict {
            Final::Pass => Delayed::Pass,
            Final::Drop => Delayed::Drop,
            Final::Replace(bytes) => Delayed::Replace(bytes.to_vec()),
        };
        self.delayed.insert((Instant::now() + self.plan.delay, self.next_delayed), (packet, verdict));
        self.next_delayed += 1;
        self.made.delayed += 1;
    }

    fn explain(&mut self, packet: PacketId, verdict: Final<'_>) -> Egress {
        self.inner.explain(packet, verdict)
    }

    fn inject(&mut self, packet: &[u8]) -> Result<(), DriverError> {
        self.calls.count()?;
        self.inner.inject(packet)
    }

    fn flush(&mut self) -> Result<(), DriverError> {
        self.calls.count()?;
        self.release(Instant::now());
        self.inner.flush()
    }

    /// Nothing while verdicts are delayed: nobody waits for these by a descriptor.
    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.poll_fd().filter(|_| self.plan.delay_per_mille == 0)
    }

    fn owed_max(&self) -> usize {
        self.inner.owed_max()
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        self.inner.devices()
    }
}

struct FaultTable {
    inner: Arc<dyn FilterTable>,
    calls: Arc<Calls>,
}

impl FilterTable for FaultTable {
    fn change(&self, changes: &[Change<'_>]) -> Result<(), DriverError> {
        self.calls.count()?;
        self.inner.change(changes)
    }
}

#[cfg(test)]
mod tests {
    use netserv_model::effect::FilterId;

    use super::*;
    use crate::InterfaceId;
    use crate::dummy::{Dummy, Outcome, Plane};
    use crate::packet::testing;

    #[test]
    fn the_same_seed_makes_the_same_trouble() {
        let plan = FaultPlan { drop_per_mille: 200, duplicate_per_mille: 100, ..FaultPlan::default() };
        let run = |seed| {
            let (mut driver, plane) = driver(FaultPlan { seed, ..plan });
            for _ in 0..10 {
                pass_a_batch(&mut driver, &plane, 50);
            }
            (driver.made(), plane.outcomes())
        };
        let (made, outcomes) = run(1);
        assert_eq!((made, &outcomes), (run(1).0, &run(1).1));
        assert_ne!(outcomes, run(2).1);
        assert!((60..140).contains(&made.dropped) && (20..60).contains(&made.duplicated), "{made:?}");
        let count =
            |kind: fn(&Outcome) -> bool| u64::try_from(outcomes.iter().filter(|one| kind(one)).count()).unwrap();
        assert_eq!(count(|one| matches!(one, Outcome::Dropped(_))), made.dropped);
        assert_eq!(count(|one| matches!(one, Outcome::Passed(_))), 500 - made.dropped);
        assert_eq!(count(|one| matches!(one, Outcome::Injected(_))), made.duplicated);
    }

    #[test]
    fn delayed_verdicts_come_later() {
        let delay = Duration::from_millis(20);
        let (mut driver, plane) = driver(FaultPlan { delay_per_mille: 1000, delay, ..FaultPlan::default() });
        pass_a_batch(&mut driver, &plane, 3);
        assert_eq!(plane.outcomes(), []);
        let start = Instant::now();
        assert_eq!(driver.receive(&mut Batch::new(), None).unwrap(), 0, "waiting ends when a verdict is due");
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(delay);
        driver.flush().unwrap();
        assert_eq!((plane.outcomes().len(), driver.made().delayed, driver.next_due()), (3, 3, None));
    }

    #[test]
    fn no_more_than_delayed_max_verdicts_are_delayed() {
        let delay = Duration::from_secs(3600);
        let (mut driver, plane) = driver(FaultPlan { delay_per_mille: 1000, delay, ..FaultPlan::default() });
        let batches = limits::DELAYED_MAX / limits::BATCH_PACKETS_MAX + 1;
        (0..batches).for_each(|_| pass_a_batch(&mut driver, &plane, limits::BATCH_PACKETS_MAX));
        assert_eq!(driver.made().delayed, u64::try_from(limits::DELAYED_MAX).unwrap());
        assert_eq!(plane.outcomes().len(), limits::BATCH_PACKETS_MAX);
    }

    /// Makes the 1st, 2nd, … call fail until a run passes; each failure shows as an error of that very call.
    #[test]
    fn every_call_can_be_made_to_fail() {
        let mut failed = 0;
        for failing in 1.. {
            let (dummy, plane) = Dummy::new();
            let plan = FaultPlan { failing_call: Some(failing), ..FaultPlan::default() };
            let mut driver = Fault::new(dummy, plan);
            let results = [
                driver.install(FilterId(1), &"udp".parse().unwrap()).map(|()| 0),
                Ok(usize::from(plane.push(InterfaceId(1), &testing::udp("10.0.0.1:1", "10.0.0.2:2", b"x")))),
                driver.receive(&mut Batch::new(), Some(Duration::ZERO)),
                driver.inject(&testing::udp("10.0.0.1:1", "10.0.0.2:2", b"x")).map(|()| 0),
                driver.flush().map(|()| 0),
            ];
            assert_eq!(driver.calls(), 4);
            if results.iter().all(Result::is_ok) {
                break;
            }
            let faults = results.iter().filter(|one| matches!(one, Err(DriverError::Fault(n)) if *n == failing));
            assert_eq!((faults.count(), results.iter().filter(|one| one.is_err()).count()), (1, 1));
            failed += 1;
        }
        assert_eq!(failed, 4);
    }

    fn driver(plan: FaultPlan) -> (Fault<Dummy>, Plane) {
        let (mut dummy, plane) = Dummy::new();
        dummy.install(FilterId(1), &"udp".parse().unwrap()).unwrap();
        (Fault::new(dummy, plan), plane)
    }

    fn pass_a_batch(driver: &mut Fault<Dummy>, plane: &Plane, packets: usize) {
        let packet = testing::udp("10.0.0.1:1", "10.0.0.2:2", b"x");
        (0..packets).for_each(|_| assert!(plane.push(InterfaceId(1), &packet)));
        let mut batch = Batch::new();
        driver.receive(&mut batch, Some(Duration::ZERO)).unwrap();
        batch.iter().for_each(|packet| driver.finish(packet.id, Final::Pass));
        driver.flush().unwrap();
    }
}
