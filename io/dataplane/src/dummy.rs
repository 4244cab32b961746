// SPDX-License-Identifier: Apache-2.0
//! A forwarding plane in memory, for tests without root.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use netserv_model::Filter;
use netserv_model::effect::FilterId;
use netserv_wire::ip::{self, IpView};

use crate::destinations::is_beyond_one_link;
use crate::packet::{NO_MACHINE, NOT_WHOLE};
use crate::{Batch, Change, Counters, Driver, DriverError, Egress, FilterTable, Final, InterfaceId, PacketId};
use crate::{filters, limits, packet};

/// What the dummy driver did with a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No filter matched, so that nobody saw it.
    Unmatched(Vec<u8>),
    /// It was received and passed.
    Passed(Vec<u8>),
    /// It was received and dropped.
    Dropped(Vec<u8>),
    /// It was received and these bytes went on.
    Replaced(Vec<u8>),
    /// It was injected.
    Injected(Vec<u8>),
}

/// The packet thread's end of the dummy plane.
pub struct Dummy {
    plane: Plane,
    next: u64,
    owed: BTreeMap<PacketId, Vec<u8>>,
    queued: Vec<Outcome>,
    counters: Counters,
}

impl Dummy {
    /// Returns a driver and the wire that it sits on.
    pub fn new() -> (Dummy, Plane) {
        let plane = Plane { shared: Arc::new(Shared { state: Mutex::default(), arrived: Condvar::new() }) };
        let driver = Dummy {
            plane: plane.clone(),
            next: 0,
            owed: BTreeMap::new(),
            queued: Vec::new(),
            counters: Counters::default(),
        };
        (driver, plane)
    }

    /// Returns how many received packets have no verdict yet.
    pub fn owed(&self) -> usize {
        self.owed.len()
    }
}

impl Driver for Dummy {
    fn name(&self) -> &'static str {
        "dummy"
    }

    fn filters(&self) -> Arc<dyn FilterTable> {
        Arc::new(self.plane.clone())
    }

    fn receive(&mut self, batch: &mut Batch, timeout: Option<Duration>) -> Result<usize, DriverError> {
        batch.clear();
        let mut received = Vec::new();
        let plane = self.plane.clone();
        let mut state = plane.wait_waiting(timeout);
        while !batch.is_full()
            && let Some((interface, packet)) = state.waiting.pop_front()
        {
            let id = PacketId(self.next + 1);
            if batch.push(id, interface, &packet) {
                self.next += 1;
                received.push((id, packet));
            } else {
                self.counters.unseen += 1;
                state.outcomes.push(Outcome::Unmatched(packet));
            }
        }
        drop(state);
        self.owed.extend(received);
        self.counters.received += u64::try_from(batch.len()).expect("a batch is small");
        Ok(batch.len())
    }

    fn finish(&mut self, packet: PacketId, verdict: Final<'_>) {
        let Some(original) = self.owed.remove(&packet) else {
            self.counters.unknown += 1;
            return;
        };
        let outcome = match verdict {
            Final::Pass => {
                self.counters.passed += 1;
                Outcome::Passed(original)
            }
            Final::Drop => {
                self.counters.dropped += 1;
                Outcome::Dropped(original)
            }
            Final::Replace(bytes) => match packet::whole(bytes) {
                Ok(view) if is_refused(&original, &view) => {
                    self.counters.refused += 1;
                    Outcome::Dropped(original)
                }
                Ok(_) => {
                    self.counters.replaced += 1;
                    Outcome::Replaced(bytes.to_vec())
                }
                Err(_) => {
                    self.counters.bad_verdict += 1;
                    Outcome::Dropped(original)
                }
            },
        };
        self.queued.push(outcome);
    }

    fn explain(&mut self, packet: PacketId, verdict: Final<'_>) -> Egress {
        let Some(original) = self.owed.get(&packet) else {
            return Egress::Refused { why: "no verdict is owed for it" };
        };
        let view = match verdict {
            Final::Drop => return Egress::Refused { why: "its verdict is to drop it" },
            Final::Pass => None,
            Final::Replace(bytes) => match packet::whole(bytes) {
                Err(_) => return Egress::Refused { why: NOT_WHOLE },
                Ok(view) => Some(view),
            },
        };
        match view {
            Some(view) if is_refused(original, &view) => Egress::Refused { why: NO_MACHINE },
            Some(_) | None => Egress::Kernel { why: "the dummy plane has no routes of its own" },
        }
    }

    fn inject(&mut self, packet: &[u8]) -> Result<(), DriverError> {
        let destination = packet::whole(packet)?.destination();
        if !is_beyond_one_link(destination) {
            return Err(DriverError::NoMachine(destination));
        }
        self.counters.injected += 1;
        self.queued.push(Outcome::Injected(packet.to_vec()));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DriverError> {
        if !self.queued.is_empty() {
            self.plane.lock().outcomes.append(&mut self.queued);
            self.plane.shared.arrived.notify_all();
        }
        Ok(())
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

/// Returns whether a packet that came is not to go on as the one that it was changed to. There are no routes here to ask
/// for the rest.
fn is_refused(original: &[u8], changed: &IpView<'_>) -> bool {
    let redirected = ip::addresses(original) != Some((changed.source(), changed.destination()));
    redirected && !is_beyond_one_link(changed.destination())
}

/// The test's end of the dummy plane: the wire.
#[derive(Clone)]
pub struct Plane {
    shared: Arc<Shared>,
}

impl Plane {
    /// Lets a packet arrive; returns whether a filter matched, so that the driver will see it.
    ///
    /// One that no filter matches, or that is no IP packet, goes on at once as [`Outcome::Unmatched`]; so does one
    /// too many ([`limits::DUMMY_WAITING_MAX`]).
    pub fn push(&self, interface: InterfaceId, packet: &[u8]) -> bool {
        let flow = IpView::parse(packet).ok().map(|view| view.flow());
        let mut state = self.lock();
        let wanted = flow.is_some_and(|flow| state.filters.values().any(|filter| filter.matches(&flow)));
        if wanted && state.waiting.len() < limits::DUMMY_WAITING_MAX {
            state.waiting.push_back((interface, packet.to_vec()));
            self.shared.arrived.notify_all();
            return true;
        }
        state.outcomes.push(Outcome::Unmatched(packet.to_vec()));
        false
    }

    /// Takes out what became of the packets so far, in the order in which it was flushed.
    pub fn outcomes(&self) -> Vec<Outcome> {
        std::mem::take(&mut self.lock().outcomes)
    }

    /// Waits until there are at least `count` outcomes or the time is over, and takes them out.
    pub fn wait_outcomes(&self, count: usize, timeout: Duration) -> Vec<Outcome> {
        let few = |state: &mut State| state.outcomes.len() < count;
        let state = self.shared.arrived.wait_timeout_while(self.lock(), timeout, few);
        std::mem::take(&mut state.unwrap_or_else(PoisonError::into_inner).0.outcomes)
    }

    /// Returns the installed filters.
    pub fn installed(&self) -> BTreeMap<FilterId, Filter> {
        self.lock().filters.clone()
    }

    fn wait_waiting(&self, timeout: Option<Duration>) -> MutexGuard<'_, State> {
        let (state, arrived) = (self.lock(), &self.shared.arrived);
        let none = |state: &mut State| state.waiting.is_empty();
        match timeout {
            Some(Duration::ZERO) => state,
            Some(timeout) => arrived.wait_timeout_while(state, timeout, none).unwrap_or_else(PoisonError::into_inner).0,
            None => arrived.wait_while(state, none).unwrap_or_else(PoisonError::into_inner),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FilterTable for Plane {
    fn change(&self, changes: &[Change<'_>]) -> Result<(), DriverError> {
        let mut state = self.lock();
        let mut filters = state.filters.clone();
        filters::apply(&mut filters, changes)?;
        state.filters = filters;
        Ok(())
    }
}

struct Shared {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    filters: BTreeMap<FilterId, Filter>,
    waiting: VecDeque<(InterfaceId, Vec<u8>)>,
    outcomes: Vec<Outcome>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Packet;
    use crate::packet::testing;

    const LAN: InterfaceId = InterfaceId(3);

    #[test]
    fn only_matching_packets_are_received() {
        let (mut driver, plane) = driver(&["udp port 5060"]);
        let (wanted, other) =
            (testing::udp("10.0.0.1:9", "10.0.0.2:5060", b"x"), testing::udp("[::1]:9", "[::2]:9", b"x"));
        assert!(plane.push(LAN, &wanted));
        assert!(!plane.push(LAN, &other));
        assert!(!plane.push(LAN, b"no IP packet"));
        let mut batch = Batch::new();
        assert_eq!(driver.receive(&mut batch, Some(Duration::ZERO)).unwrap(), 1);
        assert_eq!(batch.get(0), Some(Packet { id: PacketId(1), interface: LAN, bytes: &wanted }));
        let unmatched = vec![Outcome::Unmatched(other), Outcome::Unmatched(b"no IP packet".to_vec())];
        assert_eq!(plane.outcomes(), unmatched);
    }

    #[test]
    fn verdicts_show_on_the_wire_after_a_flush() {
        let (mut driver, plane) = driver(&["udp"]);
        let packet = testing::udp("10.0.0.1:9", "10.0.0.2:9", b"x");
        let changed = testing::udp("10.0.0.1:9", "10.0.0.2:9", b"changed");
        (0..4).for_each(|_| assert!(plane.push(LAN, &packet)));
        let mut batch = Batch::new();
        driver.receive(&mut batch, None).unwrap();
        driver.finish(PacketId(2), Final::Drop);
        driver.finish(PacketId(1), Final::Pass);
        driver.finish(PacketId(3), Final::Replace(&changed));
        driver.finish(PacketId(4), Final::Replace(&changed[1..]));
        driver.finish(PacketId(4), Final::Pass);
        driver.inject(&changed).unwrap();
        assert!(matches!(driver.inject(b""), Err(DriverError::BadPacket { .. })));
        assert_eq!(plane.outcomes(), []);
        driver.flush().unwrap();
        let expected = [
            Outcome::Dropped(packet.clone()),
            Outcome::Passed(packet.clone()),
            Outcome::Replaced(changed.clone()),
            Outcome::Dropped(packet),
            Outcome::Injected(changed),
        ];
        assert_eq!(plane.outcomes(), expected);
        let expected = Counters {
            received: 4,
            passed: 1,
            dropped: 1,
            replaced: 1,
            injected: 1,
            bad_verdict: 1,
            unknown: 1,
            ..Counters::default()
        };
        assert_eq!((driver.counters(), driver.owed()), (expected, 0));
    }

    #[test]
    fn what_becomes_of_a_packet_is_told_beforehand() {
        let (mut driver, plane) = driver(&["udp"]);
        let packet = testing::udp("10.0.0.1:9", "10.0.0.2:9", b"x");
        assert!(plane.push(LAN, &packet));
        driver.receive(&mut Batch::new(), None).unwrap();
        let mut check = |id, verdict, refused| {
            assert_eq!(matches!(driver.explain(PacketId(id), verdict), Egress::Refused { .. }), refused, "{verdict:?}");
        };
        check(1, Final::Pass, false);
        check(1, Final::Drop, true);
        check(1, Final::Replace(&packet), false);
        check(1, Final::Replace(&packet[1..]), true);
        check(2, Final::Pass, true);
        assert_eq!((driver.owed(), driver.counters().unknown), (1, 0));
    }

    #[test]
    fn packets_for_one_link_or_for_many_are_refused() {
        let (mut driver, plane) = driver(&["udp"]);
        let packet = testing::udp("10.0.0.1:9", "10.0.0.2:9", b"x");
        for destination in ["127.0.0.1:9", "169.254.169.254:9", "224.0.0.5:9"] {
            let turned = testing::udp("10.0.0.1:9", destination, b"x");
            assert!(matches!(driver.inject(&turned), Err(DriverError::NoMachine(_))), "{destination}");
            assert!(plane.push(LAN, &packet));
            driver.receive(&mut Batch::new(), None).unwrap();
            let id = PacketId(driver.counters().received);
            assert!(matches!(driver.explain(id, Final::Replace(&turned)), Egress::Refused { .. }), "{destination}");
            driver.finish(id, Final::Replace(&turned));
        }
        // In place, the plane goes on with it as it would have.
        let near = testing::udp("10.0.0.1:9", "224.0.0.5:9", b"x");
        assert!(plane.push(LAN, &near));
        driver.receive(&mut Batch::new(), None).unwrap();
        driver.finish(PacketId(4), Final::Replace(&near));
        driver.flush().unwrap();
        let dropped = std::iter::repeat_n(Outcome::Dropped(packet), 3);
        assert_eq!(plane.outcomes(), dropped.chain([Outcome::Replaced(near)]).collect::<Vec<_>>());
        assert_eq!((driver.counters().refused, driver.counters().injected), (3, 0));
    }

    #[test]
    fn a_batch_takes_batch_packets_max_packets() {
        let (mut driver, plane) = driver(&["udp"]);
        let packet = testing::udp("10.0.0.1:9", "10.0.0.2:9", b"x");
        (0..limits::BATCH_PACKETS_MAX + 3).for_each(|_| assert!(plane.push(LAN, &packet)));
        let mut batch = Batch::new();
        assert_eq!(driver.receive(&mut batch, None).unwrap(), limits::BATCH_PACKETS_MAX);
        assert!(batch.is_full() && !batch.push(PacketId(99), LAN, &packet));
        assert_eq!(driver.receive(&mut batch, None).unwrap(), 3);
        assert!(!batch.push(PacketId(99), LAN, &vec![0; limits::SLOT_BYTES + 1]));
        assert!(batch.push(PacketId(99), LAN, &vec![0; limits::SLOT_BYTES]));
    }

    #[test]
    fn the_wire_takes_dummy_waiting_max_packets() {
        let (_driver, plane) = driver(&["udp"]);
        let packet = testing::udp("10.0.0.1:9", "10.0.0.2:9", b"x");
        (0..limits::DUMMY_WAITING_MAX).for_each(|_| assert!(plane.push(LAN, &packet)));
        assert!(!plane.push(LAN, &packet));
    }

    #[test]
    fn a_failed_change_changes_nothing() {
        let (mut driver, plane) = driver(&["udp"]);
        let filter: Filter = "tcp".parse().unwrap();
        let changes = [Change::Remove(FilterId(0)), Change::Install(FilterId(7), &filter), Change::Remove(FilterId(8))];
        assert!(driver.filters().change(&changes).is_err());
        assert_eq!(plane.installed(), BTreeMap::from([(FilterId(0), "udp".parse().unwrap())]));
        driver.filters().change(&changes[..2]).unwrap();
        assert_eq!(plane.installed(), BTreeMap::from([(FilterId(7), filter)]));
        driver.remove(FilterId(7)).unwrap();
        assert!(plane.installed().is_empty());
    }

    #[test]
    fn waiting_ends_with_a_packet_or_with_the_time() {
        let (mut driver, plane) = driver(&["udp"]);
        let mut batch = Batch::new();
        assert_eq!(driver.receive(&mut batch, Some(Duration::from_millis(5))).unwrap(), 0);
        let thread = std::thread::spawn(move || driver.receive(&mut batch, Some(Duration::from_secs(20))).unwrap());
        assert!(plane.push(LAN, &testing::udp("10.0.0.1:9", "10.0.0.2:9", b"x")));
        assert_eq!(thread.join().unwrap(), 1);
    }

    fn driver(filters: &[&str]) -> (Dummy, Plane) {
        let (mut driver, plane) = Dummy::new();
        for (id, filter) in (0..).zip(filters) {
            driver.install(FilterId(id), &filter.parse().unwrap()).unwrap();
        }
        (driver, plane)
    }
}
