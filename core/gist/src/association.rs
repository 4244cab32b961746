// SPDX-License-Identifier: Apache-2.0
//! Messaging associations (RFC 5971 §4.4.3, §5.7, §6.5): connections that rows share, kept alive by MA-Hellos.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use netserv_model::{Instant, share};
use netserv_wire::gist::{Message, MessageStream, MessageType, Mri, Nli, StreamMessage};
use rand::Rng;

use crate::api::{AssociationId, Channel, Counter, FlowScope, Notification, RouteId, Transmit};
use crate::backlog::Backlog;
use crate::context::{Deadline, Owner, earlier};
use crate::engine::{Arrival, Engine, Via};
use crate::invitations::{Invitations, Invited};
use crate::limits;
use crate::routing::Role;
use crate::stack::Stack;

/// One connection with a peer.
#[derive(Debug)]
pub(crate) struct Association {
    pub(crate) local: IpAddr,
    pub(crate) peer: SocketAddr,
    /// The peer's identity and address, once a handshake has shown them.
    pub(crate) name: Option<(Vec<u8>, IpAddr)>,
    pub(crate) stack: Stack,
    /// The name in the peer's certificate, if it showed one.
    pub(crate) certified: Option<String>,
    /// What flows the peer may speak about, by that name.
    flows: FlowScope,
    routes: BTreeSet<RouteId>,
    stream: MessageStream,
    pub(crate) backlog: Backlog,
    open: bool,
    /// The peer opened it.
    accepted: bool,
    invited: Invited,
    /// The peer still has to be told this node's hold time.
    introduction_due: bool,
    peer_hold: Duration,
    setup_deadline: Option<Instant>,
    heard_at: Instant,
    sent_at: Instant,
    /// Time after `sent_at` at which an MA-Hello is due.
    hello_after: Duration,
    /// The MA-Hello whose answer is awaited.
    asked: Option<(u32, Instant)>,
    /// When its timer fires.
    timer: Option<Instant>,
}

impl Association {
    fn new(now: Instant, local: IpAddr, peer: SocketAddr, stack: Stack, setup_deadline: Instant) -> Association {
        Association {
            local,
            peer,
            name: None,
            stack,
            certified: None,
            flows: FlowScope::default(),
            routes: BTreeSet::new(),
            stream: MessageStream::new(),
            backlog: Backlog::default(),
            open: false,
            accepted: false,
            invited: Invited(false),
            introduction_due: false,
            peer_hold: limits::PEER_TIME_MAX,
            setup_deadline: Some(setup_deadline),
            heard_at: now,
            sent_at: now,
            hello_after: limits::PEER_TIME_MAX,
            asked: None,
            timer: None,
        }
    }

    fn deadline(&self, hold_time: Duration) -> Option<Deadline> {
        let setup = self.setup_deadline.map(|at| (at, "association setup"));
        let asked = self.asked.map(|(_, at)| (at, "hello reply"));
        let life = match (self.open, self.routes.is_empty()) {
            (false, _) => None,
            (true, true) => Some((self.heard_at.max(self.sent_at) + hold_time, "association idle")),
            (true, false) => Some((self.sent_at + self.hello_after, "association hello")),
        };
        earlier(earlier(setup, asked), life)
    }
}

/// All associations, with an index by the peer's name.
#[derive(Debug, Default)]
pub(crate) struct AssociationTable {
    table: BTreeMap<AssociationId, Association>,
    by_name: BTreeMap<((Vec<u8>, IpAddr), Stack), AssociationId>,
    /// Accepted ones without a name, those that were not invited first, then oldest first: numbers only grow.
    unproven: BTreeSet<(Invited, AssociationId)>,
    invitations: Invitations,
    /// How many each peer has opened.
    accepted: BTreeMap<IpAddr, usize>,
    last: u64,
}

impl AssociationTable {
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn get(&self, id: AssociationId) -> Option<&Association> {
        self.table.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        self.table.get_mut(&id)
    }

    pub(crate) fn is_open(&self, id: AssociationId) -> bool {
        self.table.get(&id).is_some_and(|association| association.open)
    }

    /// Returns whether the association is open and its peer was heard within the hold time.
    pub(crate) fn is_alive(&self, id: AssociationId, now: Instant, hold_time: Duration) -> bool {
        self.table.get(&id).is_some_and(|association| association.open && now.since(association.heard_at) < hold_time)
    }

    /// Returns the association whose peer has this identity and address, both of which must fit, and whose stack is this or
    /// a better one (RFC 5971 §4.4.3); the best if there are several.
    pub(crate) fn find(&self, nli: &Nli, least: Stack) -> Option<AssociationId> {
        self.find_by_name(&nli.peer_identity, nli.address, least)
    }

    pub(crate) fn find_by_name(&self, identity: &[u8], address: IpAddr, least: Stack) -> Option<AssociationId> {
        let name = (identity.to_vec(), address);
        self.by_name.range((name.clone(), least)..=(name, Stack::Tls)).next_back().map(|(_, id)| *id)
    }

    /// Returns whether messages that need a stack may go over the association.
    pub(crate) fn has_stack(&self, id: AssociationId, least: Stack) -> bool {
        self.table.get(&id).is_some_and(|association| association.stack >= least)
    }

    /// Returns whether the association's peer may speak about a flow, as far as it is known who that is (RFC 5971 §4.4.2).
    pub(crate) fn may_carry(&self, id: AssociationId, mri: &Mri) -> bool {
        self.table.get(&id).is_some_and(|association| association.flows.allows(mri))
    }

    /// Returns the association with a peer whose stack is this or a better one, if it is open. For what does no harm elsewhere,
    /// one with another address of the same node, as it calls itself, will do.
    pub(crate) fn open_to(
        &self,
        (identity, address): (&[u8], IpAddr),
        least: Stack,
        anywhere: bool,
    ) -> Option<AssociationId> {
        let first = ((identity.to_vec(), IpAddr::V4(Ipv4Addr::UNSPECIFIED)), Stack::Plain);
        let others = self.by_name.range(first..).take_while(|(((other, _), _), _)| anywhere && other == identity);
        let others = others.filter(|((_, stack), _)| *stack >= least).map(|(_, id)| *id);
        self.find_by_name(identity, address, least).into_iter().chain(others).find(|id| self.is_open(*id))
    }

    /// Returns whether this is the first Confirm on a connection from here, which has to tell the hold time.
    pub(crate) fn introduce(&mut self, id: AssociationId) -> bool {
        self.table.get_mut(&id).is_some_and(|association| std::mem::take(&mut association.introduction_due))
    }

    /// Takes who the peer of an accepted connection is.
    pub(crate) fn prove(&mut self, id: AssociationId, nli: &Nli, hold_time: Option<Duration>) {
        let Some(association) = self.table.get_mut(&id) else { return };
        if let Some(hold_time) = hold_time {
            association.peer_hold = hold_time.clamp(limits::PEER_TIME_MIN, limits::PEER_TIME_MAX);
        }
        if association.name.is_none() {
            let name = (nli.peer_identity.clone(), nli.address);
            association.name = Some(name.clone());
            association.setup_deadline = None;
            self.unproven.remove(&(association.invited, id));
            self.by_name.insert((name, association.stack), id);
        }
    }

    fn accepted_from(&self, peer: SocketAddr) -> usize {
        self.accepted.get(&whose(peer)).copied().unwrap_or(0)
    }

    /// Takes that a peer may open a connection: it was sent a responder cookie to bring along.
    pub(crate) fn invite(&mut self, now: Instant, peer: SocketAddr) {
        self.invitations.add(now, whose(peer));
    }

    /// Returns the oldest association that is not proven, of those that were not invited if there are some.
    fn oldest_unproven(&self) -> Option<AssociationId> {
        self.unproven.first().map(|(_, id)| *id)
    }

    /// Returns the oldest association that is not proven of those that the peer's address opened.
    fn oldest_unproven_of(&self, peer: SocketAddr) -> Option<AssociationId> {
        let of_peer = |id: &AssociationId| self.table.get(id).is_some_and(|other| whose(other.peer) == whose(peer));
        self.unproven.iter().map(|(_, id)| *id).find(of_peer)
    }

    fn insert(&mut self, association: Association) -> AssociationId {
        let id = self.next_id();
        if association.accepted {
            *self.accepted.entry(whose(association.peer)).or_default() += 1;
        }
        match association.name.clone() {
            Some(name) => {
                self.by_name.insert((name, association.stack), id);
            }
            None => {
                self.unproven.insert((association.invited, id));
            }
        }
        self.table.insert(id, association);
        id
    }

    fn next_id(&mut self) -> AssociationId {
        self.last += 1;
        AssociationId(self.last)
    }

    fn remove(&mut self, id: AssociationId) -> Option<Association> {
        let association = self.table.remove(&id)?;
        if association.accepted
            && let Entry::Occupied(mut count) = self.accepted.entry(whose(association.peer))
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        match association.name.clone().map(|name| (name, association.stack)) {
            Some(name) if self.by_name.get(&name) == Some(&id) => {
                self.by_name.remove(&name);
            }
            Some(_) => {}
            None => {
                self.unproven.remove(&(association.invited, id));
            }
        }
        Some(association)
    }
}

impl Engine {
    /// Returns an association with the peer: one that is there or under way, with the stack or a better one, or a new one.
    /// `None` if there is no room.
    pub(crate) fn share_or_open(
        &mut self,
        now: Instant,
        local: IpAddr,
        nli: &Nli,
        (stack, port): (Stack, u16),
        hold_time: Duration,
    ) -> Option<AssociationId> {
        if let Some(id) = self.associations.find(nli, stack) {
            self.out.count(Counter::AssociationsReused);
            return Some(id);
        }
        if self.associations.len() >= self.settings.config().associations_max
            && !self.evict(now, self.associations.oldest_unproven())
        {
            self.out.count(Counter::AssociationsRefused);
            return None;
        }
        let peer = SocketAddr::new(nli.address, port);
        let mut association = Association::new(now, local, peer, stack, now + self.settings.config().connect_timeout);
        association.name = Some((nli.peer_identity.clone(), nli.address));
        association.introduction_due = true;
        association.peer_hold = hold_time.clamp(limits::PEER_TIME_MIN, limits::PEER_TIME_MAX);
        let id = self.associations.insert(association);
        self.out.count(Counter::AssociationsOpened);
        self.out.connection(Transmit::Connect { association: id, local, peer, tls: stack == Stack::Tls });
        self.arm_association(id);
        Some(id)
    }

    /// Takes a connection from a peer, which has to prove itself soon.
    pub(crate) fn accept_association(
        &mut self,
        now: Instant,
        local: IpAddr,
        peer: SocketAddr,
        channel: Channel,
    ) -> AssociationId {
        let (stack, certified, flows) = carried(channel);
        if !self.settings.config().tls.stacks().contains(&stack) || !self.make_room(now, peer) {
            self.out.count(Counter::AssociationsRefused);
            let association = self.associations.next_id();
            self.out.connection(Transmit::Close { association });
            return association;
        }
        let invited = self.associations.invitations.has(now, whose(peer));
        let half_open_time = if invited { self.settings.config().connect_timeout } else { self.half_open_time() };
        let mut association = Association::new(now, local, peer, stack, now + half_open_time);
        (association.open, association.accepted) = (true, true);
        (association.certified, association.flows) = (certified, flows);
        association.invited = Invited(invited);
        let id = self.associations.insert(association);
        self.out.count(Counter::AssociationsAccepted);
        self.count_secured(stack);
        self.arm_association(id);
        id
    }

    /// Returns how long a stranger's connection may stay unproven: less, the more there are.
    fn half_open_time(&self) -> Duration {
        let places = u32::try_from(limits::ASSOCIATIONS_UNPROVEN_MAX).expect("there are few");
        let free = places.saturating_sub(u32::try_from(self.associations.unproven.len()).unwrap_or(places));
        (self.settings.config().connect_timeout * free / places)
            .max(limits::HALF_OPEN_TIME_MIN)
            .min(self.settings.config().connect_timeout)
    }

    /// Makes room for one more connection of a peer; returns whether there is. What nobody has proven goes first, what was
    /// not invited before the rest, oldest first, and never for a peer that has its share already: it gives up one of its
    /// own.
    fn make_room(&mut self, now: Instant, peer: SocketAddr) -> bool {
        let table = &self.associations;
        if table.accepted_from(peer) >= self.settings.config().associations_per_peer_max {
            return self.evict(now, table.oldest_unproven_of(peer));
        }
        let full = table.len() >= self.settings.config().associations_max;
        if full || table.unproven.len() >= limits::ASSOCIATIONS_UNPROVEN_MAX {
            return self.evict(now, table.oldest_unproven());
        }
        true
    }

    /// Ends an unproven association in favour of another one; returns whether there is one to end.
    fn evict(&mut self, now: Instant, id: Option<AssociationId>) -> bool {
        let Some(id) = id else { return false };
        self.out.count(Counter::AssociationsEvicted);
        self.end_association(now, id, true);
        true
    }

    pub(crate) fn association_connected(&mut self, now: Instant, id: AssociationId, channel: Channel) {
        let Some(association) = self.associations.table.get_mut(&id) else { return };
        if association.open {
            return;
        }
        let (stack, certified, flows) = carried(channel);
        // Who accepts always shows a certificate; and nothing goes over less than what was agreed on.
        if stack != association.stack || (stack == Stack::Tls && certified.is_none()) {
            self.out.count(Counter::AssociationsFailed);
            self.end_association(now, id, true);
            return;
        }
        (association.certified, association.flows) = (certified, flows);
        association.open = true;
        association.setup_deadline = None;
        (association.heard_at, association.sent_at) = (now, now);
        let mut routes: Vec<RouteId> = association.routes.iter().copied().collect();
        let first = |id: &RouteId| self.routes.get(*id).and_then(|route| route.pending.front()).map(|m| m.priority);
        routes.sort_by_key(|id| std::cmp::Reverse(first(id)));
        self.count_secured(stack);
        self.schedule_hello(id);
        for route in routes {
            self.association_opened(now, route);
        }
        self.arm_association(id);
    }

    /// Takes bytes of a connection. Stops at the first message that ends the association.
    pub(crate) fn association_bytes(&mut self, now: Instant, id: AssociationId, bytes: &[u8]) {
        let Some(association) = self.associations.table.get_mut(&id) else { return };
        let messages = association.stream.handle_bytes(bytes);
        let broken = association.stream.is_broken();
        for message in messages {
            let Some(association) = self.associations.table.get_mut(&id) else { return };
            let local = association.local;
            match message {
                Ok(StreamMessage { header, message }) => {
                    association.heard_at = now;
                    association.asked = None;
                    let arrival =
                        Arrival { via: Via::Association(id), header: Some(header), local, destination: local };
                    self.dispatch(now, &arrival, message);
                }
                Err(error) => {
                    let arrival =
                        Arrival { via: Via::Association(id), header: error.context.header, local, destination: local };
                    self.on_malformed(now, &arrival, error);
                }
            }
        }
        if broken {
            self.out.count(Counter::AssociationsFailed);
            self.end_association(now, id, true);
        }
        self.arm_association(id);
    }

    /// Sends a message on an open association; returns whether it is on its way. Whether there is room for an NSLP message the
    /// caller has checked.
    pub(crate) fn send_on_association(&mut self, now: Instant, id: AssociationId, message: &Message) -> bool {
        let Some(association) = self.associations.table.get_mut(&id).filter(|association| association.open) else {
            return false;
        };
        if message.kind != MessageType::Data && !association.backlog.has_room_for_short() {
            self.out.count(Counter::StreamsFull);
            return false;
        }
        association.sent_at = now;
        let bytes = message.emit();
        association.backlog.add(bytes.len());
        let sent = self.out.stream(id, bytes);
        if !sent {
            self.overrun.insert(id);
        }
        sent
    }

    /// Points a row at an association, or at none; wakes or idles the associations concerned.
    pub(crate) fn tie(&mut self, now: Instant, id: RouteId, new: Option<AssociationId>) {
        let Some(route) = self.routes.get_mut(id) else { return };
        let old = std::mem::replace(&mut route.association, new);
        if old == new {
            return;
        }
        route.reliable_sent = false;
        if let Some(association) = old.and_then(|old| self.associations.table.get_mut(&old)) {
            association.routes.remove(&id);
            association.backlog.leave(id);
            if association.routes.is_empty() {
                association.heard_at = now;
                association.asked = None;
            }
        }
        if let Some(association) = new.and_then(|new| self.associations.table.get_mut(&new)) {
            association.routes.insert(id);
        }
        for association in [old, new].into_iter().flatten() {
            self.arm_association(association);
        }
    }

    pub(crate) fn association_timeout(&mut self, now: Instant, id: AssociationId) {
        let Some(association) = self.associations.table.get_mut(&id) else { return };
        association.timer = None;
        if association.backlog.is_behind() {
            // What asks has not reached the peer; whoever writes sees whether it takes anything.
            association.asked = None;
        }
        let due = |at: Option<Instant>| at.is_some_and(|at| now >= at);
        let overdue = due(association.setup_deadline) || due(association.asked.map(|(_, at)| at));
        if overdue {
            self.out.count(Counter::AssociationsFailed);
            self.end_association(now, id, true);
            return;
        }
        if due(association.deadline(self.settings.config().hold_time).map(|(at, _)| at)) {
            if association.routes.is_empty() {
                self.end_association(now, id, true);
                return;
            }
            self.send_hello(now, id);
        }
        self.arm_association(id);
    }

    /// Sends the MA-Hello that keeps the association; it asks for an answer if the peer has been silent for long.
    fn send_hello(&mut self, now: Instant, id: AssociationId) {
        let number = self.rng.random_range(1..=u32::MAX);
        let Some(association) = self.associations.table.get_mut(&id) else { return };
        if association.backlog.is_behind() {
            // It would come after all the rest, which serves as well.
            association.sent_at = now;
            return self.schedule_hello(id);
        }
        let ask = association.asked.is_none() && now.since(association.heard_at) >= self.settings.config().hold_time;
        if ask {
            association.asked = Some((number, now + self.settings.config().hello_timeout));
        }
        let mut hello = Message::new(MessageType::MaHello, 0);
        hello.reply_wanted = ask;
        hello.hello_id = Some(if ask { number } else { 0 });
        self.send_on_association(now, id, &hello);
        self.schedule_hello(id);
    }

    /// Takes an MA-Hello. An answer needs nothing more: any message shows that the peer is there.
    pub(crate) fn on_hello(&mut self, now: Instant, id: AssociationId, message: &Message) {
        let Some(number) = message.hello_id.filter(|&number| number != 0 && message.reply_wanted) else { return };
        let mut hello = Message::new(MessageType::MaHello, 0);
        hello.hello_id = Some(number);
        self.send_on_association(now, id, &hello);
    }

    /// Forgets an association, and tells the rows that used it. `close` if the connection is still there.
    pub(crate) fn end_association(&mut self, now: Instant, id: AssociationId, close: bool) {
        let Some(association) = self.associations.remove(id) else { return };
        self.timers.set(Owner::Association(id), association.timer, None);
        if close {
            self.out.connection(Transmit::Close { association: id });
        }
        let spread = spread_of(association.routes.len());
        for route_id in association.routes {
            let Some(route) = self.routes.get_mut(route_id) else { continue };
            route.association = None;
            let lost = std::mem::take(&mut route.reliable_sent);
            let querying = matches!(route.role, Role::Querier(_));
            if lost {
                self.notify(route_id, Notification::CommunicationFailure);
            }
            if querying {
                self.association_lost(now, route_id, spread);
            }
            self.arm_route(route_id);
        }
    }

    fn count_secured(&mut self, stack: Stack) {
        match stack {
            Stack::Plain => {}
            Stack::Tls => self.out.count(Counter::AssociationsSecured),
        }
    }

    /// Sets the time of the next MA-Hello at random, before the peer's hold time runs out (RFC 5971 §5.2.2).
    pub(crate) fn schedule_hello(&mut self, id: AssociationId) {
        let Some(association) = self.associations.table.get_mut(&id) else { return };
        let hold = association.peer_hold;
        association.hello_after = self.rng.random_range(hold / 2..=hold * 3 / 4);
    }

    fn arm_association(&mut self, id: AssociationId) {
        let at = self.association_deadline(id).map(|(at, _)| at);
        if let Some(association) = self.associations.table.get_mut(&id) {
            let before = std::mem::replace(&mut association.timer, at);
            self.timers.set(Owner::Association(id), before, at);
        }
    }

    pub(crate) fn association_deadline(&self, id: AssociationId) -> Option<Deadline> {
        self.associations.get(id).and_then(|association| association.deadline(self.settings.config().hold_time))
    }
}

/// Returns the stack of a connection, the name in its peer's certificate, and what flows that is for.
fn carried(channel: Channel) -> (Stack, Option<String>, FlowScope) {
    match channel {
        Channel::Plain => (Stack::Plain, None, FlowScope::default()),
        Channel::Tls { peer, flows } => (Stack::Tls, peer, flows),
    }
}

/// Returns within which time so many rows look for their peer again: few do at once, and many one after the other.
fn spread_of(rows: usize) -> Duration {
    let more = u32::try_from(rows.saturating_sub(limits::REHANDSHAKES_AT_ONCE_MAX)).unwrap_or(u32::MAX);
    Duration::from_secs(1) * more / limits::REHANDSHAKES_PER_SECOND
}

/// Returns what a peer's connections are counted under: whoever has one address of an IPv6 network has all 2⁶⁴ of it.
fn whose(peer: SocketAddr) -> IpAddr {
    share::network(peer.ip(), 32, 64)
}
