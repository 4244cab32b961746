// SPDX-License-Identifier: Apache-2.0
//! What waits to be polled, with its bounds, and the counters.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use netserv_model::Instant;
use netserv_wire::gist::{Message, Mri};

use super::bucket::TokenBucket;
use super::networks::NetworkBuckets;
use super::path_mtu::PathMtus;
use crate::api::{AssociationId, Audience, Config, Counter, Counters, Event, Transmit};
use crate::limits;

#[derive(Debug)]
pub(crate) struct Outbox {
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event>,
    counters: Counters,
    /// For all datagrams.
    datagrams: TokenBucket,
    /// For datagrams to addresses that nobody has proven.
    unproven: NetworkBuckets,
    /// For Errors by datagram.
    errors: TokenBucket,
    /// How long datagrams may be.
    pub(crate) path_mtus: PathMtus,
}

impl Outbox {
    pub(crate) fn new(config: &Config, secret: [u8; 32]) -> Outbox {
        Outbox {
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            datagrams: TokenBucket::new(config.send_rate),
            unproven: NetworkBuckets::new(config.unproven_rate, secret),
            errors: TokenBucket::new(config.error_rate),
            path_mtus: PathMtus::default(),
        }
    }

    /// Queues a message in normal D-mode, unless there were too many lately, in all or to a network of the unproven.
    pub(crate) fn send_to(
        &mut self,
        now: Instant,
        audience: Audience,
        (local, peer): (IpAddr, SocketAddr),
        ttl: Option<u8>,
        message: &Message,
    ) -> bool {
        let proven = match audience {
            Audience::Peer => true,
            Audience::Querier | Audience::Offender | Audience::BehindNat => false,
        };
        if !proven && !self.unproven.take(now, peer.ip()) {
            self.count(Counter::UnprovenLimited);
            return false;
        }
        self.datagram(now, Transmit::Datagram { audience, local, peer, ttl, payload: message.emit_datagram() })
    }

    /// Queues a message along its flow, with the value of its NSLP's Router Alert Option, unless there were too many lately.
    pub(crate) fn send_along_flow(
        &mut self,
        now: Instant,
        (local, destination): (IpAddr, IpAddr),
        ttl: u8,
        rao: Option<u16>,
        message: &Message,
    ) -> bool {
        // RFC 5971 §5.8.1.2: what routers choose the flow's path by, they choose the message's by.
        let (dscp, flow_label) = match &message.mri {
            Some(Mri::PathCoupled(flow)) => (flow.dscp(), flow.flow_label()),
            Some(Mri::LooseEnd(_) | Mri::Other(_)) | None => (None, None),
        };
        let (ttl, payload) = (Some(ttl), message.emit_datagram());
        self.datagram(now, Transmit::QMode { local, destination, ttl, rao, dscp, flow_label, payload })
    }

    /// Queues a datagram of this node's own, of whatever type, unless there were too many lately.
    fn datagram(&mut self, now: Instant, transmit: Transmit) -> bool {
        if self.transmits.len() >= limits::TRANSMITS_MAX {
            self.count(Counter::TransmitsDropped);
            return false;
        }
        if !self.datagrams.take(now) {
            self.count(Counter::DatagramsLimited);
            return false;
        }
        self.transmits.push_back(transmit);
        true
    }

    /// Returns whether one more Error may go by datagram.
    pub(crate) fn may_send_error(&mut self, now: Instant) -> bool {
        self.errors.take(now)
    }

    /// Queues bytes of a connection. If this fails the connection has lost bytes and must be closed.
    pub(crate) fn stream(&mut self, association: AssociationId, bytes: Vec<u8>) -> bool {
        if self.transmits.len() >= limits::TRANSMITS_MAX {
            self.count(Counter::TransmitsDropped);
            return false;
        }
        self.transmits.push_back(Transmit::Stream { association, bytes });
        true
    }

    /// Queues the opening or the end of a connection: at most one of each per association, so these need no bound.
    pub(crate) fn connection(&mut self, transmit: Transmit) {
        self.transmits.push_back(transmit);
    }

    pub(crate) fn event(&mut self, event: Event) {
        if self.events.len() >= limits::EVENTS_MAX {
            self.count(Counter::EventsDropped);
            return;
        }
        self.events.push_back(event);
    }

    pub(crate) fn count(&mut self, counter: Counter) {
        self.counters.add(counter);
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
