// SPDX-License-Identifier: Apache-2.0
//! The querying end of a row (RFC 5971 §6.2): how far its handshake is, and when it goes on.

use std::time::Duration;

use netserv_model::Instant;
use netserv_wire::gist::{Cookie, StackProposal};
use rand::Rng;
use rand::rngs::StdRng;

use crate::api::{Config, NoPeerReason};
use crate::associations::stack::Stack;
use crate::cx::{Deadline, earlier};
use crate::limits;

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

/// What a row's timer asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Due {
    Nothing,
    /// One more copy of the Query.
    Query,
    /// A Query that refreshes the row.
    Refresh,
    /// The end of the handshake: this is what the silence means.
    GiveUp(NoPeerReason),
    /// The end of the row, which carried nothing for its time.
    Expiry,
}

/// The querying end of a row.
#[derive(Debug)]
pub(crate) struct Querier {
    phase: Phase,
    /// The cookies of this handshake's Queries, and when they were sent; a Response to any of them counts.
    cookies: Vec<(QueryCookie, Instant)>,
    /// When the next copy is due, and how long after it the one after that.
    retransmit_at: Instant,
    retry: Duration,
    give_up_at: Instant,
    refresh_at: Instant,
    active_at: Instant,
    inactivity: Duration,
    /// Queries propose stacks.
    wants_association: bool,
    /// The least stack that they propose.
    least: Stack,
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
    silence: NoPeerReason,
    /// How long the last answered handshake's Query and its Response took, in microseconds.
    rtt_us: Option<u32>,
}

/// What a Confirm has of the Response.
#[derive(Debug)]
pub(crate) struct Echo {
    pub(crate) cookie: Option<Cookie>,
    pub(crate) proposal: Option<StackProposal>,
}

/// What a row's messages want of a handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wants {
    pub(crate) association: bool,
    pub(crate) least: Stack,
    /// The row has a peer, which may answer late.
    pub(crate) known: bool,
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

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns whether messages can go, as far as the handshake is concerned.
    pub(crate) fn is_ready(&self) -> bool {
        match self.phase {
            Phase::Asking | Phase::Connecting => false,
            Phase::Established | Phase::Refreshing => true,
        }
    }

    /// Returns whether an answer to a Query is awaited.
    pub(crate) fn is_waiting(&self) -> bool {
        match self.phase {
            Phase::Asking | Phase::Refreshing => true,
            Phase::Connecting | Phase::Established => false,
        }
    }

    pub(crate) fn is_doubted(&self) -> bool {
        self.doubted
    }

    /// Returns what it means if nobody answers.
    pub(crate) fn silence(&self) -> NoPeerReason {
        self.silence
    }

    /// Returns how long the last answered handshake's Query and its Response took.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.rtt_us.map(|us| Duration::from_micros(us.into()))
    }

    /// Returns when the Query of this handshake with the cookie was sent.
    pub(crate) fn asked_with(&self, cookie: &Cookie) -> Option<Instant> {
        self.cookies.iter().find(|(sent, _)| cookie.0 == *sent).map(|(_, at)| *at)
    }

    /// Returns whether this handshake had begun at a time.
    pub(crate) fn was_asking(&self, at: Instant) -> bool {
        self.cookies.first().is_some_and(|(_, first_at)| *first_at <= at)
    }

    /// Returns the phase of the handshake that would bring a connection of a stack, if nothing under way does.
    pub(crate) fn restart_for(&self, least: Stack) -> Option<Phase> {
        match self.phase {
            Phase::Established => Some(Phase::Refreshing),
            Phase::Asking | Phase::Refreshing => (!self.wants_association || self.least < least).then_some(self.phase),
            Phase::Connecting => None,
        }
    }

    /// Returns when a handshake begins that was put off to spread those of many rows, if that is earlier than it was to.
    pub(crate) fn hastened(&self, now: Instant) -> Option<Instant> {
        let is_put_off = self.phase == Phase::Asking && self.cookies.is_empty();
        let begins_at = (self.rehandshake_at - limits::REHANDSHAKE_INTERVAL).max(now);
        (is_put_off && begins_at < self.retransmit_at).then_some(begins_at)
    }

    /// Returns what the Queries of this handshake propose at least, if they propose connections.
    pub(crate) fn proposes(&self) -> Option<Stack> {
        self.wants_association.then_some(self.least)
    }

    /// Returns what Queries say to the NSLP that they find.
    pub(crate) fn payload(&self) -> Option<&Vec<u8>> {
        self.payload.as_ref()
    }

    /// Starts a handshake, whose first Query is due at a time.
    pub(crate) fn start(&mut self, phase: Phase, at: Instant, wants: Wants, config: &Config) {
        self.phase = if wants.known { phase } else { Phase::Asking };
        self.cookies = Vec::new();
        self.silence = NoPeerReason::Timeout;
        self.retry = config.retry_initial;
        self.retransmit_at = at;
        self.give_up_at = at + if wants.known { config.refresh_budget } else { config.query_budget };
        self.wants_association |= wants.association;
        self.least = wants.least;
    }

    /// Returns when a handshake may start since something went wrong, which is not too often; not if one has.
    pub(crate) fn restart_at(&mut self, now: Instant) -> Option<Instant> {
        match self.phase {
            Phase::Asking => None,
            Phase::Connecting | Phase::Established | Phase::Refreshing => {
                let at = self.rehandshake_at.max(now);
                self.rehandshake_at = at + limits::REHANDSHAKE_INTERVAL;
                Some(at)
            }
        }
    }

    /// Takes that a copy of the Query goes out.
    pub(crate) fn sent(&mut self, now: Instant, cookie: QueryCookie) {
        // Most Queries are answered by then: a row has room for no more than it sent.
        self.cookies.reserve_exact(1);
        self.cookies.push((cookie, now));
        // What proved the end before says nothing of this copy.
        if matches!(self.silence, NoPeerReason::Unreachable | NoPeerReason::EndpointFound) {
            self.silence = NoPeerReason::Timeout;
        }
        self.retransmit_at = (now + self.retry).min(self.give_up_at);
        self.retry = (self.retry * 2).min(limits::RETRY_MAX);
    }

    /// Takes what Queries are to say to the NSLP that they find, unless it is nothing.
    pub(crate) fn set_payload(&mut self, payload: Option<Vec<u8>>) {
        self.payload = payload.or(self.payload.take());
    }

    /// Takes that the NSLP was told that the peer is not as good as it was.
    pub(crate) fn doubt(&mut self) {
        self.doubted = true;
    }

    /// Takes a proof that no node answered since there is none.
    pub(crate) fn set_silence(&mut self, proof: NoPeerReason) {
        self.silence = proof;
    }

    /// Takes what may hinder Queries; what was proven holds.
    pub(crate) fn note_hindrance(&mut self, hindrance: NoPeerReason) {
        if matches!(self.silence, NoPeerReason::Timeout | NoPeerReason::Hindered { .. }) {
            self.silence = hindrance;
        }
    }

    /// Takes the Response to a Query, and returns whether the NSLP doubted the peer.
    pub(crate) fn answered(&mut self, rtt: Duration, refresh_at: Instant, echo: Option<Echo>) -> bool {
        self.refresh_at = refresh_at;
        self.note_rtt(rtt);
        self.payload = None;
        self.echo = echo.map(Box::new);
        std::mem::take(&mut self.doubted)
    }

    /// Takes that a copy of the Query was answered; of a handshake's Responses, the quickest tells.
    fn note_rtt(&mut self, rtt: Duration) {
        let rtt_us = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX);
        self.rtt_us = match self.phase {
            Phase::Asking | Phase::Refreshing => Some(rtt_us),
            Phase::Connecting | Phase::Established => Some(self.rtt_us.map_or(rtt_us, |known| known.min(rtt_us))),
        };
    }

    /// Ends the handshake with a connection, which is open or not, or without.
    pub(crate) fn complete(&mut self, has_association: bool, is_open: bool) {
        self.phase = if is_open { Phase::Established } else { Phase::Connecting };
        if !has_association {
            self.wants_association = false;
        }
    }

    /// Takes that the connection is open, and returns whether the handshake ended by that.
    pub(crate) fn connected(&mut self) -> bool {
        let waited = self.phase == Phase::Connecting;
        if waited {
            self.phase = Phase::Established;
        }
        waited
    }

    /// Takes what the Confirm has of the Response, if one is to be sent.
    pub(crate) fn take_echo(&mut self) -> Option<Echo> {
        self.echo.take().map(|echo| *echo)
    }

    /// Takes that the connection broke, and returns whether that happened too often.
    pub(crate) fn connection_lost(&mut self) -> bool {
        self.association_failures += 1;
        self.wants_association = true;
        self.association_failures >= limits::ASSOCIATION_ATTEMPTS_MAX
    }

    /// Takes that connections broke no more often than refreshes come.
    pub(crate) fn reset_failures(&mut self) {
        self.association_failures = 0;
    }

    /// Has Queries propose connections, and returns whether they did not.
    pub(crate) fn want_association(&mut self) -> bool {
        !std::mem::replace(&mut self.wants_association, true)
    }

    /// Takes that the row carries a message.
    pub(crate) fn note_activity(&mut self, now: Instant) {
        self.active_at = now;
    }

    /// Takes how long the row lives without messages, from here on.
    pub(crate) fn set_lifetime(&mut self, now: Instant, lifetime: Duration) {
        (self.inactivity, self.active_at) = (lifetime, now);
    }

    pub(crate) fn due(&self, now: Instant) -> Due {
        if self.phase != Phase::Asking && now >= self.active_at + self.inactivity {
            return Due::Expiry;
        }
        match self.phase {
            Phase::Asking | Phase::Refreshing if now >= self.retransmit_at => {
                let is_over = now >= self.give_up_at || self.cookies.len() >= limits::QUERY_COPIES_MAX;
                if is_over { Due::GiveUp(self.silence) } else { Due::Query }
            }
            Phase::Established if now >= self.refresh_at => Due::Refresh,
            Phase::Asking | Phase::Connecting | Phase::Established | Phase::Refreshing => Due::Nothing,
        }
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

/// Returns a fresh query cookie; each copy of a Query has its own.
pub(crate) fn query_cookie(random: &mut StdRng) -> QueryCookie {
    let mut bytes = [0; QUERY_COOKIE_BYTES];
    random.fill_bytes(&mut bytes);
    bytes
}

/// A query cookie of this node's.
pub(crate) type QueryCookie = [u8; QUERY_COOKIE_BYTES];

const QUERY_COOKIE_BYTES: usize = 16;
