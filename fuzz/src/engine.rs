// SPDX-License-Identifier: Apache-2.0
//! Two GIST engines on the path of one flow, and a network between them that loses, repeats, damages and breaks.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use netserv_gist::{
    ApiCall, AssociationId, Channel, Config, Datagram, Engine, Event, FlowScope, InterfaceId, MessageHandle,
    SendOptions, SiiHandle, StateUse, TlsPolicy, TransferAttributes, Transmit,
};
use netserv_model::{Instant, SessionId};
use netserv_wire::gist::{Message, MessageStream, Mri, PathCoupled, UDP_PORT, strip_magic};

use crate::input::Input;
use crate::network::{ADDRESSES, FLOW_DESTINATION, Network, Segment};

/// Plays a script: what the nodes are asked and what the network does to their packets.
///
/// # Panics
/// If an engine sends what is no GIST message, or does not say exactly once what became of a message that it took.
pub fn gist_engine(data: &[u8]) {
    World::play(data).finish();
}

const NSLP_ID: u16 = 0x7FC0;
/// Timers after the script; a world that still sets one after so many is taken to be quiet enough.
const LAST_TIMERS_MAX: usize = 4000;

struct World {
    now: Instant,
    nodes: [Node; 2],
    network: Network,
    /// Messages that came to an NSLP, by node.
    received: [u32; 2],
}

struct Node {
    engine: Engine,
    /// What was sent on each association, to see that it is messages.
    sent: BTreeMap<AssociationId, MessageStream>,
    /// Messages that the engine took, and how often it said what became of them.
    statuses: BTreeMap<MessageHandle, u32>,
    last_sii: Option<SiiHandle>,
}

impl World {
    fn new() -> World {
        let node = |number: u8| {
            let mut config = Config::new(vec![number; 16]);
            config.hosted.insert(NSLP_ID, 65_504);
            config.associations_max = 8;
            config.routes_max = 64;
            config.tls = TlsPolicy::Offered;
            let engine = Engine::new(config, [number; 32]);
            Node { engine, sent: BTreeMap::new(), statuses: BTreeMap::new(), last_sii: None }
        };
        World {
            now: Instant::from_millis(1000),
            nodes: [node(1), node(2)],
            network: Network::default(),
            received: [0; 2],
        }
    }

    fn play(script: &[u8]) -> World {
        let mut world = World::new();
        let mut input = Input::new(script);
        while let Some(step) = input.next() {
            world.step(step, &mut input);
            world.collect();
        }
        world
    }

    fn step(&mut self, step: u8, input: &mut Input<'_>) {
        match step % 16 {
            0..=2 => self.deliver_datagram(input, true),
            3 => self.deliver_datagram(input, false),
            4 => self.network.repeat(input),
            5 => self.network.damage(input),
            6..=8 => self.deliver_segment(),
            9 => self.break_connection(input),
            10 => self.send(0, usize::from(input.byte()), false, input),
            11 => self.send(0, usize::from(input.byte()) * 64, true, input),
            12 => self.send(1, usize::from(input.byte()) * 8, input.byte() & 1 == 1, input),
            13 => {
                self.now = self.now + Duration::from_millis(u64::from(input.byte()) * 100);
                self.nodes.iter_mut().for_each(|node| node.engine.handle_timeout(self.now));
            }
            14 => self.network.make_up(input.index(2), input),
            _ => self.rarely(input),
        }
    }

    fn rarely(&mut self, input: &mut Input<'_>) {
        let (what, node) = (input.byte(), input.index(2));
        let engine = &mut self.nodes[node].engine;
        match what % 4 {
            0 => {
                let error = self.network.icmp_error(input);
                engine.handle_icmp_error(self.now, &error);
            }
            1 => {
                let lifetime = input.byte();
                let session = (lifetime & 1 == 0).then(|| session(input));
                let mri = (lifetime & 2 == 0).then(|| mri(node));
                let lifetime = Duration::from_secs(lifetime.into());
                let call = ApiCall::SetStateLifetime { nslp_id: NSLP_ID, session, mri, lifetime };
                let _ = engine.handle_api(self.now, call, ADDRESSES[node]);
            }
            2 => {
                let how = input.byte();
                let nslp_id = (how & 2 == 0).then_some(NSLP_ID);
                let data = (how & 4 == 0).then(|| vec![how; usize::from(how) / 2]);
                let call =
                    ApiCall::InvalidateRoutingState { nslp_id, session: None, mri: mri(node), bad: how & 1 == 1, data };
                let _ = engine.handle_api(self.now, call, ADDRESSES[node]);
            }
            _ => {
                let (association, length) = (AssociationId(input.byte().into()), usize::from(input.byte()));
                engine.handle_stream(self.now, association, input.take(length));
            }
        }
    }

    fn send(&mut self, from: usize, length: usize, reliable: bool, input: &mut Input<'_>) {
        let node = &mut self.nodes[from];
        let handle = MessageHandle(node.statuses.len() as u64);
        let choices = input.byte();
        let call = ApiCall::SendMessage {
            handle,
            nslp_id: NSLP_ID,
            session: session(input),
            mri: mri(from),
            attributes: TransferAttributes { reliable, secure: choices & 0xc0 == 0x80, inside: false },
            sii: node.last_sii.filter(|_| choices & 1 == 1),
            timeout: Duration::from_millis(u64::from(choices) * 100),
            data: vec![0x55; length],
            hops: None,
            options: SendOptions {
                state: [StateUse::Needed, StateUse::Queried, StateUse::NotNeeded][usize::from(choices >> 1) % 3],
                priority: choices & 3,
                ip_ttl: Some(choices).filter(|ttl| *ttl & 0x20 != 0),
            },
        };
        if node.engine.handle_api(self.now, call, ADDRESSES[from]).is_ok() {
            node.statuses.insert(handle, 0);
        }
    }

    fn deliver_datagram(&mut self, input: &mut Input<'_>, arrives: bool) {
        let Some(flight) = self.network.take(input).filter(|_| arrives) else { return };
        let rx = Datagram {
            interface: InterfaceId(1),
            local: ADDRESSES[flight.to],
            source: SocketAddr::new(flight.source, UDP_PORT),
            destination: flight.destination,
            destination_is_local: flight.destination == ADDRESSES[flight.to],
            ttl: 63,
            q_mode_interceptable: true,
            payload: &flight.payload,
        };
        self.nodes[flight.to].engine.handle_datagram(self.now, rx);
    }

    fn deliver_segment(&mut self) {
        let Some((connection, segment)) = self.network.next_segment() else { return };
        let now = self.now;
        match segment {
            Segment::Connect { from, association, tls } => {
                let to = 1 - from;
                let peer = SocketAddr::new(ADDRESSES[from], 40_000);
                let channel = || {
                    if tls {
                        Channel::Tls { peer: Some("peer".to_owned()), flows: FlowScope::default() }
                    } else {
                        Channel::Plain
                    }
                };
                let accepted = self.nodes[to].engine.handle_accepted(now, ADDRESSES[to], peer, channel());
                self.network.connections[connection][to] = Some(accepted);
                self.nodes[from].engine.handle_connected(now, association, channel());
            }
            Segment::Bytes { from, bytes } => {
                if let Some(id) = self.network.connections[connection][from] {
                    self.nodes[from].engine.handle_written(now, id, bytes.len());
                }
                if let Some(id) = self.network.connections[connection][1 - from] {
                    self.nodes[1 - from].engine.handle_stream(now, id, &bytes);
                }
            }
            Segment::Close { from } => {
                if let Some(id) = self.network.connections[connection][1 - from].take() {
                    self.nodes[1 - from].engine.handle_closed(now, id, None);
                }
            }
        }
    }

    fn break_connection(&mut self, input: &mut Input<'_>) {
        for (node, id) in self.nodes.iter_mut().zip(self.network.cut(input)) {
            if let Some(id) = id {
                node.engine.handle_closed(self.now, id, Some("connection reset".to_owned()));
            }
        }
    }

    /// Takes what the engines want to be sent and have to tell.
    fn collect(&mut self) {
        for from in 0..2 {
            while let Some(transmit) = self.nodes[from].engine.poll_transmit() {
                self.carry(from, transmit);
            }
            let node = &mut self.nodes[from];
            while let Some(event) = node.engine.poll_event() {
                match event {
                    Event::MessageStatus { handle, .. } => {
                        *node.statuses.get_mut(&handle).expect("a status is of a message that was taken") += 1;
                    }
                    Event::RecvMessage { sii, .. } => {
                        node.last_sii = Some(sii);
                        self.received[from] += 1;
                    }
                    Event::NetworkNotification { .. } | Event::Malformed { .. } => {}
                }
            }
            let counts = node.engine.state_counts();
            assert!(counts.querying + counts.responding <= 64 && counts.associations <= 8);
        }
        self.network.shed();
    }

    /// Has the network carry what an engine sends, which is messages.
    fn carry(&mut self, from: usize, transmit: Transmit) {
        match &transmit {
            Transmit::QMode { payload, .. } | Transmit::Datagram { payload, .. } => check_datagram(payload),
            Transmit::Stream { association, bytes } => {
                let stream = self.nodes[from].sent.entry(*association).or_default();
                for message in stream.handle_bytes(bytes) {
                    message.expect("an engine sends only messages");
                }
            }
            Transmit::Connect { .. } | Transmit::Close { .. } => {}
        }
        self.network.carry(from, transmit);
    }

    /// Lets time run without a network until every message has had its time.
    fn finish(&mut self) {
        self.collect();
        for _ in 0..LAST_TIMERS_MAX {
            let timers = self.nodes.iter().filter_map(|node| node.engine.poll_timeout());
            let Some((next, _)) = timers.min() else { break };
            self.now = self.now.max(next);
            self.nodes.iter_mut().for_each(|node| node.engine.handle_timeout(self.now));
            self.network.clear();
            self.collect();
        }
        for node in &self.nodes {
            assert!(node.statuses.values().all(|count| *count == 1), "{:?}", node.statuses);
        }
    }
}

fn check_datagram(payload: &[u8]) {
    let bytes = strip_magic(payload).expect("a datagram has the magic number");
    Message::parse(bytes).expect("an engine sends only messages");
}

fn session(input: &mut Input<'_>) -> SessionId {
    SessionId([input.byte() % 3; 16])
}

/// The flow, toward the other node.
fn mri(node: usize) -> Mri {
    let source = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    let flow = Mri::PathCoupled(PathCoupled::new(source, FLOW_DESTINATION).expect("both are IPv4"));
    if node == 0 { flow } else { flow.inverted() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the seeds get past the handshake, or the fuzzer would have to guess cookies.
    #[test]
    fn seeds_reach_what_they_are_for() {
        check("datagrams", [1, 2], 0);
        check("connection", [1, 2], 1);
        check("explicit", [2, 2], 0);
        check("broken", [0, 1], 2);
    }

    fn check(seed: &str, received: [u32; 2], connections: usize) {
        let path = format!("{}/corpus/gist_engine/{seed}", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(path).expect("the seed is there");
        let world = World::play(&bytes);
        assert_eq!((world.received, world.network.connections.len()), (received, connections), "{seed}");
    }
}
