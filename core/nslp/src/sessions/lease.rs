// SPDX-License-Identifier: Apache-2.0
//! One module along one path, for as long as its lease runs.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use netserv_gist::SiiHandle;
use netserv_model::notify::NotifyEvent;
use netserv_model::{Instant, ModuleName, Nonce, SessionId, UnixTime, UserId};
use netserv_wire::gist::Mri;

use crate::cx::{Asker, remember};
use crate::limits::{
    MODULE_MESSAGES_BURST_MAX, NEWS_BURST_MAX, NEWS_INTERVAL, QUESTION_DELAY, QUESTION_INTERVAL, QUESTIONS_MAX,
    QUESTIONS_PAUSE,
};

/// Names a lease on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LeaseId(pub(super) u64);

/// One module along one path.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) session: SessionId,
    /// The flow, downstream.
    pub(crate) mri: Arc<Mri>,
    /// What was installed; the leases of one module share it.
    pub(crate) installed: Arc<Installed>,
    /// The nonce of the SETUP that it is from.
    pub(crate) nonce: Nonce,
    /// When that was made.
    pub(crate) created: UnixTime,
    /// That SETUP, as it came.
    pub(crate) text: Text,
    /// How long it might take.
    pub(crate) time: Duration,
    /// GIST hops that it might still travel, if it came from another node.
    pub(crate) hops: Option<u8>,
    /// Nodes that it had passed.
    pub(crate) passed: u32,
    /// By which address the previous hop knows this node.
    pub(crate) address: Option<IpAddr>,
    /// The module runs here; else it does so further on.
    pub(crate) is_here: bool,
    /// Who asked for it, by which address, and did not say since that its path leads elsewhere.
    pub(crate) upstream: Vec<Asker>,
    /// There were more than are remembered, so that nobody's leave is the last one.
    pub(crate) is_crowded: bool,
    /// A client of this node asked for it.
    pub(crate) is_local: bool,
    /// The SETUP came from outside of the domain.
    pub(crate) is_outside: bool,
    /// The last node may send the SETUP back to its source.
    pub(crate) may_return: bool,
    /// Who has it next.
    pub(crate) downstream: Option<SiiHandle>,
    /// Who had it next before, and was not told that the path leads elsewhere.
    pub(crate) left: Option<Box<Left>>,
    /// The last answer said that there may be nodes that did not answer.
    pub(crate) is_partial: bool,
    /// Questions to those who asked for it, if there was a sign that none of them does any more.
    pub(crate) questions: Option<Box<Questions>>,
    /// When it ends.
    pub(crate) until: Instant,
    /// When the path is looked at anew, if it is to be.
    pub(crate) look_at: Option<Instant>,
    /// When that was done last.
    pub(crate) looked_at: Instant,
    /// Since when so many news were passed on.
    pub(crate) news: (Instant, u8),
    /// Since when so many messages of modules were.
    pub(crate) messages: (Instant, u8),
}

/// A peer that the path led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) sii: SiiHandle,
    /// From which request it has the module.
    pub(crate) nonce: Nonce,
    /// Since when the path leads elsewhere.
    pub(crate) since: Instant,
}

/// A SETUP's text in two parts: what all SETUPs of a module often have alike, and shared then, and what each has of its own.
#[derive(Debug)]
pub(crate) struct Text {
    pub(super) head: Arc<str>,
    tail: Box<str>,
}

impl Text {
    pub(crate) fn new(text: &str) -> Text {
        let (head, tail) = text.split_at(text.find(OWN_LINES).unwrap_or(0));
        Text { head: head.into(), tail: tail.into() }
    }

    /// Returns the text as it came.
    pub(crate) fn whole(&self) -> String {
        [&*self.head, &*self.tail].concat()
    }

    pub(super) fn len(&self) -> usize {
        self.head.len() + self.tail.len()
    }
}

/// Where what is different in each SETUP begins: its time, nonce and signature.
const OWN_LINES: &str = "\ncreated: ";

/// Whose module a lease is of.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Installed {
    pub(crate) user: UserId,
    pub(crate) module: ModuleName,
}

impl Lease {
    /// Takes note of who asked for it.
    pub(crate) fn asked_by(&mut self, asker: Asker) {
        self.is_crowded |= !remember(&mut self.upstream, asker);
    }

    /// Returns whether nobody who asked has a node in front of this one.
    pub(crate) fn is_first(&self) -> bool {
        self.is_local || self.upstream.iter().any(|asker| asker.is_first)
    }

    /// Begins to ask those who asked for it, unless that was done a short while ago.
    pub(crate) fn begin_questions(&mut self, now: Instant) {
        let questions = self.questions.get_or_insert_with(Box::default);
        if questions.at.is_none() && now >= questions.from {
            (questions.at, questions.left) = (Some(now + QUESTION_DELAY), QUESTIONS_MAX);
        }
    }

    /// Returns when they are asked next.
    pub(crate) fn question_at(&self) -> Option<Instant> {
        self.questions.as_ref().and_then(|questions| questions.at)
    }

    /// Takes note that they are asked; returns whom, each with what it is told. `token` makes a new one.
    pub(crate) fn question(&mut self, now: Instant, mut token: impl FnMut() -> Nonce) -> Vec<(SiiHandle, Nonce)> {
        let questions = self.questions.get_or_insert_with(Box::default);
        questions.left = questions.left.saturating_sub(1);
        questions.at = (questions.left > 0).then(|| now + QUESTION_INTERVAL);
        questions.from = now + QUESTIONS_PAUSE;
        questions.tokens.retain(|(sii, _)| self.upstream.iter().any(|asker| asker.sii == *sii));
        for asker in &self.upstream {
            if !questions.tokens.iter().any(|(sii, _)| *sii == asker.sii) {
                questions.tokens.push((asker.sii, token()));
            }
        }
        questions.tokens.clone()
    }

    /// Has them asked at a later time, as often as before.
    pub(crate) fn put_off_questions(&mut self, at: Instant) {
        if let Some(questions) = &mut self.questions {
            questions.at = Some(at);
        }
    }

    /// Returns whom a token was told: who brings it back is at its address.
    pub(crate) fn told(&self, token: Option<Nonce>) -> Option<SiiHandle> {
        let told = self.questions.iter().flat_map(|questions| &questions.tokens);
        told.filter(|(_, other)| Some(*other) == token).map(|(sii, _)| *sii).next()
    }

    pub(super) fn timer(&self) -> Instant {
        let due = self.look_at.into_iter().chain(self.question_at());
        due.fold(self.until, Instant::min)
    }

    /// Takes one of the news, or of the messages of modules, that may be sent within a time; false if there were too many.
    pub(crate) fn take_news(&mut self, now: Instant, event: NotifyEvent) -> bool {
        let (sent, most) = match event {
            NotifyEvent::ModuleMessage => (&mut self.messages, MODULE_MESSAGES_BURST_MAX),
            NotifyEvent::RouteMoved
            | NotifyEvent::RouteLost
            | NotifyEvent::LeaseEnded
            | NotifyEvent::ModuleReplaced
            | NotifyEvent::ModuleFailed
            | NotifyEvent::NodeDraining
            | NotifyEvent::NodeMaintenance => (&mut self.news, NEWS_BURST_MAX),
        };
        let (since, count) = *sent;
        let begins = now >= since + NEWS_INTERVAL;
        let (since, count) = if begins { (now, 0) } else { (since, count) };
        let may = count < most;
        *sent = (since, if may { count + 1 } else { count });
        may
    }
}

/// Questions to those who asked for a lease.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    /// When they are asked next.
    at: Option<Instant>,
    /// Times that they are asked then.
    left: u8,
    /// Further signs count from then on.
    from: Instant,
    /// What each was told.
    tokens: Vec<(SiiHandle, Nonce)>,
}
