// SPDX-License-Identifier: Apache-2.0
//! Neighbours off the path that sent a SETUP here or got it from here. A REMOVE follows the SETUP to them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use netserv_model::request::{Body, Outcome};
use netserv_model::{Instant, ModuleName, RefusalKind, SessionId, UserId};
use netserv_wire::nslp::Message;

use crate::exchanges::{Exchange, Own, Requester};
use crate::limits::{BROUGHT_MAX, BROUGHT_TO_MAX};

/// A neighbour and this node's own address toward it.
pub(crate) type Receiver = (IpAddr, IpAddr);

/// Neighbours off the path, by module; each is kept for as long as its SETUP's lease may run.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    modules: BTreeMap<Key, Entry>,
}

/// A module of a user, and the family of the session.
type Key = (UserId, ModuleName, SessionId);

#[derive(Debug, Default)]
struct Entry {
    /// Neighbours that sent the SETUP here off the path.
    by: BTreeMap<IpAddr, Instant>,
    /// Neighbours that this node sent the SETUP to, with its own address toward each.
    to: BTreeMap<IpAddr, (IpAddr, Instant)>,
}

impl Entry {
    fn end_before(&mut self, now: Instant) -> bool {
        self.by.retain(|_, until| *until > now);
        self.to.retain(|_, (_, until)| *until > now);
        self.by.is_empty() && self.to.is_empty()
    }

    fn until(&self) -> Option<Instant> {
        self.by.values().chain(self.to.values().map(|(_, until)| until)).max().copied()
    }
}

impl Brought {
    /// Notes the neighbours that this node sent a SETUP to.
    pub(crate) fn note_to(&mut self, now: Instant, session: SessionId, message: &Message, to: &[Receiver]) {
        let Some((key, until)) = setup_of(now, session, message).filter(|_| !to.is_empty()) else { return };
        let entry = self.entry(now, key);
        entry.to.extend(to.iter().map(|(neighbour, own)| (*neighbour, (*own, until))));
        while entry.to.len() > BROUGHT_TO_MAX {
            let first = entry.to.iter().min_by_key(|(_, (_, until))| *until).map(|(neighbour, _)| *neighbour);
            first.and_then(|first| entry.to.remove(&first));
        }
    }

    /// Notes the neighbours that sent a SETUP here off its path, if its module runs here now.
    pub(crate) fn note_by(&mut self, now: Instant, session: SessionId, exchange: &Exchange) {
        let Requester::Upstream(peers) = &exchange.requester else { return };
        if let Some((key, until)) = setup_of(now, session, &exchange.message).filter(|_| exchange.runs_here()) {
            self.entry(now, key).by.extend(peers.iter().map(|asker| (asker.address, until)));
        }
    }

    /// Returns whether the neighbour at an address sent the SETUP of the module that a REMOVE names.
    pub(crate) fn is_by(&self, session: SessionId, message: &Message, address: IpAddr) -> bool {
        self.removed_by(session, message).any(|entry| entry.by.contains_key(&address))
    }

    /// Returns the neighbours that a REMOVE goes to, if this node has removed the module or has none.
    pub(crate) fn followed(&self, now: Instant, session: SessionId, exchange: &Exchange) -> Vec<Receiver> {
        let Own::Reported(report) = &exchange.own else { return Vec::new() };
        let is_gone = report.outcome == Outcome::Removed || report.outcome.is_refused_for(RefusalKind::NotInstalled);
        let is_for_real = is_gone && exchange.is_vouched && !exchange.message.is_dry_run();
        let entries = self.removed_by(session, &exchange.message).filter(|_| is_for_real);
        let receivers = entries.flat_map(|entry| &entry.to).filter(|(_, (_, until))| *until > now);
        let receivers: BTreeMap<IpAddr, IpAddr> = receivers.map(|(neighbour, (own, _))| (*neighbour, *own)).collect();
        receivers.into_iter().take(BROUGHT_TO_MAX).collect()
    }

    fn removed_by(&self, session: SessionId, message: &Message) -> impl Iterator<Item = &Entry> {
        let remove = if let Body::Remove(remove) = message.body() { Some(remove) } else { None };
        let of = remove.zip(message.user()).map(|(remove, user)| (user.clone(), remove.module.clone(), remove.all));
        of.into_iter().flat_map(move |(user, module, all)| {
            let (first, last) =
                if all { (SessionId([0; 16]), SessionId([0xff; 16])) } else { (session.family(), session.family()) };
            self.modules.range((user.clone(), module.clone(), first)..=(user, module, last)).map(|(_, entry)| entry)
        })
    }

    /// Returns the entry of a module. If the table is full, the entry that ends first is dropped.
    fn entry(&mut self, now: Instant, key: Key) -> &mut Entry {
        if self.modules.len() >= BROUGHT_MAX && !self.modules.contains_key(&key) {
            self.modules.retain(|_, entry| !entry.end_before(now));
            if self.modules.len() >= BROUGHT_MAX {
                let first = self.modules.iter().min_by_key(|(_, entry)| entry.until()).map(|(key, _)| key.clone());
                first.and_then(|first| self.modules.remove(&first));
            }
        }
        let entry = self.modules.entry(key).or_default();
        entry.end_before(now);
        entry
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.modules.len()
    }
}

/// Returns the key of a SETUP's entry and the latest end of its lease.
fn setup_of(now: Instant, session: SessionId, message: &Message) -> Option<(Key, Instant)> {
    let Body::Setup(setup) = message.body() else { return None };
    let user = message.user().filter(|_| !message.is_dry_run())?;
    Some(((user.clone(), setup.module.name.clone(), session.family()), now + setup.ttl))
}
