// SPDX-License-Identifier: Apache-2.0
//! What SETUPs installed along paths, for as long as their leases run.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Bound;
use std::time::Duration;

use netserv_gist::{AssociationId, SiiHandle};
use netserv_model::{Instant, ModuleName, Nonce, SessionId, UnixTime, UserId};
use netserv_wire::gist::Mri;

use crate::limits::{LEASES_BYTES_MAX, LEASES_MAX, LEASES_PER_FLOW_MAX, NEWS_BURST_MAX, NEWS_INTERVAL, UPSTREAM_MAX};

/// Names a lease on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LeaseId(u64);

/// One module along one path.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) session: SessionId,
    /// The flow, downstream.
    pub(crate) mri: Mri,
    pub(crate) user: UserId,
    pub(crate) module: ModuleName,
    /// The nonce of the SETUP that it is from.
    pub(crate) nonce: Nonce,
    /// When that was made.
    pub(crate) created: UnixTime,
    /// That SETUP, as it came.
    pub(crate) text: Box<str>,
    /// How long it might take.
    pub(crate) time: Duration,
    /// GIST hops that it might still travel, if it came from another node.
    pub(crate) hops: Option<u8>,
    /// By which address the previous hop knows this node.
    pub(crate) address: Option<IpAddr>,
    /// Who asked for it, by which address, and did not say since that its path leads elsewhere.
    pub(crate) upstream: Vec<Asker>,
    /// There were more than are remembered, so that nobody's leave is the last one.
    pub(crate) is_crowded: bool,
    /// A client of this node asked for it.
    pub(crate) is_local: bool,
    /// Who has it next.
    pub(crate) downstream: Option<SiiHandle>,
    /// Who had it next before, from which request, and was not told that the path leads elsewhere.
    pub(crate) left: Option<(SiiHandle, Nonce)>,
    /// When it ends.
    pub(crate) until: Instant,
    /// When the path is looked at anew, if it is to be.
    pub(crate) look_at: Option<Instant>,
    /// When that was done last.
    pub(crate) looked_at: Instant,
    /// Since when so many news were passed on.
    pub(crate) news: (Instant, u8),
}

impl Lease {
    /// Takes note of who asked for it.
    pub(crate) fn asked_by(&mut self, asker: Asker) {
        self.is_crowded |= !remember(&mut self.upstream, asker);
    }

    fn timer(&self) -> Instant {
        self.look_at.map_or(self.until, |look_at| look_at.min(self.until))
    }

    /// Takes one of the news that may be sent within a time; false if there were too many.
    pub(crate) fn take_news(&mut self, now: Instant) -> bool {
        let (since, count) = self.news;
        let begins = now >= since + NEWS_INTERVAL;
        let (since, count) = if begins { (now, 0) } else { (since, count) };
        let may = count < NEWS_BURST_MAX;
        self.news = (since, if may { count + 1 } else { count });
        may
    }
}

/// Who asked for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    /// The peer.
    pub(crate) sii: SiiHandle,
    /// Its address.
    pub(crate) address: IpAddr,
    /// The connection that it asked over.
    pub(crate) association: Option<AssociationId>,
}

impl Asker {
    /// Returns whether what came over a connection is of the same peer: a connection may lead to it by several addresses,
    /// and only by the one of its first message has GIST a name for it.
    pub(crate) fn is(&self, other: &Asker) -> bool {
        self.sii == other.sii || (self.association.is_some() && self.association == other.association)
    }
}

/// Takes note of who asked, in place of whoever had the address or the connection before; false if there are too many.
pub(crate) fn remember(askers: &mut Vec<Asker>, asker: Asker) -> bool {
    askers.retain(|other| other.address != asker.address && !other.is(&asker));
    let may = askers.len() < UPSTREAM_MAX;
    if may {
        askers.push(asker);
    }
    may
}

/// All leases.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    leases: BTreeMap<LeaseId, Lease>,
    by_flow: BTreeMap<Mri, Vec<LeaseId>>,
    /// How many there are of each module.
    by_module: BTreeMap<(UserId, ModuleName), usize>,
    timers: BTreeSet<(Instant, LeaseId)>,
    /// Bytes of all texts.
    bytes: usize,
    last: u64,
}

impl Leases {
    pub(crate) fn len(&self) -> usize {
        self.leases.len()
    }

    pub(crate) fn get(&self, id: LeaseId) -> Option<&Lease> {
        self.leases.get(&id)
    }

    /// Returns the leases along a flow.
    pub(crate) fn of_flow<'a>(&'a self, mri: &Mri) -> impl Iterator<Item = (LeaseId, &'a Lease)> {
        let ids = self.by_flow.get(mri).map(Vec::as_slice).unwrap_or_default();
        ids.iter().filter_map(|id| self.leases.get(id).map(|lease| (*id, lease)))
    }

    /// Returns the flows that have leases, from the one after another on.
    pub(crate) fn flows(&self, after: Option<&Mri>) -> impl Iterator<Item = &Mri> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_flow.range::<Mri, _>((from, Bound::Unbounded)).map(|(mri, _)| mri)
    }

    /// Returns how many leases a module has on this node.
    pub(crate) fn of_module(&self, user: &UserId, module: &ModuleName) -> usize {
        self.by_module.get(&(user.clone(), module.clone())).copied().unwrap_or(0)
    }

    /// Adds one; nothing if there are too many.
    pub(crate) fn insert(&mut self, lease: Lease) -> Option<LeaseId> {
        let of_flow = self.by_flow.get(&lease.mri).map_or(0, Vec::len);
        let full = self.leases.len() >= LEASES_MAX || self.bytes + lease.text.len() > LEASES_BYTES_MAX;
        if full || of_flow >= LEASES_PER_FLOW_MAX {
            return None;
        }
        self.bytes += lease.text.len();
        self.last += 1;
        let id = LeaseId(self.last);
        self.by_flow.entry(lease.mri.clone()).or_default().push(id);
        *self.by_module.entry((lease.user.clone(), lease.module.clone())).or_default() += 1;
        self.timers.insert((lease.timer(), id));
        self.leases.insert(id, lease);
        Some(id)
    }

    /// Changes one.
    pub(crate) fn change<R>(&mut self, id: LeaseId, change: impl FnOnce(&mut Lease) -> R) -> Option<R> {
        let lease = self.leases.get_mut(&id)?;
        let (before, bytes) = (lease.timer(), lease.text.len());
        let result = change(lease);
        let after = lease.timer();
        self.bytes = self.bytes + lease.text.len() - bytes;
        if before != after {
            self.timers.remove(&(before, id));
            self.timers.insert((after, id));
        }
        Some(result)
    }

    pub(crate) fn remove(&mut self, id: LeaseId) -> Option<Lease> {
        let lease = self.leases.remove(&id)?;
        self.bytes -= lease.text.len();
        self.timers.remove(&(lease.timer(), id));
        if let Some(ids) = self.by_flow.get_mut(&lease.mri) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_flow.remove(&lease.mri);
            }
        }
        let module = (lease.user.clone(), lease.module.clone());
        if let Some(count) = self.by_module.get_mut(&module) {
            *count -= 1;
            if *count == 0 {
                self.by_module.remove(&module);
            }
        }
        Some(lease)
    }

    /// Returns the leases of a module, along all flows.
    pub(crate) fn all_of_module(&self, user: &UserId, module: &ModuleName) -> Vec<LeaseId> {
        if self.of_module(user, module) == 0 {
            return Vec::new();
        }
        let of_it = |(_, lease): &(&LeaseId, &Lease)| lease.user == *user && lease.module == *module;
        self.leases.iter().filter(of_it).map(|(id, _)| *id).collect()
    }

    /// Returns the first that is due.
    pub(crate) fn due(&self, now: Instant) -> Option<LeaseId> {
        self.timers.first().filter(|(at, _)| *at <= now).map(|(_, id)| *id)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }
}
