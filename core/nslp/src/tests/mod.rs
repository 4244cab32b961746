// SPDX-License-Identifier: Apache-2.0
//! Timed scripts: one node, with GIST, the controller and the clients played by the test.

mod brought;
mod checks;
mod copied;
mod datagrams;
mod domain;
mod duplicates;
mod follow;
mod forwarder;
mod hop;
mod limits;
mod loss;
mod notify;
mod off_path;
mod origin;
mod questions;
mod removal;
mod round_trip;
mod targeting;

use std::net::IpAddr;
use std::time::Duration;

use netserv_gist::{
    ApiCall, ApiError, Event, InterfaceId, MessageHandle, NoPeerReason, Provenance, SendStatus, SiiHandle,
    TransferAttributes,
};
use netserv_model::api::RequestResult;
use netserv_model::effect::RequestId;
use netserv_model::request::{Ask, NodeReport, Outcome, PathEnd};
use netserv_model::{Nonce, Now, Refusal, RefusalKind, SessionId, UnixTime};
use netserv_wire::gist::{Mri, PathCoupled};
use netserv_wire::nslp::{Payload, RequestBuilder, Response};

use crate::{Config, LocalId, LocalPath, LocalRequest, Nslp};

const NSLP_ID: u16 = 32_704;
const SESSION: SessionId = SessionId([0x11; 16]);

/// One node called `me` and its clock.
struct Node {
    nslp: Nslp,
    now: Now,
    /// What it sends is to go by datagram.
    by_datagram: bool,
}

/// A message that the node sent.
#[derive(Debug)]
struct SentMessage {
    handle: MessageHandle,
    session: SessionId,
    mri: Mri,
    data: Vec<u8>,
    hops: Option<u8>,
    timeout: Duration,
}

impl SentMessage {
    /// Returns how long the next node may take, in milliseconds, and the text of the user.
    fn request(&self) -> (Option<u128>, String) {
        let Ok(Payload::Request(envelope, message)) = Payload::parse(&self.data) else { panic!("{self:?}") };
        (envelope.budget.map(|budget| budget.as_millis()), message.as_str().to_owned())
    }
}

impl Node {
    fn new(change: impl FnOnce(&mut Config)) -> Node {
        let mut config = Config::new("me".parse().unwrap(), NSLP_ID);
        config.own_addresses = vec![ip("10.0.0.1"), ip("10.0.1.1")];
        change(&mut config);
        Node { nslp: Nslp::new(config, [1; 32]), now: Now::default(), by_datagram: false }
    }

    /// Advances to a time in milliseconds, serving every timer on the way.
    fn at(&mut self, ms: u64) {
        let end = netserv_model::Instant::from_millis(ms);
        assert!(end >= self.now.instant, "time goes on");
        while let Some((due, _)) = self.nslp.poll_timeout().filter(|(due, _)| *due <= end) {
            self.now = Now { instant: due.max(self.now.instant), wall: UnixTime(0) };
            self.nslp.handle_timeout(self.now);
        }
        self.now.instant = end;
    }

    fn local(&mut self, id: u64, nonce: u8, path: Option<LocalPath>) -> Result<(), Refusal> {
        let timeout = Duration::from_secs(5);
        let (id, session) = (LocalId(id), Some(SESSION));
        self.nslp.handle_local(self.now, LocalRequest { id, message: probe(nonce), path, session, timeout })
    }

    fn receive(&mut self, mri: &Mri, hops: u8, data: &[u8]) {
        self.nslp.handle_event(self.now, received(mri, hops, data));
    }

    /// The previous node sends a request that may take so long here.
    fn receive_within(&mut self, ms: u64, text: &str) {
        let data = format!("NETSERV/1 HOP\nbudget-ms: {ms}\n\n{text}");
        self.receive(&flow(), 8, data.as_bytes());
    }

    fn receive_response(&mut self, response: &Response) {
        self.receive(&flow().inverted(), 9, response.emit().as_bytes());
    }

    fn status(&mut self, handle: MessageHandle, status: SendStatus) {
        let event = Event::MessageStatus { nslp_id: NSLP_ID, handle, status, carriage: None };
        self.nslp.handle_event(self.now, event);
    }

    fn no_peer(&mut self, handle: MessageHandle) {
        self.status(handle, SendStatus::NoPeer(NoPeerReason::Unreachable));
    }

    fn notify(&mut self, kind: netserv_gist::Notification) {
        let event = Event::NetworkNotification { nslp_id: NSLP_ID, session: SESSION, mri: flow(), kind };
        self.nslp.handle_event(self.now, event);
    }

    /// The controller takes the next request, which must be there.
    fn asked(&mut self) -> RequestId {
        self.nslp.poll_request().expect("a request for the controller").0
    }

    /// The controller is asked, and finds the request to be of its user.
    fn proven(&mut self) {
        let asked = self.asked();
        self.nslp.handle_proven(asked);
    }

    fn report(&mut self, request: RequestId, report: NodeReport) {
        self.nslp.handle_report(self.now, request, report);
    }

    /// The node must have sent exactly one message.
    fn sent(&mut self) -> SentMessage {
        let call = self.nslp.poll_api_call().expect("a call to GIST");
        let ApiCall::SendMessage { handle, nslp_id, session, mri, attributes, sii, timeout, data, hops, .. } = call
        else {
            panic!("{call:?}")
        };
        // Answers name whom they are for.
        assert_eq!((nslp_id, sii.is_some()), (NSLP_ID, mri == flow().inverted() && is_response(&data)));
        assert_eq!(attributes.reliable, !self.by_datagram);
        SentMessage { handle, session, mri, data, hops, timeout }
    }

    fn sent_request(&mut self) -> SentMessage {
        let sent = self.sent();
        assert!(matches!(Payload::parse(&sent.data), Ok(Payload::Request(..))), "{sent:?}");
        assert_eq!(sent.mri, flow());
        self.quiet();
        sent
    }

    fn sent_response(&mut self) -> Response {
        let sent = self.sent();
        assert_eq!(sent.mri, flow().inverted());
        assert_eq!(sent.session, SESSION);
        self.quiet();
        let Ok(Payload::Response(response)) = Payload::parse(&sent.data) else { panic!("{sent:?}") };
        *response
    }

    fn result(&mut self, id: u64) -> RequestResult {
        let (got, result) = self.nslp.poll_result().expect("a result");
        assert_eq!(got, LocalId(id));
        result
    }

    /// Nothing more comes out of the node.
    fn quiet(&mut self) {
        assert_eq!(self.nslp.poll_api_call(), None);
        assert_eq!(self.nslp.poll_result(), None);
    }

    /// After the retention, the node gives the state downstream up if it has any, and is empty.
    fn forgets(&mut self, sent_on: bool) {
        self.at(self.now.instant.as_nanos() / 1_000_000 + 200_000);
        if sent_on {
            let call = self.nslp.poll_api_call();
            let lifetime = Duration::ZERO;
            let (session, mri) = (Some(SESSION), Some(flow()));
            let given_up = ApiCall::SetStateLifetime { nslp_id: NSLP_ID, session, mri, lifetime };
            assert_eq!(call, Some(given_up));
        }
        self.quiet();
        assert_eq!(self.nslp.state_counts(), crate::StateCounts::default());
        assert_eq!(self.nslp.poll_timeout(), None);
    }
}

fn is_response(data: &[u8]) -> bool {
    matches!(Payload::parse(data), Ok(Payload::Response(_) | Payload::Part(_)))
}

fn received(mri: &Mri, hops: u8, data: &[u8]) -> Event {
    Event::RecvMessage {
        nslp_id: NSLP_ID,
        session: SESSION,
        mri: mri.clone(),
        data: data.to_vec(),
        sii: SiiHandle::new(1, 1),
        peer: ip("10.0.0.9"),
        claims: None,
        local: ip("10.0.0.1"),
        interface: InterfaceId(0),
        ip_distance: None,
        attributes: TransferAttributes { reliable: true, secure: false, inside: false },
        validated: true,
        peer_name: None,
        association: None,
        hops,
        provenance: Provenance { along_flow: true, ..Provenance::default() },
        query: None,
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn flow() -> Mri {
    Mri::PathCoupled(PathCoupled::new(ip("10.0.0.1"), ip("10.9.0.1")).unwrap())
}

fn path() -> Option<LocalPath> {
    Some(LocalPath { source: ip("10.0.0.1"), destination: ip("10.9.0.1") })
}

fn probe(nonce: u8) -> String {
    let builder = RequestBuilder::probe(&[Ask::Nodes]);
    builder.build(UnixTime(0), Nonce([nonce; 16])).unwrap().into_message().as_str().to_owned()
}

fn report(node: &str, address: &str) -> NodeReport {
    NodeReport {
        node: node.parse().unwrap(),
        address: ip(address),
        outcome: Outcome::Probed,
        took_us: 3,
        hop: None,
        load: None,
        modules: Vec::new(),
        blocks: Vec::new(),
        environments: Vec::new(),
        policy: None,
    }
}

/// What a controller says on a host.
fn not_a_node() -> NodeReport {
    let refusal = Refusal::new(RefusalKind::NotANode, "this is a host");
    NodeReport { outcome: Outcome::Refused(refusal), ..report("me", "0.0.0.0") }
}

fn response(nonce: u8, nodes: &[&str]) -> Response {
    Response {
        session: SESSION,
        nonce: Nonce([nonce; 16]),
        entries: nodes.iter().map(|node| report(node, "10.5.0.1")).collect(),
        incomplete: None,
        end: Some(PathEnd::Unreachable),
        withheld: Default::default(),
        foreign: 0,
        returned: None,
        beside: Default::default(),
        unknown: Vec::new(),
    }
}

fn names(entries: &[NodeReport]) -> Vec<&str> {
    entries.iter().map(|entry| entry.node.as_str()).collect()
}

fn kind(refusal: Option<&Refusal>) -> Option<RefusalKind> {
    refusal.map(|refusal| refusal.kind)
}

fn own_destination() -> ApiError {
    ApiError::OwnDestination
}
