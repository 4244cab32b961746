// SPDX-License-Identifier: Apache-2.0
//! The maps of the XDP programs in plain memory, filled by the driver's own code.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use netserv_plane::DriverError;
use netserv_plane_afxdp::fuzzing;

use super::sys::{Lookup, Map};

/// Bytes of `struct filter_key`.
const KEY_BYTES: usize = 40;
/// Bytes of `struct heart`.
const HEART_BYTES: usize = 144;
/// `COUNTERS`, and some that are none.
const COUNTERS: usize = 8;

/// The maps that follow the filters.
#[derive(Default)]
pub(super) struct FilterMaps {
    state: Mutex<FilterState>,
}

struct FilterState {
    keys: BTreeSet<[u8; KEY_BYTES]>,
    /// `struct tuple_table`
    tuples: Vec<u8>,
}

impl Default for FilterState {
    fn default() -> FilterState {
        FilterState { keys: BTreeSet::new(), tuples: vec![0; 8 * fuzzing::TABLE_WORDS] }
    }
}

impl fuzzing::Maps for FilterMaps {
    fn add_key(&self, key: &[u8; KEY_BYTES]) -> Result<(), DriverError> {
        let new = self.state.lock().unwrap_or_else(PoisonError::into_inner).keys.insert(*key);
        assert!(new, "a key that is there is added");
        Ok(())
    }

    fn set_closed(&self, key: &[u8; KEY_BYTES], _is_closed: bool) -> Result<(), DriverError> {
        assert!(
            self.state.lock().unwrap_or_else(PoisonError::into_inner).keys.contains(key),
            "a key that is not there is changed"
        );
        Ok(())
    }

    fn remove_key(&self, key: &[u8; KEY_BYTES]) -> Result<(), DriverError> {
        let there = self.state.lock().unwrap_or_else(PoisonError::into_inner).keys.remove(key);
        assert!(there, "a key that is not there is removed");
        Ok(())
    }

    fn store(&self, word: usize, value: u64) {
        let tuples = &mut self.state.lock().unwrap_or_else(PoisonError::into_inner).tuples;
        tuples[8 * word..8 * word + 8].copy_from_slice(&value.to_ne_bytes());
    }

    fn wait(&self) -> Result<(), DriverError> {
        Ok(())
    }
}

/// All maps, as they are while a program runs.
pub(super) struct Maps {
    keys: BTreeSet<[u8; KEY_BYTES]>,
    tuples: Vec<u8>,
    interfaces: BTreeMap<[u8; 8], [u8; 20]>,
    own: BTreeSet<[u8; 16]>,
    heart: [u8; HEART_BYTES],
    counters: [[u8; 8]; COUNTERS],
    /// The devices that frames can be sent to.
    targets: BTreeSet<u32>,
    /// What stands for values that nobody reads.
    there: [u8; 1],
}

impl Maps {
    pub(super) fn new(filters: &Arc<FilterMaps>) -> Maps {
        let state = filters.state.lock().unwrap_or_else(PoisonError::into_inner);
        Maps {
            keys: state.keys.clone(),
            tuples: state.tuples.clone(),
            interfaces: BTreeMap::new(),
            own: BTreeSet::new(),
            heart: [0; HEART_BYTES],
            counters: [[0; 8]; COUNTERS],
            targets: BTreeSet::new(),
            there: [1],
        }
    }

    pub(super) fn own(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Maps {
        self.own.extend(addresses.into_iter().map(fuzzing::own_key));
        self
    }

    pub(super) fn interface(mut self, (key, value): ([u8; 8], [u8; 20])) -> Maps {
        self.interfaces.insert(key, value);
        self
    }

    pub(super) fn target(mut self, device: u32) -> Maps {
        self.targets.insert(device);
        self
    }

    /// Sets when the driver last looked for packets, and when it is to be taken for dead.
    pub(super) fn heart(mut self, beat: u64, silence_max: u64) -> Maps {
        self.heart[..8].copy_from_slice(&silence_max.to_ne_bytes());
        self.heart[8..16].copy_from_slice(&1_u64.to_ne_bytes());
        self.heart[16..24].copy_from_slice(&beat.to_ne_bytes());
        self
    }

    /// Returns how often each thing was counted.
    pub(super) fn counted(&self) -> [u64; COUNTERS] {
        self.counters.map(u64::from_ne_bytes)
    }
}

impl Lookup for Maps {
    fn find(&mut self, map: Map, key: &[u8]) -> Option<&mut [u8]> {
        let number = |key: &[u8]| u32::from_ne_bytes(key.try_into().expect("the map's keys have 4 bytes"));
        match map {
            Map::Tuples => (number(key) == 0).then_some(&mut self.tuples[..]),
            Map::Heart => (number(key) == 0).then_some(&mut self.heart[..]),
            Map::Counters => self.counters.get_mut(usize::try_from(number(key)).ok()?).map(|counter| &mut counter[..]),
            Map::Interfaces => self.interfaces.get_mut(key).map(|value| &mut value[..]),
            Map::Filters => self.keys.contains(key).then_some(&mut self.there[..]),
            Map::Own => self.own.contains(key).then_some(&mut self.there[..]),
            Map::Sockets => (number(key) == 0).then_some(&mut self.there[..]),
            Map::Targets => self.targets.contains(&number(key)).then_some(&mut self.there[..]),
        }
    }
}
