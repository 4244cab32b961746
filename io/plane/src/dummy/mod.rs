// SPDX-License-Identifier: Apache-2.0
//! A forwarding plane in memory, for tests without root.

mod replay;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use netserv_model::effect::FilterId;
use netserv_model::{Filter, Flow};
use netserv_wire::ip::{self, IpView};
use rustix::event::{EventfdFlags, eventfd};

pub use replay::Replay;

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

/// A packet thread's end of the dummy plane.
pub struct Dummy {
    plane: Plane,
    lane: usize,
    next: u64,
    owed: BTreeMap<PacketId, Vec<u8>>,
    queued: Vec<Outcome>,
    counters: Counters,
}

impl Dummy {
    /// Returns a driver and the wire that it sits on.
    pub fn new() -> (Dummy, Plane) {
        let (mut lanes, plane) = Dummy::lanes(1);
        (lanes.swap_remove(0), plane)
    }

    /// Returns a driver of several lanes, at least one and at most [`limits::LANES_MAX`], and the wire that they sit on. It
    /// spreads packets over them by their flows.
    pub fn lanes(lanes: usize) -> (Vec<Dummy>, Plane) {
        let lanes = lanes.clamp(1, limits::LANES_MAX);
        let state = State { waiting: (0..lanes).map(|_| Waiting::new()).collect(), ..State::default() };
        let readable = state.waiting.iter().map(|waiting| waiting.readable.clone()).collect();
        let plane = Plane { shared: Arc::new(Shared { state: Mutex::new(state), arrived: Condvar::new(), readable }) };
        let lane = |lane| Dummy {
            plane: plane.clone(),
            lane,
            next: 0,
            owed: BTreeMap::new(),
            queued: Vec::new(),
            counters: Counters::default(),
        };
        ((0..lanes).map(lane).collect(), plane)
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
        let mut state = plane.wait_waiting(self.lane, timeout);
        while !batch.is_full()
            && let Some((interface, packet)) = state.waiting[self.lane].take()
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
        self.plane.shared.readable[self.lane].as_ref().map(|readable| readable.as_fd())
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

/// Returns the lane in which the packets of a flow come. Those of the two directions may come in different ones.
pub fn lane_of(flow: &Flow, lanes: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    // The packet that opens a connection comes where all others do.
    let Flow { source, destination, protocol, source_port, destination_port, opens: _ } = flow;
    (source, destination, protocol, source_port, destination_port).hash(&mut hasher);
    usize::try_from(hasher.finish() % lanes.max(1) as u64).expect("less than lanes")
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
        let wanted = flow.as_ref().is_some_and(|flow| state.filters.values().any(|filter| filter.matches(flow)));
        let lane = flow.map_or(0, |flow| lane_of(&flow, state.waiting.len()));
        if wanted && state.waiting[lane].packets.len() < limits::DUMMY_WAITING_MAX {
            state.waiting[lane].put(interface, packet);
            self.shared.arrived.notify_all();
            return true;
        }
        state.outcomes.push(Outcome::Unmatched(packet.to_vec()));
        false
    }

    /// Lets a packet arrive in the first lane, whether a filter matches or not, as where the kernel reads more of it than the node.
    pub fn push_unread(&self, interface: InterfaceId, packet: &[u8]) {
        self.lock().waiting[0].put(interface, packet);
        self.shared.arrived.notify_all();
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

    fn wait_waiting(&self, lane: usize, timeout: Option<Duration>) -> MutexGuard<'_, State> {
        let (state, arrived) = (self.lock(), &self.shared.arrived);
        let none = |state: &mut State| state.waiting[lane].packets.is_empty();
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
    /// By lane; nothing where the system has no descriptor left.
    readable: Vec<Option<Arc<OwnedFd>>>,
}

#[derive(Default)]
struct State {
    filters: BTreeMap<FilterId, Filter>,
    /// By lane.
    waiting: Vec<Waiting>,
    outcomes: Vec<Outcome>,
}

/// The packets of a lane that were not received yet, and an eventfd that is readable as long as there are some.
struct Waiting {
    packets: VecDeque<(InterfaceId, Vec<u8>)>,
    readable: Option<Arc<OwnedFd>>,
}

impl Waiting {
    fn new() -> Waiting {
        let readable = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).ok().map(Arc::new);
        Waiting { packets: VecDeque::new(), readable }
    }

    fn put(&mut self, interface: InterfaceId, packet: &[u8]) {
        if let (true, Some(readable)) = (self.packets.is_empty(), &self.readable) {
            // It counts to one at most, so it takes this.
            let _ = rustix::io::write(readable, &1_u64.to_ne_bytes());
        }
        self.packets.push_back((interface, packet.to_vec()));
    }

    fn take(&mut self) -> Option<(InterfaceId, Vec<u8>)> {
        let taken = self.packets.pop_front()?;
        if let (true, Some(readable)) = (self.packets.is_empty(), &self.readable) {
            let _ = rustix::io::read(readable, &mut [0; 8]);
        }
        Some(taken)
    }
}
