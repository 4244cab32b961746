// SPDX-License-Identifier: Apache-2.0
//! What SETUPs installed along paths, for as long as their leases run.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use netserv_gist::{AssociationId, SiiHandle};
use netserv_model::domain::Side;
use netserv_model::notify::NotifyEvent;
use netserv_model::{Instant, ModuleName, Nonce, SessionId, UnixTime, UserId};
use netserv_wire::gist::Mri;

use crate::limits::{
    LEASE_BYTES, LEASES_PER_FLOW_MAX, MODULE_MESSAGES_BURST_MAX, NEWS_BURST_MAX, NEWS_INTERVAL, QUESTION_DELAY,
    QUESTION_INTERVAL, QUESTIONS_MAX, QUESTIONS_PAUSE, UPSTREAM_MAX,
};

/// Names a lease on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LeaseId(u64);

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
    head: Arc<str>,
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

    fn len(&self) -> usize {
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

    fn timer(&self) -> Instant {
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

/// Who asked for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    /// The peer.
    pub(crate) sii: SiiHandle,
    /// Its address.
    pub(crate) address: IpAddr,
    /// The connection that it asked over.
    pub(crate) association: Option<AssociationId>,
    /// Where it is.
    pub(crate) side: Side,
    /// No node is between it and the requester, it says.
    pub(crate) is_first: bool,
    /// It asked by datagram, and may take no connection.
    pub(crate) by_datagram: bool,
}

impl Asker {
    /// Returns whether what came over a connection is of the same peer: a connection may lead to it by several addresses,
    /// and only by the one of its first message has GIST a name for it.
    pub(crate) fn is(&self, other: &Asker) -> bool {
        self.sii == other.sii || (self.association.is_some() && self.association == other.association)
    }
}

/// Takes note of who asked, in place of whoever had the address or the connection before; false if there are too many.
pub(crate) fn remember(askers: &mut Vec<Asker>, asker: Asker) -> bool {
    askers.retain(|other| other.address != asker.address && !other.is(&asker));
    let may = askers.len() < UPSTREAM_MAX;
    if may {
        askers.push(asker);
    }
    may
}

/// All leases.
#[derive(Debug)]
pub(crate) struct Leases {
    /// How many there may be.
    max: usize,
    leases: BTreeMap<LeaseId, Box<Lease>>,
    by_flow: BTreeSet<(Arc<Mri>, LeaseId)>,
    by_module: BTreeSet<(Arc<Installed>, LeaseId)>,
    timers: BTreeSet<(Instant, LeaseId)>,
    /// Bytes of all texts, as if none shared anything.
    bytes: usize,
    /// What texts share.
    heads: BTreeSet<Arc<str>>,
    last: u64,
}

impl Leases {
    /// Returns none, with room for so many.
    pub(crate) fn new(max: usize) -> Leases {
        Leases {
            max,
            leases: BTreeMap::new(),
            by_flow: BTreeSet::new(),
            by_module: BTreeSet::new(),
            timers: BTreeSet::new(),
            bytes: 0,
            heads: BTreeSet::new(),
            last: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.leases.len()
    }

    pub(crate) fn get(&self, id: LeaseId) -> Option<&Lease> {
        self.leases.get(&id).map(Box::as_ref)
    }

    /// Returns the leases along a flow.
    pub(crate) fn of_flow<'a>(&'a self, mri: &Mri) -> impl Iterator<Item = (LeaseId, &'a Lease)> {
        self.ids_of_flow(mri).filter_map(|id| self.get(id).map(|lease| (id, lease)))
    }

    fn ids_of_flow(&self, mri: &Mri) -> impl Iterator<Item = LeaseId> + use<'_> {
        let mri = Arc::new(mri.clone());
        let range = (Arc::clone(&mri), LeaseId(0))..=(mri, LeaseId(u64::MAX));
        self.by_flow.range(range).map(|(_, id)| *id)
    }

    /// Returns the flows that have leases, from the one after another on.
    pub(crate) fn flows(&self, after: Option<&Mri>) -> impl Iterator<Item = &Mri> {
        let last_of = |mri: &Mri| Bound::Excluded((Arc::new(mri.clone()), LeaseId(u64::MAX)));
        let from = after.map_or(Bound::Unbounded, last_of);
        let mut last = None;
        self.by_flow.range((from, Bound::Unbounded)).filter_map(move |(mri, _)| {
            let is_new = last.replace(&**mri) != Some(&**mri);
            is_new.then_some(&**mri)
        })
    }

    fn ids_of_module(&self, installed: &Arc<Installed>) -> impl Iterator<Item = LeaseId> + use<'_> {
        let range = (Arc::clone(installed), LeaseId(0))..=(Arc::clone(installed), LeaseId(u64::MAX));
        self.by_module.range(range).map(|(_, id)| *id)
    }

    /// Adds one; nothing if there are too many.
    pub(crate) fn insert(&mut self, mut lease: Lease) -> Option<LeaseId> {
        let of_flow = self.ids_of_flow(&lease.mri).count();
        let bytes_max = self.max.saturating_mul(LEASE_BYTES);
        let full = self.leases.len() >= self.max || self.bytes + lease.text.len() > bytes_max;
        if full || of_flow >= LEASES_PER_FLOW_MAX {
            return None;
        }
        self.bytes += lease.text.len();
        self.last += 1;
        let id = LeaseId(self.last);
        self.by_flow.insert((Arc::clone(&lease.mri), id));
        lease.text.head = self.shared(&lease.text.head);
        let of_it = self.ids_of_module(&lease.installed).next();
        if let Some(installed) = of_it.and_then(|id| self.get(id)).map(|other| Arc::clone(&other.installed)) {
            lease.installed = installed;
        }
        self.by_module.insert((Arc::clone(&lease.installed), id));
        self.timers.insert((lease.timer(), id));
        self.leases.insert(id, Box::new(lease));
        Some(id)
    }

    /// Changes one.
    pub(crate) fn change<R>(&mut self, id: LeaseId, change: impl FnOnce(&mut Lease) -> R) -> Option<R> {
        let lease = self.leases.get_mut(&id)?;
        let (before, bytes, head) = (lease.timer(), lease.text.len(), Arc::clone(&lease.text.head));
        let result = change(lease);
        let after = lease.timer();
        self.bytes = self.bytes + lease.text.len() - bytes;
        if !Arc::ptr_eq(&head, &lease.text.head) {
            let new = Arc::clone(&lease.text.head);
            let shared = self.shared(&new);
            if let Some(lease) = self.leases.get_mut(&id) {
                lease.text.head = shared;
            }
            self.forget_head(&head);
        }
        if before != after {
            self.timers.remove(&(before, id));
            self.timers.insert((after, id));
        }
        Some(result)
    }

    pub(crate) fn remove(&mut self, id: LeaseId) -> Option<Lease> {
        let lease = *self.leases.remove(&id)?;
        self.bytes -= lease.text.len();
        self.forget_head(&lease.text.head);
        self.timers.remove(&(lease.timer(), id));
        self.by_flow.remove(&(Arc::clone(&lease.mri), id));
        self.by_module.remove(&(Arc::clone(&lease.installed), id));
        Some(lease)
    }

    /// Returns a text's head as other texts have it.
    fn shared(&mut self, head: &Arc<str>) -> Arc<str> {
        if let Some(known) = self.heads.get(head) {
            return Arc::clone(known);
        }
        self.heads.insert(Arc::clone(head));
        Arc::clone(head)
    }

    /// Takes that one text less has a head, which the caller still holds once.
    fn forget_head(&mut self, head: &Arc<str>) {
        let [of_the_set, of_the_caller] = [1, 1];
        if Arc::strong_count(head) == of_the_set + of_the_caller {
            self.heads.remove(head);
        }
    }

    /// Returns the leases of a module, along all flows.
    pub(crate) fn all_of_module(&self, user: &UserId, module: &ModuleName) -> Vec<LeaseId> {
        self.ids_of_module(&Arc::new(Installed { user: user.clone(), module: module.clone() })).collect()
    }

    /// Returns the leases from the one after another on.
    pub(crate) fn after(&self, id: Option<LeaseId>) -> impl Iterator<Item = LeaseId> {
        let from = id.map_or(Bound::Unbounded, Bound::Excluded);
        self.leases.range((from, Bound::Unbounded)).map(|(id, _)| *id)
    }

    /// Returns the first that is due.
    pub(crate) fn due(&self, now: Instant) -> Option<LeaseId> {
        self.timers.first().filter(|(at, _)| *at <= now).map(|(_, id)| *id)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use netserv_wire::gist::PathCoupled;

    use super::*;

    fn lease(number: u8, text: &str) -> Lease {
        let flow = PathCoupled::new([10, 0, 0, number].into(), [10, 1, 0, 1].into()).unwrap();
        let (user, module) = ("jane".parse().unwrap(), "example.org/m".parse().unwrap());
        Lease {
            session: SessionId([number; 16]),
            mri: Arc::new(Mri::PathCoupled(flow)),
            installed: Arc::new(Installed { user, module }),
            nonce: Nonce([number; 16]),
            created: UnixTime(0),
            text: Text::new(text),
            time: Duration::from_secs(9),
            hops: Some(9),
            passed: 0,
            is_here: true,
            address: None,
            upstream: Vec::new(),
            is_crowded: false,
            is_local: false,
            is_outside: false,
            may_return: false,
            downstream: None,
            left: None,
            is_partial: false,
            questions: None,
            until: Instant::from_millis(1000),
            look_at: None,
            looked_at: Instant::from_millis(0),
            news: (Instant::from_millis(0), 0),
            messages: (Instant::from_millis(0), 0),
        }
    }

    #[test]
    fn what_texts_have_alike_is_kept_once_and_goes_with_the_last() {
        let texts = [
            "SETUP m\nurl: u\ncreated: 1\nnonce: 1\n",
            "SETUP m\nurl: u\ncreated: 2\n",
            "SETUP o\ncreated: 3\n",
            "odd",
        ];
        let mut leases = Leases::new(10);
        let ids: Vec<LeaseId> =
            (1..).zip(texts).map(|(number, text)| leases.insert(lease(number, text)).unwrap()).collect();
        for (id, text) in ids.iter().zip(texts) {
            assert_eq!(leases.get(*id).unwrap().text.whole(), text);
        }
        assert_eq!((leases.heads.len(), leases.bytes), (3, texts.concat().len()));
        // Another text takes its place.
        leases.change(ids[2], |lease| lease.text = Text::new(texts[1]));
        assert_eq!((leases.heads.len(), leases.get(ids[2]).unwrap().text.whole()), (2, texts[1].to_owned()));
        assert_eq!((leases.of_flow(&leases.get(ids[0]).unwrap().mri).count(), leases.flows(None).count()), (1, 4));
        for id in ids {
            leases.remove(id).unwrap();
        }
        assert_eq!((leases.heads.len(), leases.bytes, leases.by_module.len(), leases.by_flow.len()), (0, 0, 0, 0));
    }
}
