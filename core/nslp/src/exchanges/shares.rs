// SPDX-License-Identifier: Apache-2.0
//! Who gives way when as many requests are under way as there may be.

use std::collections::BTreeMap;

use netserv_model::{RefusalKind, UserId, share};
use netserv_wire::nslp::Message;

use super::exchange::{Exchange, Own};
use super::table::Exchanges;
use crate::cx::ExchangeKey;
use crate::limits::PENDING_MAX;

/// Whether one more request may come.
pub(crate) enum Room {
    Free,
    /// If this one is answered first.
    InPlaceOf(ExchangeKey),
    Full,
}

/// Returns whether there is room for a request. When there is none, the slowest request gives way, of the user with the most
/// requests under way, unless this is the user who asks.
///
/// Requests whose user this node does not know to have signed them count as one user's.
pub(crate) fn room_for(exchanges: &Exchanges, message: &Message) -> Room {
    if exchanges.pending() < PENDING_MAX {
        return Room::Free;
    }
    let pending = || exchanges.iter().filter(|(_, exchange)| exchange.is_pending());
    let mut counts: BTreeMap<Option<&UserId>, usize> = BTreeMap::new();
    for (_, exchange) in pending() {
        *counts.entry(proven_user(exchange)).or_default() += 1;
    }
    let own = counts.get(&message.user()).copied().unwrap_or(0);
    let Some((user, _)) = share::greediest(counts.into_iter(), own) else { return Room::Full };
    let theirs = pending().filter(|(_, exchange)| proven_user(exchange) == user);
    let slowest = theirs.min_by_key(|(_, exchange)| exchange.started);
    slowest.map_or(Room::Full, |(key, _)| Room::InPlaceOf(key))
}

/// Returns the user of a request that this node's controller has not found to be another's or nobody's.
fn proven_user(exchange: &Exchange) -> Option<&UserId> {
    let is_proven = match &exchange.own {
        Own::Pending => true,
        Own::Reported(report) => {
            let unproven = [
                RefusalKind::Unsigned,
                RefusalKind::UnknownUser,
                RefusalKind::BadProof,
                RefusalKind::BadSignature,
                RefusalKind::NotANode,
            ];
            !unproven.into_iter().any(|kind| report.outcome.is_refused_for(kind))
        }
        Own::Unasked | Own::LeftOut => false,
    };
    exchange.message.user().filter(|_| is_proven)
}
