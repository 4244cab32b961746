// SPDX-License-Identifier: Apache-2.0
//! Packets that come in by devices without XDP: tunnels (tun, WireGuard, PPP, GRE) and what does not take the program. The kernel
//! leads those that a filter wants to a netfilter queue, of which the first lane takes them.
//!
//! Of all other devices, it leads there what a module that fails closed wants and the program let pass: while a device is new, has
//! another address, or lost the program to somebody, and what the program cannot read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netserv_model::Filter;
use netserv_model::effect::FilterId;
use netserv_plane::{Change, Driver as _, DriverConfig, DriverError, FilterTable, PacketId};
use netserv_plane_nfqueue::{Nfqueue, rules::Rules};

use super::table::Table;
use crate::limits;

/// The upper half of the names of such packets, or one less. Those of other packets have its highest bit not set.
pub(super) const TAG: u32 = 0x8000_0000;

/// Returns whether a packet came by a netfilter queue.
pub(super) fn is_beside(packet: PacketId) -> bool {
    packet.0 >> 32 >= u64::from(TAG)
}

/// The filters of a driver: those of its program, and, once a device needs them, the rules beside it.
pub(super) struct Filters {
    table: Arc<Table>,
    state: Mutex<State>,
    /// Whether there is one of a module that fails closed.
    any_closed: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Each with whether its module fails closed.
    filters: BTreeMap<FilterId, (Filter, bool)>,
    rules: Option<Arc<Rules>>,
}

impl Filters {
    pub fn new(table: Arc<Table>) -> Filters {
        Filters { table, state: Mutex::default(), any_closed: AtomicBool::new(false) }
    }

    /// Opens a queue for what the filters want of other devices.
    ///
    /// # Errors
    /// The kernel does not have what is needed.
    pub fn open_queue(&self, config: &DriverConfig) -> Result<Nfqueue, DriverError> {
        let mut state = self.lock();
        let queue = Nfqueue::open_beside(config, TAG)?;
        let installed: Vec<Change<'_>> =
            state.filters.iter().map(|(id, (filter, closed))| install(*id, filter, *closed)).collect();
        // The kernel tells the place of each rule at once, in a buffer.
        installed.chunks(limits::CHANGES_AT_A_TIME).try_for_each(|some| queue.filters().change(some))?;
        state.rules = Some(Arc::clone(queue.rules()));
        Ok(queue)
    }

    /// Returns whether there is a filter of a module that fails closed.
    pub fn any_closed(&self) -> bool {
        self.any_closed.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FilterTable for Filters {
    fn change(&self, changes: &[Change<'_>]) -> Result<(), DriverError> {
        let mut state = self.lock();
        if let Some(rules) = &state.rules {
            rules.change(changes)?;
        }
        if let Err(error) = self.table.change(changes) {
            if let Some(rules) = &state.rules
                && let Err(error) = rules.change(&undoing(changes, &state.filters))
            {
                tracing::warn!(%error, "a filter stays for packets of devices without XDP");
            }
            return Err(error);
        }
        for change in changes {
            match *change {
                Change::Install(id, filter) => drop(state.filters.insert(id, (filter.clone(), false))),
                Change::InstallClosed(id, filter) => drop(state.filters.insert(id, (filter.clone(), true))),
                Change::Remove(id) => drop(state.filters.remove(&id)),
            }
        }
        self.any_closed.store(state.filters.values().any(|(_, closed)| *closed), Ordering::Relaxed);
        Ok(())
    }
}

fn install(id: FilterId, filter: &Filter, closed: bool) -> Change<'_> {
    if closed { Change::InstallClosed(id, filter) } else { Change::Install(id, filter) }
}

/// Returns the changes that take changes back.
fn undoing<'a>(changes: &[Change<'_>], before: &'a BTreeMap<FilterId, (Filter, bool)>) -> Vec<Change<'a>> {
    let is_gone = |id: FilterId| changes.contains(&Change::Remove(id));
    let undo = |change: &Change<'_>| match *change {
        // The same changes took it away.
        Change::Install(id, _) | Change::InstallClosed(id, _) if is_gone(id) && !before.contains_key(&id) => None,
        Change::Install(id, _) | Change::InstallClosed(id, _) => Some(Change::Remove(id)),
        Change::Remove(id) => before.get(&id).map(|(filter, closed)| install(id, filter, *closed)),
    };
    changes.iter().rev().filter_map(undo).collect()
}
