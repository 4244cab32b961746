// SPDX-License-Identifier: Apache-2.0
//! Several engines in a row, with virtual time and a seeded path that loses, delays and reorders datagrams.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use netserv_model::Instant;
use netserv_wire::gist::{Message, Mri, NatTraversal, UDP_PORT, strip_magic};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{NSLP, config, flow, session};
use crate::{
    ApiCall, ApiError, AssociationId, Channel, Config, Datagram, Disposition, Engine, Event, FlowScope, IcmpError,
    IcmpKind, InterfaceId, Notification, SendStatus, Transmit,
};

/// One node of the row.
pub(crate) struct Node {
    pub(crate) engine: Engine,
    pub(crate) address: IpAddr,
    pub(crate) events: Vec<Event>,
    /// It takes part; a node that is down loses everything.
    pub(crate) up: bool,
    /// It runs GIST; otherwise it only forwards.
    pub(crate) gist: bool,
}

/// A row of nodes. Datagrams in Q-mode walk along it, others and connections go straight.
pub(crate) struct Net {
    pub(crate) now: Instant,
    pub(crate) nodes: Vec<Node>,
    pub(crate) loss_permille: u32,
    pub(crate) delay: (Duration, Duration),
    /// Whether the far end answers Queries that nobody took with an ICMP error.
    pub(crate) icmp: bool,
    /// Datagrams put on the wire so far.
    pub(crate) datagrams: u64,
    pub(crate) nat: Option<Nat>,
    queue: BTreeMap<(Instant, u64), Delivery>,
    connections: Vec<Connection>,
    rng: StdRng,
    last: u64,
}

enum Delivery {
    Datagram { to: usize, source: SocketAddr, destination: IpAddr, ttl: u8, payload: Vec<u8> },
    Icmp { to: usize, error: IcmpError },
    Arrive { connection: usize },
    Bytes { connection: usize, to: usize, bytes: Vec<u8> },
    Closed { connection: usize, to: usize, error: Option<String> },
}

struct Connection {
    /// Node and association at both ends; the second is set once the connection arrives.
    ends: [(usize, Option<AssociationId>); 2],
    open: bool,
    tls: bool,
    /// When the last bytes arrive at each end, so that none overtake.
    last_at: [Instant; 2],
}

impl Net {
    pub(crate) fn new(count: u8, seed: u64) -> Net {
        Net::with(count, seed, |_| {})
    }

    pub(crate) fn with(count: u8, seed: u64, change: impl Fn(&mut Config)) -> Net {
        println!("NETSERV_SEED={seed}");
        let node = |number: u8| {
            let mut config = config(number);
            change(&mut config);
            let seed = StdRng::seed_from_u64(seed.wrapping_mul(1000) + u64::from(number)).random();
            let engine = Engine::new(config, seed);
            Node { engine, address: address(number), events: Vec::new(), up: true, gist: true }
        };
        Net {
            now: Instant::from_millis(1000),
            nodes: (1..=count).map(node).collect(),
            loss_permille: 0,
            delay: (Duration::from_millis(1), Duration::from_millis(1)),
            icmp: false,
            datagrams: 0,
            nat: None,
            queue: BTreeMap::new(),
            connections: Vec::new(),
            rng: StdRng::seed_from_u64(seed),
            last: 0,
        }
    }

    /// Returns the flow from the first node to the last.
    pub(crate) fn flow(&self) -> Mri {
        flow(self.nodes[0].address, self.nodes[self.nodes.len() - 1].address)
    }

    /// Returns a flow from the first node to a host beyond the last, which has no GIST.
    pub(crate) fn flow_beyond(&self) -> Mri {
        flow(self.nodes[0].address, BEYOND)
    }

    pub(crate) fn call(&mut self, node: usize, call: ApiCall) -> Result<(), ApiError> {
        let local = self.nodes[node].address;
        let result = self.nodes[node].engine.handle_api(self.now, call, local);
        self.drain(node);
        result
    }

    pub(crate) fn lifetime_zero(&mut self, node: usize, number: u64, mri: Mri) {
        let (session, mri) = (Some(session(number)), Some(mri));
        let call = ApiCall::SetStateLifetime { nslp_id: NSLP, session, mri, lifetime: Duration::ZERO };
        self.call(node, call).unwrap();
    }

    /// Lets everything happen that happens within `span`.
    pub(crate) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(at) = self.next_at().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.step();
        }
        self.now = end;
    }

    fn next_at(&self) -> Option<Instant> {
        let timers = self.nodes.iter().filter(|node| node.up).filter_map(|node| node.engine.poll_timeout());
        let timer = timers.map(|(at, _)| at).min();
        let delivery = self.queue.first_key_value().map(|((at, _), _)| *at);
        timer.into_iter().chain(delivery).min()
    }

    fn step(&mut self) {
        for node in 0..self.nodes.len() {
            let due = self.nodes[node].engine.poll_timeout().is_some_and(|(at, _)| at <= self.now);
            if self.nodes[node].up && due {
                self.nodes[node].engine.handle_timeout(self.now);
                self.drain(node);
            }
        }
        if let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let delivery = entry.remove();
            self.deliver(delivery);
        }
    }

    fn drain(&mut self, node: usize) {
        while let Some(transmit) = self.nodes[node].engine.poll_transmit() {
            self.transmit(node, transmit);
        }
        while let Some(event) = self.nodes[node].engine.poll_event() {
            self.nodes[node].events.push(event);
        }
    }

    fn transmit(&mut self, from: usize, transmit: Transmit) {
        match transmit {
            Transmit::QMode { local, destination, ttl, payload, .. } => {
                let source = SocketAddr::new(local, UDP_PORT);
                let ttl = ttl.unwrap_or(64);
                self.walk(Delivery::Datagram { to: from + 1, source, destination, ttl, payload });
            }
            Transmit::Datagram { local, peer, payload, .. } => {
                let source = SocketAddr::new(local, UDP_PORT);
                let Some((source, destination)) = self.through_nat(from, source, peer) else { return };
                let Some(to) = self.node_at(destination) else { return };
                self.lose_or_delay(Delivery::Datagram { to, source, destination, ttl: 64, payload });
            }
            Transmit::Connect { association, peer, tls, .. } => self.connect(from, association, peer, tls),
            Transmit::Stream { association, bytes } => {
                self.nodes[from].engine.handle_written(self.now, association, bytes.len());
                let Some((connection, to)) = self.other_end(from, association) else { return };
                self.in_order(connection, to, |to| Delivery::Bytes { connection, to, bytes });
            }
            Transmit::Close { association } => {
                let Some((connection, to)) = self.other_end(from, association) else { return };
                self.in_order(connection, to, |to| Delivery::Closed { connection, to, error: None });
            }
        }
    }

    /// Returns source and destination of a datagram as the NAT, if it is between, makes them; nothing if it drops it.
    fn through_nat(&mut self, from: usize, source: SocketAddr, peer: SocketAddr) -> Option<(SocketAddr, IpAddr)> {
        let to = self.node_at(peer.ip());
        match &mut self.nat {
            Some(nat) if from < nat.inside && to.is_none_or(|to| to >= nat.inside) => {
                Some((nat.go_out(source, peer.ip()), peer.ip()))
            }
            Some(nat) if peer.ip() == OUTSIDE => Some((source, nat.come_in(source.ip(), peer.port())?)),
            Some(nat) if from >= nat.inside && to.is_some_and(|to| to < nat.inside) => None,
            Some(_) | None => Some((source, peer.ip())),
        }
    }

    /// Sends a datagram in Q-mode to the next node, or past the end of the row.
    fn walk(&mut self, mut delivery: Delivery) {
        if let (Some(nat), Delivery::Datagram { to, source, destination, payload, .. }) = (&mut self.nat, &mut delivery)
            && *to == nat.inside
        {
            let inside = std::mem::replace(source, nat.go_out(*source, *destination));
            if nat.aware {
                nat.translate(inside.ip(), payload);
            }
        }
        let Delivery::Datagram { to, source, destination, payload, .. } = &delivery else {
            unreachable!("only datagrams walk")
        };
        if *to < self.nodes.len() {
            self.lose_or_delay(delivery);
        } else if let (true, Some(to)) = (self.icmp, self.node_at(source.ip())) {
            let error = IcmpError { kind: IcmpKind::Port, reporter: Some(*destination), quoted: payload.clone() };
            self.lose_or_delay(Delivery::Icmp { to, error });
        }
    }

    fn lose_or_delay(&mut self, delivery: Delivery) {
        self.datagrams += 1;
        if self.rng.random_range(0..1000) >= self.loss_permille {
            let at = self.now + self.random_delay();
            self.enqueue(at, delivery);
        }
    }

    fn random_delay(&mut self) -> Duration {
        self.rng.random_range(self.delay.0..=self.delay.1)
    }

    fn enqueue(&mut self, at: Instant, delivery: Delivery) {
        self.last += 1;
        self.queue.insert((at, self.last), delivery);
    }

    fn in_order(&mut self, connection: usize, end: usize, delivery: impl FnOnce(usize) -> Delivery) {
        let at = (self.now + self.random_delay()).max(self.connections[connection].last_at[end]);
        self.connections[connection].last_at[end] = at;
        self.enqueue(at, delivery(end));
    }

    fn connect(&mut self, from: usize, association: AssociationId, peer: SocketAddr, tls: bool) {
        let connection = self.connections.len();
        let to = self.node_at(peer.ip()).filter(|to| self.nodes[*to].up && self.nodes[*to].gist);
        let ends = [(from, Some(association)), (to.unwrap_or(from), None)];
        self.connections.push(Connection { ends, open: to.is_some(), tls, last_at: [self.now; 2] });
        let at = self.now + self.random_delay();
        match to {
            Some(_) => self.enqueue(at, Delivery::Arrive { connection }),
            None => {
                let error = Some("connection refused".to_owned());
                self.enqueue(at, Delivery::Closed { connection, to: 0, error });
            }
        }
    }

    /// Returns the open connection of an association, and its other end.
    fn other_end(&self, node: usize, association: AssociationId) -> Option<(usize, usize)> {
        let is_end = |end: &(usize, Option<AssociationId>)| *end == (node, Some(association));
        let (index, connection) =
            self.connections.iter().enumerate().find(|(_, c)| c.open && c.ends.iter().any(is_end))?;
        Some((index, if is_end(&connection.ends[0]) { 1 } else { 0 }))
    }

    /// Cuts all connections; bytes on the way are lost, and both ends learn of it.
    pub(crate) fn cut_connections(&mut self) {
        for connection in 0..self.connections.len() {
            if !std::mem::replace(&mut self.connections[connection].open, false) {
                continue;
            }
            for to in [0, 1] {
                let (node, association) = self.connections[connection].ends[to];
                if let Some(association) = association {
                    self.nodes[node].engine.handle_closed(self.now, association, Some("cut".to_owned()));
                    self.drain(node);
                }
            }
        }
    }

    /// Returns how many connections were opened, without TLS and with it.
    pub(crate) fn connections(&self) -> (usize, usize) {
        let tls = self.connections.iter().filter(|connection| connection.tls).count();
        (self.connections.len() - tls, tls)
    }

    pub(crate) fn open_connections(&self) -> usize {
        self.connections.iter().filter(|connection| connection.open).count()
    }

    fn deliver(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Datagram { to, source, destination, ttl, payload } => {
                self.deliver_datagram(to, source, destination, ttl, payload);
            }
            Delivery::Icmp { to, error } => {
                self.nodes[to].engine.handle_icmp_error(self.now, &error);
                self.drain(to);
            }
            Delivery::Arrive { connection } => self.arrive(connection),
            Delivery::Bytes { connection, to, bytes } => {
                let (node, association) = self.connections[connection].ends[to];
                if let Some(association) = association.filter(|_| self.connections[connection].open) {
                    self.nodes[node].engine.handle_stream(self.now, association, &bytes);
                    self.drain(node);
                }
            }
            Delivery::Closed { connection, to, error } => {
                self.connections[connection].open = false;
                let (node, association) = self.connections[connection].ends[to];
                if let Some(association) = association {
                    self.nodes[node].engine.handle_closed(self.now, association, error);
                    self.drain(node);
                }
            }
        }
    }

    fn arrive(&mut self, connection: usize) {
        let [(from, association), (to, _)] = self.connections[connection].ends;
        let association = association.expect("the opener has an association");
        if !self.connections[connection].open {
            return;
        }
        let leaves = self.nat.as_ref().is_some_and(|nat| from < nat.inside && to >= nat.inside);
        let seen_at = if leaves { OUTSIDE } else { self.nodes[from].address };
        let (local, peer) = (self.nodes[to].address, SocketAddr::new(seen_at, 40_000));
        let channel = |of: usize| match self.connections[connection].tls {
            true => Channel::Tls { peer: Some(self.nodes[of].address.to_string()), flows: FlowScope::default() },
            false => Channel::Plain,
        };
        let (seen, shown) = (channel(from), channel(to));
        let accepted = self.nodes[to].engine.handle_accepted(self.now, local, peer, seen);
        self.connections[connection].ends[1].1 = Some(accepted);
        self.drain(to);
        self.nodes[from].engine.handle_connected(self.now, association, shown);
        self.drain(from);
    }

    fn deliver_datagram(&mut self, to: usize, source: SocketAddr, destination: IpAddr, ttl: u8, payload: Vec<u8>) {
        let node = &mut self.nodes[to];
        if !node.up {
            return;
        }
        let for_it = node.address == destination;
        let rx = Datagram {
            interface: InterfaceId(1),
            local: node.address,
            source,
            destination,
            destination_is_local: for_it,
            ttl,
            q_mode_interceptable: true,
            payload: &payload,
        };
        let disposition = match (node.gist, for_it) {
            (true, _) => node.engine.handle_datagram(self.now, rx),
            (false, true) => Disposition::Consumed,
            (false, false) => Disposition::Forward { payload: None },
        };
        self.drain(to);
        assert!(!matches!(disposition, Disposition::Held(_)), "no NSLP of the row is asked");
        if let Disposition::Forward { payload: changed } = disposition {
            let payload = changed.unwrap_or(payload);
            self.walk(Delivery::Datagram { to: to + 1, source, destination, ttl: ttl - 1, payload });
        }
    }

    fn node_at(&self, address: IpAddr) -> Option<usize> {
        self.nodes.iter().position(|node| node.address == address)
    }

    /// Returns what was received at a node, as text with the mark of validation.
    pub(crate) fn received(&self, node: usize) -> Vec<(String, bool)> {
        let text = |event: &Event| match event {
            Event::RecvMessage { data, validated, .. } => {
                Some((String::from_utf8(data.clone()).unwrap().trim_end_matches('\0').to_owned(), *validated))
            }
            Event::MessageStatus { .. } | Event::NetworkNotification { .. } | Event::Malformed { .. } => None,
        };
        self.nodes[node].events.iter().filter_map(text).collect()
    }

    pub(crate) fn statuses(&self, node: usize) -> Vec<(u64, SendStatus)> {
        let status = |event: &Event| match event {
            Event::MessageStatus { handle, status, .. } => Some((handle.0, *status)),
            Event::RecvMessage { .. } | Event::NetworkNotification { .. } | Event::Malformed { .. } => None,
        };
        self.nodes[node].events.iter().filter_map(status).collect()
    }

    pub(crate) fn notifications(&self, node: usize) -> Vec<Notification> {
        let kind = |event: &Event| match event {
            Event::NetworkNotification { kind, .. } => Some(*kind),
            Event::RecvMessage { .. } | Event::MessageStatus { .. } | Event::Malformed { .. } => None,
        };
        self.nodes[node].events.iter().filter_map(kind).collect()
    }
}

/// A NAT after the first nodes of the row. One that does not know GIST lets in only what comes from where something went.
pub(crate) struct Nat {
    /// How many nodes are behind it.
    pub(crate) inside: usize,
    /// It translates what messages say, not their packets alone.
    pub(crate) aware: bool,
    /// Who has which port outside, counted from `NAT_PORT`.
    bindings: Vec<SocketAddr>,
    contacted: BTreeSet<(usize, IpAddr)>,
}

impl Nat {
    pub(crate) fn new(inside: usize, aware: bool) -> Nat {
        Nat { inside, aware, bindings: Vec::new(), contacted: BTreeSet::new() }
    }

    fn go_out(&mut self, source: SocketAddr, destination: IpAddr) -> SocketAddr {
        let known = self.bindings.iter().position(|inside| *inside == source);
        let index = known.unwrap_or_else(|| {
            self.bindings.push(source);
            self.bindings.len() - 1
        });
        self.contacted.insert((index, destination));
        SocketAddr::new(OUTSIDE, NAT_PORT + u16::try_from(index).unwrap())
    }

    fn come_in(&self, source: IpAddr, port: u16) -> Option<IpAddr> {
        let index = usize::from(port.checked_sub(NAT_PORT)?);
        let inside = self.bindings.get(index).filter(|_| self.aware || self.contacted.contains(&(index, source)))?;
        Some(inside.ip())
    }

    fn translate(&self, inside: IpAddr, payload: &mut Vec<u8>) {
        let mut message = Message::parse(strip_magic(payload).unwrap()).unwrap();
        let translate = |address: IpAddr| if address == inside { OUTSIDE } else { address };
        if NatTraversal::translate(&mut message, b"a note", translate) {
            *payload = message.emit_datagram();
        }
    }
}

fn address(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, number))
}

/// The address of the NAT outside, and its first port there.
pub(crate) const OUTSIDE: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));
const NAT_PORT: u16 = 20_000;

/// A host without GIST past the end of the row.
pub(crate) const BEYOND: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9));
