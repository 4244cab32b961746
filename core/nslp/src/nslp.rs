// SPDX-License-Identifier: Apache-2.0
//! The node's signaling: `handle_*` takes input, `poll_*` gives output.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use netserv_gist::{ApiCall, ApiError, Event, MessageHandle, SendOptions, SiiHandle, TransferAttributes};
use netserv_model::api::RequestResult;
use netserv_model::domain::DomainPolicy;
use netserv_model::effect::RequestId;
use netserv_model::notify::Notify;
use netserv_model::request::{Body, Hop, NodeReport, Outcome, PathEnd, Probe, Request};
use netserv_model::target::{Scope, Target};
use netserv_model::{Instant, ModuleName, NodeId, Nonce, Now, Refusal, RefusalKind, SessionId, UserId};
use netserv_wire::gist::{Mri, PathCoupled};
use netserv_wire::nslp::{self, Envelope, Message, Response};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::assembly::Assemblies;
use crate::burst::{Burst, SourceBursts};
use crate::config::{Config, LocalId, LocalPath, LocalRequest};
use crate::counters::{Counters, StateCounts};
use crate::exchange::{Arrival, Beyond, Exchange, ExchangeKey, Own, Requester, budget_of, refused};
use crate::leases::{Asker, Leases};
use crate::limits::{
    COPIES_BURST_MAX, COPIES_INTERVAL, FINISHED_MAX, PENDING_MAX, QUESTIONS_BURST_INTERVAL, QUESTIONS_BURST_MAX,
    RETURNS_BURST_MAX, RETURNS_INTERVAL, RETURNS_OF_ALL_MAX,
};
use crate::neighbourhood::Neighbourhood;
use crate::targeting::{Place, not_last};

mod beside;
pub(crate) mod brought;
mod checks;
mod datagrams;
mod domain;
mod follow;
mod hop;
mod news;
mod questions;
mod receive;
mod removal;
mod sessions;
mod shares;
mod turn;

use domain::Shown;

/// One node's NetServ signaling.
#[derive(Debug)]
pub struct Nslp {
    config: Config,
    domain: DomainPolicy,
    /// What sessions of own clients are made from that name none.
    session_secret: [u8; 32],
    rng: StdRng,
    exchanges: BTreeMap<ExchangeKey, Exchange>,
    pending: usize,
    timers: BTreeSet<(Instant, ExchangeKey)>,
    by_request: BTreeMap<RequestId, ExchangeKey>,
    by_handle: BTreeMap<MessageHandle, Sent>,
    /// How many exchanges and leases use each path downstream.
    paths: BTreeMap<(SessionId, Arc<Mri>), usize>,
    leases: Leases,
    neighbourhood: Neighbourhood,
    brought: brought::Brought,
    check: Option<checks::Check>,
    farewell: Option<news::Farewell>,
    withdrawn: questions::Withdrawn,
    assemblies: Assemblies,
    retransmissions: datagrams::Retransmissions,
    counters: Counters,
    next_request: u64,
    next_handle: u64,
    api_calls: VecDeque<ApiCall>,
    requests: VecDeque<(RequestId, Request)>,
    results: VecDeque<(LocalId, RequestResult)>,
    withdrawals: VecDeque<Withdrawal>,
    notifies: VecDeque<Notify>,
    /// Requests sent back.
    returns: SourceBursts,
    /// Questions sent.
    questions: Burst,
    /// Messages to nodes beside paths.
    copies: Burst,
}

/// A module that is to go, since the path of the SETUP that installed it leads elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdrawal {
    /// Its owner.
    pub user: UserId,
    /// The module.
    pub module: ModuleName,
    /// The nonce of the SETUP: what came after it stays.
    pub nonce: Nonce,
}

/// What a message handle stands for.
#[derive(Clone, Copy, Debug)]
enum Sent {
    Request(ExchangeKey),
    /// A request to a neighbour beside the path.
    Copy(ExchangeKey, IpAddr),
    Answer,
    News,
}

/// Where a message goes.
#[derive(Clone, Copy)]
struct Route<'a> {
    session: SessionId,
    mri: &'a Mri,
    /// A peer that need not be the next one any more.
    sii: Option<SiiHandle>,
    /// If not, it goes by datagram where there is no connection, or past the path at once or not at all.
    reliable: bool,
    /// It is not to leave the domain.
    inside: bool,
}

/// A message of a peer, as GIST delivered it.
#[derive(Clone)]
struct Received {
    session: SessionId,
    mri: Mri,
    local: IpAddr,
    hops: u8,
    /// Who sent it.
    asker: Asker,
    /// Who it says that it is from, if that is a peer.
    claims: Option<SiiHandle>,
    /// The way to whoever sent it.
    hop: Hop,
}

impl Nslp {
    /// Returns a node's signaling without state. Give a `seed` that nobody can guess: session ids are made from it.
    pub fn new(config: Config, seed: [u8; 32]) -> Nslp {
        let mut rng = StdRng::from_seed(seed);
        Nslp {
            session_secret: config.session_secret.unwrap_or_else(|| rng.random()),
            leases: Leases::new(config.leases_max),
            neighbourhood: Neighbourhood::default(),
            brought: brought::Brought::default(),
            config,
            domain: DomainPolicy::default(),
            rng,
            exchanges: BTreeMap::new(),
            pending: 0,
            timers: BTreeSet::new(),
            by_request: BTreeMap::new(),
            by_handle: BTreeMap::new(),
            paths: BTreeMap::new(),
            check: None,
            farewell: None,
            withdrawn: questions::Withdrawn::default(),
            assemblies: Assemblies::default(),
            retransmissions: datagrams::Retransmissions::default(),
            counters: Counters::default(),
            next_request: 1,
            next_handle: 1,
            api_calls: VecDeque::new(),
            requests: VecDeque::new(),
            results: VecDeque::new(),
            withdrawals: VecDeque::new(),
            notifies: VecDeque::new(),
            returns: SourceBursts::new(RETURNS_BURST_MAX, RETURNS_OF_ALL_MAX, RETURNS_INTERVAL),
            questions: Burst::new(QUESTIONS_BURST_MAX, QUESTIONS_BURST_INTERVAL),
            copies: Burst::new(COPIES_BURST_MAX, COPIES_INTERVAL),
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
                let hop = hop::hop_to(attributes, provenance.rtt, ip_distance, peer_name);
                let from = Received { session, mri, local, hops, asker, claims, hop };
                if validated {
                    self.neighbourhood.note(now.instant, &asker, local);
                    self.handle_data(now.instant, &from, &data);
                } else {
                    self.handle_past_path(now.instant, &from, &data);
                }
            }
            Event::MessageStatus { nslp_id, handle, status, .. } => {
                if nslp_id == self.config.nslp_id {
                    self.handle_status(now.instant, handle, status);
                }
            }
            Event::NetworkNotification { nslp_id, session, mri, kind } => {
                if nslp_id == self.config.nslp_id {
                    self.handle_notification(now.instant, session, &mri, kind);
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
        let LocalRequest { id, message: text, path, session, timeout } = request;
        let message = Message::parse(text.as_bytes())?;
        self.counters.requests_local += 1;
        // Nodes that came since are found by those who do not say that they go on with a session.
        let is_afresh = session.is_none();
        let session = session.unwrap_or_else(|| self.session_of(&message, path));
        let key = (session, message.nonce());
        if self.exchanges.contains_key(&key) {
            return self.handle_local_duplicate(key, &message, id);
        }
        let flow = |path: LocalPath| PathCoupled::new(path.source, path.destination).map(Mri::PathCoupled);
        let mri = match path.map(flow) {
            None => None,
            Some(Some(mri)) => Some(mri),
            Some(None) => {
                let detail = "the path's source and destination are of two IP versions";
                return Err(Refusal::new(RefusalKind::BadRequest, detail));
            }
        };
        if !self.has_room(now.instant, &message) {
            return Err(too_many_pending());
        }
        let time = if timeout.is_zero() { self.config.timeout_default } else { timeout };
        let address = path.map(|path| path.source).or_else(|| self.config.own_addresses.first().copied());
        let may_return = path.is_some_and(|path| self.config.own_addresses.contains(&path.source));
        let arrival = Arrival::own(message, Requester::Local(vec![id]), mri, address);
        self.start(now.instant, key, Arrival { time, may_return, is_afresh, ..arrival });
        Ok(())
    }

    /// Takes the controller's answer on this node; the signaling fills in the address.
    pub fn handle_report(&mut self, now: Now, request: RequestId, mut report: NodeReport) {
        let Some(key) = self.by_request.remove(&request) else {
            self.counters.reports_late += 1;
            return;
        };
        let exchange = self.exchanges.get_mut(&key).expect("every request named in by_request has its exchange");
        if let (Outcome::Refused(refusal), Some(reason)) = (&report.outcome, &exchange.passed_by)
            && refusal.kind != RefusalKind::NotANode
        {
            // Whom it is not for need not know its user.
            exchange.is_vouched = false;
            report.outcome = Outcome::NotTargeted { reason: reason.clone() };
        }
        let not_a_node = report.outcome.is_refused_for(RefusalKind::NotANode);
        exchange.own = if self.config.host_only && not_a_node && exchange.mri.is_some() {
            Own::LeftOut
        } else {
            report.address = exchange.address.unwrap_or(report.address);
            Own::Reported(Box::new(report))
        };
        self.turn(now.instant, key);
        self.finish_if_ready(now.instant, key);
    }

    /// Takes GIST's refusal of a call: no status will follow for its message.
    pub fn handle_api_error(&mut self, now: Now, handle: MessageHandle, error: ApiError) {
        match self.by_handle.remove(&handle) {
            None => {}
            Some(Sent::Answer) => self.counters.responses_lost += 1,
            Some(Sent::News) => self.counters.news_dropped += 1,
            Some(Sent::Copy(key, to)) => self.settle_copy(now.instant, key, to, None),
            Some(Sent::Request(key)) if error == ApiError::OwnDestination => {
                self.settle(now.instant, key, Beyond::nobody(Some(PathEnd::Destination)));
            }
            Some(Sent::Request(key)) => {
                let detail = format!("{} could not send the request on: {error}", self.config.node);
                self.settle(now.instant, key, Beyond::unknown(Refusal::new(RefusalKind::NodeFailed, detail)));
            }
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Now) {
        let now = now.instant;
        self.counters.assemblies_lost += self.assemblies.handle_timeout(now);
        while let Some(&(due, key)) = self.timers.first() {
            if due > now {
                break;
            }
            let exchange = self.exchanges.get_mut(&key).expect("every timer has its exchange");
            if exchange.is_pending() {
                self.give_up(now, key);
                self.counters.requests_timed_out += 1;
            } else {
                self.forget(key);
            }
        }
        self.retransmit_due(now);
        self.follow_due(now);
        self.check_due(now);
        self.farewell_due(now);
    }

    /// Returns the next call to make to GIST. If GIST refuses it, say so with [`Nslp::handle_api_error`].
    pub fn poll_api_call(&mut self) -> Option<ApiCall> {
        self.api_calls.pop_front()
    }

    /// Returns the next request for the controller.
    pub fn poll_request(&mut self) -> Option<(RequestId, Request)> {
        self.requests.pop_front()
    }

    /// Returns the next result for a local client.
    pub fn poll_result(&mut self) -> Option<(LocalId, RequestResult)> {
        self.results.pop_front()
    }

    /// Returns the next module that is to go.
    pub fn poll_withdrawal(&mut self) -> Option<Withdrawal> {
        self.withdrawals.pop_front()
    }

    /// Returns the next of the news for this node's own clients.
    pub fn poll_notify(&mut self) -> Option<Notify> {
        self.notifies.pop_front()
    }

    /// Returns when to call [`Nslp::handle_timeout`], and for what.
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let exchange = self.timers.first().map(|(due, key)| {
            let pending = self.exchanges.get(key).is_some_and(Exchange::is_pending);
            (*due, if pending { "nslp answer" } else { "nslp retention" })
        });
        let copy = self.retransmissions.poll_timeout().map(|due| (due, "nslp retransmission"));
        let assembly = self.assemblies.poll_timeout().map(|due| (due, "nslp assembly"));
        let lease = self.leases.poll_timeout().map(|due| (due, "nslp lease"));
        let check = self.check.as_ref().map(|check| (check.at, "nslp check of routes"));
        let farewell = self.farewell.as_ref().and_then(news::Farewell::due).map(|at| (at, "nslp farewell"));
        exchange.into_iter().chain(copy).chain(assembly).chain(lease).chain(check).chain(farewell).min()
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns how many nodes next to this one are remembered.
    pub fn neighbours(&self) -> usize {
        self.neighbourhood.len()
    }

    /// Returns how much state there is.
    pub fn state_counts(&self) -> StateCounts {
        let sessions: BTreeSet<SessionId> = self.exchanges.keys().map(|(session, _)| *session).collect();
        StateCounts {
            pending: self.pending,
            finished: self.exchanges.len() - self.pending,
            sessions: sessions.len(),
            assemblies: self.assemblies.len(),
            leases: self.leases.len(),
        }
    }

    /// Returns how long a request that came in an envelope may take here.
    fn time_for(&self, envelope: &Envelope) -> Duration {
        envelope.budget.unwrap_or(self.config.timeout_default).min(self.config.answer_time_max)
    }

    /// Answers a request with what is known of it.
    fn give_up(&mut self, now: Instant, key: ExchangeKey) {
        self.give_up_copies(key);
        if let Some(exchange) = self.exchanges.get_mut(&key) {
            exchange.give_up(now, &self.config.node);
        }
        self.finish_if_ready(now, key);
    }

    fn start(&mut self, now: Instant, key: ExchangeKey, mut arrival: Arrival) {
        let request = RequestId(self.next_request);
        self.next_request += 1;
        let refusal = arrival.refusal.take();
        let destination = arrival.mri.as_ref().and_then(Mri::addresses).map(|(_, destination)| destination);
        let beyond = if destination.is_none() || arrival.copy.is_some() {
            Beyond::nobody(None)
        } else if destination.is_some_and(|address| self.config.own_addresses.contains(&address)) {
            Beyond::nobody(Some(PathEnd::Destination))
        } else if is_for_one(&arrival.message, &self.config.node) {
            Beyond::nobody(Some(PathEnd::Named))
        } else if arrival.hops == Some(0) {
            let detail = format!("the request has passed as many nodes as it may at {}", self.config.node);
            Beyond::unknown(Refusal::new(RefusalKind::QuotaExceeded, detail))
        } else if budget_of(arrival.time).is_none() {
            let detail = format!("the request's time allows no node after {}", self.config.node);
            Beyond::unknown(Refusal::new(RefusalKind::Timeout, detail))
        } else {
            Beyond::waiting()
        };
        let mut exchange = Exchange::new(now, request, arrival, beyond);
        if let Some(refusal) = refusal {
            let report = refused(&self.config.node, exchange.address, refusal, Duration::ZERO);
            exchange.own = Own::Reported(Box::new(report));
        }
        let path = exchange.goes_on.then(|| exchange.mri.clone()).flatten();
        self.timers.insert((exchange.timer, key));
        self.exchanges.insert(key, exchange);
        self.pending += 1;
        self.ask(key);
        self.turn(now, key);
        if let Some(mri) = path {
            let path = (key.0, Arc::new(mri));
            if self.paths.contains_key(&path) && self.exchanges.get(&key).is_some_and(|exchange| exchange.is_afresh) {
                let (nslp_id, session, mri) = (Some(self.config.nslp_id), Some(key.0), Mri::clone(&path.1));
                let call = ApiCall::InvalidateRoutingState { nslp_id, session, mri, bad: true, data: None };
                self.api_calls.push_back(call);
            }
            *self.paths.entry(path).or_default() += 1;
            self.send_request(now, key);
        }
        self.finish_if_ready(now, key);
    }

    /// Asks the controller, as soon as it is known whether the request is for this node.
    fn ask(&mut self, key: ExchangeKey) {
        let Some(exchange) = self.exchanges.get(&key).filter(|exchange| matches!(exchange.own, Own::Unasked)) else {
            return;
        };
        let target = exchange.message.target();
        let in_force = |mri: &Mri| self.lease_in_force(key, mri).is_some();
        // Whoever was the previous node says by TEAR that it is not any more.
        let was_first = |mri: &Mri| self.lease_of(key, mri).is_some_and(|(_, lease)| lease.is_here && lease.is_first());
        let is_first = exchange.passed == 0 || exchange.mri.as_ref().is_some_and(was_first);
        let node = &self.config.node;
        let host_only = self.config.host_only;
        if host_only && exchange.mri.is_some() && *target != Target::default() {
            if let Some(exchange) = self.exchanges.get_mut(&key) {
                exchange.own = Own::LeftOut;
            }
            return;
        }
        let is_on_way_there = exchange.message.is_for_way_back() && !exchange.is_back && exchange.mri.is_some();
        let place = if host_only || self.follows(key.0, exchange) {
            Place::Meant
        } else if is_on_way_there {
            Place::Passed("the request is for the nodes on the way back")
        } else {
            Place::of(target, node, is_first)
        };
        let passed_by = match place {
            Place::Meant => None,
            Place::Passed(reason) => Some(reason),
            Place::IfLast => match exchange.is_last() {
                None => return,
                Some(true) => None,
                // Until another one has it.
                Some(false) if !exchange.is_done_beyond() && exchange.mri.as_ref().is_some_and(in_force) => None,
                Some(false) => Some(not_last(target.scope)),
            },
        };
        let passed_by = passed_by.map(str::to_owned);
        let said = if passed_by.is_none() { self.said_on_the_other_way(key, exchange) } else { None };
        if let (Some(said), Some(exchange)) = (said, self.exchanges.get_mut(&key)) {
            exchange.own = said;
            return;
        }
        let Some(exchange) = self.exchanges.get(&key) else { return };
        let request = Request { passed_by: passed_by.clone(), ..exchange.message.request(key.0) };
        let id = exchange.request;
        if let Some(exchange) = self.exchanges.get_mut(&key) {
            (exchange.own, exchange.passed_by) = (Own::Pending, passed_by);
        }
        self.by_request.insert(id, key);
        self.requests.push_back((id, request));
    }

    fn send_request(&mut self, now: Instant, key: ExchangeKey) {
        let exchange = self.exchanges.get(&key).expect("the caller has it");
        let Some(mri) = exchange.mri.clone() else { return };
        let (time_left, hops) = (exchange.timer.since(now), exchange.hops);
        let envelope = Envelope {
            budget: exchange.budget(now),
            passed: Some(exchange.passed.saturating_add(u32::from(!self.config.host_only))),
            may_return: exchange.may_return,
            is_outside: exchange.is_outside,
            is_afresh: exchange.is_afresh,
            is_back: exchange.is_back,
            ..Envelope::default()
        };
        let pieces = nslp::parts(&envelope.emit(&exchange.message), key.1);
        let inside = !self.domain.let_out.have(exchange.message.body(), exchange.message.user());
        let reliable = !self.retransmissions.has((key, None));
        let route = Route { session: key.0, mri: &mri, sii: None, reliable, inside };
        self.send(Sent::Request(key), route, pieces, time_left, hops);
    }

    fn send(&mut self, what: Sent, route: Route<'_>, pieces: Vec<Vec<u8>>, timeout: Duration, hops: Option<u8>) {
        let Route { session, mri, sii, reliable, inside } = route;
        for data in pieces {
            let handle = MessageHandle(self.next_handle);
            self.next_handle += 1;
            self.by_handle.insert(handle, what);
            self.api_calls.push_back(ApiCall::SendMessage {
                handle,
                nslp_id: self.config.nslp_id,
                session,
                mri: mri.clone(),
                attributes: TransferAttributes { reliable, secure: false, inside },
                sii,
                timeout,
                data,
                hops,
                options: SendOptions::default(),
            });
        }
    }

    /// Sends the request again if that may help and it may be, or else takes it that those further on are unknown.
    fn resend_or_settle(&mut self, now: Instant, key: ExchangeKey, again: bool, detail: String) {
        let Some(exchange) = self.exchanges.get_mut(&key) else { return };
        let has_time = exchange.budget(now).is_some();
        match &mut exchange.beyond {
            Beyond::Waiting { resends_left, sent } if again && has_time && *resends_left > 0 => {
                *resends_left -= 1;
                *sent = false;
                self.counters.requests_resent += 1;
                self.send_request(now, key);
            }
            Beyond::Waiting { .. } => {
                self.settle(now, key, Beyond::unknown(Refusal::new(RefusalKind::Timeout, detail)));
            }
            Beyond::Known { .. } => {}
        }
    }

    /// Takes what is known of those further on, unless that was known before.
    fn settle(&mut self, now: Instant, key: ExchangeKey, beyond: Beyond) {
        if let Some(exchange) = self.exchanges.get_mut(&key)
            && matches!(exchange.beyond, Beyond::Waiting { .. })
        {
            exchange.beyond = beyond;
            self.retransmissions.end((key, None));
            self.ask(key);
            self.turn(now, key);
            self.finish_if_ready(now, key);
        }
    }

    fn finish_if_ready(&mut self, now: Instant, key: ExchangeKey) {
        let is_ready = |exchange: &Exchange| exchange.is_pending() && exchange.is_ready();
        if !self.exchanges.get(&key).is_some_and(is_ready) || self.spread_if_due(now, key) {
            return;
        }
        let exchange = self.exchanges.get_mut(&key).expect("it was found");
        self.by_request.remove(&exchange.request);
        let answer = exchange.build_answer(key.0, self.config.host_only);
        exchange.answer = Some(answer.clone());
        self.timers.remove(&(exchange.timer, key));
        // What goes on beside the path may come here as long as somebody waits for it.
        let is_beside = exchange.message.off_path().is_some();
        let retention = if is_beside { self.config.answer_time_max } else { self.config.retention };
        exchange.timer = now + retention.max(self.config.retention);
        self.timers.insert((exchange.timer, key));
        self.pending -= 1;
        let took = now.since(exchange.started);
        match std::mem::replace(&mut exchange.requester, Requester::Local(Vec::new())) {
            Requester::Local(waiters) => {
                self.results.extend(waiters.into_iter().map(|id| (id, result(answer.clone(), took))));
            }
            Requester::Upstream(peers) => {
                let mri = exchange.mri.clone().expect("a request of another node has a flow");
                // The routing state leads to one of them only.
                peers.iter().for_each(|asker| self.answer_exchange(key, &mri, &answer, *asker));
                if let Some(exchange) = self.exchanges.get_mut(&key) {
                    exchange.requester = Requester::Upstream(peers);
                }
            }
            Requester::Nobody => exchange.requester = Requester::Nobody,
            Requester::Return(there) => {
                exchange.requester = Requester::Return(there);
                self.returned(now, there, answer.clone());
            }
        }
        self.note_lease(now, key, &answer);
        self.make_room();
    }

    /// Forgets the finished exchange that ends first if there are too many.
    fn make_room(&mut self) {
        if self.exchanges.len() - self.pending > FINISHED_MAX {
            let is_finished = |key: &ExchangeKey| !self.exchanges[key].is_pending();
            let first = self.timers.iter().map(|(_, key)| *key).find(is_finished);
            self.forget(first.expect("there are more than none"));
        }
    }

    fn forget(&mut self, key: ExchangeKey) {
        let exchange = self.exchanges.remove(&key).expect("the caller has it");
        self.timers.remove(&(exchange.timer, key));
        if let (true, Some(mri)) = (exchange.goes_on, exchange.mri) {
            self.leave_path((key.0, Arc::new(mri)));
        }
    }

    /// Returns the MRI of a path as all that is kept of that shares it.
    fn shared(&self, session: SessionId, mri: Mri) -> Arc<Mri> {
        let path = (session, Arc::new(mri));
        self.paths.get_key_value(&path).map_or(path.1, |((_, mri), _)| Arc::clone(mri))
    }

    /// Gives GIST's state downstream up unless it is used otherwise.
    fn leave_path(&mut self, path: (SessionId, Arc<Mri>)) {
        let Some(uses) = self.paths.get_mut(&path) else { return };
        *uses -= 1;
        if *uses == 0 {
            self.paths.remove(&path);
            let (session, mri) = path;
            let nslp_id = self.config.nslp_id;
            let (session, mri, lifetime) = (Some(session), Some(Mri::clone(&mri)), Duration::ZERO);
            self.api_calls.push_back(ApiCall::SetStateLifetime { nslp_id, session, mri, lifetime });
        }
    }

    /// Answers for this node alone and keeps nothing; the request goes no further.
    fn refuse(&mut self, from: &Received, nonce: Nonce, refusal: Refusal) {
        let detail = format!("{} sent the request no further", self.config.node);
        let incomplete = Some(Refusal::new(refusal.kind, detail));
        let entries = vec![refused(&self.config.node, Some(from.local), refusal, Duration::ZERO)];
        let answer = Response { entries, incomplete, ..Response::empty(from.session, nonce) };
        // Nobody has proven anything.
        let shown = Shown { own: true, stranger: Some(Probe::default()) };
        self.send_answer(&from.mri, &answer, from.asker, &shown);
    }
}

fn result(answer: Response, took: Duration) -> RequestResult {
    RequestResult {
        session: answer.session,
        nodes: answer.entries,
        incomplete: answer.incomplete,
        withheld: answer.withheld,
        returned: answer.returned,
        beside: answer.beside,
        end: answer.end,
        took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
    }
}

/// Returns whether a request is one that ends at this node, as it is for no other: a TELL that names it alone. Whatever lies behind
/// takes no part in it, and no time.
fn is_for_one(message: &Message, own: &NodeId) -> bool {
    let Target { scope, nodes, .. } = message.target();
    let is_named = matches!(&nodes[..], [only] if only == own);
    // By other scopes it is for this node only if it is the first or the last one.
    matches!(message.body(), Body::Tell(_)) && is_named && *scope == Scope::All
}

fn too_many_pending() -> Refusal {
    Refusal::new(RefusalKind::QuotaExceeded, format!("the node works on {PENDING_MAX} requests already"))
}
