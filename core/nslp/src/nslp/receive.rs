// SPDX-License-Identifier: Apache-2.0
//! What comes from GIST: requests, responses, and what became of what was sent.

use std::borrow::Cow;
use std::time::Duration;

use netserv_gist::{FailReason, MessageHandle, NoPeerReason, Notification, SendStatus};
use netserv_model::domain::{Refused, Side};
use netserv_model::off_path::Off;
use netserv_model::request::PathEnd;
use netserv_model::{Instant, Nonce, Refusal, RefusalKind, SessionId};
use netserv_wire::gist::{Direction, Mri};
use netserv_wire::nslp::{self, Envelope, Message, Part, Payload, Response};

use super::{Nslp, Received, Sent, Shown, hop, result, too_many_pending};
use crate::assembly::Assembled;
use crate::config::LocalId;
use crate::exchange::{Arrival, Beyond, Exchange, ExchangeKey, Requester, Returning};
use crate::leases::{Asker, remember};
use crate::limits::WAITERS_MAX;

impl Nslp {
    pub(super) fn handle_data(&mut self, now: Instant, from: &Received, data: &[u8]) {
        let Some(text) = self.whole_text(now, from, data) else { return };
        match (Payload::parse(&text), from.mri.direction()) {
            (Ok(Payload::Request(envelope, message)), Some(Direction::Downstream)) => {
                self.handle_request(now, from, &envelope, *message);
            }
            (Ok(Payload::Response(response)), Some(Direction::Upstream)) => self.handle_response(now, from, *response),
            (Ok(Payload::Notify(notify)), Some(Direction::Upstream)) => self.handle_notify(now, from, &notify, &text),
            (Ok(Payload::Tear(tear)), Some(Direction::Downstream)) => self.handle_tear(now, from, &tear),
            (Ok(Payload::Tear(tear)), Some(Direction::Upstream)) => self.handle_question(now, from, &tear),
            (Err(refusal), Some(Direction::Downstream)) => self.handle_bad(from, &text, refusal),
            (Err(_), Some(Direction::Upstream)) | (Ok(Payload::Part(_)), _) => self.counters.messages_bad += 1,
            (Ok(Payload::Request(..) | Payload::Response(_) | Payload::Notify(_) | Payload::Tear(_)) | Err(_), _) => {
                self.counters.messages_unexpected += 1;
            }
        }
    }

    /// Takes a message of a peer that the routing state does not name, which may be a TEAR for what the path has left.
    pub(super) fn handle_past_path(&mut self, now: Instant, from: &Received, data: &[u8]) {
        match (Payload::parse(data), from.mri.direction()) {
            (Ok(Payload::Tear(tear)), Some(Direction::Downstream)) => self.handle_tear(now, from, &tear),
            (Ok(Payload::Tear(tear)), Some(Direction::Upstream)) => self.handle_question(now, from, &tear),
            (_, _) => self.counters.messages_unexpected += 1,
        }
    }

    /// Returns the text, once all of its parts are there.
    fn whole_text<'a>(&mut self, now: Instant, from: &Received, data: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let Some(part) = Part::parse(data) else { return Some(Cow::Borrowed(data)) };
        let key = (from.session, from.mri.clone(), part.nonce);
        match self.assemblies.handle_part(now, key, part) {
            Assembled::Waiting => None,
            Assembled::Whole(bytes) => Some(Cow::Owned(bytes)),
            Assembled::Broken => {
                self.counters.assemblies_lost += 1;
                None
            }
        }
    }

    fn handle_request(&mut self, now: Instant, from: &Received, envelope: &Envelope, message: Message) {
        let key = (from.session, message.nonce());
        let time = self.time_for(envelope);
        let is_outside = from.asker.side == Side::Outside || envelope.is_outside;
        let refusal = is_outside.then(|| self.domain.why_not_taken(message.body(), message.user())).flatten();
        // Who signed the request has to want it, or what it removes came that way.
        let follows = self.brought.is_by(key.0, &message, from.asker.address);
        let copy = envelope.copy.filter(|_| message.off_path().is_some() || follows);
        self.counters.copies_received += u64::from(copy.is_some());
        if let Some(refusal) = refusal.clone().filter(|_| self.domain.refused == Refused::Stop) {
            self.counters.requests_not_taken += 1;
            return self.refuse(from, message.nonce(), refusal);
        }
        let passed = envelope.passed.unwrap_or(0);
        let from = Received { asker: Asker { is_first: passed == 0, ..from.asker }, ..from.clone() };
        if self.is_first_now(key, &message, passed) {
            self.note_upstream(key, &from);
            self.forget(key);
        }
        if self.exchanges.contains_key(&key) {
            if let Some(copy) = copy.filter(|_| self.exchanges[&key].mri.as_ref() != Some(&from.mri)) {
                self.counters.requests_duplicate += 1;
                // What came by a detour does not reach as far, which whoever asked has to know.
                let reached = self.exchanges[&key].copy.map(|copy| copy.radius);
                let missing = u32::from(reached.is_some_and(|radius| radius < copy.radius));
                return self.answer_seen(key, &from, missing);
            }
            if copy.is_some() || !self.was_beside(key, &from) {
                return self.handle_duplicate(now, key, &from, &message, time);
            }
            self.forget(key);
        }
        self.counters.requests_not_taken += u64::from(refusal.is_some());
        self.counters.requests_received += 1;
        if !self.has_room(now, &message) {
            return self.refuse(&from, message.nonce(), too_many_pending());
        }
        let may_return = envelope.may_return && self.may_return(&from, passed);
        let (requester, is_afresh, is_back) =
            (Requester::Upstream(vec![from.asker]), envelope.is_afresh, envelope.is_back);
        let (mri, address, hops) = (Some(from.mri.clone()), Some(from.local), Some(from.hops));
        let arrival = Arrival::own(message, requester, mri, address);
        self.start(
            now,
            key,
            Arrival { time, hops, passed, may_return, refusal, is_outside, is_afresh, is_back, copy, ..arrival },
        );
    }

    /// Returns whether a request may be sent back to its flow's source: the first node sees whether that is who asks, and inside of
    /// the domain the nodes after it believe that. What outsiders say that others saw proves nothing.
    fn may_return(&mut self, from: &Received, passed: u32) -> bool {
        let source = from.mri.addresses().map(|(source, _)| source);
        let is_seen = source == Some(from.asker.address);
        let may = is_seen || (passed > 0 && from.asker.side == Side::Inside);
        self.counters.returns_not_taken += u64::from(!may);
        may
    }

    /// Returns whether a request that was answered before comes from the requester's host now, which changes for whom it is.
    fn is_first_now(&self, key: ExchangeKey, message: &Message, passed: u32) -> bool {
        let answered = |exchange: &Exchange| {
            exchange.answer.is_some()
                && exchange.message == *message
                && exchange.passed > 0
                && exchange.passed_by.is_some()
        };
        passed == 0 && message.target().scope.has_first() && self.exchanges.get(&key).is_some_and(answered)
    }

    /// Answers a duplicate from what is known; one whose answer is on its way anyway waits for it.
    fn handle_duplicate(&mut self, now: Instant, key: ExchangeKey, from: &Received, message: &Message, time: Duration) {
        self.counters.requests_duplicate += 1;
        let is_local = self.lease_of(key, &from.mri).is_some_and(|(_, lease)| lease.is_local);
        let exchange = self.exchanges.get_mut(&key).expect("the caller found it");
        if exchange.message.as_str() != message.as_str() {
            let detail = "another request of this session has the same nonce";
            return self.refuse(from, message.nonce(), Refusal::new(RefusalKind::Replayed, detail));
        }
        if let Some(answer) = exchange.answer.clone() {
            self.note_upstream(key, from);
            return self.answer_exchange(key, &from.mri, &answer, from.asker);
        }
        let same_path = exchange.mri.as_ref() == Some(&from.mri);
        match &mut exchange.requester {
            Requester::Upstream(peers) if same_path => {
                exchange.torn = false;
                remember(peers, from.asker);
                return;
            }
            // This node looked at its path when the nodes before it began to.
            requester @ Requester::Nobody if same_path && !is_local => {
                *requester = Requester::Upstream(vec![from.asker]);
                exchange.address = Some(from.local);
                // Whoever waits gives up by its own time.
                let timer = exchange.timer.min(now + time);
                self.timers.remove(&(std::mem::replace(&mut exchange.timer, timer), key));
                self.timers.insert((timer, key));
                return;
            }
            Requester::Upstream(_) | Requester::Nobody | Requester::Local(_) | Requester::Return(_) => {}
        }
        self.answer_seen(key, from, 0);
    }

    /// Returns whether a request that came beside its path, and is answered, comes along it.
    fn was_beside(&self, key: ExchangeKey, from: &Received) -> bool {
        let exchange = &self.exchanges[&key];
        exchange.copy.is_some() && !exchange.is_pending() && exchange.mri.as_ref() != Some(&from.mri)
    }

    /// Says that this node has the request from elsewhere, and so did not ask so many nodes beside the path.
    fn answer_seen(&mut self, key: ExchangeKey, from: &Received, missing: u32) {
        let detail = format!("{} works on this request already; the path may be a loop", self.config.node);
        let incomplete = Some(Refusal::new(RefusalKind::Replayed, detail));
        let (session, nonce) = key;
        let beside = Off { missing, ..Off::default() };
        let answer = Response { incomplete, beside, ..Response::empty(session, nonce) };
        let stranger = self.exchanges.get(&key).and_then(Exchange::stranger);
        self.send_answer(&from.mri, &answer, from.asker, &Shown { own: false, stranger });
    }

    pub(super) fn handle_local_duplicate(
        &mut self,
        key: ExchangeKey,
        message: &Message,
        id: LocalId,
    ) -> Result<(), Refusal> {
        self.counters.requests_duplicate += 1;
        let exchange = self.exchanges.get_mut(&key).expect("the caller found it");
        if exchange.message.as_str() != message.as_str() {
            let detail = "another request of this session has the same nonce";
            return Err(Refusal::new(RefusalKind::Replayed, detail));
        }
        if let Some(answer) = exchange.answer.clone() {
            self.results.push_back((id, result(answer, Duration::ZERO)));
            return Ok(());
        }
        match &mut exchange.requester {
            Requester::Local(waiters) if waiters.len() < WAITERS_MAX => {
                waiters.push(id);
                Ok(())
            }
            Requester::Local(_) => {
                let detail = format!("{WAITERS_MAX} callers wait for this request already");
                Err(Refusal::new(RefusalKind::QuotaExceeded, detail))
            }
            requester @ Requester::Nobody => {
                *requester = Requester::Local(vec![id]);
                Ok(())
            }
            Requester::Upstream(_) | Requester::Return(_) => {
                Err(Refusal::new(RefusalKind::Replayed, "this request came from another node already"))
            }
        }
    }

    /// Answers a text that is no request, if it says with which nonce; it goes no further.
    fn handle_bad(&mut self, from: &Received, bytes: &[u8], refusal: Refusal) {
        self.counters.messages_bad += 1;
        if let Some(nonce) = nslp::peek_nonce(bytes) {
            self.refuse(from, nonce, refusal);
        }
    }

    fn handle_response(&mut self, now: Instant, from: &Received, mut response: Response) {
        hop::note(&mut response.entries, from.asker.address, &from.hop);
        let Some(response) = self.answered_beside(now, from, response) else { return };
        let key = (from.session, response.nonce);
        let expected = self.exchanges.get(&key).is_some_and(|exchange| {
            exchange.mri.as_ref() == Some(&from.mri.inverted()) && matches!(exchange.beyond, Beyond::Waiting { .. })
        });
        if !expected || response.session != from.session {
            self.counters.responses_late += 1;
            return self.answered_late(from, key, &response);
        }
        self.counters.responses_received += 1;
        let Response { entries, mut incomplete, end, withheld, foreign, returned, beside, .. } = response;
        let foreign = match from.asker.side {
            Side::Inside => foreign,
            Side::Outside => entries.len(),
        };
        if incomplete.is_none() && end.is_none() {
            let detail = "the last node that answered does not say how it knows that it is the last";
            incomplete = Some(Refusal::new(RefusalKind::BadRequest, detail));
        }
        if let Some(exchange) = self.exchanges.get_mut(&key) {
            (exchange.downstream, exchange.has_next) = (Some(from.asker.sii), true);
            if let Some(stack) = returned.filter(|_| exchange.message.wants_return()) {
                exchange.returning = Returning::Known(stack);
            }
        }
        self.settle(now, key, Beyond::Known { entries, incomplete, end, foreign, withheld, beside });
    }

    pub(super) fn handle_status(&mut self, now: Instant, handle: MessageHandle, status: SendStatus) {
        match (self.by_handle.remove(&handle), status) {
            (None, _) | (Some(Sent::Answer | Sent::News | Sent::Copy(..)), SendStatus::Sent) => {}
            (Some(Sent::Copy(key, to)), SendStatus::Failed(FailReason::NoConnection))
                if self.turn_copy_to_datagrams(now, key, to) => {}
            // The next copy may go.
            (Some(Sent::Copy(key, to)), SendStatus::Failed(FailReason::RateLimited))
                if self.retransmissions.has((key, Some(to))) => {}
            (Some(Sent::Copy(key, to)), SendStatus::NoPeer(_) | SendStatus::Failed(_)) => {
                self.settle_copy(now, key, to, None);
            }
            (Some(Sent::News), SendStatus::NoPeer(_) | SendStatus::Failed(_)) => self.counters.news_dropped += 1,
            (Some(Sent::Answer), SendStatus::NoPeer(_) | SendStatus::Failed(_)) => self.counters.responses_lost += 1,
            (Some(Sent::Request(key)), SendStatus::Sent) => {
                if let Some(exchange) = self.exchanges.get_mut(&key)
                    && let Beyond::Waiting { sent, .. } = &mut exchange.beyond
                {
                    (*sent, exchange.has_next) = (true, true);
                }
            }
            (Some(Sent::Request(key)), SendStatus::NoPeer(reason)) => self.handle_no_peer(now, key, reason),
            (Some(Sent::Request(key)), SendStatus::Failed(FailReason::Outside)) => {
                let kept =
                    self.exchanges.get(&key).is_some_and(|exchange| matches!(exchange.beyond, Beyond::Waiting { .. }));
                self.counters.requests_kept_inside += u64::from(kept);
                let detail = format!("{} lets the request not out of the domain", self.config.node);
                self.settle(now, key, Beyond::unknown(Refusal::new(RefusalKind::OutsideDomain, detail)));
            }
            (Some(Sent::Request(key)), SendStatus::Failed(FailReason::NoConnection))
                if self.turn_to_datagrams(now, key) => {}
            // The next copy may go.
            (Some(Sent::Request(key)), SendStatus::Failed(FailReason::RateLimited))
                if self.retransmissions.has((key, None)) => {}
            (Some(Sent::Request(key)), SendStatus::Failed(reason)) => {
                let again = matches!(reason, FailReason::Association | FailReason::NoAssociation);
                let detail = format!("{} could not reach the next node, since {}", self.config.node, reason.text());
                self.resend_or_settle(now, key, again, detail);
            }
        }
    }

    fn handle_no_peer(&mut self, now: Instant, key: ExchangeKey, reason: NoPeerReason) {
        let was_resent = self.exchanges.get_mut(&key).is_some_and(|exchange| {
            exchange.has_next = false;
            exchange.beyond.was_resent()
        });
        let said = match reason {
            NoPeerReason::Unreachable if !was_resent => {
                return self.settle(now, key, Beyond::nobody(Some(PathEnd::Unreachable)));
            }
            NoPeerReason::EndpointFound if !was_resent => {
                return self.settle(now, key, Beyond::nobody(Some(PathEnd::EndpointFound)));
            }
            NoPeerReason::Hindered { kind, reporter } => format!("; {reporter} {}", kind.text()),
            NoPeerReason::Timeout | NoPeerReason::Unreachable | NoPeerReason::EndpointFound => String::new(),
        };
        let detail = format!("nobody after {} answered{said}; there may be nodes further on", self.config.node);
        self.settle(now, key, Beyond::unknown(Refusal::new(RefusalKind::Timeout, detail)));
    }

    pub(super) fn handle_notification(&mut self, now: Instant, session: SessionId, mri: &Mri, kind: Notification) {
        let lost = match kind {
            Notification::CommunicationFailure | Notification::RouteDeletion | Notification::LastNode => true,
            // The answer still comes the old way, unless one of the above says that it does not.
            Notification::StatusChange(_) => false,
        };
        let waits = |exchange: &Exchange| {
            exchange.mri.as_ref() == Some(mri) && matches!(exchange.beyond, Beyond::Waiting { sent: true, .. })
        };
        let of_session = (session, Nonce([0; 16]))..=(session, Nonce([0xff; 16]));
        let keys: Vec<ExchangeKey> =
            self.exchanges.range(of_session).filter(|(_, exchange)| waits(exchange)).map(|(key, _)| *key).collect();
        for key in keys.into_iter().filter(|_| lost) {
            let detail = format!("{} lost the next node before its answer came", self.config.node);
            self.resend_or_settle(now, key, true, detail);
        }
        self.path_changed(now, session, mri, kind);
        if kind == Notification::RouteDeletion && mri.direction() == Some(Direction::Upstream) {
            self.doubt(now, session, &mri.inverted());
        }
    }
}
