// SPDX-License-Identifier: Apache-2.0
//! Whether the server serves. A client that pings it wants to know that, so the server's own word is behind each answer here.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher as _};

use crate::limits::{PINGS_EACH_MS, PINGS_MAX, UNHEARD_MS};

/// What the server was heard to answer.
#[derive(Debug)]
pub struct Serving {
    secret: u64,
    /// How long its word counts; nothing if it is not asked.
    valid_ms: Option<u64>,
    /// Its answers to anything.
    answers: Word,
    /// Its answers to pings.
    pings: Word,
    /// Its last answer to a ping says that it does not serve.
    has_refused: bool,
    /// Digests of pings that went on to it, with when they did, the oldest first.
    asked: VecDeque<(u64, u64)>,
}

/// When the server was heard, and asked since.
#[derive(Debug, Default)]
struct Word {
    /// The first keep-alive finds it just heard.
    heard_ms: Option<u64>,
    asked_ms: u64,
}

impl Word {
    /// Returns whether it counts. Where it is too old, one keep-alive a second asks for another, and soon all do.
    fn counts(&mut self, valid_ms: u64, now_ms: u64) -> bool {
        let age_ms = now_ms.saturating_sub(*self.heard_ms.get_or_insert(now_ms));
        let is_asked = age_ms < valid_ms + UNHEARD_MS && now_ms.saturating_sub(self.asked_ms) < PINGS_EACH_MS;
        let counts = age_ms < valid_ms || is_asked;
        if !counts {
            self.asked_ms = now_ms;
        }
        counts
    }
}

impl Serving {
    /// Builds one for a server whose word counts for so many seconds; with 0 it always serves. Nobody may know the secret.
    pub fn new(valid_s: u32, secret: u64) -> Serving {
        let valid_ms = (valid_s > 0).then(|| u64::from(valid_s) * 1000);
        let (answers, pings) = (Word::default(), Word::default());
        Serving { secret, valid_ms, answers, pings, has_refused: false, asked: VecDeque::new() }
    }

    /// Returns whether a keep-alive may be answered.
    pub fn is_heard(&mut self, now_ms: u64) -> bool {
        self.valid_ms.is_none_or(|valid_ms| self.answers.counts(valid_ms, now_ms))
    }

    /// Returns whether a ping may be answered. Otherwise it goes on.
    pub fn answers(&mut self, ping: &impl Hash, now_ms: u64) -> bool {
        let Some(valid_ms) = self.valid_ms else { return true };
        if !self.has_refused && self.pings.counts(valid_ms, now_ms) {
            return true;
        }
        if self.asked.back().is_none_or(|(_, at_ms)| now_ms.saturating_sub(*at_ms) >= PINGS_EACH_MS) {
            if self.asked.len() >= PINGS_MAX {
                self.asked.pop_front();
            }
            self.asked.push_back((self.digest(ping), now_ms));
        }
        false
    }

    /// Takes note that the server answered something that is no SIP.
    pub fn heard(&mut self, now_ms: u64) {
        self.answers.heard_ms = Some(now_ms);
    }

    /// Takes an answer of the server's. Only one to a ping that went on says something of pings: a callee may answer anything.
    pub fn answered(&mut self, status: u16, request: &impl Hash, now_ms: u64) {
        self.heard(now_ms);
        let digest = if self.asked.is_empty() { return } else { self.digest(request) };
        let Some(place) = self.asked.iter().position(|(asked, _)| *asked == digest).filter(|_| status >= 200) else {
            return;
        };
        self.asked.drain(..=place);
        self.pings.heard_ms = Some(now_ms);
        // RFC 3261 §21.5.4: by this a server says that it is overloaded or under maintenance.
        self.has_refused = status == 503;
    }

    fn digest(&self, of: &impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.secret.hash(&mut hasher);
        of.hash(&mut hasher);
        hasher.finish()
    }
}
