// SPDX-License-Identifier: Apache-2.0
//! Timed scripts: one engine, and a test that plays its peers by hand.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use netserv_model::Instant;
use netserv_wire::gist::{
    Cookie, Message, MessageStream, MessageType, Mri, NatTraversal, Nli, StackConfiguration, StackProposal, UDP_PORT,
    strip_magic,
};

use super::{NSLP, config, flow, session};
use crate::associations::stack::{self, Ports};
use crate::{
    ApiCall, ApiError, AssociationId, Channel, Config, Counter, Datagram, Disposition, Engine, Event, IcmpError,
    IcmpKind, InterfaceId, SendStatus, TlsPolicy, Transmit,
};

/// This node, the peer downstream, and the far end of the flow.
pub(crate) const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
pub(crate) const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));
pub(crate) const FAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 9, 9));

/// The identity of the peer that the test plays.
pub(crate) const PEER: u8 = 0xbb;

pub(crate) struct Script {
    pub(crate) engine: Engine,
}

impl Script {
    pub(crate) fn new() -> Script {
        Script::with(config(0xaa))
    }

    pub(crate) fn with(config: Config) -> Script {
        Script { engine: Engine::new(config, [1; 32]) }
    }

    /// Lets time go on to `at_ms`, one timer after the other.
    pub(crate) fn at(&mut self, at_ms: u64) -> Instant {
        let now = Instant::from_millis(at_ms);
        while let Some((due, _)) = self.engine.poll_timeout().filter(|(due, _)| *due <= now) {
            self.engine.handle_timeout(due);
        }
        now
    }

    /// Returns when the next timer fires, in milliseconds.
    pub(crate) fn next_ms(&self) -> u64 {
        self.engine.poll_timeout().unwrap().0.as_nanos().div_ceil(1_000_000)
    }

    pub(crate) fn call(&mut self, at_ms: u64, call: ApiCall) {
        self.try_call(at_ms, call).unwrap();
    }

    pub(crate) fn try_call(&mut self, at_ms: u64, call: ApiCall) -> Result<(), ApiError> {
        let now = self.at(at_ms);
        self.engine.handle_api(now, call, HERE)
    }

    /// Hands in a message that the peer sends to this node's address.
    pub(crate) fn send(&mut self, at_ms: u64, message: &Message) {
        self.send_from(at_ms, SocketAddr::new(THERE, UDP_PORT), InterfaceId(1), message);
    }

    pub(crate) fn send_from(&mut self, at_ms: u64, source: SocketAddr, interface: InterfaceId, message: &Message) {
        let payload = message.emit_datagram();
        let now = self.at(at_ms);
        let rx = Datagram { interface, source, ..datagram(&payload) };
        assert_eq!(self.engine.handle_datagram(now, rx), Disposition::Consumed);
    }

    /// Hands in an ICMP error that brings back a message of this node.
    pub(crate) fn icmp(&mut self, at_ms: u64, kind: IcmpKind, reporter: IpAddr, about: &Message) {
        let now = self.at(at_ms);
        let error = IcmpError { kind, reporter: Some(reporter), quoted: about.emit_datagram() };
        self.engine.handle_icmp_error(now, &error);
    }

    /// Hands in a datagram for `FAR` that is intercepted.
    pub(crate) fn intercept(&mut self, at_ms: u64, payload: &[u8]) -> Disposition {
        let now = self.at(at_ms);
        let rx = Datagram { destination: FAR, destination_is_local: false, ..datagram(payload) };
        self.engine.handle_datagram(now, rx)
    }

    pub(crate) fn transmit(&mut self, at_ms: u64) -> Transmit {
        self.at(at_ms);
        self.engine.poll_transmit().unwrap_or_else(|| panic!("nothing is sent at {at_ms} ms"))
    }

    /// Returns the datagram that is sent at `at_ms`.
    pub(crate) fn recv(&mut self, at_ms: u64) -> Message {
        match self.transmit(at_ms) {
            Transmit::QMode { payload, .. } | Transmit::Datagram { payload, .. } => parse_datagram(&payload),
            other @ (Transmit::Connect { .. } | Transmit::Stream { .. } | Transmit::Close { .. }) => {
                panic!("{other:?} is no datagram")
            }
        }
    }

    /// Returns the datagram of a kind that is sent at `at_ms`.
    pub(crate) fn recv_kind(&mut self, at_ms: u64, kind: MessageType) -> Message {
        let message = self.recv(at_ms);
        assert_eq!(message.kind, kind, "at {at_ms} ms");
        message
    }

    /// Returns the messages of what is appended to a connection at `at_ms`.
    pub(crate) fn recv_stream(&mut self, at_ms: u64, id: AssociationId) -> Vec<Message> {
        match self.transmit(at_ms) {
            Transmit::Stream { association, bytes } => {
                assert_eq!(association, id);
                let messages = MessageStream::new().handle_bytes(&bytes);
                messages.into_iter().map(|message| message.unwrap().message).collect()
            }
            other @ (Transmit::QMode { .. }
            | Transmit::Datagram { .. }
            | Transmit::Connect { .. }
            | Transmit::Close { .. }) => panic!("{other:?} is nothing on a connection"),
        }
    }

    pub(crate) fn send_stream(&mut self, at_ms: u64, id: AssociationId, message: &Message) {
        let now = self.at(at_ms);
        self.engine.handle_stream(now, id, &message.emit());
    }

    pub(crate) fn recv_nothing(&mut self, at_ms: u64) {
        self.at(at_ms);
        let transmit = self.engine.poll_transmit();
        assert!(transmit.is_none(), "{transmit:?} at {at_ms} ms");
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.engine.poll_event()).collect()
    }

    /// Returns the statuses among the events that wait, and drops the rest.
    pub(crate) fn statuses(&mut self) -> Vec<(u64, SendStatus)> {
        let status = |event| match event {
            Event::MessageStatus { handle, status, .. } => Some((handle.0, status)),
            Event::RecvMessage { .. } | Event::NetworkNotification { .. } | Event::Malformed { .. } => None,
        };
        self.events().into_iter().filter_map(status).collect()
    }

    pub(crate) fn count(&self, counter: Counter) -> u64 {
        self.engine.counters().get(counter)
    }

    /// Completes a handshake in D-mode for session `number`, with what was sent to start it already called.
    pub(crate) fn establish(&mut self, at_ms: u64) {
        let query = self.recv_kind(at_ms, MessageType::Query);
        self.send(at_ms, &response_to(&query));
        self.recv_kind(at_ms, MessageType::Confirm);
    }

    /// Completes a handshake with a new connection, and returns it with the Confirm.
    pub(crate) fn connect(&mut self, at_ms: u64) -> (AssociationId, Message) {
        let query = self.recv_kind(at_ms, MessageType::Query);
        self.send(at_ms, &response_to(&query));
        let Transmit::Connect { association, .. } = self.transmit(at_ms) else { panic!("no connection is opened") };
        let now = self.at(at_ms);
        self.engine.handle_connected(now, association, Channel::Plain);
        let mut confirm = self.recv_stream(at_ms, association);
        assert_eq!(confirm.len(), 1);
        (association, confirm.remove(0))
    }

    /// Plays a querying peer upstream through the handshake in D-mode.
    pub(crate) fn be_queried(&mut self, at_ms: u64, number: u64) {
        let query = query(number);
        self.send(at_ms, &query);
        let response = self.recv_kind(at_ms, MessageType::Response);
        self.send(at_ms, &confirm_to(&response));
        assert_eq!(self.engine.state_counts().responding, 1);
    }

    /// Plays a querying peer upstream through the handshake over a connection of its own.
    pub(crate) fn be_connected(&mut self, at_ms: u64, number: u64) -> AssociationId {
        self.send(at_ms, &with_stack(query(number), None));
        let response = self.recv_kind(at_ms, MessageType::Response);
        let now = self.at(at_ms);
        let id = self.engine.handle_accepted(now, HERE, SocketAddr::new(THERE, 40_000), Channel::Plain);
        self.send_stream(at_ms, id, &first_confirm_to(&response));
        id
    }
}

/// Returns a datagram from the peer to this node.
pub(crate) fn datagram(payload: &[u8]) -> Datagram<'_> {
    Datagram {
        interface: InterfaceId(1),
        local: HERE,
        source: SocketAddr::new(THERE, UDP_PORT),
        destination: HERE,
        destination_is_local: true,
        ttl: 62,
        q_mode_interceptable: true,
        payload,
    }
}

pub(crate) fn parse_datagram(payload: &[u8]) -> Message {
    Message::parse(strip_magic(payload).unwrap()).unwrap()
}

pub(crate) fn nli(identity: u8, address: IpAddr) -> Nli {
    Nli { peer_identity: vec![identity; 16], ip_ttl: 0, validity: Duration::from_secs(30), address }
}

/// Returns the flow that scripts are about.
pub(crate) fn downstream() -> Mri {
    flow(HERE, FAR)
}

/// Returns a Query of the peer, which is upstream: its flow ends here.
pub(crate) fn query(number: u64) -> Message {
    let mut query = Message::new(MessageType::Query, NSLP);
    query.hops = 32;
    query.mri = Some(flow(THERE, HERE));
    query.session = Some(session(number));
    query.nli = Some(Nli { ip_ttl: 64, ..nli(PEER, THERE) });
    query.query_cookie = Some(Cookie(vec![7; 8]));
    query
}

/// Returns the message with stack objects of a node without TLS.
pub(crate) fn with_stack(message: Message, port: Option<u16>) -> Message {
    with_stacks(message, TlsPolicy::Off, port)
}

/// Returns the message with stack objects of a node of a policy, whose ports are this one and the next.
pub(crate) fn with_stacks(message: Message, policy: TlsPolicy, port: Option<u16>) -> Message {
    let stacks = policy.stacks();
    let port = port.map(|plain| Ports { plain, tls: plain + 1 });
    Message {
        stack_proposal: Some(stack::proposal(stacks)),
        stack_configuration: Some(stack::configuration(stacks, Duration::from_secs(30), port)),
        ..message
    }
}

/// Returns the peer's Response to a Query of this node: with stacks if the Query has some.
pub(crate) fn response_to(query: &Message) -> Message {
    let mut response = Message::new(MessageType::Response, query.nslp_id);
    response.reply_wanted = true;
    response.mri = query.mri.as_ref().map(Mri::inverted);
    response.session = query.session;
    response.nli = Some(nli(PEER, THERE));
    response.query_cookie = query.query_cookie.clone();
    response.responder_cookie = Some(Cookie(vec![9; 12]));
    if query.stack_proposal.is_some() { with_stack(response, Some(30_000)) } else { response }
}

/// Returns the peer's Confirm in D-mode to a Response of this node.
pub(crate) fn confirm_to(response: &Message) -> Message {
    let mut confirm = Message::new(MessageType::Confirm, response.nslp_id);
    confirm.mri = response.mri.as_ref().map(Mri::inverted);
    confirm.session = response.session;
    confirm.nli = Some(nli(PEER, THERE));
    confirm.responder_cookie = response.responder_cookie.clone();
    confirm
}

/// Returns the peer's Confirm on a new connection to a Response of this node.
pub(crate) fn first_confirm_to(response: &Message) -> Message {
    let mut confirm = confirm_to(response);
    confirm.stack_proposal = response.stack_proposal.clone();
    confirm.stack_configuration = Some(StackConfiguration { hold_time: Duration::from_secs(30), options: Vec::new() });
    confirm
}

/// Returns the message as it would have come out of a NAT behind which the flow's source is called `FAR`.
pub(crate) fn with_nat_traversal(message: Message) -> Message {
    let traversal = NatTraversal { mri: flow(FAR, HERE), translated: vec![0, 2], nats: vec![b"note".to_vec()] };
    Message { nat_traversal: Some(traversal), ..message }
}

/// Returns a proposal of stacks that this node has not got.
pub(crate) fn foreign_proposal() -> StackProposal {
    StackProposal { profiles: vec![vec![2, 1]] }
}

/// Returns Data of the peer: on the route that its Query made, or back on the route that this node's made.
pub(crate) fn data(mri: Mri, number: u64, text: &[u8]) -> Message {
    let mut data = Message::new(MessageType::Data, NSLP);
    data.hops = 5;
    data.mri = Some(mri);
    data.session = Some(session(number));
    data.nli = Some(nli(PEER, THERE));
    data.nslp_data = Some(text.to_vec());
    data
}

/// Returns the Data as it travels on a connection.
pub(crate) fn stream_data(mri: Mri, number: u64, text: &[u8]) -> Message {
    Message { nli: None, ..data(mri, number, text) }
}
