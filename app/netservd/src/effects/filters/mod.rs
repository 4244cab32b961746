// SPDX-License-Identifier: Apache-2.0
//! Rules of packets: the packet thread and the forwarding plane learn of them here, on a thread that waits for the plane.
//!
//! A module's rules come and its predecessor's go in one step, so that no packet is shown by both or by none.

pub mod traces;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use anyhow::{Context, Result};
use netserv_model::effect::{Buffering, FilterChange, FilterId, FilterRule};
use netserv_model::trace::TraceRequest;
use netserv_model::verdict::FailureMode;
use netserv_model::{Refusal, RefusalKind, UserId, share};
use netserv_netlink::routes::Routes;
use netserv_packet_loop::feed::{Feed, TraceRefusal};
use netserv_packet_loop::thread::PacketSender;
use netserv_packet_loop::{Buffers, ModuleFilter, PacketCommand, TraceId};
use netserv_plane::limits::FILTERS_MAX;
use netserv_plane::{Change, FilterTable};
use tokio::sync::oneshot;

use super::ticket::Ticket;
use crate::limits::{FILTER_CHANGES_BATCH, FILTERS_EACH, LANES_ANSWER_TIME_MAX};
use traces::Traces;

/// What the thread is to do.
pub enum FilterJob {
    /// Change rules.
    Change(FilterChange, Ticket),
    /// Follow packets until the feed is dropped.
    Trace(Box<TraceRequest>, oneshot::Sender<Result<Feed, TraceRefusal>>),
    /// A trace's feed was dropped.
    EndTrace(TraceId),
}

/// Starts the thread. It ends when every sender is dropped; the rules go with the plane.
///
/// # Errors
/// The system gives no thread.
pub fn start(table: Arc<dyn FilterTable>, packets: PacketSender) -> Result<Sender<FilterJob>> {
    // Each user has one change under way, each client of the API one trace.
    let (jobs, inbox) = channel();
    let back = jobs.clone();
    // The thread may have ended.
    let traces = Traces::new(move |id| drop(back.send(FilterJob::EndTrace(id))));
    let filters = Filters { table, packets, rules: BTreeMap::new(), traces };
    let thread = std::thread::Builder::new().name("filters".to_owned());
    thread.spawn(move || filters.run(&inbox)).context("thread for filters")?;
    Ok(jobs)
}

struct Filters {
    table: Arc<dyn FilterTable>,
    packets: PacketSender,
    /// The rules in force.
    rules: BTreeMap<FilterId, FilterRule>,
    traces: Traces,
}

impl Filters {
    fn run(mut self, inbox: &Receiver<FilterJob>) {
        while let Ok(job) = inbox.recv() {
            let mut changes = Vec::new();
            let mut next = Some(job);
            while let Some(job) = next {
                match job {
                    FilterJob::Change(change, ticket) => changes.push((change, ticket)),
                    FilterJob::Trace(request, reply) => {
                        // If the client has gone, its feed ends the trace with it.
                        let _ = reply.send(self.traces.start(&request, &self.table, &self.packets));
                    }
                    FilterJob::EndTrace(id) => self.traces.end(id, &self.table, &self.packets),
                }
                next = if changes.len() < FILTER_CHANGES_BATCH { inbox.try_recv().ok() } else { None };
            }
            self.change_all(changes);
        }
    }

    /// Makes the changes that wait as one; if that is refused, each alone.
    fn change_all(&mut self, changes: Vec<(FilterChange, Ticket)>) {
        if changes.len() > 1 {
            let merged = merge(changes.iter().map(|(change, _)| change));
            if self.change(merged).is_ok() {
                return changes.into_iter().for_each(|(_, ticket)| ticket.done());
            }
        }
        for (change, ticket) in changes {
            ticket.end(self.change(change));
        }
    }

    /// Makes one change, all of it or nothing.
    ///
    /// The packet thread learns of new rules before the plane yields their packets, and in the same step of old rules
    /// that go; a packet for a rule that is gone passes.
    fn change(&mut self, FilterChange { add, remove }: FilterChange) -> Result<(), Refusal> {
        let remove: Vec<FilterId> = remove.into_iter().filter(|id| self.rules.contains_key(id)).collect();
        if add.is_empty() && remove.is_empty() {
            return Ok(());
        }
        self.check_room(&add, &remove)?;
        let known = self.tell(add.iter(), remove.clone());
        let installs = add.iter().map(|rule| match rule.on_failure {
            FailureMode::Open => Change::Install(rule.id, &rule.filter),
            FailureMode::Closed => Change::InstallClosed(rule.id, &rule.filter),
        });
        let changes: Vec<Change<'_>> = installs.chain(remove.iter().map(|id| Change::Remove(*id))).collect();
        let changed = self.table.change(&changes);
        if let Err(error) = &changed
            && !add.is_empty()
        {
            self.tell(remove.iter().filter_map(|id| self.rules.get(id)), add.iter().map(|rule| rule.id).collect());
            let detail = format!("the filter could not be installed: {error}");
            return Err(Refusal::new(RefusalKind::NodeFailed, detail));
        }
        if let Err(error) = changed {
            tracing::warn!(%error, filters = ?remove, "filters could not be taken away; their packets pass");
        }
        for id in remove {
            self.rules.remove(&id);
        }
        let buffers = add.iter().any(|rule| rule.buffering.is_some());
        self.rules.extend(add.into_iter().map(|rule| (rule.id, rule)));
        if buffers {
            // Whoever asked goes on with what its module has seen until now. Nobody answers; each lane drops its end.
            let _ = known.recv_timeout(LANES_ANSWER_TIME_MAX);
        }
        Ok(())
    }

    /// Checks that rules which come leave room for those of other users.
    fn check_room(&self, add: &[FilterRule], remove: &[FilterId]) -> Result<(), Refusal> {
        if add.is_empty() || self.rules.len() + add.len() <= FILTERS_MAX / 2 {
            return Ok(());
        }
        let goes: BTreeSet<&FilterId> = remove.iter().collect();
        let stay = self.rules.values().filter(|rule| !goes.contains(&rule.id));
        let mut held: BTreeMap<&UserId, usize> = BTreeMap::new();
        for rule in stay.chain(add) {
            *held.entry(&rule.worker.user).or_default() += 1;
        }
        if share::leaves_room(held.into_values(), FILTERS_EACH, FILTERS_MAX) {
            return Ok(());
        }
        let detail = format!("the node has {FILTERS_MAX} filters, half of them beyond {FILTERS_EACH} of each user");
        Err(Refusal::new(RefusalKind::QuotaExceeded, detail))
    }

    /// Tells the packet threads of rules that come and go; what it returns ends when each of them knows.
    fn tell<'a>(&self, add: impl Iterator<Item = &'a FilterRule>, remove: Vec<FilterId>) -> Receiver<()> {
        let add = add.filter_map(|rule| Some((rule.id, module_filter(rule)?))).collect();
        let (known, all_know) = channel();
        self.packets.send(PacketCommand::ChangeFilters { add, remove, known: Some(known) });
        all_know
    }
}

/// Returns a rule as packets meet it. One whose packets wait only if they come from elsewhere says nothing where it is not known
/// where from.
fn module_filter(rule: &FilterRule) -> Option<ModuleFilter> {
    let FilterRule { id: _, worker, slot, module, filter, on_failure, buffering } = rule.clone();
    let buffers = match buffering {
        None => None,
        Some(Buffering { other, is_seen_there: false }) => Some(Buffers { other, not_from: None }),
        Some(Buffering { other, is_seen_there: true }) => Some(Buffers { other, not_from: Some(interface_to(other)?) }),
    };
    Some(ModuleFilter { worker, slot, module: Some(module), filter, on_failure, buffers })
}

fn interface_to(address: IpAddr) -> Option<NonZeroU32> {
    let found = Routes::open().and_then(|routes| routes.source_for(address)).unwrap_or_else(|error| {
        tracing::warn!(%address, %error, "it is not known where packets come from; none waits");
        None
    });
    found.and_then(|(_, interface)| NonZeroU32::new(interface.0))
}

/// Returns changes as one. A rule that one of them adds and a later one takes away is in neither list.
fn merge<'a>(changes: impl Iterator<Item = &'a FilterChange>) -> FilterChange {
    let mut merged = FilterChange::default();
    for change in changes {
        for id in &change.remove {
            let before = merged.add.len();
            merged.add.retain(|rule| rule.id != *id);
            if merged.add.len() == before {
                merged.remove.push(*id);
            }
        }
        merged.add.extend(change.add.iter().cloned());
    }
    merged
}

#[cfg(test)]
mod tests;
