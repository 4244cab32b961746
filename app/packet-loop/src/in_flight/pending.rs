// SPDX-License-Identifier: Apache-2.0
//! The packets inside containers, found again by their cookie.

use netserv_dataplane::PacketId;
use netserv_model::Flow;
use netserv_model::effect::FilterId;
use netserv_model::verdict::FailureMode;

use crate::traces::Record;
use crate::workers::WorkerSlot;

/// One stop on a packet's way through containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) worker: WorkerSlot,
    /// The bits of the modules that are to see the packet.
    pub(crate) modules: u64,
    /// The bits of those that fail closed.
    pub(crate) closed: u64,
    /// The filter by which packets wait here, if they do.
    pub(crate) wait: Option<FilterId>,
}

impl Stop {
    /// Returns what happens to the packet while its modules cannot say.
    pub(crate) fn on_failure(&self) -> FailureMode {
        let asked = if self.wait.is_some() { self.closed } else { self.modules & self.closed };
        if asked == 0 { FailureMode::Open } else { FailureMode::Closed }
    }
}

/// A packet inside a container.
pub(crate) struct Held {
    /// Its name with the driver, which is owed a verdict unless a module made it.
    pub(crate) packet: PacketId,
    /// Its length in bytes, as changed so far.
    pub(crate) length: u16,
    /// What filters see of it, as changed so far.
    pub(crate) flow: Flow,
    /// The number of the interface that it came in by.
    pub(crate) interface: u32,
    pub(crate) at: Stop,
    /// What only a packet needs that goes through several containers, or that a module made.
    pub(crate) journey: Option<Box<Journey>>,
    /// What happened to it so far, if a trace follows it.
    pub(crate) trace: Option<Box<Record>>,
}

/// The way of a packet through several containers.
pub(crate) struct Journey {
    stops: Vec<Stop>,
    /// How many of the stops were left or are being made.
    begun: usize,
    /// [`Buffered::changes`](crate::in_flight::Buffered::changes) when they were found.
    found_at: u64,
    pub(crate) changed: bool,
    /// The worker whose module made the packet, if one did.
    maker: Option<WorkerSlot>,
    /// Its bytes, as changed so far.
    pub(crate) bytes: Vec<u8>,
}

impl Journey {
    /// Returns the journey of a packet that is at the first of its stops.
    pub(crate) fn new(stops: Vec<Stop>, found_at: u64, bytes: &[u8]) -> Journey {
        Journey { stops, begun: 1, found_at, changed: false, maker: None, bytes: bytes.to_vec() }
    }

    /// Returns the journey of a packet that a module made.
    pub(crate) fn of_made(maker: WorkerSlot, stops: Vec<Stop>, found_at: u64, bytes: &[u8]) -> Journey {
        Journey { maker: Some(maker), ..Journey::new(stops, found_at, bytes) }
    }
}

impl Held {
    /// Returns the bytes that the packet was changed to, if it was.
    pub(crate) fn changed(&self) -> Option<&[u8]> {
        self.journey.as_deref().filter(|journey| journey.changed).map(|journey| journey.bytes.as_slice())
    }

    /// Returns the worker whose module made the packet, if one did.
    pub(crate) fn maker(&self) -> Option<WorkerSlot> {
        self.journey.as_deref()?.maker
    }

    /// Changes the packet, if it has stops to come; false if it has none.
    pub(crate) fn change(&mut self, bytes: &[u8]) -> bool {
        self.length = length_of(bytes);
        let Some(journey) = self.journey.as_deref_mut().filter(|journey| journey.begun < journey.stops.len()) else {
            return false;
        };
        journey.changed = true;
        journey.bytes.clear();
        journey.bytes.extend_from_slice(bytes);
        true
    }

    /// Returns whether stops are to come that were found before a change of what packets wait for.
    pub(crate) fn is_outdated(&self, changes: u64) -> bool {
        let journey = self.journey.as_deref();
        journey.is_some_and(|journey| journey.found_at != changes && journey.begun < journey.stops.len())
    }

    /// Returns whether the packet was at a container, or is there.
    pub(crate) fn was_at(&self, worker: WorkerSlot) -> bool {
        let passed = self.journey.as_deref().map_or([].as_slice(), |journey| &journey.stops[..journey.begun]);
        self.at.worker == worker || passed.iter().any(|stop| stop.worker == worker)
    }

    /// Puts other stops in the place of those to come.
    pub(crate) fn divert(&mut self, to_come: &[Stop], found_at: u64) {
        match &mut self.journey {
            Some(journey) => {
                journey.stops.truncate(journey.begun);
                journey.stops.extend_from_slice(to_come);
                journey.found_at = found_at;
            }
            None if to_come.is_empty() => {}
            None => self.journey = Some(Box::new(Journey::new([&[self.at], to_come].concat(), found_at, &[]))),
        }
    }

    /// Returns whether the packet was at a container before the one that it waits at.
    pub(crate) fn has_left(&self, worker: WorkerSlot) -> bool {
        let journey = self.journey.as_deref();
        journey.is_some_and(|journey| journey.stops[..journey.begun - 1].iter().any(|stop| stop.worker == worker))
    }

    /// Puts other stops in the place of the one that the packet waits at and of those to come; false if there are none. `received`
    /// are its bytes if it has no journey.
    pub(crate) fn return_to(&mut self, stops: &[Stop], received: &[u8], found_at: u64) -> bool {
        let Some(first) = stops.first() else { return false };
        self.at = *first;
        match &mut self.journey {
            Some(journey) => {
                journey.stops.truncate(journey.begun - 1);
                journey.stops.extend_from_slice(stops);
                journey.found_at = found_at;
            }
            None if stops.len() > 1 => self.journey = Some(Box::new(Journey::new(stops.to_vec(), found_at, received))),
            None => {}
        }
        true
    }

    /// Leaves out the stops to come.
    pub(crate) fn end_journey(&mut self) {
        if let Some(journey) = &mut self.journey {
            journey.stops.truncate(journey.begun);
        }
    }

    /// Moves the packet on to its next stop; false if there is none.
    pub(crate) fn step(&mut self) -> bool {
        let Some(journey) = self.journey.as_deref_mut() else { return false };
        let Some(next) = journey.stops.get(journey.begun) else { return false };
        self.at = *next;
        journey.begun += 1;
        true
    }
}

/// Returns a packet's length, which IP bounds to 16 bits.
pub(crate) fn length_of(bytes: &[u8]) -> u16 {
    u16::try_from(bytes.len()).unwrap_or(u16::MAX)
}

/// The packets inside containers, found again by their cookie.
#[derive(Default)]
pub(crate) struct Pending {
    places: Vec<Place>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Place {
    generation: u32,
    held: Option<Held>,
}

impl Pending {
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the cookie that the next inserted packet gets.
    pub(crate) fn next_cookie(&self) -> u64 {
        match self.free.last() {
            Some(number) => cookie(*number, self.places[*number as usize].generation),
            None => cookie(u32::try_from(self.places.len()).unwrap_or(u32::MAX), 0),
        }
    }

    pub(crate) fn insert(&mut self, held: Held) {
        match self.free.pop() {
            Some(number) => self.places[number as usize].held = Some(held),
            None => self.places.push(Place { generation: 0, held: Some(held) }),
        }
    }

    /// Takes out the packet of a cookie; a cookie that is not of this moment gives none.
    pub(crate) fn remove(&mut self, wanted: u64) -> Option<Held> {
        let number = u32::try_from(wanted & u64::from(u32::MAX)).ok()?;
        let place = self.places.get_mut(number as usize)?;
        if wanted != cookie(number, place.generation) {
            return None;
        }
        let held = place.held.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(number);
        Some(held)
    }
}

fn cookie(place: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(place)
}
