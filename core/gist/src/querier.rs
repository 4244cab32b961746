// SPDX-License-Identifier: Apache-2.0
//! The querying node's state machine (RFC 5971 §6.2): Query, Response, Confirm, refresh.

use std::net::IpAddr;
use std::time::Duration;

use netserv_model::{Instant, SessionId};
use netserv_wire::gist::{Cookie, Direction, Message, MessageType, Mri, Nli, StackProposal};
use rand::Rng;

use crate::api::{
    ApiError, AssociationId, Counter, FailReason, NoPeerReason, Notification, RouteId, RouteStatus, SendStatus,
};
use crate::associations::stack;
use crate::associations::stack::Stack;
use crate::context::{Deadline, earlier};
use crate::cookie::{QueryCookie, query_cookie};
use crate::delivery::Delivery;
use crate::engine::{Arrival, Engine, Via};
use crate::limits;
use crate::responder::response_distance;
use crate::routing::{NatSide, NewPeer, Pending, Route, RouteKey};
use crate::sending::is_reached;

/// How far a handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A Query is out and messages wait for its Response.
    Asking,
    /// A Response came, and its connection is not open yet.
    Connecting,
    /// Messages can go.
    Established,
    /// Messages can go while a Query is out again.
    Refreshing,
}

/// The querying end of a row.
#[derive(Debug)]
pub(crate) struct Querier {
    pub(crate) phase: Phase,
    /// The cookies of this handshake's Queries, and when they were sent; a Response to any of them counts.
    cookies: Vec<(QueryCookie, Instant)>,
    /// When the next copy is due, and how long after it the one after that.
    retransmit_at: Instant,
    retry: Duration,
    give_up_at: Instant,
    refresh_at: Instant,
    pub(crate) active_at: Instant,
    pub(crate) inactivity: Duration,
    /// Queries propose stacks.
    pub(crate) wants_association: bool,
    /// The least stack that they propose.
    pub(crate) least: Stack,
    /// What the last Response asks to be given back in the Confirm.
    echo: Option<Box<Echo>>,
    /// Errors and broken connections ask for a new handshake no earlier than this.
    rehandshake_at: Instant,
    /// Connections that broke since the last refresh that was due anyway.
    association_failures: u8,
    /// The NSLP was told that the peer is bad or tentative, and not yet that there is a good one.
    doubted: bool,
    /// What this handshake's Queries say to the NSLP that they find.
    payload: Option<Vec<u8>>,
    /// What it means if nobody answers, by what ICMP errors say of this handshake's Queries.
    pub(crate) silence: NoPeerReason,
    /// How long the last answered handshake's Query and its Response took, in microseconds.
    rtt_us: Option<u32>,
}

/// What a Confirm has of the Response.
#[derive(Debug)]
struct Echo {
    cookie: Option<Cookie>,
    proposal: Option<StackProposal>,
}

impl Querier {
    pub(crate) fn new(now: Instant, inactivity: Duration) -> Querier {
        Querier {
            phase: Phase::Asking,
            cookies: Vec::new(),
            retransmit_at: now,
            retry: Duration::ZERO,
            give_up_at: now,
            refresh_at: now,
            active_at: now,
            inactivity,
            wants_association: false,
            least: Stack::Plain,
            echo: None,
            rehandshake_at: now,
            association_failures: 0,
            doubted: false,
            payload: None,
            silence: NoPeerReason::Timeout,
            rtt_us: None,
        }
    }

    /// Returns how long the last answered handshake's Query and its Response took.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.rtt_us.map(|us| Duration::from_micros(us.into()))
    }

    /// Takes that a copy of the Query was answered; of a handshake's Responses, the quickest tells.
    fn note_rtt(&mut self, rtt: Duration) {
        let rtt_us = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX);
        self.rtt_us = match self.phase {
            Phase::Asking | Phase::Refreshing => Some(rtt_us),
            Phase::Connecting | Phase::Established => Some(self.rtt_us.map_or(rtt_us, |known| known.min(rtt_us))),
        };
    }

    /// Returns when the Query of this handshake with the cookie was sent.
    pub(crate) fn asked_with(&self, cookie: &Cookie) -> Option<Instant> {
        self.cookies.iter().find(|(sent, _)| cookie.0 == *sent).map(|(_, at)| *at)
    }

    /// Returns whether this handshake had begun at a time.
    pub(crate) fn was_asking(&self, at: Instant) -> bool {
        self.cookies.first().is_some_and(|(_, first_at)| *first_at <= at)
    }

    pub(crate) fn deadline(&self) -> Deadline {
        let inactive = (self.active_at + self.inactivity, "route inactivity");
        let retransmit = (self.retransmit_at, "query retransmission");
        let first = match self.phase {
            Phase::Asking => return retransmit,
            Phase::Connecting => None,
            Phase::Established => Some((self.refresh_at, "route refresh")),
            Phase::Refreshing => Some(retransmit),
        };
        earlier(first, Some(inactive)).unwrap_or(inactive)
    }
}

impl Engine {
    /// Starts a handshake at `at`: right away, or when the row's timer fires.
    pub(crate) fn start_handshake(&mut self, now: Instant, id: RouteId, phase: Phase, at: Instant) {
        let (retry, query_budget, refresh_budget) = (
            self.settings.config().retry_initial,
            self.settings.config().query_budget,
            self.settings.config().refresh_budget,
        );
        let Some(route) = self.routes.get_mut(id) else { return };
        let budget = if route.peer.is_some() { refresh_budget } else { query_budget };
        let wants = route.association.is_some() || route.pending.iter().any(|message| message.needs_association);
        let least = route.pending.iter().map(Pending::least_stack).max().unwrap_or(Stack::Plain);
        let asking = route.peer.is_none();
        let Some(querier) = route.querier_mut() else { return };
        querier.phase = if asking { Phase::Asking } else { phase };
        querier.cookies = Vec::new();
        querier.silence = NoPeerReason::Timeout;
        querier.retry = retry;
        querier.retransmit_at = at;
        querier.give_up_at = at + budget;
        querier.wants_association |= wants;
        querier.least = least;
        if at <= now {
            self.send_query(now, id);
        }
        self.arm_route(id);
    }

    /// Starts a handshake because something went wrong with the row, but not too often.
    pub(crate) fn rehandshake(&mut self, now: Instant, id: RouteId) {
        self.rehandshake_within(now, id, Duration::ZERO);
    }

    /// The same for one of many rows, at random within a time; at once if a message waits.
    fn rehandshake_within(&mut self, now: Instant, id: RouteId, spread: Duration) {
        let Some(route) = self.routes.get_mut(id) else { return };
        let waits = !route.pending.is_empty();
        let Some(querier) = route.querier_mut() else { return };
        match querier.phase {
            Phase::Asking => {}
            Phase::Connecting | Phase::Established | Phase::Refreshing => {
                let at = querier.rehandshake_at.max(now);
                querier.rehandshake_at = at + limits::REHANDSHAKE_INTERVAL;
                let later = if waits || spread.is_zero() {
                    Duration::ZERO
                } else {
                    self.rng.random_range(Duration::ZERO..=spread)
                };
                self.start_handshake(now, id, Phase::Asking, at + later);
            }
        }
    }

    /// Begins a handshake that was put off to spread those of many rows, since a message waits for it.
    pub(crate) fn hasten(&mut self, now: Instant, id: RouteId) {
        let Some(querier) = self.routes.get(id).and_then(Route::querier) else { return };
        let is_put_off = querier.phase == Phase::Asking && querier.cookies.is_empty();
        let begins_at = (querier.rehandshake_at - limits::REHANDSHAKE_INTERVAL).max(now);
        if is_put_off && begins_at < querier.retransmit_at {
            self.start_handshake(now, id, Phase::Asking, begins_at);
        }
    }

    /// Sends one copy of the Query, with a cookie of its own.
    fn send_query(&mut self, now: Instant, id: RouteId) {
        let cookie = query_cookie(&mut self.rng);
        let Some(route) = self.routes.get_mut(id) else { return };
        let (key, local, hops) = (RouteKey::clone(&route.key), route.local, route.hops);
        let Some(destination) = query_target(&key.mri) else { return };
        let Some(querier) = route.querier_mut() else { return };
        // Most Queries are answered by then: a row has room for no more than it sent.
        querier.cookies.reserve_exact(1);
        querier.cookies.push((cookie, now));
        // What proved the end before says nothing of this copy.
        if matches!(querier.silence, NoPeerReason::Unreachable | NoPeerReason::EndpointFound) {
            querier.silence = NoPeerReason::Timeout;
        }
        querier.retransmit_at = (now + querier.retry).min(querier.give_up_at);
        querier.retry = (querier.retry * 2).min(limits::RETRY_MAX);
        let (wants_association, least, payload) = (querier.wants_association, querier.least, querier.payload.clone());

        let ttl = q_mode_ttl(&key.mri, route.ip_ttl);
        let mut query = self.message(MessageType::Query, key);
        query.hops = hops;
        query.nli = Some(Nli { ip_ttl: ttl, ..self.settings.nli(local, self.validity()) });
        query.query_cookie = Some(Cookie(cookie.to_vec()));
        query.nslp_data = payload;
        if wants_association {
            let stacks = stack::at_least(least, self.settings.config().tls);
            query.stack_proposal = Some(stack::proposal(stacks));
            query.stack_configuration = Some(stack::configuration(stacks, self.settings.config().hold_time, None));
        }
        self.out.count(Counter::QueriesSent);
        self.send_in_q_mode(now, local, destination, ttl, &query);
    }

    /// Sends a message along its flow.
    pub(crate) fn send_in_q_mode(
        &mut self,
        now: Instant,
        local: IpAddr,
        destination: IpAddr,
        ttl: u8,
        message: &Message,
    ) -> bool {
        let rao = self.settings.router_alert(message.nslp_id);
        self.out.send_along_flow(now, (local, destination), ttl, rao, message)
    }

    pub(crate) fn querier_timeout(&mut self, now: Instant, id: RouteId) {
        let Some(querier) = self.routes.get(id).and_then(Route::querier) else { return };
        let asking = querier.phase == Phase::Asking;
        if !asking && now >= querier.active_at + querier.inactivity {
            self.out.count(Counter::RoutesExpired);
            self.remove_route(now, id, SendStatus::Failed(FailReason::Timeout));
            return;
        }
        match querier.phase {
            Phase::Asking | Phase::Refreshing if now >= querier.retransmit_at => {
                if now >= querier.give_up_at || querier.cookies.len() >= limits::QUERY_COPIES_MAX {
                    let reason = querier.silence;
                    self.give_up(now, id, reason);
                } else {
                    self.send_query(now, id);
                }
            }
            Phase::Established if now >= querier.refresh_at => {
                if let Some(querier) = self.routes.get_mut(id).and_then(Route::querier_mut) {
                    querier.association_failures = 0;
                }
                self.start_handshake(now, id, Phase::Refreshing, now);
            }
            Phase::Asking | Phase::Connecting | Phase::Established | Phase::Refreshing => {}
        }
    }

    /// Takes a proof that a Query got to the flow's endpoint. If the row has a peer, another copy may still reach it.
    pub(crate) fn path_ends(&mut self, now: Instant, id: RouteId, proof: NoPeerReason) {
        let Some(route) = self.routes.get_mut(id) else { return };
        let known = route.peer.is_some();
        let Some(querier) = route.querier_mut() else { return };
        querier.silence = proof;
        if !known {
            self.give_up(now, id, proof);
        }
    }

    /// Ends a row whose Query found nobody.
    fn give_up(&mut self, now: Instant, id: RouteId, reason: NoPeerReason) {
        let Some(route) = self.routes.get(id) else { return };
        self.out.count(Counter::QueriesUnanswered);
        let doubted = route.querier().is_some_and(|querier| querier.doubted);
        let (known, waiting) = (route.peer.is_some() || doubted, !route.pending.is_empty());
        match reason {
            NoPeerReason::Timeout | NoPeerReason::Hindered { .. } if known => {
                self.notify(id, Notification::RouteDeletion);
            }
            NoPeerReason::Timeout
            | NoPeerReason::Hindered { .. }
            | NoPeerReason::Unreachable
            | NoPeerReason::EndpointFound => {
                if known || !waiting {
                    self.notify(id, Notification::LastNode);
                }
            }
        }
        self.remove_route(now, id, SendStatus::NoPeer(reason));
    }

    /// Takes a Response to one of this node's Queries.
    pub(crate) fn on_response(&mut self, now: Instant, arrival: &Arrival, mut message: Message) {
        let delivery = Delivery::take(&mut message);
        let Some(id) = self.accept_response(now, arrival, message) else { return };
        self.arm_route(id);
        if let Some(delivery) = delivery {
            self.deliver_on_route(now, id, arrival, delivery);
        }
    }

    fn accept_response(&mut self, now: Instant, arrival: &Arrival, message: Message) -> Option<RouteId> {
        let Some((id, asked_at)) = self.match_response(&message) else {
            self.out.count(Counter::ResponsesUnsolicited);
            return None;
        };
        let nli = message.nli?;
        // What passed NATs need not come from where its sender is, and says so (RFC 5971 §7.2.2).
        let passed_nats = message.nat_traversal.is_some();
        let datagram = matches!(arrival.via, Via::Datagram { .. });
        let foreign_source = passed_nats && datagram && !message.source_is_signaller;
        if foreign_source && !self.settings.may_answer(nli.address) {
            self.out.count(Counter::Unanswerable);
            return None;
        }
        if !foreign_source && !self.source_fits(arrival, &nli) {
            return None;
        }
        let distance = response_distance(arrival, message.mri.as_ref()?, &nli);
        let route = self.routes.get_mut(id)?;
        let had_peer = route.peer.is_some();
        route.distance = distance;
        let local = route.local;
        let changed = self.set_peer(id, Some(NewPeer { nli: &nli, port: None, local }));
        self.routes.set_nat(id, if passed_nats { NatSide::Querier } else { NatSide::None });
        let refresh_at = now + self.refresh_delay(nli.validity);

        let route = self.routes.get_mut(id)?;
        let sii = route.peer?;
        let querier = route.querier_mut()?;
        querier.refresh_at = refresh_at;
        querier.note_rtt(now.since(asked_at));
        querier.payload = None;
        let doubted = std::mem::take(&mut querier.doubted);
        let echo = Echo { cookie: message.responder_cookie, proposal: message.stack_proposal.clone() };
        querier.echo = message.reply_wanted.then(|| Box::new(echo));
        let mut without = FailReason::NoConnection;
        let association = match arrival.via {
            Via::Association(association) => Some(association),
            Via::Datagram { .. } => match (message.stack_proposal, message.stack_configuration) {
                (Some(proposal), Some(offer)) if querier.wants_association => {
                    match stack::choose(self.settings.config().tls.stacks(), &proposal, &offer) {
                        Some(chosen) => self.share_or_open(now, local, &nli, chosen, offer.hold_time),
                        None => {
                            without = FailReason::NoStack;
                            None
                        }
                    }
                }
                _ => None,
            },
        };
        self.settle(now, id, association, without);
        if (changed && had_peer) || doubted {
            self.notify(id, Notification::StatusChange(RouteStatus::Good(sii)));
        }
        Some(id)
    }

    /// Returns the row whose Query this answers, and when that was sent: it must bring back the cookie of a copy
    /// (RFC 5971 §4.4.1).
    fn match_response(&self, message: &Message) -> Option<(RouteId, Instant)> {
        // RFC 5971 §7.2.2: NATs say what they found in the Query, and the responder says what they made of it.
        let mri = match &message.nat_traversal {
            Some(nats) => nats.mri.clone(),
            None => message.mri.as_ref()?.inverted(),
        };
        let session = message.session?;
        let id = self.routes.find(&RouteKey { session, nslp_id: message.nslp_id, mri })?;
        let querier = self.routes.get(id)?.querier()?;
        let cookie = message.query_cookie.as_ref()?;
        let kept_well = message.responder_cookie.as_ref().is_none_or(|c| c.0.len() <= limits::COOKIE_BYTES_MAX)
            && message.stack_proposal.as_ref().is_none_or(|p| p.profiles.len() <= limits::STACK_PROFILES_MAX);
        querier.asked_with(cookie).filter(|_| kept_well).map(|asked_at| (id, asked_at))
    }

    /// Ends the handshake on the channel that it agreed on, or without one for this reason.
    fn settle(&mut self, now: Instant, id: RouteId, association: Option<AssociationId>, without: FailReason) {
        let (agreed, association) =
            (association.is_some(), association.filter(|association| self.may_use(*association, id)));
        let without = if agreed { FailReason::NoStack } else { without };
        self.tie(now, id, association);
        let open = association.is_none_or(|association| self.associations.is_open(association));
        let Some(querier) = self.routes.get_mut(id).and_then(Route::querier_mut) else { return };
        querier.phase = if open { Phase::Established } else { Phase::Connecting };
        if association.is_none() {
            querier.wants_association = false;
        }
        let stack = association.and_then(|id| self.associations.stack(id));
        let lacks =
            |message: &Pending| message.needs_association && stack.is_none_or(|stack| stack < message.least_stack());
        let secure = |message: &Pending| lacks(message) && message.attributes.secure;
        self.fail_pending(id, SendStatus::Failed(FailReason::NoStack), secure);
        self.fail_pending(id, SendStatus::Failed(without), |message| lacks(message) && message.attributes.reliable);
        self.fail_pending(id, SendStatus::Failed(FailReason::TooLong), lacks);
        if open {
            self.confirm(now, id);
            self.flush(now, id);
        }
    }

    /// Returns whether the peer of a connection may speak about the row's flow.
    fn may_use(&mut self, association: AssociationId, id: RouteId) -> bool {
        let may = self.routes.get(id).is_some_and(|route| self.associations.may_carry(association, &route.key.mri));
        if !may {
            self.out.count(Counter::FlowsForbidden);
        }
        may
    }

    /// Takes that the row's connection is open, and who is at its other end.
    pub(crate) fn association_opened(&mut self, now: Instant, id: RouteId) {
        let association = self.routes.get(id).and_then(|route| route.association);
        if association.is_some_and(|association| !self.may_use(association, id)) {
            self.settle(now, id, None, FailReason::NoStack);
            self.arm_route(id);
            return;
        }
        let Some(querier) = self.routes.get_mut(id).and_then(Route::querier_mut) else { return };
        if querier.phase == Phase::Connecting {
            querier.phase = Phase::Established;
            self.confirm(now, id);
        }
        self.flush(now, id);
        self.ask_for_connection(now, id);
        self.arm_route(id);
    }

    /// Takes that the row's connection is gone: looks for the peer again, within a time, unless that happens too often.
    pub(crate) fn association_lost(&mut self, now: Instant, id: RouteId, spread: Duration) {
        let Some(querier) = self.routes.get_mut(id).and_then(Route::querier_mut) else { return };
        querier.association_failures += 1;
        querier.wants_association = true;
        if querier.association_failures >= limits::ASSOCIATION_ATTEMPTS_MAX {
            self.notify(id, Notification::RouteDeletion);
            self.remove_route(now, id, SendStatus::Failed(FailReason::Association));
        } else {
            self.rehandshake_within(now, id, spread);
        }
    }

    /// Sends the Confirm that the last Response asked for, over the connection if there is one.
    fn confirm(&mut self, now: Instant, id: RouteId) {
        let Some(route) = self.routes.get_mut(id) else { return };
        let Some(echo) = route.querier_mut().and_then(|querier| querier.echo.take()) else { return };
        let (key, local, association) = (RouteKey::clone(&route.key), route.local, route.association);
        let Echo { cookie, proposal } = *echo;
        let (distance, passes_nat) = (route.distance, route.passes_nat());
        let nli = self.settings.nli_for(&key.mri, distance, local, self.validity());
        let mut confirm = self.message(MessageType::Confirm, key);
        confirm.nli = Some(nli);
        confirm.responder_cookie = cookie;
        match association {
            Some(association) => {
                confirm.stack_proposal = proposal;
                if confirm.stack_proposal.is_some() && self.associations.introduce(association) {
                    confirm.stack_configuration = Some(stack::hold_only(self.settings.config().hold_time));
                }
                self.send_on_association(now, association, &confirm);
            }
            None => {
                confirm.source_is_signaller = !passes_nat;
                self.send_to_peer(now, id, None, &confirm);
            }
        }
    }

    fn refresh_delay(&mut self, validity: Duration) -> Duration {
        let validity = validity.clamp(limits::PEER_TIME_MIN, limits::PEER_TIME_MAX);
        self.rng.random_range(validity / 2..=validity * 3 / 4)
    }

    /// Has rows checked or, if they are `bad`, made anew; `local` is the node's address in their direction now.
    pub(crate) fn invalidate(
        &mut self,
        now: Instant,
        (nslp_id, session): (Option<u16>, Option<SessionId>),
        mri: &Mri,
        Doubt { bad, data }: Doubt,
        local: IpAddr,
    ) -> Result<(), ApiError> {
        if let Some(bytes) = data.as_ref().map(Vec::len).filter(|bytes| *bytes > limits::HANDSHAKE_DATA_BYTES_MAX) {
            return Err(ApiError::TooLarge { bytes, max: limits::HANDSHAKE_DATA_BYTES_MAX });
        }
        let fits = |key: &RouteKey| {
            nslp_id.is_none_or(|nslp_id| key.nslp_id == nslp_id)
                && session.is_none_or(|session| key.session == session)
                && key.mri == *mri
        };
        let ids: Vec<RouteId> = match (nslp_id.zip(session), query_target(mri).filter(|_| !bad)) {
            (Some((nslp_id, session)), _) => {
                self.routes.find(&RouteKey { session, nslp_id, mri: mri.clone() }).into_iter().collect()
            }
            (None, Some(target)) => {
                let fits = |id: &RouteId| self.routes.get(*id).is_some_and(|route| fits(&route.key));
                self.routes.asking(target).filter(fits).collect()
            }
            (None, None) => match nslp_id {
                Some(nslp_id) => self.routes.matching_of(nslp_id, fits),
                None => self.routes.matching(fits),
            },
        };
        for id in ids {
            let querying = self.routes.get_mut(id).is_some_and(|route| {
                let Some(querier) = route.querier_mut() else { return false };
                querier.payload = data.clone().or(querier.payload.take());
                if is_reached(local) {
                    route.local = local;
                }
                true
            });
            match (querying, bad) {
                (true, true) => {
                    self.doubt(id, RouteStatus::Bad);
                    self.tie(now, id, None);
                    self.set_peer(id, None);
                    self.start_handshake(now, id, Phase::Asking, now);
                }
                (true, false) => {
                    let phase = self.routes.get(id).and_then(Route::querier).map(|querier| querier.phase);
                    self.doubt(id, RouteStatus::Tentative);
                    if phase == Some(Phase::Established) {
                        self.start_handshake(now, id, Phase::Refreshing, now);
                    }
                }
                (false, true) => {
                    self.doubt(id, RouteStatus::Bad);
                    self.remove_route(now, id, SendStatus::Failed(FailReason::Cancelled));
                }
                (false, false) => {}
            }
        }
        Ok(())
    }

    /// Tells the NSLP that the row's peer, if there is one, is not as good as it was.
    fn doubt(&mut self, id: RouteId, status: RouteStatus) {
        let Some(route) = self.routes.get_mut(id).filter(|route| route.peer.is_some()) else { return };
        if let Some(querier) = route.querier_mut() {
            querier.doubted = true;
        }
        self.notify(id, Notification::StatusChange(status));
    }
}

/// What an NSLP says of a route that may be wrong.
pub(crate) struct Doubt {
    pub(crate) bad: bool,
    /// What the next handshake says to the NSLP that it finds.
    pub(crate) data: Option<Vec<u8>>,
}

/// Returns where Queries for a path go: to the flow's end in their direction.
pub(crate) fn query_target(mri: &Mri) -> Option<IpAddr> {
    let (source, destination) = mri.addresses()?;
    Some(if mri.direction() == Some(Direction::Upstream) { source } else { destination })
}

/// Returns the TTL of a message in Q-mode about a flow, of which the NSLP may have named one.
pub(crate) fn q_mode_ttl(mri: &Mri, named: Option<u8>) -> u8 {
    match mri.direction() {
        Some(Direction::Upstream) => UPSTREAM_TTL,
        Some(Direction::Downstream) | None => named.unwrap_or(DOWNSTREAM_TTL),
    }
}

/// The TTL of downstream Queries, given in their NLI so that the peer can tell its distance.
const DOWNSTREAM_TTL: u8 = 64;
/// The TTL of upstream Queries, so that the receiver can tell that they come from next to it (RFC 5971 §5.8.1.3).
const UPSTREAM_TTL: u8 = 255;
