// SPDX-License-Identifier: Apache-2.0
//! Paths that take shorter packets than usual (RFC 5971 §5.3.3, RFC 1191, RFC 8201), as far as ICMP errors told of them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use netserv_model::Instant;
use netserv_wire::gist::{Message, MessageType, strip_magic};

use crate::api::{Counter, IcmpError, IcmpKind, NoPeerReason};
use crate::engine::Engine;
use crate::limits;
use crate::routing::RouteKey;

/// The longest packets toward addresses, each for a time.
#[derive(Debug, Default)]
pub(crate) struct PathMtus {
    known: BTreeMap<IpAddr, (u16, Instant)>,
    order: BTreeSet<(Instant, IpAddr)>,
}

impl PathMtus {
    /// Takes the length of the longest packet that gets to an address. The one that is known for longest goes if there are too
    /// many.
    pub(crate) fn learn(&mut self, now: Instant, target: IpAddr, mtu: u16) {
        let least = if target.is_ipv4() { limits::PATH_MTU_V4_MIN } else { limits::PATH_MTU_V6_MIN };
        let until = now + limits::PATH_MTU_TIME;
        if let Some((_, earlier)) = self.known.insert(target, (mtu.max(least), until)) {
            self.order.remove(&(earlier, target));
        }
        self.order.insert((until, target));
        if self.order.len() > limits::PATH_MTUS_MAX
            && let Some((_, first)) = self.order.pop_first()
        {
            self.known.remove(&first);
        }
    }

    /// Returns the length of the longest packet that gets to an address, if it was told lately.
    pub(crate) fn toward(&self, now: Instant, target: IpAddr) -> Option<u16> {
        self.known.get(&target).filter(|(_, until)| now < *until).map(|(mtu, _)| *mtu)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
}

impl Engine {
    /// Returns the longest GIST message that may go to an address by datagram.
    pub(crate) fn datagram_bytes_max(&self, now: Instant, target: IpAddr) -> usize {
        let known = self.path_mtus.toward(now, target).map(|mtu| usize::from(mtu).saturating_sub(ALLOWANCE_BYTES));
        known.unwrap_or(usize::MAX).min(self.config.datagram_bytes_max)
    }

    /// Returns the MTU of the path to an address that a datagram for somebody else is too long for, if it is known.
    pub(crate) fn too_long_for(&self, now: Instant, target: IpAddr, payload: &[u8]) -> Option<u16> {
        let headers = if target.is_ipv4() { V4_HEADER_BYTES } else { V6_HEADER_BYTES };
        self.path_mtus.toward(now, target).filter(|mtu| headers + payload.len() > usize::from(*mtu))
    }

    /// Takes that a datagram of this node is too long for its path. What shows that its sender saw it, the cookie of a Query or
    /// the session of a row, makes it count; the next messages keep to the length or go over a connection. What a peer's Error says of a length is
    /// about its row alone: a peer must not keep others' messages from passing here.
    pub(crate) fn on_too_big(&mut self, now: Instant, mtu: u16, error: &IcmpError) {
        let Some(message) = strip_magic(&error.quoted).and_then(|bytes| Message::parse(bytes).ok()) else {
            self.out.count(Counter::IcmpUnmatched);
            return;
        };
        if message.kind == MessageType::Query {
            let Some((id, target)) = self.waiting_query(&error.quoted) else {
                self.out.count(Counter::IcmpUnmatched);
                return;
            };
            self.out.count(Counter::IcmpHindered);
            self.path_mtus.learn(now, target, mtu);
            if let Some(reporter) = error.reporter {
                self.note_hindrance(id, NoPeerReason::Hindered { kind: IcmpKind::TooBig { mtu }, reporter });
            }
            return;
        }
        let key = message.session.zip(message.mri);
        let key = key.map(|(session, mri)| RouteKey { session, nslp_id: message.nslp_id, mri });
        let id = key.and_then(|key| self.routes.find_meant(&key));
        let route = id.and_then(|id| self.routes.get(id));
        let peer = route.and_then(|route| route.peer).and_then(|sii| self.peers.get(sii));
        let (Some(id), Some(address)) = (id, peer.map(|peer| peer.address)) else {
            self.out.count(Counter::IcmpUnmatched);
            return;
        };
        self.out.count(Counter::IcmpHindered);
        self.path_mtus.learn(now, address, mtu);
        self.ask_for_association(now, id);
    }
}

/// What headers may take of a packet, options included (RFC 5971 §5.3.3).
const ALLOWANCE_BYTES: usize = 64;
/// IPv4 with Router Alert, or IPv6 with its hop-by-hop header, and UDP.
const V4_HEADER_BYTES: usize = 32;
const V6_HEADER_BYTES: usize = 56;
