// SPDX-License-Identifier: Apache-2.0
//! Messaging associations (RFC 5971 §4.4.3, §5.7, §6.5): connections that rows share, kept alive by MA-Hellos.

mod association;
mod backlog;
mod invitations;
pub(crate) mod stack;
mod table;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use netserv_model::Instant;
use netserv_wire::gist::{DecodeError, Message, MessageType, Mri, Nli, StreamMessage};
use rand::RngExt;

use self::association::Association;
use self::invitations::{Invitations, Invited};
use self::stack::Stack;
use self::table::{AssociationTable, opener};
use crate::api::{AssociationId, Channel, Config, Counter, FlowScope, RouteId, Transmit};
use crate::cx::{Cx, Deadline, Owner};
use crate::limits;

/// All associations. Rows are only known by their numbers here: what becomes of them is for the caller.
#[derive(Debug, Default)]
pub(crate) struct Associations {
    table: AssociationTable,
    invitations: Invitations,
    /// Those that lost bytes for want of room, to be ended before the call of the engine returns.
    overrun: BTreeSet<AssociationId>,
}

/// Whether there is room for one more association.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Room {
    Free,
    /// If this one ends.
    InPlaceOf(AssociationId),
    Full,
}

/// What a connection that was opened is good for.
#[derive(Debug)]
pub(crate) enum Connected {
    /// Nobody waits for it.
    Unknown,
    /// It is not what was agreed on, and has to end.
    Mismatch,
    /// These rows can use it.
    Open(Vec<RouteId>),
}

/// What came over a connection.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) messages: Vec<Result<StreamMessage, DecodeError>>,
    /// Nothing can be read from it any more.
    pub(crate) broken: bool,
}

impl Associations {
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn contains(&self, id: AssociationId) -> bool {
        self.table.get(id).is_some()
    }

    pub(crate) fn is_open(&self, id: AssociationId) -> bool {
        self.table.get(id).is_some_and(|association| association.open)
    }

    /// Returns this node's address on the connection.
    pub(crate) fn local(&self, id: AssociationId) -> Option<IpAddr> {
        self.table.get(id).map(|association| association.local)
    }

    /// Returns the other end of the connection.
    pub(crate) fn peer(&self, id: AssociationId) -> Option<SocketAddr> {
        self.table.get(id).map(|association| association.peer)
    }

    /// Returns the peer's identity and address, once a handshake has shown them.
    pub(crate) fn name(&self, id: AssociationId) -> Option<(&[u8], IpAddr)> {
        let name = self.table.get(id)?.name.as_ref();
        name.map(|(identity, address)| (identity.as_slice(), *address))
    }

    /// Returns the name in the peer's certificate, if it showed one.
    pub(crate) fn certified(&self, id: AssociationId) -> Option<&str> {
        self.table.get(id)?.certified.as_deref()
    }

    pub(crate) fn stack(&self, id: AssociationId) -> Option<Stack> {
        self.table.get(id).map(|association| association.stack)
    }

    /// Returns whether messages that need a stack may go over the association.
    pub(crate) fn has_stack(&self, id: AssociationId, least: Stack) -> bool {
        self.stack(id).is_some_and(|stack| stack >= least)
    }

    /// Returns whether the association is open and its peer was heard within the hold time.
    pub(crate) fn is_alive(&self, id: AssociationId, now: Instant, hold_time: Duration) -> bool {
        self.table.get(id).is_some_and(|association| association.open && now.since(association.heard_at) < hold_time)
    }

    /// Returns whether the association's peer may speak about a flow, as far as it is known who that is (RFC 5971 §4.4.2).
    pub(crate) fn may_carry(&self, id: AssociationId, mri: &Mri) -> bool {
        self.table.get(id).is_some_and(|association| association.flows.allows(mri))
    }

    /// Returns whether an NSLP message may be added to what the connection has not taken yet.
    pub(crate) fn has_room(&self, id: AssociationId) -> bool {
        self.table.get(id).is_some_and(|association| association.backlog.has_room())
    }

    /// Returns whether so many bytes more may wait for room on the connection.
    pub(crate) fn may_wait(&self, id: AssociationId, bytes: usize) -> bool {
        self.table.get(id).is_none_or(|association| association.backlog.may_wait(bytes))
    }

    /// Returns the association whose peer has this identity and address, and whose stack is this or a better one.
    pub(crate) fn find(&self, nli: &Nli, least: Stack) -> Option<AssociationId> {
        self.table.find(&nli.peer_identity, nli.address, least)
    }

    /// Returns the association with a peer whose stack is this or a better one, if it is open. For what does no harm elsewhere,
    /// one with another address of the same node, as it calls itself, will do.
    pub(crate) fn open_to(
        &self,
        (identity, address): (&[u8], IpAddr),
        least: Stack,
        anywhere: bool,
    ) -> Option<AssociationId> {
        let others = anywhere.then(|| self.table.of_node(identity, least)).into_iter().flatten();
        self.table.find(identity, address, least).into_iter().chain(others).find(|id| self.is_open(*id))
    }

    /// Takes that a peer may open a connection: it was sent a responder cookie to bring along.
    pub(crate) fn invite(&mut self, now: Instant, peer: SocketAddr) {
        self.invitations.add(now, opener(peer));
    }

    /// Returns whether this node may open one more connection: what nobody has proven goes first.
    pub(crate) fn room_to_open(&self, config: &Config) -> Room {
        if self.table.len() < config.associations_max { Room::Free } else { in_place_of(self.table.oldest_unproven()) }
    }

    /// Returns whether a peer may open one more connection. What nobody has proven goes first, what was not invited before the
    /// rest, oldest first, and never for a peer that has its share already: it gives up one of its own.
    pub(crate) fn room_to_accept(&self, config: &Config, peer: SocketAddr, channel: &Channel) -> Room {
        if !config.tls.stacks().contains(&stack_of(channel)) {
            return Room::Full;
        }
        if self.table.accepted_from(peer) >= config.associations_per_peer_max {
            return in_place_of(self.table.oldest_unproven_of(peer));
        }
        let full = self.table.len() >= config.associations_max;
        if full || self.table.unproven() >= limits::ASSOCIATIONS_UNPROVEN_MAX {
            return in_place_of(self.table.oldest_unproven());
        }
        Room::Free
    }

    /// Opens a connection to a peer; the caller has made room.
    pub(crate) fn open(
        &mut self,
        cx: &mut Cx<'_>,
        local: IpAddr,
        nli: &Nli,
        (stack, port): (Stack, u16),
        hold_time: Duration,
    ) -> AssociationId {
        let peer = SocketAddr::new(nli.address, port);
        let setup_deadline = cx.now + cx.config().connect_timeout;
        let mut association = Association::new(cx.now, local, peer, stack, setup_deadline);
        association.name = Some((nli.peer_identity.clone(), nli.address));
        association.introduction_due = true;
        association.peer_hold = hold_time.clamp(limits::PEER_TIME_MIN, limits::PEER_TIME_MAX);
        let id = self.table.insert(association);
        cx.out.count(Counter::AssociationsOpened);
        cx.out.connection(Transmit::Connect { association: id, local, peer, tls: stack == Stack::Tls });
        self.arm(cx, id);
        id
    }

    /// Takes a connection from a peer, which has to prove itself soon; the caller has made room.
    pub(crate) fn accept(
        &mut self,
        cx: &mut Cx<'_>,
        local: IpAddr,
        peer: SocketAddr,
        channel: Channel,
    ) -> AssociationId {
        let stack = stack_of(&channel);
        let invited = self.invitations.has(cx.now, opener(peer));
        let connect_timeout = cx.config().connect_timeout;
        let half_open_time = if invited { connect_timeout } else { self.half_open_time(connect_timeout) };
        let mut association = Association::new(cx.now, local, peer, stack, cx.now + half_open_time);
        (association.open, association.accepted) = (true, true);
        (association.certified, association.flows) = shown(channel);
        association.invited = Invited(invited);
        let id = self.table.insert(association);
        cx.out.count(Counter::AssociationsAccepted);
        count_secured(cx, stack);
        self.arm(cx, id);
        id
    }

    /// Closes a connection for which there is no room.
    pub(crate) fn refuse(&mut self, cx: &mut Cx<'_>) -> AssociationId {
        cx.out.count(Counter::AssociationsRefused);
        let association = self.table.next_id();
        cx.out.connection(Transmit::Close { association });
        association
    }

    /// Returns how long a stranger's connection may stay unproven: less, the more there are.
    fn half_open_time(&self, connect_timeout: Duration) -> Duration {
        let places = u32::try_from(limits::ASSOCIATIONS_UNPROVEN_MAX).expect("there are few");
        let free = places.saturating_sub(u32::try_from(self.table.unproven()).unwrap_or(places));
        (connect_timeout * free / places).max(limits::HALF_OPEN_TIME_MIN).min(connect_timeout)
    }

    /// Takes that a connection is open, and what it leads to. [`Associations::arm`] has to follow.
    pub(crate) fn connected(&mut self, cx: &mut Cx<'_>, id: AssociationId, channel: Channel) -> Connected {
        let Some(association) = self.table.get_mut(id).filter(|association| !association.open) else {
            return Connected::Unknown;
        };
        let stack = stack_of(&channel);
        let (certified, flows) = shown(channel);
        // Who accepts always shows a certificate; and nothing goes over less than what was agreed on.
        if stack != association.stack || (stack == Stack::Tls && certified.is_none()) {
            return Connected::Mismatch;
        }
        (association.certified, association.flows) = (certified, flows);
        association.open = true;
        association.setup_deadline = None;
        (association.heard_at, association.sent_at) = (cx.now, cx.now);
        let rows = association.routes.iter().copied().collect();
        count_secured(cx, stack);
        self.schedule_hello(cx, id);
        Connected::Open(rows)
    }

    /// Takes who the peer of an accepted connection is, and how long it holds the connection if it says so.
    pub(crate) fn prove(&mut self, cx: &mut Cx<'_>, id: AssociationId, nli: &Nli, hold_time: Option<Duration>) {
        let Some(association) = self.table.get_mut(id) else { return };
        if let Some(hold_time) = hold_time {
            association.peer_hold = hold_time.clamp(limits::PEER_TIME_MIN, limits::PEER_TIME_MAX);
        }
        self.table.name(id, &nli.peer_identity, nli.address);
        if hold_time.is_some() {
            self.schedule_hello(cx, id);
        }
    }

    /// Returns whether this is the first Confirm on a connection from here, which has to tell the hold time.
    pub(crate) fn introduce(&mut self, id: AssociationId) -> bool {
        self.table.get_mut(id).is_some_and(|association| std::mem::take(&mut association.introduction_due))
    }

    /// Takes bytes of a connection. [`Associations::arm`] has to follow.
    pub(crate) fn read(&mut self, id: AssociationId, bytes: &[u8]) -> Option<Received> {
        let association = self.table.get_mut(id)?;
        let messages = association.stream.handle_bytes(bytes);
        Some(Received { messages, broken: association.stream.is_broken() })
    }

    /// Takes that a message came, which shows that the peer is there.
    pub(crate) fn heard(&mut self, now: Instant, id: AssociationId) {
        let Some(association) = self.table.get_mut(id) else { return };
        association.heard_at = now;
        association.asked = None;
    }

    /// Sends a message on an open association; returns whether it is on its way. Whether there is room for an NSLP message the
    /// caller has checked.
    pub(crate) fn send(&mut self, cx: &mut Cx<'_>, id: AssociationId, message: &Message) -> bool {
        let Some(association) = self.table.get_mut(id).filter(|association| association.open) else {
            return false;
        };
        if message.kind != MessageType::Data && !association.backlog.has_room_for_short() {
            cx.out.count(Counter::StreamsFull);
            return false;
        }
        association.sent_at = cx.now;
        let bytes = message.emit();
        association.backlog.add(bytes.len());
        let sent = cx.out.stream(id, bytes);
        if !sent {
            self.overrun.insert(id);
        }
        sent
    }

    /// Returns an association that lost bytes, once.
    pub(crate) fn take_overrun(&mut self) -> Option<AssociationId> {
        self.overrun.pop_first()
    }

    /// Takes that so many bytes were written, and returns whether rows that wait for room may go on.
    pub(crate) fn written(&mut self, id: AssociationId, bytes: usize) -> bool {
        self.table.get_mut(id).is_some_and(|association| association.backlog.written(bytes))
    }

    /// Returns the row whose turn it is to send, if there is room; it waits no more.
    pub(crate) fn next_waiting(&mut self, id: AssociationId) -> Option<RouteId> {
        self.table.get_mut(id)?.backlog.next()
    }

    /// Notes whether messages of a row wait for room: the priority of the first, and the bytes of all.
    pub(crate) fn note_waiting(&mut self, id: AssociationId, row: RouteId, waiting: Option<(u8, usize)>) {
        let Some(association) = self.table.get_mut(id) else { return };
        match waiting {
            Some((priority, bytes)) => association.backlog.wait(row, priority, bytes),
            None => drop(association.backlog.leave(row)),
        }
    }

    /// Takes that a row uses another association; wakes or idles those concerned.
    pub(crate) fn attach(
        &mut self,
        cx: &mut Cx<'_>,
        row: RouteId,
        old: Option<AssociationId>,
        new: Option<AssociationId>,
    ) {
        if let Some(association) = old.and_then(|old| self.table.get_mut(old)) {
            association.routes.remove(&row);
            association.backlog.leave(row);
            if association.routes.is_empty() {
                association.heard_at = cx.now;
                association.asked = None;
            }
        }
        if let Some(association) = new.and_then(|new| self.table.get_mut(new)) {
            association.routes.insert(row);
        }
        for association in [old, new].into_iter().flatten() {
            self.arm(cx, association);
        }
    }

    /// Does what is due, and returns whether the association has to end.
    pub(crate) fn timeout(&mut self, cx: &mut Cx<'_>, id: AssociationId) -> bool {
        let Some(association) = self.table.get_mut(id) else { return false };
        association.timer = None;
        if association.backlog.is_behind() {
            // What asks has not reached the peer; whoever writes sees whether it takes anything.
            association.asked = None;
        }
        let due = |at: Option<Instant>| at.is_some_and(|at| cx.now >= at);
        let overdue = due(association.setup_deadline) || due(association.asked.map(|(_, at)| at));
        if overdue {
            cx.out.count(Counter::AssociationsFailed);
            return true;
        }
        if due(association.deadline(cx.config().hold_time).map(|(at, _)| at)) {
            if association.routes.is_empty() {
                return true;
            }
            self.send_hello(cx, id);
        }
        self.arm(cx, id);
        false
    }

    /// Sends the MA-Hello that keeps the association; it asks for an answer if the peer has been silent for long.
    fn send_hello(&mut self, cx: &mut Cx<'_>, id: AssociationId) {
        let number = cx.random.random_range(1..=u32::MAX);
        let Some(association) = self.table.get_mut(id) else { return };
        if association.backlog.is_behind() {
            // It would come after all the rest, which serves as well.
            association.sent_at = cx.now;
            return self.schedule_hello(cx, id);
        }
        let ask = association.asked.is_none() && cx.now.since(association.heard_at) >= cx.config().hold_time;
        if ask {
            association.asked = Some((number, cx.now + cx.config().hello_timeout));
        }
        let mut hello = Message::new(MessageType::MaHello, 0);
        hello.reply_wanted = ask;
        hello.hello_id = Some(if ask { number } else { 0 });
        self.send(cx, id, &hello);
        self.schedule_hello(cx, id);
    }

    /// Takes an MA-Hello. An answer needs nothing more: any message shows that the peer is there.
    pub(crate) fn on_hello(&mut self, cx: &mut Cx<'_>, id: AssociationId, message: &Message) {
        let Some(number) = message.hello_id.filter(|&number| number != 0 && message.reply_wanted) else { return };
        let mut hello = Message::new(MessageType::MaHello, 0);
        hello.hello_id = Some(number);
        self.send(cx, id, &hello);
    }

    /// Forgets an association and returns the rows that used it. `close` if the connection is still there.
    pub(crate) fn end(&mut self, cx: &mut Cx<'_>, id: AssociationId, close: bool) -> Option<BTreeSet<RouteId>> {
        let association = self.table.remove(id)?;
        cx.timers.set(Owner::Association(id), association.timer, None);
        if close {
            cx.out.connection(Transmit::Close { association: id });
        }
        Some(association.routes)
    }

    /// Sets the time of the next MA-Hello at random, before the peer's hold time runs out (RFC 5971 §5.2.2).
    fn schedule_hello(&mut self, cx: &mut Cx<'_>, id: AssociationId) {
        let Some(association) = self.table.get_mut(id) else { return };
        let hold = association.peer_hold;
        association.hello_after = cx.random.random_range(hold / 2..=hold * 3 / 4);
    }

    /// Sets the association's timer anew.
    pub(crate) fn arm(&mut self, cx: &mut Cx<'_>, id: AssociationId) {
        let at = self.deadline(id, cx.config().hold_time).map(|(at, _)| at);
        if let Some(association) = self.table.get_mut(id) {
            let before = std::mem::replace(&mut association.timer, at);
            cx.timers.set(Owner::Association(id), before, at);
        }
    }

    pub(crate) fn deadline(&self, id: AssociationId, hold_time: Duration) -> Option<Deadline> {
        self.table.get(id).and_then(|association| association.deadline(hold_time))
    }
}

fn in_place_of(id: Option<AssociationId>) -> Room {
    id.map_or(Room::Full, Room::InPlaceOf)
}

fn stack_of(channel: &Channel) -> Stack {
    match channel {
        Channel::Plain => Stack::Plain,
        Channel::Tls { .. } => Stack::Tls,
    }
}

/// Returns the name in the certificate of a connection's peer, and what flows that is for.
fn shown(channel: Channel) -> (Option<String>, FlowScope) {
    match channel {
        Channel::Plain => (None, FlowScope::default()),
        Channel::Tls { peer, flows } => (peer, flows),
    }
}

fn count_secured(cx: &mut Cx<'_>, stack: Stack) {
    match stack {
        Stack::Plain => {}
        Stack::Tls => cx.out.count(Counter::AssociationsSecured),
    }
}
