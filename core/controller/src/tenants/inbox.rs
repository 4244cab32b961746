// SPDX-License-Identifier: Apache-2.0
//! What is known of the messages to and from one module.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use netserv_model::control::{CONTROL_TOPICS_MAX, ControlMessage, NotifyBucket};
use netserv_model::effect::ModuleSlot;
use netserv_model::{Flavour, Instant, Refusal, RefusalKind, Topic, UnixTime};

use crate::limits::TELLS_PER_SECOND_MAX;

/// What is known of the messages to and from one module, whatever version of it runs.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// The last message of each topic.
    kept: BTreeMap<Topic, ControlMessage>,
    /// Messages that are on their way to the worker, by number.
    under_way: BTreeMap<u64, Topic>,
    /// When the last messages came, [`TELLS_PER_SECOND_MAX`] of them at most.
    recent: VecDeque<Instant>,
    /// When the newest message was made, by its user's clock.
    created: UnixTime,
    /// The highest number that was given with the last load into each place: of what is in force, and of what is to be.
    given: BTreeMap<(Flavour, ModuleSlot), u64>,
    notifies: NotifyBucket,
}

impl Control {
    /// Returns what is known of a module that had these messages.
    pub(crate) fn with(kept: BTreeMap<Topic, ControlMessage>) -> Control {
        Control { kept, ..Control::default() }
    }

    /// Returns the last message of each topic, in order of their numbers.
    fn kept(&self) -> Vec<ControlMessage> {
        let mut kept: Vec<ControlMessage> = self.kept.values().cloned().collect();
        kept.sort_by_key(|message| message.seq);
        kept
    }

    /// Returns what an instance is given that is about to be loaded into a place.
    pub(crate) fn give_kept(&mut self, place: (Flavour, ModuleSlot)) -> Vec<ControlMessage> {
        let kept = self.kept();
        self.given.remove(&place);
        self.given.extend(kept.last().map(|message| (place, message.seq)));
        kept
    }

    /// Returns the highest number that was taken or may be, if there is one.
    pub(crate) fn newest(&self) -> Option<u64> {
        let kept = self.kept.values().map(|message| message.seq);
        kept.chain(self.under_way.keys().last().copied()).max()
    }

    /// Returns the place behind all messages.
    pub(crate) fn next(&self) -> u64 {
        self.newest().map_or(0, |newest| newest.saturating_add(1))
    }

    /// Returns when the newest message was made, by its user's clock.
    pub(crate) fn created(&self) -> UnixTime {
        self.created
    }

    /// Checks that a message may come next.
    pub(crate) fn check(&self, now: Instant, message: &ControlMessage) -> Result<(), Refusal> {
        if let Some(newest) = self.newest().filter(|newest| message.seq <= *newest) {
            let detail = format!("seq {} is not above {newest}, which came before", message.seq);
            return Err(Refusal::new(RefusalKind::OldSequence, detail));
        }
        let full = self.recent.len() >= TELLS_PER_SECOND_MAX;
        if full && self.recent.front().is_some_and(|first| now.since(*first) < Duration::from_secs(1)) {
            let detail = format!("{TELLS_PER_SECOND_MAX} messages to the module within a second");
            return Err(Refusal::new(RefusalKind::RateLimited, detail));
        }
        let topics: BTreeSet<&Topic> = self.kept.keys().chain(self.under_way.values()).collect();
        if topics.len() >= CONTROL_TOPICS_MAX && !topics.contains(&message.topic) {
            let detail = format!("the module has messages of {CONTROL_TOPICS_MAX} topics, use one of them");
            return Err(Refusal::new(RefusalKind::QuotaExceeded, detail));
        }
        Ok(())
    }

    /// Takes note of a message that is on its way to the worker.
    pub(crate) fn begin(&mut self, now: Instant, message: &ControlMessage, created: UnixTime) {
        self.created = self.created.max(created);
        if self.recent.len() >= TELLS_PER_SECOND_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
        self.under_way.insert(message.seq, message.topic.clone());
    }

    /// Returns whether a message is on its way to the worker.
    pub(crate) fn is_under_way(&self, seq: u64) -> bool {
        self.under_way.contains_key(&seq)
    }

    /// Takes note that a message is no longer on its way.
    pub(crate) fn end(&mut self, seq: u64) {
        self.under_way.remove(&seq);
    }

    /// Keeps a message that was taken, unless a later one of its topic was. Returns whether it is kept.
    pub(crate) fn keep(&mut self, message: &ControlMessage) -> bool {
        // Answers may come in another order than the messages went.
        let is_last = self.kept.get(&message.topic).is_none_or(|kept| kept.seq < message.seq);
        if is_last {
            self.kept.insert(message.topic.clone(), message.clone());
        }
        is_last
    }

    /// Returns what the instance in a place, which has just come in force, was not given with its load.
    pub(crate) fn rest(&mut self, place: (Flavour, ModuleSlot)) -> Vec<ControlMessage> {
        // All others are gone.
        self.given.retain(|given, _| *given == place);
        let given = self.given.get(&place).copied();
        self.kept().into_iter().filter(|message| Some(message.seq) > given).collect()
    }

    /// Returns whether the module may tell its requesters something.
    pub(crate) fn take_notify(&mut self, now: Instant) -> bool {
        self.notifies.take(now)
    }
}
