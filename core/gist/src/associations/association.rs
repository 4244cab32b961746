// SPDX-License-Identifier: Apache-2.0
//! One connection with a peer.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use netserv_model::Instant;
use netserv_wire::gist::MessageStream;

use super::backlog::Backlog;
use super::invitations::Invited;
use super::stack::Stack;
use crate::api::{FlowScope, RouteId};
use crate::cx::{Deadline, earlier};
use crate::limits;

/// One connection with a peer.
#[derive(Debug)]
pub(super) struct Association {
    pub(super) local: IpAddr,
    pub(super) peer: SocketAddr,
    /// The peer's identity and address, once a handshake has shown them.
    pub(super) name: Option<(Vec<u8>, IpAddr)>,
    pub(super) stack: Stack,
    /// The name in the peer's certificate, if it showed one.
    pub(super) certified: Option<String>,
    /// What flows the peer may speak about, by that name.
    pub(super) flows: FlowScope,
    pub(super) routes: BTreeSet<RouteId>,
    pub(super) stream: MessageStream,
    pub(super) backlog: Backlog,
    pub(super) open: bool,
    /// The peer opened it.
    pub(super) accepted: bool,
    pub(super) invited: Invited,
    /// The peer still has to be told this node's hold time.
    pub(super) introduction_due: bool,
    pub(super) peer_hold: Duration,
    pub(super) setup_deadline: Option<Instant>,
    pub(super) heard_at: Instant,
    pub(super) sent_at: Instant,
    /// Time after `sent_at` at which an MA-Hello is due.
    pub(super) hello_after: Duration,
    /// The MA-Hello whose answer is awaited.
    pub(super) asked: Option<(u32, Instant)>,
    /// When its timer fires.
    pub(super) timer: Option<Instant>,
}

impl Association {
    pub(super) fn new(
        now: Instant,
        local: IpAddr,
        peer: SocketAddr,
        stack: Stack,
        setup_deadline: Instant,
    ) -> Association {
        Association {
            local,
            peer,
            name: None,
            stack,
            certified: None,
            flows: FlowScope::default(),
            routes: BTreeSet::new(),
            stream: MessageStream::new(),
            backlog: Backlog::default(),
            open: false,
            accepted: false,
            invited: Invited(false),
            introduction_due: false,
            peer_hold: limits::PEER_TIME_MAX,
            setup_deadline: Some(setup_deadline),
            heard_at: now,
            sent_at: now,
            hello_after: limits::PEER_TIME_MAX,
            asked: None,
            timer: None,
        }
    }

    pub(super) fn deadline(&self, hold_time: Duration) -> Option<Deadline> {
        let setup = self.setup_deadline.map(|at| (at, "association setup"));
        let asked = self.asked.map(|(_, at)| (at, "hello reply"));
        let life = match (self.open, self.routes.is_empty()) {
            (false, _) => None,
            (true, true) => Some((self.heard_at.max(self.sent_at) + hold_time, "association idle")),
            (true, false) => Some((self.sent_at + self.hello_after, "association hello")),
        };
        earlier(earlier(setup, asked), life)
    }
}
