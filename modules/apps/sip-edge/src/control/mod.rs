// SPDX-License-Identifier: Apache-2.0
//! Overload control: how many requests the server may be sent, and whose (RFC 7339, RFC 7415).

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::net::{IpAddr, Ipv6Addr};

use crate::limits::{
    DECIDED_MAX, DECIDED_MS, OTHER_DEMAND_MS, OTHER_PLACES, REPEATS_MAX, SOURCES_MAX, VALIDITY_MS, VALIDITY_MS_MAX,
    WINDOW_MS,
};
use crate::oc::{Bucket, Limit, Said, Sequence, loss};

/// What was said of the server, and until when it counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// Nothing if it can take all.
    pub limit: Option<Limit>,
    /// Milliseconds from when it was said.
    pub validity_ms: u64,
}

impl Feedback {
    /// Returns what a text says: `rate=NUMBER` (a second) or `loss=PERCENT`, and `validity-ms=NUMBER`; or `off`.
    pub fn parse(text: &str) -> Option<Feedback> {
        let mut feedback = Feedback { limit: None, validity_ms: VALIDITY_MS };
        if text.trim() == "off" {
            return Some(feedback);
        }
        for word in text.split_ascii_whitespace() {
            let (name, value) = word.split_once('=')?;
            match name {
                "rate" | "loss" if feedback.limit.is_some() => return None,
                "rate" => {
                    let rate = value.parse().ok().filter(|rate| (0.0..=1e6).contains(rate))?;
                    feedback.limit = Some(Limit::Rate(rate));
                }
                "loss" => feedback.limit = Some(loss(value)?),
                "validity-ms" => feedback.validity_ms = value.parse::<u64>().ok()?.min(VALIDITY_MS_MAX),
                _ => return None,
            }
        }
        feedback.limit.map(|_| feedback)
    }
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes on.
    Admitted,
    /// It is answered here.
    Rejected,
}

/// Decides which requests go on, so that sources have equal shares of what the server can take, and none has less because another asks
/// for more (max-min fairness).
#[derive(Debug)]
pub struct Control {
    /// Until when it counts, in milliseconds, and what.
    feedback: Option<(u64, Limit)>,
    sources: BTreeMap<IpAddr, Source>,
    /// What the server said last of a loss, or of the end of a limit, to whichever source: it counts for those to which it says nothing.
    lost: Option<Told>,
    window_begun: u64,
    /// What all sources together may still have sent on; below 0 it is a debt.
    tokens: f64,
    /// What each source gets in a window, and all together.
    share: f64,
    window: f64,
    /// Requests in a window, in the long run.
    demand: f64,
    /// What the module's other part has of the same, and how much of the limit is this one's.
    other_demand: f64,
    other_told: u64,
    /// What that part was told last.
    told: [u8; 4],
    decided: Decided,
}

#[derive(Clone, Copy, Debug, Default)]
struct Source {
    /// Requests in this window.
    count: f64,
    /// Requests in a window, in the long run.
    demand: f64,
    credit: f64,
    /// What the server says to it.
    told: Option<Told>,
}

/// What the server says to one source, until when, and what went on since.
#[derive(Clone, Copy, Debug)]
struct Told {
    until: u64,
    limit: Option<Limit>,
    sequence: Option<Sequence>,
    is_servers_own: bool,
    bucket: Bucket,
}

impl Told {
    /// Returns what holds after the server said something: nothing new if that was overtaken by something later (RFC 7339 §4.4), or may be
    /// of who is called, and the server said something itself.
    fn after(before: Option<Told>, said: &Said, now_ms: u64) -> Option<Told> {
        let in_force = before.filter(|told| now_ms < told.until);
        if in_force.is_some_and(|told| told.is_servers_own && !said.is_servers_own) {
            return None;
        }
        let before = in_force.filter(|told| told.is_servers_own == said.is_servers_own);
        if let (Some(before), Some(now)) = (before.and_then(|told| told.sequence), said.sequence)
            && now <= before
        {
            return None;
        }
        // The end of a limit is remembered, so that nothing older begins it anew.
        let validity_ms = if said.limit.is_some() { said.validity_ms } else { VALIDITY_MS };
        let until = now_ms.saturating_add(validity_ms);
        let bucket = in_force.map(|told| told.bucket).unwrap_or_default();
        let Said { limit, sequence, is_servers_own, .. } = *said;
        Some(Told { until, limit, sequence, is_servers_own, bucket })
    }
}

impl Source {
    /// Returns what the server says to it now.
    fn told(&mut self, now_ms: u64) -> Option<&mut Told> {
        self.told.as_mut().filter(|told| now_ms < told.until)
    }

    /// Returns whether the server lets a request go on; `lost` is what it says to all. `drawn` is from 0 to 1, by chance.
    fn goes_on(&mut self, lost: Option<Limit>, drawn: f64, now_ms: u64) -> bool {
        let is_lost_to_all = lost.is_some_and(|lost| is_lost(lost, drawn));
        let Some(told) = self.told(now_ms) else { return !is_lost_to_all };
        // What who is called writes makes it nobody easier.
        if is_lost_to_all && !told.is_servers_own {
            return false;
        }
        match told.limit {
            None => true,
            Some(limit @ Limit::Loss(_)) => !is_lost(limit, drawn),
            Some(Limit::Rate(rate)) => told.bucket.take(rate, now_ms),
        }
    }
}

impl Control {
    /// Builds one that admits everything until there is feedback. Nobody may know the secret.
    pub fn new(secret: u64) -> Control {
        Control {
            feedback: None,
            sources: BTreeMap::new(),
            lost: None,
            window_begun: 0,
            tokens: 0.0,
            share: 0.0,
            window: 0.0,
            demand: 0.0,
            other_demand: 0.0,
            other_told: 0,
            told: [0; 4],
            decided: Decided { secret, young: HashMap::new(), old: HashMap::new(), begun: 0 },
        }
    }

    /// Takes what the module's user says of the server.
    pub fn take(&mut self, feedback: Feedback, now_ms: u64) {
        self.roll(now_ms);
        let was_limited = self.limit(now_ms).is_some();
        let until = now_ms.saturating_add(feedback.validity_ms);
        self.feedback = feedback.limit.map(|limit| (until, limit));
        if !was_limited {
            self.tokens = 0.0;
        }
        self.work_out(now_ms);
        if !was_limited {
            self.sources.values_mut().for_each(|source| source.credit = self.share.max(1.0));
        }
    }

    /// Takes what the server says to a source; what was overtaken by something later does not count (RFC 7339 §4.4).
    pub fn said(&mut self, source: IpAddr, said: &Said, now_ms: u64) {
        self.roll(now_ms);
        // A rate is so much for one client, a loss so much of all that comes. Who is called can write one, too, but only for who calls.
        if said.is_servers_own && !matches!(said.limit, Some(Limit::Rate(_))) {
            self.lost = Told::after(self.lost, said, now_ms).or(self.lost);
        }
        let source = place(source);
        if self.sources.len() >= SOURCES_MAX && !self.sources.contains_key(&source) {
            return;
        }
        let source = self.sources.entry(source).or_default();
        source.told = Told::after(source.told, said, now_ms).or(source.told);
    }

    /// Returns the loss that counts for sources to which the server says nothing.
    fn lost(&self, now_ms: u64) -> Option<Limit> {
        self.lost.filter(|told| now_ms < told.until)?.limit
    }

    /// Takes what the module's other part says of its demand.
    pub fn other_demand(&mut self, message: &[u8], now_ms: u64) {
        if let Ok(bytes) = message.try_into() {
            self.other_demand = f64::from(u32::from_le_bytes(bytes)) * WINDOW_S;
            self.other_told = now_ms;
        }
    }

    /// Returns what the other part is to be told now and then. What is not told any more does not count there, so there is something
    /// also when nothing is new, but not when there is nothing.
    pub fn news(&mut self, now_ms: u64) -> Option<[u8; 4]> {
        let demand = self.demand(now_ms);
        let before = std::mem::replace(&mut self.told, demand);
        (demand != [0; 4] || before != demand).then_some(demand)
    }

    /// Returns how many requests come in a second.
    fn demand(&mut self, now_ms: u64) -> [u8; 4] {
        self.roll(now_ms);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of requests")]
        let a_second = (self.demand / WINDOW_S).round() as u32;
        a_second.to_le_bytes()
    }

    /// Decides on a request. `transaction` is the same whenever the request comes again, and so is what this returns, unless it went on
    /// when all did: what the server has too much of is also what comes again because it has too much.
    pub fn decide(&mut self, source: IpAddr, transaction: &impl Hash, now_ms: u64) -> Fate {
        self.roll(now_ms);
        let told = self.sources.get_mut(&place(source)).and_then(|known| known.told(now_ms)).copied();
        let own = told.and_then(|told| told.limit).is_some();
        let lost = self.lost(now_ms).is_some() && !told.is_some_and(|told| told.is_servers_own);
        let is_limited = self.limit(now_ms).is_some() || own || lost;
        let key = self.decided.key(transaction);
        match self.decided.get(key) {
            Some(Decision { fate: Fate::Admitted, was_limited: false, .. }) if is_limited => {}
            Some(Decision { fate: Fate::Admitted, repeats: REPEATS_MAX.., .. }) if is_limited => return Fate::Rejected,
            Some(decision) => {
                if is_limited && decision.fate == Fate::Admitted {
                    self.pay();
                    self.decided.put(key, Decision { repeats: decision.repeats + 1, ..decision }, now_ms);
                }
                return decision.fate;
            }
            None => {}
        }
        let fate = self.decide_first(place(source), key, now_ms);
        self.decided.put(key, Decision { fate, was_limited: is_limited, repeats: 0 }, now_ms);
        fate
    }

    fn decide_first(&mut self, source: IpAddr, key: u64, now_ms: u64) -> Fate {
        let (limit, lost) = (self.limit(now_ms), self.lost(now_ms));
        let is_full = self.sources.len() >= SOURCES_MAX && !self.sources.contains_key(&source);
        let source = if is_full { shared_place(key) } else { source };
        let known = self.sources.entry(source).or_default();
        known.count += 1.0;
        // By halves of the key, which nobody can choose.
        let [of_server, of_user] = [key >> 32, key & u64::from(u32::MAX)]
            .map(|half| f64::from(u32::try_from(half).unwrap_or(0)) / f64::from(u32::MAX));
        if !known.goes_on(lost, of_server, now_ms) {
            return Fate::Rejected;
        }
        let capacity = match limit {
            None => return Fate::Admitted,
            Some(limit @ Limit::Loss(_)) if is_lost(limit, of_user) => return Fate::Rejected,
            Some(Limit::Loss(_)) => return Fate::Admitted,
            Some(limit @ Limit::Rate(_)) => self.capacity(limit),
        };
        let known = self.sources.get_mut(&source).expect("it was put there");
        match known.credit >= 1.0 {
            // Sources may be in debt together for a window, so that who asks for little finds something left.
            true if self.tokens + capacity >= 1.0 => known.credit -= 1.0,
            // What nobody takes goes to who wants more.
            false if self.tokens >= 1.0 => {}
            true | false => return Fate::Rejected,
        }
        self.pay();
        Fate::Admitted
    }

    /// Takes a token for what goes on. The debt is one of some windows at most, whatever comes again.
    fn pay(&mut self) {
        self.tokens = (self.tokens - 1.0).max(-DEBT_WINDOWS_MAX * self.window.max(1.0));
    }

    /// Returns the limit of all, if there is one.
    fn limit(&self, now_ms: u64) -> Option<Limit> {
        self.feedback.and_then(|(until, limit)| (now_ms < until).then_some(limit))
    }

    /// Returns how many requests may go on in a window.
    fn capacity(&self, limit: Limit) -> f64 {
        match limit {
            Limit::Rate(a_second) => {
                let all = self.demand + self.other_demand;
                // A part to which nothing comes keeps a little.
                let part = if self.other_demand > 0.0 { (self.demand / all).max(0.05) } else { 1.0 };
                a_second * WINDOW_S * part
            }
            Limit::Loss(loss) => (1.0 - loss) * self.demand,
        }
    }

    /// Ends the windows that are over.
    fn roll(&mut self, now_ms: u64) {
        self.decided.roll(now_ms);
        let windows = now_ms.saturating_sub(self.window_begun) / WINDOW_MS;
        if windows == 0 {
            return;
        }
        self.window_begun = now_ms - now_ms % WINDOW_MS;
        if now_ms.saturating_sub(self.other_told) > OTHER_DEMAND_MS {
            self.other_demand = 0.0;
        }
        // After so many nothing is left of what was.
        for _ in 0..windows.min(50) {
            self.demand = 0.0;
            self.sources.retain(|_, source| {
                source.demand += SMOOTHING * (source.count - source.demand);
                source.count = 0.0;
                self.demand += source.demand;
                source.demand > FORGOTTEN || source.told(now_ms).is_some()
            });
            self.work_out(now_ms);
            if let Some(limit) = self.limit(now_ms) {
                let capacity = self.capacity(limit);
                self.tokens = (self.tokens + capacity).min(capacity.max(1.0));
                for source in self.sources.values_mut() {
                    source.credit = (source.credit + self.share).min((2.0 * self.share).max(1.0));
                }
            }
        }
    }

    /// Works out the share of each source: those that ask for less have what they ask for, the others the same.
    fn work_out(&mut self, now_ms: u64) {
        let Some(limit) = self.limit(now_ms) else { return };
        let mut left = self.capacity(limit);
        self.window = left;
        let mut demands: Vec<f64> = self.sources.values().map(|source| source.demand).collect();
        demands.sort_by(f64::total_cmp);
        let mut sources = demands.len();
        self.share = left;
        for demand in demands {
            #[allow(clippy::cast_precision_loss, reason = "at most SOURCES_MAX")]
            let share = left / sources as f64;
            self.share = share;
            if demand >= share {
                break;
            }
            left -= demand;
            sources -= 1;
        }
    }
}

/// How a request was decided.
#[derive(Clone, Copy, Debug)]
struct Decision {
    fate: Fate,
    /// Whether not all went on then.
    was_limited: bool,
    /// How often it came again while not all went on.
    repeats: u8,
}

/// How requests were decided that may come again.
#[derive(Debug)]
struct Decided {
    secret: u64,
    young: HashMap<u64, Decision>,
    old: HashMap<u64, Decision>,
    begun: u64,
}

impl Decided {
    fn key(&self, transaction: &impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.secret.hash(&mut hasher);
        transaction.hash(&mut hasher);
        hasher.finish()
    }

    fn get(&self, key: u64) -> Option<Decision> {
        self.young.get(&key).or_else(|| self.old.get(&key)).copied()
    }

    fn put(&mut self, key: u64, decision: Decision, now_ms: u64) {
        if self.young.len() >= DECIDED_MAX {
            self.turn(now_ms);
        }
        self.young.insert(key, decision);
    }

    fn roll(&mut self, now_ms: u64) {
        if now_ms.saturating_sub(self.begun) >= DECIDED_MS {
            self.turn(now_ms);
        }
    }

    fn turn(&mut self, now_ms: u64) {
        self.begun = now_ms;
        std::mem::swap(&mut self.young, &mut self.old);
        self.young.clear();
    }
}

/// Returns whether a request is part of a loss (RFC 7339 §5.10.1).
fn is_lost(limit: Limit, drawn: f64) -> bool {
    matches!(limit, Limit::Loss(loss) if drawn < loss || loss >= 1.0)
}

/// Returns what stands for a source: its address, or its network of IPv6, of which a client has all addresses.
fn place(source: IpAddr) -> IpAddr {
    match source.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
    }
}

#[allow(clippy::cast_precision_loss, reason = "a constant that fits")]
const WINDOW_S: f64 = WINDOW_MS as f64 / 1000.0;
/// How much of the long run the last window is.
const SMOOTHING: f64 = 0.3;
/// Windows that it may take until what went on is paid for.
const DEBT_WINDOWS_MAX: f64 = 3.0;
/// What nobody asks for any more.
const FORGOTTEN: f64 = 0.005;

/// Returns a place for sources of which there are too many.
fn shared_place(key: u64) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from_bits(u128::from(key % OTHER_PLACES)))
}

#[cfg(test)]
mod tests;
