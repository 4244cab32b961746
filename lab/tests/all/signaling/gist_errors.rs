// SPDX-License-Identifier: Apache-2.0
//! GIST's errors between a running node and a peer that is none: sent by datagram and over a connection, IPv4 and IPv6.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::Duration;

use netserv_lab::netns::{Lab, is_root};
use netserv_lab::topology::{Kind, Topology};
use netserv_model::SessionId;
use netserv_skips::skipped;
use netserv_wire::gist::{
    Cookie, Direction, ErrorCode, LooseEnd, Message, MessageStream, MessageType, Mri, Nli, PROTOCOL_FORWARDS_TCP,
    PathCoupled, ProtocolOption, StackConfiguration, StackProposal, UDP_PORT, strip_magic,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The NSLP of the node, and one that it does not run.
const NSLP: u16 = 32_704;
const OTHER_NSLP: u16 = 32_705;
/// How long the node may take for an answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// How long silence lasts that is taken for an answer.
const SILENCE: Duration = Duration::from_millis(300);
/// Bytes of the magic number and of the common header.
const MAGIC_BYTES: usize = 4;
const HEADER_BYTES: usize = 8;

/// Goal: the node tells a peer by datagram what is wrong with each message, with the code that RFC 5971 A.4 has for it, and
/// keeps nothing of it.
#[test]
fn what_is_wrong_with_a_datagram_is_told() {
    let test = "what_is_wrong_with_a_datagram_is_told";
    let Some(lab) = up(test) else { return };
    for six in [false, true] {
        let peer = Peer::enter(&lab, six);
        for (code, bytes) in peer.wrong_datagrams() {
            peer.send(&bytes);
            let error = peer.receive(&format!("{code:?}, IPv6 {six}"));
            let object = error.error.unwrap();
            assert_eq!((error.kind, object.error_code()), (MessageType::Error, Some(code)), "IPv6 {six}");
            assert!(error.source_is_signaller && error.nli.is_some_and(|nli| nli.address == peer.node));
            assert_eq!(
                object.header,
                bytes[MAGIC_BYTES..MAGIC_BYTES + HEADER_BYTES],
                "{code:?}: the header as it came"
            );
        }
        // Nothing is said of Errors and Responses, whatever is wrong with them, nor of what has no magic number.
        for bytes in peer.unanswered() {
            peer.send(&bytes);
        }
        peer.receive_nothing();
        let response = peer.handshake(1, false);
        assert_eq!(response.kind, MessageType::Response, "an honest Query is answered as before");
    }
    for line in lab.metrics("n1").unwrap().lines().filter(|line| line.starts_with("netserv_gist_routes{")) {
        assert!(line.ends_with(" 0"), "{line}");
    }
}

/// Goal: the same over a connection, which the message's fault does not end unless its header cannot be read.
#[test]
fn what_is_wrong_with_a_message_on_a_connection_is_told() {
    let test = "what_is_wrong_with_a_message_on_a_connection_is_told";
    let Some(lab) = up(test) else { return };
    for six in [false, true] {
        let peer = Peer::enter(&lab, six);
        // State for one session without a connection, and for another one with a connection.
        let response = peer.handshake(2, false);
        peer.send(&peer.confirm(&response).emit_datagram());
        let mut stream = peer.connect(3);
        for (code, message) in peer.wrong_on_connection() {
            stream.send(&message);
            let error = stream.receive(&format!("{code:?}, IPv6 {six}"));
            let object = error.error.unwrap();
            assert_eq!((error.kind, object.error_code()), (MessageType::Error, Some(code)), "IPv6 {six}");
            assert_eq!(error.nli, None, "the connection says who it is");
            assert_eq!(object.header, message[..HEADER_BYTES], "{code:?}: the header as it came");
            assert!(!object.datagram, "{code:?}");
        }
        for (session, (code, message)) in (5..).zip(peer.unreadable_on_connection()) {
            let mut stream = peer.connect(session);
            stream.send(&message);
            let error = stream.receive(&format!("{code:?}, IPv6 {six}")).error.unwrap();
            assert_eq!((error.error_code(), error.session), (Some(code), None), "IPv6 {six}");
            assert!(stream.is_closed(), "a stream is not read on behind a header that cannot be read");
        }
    }
}

fn up(test: &str) -> Option<Lab> {
    if !is_root() {
        skipped(test, "not root, so no namespaces");
        return None;
    }
    let mut lab = Lab::up(Topology::chain(&[("peer", Kind::Host), ("n1", Kind::Node), ("far", Kind::Host)])).unwrap();
    lab.use_driver("nfqueue");
    lab.start_netservd("n1", "node", &[], "").unwrap();
    Some(lab)
}

/// Somebody who speaks GIST with the node by hand.
struct Peer {
    udp: UdpSocket,
    own: IpAddr,
    node: IpAddr,
    far: IpAddr,
    six: bool,
}

impl Peer {
    /// Moves this thread into the peer's namespace and takes GIST's port there.
    fn enter(lab: &Lab, six: bool) -> Peer {
        let namespace = std::fs::File::open(format!("/run/netns/{}", lab.namespace("peer"))).unwrap();
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        let address = |machine: &str| -> IpAddr { if six { lab.v6(machine).into() } else { lab.v4(machine).into() } };
        let (own, node, far) = (address("peer"), address("n1"), address("far"));
        let udp = UdpSocket::bind((own, UDP_PORT)).unwrap();
        Peer { udp, own, node, far, six }
    }

    fn send(&self, bytes: &[u8]) {
        self.udp.send_to(bytes, (self.node, UDP_PORT)).unwrap();
    }

    fn receive(&self, what: &str) -> Message {
        self.udp.set_read_timeout(Some(ANSWER_TIME)).unwrap();
        let mut bytes = [0; 4096];
        let (length, from) = self.udp.recv_from(&mut bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(from, SocketAddr::new(self.node, UDP_PORT), "{what}");
        Message::parse(strip_magic(&bytes[..length]).unwrap()).unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    fn receive_nothing(&self) {
        self.udp.set_read_timeout(Some(SILENCE)).unwrap();
        let received = self.udp.recv_from(&mut [0; 4096]);
        assert!(received.is_err(), "{received:?}");
    }

    fn mri(&self) -> Mri {
        Mri::PathCoupled(PathCoupled::new(self.own, self.far).unwrap())
    }

    /// Returns who a session's sender is: for each session another one, so that none shares the connection of another.
    fn nli(&self, session: u8) -> Nli {
        Nli { peer_identity: vec![session; 16], ip_ttl: 64, validity: Duration::from_secs(30), address: self.own }
    }

    fn query(&self, session: u8) -> Message {
        let mut query = Message::new(MessageType::Query, NSLP);
        query.hops = 8;
        query.mri = Some(self.mri());
        query.session = Some(SessionId([session; 16]));
        query.nli = Some(self.nli(session));
        query.query_cookie = Some(Cookie(vec![5; 16]));
        query
    }

    fn data(&self, session: u8) -> Message {
        let mut data = Message::new(MessageType::Data, NSLP);
        data.hops = 8;
        data.mri = Some(self.mri());
        data.session = Some(SessionId([session; 16]));
        data.nslp_data = Some(b"data".to_vec());
        data
    }

    fn confirm(&self, response: &Message) -> Message {
        let mut confirm = Message::new(MessageType::Confirm, NSLP);
        confirm.mri = response.mri.as_ref().map(Mri::inverted);
        confirm.session = response.session;
        confirm.nli = response.session.map(|session| self.nli(session.0[0]));
        confirm.responder_cookie = response.responder_cookie.clone();
        confirm
    }

    /// Sends a Query, with a proposal of TCP if wanted, and returns the Response.
    fn handshake(&self, session: u8, tcp: bool) -> Message {
        let mut query = self.query(session);
        if tcp {
            query.stack_proposal = Some(StackProposal { profiles: vec![vec![PROTOCOL_FORWARDS_TCP]] });
            query.stack_configuration =
                Some(StackConfiguration { hold_time: Duration::from_secs(30), options: vec![] });
        }
        self.send(&query.emit_datagram());
        let response = self.receive("a Response");
        assert_eq!((response.kind, response.session), (MessageType::Response, query.session));
        response
    }

    /// Opens a connection as the node's Response says.
    fn connect(&self, session: u8) -> Stream {
        let response = self.handshake(session, true);
        let options = &response.stack_configuration.as_ref().unwrap().options;
        let port = options.iter().find_map(|option| option.port).unwrap();
        let mut confirm = self.confirm(&response);
        confirm.stack_proposal = response.stack_proposal.clone();
        confirm.stack_configuration = Some(StackConfiguration { hold_time: Duration::from_secs(30), options: vec![] });
        let tcp = TcpStream::connect((self.node, port)).unwrap();
        tcp.set_read_timeout(Some(ANSWER_TIME)).unwrap();
        let mut stream = Stream { tcp, messages: MessageStream::new(), received: Vec::new() };
        stream.send(&confirm.emit());
        stream
    }

    /// Returns datagrams that are wrong, each with the error that it is told.
    fn wrong_datagrams(&self) -> Vec<(ErrorCode, Vec<u8>)> {
        let good = || self.query(9);
        let changed = |at: usize, value: u8| {
            let mut bytes = good().emit_datagram();
            bytes[MAGIC_BYTES + at] = value;
            bytes
        };
        let mut wrong = vec![
            (ErrorCode::UnknownVersion, changed(0, 2)),
            (ErrorCode::UnknownType, changed(6, 0x80 | 6)),
            (ErrorCode::IncorrectMessageLength, changed(3, good().emit()[3] + 1)),
            (ErrorCode::ValueNotSupported, changed(HEADER_BYTES + 4, 120)),
            (ErrorCode::InvalidFlagCombination, changed(HEADER_BYTES + 7, 0x80)),
            (ErrorCode::UnrecognizedObject, appended(&good(), &[0x07, 0xff, 0, 0])),
            (ErrorCode::InvalidExtensibilityFlags, appended(&good(), &[0xc7, 0xff, 0, 0])),
            (ErrorCode::DuplicateObject, self.with_session_twice(&good())),
            (ErrorCode::IncorrectLength, self.with_long_session(&good())),
        ];
        let ends = if self.six { ["192.0.2.1", "192.0.2.2"] } else { ["2001:db8::1", "2001:db8::2"] };
        let [source, destination] = ends.map(|address| address.parse().unwrap());
        let other_version = PathCoupled::new(source, destination);
        let options = vec![ProtocolOption { protocol: 9, profile: 1, port: None, forbidden: false }];
        let proposal = |profiles| Some(StackProposal { profiles });
        let configuration = |options| Some(StackConfiguration { hold_time: Duration::from_secs(30), options });
        let toward_edge = LooseEnd::new(self.own, self.far, Direction::Upstream).map(Mri::LooseEnd);
        let away = Nli { address: self.far, ..self.nli(9) };
        let messages = [
            (ErrorCode::InvalidRFlag, Message { reply_wanted: false, ..good() }),
            (ErrorCode::InvalidEFlag, Message { explicit: true, ..good() }),
            (ErrorCode::InvalidCFlag, Message { context_free: false, ..good() }),
            (ErrorCode::HopLimitExceeded, Message { hops: 0, ..good() }),
            (ErrorCode::IncorrectEncapsulation, hello()),
            (ErrorCode::NoRoutingState, Message { nli: Some(self.nli(9)), ..self.data(9) }),
            (ErrorCode::UnknownNslpId, Message { nli: Some(self.nli(9)), nslp_id: OTHER_NSLP, ..self.data(9) }),
            (ErrorCode::EndpointFound, Message { nslp_id: OTHER_NSLP, ..good() }),
            (ErrorCode::MissingObject, Message { query_cookie: None, ..good() }),
            (ErrorCode::MissingObject, self.data(9)),
            (ErrorCode::InvalidObjectType, Message { hello_id: Some(1), ..good() }),
            (ErrorCode::UntranslatedObject, Message { nli: Some(away), ..good() }),
            (
                ErrorCode::EmptyList,
                Message {
                    stack_proposal: proposal(vec![vec![]]),
                    stack_configuration: configuration(vec![]),
                    ..good()
                },
            ),
            (
                ErrorCode::StackMismatch,
                Message {
                    stack_proposal: proposal(vec![vec![PROTOCOL_FORWARDS_TCP]]),
                    stack_configuration: configuration(options),
                    ..good()
                },
            ),
            (ErrorCode::InvalidIpTtl, Message { mri: Some(self.mri().inverted()), ..good() }),
            (ErrorCode::ValueNotSupported, Message { mri: toward_edge, ..good() }),
            (ErrorCode::IpVersionMismatch, Message { mri: other_version.map(Mri::PathCoupled), ..good() }),
        ];
        wrong.extend(messages.into_iter().map(|(code, message)| (code, message.emit_datagram())));
        wrong
    }

    /// Returns messages that are wrong on the connection of session 3, each with the error that it is told.
    fn wrong_on_connection(&self) -> Vec<(ErrorCode, Vec<u8>)> {
        let messages = [
            (ErrorCode::IncorrectEncapsulation, self.query(3)),
            (ErrorCode::IncorrectEncapsulation, Message { context_free: true, ..self.data(3) }),
            (ErrorCode::InvalidObjectType, Message { nli: Some(self.nli(3)), ..self.data(3) }),
            (ErrorCode::NoRoutingState, self.data(4)),
            (ErrorCode::IncorrectlyDelivered, self.data(2)),
            (ErrorCode::UnknownNslpId, Message { nslp_id: OTHER_NSLP, ..self.data(3) }),
            (ErrorCode::HopLimitExceeded, Message { hops: 0, ..self.data(3) }),
        ];
        let mut wrong: Vec<_> = messages.into_iter().map(|(code, message)| (code, message.emit())).collect();
        let unknown = appended(&self.data(3), &[0x07, 0xff, 0, 0])[MAGIC_BYTES..].to_vec();
        wrong.push((ErrorCode::UnrecognizedObject, unknown));
        wrong.push((ErrorCode::DuplicateObject, self.with_session_twice(&self.data(3))[MAGIC_BYTES..].to_vec()));
        wrong
    }

    /// Returns messages whose headers cannot be read, each with the error that it is told.
    fn unreadable_on_connection(&self) -> Vec<(ErrorCode, Vec<u8>)> {
        let changed = |at: usize, value: u8| {
            let mut bytes = self.data(5).emit();
            bytes[at] = value;
            bytes
        };
        vec![
            (ErrorCode::UnknownVersion, changed(0, 9)),
            (ErrorCode::UnknownType, changed(6, 6)),
            (ErrorCode::InvalidRFlag, Message { reply_wanted: true, ..self.data(5) }.emit()),
            (ErrorCode::InvalidCFlag, Message { context_free: true, ..hello() }.emit()),
        ]
    }

    fn unanswered(&self) -> Vec<Vec<u8>> {
        let mut response = Message { query_cookie: Some(Cookie(vec![6; 16])), ..self.data(9) };
        (response.kind, response.nslp_data, response.nli) = (MessageType::Response, None, Some(self.nli(9)));
        let mut garbled = response.emit_datagram();
        garbled[MAGIC_BYTES] = 7;
        let mut error = self.query(9).emit_datagram();
        error[MAGIC_BYTES + 6] = 4;
        vec![response.emit_datagram(), garbled, error, b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![], vec![0x4e, 4]]
    }

    fn with_session_twice(&self, message: &Message) -> Vec<u8> {
        let mut bytes = message.emit_datagram();
        let end = self.session_value() + 16;
        let object = bytes[end - 20..end].to_vec();
        bytes.splice(end..end, object);
        bytes[MAGIC_BYTES + 3] += 5;
        bytes
    }

    /// Returns the message whose session is an object of one word more, and which is as long as it says.
    fn with_long_session(&self, message: &Message) -> Vec<u8> {
        let mut bytes = message.emit_datagram();
        let start = self.session_value();
        bytes.splice(start..start, [0; 4]);
        bytes[start - 1] += 1;
        bytes[MAGIC_BYTES + 3] += 1;
        bytes
    }

    /// Returns where a session stands in a datagram: behind the header, the MRI and its own object header.
    fn session_value(&self) -> usize {
        let mri = if self.six { 4 + 40 } else { 4 + 16 };
        MAGIC_BYTES + HEADER_BYTES + mri + 4
    }
}

/// A connection with the node.
struct Stream {
    tcp: TcpStream,
    messages: MessageStream,
    received: Vec<Message>,
}

impl Stream {
    fn send(&mut self, bytes: &[u8]) {
        self.tcp.write_all(bytes).unwrap();
    }

    fn receive(&mut self, what: &str) -> Message {
        let mut bytes = [0; 4096];
        while self.received.is_empty() {
            let length = self.tcp.read(&mut bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(length > 0, "{what}: the node closes the connection");
            let messages = self.messages.handle_bytes(&bytes[..length]);
            let messages = messages.into_iter().map(|message| message.unwrap().message);
            self.received.extend(messages.filter(|message| message.kind != MessageType::MaHello));
        }
        self.received.remove(0)
    }

    /// Returns whether the node ends the connection; what it says before does not matter.
    fn is_closed(&mut self) -> bool {
        let mut bytes = [0; 4096];
        loop {
            match self.tcp.read(&mut bytes) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
            }
        }
    }
}

fn hello() -> Message {
    Message { hello_id: Some(0), ..Message::new(MessageType::MaHello, 0) }
}

/// Returns the message as a datagram, with an object more that has no value.
fn appended(message: &Message, object: &[u8; 4]) -> Vec<u8> {
    let mut bytes = message.emit_datagram();
    bytes[MAGIC_BYTES + 3] += 1;
    bytes.extend_from_slice(object);
    bytes
}
