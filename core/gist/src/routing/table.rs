// SPDX-License-Identifier: Apache-2.0
//! The routing table (RFC 5971 §4.3): which peer comes next, for each flow with direction, session and NSLP.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use netserv_model::Instant;
use netserv_wire::gist::Nli;

use super::key::{RouteKey, query_target};
use super::peers::{Peer, PeerTable};
use super::row::{NatSide, Pending, Responder, Role, Route};
use crate::api::{Config, Event, Notification, RouteId, SendStatus};
use crate::cx::{Outbox, Owner, Timers, site};
use crate::limits;

/// The rows with the peers that they lead to, an index by key and one by target.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    peers: PeerTable,
    rows: BTreeMap<RouteId, Box<Route>>,
    by_key: BTreeMap<Arc<RouteKey>, RouteId>,
    /// Rows whose peer is beyond a NAT, by what the peer calls them.
    by_alias: BTreeMap<RouteKey, RouteId>,
    /// Rows of this node's Queries, by where those go.
    by_target: BTreeSet<(IpAddr, RouteId)>,
    /// Rows of peers' Queries, by the site that each peer is in.
    responding_per_site: BTreeMap<IpAddr, usize>,
    /// Rows of the NSLPs that came while the engine ran, which are never looked for among all.
    guests: BTreeMap<u16, BTreeSet<RouteId>>,
    responding: usize,
    pending_bytes: usize,
    last: u64,
}

impl Routes {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn peers(&self) -> &PeerTable {
        &self.peers
    }

    /// Returns the peer that a row leads to.
    pub(crate) fn peer(&self, id: RouteId) -> Option<&Peer> {
        self.peers.get(self.get(id)?.peer?)
    }

    /// Returns a row, and the peer that it leads to.
    pub(crate) fn get_with_peer(&mut self, id: RouteId) -> Option<(&mut Route, Option<&Peer>)> {
        let route = self.rows.get_mut(&id)?;
        let peer = route.peer.and_then(|sii| self.peers.get(sii));
        Some((route, peer))
    }

    /// Returns whether the row leads to a peer of this identity and address.
    pub(crate) fn leads_to(&self, id: RouteId, identity: &[u8], address: IpAddr) -> bool {
        self.peer(id).is_some_and(|peer| peer.identity == identity && peer.address == address)
    }

    /// Returns the bytes of all messages that wait.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// Returns how long rows toward this node are valid: longer, the more there are, so that their refreshes are not more than
    /// the node is to answer (RFC 5971 §4.4.4).
    pub(crate) fn validity(&self, config: &Config) -> Duration {
        let rows = u32::try_from(self.responding).unwrap_or(u32::MAX);
        // A refresh begins after half of the validity at the earliest.
        let shared = Duration::from_secs(2) * rows / config.refreshes_per_second.max(1);
        config.validity.max(shared).min(limits::PEER_TIME_MAX)
    }

    /// Returns whether there is no room for one more row of an NSLP.
    pub(crate) fn is_full(&self, config: &Config, nslp_id: u16) -> bool {
        let of_guest_max = (config.routes_max / limits::GUEST_ROUTES_PART).min(limits::GUEST_ROUTES_MAX);
        let guest_is_full = || self.guests.get(&nslp_id).is_some_and(|rows| rows.len() >= of_guest_max);
        self.len() >= config.routes_max || guest_is_full()
    }

    /// Returns how many NSLPs came while the engine ran.
    pub(crate) fn guests(&self) -> usize {
        self.guests.len()
    }

    pub(crate) fn is_guest(&self, nslp_id: u16) -> bool {
        self.guests.contains_key(&nslp_id)
    }

    /// Takes that an NSLP came, whose rows are kept apart.
    pub(crate) fn add_guest(&mut self, nslp_id: u16) {
        self.guests.insert(nslp_id, BTreeSet::new());
    }

    /// Takes that an NSLP went, of which no row is left.
    pub(crate) fn remove_guest(&mut self, nslp_id: u16) {
        self.guests.remove(&nslp_id);
    }

    pub(crate) fn responding(&self) -> usize {
        self.responding
    }

    /// Returns how many rows the Confirms of a peer, and of others of its site, have made.
    pub(crate) fn responding_to(&self, peer: IpAddr) -> usize {
        self.responding_per_site.get(&site(peer)).copied().unwrap_or(0)
    }

    pub(crate) fn find(&self, key: &RouteKey) -> Option<RouteId> {
        self.by_key.get(key).copied()
    }

    /// Returns the row that a peer means by a key, which is this node's or that of a peer beyond a NAT.
    pub(crate) fn find_meant(&self, key: &RouteKey) -> Option<RouteId> {
        self.find(key).or_else(|| self.by_alias.get(key).copied())
    }

    /// Takes how NATs change what the row's peer says. Of two peers that call theirs alike, the later one is meant.
    pub(crate) fn set_nat(&mut self, id: RouteId, nat: NatSide) {
        let Some(route) = self.rows.get_mut(&id).filter(|route| route.nat != nat) else { return };
        let old = route.alias();
        route.nat = nat;
        let new = route.alias();
        self.forget_alias(id, old);
        if let Some(alias) = new {
            self.by_alias.insert(alias, id);
        }
    }

    fn forget_alias(&mut self, id: RouteId, alias: Option<RouteKey>) {
        if let Some(alias) = alias.filter(|alias| self.by_alias.get(alias) == Some(&id)) {
            self.by_alias.remove(&alias);
        }
    }

    pub(crate) fn get(&self, id: RouteId) -> Option<&Route> {
        self.rows.get(&id).map(Box::as_ref)
    }

    pub(crate) fn get_mut(&mut self, id: RouteId) -> Option<&mut Route> {
        self.rows.get_mut(&id).map(Box::as_mut)
    }

    /// Returns the rows whose key fits, out of all: slow.
    pub(crate) fn matching(&self, fits: impl Fn(&RouteKey) -> bool) -> Vec<RouteId> {
        self.rows.iter().filter(|(_, route)| fits(&route.key)).map(|(id, _)| *id).collect()
    }

    /// Returns the rows of an NSLP whose key fits; out of all, unless the NSLP is a guest.
    pub(crate) fn matching_of(&self, nslp_id: u16, fits: impl Fn(&RouteKey) -> bool) -> Vec<RouteId> {
        let Some(rows) = self.guests.get(&nslp_id) else {
            return self.matching(|key| key.nslp_id == nslp_id && fits(key));
        };
        let fits = |id: &&RouteId| self.rows.get(id).is_some_and(|route| fits(&route.key));
        rows.iter().filter(fits).copied().collect()
    }

    /// Returns the rows whose Queries go to an address.
    pub(crate) fn asking(&self, target: IpAddr) -> impl Iterator<Item = RouteId> + '_ {
        self.by_target.range((target, RouteId(0))..=(target, RouteId(u64::MAX))).map(|(_, id)| *id)
    }

    /// Puts a message in the row's queue, behind those of its priority; the caller has checked the bounds.
    pub(crate) fn push_pending(&mut self, id: RouteId, message: Pending) {
        let Some(route) = self.rows.get_mut(&id) else { return };
        self.pending_bytes += message.data.len();
        let before = route.pending.iter().rposition(|other| other.priority >= message.priority);
        route.pending.insert(before.map_or(0, |index| index + 1), message);
    }

    pub(crate) fn pop_pending(&mut self, id: RouteId) -> Option<Pending> {
        let route = self.rows.get_mut(&id)?;
        let message = route.pending.pop_front()?;
        if route.pending.is_empty() {
            // An idle row keeps no room for messages.
            route.pending = VecDeque::new();
        }
        self.pending_bytes -= message.data.len();
        Some(message)
    }

    pub(crate) fn insert(&mut self, route: Route) -> RouteId {
        self.last += 1;
        let id = RouteId(self.last);
        let old = self.by_key.insert(route.key.clone(), id);
        assert!(old.is_none(), "a key has one row");
        if let Some(target) = query_target(&route.key.mri).filter(|_| route.querier().is_some()) {
            self.by_target.insert((target, id));
        }
        if let Some(rows) = self.guests.get_mut(&route.key.nslp_id) {
            rows.insert(id);
        }
        self.rows.insert(id, Box::new(route));
        id
    }

    /// Removes a row that has no peer, association, timer and messages any more.
    pub(super) fn remove(&mut self, id: RouteId) -> Option<Box<Route>> {
        let route = self.rows.remove(&id)?;
        self.forget_alias(id, route.alias());
        self.by_key.remove(&route.key);
        if let Some(target) = query_target(&route.key.mri) {
            self.by_target.remove(&(target, id));
        }
        if let Some(rows) = self.guests.get_mut(&route.key.nslp_id) {
            rows.remove(&id);
        }
        Some(route)
    }

    /// Makes a row without a peer, whose Queries were this node's, one that is queried.
    pub(crate) fn make_responding(&mut self, id: RouteId) {
        let Some(route) = self.rows.get_mut(&id) else { return };
        route.role = Role::Responder(Responder::default());
        if let Some(target) = query_target(&route.key.mri) {
            self.by_target.remove(&(target, id));
        }
    }

    fn count_responding(&mut self, peer: IpAddr, more: bool) {
        let count = self.responding_per_site.entry(site(peer)).or_default();
        *count = if more { *count + 1 } else { *count - 1 };
        if *count == 0 {
            self.responding_per_site.remove(&site(peer));
        }
        self.responding = if more { self.responding + 1 } else { self.responding - 1 };
    }
    /// Points the row at a peer and returns whether it pointed at another one before.
    pub(crate) fn set_peer(&mut self, id: RouteId, peer: Option<NewPeer<'_>>) -> bool {
        let Some(route) = self.rows.get_mut(&id) else { return false };
        let new = peer.map(|peer| self.peers.acquire(peer.nli, peer.port, peer.local));
        let old = std::mem::replace(&mut route.peer, new);
        let responding = matches!(route.role, Role::Responder(_));
        for (sii, more) in [(old, false), (new, true)] {
            let Some(sii) = sii else { continue };
            let address = self.peers.get(sii).expect("a route holds its peer").address;
            if responding {
                self.count_responding(address, more);
            }
        }
        if let Some(old) = old {
            self.peers.release(old);
        }
        old.is_some() && old != new
    }

    /// Sets the row's timer anew; to be called after anything happened to the row.
    pub(crate) fn arm(&mut self, timers: &mut Timers, id: RouteId) {
        let deadline = self.get(id).and_then(Route::deadline);
        self.set_timer(timers, id, deadline.map(|(at, _)| at));
    }

    pub(super) fn set_timer(&mut self, timers: &mut Timers, id: RouteId, at: Option<Instant>) {
        if let Some(route) = self.get_mut(id) {
            let before = std::mem::replace(&mut route.timer, at);
            timers.set(Owner::Route(id), before, at);
        }
    }

    /// Takes that the row's timer fired.
    pub(crate) fn fired(&mut self, id: RouteId) {
        if let Some(route) = self.get_mut(id) {
            route.timer = None;
        }
    }

    /// Drops waiting messages that `which` picks, and says so.
    pub(crate) fn fail_pending(
        &mut self,
        out: &mut Outbox,
        id: RouteId,
        status: SendStatus,
        which: impl Fn(&Pending) -> bool,
    ) {
        let Some(route) = self.rows.get_mut(&id) else { return };
        let (failed, kept) = std::mem::take(&mut route.pending).into_iter().partition(|message| which(message));
        route.pending = kept;
        let failed: VecDeque<Pending> = failed;
        let nslp_id = route.key.nslp_id;
        for message in failed {
            self.pending_bytes -= message.data.len();
            out.event(Event::MessageStatus { nslp_id, handle: message.handle, status, carriage: None });
        }
    }

    /// Tells the NSLP of a row what happened to it.
    pub(crate) fn notify(&self, out: &mut Outbox, id: RouteId, kind: Notification) {
        let Some(route) = self.get(id) else { return };
        let RouteKey { session, nslp_id, mri } = RouteKey::clone(&route.key);
        out.event(Event::NetworkNotification { nslp_id, session, mri, kind });
    }
}

/// A peer as a handshake showed it.
#[derive(Clone, Copy)]
pub(crate) struct NewPeer<'a> {
    pub(crate) nli: &'a Nli,
    /// Where datagrams for it go, if a datagram came from it.
    pub(crate) port: Option<u16>,
    pub(crate) local: IpAddr,
}
