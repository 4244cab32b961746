// SPDX-License-Identifier: Apache-2.0
//! Neighbours that take no connections (RFC 5971 §4.1.2, §5.7.1): short requests go to them by datagram, again and again until
//! the answer comes, and answers that are too long for one are cut short.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use netserv_gist::limits::DATAGRAM_DATA_BYTES_MAX;
use netserv_model::{Instant, Refusal, RefusalKind};
use netserv_wire::nslp::Response;

use super::Nslp;
use crate::exchange::{Beyond, ExchangeKey};
use crate::limits::{RETRANSMISSION_FIRST, RETRANSMISSION_GAP_MAX};

/// The requests that go by datagram, and when the next copy of each is due. Each belongs to an exchange that waits.
#[derive(Debug, Default)]
pub(super) struct Retransmissions {
    due: BTreeSet<(Instant, ExchangeKey)>,
    gaps: BTreeMap<ExchangeKey, (Instant, Duration)>,
}

impl Retransmissions {
    pub(super) fn has(&self, key: ExchangeKey) -> bool {
        self.gaps.contains_key(&key)
    }

    pub(super) fn end(&mut self, key: ExchangeKey) {
        if let Some((at, _)) = self.gaps.remove(&key) {
            self.due.remove(&(at, key));
        }
    }

    /// Returns when the next copy is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    fn set(&mut self, at: Instant, key: ExchangeKey, gap: Duration) {
        self.end(key);
        self.due.insert((at, key));
        self.gaps.insert(key, (at, gap));
    }
}

impl Nslp {
    /// Sends a request by datagram from here on, since the next node takes no connections; returns false if it does already.
    pub(super) fn turn_to_datagrams(&mut self, now: Instant, key: ExchangeKey) -> bool {
        let waits = |beyond: &Beyond| matches!(beyond, Beyond::Waiting { .. });
        if self.retransmissions.has(key) || !self.exchanges.get(&key).is_some_and(|exchange| waits(&exchange.beyond)) {
            return false;
        }
        self.retransmissions.set(now + RETRANSMISSION_FIRST, key, RETRANSMISSION_FIRST);
        self.send_request(now, key);
        true
    }

    /// Sends the copies that are due.
    pub(super) fn retransmit_due(&mut self, now: Instant) {
        while let Some((_, key)) = self.retransmissions.due.first().copied().filter(|(at, _)| *at <= now) {
            let gap = self.retransmissions.gaps.get(&key).map_or(RETRANSMISSION_GAP_MAX, |(_, gap)| *gap);
            let goes_on = self.exchanges.get(&key).is_some_and(|exchange| {
                matches!(exchange.beyond, Beyond::Waiting { .. }) && exchange.budget(now).is_some()
            });
            if !goes_on {
                self.retransmissions.end(key);
                continue;
            }
            let gap = (gap * 2).min(RETRANSMISSION_GAP_MAX);
            self.retransmissions.set(now + gap, key, gap);
            self.counters.requests_retransmitted += 1;
            self.send_request(now, key);
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
