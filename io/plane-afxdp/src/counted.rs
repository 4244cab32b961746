// SPDX-License-Identifier: Apache-2.0
//! Counters of packets by destination, which the XDP program keeps.
//!
//! The program counts a packet for the longest prefix alone; those that it lies in too get it as they are read.

use std::sync::{Arc, Mutex, PoisonError};

use ipnet::IpNet;
use netserv_plane::{DestinationCount, DestinationCounters, DriverError, counted::distinct};

use super::layout;
use super::program::Program;

/// The counters of one program.
pub(super) struct Counted {
    program: Arc<Program>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// As they were given.
    wanted: Vec<IpNet>,
    /// Those in the program, by their places, with what was counted there before them.
    places: Vec<(IpNet, DestinationCount)>,
}

impl Counted {
    pub fn new(program: Arc<Program>) -> Counted {
        Counted { program, state: Mutex::default() }
    }

    fn put(&self, places: &[(IpNet, DestinationCount)]) -> Result<(), DriverError> {
        for ((prefix, _), place) in places.iter().zip(0_u32..) {
            self.program.update("prefixes", &layout::prefix_key(prefix), &place.to_ne_bytes())?;
        }
        Ok(())
    }

    fn take_away(&self, places: &[(IpNet, DestinationCount)]) -> Result<(), DriverError> {
        self.program.store(layout::COUNTED_PREFIXES_WORD, 0);
        places.iter().try_for_each(|(prefix, _)| self.program.delete("prefixes", &layout::prefix_key(prefix)))
    }
}

impl DestinationCounters for Counted {
    fn count(&self, prefixes: &[IpNet]) -> Result<(), DriverError> {
        let distinct = distinct(prefixes)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *state);
        self.take_away(&before.places)?;
        let with_base =
            |(prefix, place): (IpNet, u32)| Ok::<_, DriverError>((prefix, self.program.destination_count(place)?));
        let places = distinct.into_iter().zip(0..).map(with_base).collect::<Result<Vec<_>, _>>()?;
        if let Err(error) = self.put(&places) {
            self.take_away(&places)?;
            return Err(error);
        }
        let count = u64::try_from(places.len()).expect("the prefixes are few");
        *state = State { wanted: prefixes.iter().map(IpNet::trunc).collect(), places };
        self.program.store(layout::COUNTED_PREFIXES_WORD, count);
        Ok(())
    }

    fn read(&self) -> Result<Vec<DestinationCount>, DriverError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut counted = Vec::with_capacity(state.places.len());
        for ((prefix, base), place) in state.places.iter().zip(0..) {
            let DestinationCount { packets, syns } = self.program.destination_count(place)?;
            counted.push((*prefix, packets.wrapping_sub(base.packets), syns.wrapping_sub(base.syns)));
        }
        Ok(state.wanted.iter().map(|wanted| sum(wanted, &counted)).collect())
    }
}

/// Returns what came for a prefix and all those that lie in it.
fn sum(wanted: &IpNet, counted: &[(IpNet, u64, u64)]) -> DestinationCount {
    let inside = counted.iter().filter(|(prefix, ..)| wanted.contains(prefix));
    inside.fold(DestinationCount::default(), |sum, (_, packets, syns)| DestinationCount {
        packets: sum.packets.wrapping_add(*packets),
        syns: sum.syns.wrapping_add(*syns),
    })
}
