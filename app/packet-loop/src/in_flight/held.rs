// SPDX-License-Identifier: Apache-2.0
//! A packet that the loop holds, and the rest of its path.

use netserv_model::Flow;
use netserv_plane::PacketId;

use super::stop::Stop;
use crate::traces::Record;
use crate::workers::WorkerSlot;

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
    /// [`Buffered::changes`](super::Buffered::changes) when they were found.
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
