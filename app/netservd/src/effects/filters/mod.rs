// SPDX-License-Identifier: Apache-2.0
//! Filter commands that follow each other, carried out as one change of the driver.
//!
//! A replacement's filters come and its predecessor's go in one step, so that no packet sees both modules or none.

pub mod traces;

use std::sync::Arc;

use netserv_dataplane::{Change, DriverError, FilterTable};
use netserv_model::effect::{Event, FilterId};
use netserv_model::{Refusal, RefusalKind};

use crate::packet_loop::thread::PacketPort;
use crate::packet_loop::{ModuleFilter, PacketCommand};

/// The changes that are still to be made.
#[derive(Default)]
pub struct FilterChanges {
    add: Vec<(FilterId, ModuleFilter)>,
    remove: Vec<FilterId>,
}

impl FilterChanges {
    /// Notes a filter to be added.
    pub fn install(&mut self, id: FilterId, rule: ModuleFilter) {
        self.add.push((id, rule));
    }

    /// Notes a filter to be taken away; one that was only noted is forgotten.
    pub fn remove(&mut self, id: FilterId) {
        let before = self.add.len();
        self.add.retain(|(noted, _)| *noted != id);
        if self.add.len() == before {
            self.remove.push(id);
        }
    }

    /// Makes the changes; returns what failed.
    ///
    /// The packet thread learns of new rules before the driver yields their packets, and in the same step of old rules
    /// that go; a packet for a rule that is gone passes.
    pub fn make(&mut self, filters: &Arc<dyn FilterTable>, packets: &PacketPort) -> Vec<Event> {
        let (add, remove) = (std::mem::take(&mut self.add), std::mem::take(&mut self.remove));
        if add.is_empty() && remove.is_empty() {
            return Vec::new();
        }
        packets.send(PacketCommand::ChangeFilters { add: add.clone(), remove: remove.clone() });
        let installs = add.iter().map(|(id, rule)| Change::Install(*id, &rule.filter));
        let changes: Vec<Change<'_>> = installs.chain(remove.iter().map(|id| Change::Remove(*id))).collect();
        let Err(error) = filters.change(&changes) else { return Vec::new() };
        // All or none: the new ones are not there, and the old ones no longer have a rule, so their packets pass.
        packets.send(PacketCommand::ChangeFilters { add: Vec::new(), remove: add.iter().map(|(id, _)| *id).collect() });
        for id in &remove {
            if let Err(error) = filters.change(&[Change::Remove(*id)]) {
                tracing::warn!(%error, filter = id.0, "a filter could not be taken away; its packets pass");
            }
        }
        add.into_iter().map(|(id, _)| Event::FilterFailed { id, refusal: refusal(&error) }).collect()
    }
}

fn refusal(error: &DriverError) -> Refusal {
    Refusal::new(RefusalKind::NodeFailed, format!("the filter could not be installed: {error}"))
}
