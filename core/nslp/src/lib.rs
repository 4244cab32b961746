// SPDX-License-Identifier: Apache-2.0
//! NetServ signaling on GIST's service interface, without I/O.
//!
//! A request travels downstream, node by node, while each node's controller works on it; the response comes back with
//! one entry per node. After any `handle_*`, drain [`Nslp::poll_api_call`], [`Nslp::poll_request`] and
//! [`Nslp::poll_result`], [`Nslp::poll_withdrawal`] and [`Nslp::poll_notify`], then arm a timer for [`Nslp::poll_timeout`]. An early [`Nslp::handle_timeout`] does nothing.
//!
//! An *exchange* is one request on this node, named by session and nonce: it is *pending* until this node has answered,
//! then *finished* and kept for [`Config::retention`], so that a duplicate gets the same answer and never reaches the
//! controller twice.
//!
//! # How long a node waits
//! The signed text must not change on the way, so what is left of the time travels in an unsigned envelope in front of it.
//! A node answers within the time that the envelope says, or [`Config::timeout_default`] if there is none, and at the
//! latest after [`Config::answer_time_max`]. It sends the request on with [`limits::HOP_TIME`] less than it has left, or
//! with half of it if that is more, so each node gives up before the one upstream of it, who still hears what is known.
//! Where less than [`limits::BUDGET_MIN`] would be left, a node answers for itself and says that the stack is incomplete.
//! If a handshake takes longer than `HOP_TIME` and a node further on is silent, the stack ends a node too early, but says
//! that it is incomplete.
//!
//! The GIST hop count goes on as it came: it bounds loops. A node that gets a request with no hop left does not send it on.
//!
//! # What is asked of GIST
//! Requests and responses travel reliably. When the last exchange and the last lease of a session and flow are gone, the state
//! downstream is given up (`SetStateLifetime` 0); until then the next request of the session needs no handshake.
//! State upstream is the querying peer's, and ends when that peer refreshes it no more.
//!
//! # How a path is followed
//! What a SETUP installed here or further on is a *lease* of this node until it ends, is removed, or its path leads
//! elsewhere. GIST keeps and refreshes the state downstream for as long. When GIST says that the next node is another one,
//! or that there is none any more, the node sends the SETUP on again, as it came; who has it answers with what is left of
//! its lease. Once all nodes up to the end of the path have answered, a TEAR goes to the node that was the next before,
//! which ends the lease there and passes it on. A node after which there is none looks for one every
//! [`limits::LOOK_INTERVAL`]. What changed goes upstream as a NOTIFY, to whoever sent the SETUP.
//!
//! # For whom a request is
//! A request may be for some places, names or capabilities only. The envelope says how many nodes it has passed, so a node
//! knows whether it is the first one. Whether it is the last one is known when those further on have answered: until then
//! its controller is not asked. A node after which nobody answered is the last one, whether its stack is proven to be whole or
//! not. Where a request is for others, the controller only says whether its user is known; then the node follows the path of
//! a SETUP all the same. A module leaves a node that is not the last one any more once a node further on has it, and one that is
//! not the first one any more once the requester's host has left it by TEAR.
//!
//! A request may also name where its path leads, and operators' domains, so that a copy of it is taken nowhere else. A node refuses one that
//! follows a flow to elsewhere, or whose previous node did not show by GIST's Query that this node is on the flow's path, and sends it
//! no further. The return path is a path of its own. Off the path each message has a flow of its own, which nothing is asked of.
//!
//! # Return paths
//! A request may ask the last node to send it back (`trigger: return`): as its user signed it, in the session whose bits are
//! all the other way round, on a flow from that node to the source of the first flow. What the nodes there say comes with the
//! answer. It is sent only where the first node saw that the flow's source is the requester's own host, which the envelope
//! says (`may-return`), and a peer outside of the domain is believed only about itself; once for a session and nonce, and
//! [`limits::RETURNS_BURST_MAX`] times a second for each source. The return path of a return
//! path is the first session again, so nothing goes to and fro. A node on both paths says on the second what it did on the
//! first. The last node follows the return path of a SETUP until the lease ends there.
//!
//! # Nodes off the path
//! A request with `off-path` goes, once the path's own nodes have answered, from the first of them, the last one or each to its
//! neighbours: peers that GIST found within [`limits::NEIGHBOUR_TIME`], and configured ones. Each gets it on a flow from this node's
//! address to its own, in an envelope that says how many hops and messages are left; it answers for itself and for those that it
//! sent the request to. Who has it already says so. All take part in the lease as long as it runs, and nothing follows them.
//!
//! A request whose connection broke is sent again, at most [`limits::RESENDS_MAX`] times: the next node takes the
//! second for a duplicate.
//!
//! # Parts
//! [`Nslp`] only dispatches. Each part owns its state, and imports none that stands before it here: `requests` leads requests
//! through the other parts, `verbs` has what is done for one verb alone, `notify` news for those who sent SETUPs, `sessions` leases
//! with their previous and next nodes, `off_path` neighbours, `round_trip` requests that go back, `exchanges` the requests on this
//! node, and `cx` what every call lends. A handler is a function of the parts that it is lent; what concerns a part above it goes up
//! as a value.
#![forbid(unsafe_code)]

mod assembly;
mod counters;
mod cx;
mod exchanges;
pub mod limits;
mod notify;
mod off_path;
mod requests;
mod round_trip;
mod sessions;
#[cfg(test)]
mod tests;
mod verbs;

use std::net::IpAddr;

use netserv_gist::{ApiCall, ApiError, Event, MessageHandle};
use netserv_model::api::RequestResult;
use netserv_model::domain::DomainPolicy;
use netserv_model::effect::{ModuleNews, RequestId};
use netserv_model::notify::Notify;
use netserv_model::request::{NodeReport, Request};
use netserv_model::route::RouteChange;
use netserv_model::{Instant, Now, Refusal};
use netserv_wire::gist::Direction;
use netserv_wire::nslp::{Part, Payload};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

pub use counters::{Counters, StateCounts};
pub use cx::{Config, LocalId, LocalPath, LocalRequest, Withdrawal};

use assembly::{Assembled, Assemblies};
use cx::{Asker, Cx, Outbox, Received, hop_to};
use notify::{Farewell, on_module_news, on_notify};
use requests::{Requests, on_request, on_response};
use sessions::{SessionIds, on_question, on_tear};

/// One node's NetServ signaling: `handle_*` takes input, `poll_*` gives output, and what a message does is for the parts.
#[derive(Debug)]
pub struct Nslp {
    config: Config,
    domain: DomainPolicy,
    random: StdRng,
    out: Outbox,
    requests: Requests,
    ids: SessionIds,
    farewell: Farewell,
    assemblies: Assemblies,
}

/// The parts, each lent by itself.
struct Parts<'a> {
    cx: Cx<'a>,
    requests: &'a mut Requests,
    ids: &'a SessionIds,
    farewell: &'a mut Farewell,
}

impl Nslp {
    /// Returns a node's signaling without state. Give a `seed` that nobody can guess: session ids are made from it.
    pub fn new(config: Config, seed: [u8; 32]) -> Nslp {
        let mut random = StdRng::from_seed(seed);
        Nslp {
            ids: SessionIds::new(config.session_secret.unwrap_or_else(|| random.random())),
            requests: Requests::new(config.leases_max),
            config,
            domain: DomainPolicy::default(),
            random,
            out: Outbox::default(),
            farewell: Farewell::default(),
            assemblies: Assemblies::default(),
        }
    }

    /// Takes the node's own addresses after a change.
    pub fn handle_addresses(&mut self, own_addresses: Vec<IpAddr>) {
        self.config.own_addresses = own_addresses;
    }

    /// Takes what the operator wants at the domain's border.
    pub fn handle_domain(&mut self, domain: DomainPolicy) {
        self.domain = domain;
    }

    /// Takes what GIST tells; events of other NSLPs and malformed bytes are passed over.
    pub fn handle_event(&mut self, now: Now, event: Event) {
        let now = now.instant;
        match event {
            Event::RecvMessage {
                nslp_id,
                session,
                mri,
                data,
                local,
                validated,
                hops,
                sii,
                peer,
                peer_name,
                claims,
                association,
                attributes,
                ip_distance,
                provenance,
                ..
            } => {
                // A Query without payload of ours shows up as an empty message.
                if nslp_id != self.config.nslp_id || data.is_empty() {
                    return;
                }
                let side = self.domain.neighbours.side(peer, peer_name.as_deref());
                let by_datagram = !attributes.reliable;
                let asker = Asker { sii, address: peer, association, side, is_first: false, by_datagram };
                let hop = hop_to(attributes, provenance.rtt, ip_distance, peer_name);
                let along_flow = provenance.along_flow;
                let from = Received { session, mri, local, hops, asker, claims, hop, along_flow };
                if validated {
                    self.requests.off_path.neighbourhood.note(now, &asker, local);
                    self.handle_data(now, &from, data);
                } else {
                    self.handle_past_path(now, &from, &data);
                }
            }
            Event::MessageStatus { nslp_id, handle, status, .. } => {
                if nslp_id == self.config.nslp_id {
                    let Parts { mut cx, requests, .. } = self.parts(now);
                    requests::on_status(&mut cx, requests, handle, status);
                }
            }
            Event::NetworkNotification { nslp_id, session, mri, kind } => {
                if nslp_id == self.config.nslp_id {
                    let Parts { mut cx, requests, .. } = self.parts(now);
                    requests::on_notification(&mut cx, requests, session, &mri, kind);
                }
            }
            Event::Malformed { .. } => {}
        }
    }

    /// Takes the request of a local client; the result comes from [`Nslp::poll_result`].
    ///
    /// # Errors
    /// Refuses what is no request, a path between two IP versions, and what is over the limits.
    pub fn handle_local(&mut self, now: Now, request: LocalRequest) -> Result<(), Refusal> {
        let Parts { mut cx, requests, ids, .. } = self.parts(now.instant);
        requests::on_local(&mut cx, requests, ids, request)
    }

    /// Takes that a request is of the user whom it names, as the controller has found.
    pub fn handle_proven(&mut self, request: RequestId) {
        self.requests.exchanges.set_proven(request);
    }

    /// Takes the controller's answer on this node; the signaling fills in the address.
    pub fn handle_report(&mut self, now: Now, request: RequestId, report: NodeReport) {
        let Parts { mut cx, requests, .. } = self.parts(now.instant);
        requests::on_report(&mut cx, requests, request, report);
    }

    /// Takes GIST's refusal of a call: no status will follow for its message.
    pub fn handle_api_error(&mut self, now: Now, handle: MessageHandle, error: ApiError) {
        let Parts { mut cx, requests, .. } = self.parts(now.instant);
        requests::on_api_error(&mut cx, requests, handle, error);
    }

    /// Takes that the node's routes changed: the paths that it concerns are checked, some at a time.
    pub fn handle_routes(&mut self, now: Now, change: RouteChange) {
        let Parts { mut cx, requests: Requests { sessions, .. }, .. } = self.parts(now.instant);
        sessions.checks.routes_changed(&mut cx, &mut sessions.leases, change);
    }

    /// Takes what happened to a module on this node, and tells whoever sent a SETUP for it and the node's own clients. A
    /// lease that ended is not followed any more; what nodes further on have stays, and their news are passed on for a while. Some of it
    /// is for the requester of one SETUP.
    pub fn handle_module_news(&mut self, now: Now, news: ModuleNews) {
        let Parts { mut cx, requests: Requests { exchanges, sessions, .. }, .. } = self.parts(now.instant);
        on_module_news(&mut cx, exchanges, sessions, news);
    }

    /// Takes that the node is going to stop in order: whoever sent a SETUP for what it has is told, some at a time.
    pub fn handle_stop(&mut self, now: Now) {
        let Parts { mut cx, requests, farewell, .. } = self.parts(now.instant);
        farewell.begin(&mut cx, &mut requests.sessions.leases);
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Now) {
        let now = now.instant;
        self.out.counters.assemblies_lost += self.assemblies.handle_timeout(now);
        let Parts { mut cx, requests, farewell, .. } = self.parts(now);
        requests::answers_due(&mut cx, requests);
        requests::copies_due(&mut cx, requests);
        requests::leases_due(&mut cx, requests);
        let Requests { sessions, .. } = requests;
        sessions.checks.go_on(&mut cx, &mut sessions.leases);
        farewell.go_on(&mut cx, &mut sessions.leases);
    }

    /// Returns whether all are told that the node is going to stop, or the time for that is up.
    pub fn has_said_farewell(&self, now: Instant) -> bool {
        self.farewell.is_over(now, self.out.has_news())
    }

    /// Returns the next call to make to GIST. If GIST refuses it, say so with [`Nslp::handle_api_error`].
    pub fn poll_api_call(&mut self) -> Option<ApiCall> {
        self.out.poll_call()
    }

    /// Returns the next request for the controller.
    pub fn poll_request(&mut self) -> Option<(RequestId, Request)> {
        self.out.poll_request()
    }

    /// Returns the next result for a local client.
    pub fn poll_result(&mut self) -> Option<(LocalId, RequestResult)> {
        self.out.poll_result()
    }

    /// Returns the next module that is to go.
    pub fn poll_withdrawal(&mut self) -> Option<Withdrawal> {
        self.out.poll_withdrawal()
    }

    /// Returns the next of the news for this node's own clients.
    pub fn poll_notify(&mut self) -> Option<Notify> {
        self.out.poll_notify()
    }

    /// Returns when to call [`Nslp::handle_timeout`], and for what.
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let Requests { exchanges, sessions, .. } = &self.requests;
        let due = [
            exchanges.poll_timeout(),
            exchanges.retransmissions.poll_timeout().map(|at| (at, "nslp retransmission")),
            self.assemblies.poll_timeout().map(|at| (at, "nslp assembly")),
            sessions.leases.poll_timeout().map(|at| (at, "nslp lease")),
            sessions.ended.poll_timeout().map(|at| (at, "nslp ended lease")),
            sessions.checks.poll_timeout().map(|at| (at, "nslp check of routes")),
            self.farewell.poll_timeout().map(|at| (at, "nslp farewell")),
        ];
        due.into_iter().flatten().min()
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        self.out.counters
    }

    /// Returns how many nodes next to this one are remembered.
    pub fn neighbours(&self) -> usize {
        self.requests.off_path.neighbourhood.len()
    }

    /// Returns how much state there is.
    pub fn state_counts(&self) -> StateCounts {
        let Requests { exchanges, sessions, .. } = &self.requests;
        StateCounts {
            pending: exchanges.pending(),
            finished: exchanges.finished(),
            sessions: exchanges.sessions(),
            assemblies: self.assemblies.len(),
            leases: sessions.leases.len(),
            ended: sessions.ended.len(),
        }
    }

    fn handle_data(&mut self, now: Instant, from: &Received, data: Vec<u8>) {
        let Some(text) = self.whole_text(now, from, data) else { return };
        let Parts { mut cx, requests, .. } = self.parts(now);
        let Requests { exchanges, sessions, .. } = requests;
        match (Payload::parse(&text), from.mri.direction()) {
            (Ok(Payload::Request(envelope, message)), Some(Direction::Downstream)) => {
                on_request(&mut cx, requests, from, &envelope, *message);
            }
            (Ok(Payload::Response(response)), Some(Direction::Upstream)) => {
                on_response(&mut cx, requests, from, *response);
            }
            (Ok(Payload::Notify(notify)), Some(Direction::Upstream)) => {
                on_notify(&mut cx, sessions, from, &notify, &text);
            }
            (Ok(Payload::Tear(tear)), Some(Direction::Downstream)) => {
                on_tear(&mut cx, exchanges, sessions, from, &tear);
            }
            (Ok(Payload::Tear(tear)), Some(Direction::Upstream)) => {
                on_question(&mut cx, &sessions.leases, &sessions.withdrawn, from, &tear);
            }
            (Err(refusal), Some(Direction::Downstream)) => requests::on_bad(&mut cx, from, &text, refusal),
            (Err(_), Some(Direction::Upstream)) | (Ok(Payload::Part(_)), _) => cx.out.counters.messages_bad += 1,
            (Ok(Payload::Request(..) | Payload::Response(_) | Payload::Notify(_) | Payload::Tear(_)) | Err(_), _) => {
                cx.out.counters.messages_unexpected += 1;
            }
        }
    }

    /// Takes a message of a peer that the routing state does not name, which may be a TEAR for what the path has left.
    fn handle_past_path(&mut self, now: Instant, from: &Received, data: &[u8]) {
        let Parts { mut cx, requests: Requests { exchanges, sessions, .. }, .. } = self.parts(now);
        match (Payload::parse(data), from.mri.direction()) {
            (Ok(Payload::Tear(tear)), Some(Direction::Downstream)) => {
                on_tear(&mut cx, exchanges, sessions, from, &tear);
            }
            (Ok(Payload::Tear(tear)), Some(Direction::Upstream)) => {
                on_question(&mut cx, &sessions.leases, &sessions.withdrawn, from, &tear);
            }
            (_, _) => cx.out.counters.messages_unexpected += 1,
        }
    }

    /// Returns the text, once all of its parts are there.
    fn whole_text(&mut self, now: Instant, from: &Received, data: Vec<u8>) -> Option<Vec<u8>> {
        let Some(part) = Part::parse(&data) else { return Some(data) };
        let key = (from.session, from.mri.clone(), part.nonce);
        match self.assemblies.handle_part(now, from.asker.address, key, part) {
            Assembled::Waiting => None,
            Assembled::Whole(bytes) => Some(bytes),
            Assembled::Broken => {
                self.out.counters.assemblies_lost += 1;
                None
            }
        }
    }

    fn parts(&mut self, now: Instant) -> Parts<'_> {
        let Nslp { config, domain, random, out, requests, ids, farewell, .. } = self;
        Parts { cx: Cx { now, config, domain, random, out }, requests, ids, farewell }
    }
}
