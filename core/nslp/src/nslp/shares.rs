// SPDX-License-Identifier: Apache-2.0
//! Who gives way when as many requests are under way as there may be.

use std::collections::BTreeMap;

use netserv_model::{Instant, RefusalKind, UserId, share};
use netserv_wire::nslp::Message;

use super::Nslp;
use crate::exchange::{Exchange, Own};
use crate::limits::PENDING_MAX;

impl Nslp {
    /// Returns whether there is room for a request. When there is none, the slowest request is answered with what is known of it,
    /// of the user with the most requests under way, unless this is the user who asks.
    ///
    /// Requests whose user this node does not know to have signed them count as one user's.
    pub(super) fn has_room(&mut self, now: Instant, message: &Message) -> bool {
        if self.pending < PENDING_MAX {
            return true;
        }
        let mut counts: BTreeMap<Option<&UserId>, usize> = BTreeMap::new();
        for exchange in self.exchanges.values().filter(|exchange| exchange.is_pending()) {
            *counts.entry(proven_user(exchange)).or_default() += 1;
        }
        let own = counts.get(&message.user()).copied().unwrap_or(0);
        let Some((user, _)) = share::greediest(counts.into_iter(), own) else {
            self.counters.requests_over_limit += 1;
            return false;
        };
        let theirs = self.exchanges.iter().filter(|(_, one)| one.is_pending() && proven_user(one) == user);
        let Some(slowest) = theirs.min_by_key(|(_, one)| one.started).map(|(key, _)| *key) else { return false };
        self.counters.requests_displaced += 1;
        self.give_up(now, slowest);
        self.pending < PENDING_MAX
    }
}

/// Returns the user of a request that this node's controller has not found to be another's or nobody's.
fn proven_user(exchange: &Exchange) -> Option<&UserId> {
    let is_proven = match &exchange.own {
        Own::Pending => true,
        Own::Reported(report) => {
            let unproven =
                [RefusalKind::Unsigned, RefusalKind::UnknownUser, RefusalKind::BadSignature, RefusalKind::NotANode];
            !unproven.into_iter().any(|kind| report.outcome.is_refused_for(kind))
        }
        Own::Unasked | Own::LeftOut => false,
    };
    exchange.message.user().filter(|_| is_proven)
}
