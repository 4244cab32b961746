// SPDX-License-Identifier: Apache-2.0
//! What the beginning and the end of connections mean for rows.

use std::cmp::Reverse;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use netserv_model::Instant;
use netserv_wire::gist::{Message, Nli, StreamMessage};

use crate::api::{AssociationId, Channel, Counter, Notification, RouteId};
use crate::associations::stack::Stack;
use crate::associations::{Associations, Connected, Room};
use crate::context::{Context, Deadline};
use crate::engine::{Arrival, Engine, Via};
use crate::limits;
use crate::routing::Role;

impl Engine {
    fn lend(&mut self, now: Instant) -> (Context<'_>, &mut Associations) {
        let Engine { settings, rng, timers, out, associations, .. } = self;
        (Context { now, settings, random: rng, timers, out }, associations)
    }

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
        if !self.make_room(now, self.associations.room_to_open(self.settings.config())) {
            self.out.count(Counter::AssociationsRefused);
            return None;
        }
        let (mut cx, associations) = self.lend(now);
        Some(associations.open(&mut cx, local, nli, (stack, port), hold_time))
    }

    /// Takes a connection from a peer, which has to prove itself soon.
    pub(crate) fn accept_association(
        &mut self,
        now: Instant,
        local: IpAddr,
        peer: SocketAddr,
        channel: Channel,
    ) -> AssociationId {
        let has_room = self.make_room(now, self.associations.room_to_accept(self.settings.config(), peer, &channel));
        let (mut cx, associations) = self.lend(now);
        if has_room { associations.accept(&mut cx, local, peer, channel) } else { associations.refuse(&mut cx) }
    }

    /// Makes room for one more connection, if there has to be; returns whether there is.
    fn make_room(&mut self, now: Instant, room: Room) -> bool {
        match room {
            Room::Free => true,
            Room::InPlaceOf(id) => {
                self.out.count(Counter::AssociationsEvicted);
                self.end_association(now, id, true);
                true
            }
            Room::Full => false,
        }
    }

    pub(crate) fn association_connected(&mut self, now: Instant, id: AssociationId, channel: Channel) {
        let (mut cx, associations) = self.lend(now);
        match associations.connected(&mut cx, id, channel) {
            Connected::Unknown => {}
            Connected::Unfit => {
                self.out.count(Counter::AssociationsFailed);
                self.end_association(now, id, true);
            }
            Connected::Open(mut rows) => {
                let first =
                    |id: &RouteId| self.routes.get(*id).and_then(|route| route.pending.front()).map(|m| m.priority);
                rows.sort_by_key(|id| Reverse(first(id)));
                for row in rows {
                    self.association_opened(now, row);
                }
                let (mut cx, associations) = self.lend(now);
                associations.arm(&mut cx, id);
            }
        }
    }

    /// Takes bytes of a connection. Stops at the first message that ends the association.
    pub(crate) fn association_bytes(&mut self, now: Instant, id: AssociationId, bytes: &[u8]) {
        let Some(received) = self.associations.read(id, bytes) else { return };
        for message in received.messages {
            let Some(local) = self.associations.local(id) else { return };
            match message {
                Ok(StreamMessage { header, message }) => {
                    self.associations.heard(now, id);
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
        if received.broken {
            self.out.count(Counter::AssociationsFailed);
            self.end_association(now, id, true);
        }
        let (mut cx, associations) = self.lend(now);
        associations.arm(&mut cx, id);
    }

    pub(crate) fn send_on_association(&mut self, now: Instant, id: AssociationId, message: &Message) -> bool {
        let (mut cx, associations) = self.lend(now);
        associations.send(&mut cx, id, message)
    }

    pub(crate) fn on_hello(&mut self, now: Instant, id: AssociationId, message: &Message) {
        let (mut cx, associations) = self.lend(now);
        associations.on_hello(&mut cx, id, message);
    }

    pub(crate) fn prove_association(
        &mut self,
        now: Instant,
        id: AssociationId,
        nli: &Nli,
        hold_time: Option<Duration>,
    ) {
        let (mut cx, associations) = self.lend(now);
        associations.prove(&mut cx, id, nli, hold_time);
    }

    /// Points a row at an association, or at none; wakes or idles the associations concerned.
    pub(crate) fn tie(&mut self, now: Instant, id: RouteId, new: Option<AssociationId>) {
        let Some(route) = self.routes.get_mut(id) else { return };
        let old = std::mem::replace(&mut route.association, new);
        if old == new {
            return;
        }
        route.reliable_sent = false;
        let (mut cx, associations) = self.lend(now);
        associations.tie(&mut cx, id, old, new);
    }

    pub(crate) fn association_timeout(&mut self, now: Instant, id: AssociationId) {
        let (mut cx, associations) = self.lend(now);
        if associations.timeout(&mut cx, id) {
            self.end_association(now, id, true);
        }
    }

    /// Forgets an association, and tells the rows that used it. `close` if the connection is still there.
    pub(crate) fn end_association(&mut self, now: Instant, id: AssociationId, close: bool) {
        let (mut cx, associations) = self.lend(now);
        let Some(rows) = associations.end(&mut cx, id, close) else { return };
        let spread = spread_of(rows.len());
        for route_id in rows {
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

    /// Takes that a connection has taken so many bytes more of what [`Transmit::Stream`](crate::Transmit::Stream) has. Whoever
    /// writes says so after [`limits::STREAM_REPORT_BYTES`] at the latest, and need not for fewer.
    pub fn handle_written(&mut self, now: Instant, id: AssociationId, bytes: usize) {
        if self.associations.written(id, bytes) {
            while let Some(row) = self.associations.next_waiting(id) {
                self.flush(now, row);
                self.arm_route(row);
            }
        }
        self.close_overrun(now);
    }

    /// Notes whether messages of a row wait for room on its connection; to be called after any went or came.
    pub(crate) fn note_backlog(&mut self, id: RouteId) {
        let Some(route) = self.routes.get(id) else { return };
        let Some(association) = route.association else { return };
        let first = route.pending.front().filter(|_| !self.associations.has_room(association));
        let bytes = || route.pending.iter().map(|message| message.data.len()).sum();
        self.associations.note_waiting(association, id, first.map(|first| (first.priority, bytes())));
    }

    pub(crate) fn association_deadline(&self, id: AssociationId) -> Option<Deadline> {
        self.associations.deadline(id, self.settings.config().hold_time)
    }
}

/// Returns within which time so many rows look for their peer again: few do at once, and many one after the other.
fn spread_of(rows: usize) -> Duration {
    let more = u32::try_from(rows.saturating_sub(limits::REHANDSHAKES_AT_ONCE_MAX)).unwrap_or(u32::MAX);
    Duration::from_secs(1) * more / limits::REHANDSHAKES_PER_SECOND
}
