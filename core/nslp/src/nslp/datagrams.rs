// SPDX-License-Identifier: Apache-2.0
//! Neighbours that take no connections (RFC 5971 §4.1.2, §5.7.1): short requests go to them by datagram, again and again until
//! the answer comes, and answers that are too long for one are cut short.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use netserv_gist::limits::DATAGRAM_DATA_BYTES_MAX;
use netserv_model::{Instant, Refusal, RefusalKind};
use netserv_wire::nslp::Response;

use super::Nslp;
use crate::exchange::{Beyond, ExchangeKey, budget_of};
use crate::limits::{RETRANSMISSION_FIRST, RETRANSMISSION_GAP_MAX};

/// A request that goes by datagram: along its path, or to a neighbour beside it.
pub(super) type Target = (ExchangeKey, Option<IpAddr>);

/// The requests that go by datagram, and when the next copy of each is due. Each belongs to an exchange that waits.
#[derive(Debug, Default)]
pub(super) struct Retransmissions {
    due: BTreeSet<(Instant, Target)>,
    gaps: BTreeMap<Target, (Instant, Duration)>,
}

impl Retransmissions {
    pub(super) fn has(&self, key: Target) -> bool {
        self.gaps.contains_key(&key)
    }

    pub(super) fn end(&mut self, key: Target) {
        if let Some((at, _)) = self.gaps.remove(&key) {
            self.due.remove(&(at, key));
        }
    }

    /// Returns when the next copy is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    fn set(&mut self, at: Instant, key: Target, gap: Duration) {
        self.end(key);
        self.due.insert((at, key));
        self.gaps.insert(key, (at, gap));
    }
}

impl Nslp {
    /// Sends a request by datagram from here on, since the next node takes no connections; returns false if it does already.
    pub(super) fn turn_to_datagrams(&mut self, now: Instant, key: ExchangeKey) -> bool {
        let waits = |beyond: &Beyond| matches!(beyond, Beyond::Waiting { .. });
        if self.retransmissions.has((key, None))
            || !self.exchanges.get(&key).is_some_and(|exchange| waits(&exchange.beyond))
        {
            return false;
        }
        self.retransmissions.set(now + RETRANSMISSION_FIRST, (key, None), RETRANSMISSION_FIRST);
        self.send_request(now, key);
        true
    }

    /// Does so with a request to a neighbour beside the path.
    pub(super) fn turn_copy_to_datagrams(&mut self, now: Instant, key: ExchangeKey, to: IpAddr) -> bool {
        let waits = self.exchanges.get(&key).is_some_and(|exchange| exchange.copies.contains_key(&to));
        if !waits || self.retransmissions.has((key, Some(to))) {
            return false;
        }
        self.retransmissions.set(now + RETRANSMISSION_FIRST, (key, Some(to)), RETRANSMISSION_FIRST);
        self.send_copy(now, key, to, false);
        true
    }

    /// Sends the copies that are due.
    pub(super) fn retransmit_due(&mut self, now: Instant) {
        while let Some((_, target)) = self.retransmissions.due.first().copied().filter(|(at, _)| *at <= now) {
            let gap = self.retransmissions.gaps.get(&target).map_or(RETRANSMISSION_GAP_MAX, |(_, gap)| *gap);
            let (key, neighbour) = target;
            let goes_on = self.exchanges.get(&key).is_some_and(|exchange| match neighbour {
                None => matches!(exchange.beyond, Beyond::Waiting { .. }) && exchange.budget(now).is_some(),
                Some(to) => exchange.copies.contains_key(&to) && budget_of(exchange.timer.since(now)).is_some(),
            });
            if !goes_on {
                self.retransmissions.end(target);
                continue;
            }
            let gap = (gap * 2).min(RETRANSMISSION_GAP_MAX);
            self.retransmissions.set(now + gap, target, gap);
            self.counters.requests_retransmitted += 1;
            match neighbour {
                None => self.send_request(now, key),
                Some(to) => self.send_copy(now, key, to, false),
            }
        }
    }
}

/// Returns an answer as it fits a datagram: without what is farthest from whoever asked, and then it says so.
pub(super) fn cut_to_datagram(answer: Response) -> Response {
    let bytes = answer.emit().len();
    if bytes <= DATAGRAM_DATA_BYTES_MAX {
        return answer;
    }
    let detail =
        format!("the answer has {bytes} bytes, more than a datagram takes, and the node here takes no connection");
    let incomplete = Some(Refusal::new(RefusalKind::QuotaExceeded, detail));
    let Response { session, nonce, mut entries, mut withheld, .. } = answer;
    loop {
        let cut = Response {
            entries: entries.clone(),
            withheld,
            incomplete: incomplete.clone(),
            ..Response::empty(session, nonce)
        };
        if cut.emit().len() <= DATAGRAM_DATA_BYTES_MAX {
            return cut;
        }
        match entries.pop() {
            Some(entry) => withheld.add(&entry.outcome),
            None => return cut,
        }
    }
}
