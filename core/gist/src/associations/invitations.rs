// SPDX-License-Identifier: Apache-2.0
//! To whom cookies went lately, whose connections are no strangers'.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use netserv_model::Instant;

use crate::limits;

/// Whether the peer was sent a cookie before it connected; strangers come first in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Invited(pub(super) bool);

/// To whom cookies went lately; each once.
#[derive(Debug, Default)]
pub(super) struct Invitations {
    latest: BTreeMap<IpAddr, Instant>,
    order: BTreeSet<(Instant, IpAddr)>,
}

impl Invitations {
    pub(super) fn add(&mut self, now: Instant, peer: IpAddr) {
        self.expire(now);
        if let Some(earlier) = self.latest.insert(peer, now) {
            self.order.remove(&(earlier, peer));
        }
        self.order.insert((now, peer));
        if self.order.len() > limits::INVITATIONS_MAX {
            self.forget_first();
        }
    }

    pub(super) fn has(&mut self, now: Instant, peer: IpAddr) -> bool {
        self.expire(now);
        self.latest.contains_key(&peer)
    }

    fn expire(&mut self, now: Instant) {
        while self.order.first().is_some_and(|(at, _)| now.since(*at) > limits::INVITATION_TIME) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((_, peer)) = self.order.pop_first() {
            self.latest.remove(&peer);
        }
    }
}
