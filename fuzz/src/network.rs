// SPDX-License-Identifier: Apache-2.0
//! A network between two nodes on the path of one flow, which loses, repeats, damages and breaks as a script says.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use netserv_gist::{AssociationId, IcmpError, IcmpKind, Transmit};

use crate::input::Input;

pub(crate) const ADDRESSES: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2))];
pub(crate) const FLOW_DESTINATION: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 9));
/// Packets under way; more are lost.
const IN_FLIGHT_MAX: usize = 64;

#[derive(Default)]
pub(crate) struct Network {
    datagrams: Vec<Flight>,
    /// In order, as TCP keeps it.
    segments: VecDeque<(usize, Segment)>,
    /// The associations at both ends of each connection, as far as they are there.
    pub(crate) connections: Vec<[Option<AssociationId>; 2]>,
}

/// A datagram under way.
#[derive(Clone)]
pub(crate) struct Flight {
    pub(crate) to: usize,
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) payload: Vec<u8>,
}

/// What happens on a connection.
pub(crate) enum Segment {
    Connect { from: usize, association: AssociationId, tls: bool },
    Bytes { from: usize, bytes: Vec<u8> },
    Close { from: usize },
}

impl Network {
    /// Takes what a node sends.
    pub(crate) fn carry(&mut self, from: usize, transmit: Transmit) {
        let to = 1 - from;
        match transmit {
            Transmit::QMode { local, destination, payload, .. } => {
                self.datagrams.push(Flight { to, source: local, destination, payload });
            }
            Transmit::Datagram { local, peer, payload, .. } => {
                self.datagrams.push(Flight { to, source: local, destination: peer.ip(), payload });
            }
            Transmit::Connect { association, tls, .. } => {
                let mut ends = [None; 2];
                ends[from] = Some(association);
                self.connections.push(ends);
                self.segments.push_back((self.connections.len() - 1, Segment::Connect { from, association, tls }));
            }
            Transmit::Stream { association, bytes } => self.push(from, association, Segment::Bytes { from, bytes }),
            Transmit::Close { association } => self.push(from, association, Segment::Close { from }),
        }
    }

    fn push(&mut self, from: usize, association: AssociationId, segment: Segment) {
        if let Some(connection) = self.connection(from, association) {
            self.segments.push_back((connection, segment));
        }
    }

    /// A connection that broke has no ends any more.
    fn connection(&self, at: usize, association: AssociationId) -> Option<usize> {
        self.connections.iter().position(|ends| ends[at] == Some(association))
    }

    /// Forgets a node's end of a connection that the node closed.
    pub(crate) fn leave(&mut self, at: usize, association: AssociationId) {
        if let Some(connection) = self.connection(at, association) {
            self.connections[connection][at] = None;
        }
    }

    /// Sends a node what the script makes up, after the magic number.
    pub(crate) fn make_up(&mut self, to: usize, script: &mut Input<'_>) {
        let length = usize::from(script.byte());
        let payload = [&b"\x4E\x04\xBD\xA5"[..], script.take(length)].concat();
        self.datagrams.push(Flight { to, source: ADDRESSES[1 - to], destination: ADDRESSES[to], payload });
    }

    /// Returns an ICMP error, most of which bring back a datagram under way, whole or cut off.
    pub(crate) fn icmp_error(&self, script: &mut Input<'_>) -> IcmpError {
        let what = script.byte();
        let kind = if what & 1 == 0 { IcmpKind::Port } else { IcmpKind::Prohibited };
        let reporter = [Some(FLOW_DESTINATION), Some(FLOW_DESTINATION), Some(ADDRESSES[0]), None];
        let flight = self.datagrams.get(usize::from(what >> 3) % self.datagrams.len().max(1));
        let mut quoted = flight.map_or_else(Vec::new, |flight| flight.payload.clone());
        quoted.truncate(quoted.len().saturating_sub(usize::from(script.byte() >> 3)));
        IcmpError { kind, reporter: reporter[usize::from(what >> 1 & 3)], quoted }
    }

    /// Repeats a datagram under way.
    pub(crate) fn repeat(&mut self, script: &mut Input<'_>) {
        let index = usize::from(script.byte());
        if let Some(flight) = self.datagrams.get(index % self.datagrams.len().max(1)).cloned() {
            self.datagrams.push(flight);
        }
    }

    /// Changes a byte of the last datagram.
    pub(crate) fn damage(&mut self, script: &mut Input<'_>) {
        let (place, value) = (script.word(), script.byte());
        if let Some(flight) = self.datagrams.last_mut() {
            let length = flight.payload.len();
            flight.payload[usize::from(place) % length] ^= value;
        }
    }

    /// Takes a datagram off the way.
    pub(crate) fn take(&mut self, script: &mut Input<'_>) -> Option<Flight> {
        let index = usize::from(script.byte());
        (!self.datagrams.is_empty()).then(|| self.datagrams.remove(index % self.datagrams.len()))
    }

    /// Loses what is too much.
    pub(crate) fn shed(&mut self) {
        self.datagrams.truncate(IN_FLIGHT_MAX);
    }

    /// Takes what happens next on a connection.
    pub(crate) fn next_segment(&mut self) -> Option<(usize, Segment)> {
        self.segments.pop_front()
    }

    /// Breaks a connection; returns the ends that it had.
    pub(crate) fn cut(&mut self, script: &mut Input<'_>) -> [Option<AssociationId>; 2] {
        if self.connections.is_empty() {
            return [None; 2];
        }
        let broken = script.index(self.connections.len());
        self.segments.retain(|(connection, _)| *connection != broken);
        std::mem::take(&mut self.connections[broken])
    }

    /// Loses everything under way.
    pub(crate) fn clear(&mut self) {
        self.datagrams.clear();
        self.segments.clear();
    }
}
