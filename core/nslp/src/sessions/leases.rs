// SPDX-License-Identifier: Apache-2.0
//! What SETUPs installed along paths, for as long as their leases run.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use netserv_model::{Instant, ModuleName, Nonce, UserId};
use netserv_wire::gist::Mri;
use netserv_wire::nslp::Message;

use super::lease::{Installed, Lease, LeaseId};
use crate::cx::{ExchangeKey, Received, module_of};
use crate::limits::{LEASE_BYTES, LEASES_PER_FLOW_MAX, LOOK_AGAIN_MIN};

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

    /// Returns the lease that a SETUP led to.
    pub(crate) fn of_setup(&self, (session, nonce): ExchangeKey, mri: &Mri) -> Option<(LeaseId, &Lease)> {
        self.of_flow(mri).find(|(_, lease)| (lease.session, lease.nonce) == (session, nonce))
    }

    /// Returns the nonce of the SETUP by which the module of another one runs here, along the same path and not made later.
    pub(crate) fn in_force(&self, key: ExchangeKey, message: &Message, mri: &Mri) -> Option<Nonce> {
        let module = module_of(message.body())?;
        let in_force = |lease: &Lease| {
            let same = lease.session == key.0 && Some(&lease.installed.user) == message.user();
            let same = same && lease.installed.module == *module;
            same && lease.is_here && (lease.nonce == key.1 || lease.created < message.created())
        };
        self.of_flow(mri).map(|(_, lease)| lease).find(|lease| in_force(lease)).map(|lease| lease.nonce)
    }

    /// Takes note of who sent a request again that is answered already.
    pub(crate) fn note_upstream(&mut self, key: ExchangeKey, from: &Received) {
        if let Some(id) = self.of_setup(key, &from.mri).map(|(id, _)| id) {
            self.change(id, |lease| {
                lease.asked_by(from.asker);
                lease.address = Some(from.local);
            });
        }
    }

    /// Has a path looked at as soon as that may be.
    pub(crate) fn look_soon(&mut self, now: Instant, id: LeaseId) {
        self.change(id, |lease| lease.look_at = Some(now.max(lease.looked_at + LOOK_AGAIN_MIN)));
    }

    /// Has those who asked for a lease asked soon, if it ends when they are gone.
    pub(crate) fn ask_again(&mut self, now: Instant, id: LeaseId) {
        self.change(id, |lease| {
            if !lease.is_local && !lease.is_crowded {
                lease.begin_questions(now);
            }
        });
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
    use std::time::Duration;

    use netserv_model::{SessionId, UnixTime};
    use netserv_wire::gist::PathCoupled;

    use super::super::lease::Text;
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
