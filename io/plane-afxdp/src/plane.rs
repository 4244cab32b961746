// SPDX-License-Identifier: Apache-2.0
//! What the lanes of a driver have in common: the program, the way to the kernel, and which devices are to be served.
//!
//! The first lane says which devices those are, and the others hear of it in their next turn: they compare a number, and
//! look further if it has changed. Who waits for packets is woken.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use netserv_plane::{DriverConfig, DriverError, Passage};
use rustix::event::{EventfdFlags, eventfd};

use super::beside::Filters;
use super::counted::Counted;
use super::heart::Heart;
use super::program::Program;
use super::table::Table;
use super::tun::Tun;

use crate::limits;

/// What the lanes of a driver have in common.
pub(super) struct Plane {
    pub config: DriverConfig,
    pub program: Arc<Program>,
    pub counted: Arc<Counted>,
    pub table: Arc<Table>,
    pub filters: Arc<Filters>,
    pub heart: Heart,
    pub tun: Tun,
    /// Where signaling messages go; nothing if the kernel keeps them.
    pub signaling: OnceLock<Passage>,
    /// Whether the program may be on devices.
    is_attached: AtomicBool,
    /// Whether what goes on goes by the kernel, which has rules for it.
    has_rules: AtomicBool,
    roster: Mutex<Roster>,
    /// How often the roster changed.
    version: AtomicU64,
    /// Woken when that changes, one for each lane.
    bells: Vec<OwnedFd>,
}

#[derive(Default)]
struct Roster {
    served: BTreeMap<u32, Arc<Served>>,
    /// All whose places are taken: some lane may not have closed its sockets yet.
    known: Vec<Weak<Served>>,
}

/// A device that is served. Its places in the program's map are taken as long as this lives.
pub(super) struct Served {
    pub device: u32,
    /// A place for each queue that it can have.
    pub places: Range<usize>,
    /// Made of software.
    pub is_virtual: bool,
    /// The sockets of all lanes.
    sockets: AtomicUsize,
    /// How often it seemed to have more queues than sockets.
    grown: AtomicU64,
}

impl Plane {
    pub fn new(config: &DriverConfig, program: Program, tun: Tun, lanes: usize) -> Result<Plane, DriverError> {
        let program = Arc::new(program);
        let table = Arc::new(Table::new(Arc::clone(&program))?);
        let bell = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let bells = std::iter::repeat_with(bell).take(lanes).collect::<Result<_, _>>();
        Ok(Plane {
            config: config.clone(),
            heart: Heart::new(program.heart()?, lanes, config.fail_open),
            filters: Arc::new(Filters::new(Arc::clone(&table))),
            table,
            counted: Arc::new(Counted::new(Arc::clone(&program))),
            program,
            tun,
            signaling: OnceLock::new(),
            is_attached: AtomicBool::new(true),
            has_rules: AtomicBool::new(false),
            roster: Mutex::default(),
            version: AtomicU64::new(0),
            bells: bells.map_err(|error| DriverError::system("making an event for a lane", error))?,
        })
    }

    /// Returns how many lanes there are.
    pub fn lanes(&self) -> usize {
        self.bells.len()
    }

    /// Says whether the kernel has rules for packets that go on.
    pub fn set_rules(&self, has_rules: bool) {
        self.has_rules.store(has_rules, Ordering::Relaxed);
    }

    /// Returns whether the kernel has rules for packets that go on.
    pub fn has_rules(&self) -> bool {
        self.has_rules.load(Ordering::Relaxed)
    }

    /// Takes places for a device that can have so many queues; `None` if there are none left.
    pub fn reserve(&self, device: u32, queues: u32, is_virtual: bool) -> Option<Arc<Served>> {
        let queues = usize::try_from(queues).unwrap_or(1).clamp(1, limits::QUEUES_MAX);
        let mut roster = self.lock();
        roster.known.retain(|known| known.strong_count() > 0);
        let taken = roster.known.iter().filter_map(Weak::upgrade).map(|known| known.places.clone()).collect();
        let places = free_places(taken, queues)?;
        let (sockets, grown) = (AtomicUsize::new(0), AtomicU64::new(0));
        let served = Arc::new(Served { device, places, is_virtual, sockets, grown });
        roster.known.push(Arc::downgrade(&served));
        Some(served)
    }

    /// Has all lanes serve a device.
    pub fn publish(&self, served: Arc<Served>) {
        self.lock().served.insert(served.device, served);
        self.tell();
    }

    /// Has all lanes let go of a device.
    pub fn dismiss(&self, device: u32) {
        self.lock().served.remove(&device);
        self.tell();
    }

    /// Has all lanes look for further queues of a device.
    pub fn grow(&self, device: u32) {
        if let Some(served) = self.lock().served.get(&device) {
            served.grown.fetch_add(1, Ordering::Relaxed);
        }
        self.tell();
    }

    /// Returns a number that changes with the devices that are to be served.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns the devices that are to be served.
    pub fn served(&self) -> BTreeMap<u32, Arc<Served>> {
        self.lock().served.clone()
    }

    /// Returns what is woken when the devices change, for one lane.
    pub fn bell(&self, lane: usize) -> BorrowedFd<'_> {
        self.bells[lane].as_fd()
    }

    /// Wakes a lane, or has it go on.
    pub fn ring(&self, lane: usize) {
        // It can only fail by being rung 2^64 times.
        let _ = rustix::io::write(&self.bells[lane], &1_u64.to_ne_bytes());
    }

    /// Says that the program is off all devices.
    pub fn detached(&self) {
        self.is_attached.store(false, Ordering::Relaxed);
    }

    /// Has packets pass that would have gone to places, and waits until none is on the way there.
    pub fn retire(&self, places: impl Iterator<Item = usize>) {
        for place in places {
            let cleared = self.program.clear_socket(u32::try_from(place).expect("there are few sockets"));
            cleared.unwrap_or_else(|error| tracing::debug!(%error, place, "a socket stays in the program's map"));
        }
        if self.is_attached.load(Ordering::Relaxed)
            && let Err(error) = self.program.wait()
        {
            tracing::debug!(%error, "packets may be on the way to a socket that is closed");
        }
    }

    fn tell(&self) {
        self.version.fetch_add(1, Ordering::Release);
        (0..self.bells.len()).for_each(|lane| self.ring(lane));
    }

    fn lock(&self) -> MutexGuard<'_, Roster> {
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Served {
    /// Returns a device whose places nobody else has, for trying it.
    pub fn alone(device: u32) -> Arc<Served> {
        let (sockets, grown) = (AtomicUsize::new(0), AtomicU64::new(0));
        Arc::new(Served { device, places: 0..1, is_virtual: false, sockets, grown })
    }

    /// Returns how many sockets all lanes have of it.
    pub fn sockets(&self) -> usize {
        self.sockets.load(Ordering::Relaxed)
    }

    /// Counts sockets that a lane opened.
    pub fn opened(&self, sockets: usize) {
        self.sockets.fetch_add(sockets, Ordering::Relaxed);
    }

    /// Counts sockets that a lane closed.
    pub fn closed(&self, sockets: usize) {
        self.sockets.fetch_sub(sockets, Ordering::Relaxed);
    }

    /// Returns a number that changes when it seems to have more queues than sockets.
    pub fn grown(&self) -> u64 {
        self.grown.load(Ordering::Relaxed)
    }
}

/// Returns so many places in a row that are not among the taken ones.
fn free_places(mut taken: Vec<Range<usize>>, count: usize) -> Option<Range<usize>> {
    taken.sort_unstable_by_key(|places| places.start);
    let mut start = 0;
    for places in taken {
        if start + count <= places.start {
            break;
        }
        start = places.end;
    }
    (start + count <= limits::SOCKETS_MAX).then_some(start..start + count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_max_places_are_given_out_and_used_again() {
        let mut taken = Vec::new();
        while let Some(places) = free_places(taken.clone(), limits::QUEUES_MAX) {
            taken.push(places);
        }
        assert_eq!(taken.iter().map(Range::len).sum::<usize>(), limits::SOCKETS_MAX);
        assert_eq!(free_places(taken.clone(), 1), None);
        let gone = taken.swap_remove(3);
        assert_eq!(free_places(taken.clone(), gone.len() + 1), None);
        assert_eq!(free_places(taken, gone.len()), Some(gone));
    }
}
