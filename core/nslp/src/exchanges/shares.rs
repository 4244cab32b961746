// SPDX-License-Identifier: Apache-2.0
//! Who gives way when as many requests are under way as there may be.

use std::collections::BTreeMap;

use netserv_model::{UserId, share};
use netserv_wire::nslp::Message;

use super::arrival::Requester;
use super::exchange::Exchange;
use super::table::Exchanges;
use crate::cx::ExchangeKey;
use crate::limits::{PENDING_MAX, UNPROVEN_MAX};

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
/// Requests whose user this node does not know to have signed them count as one user's: a name costs nothing.
pub(crate) fn room_for(exchanges: &Exchanges, message: &Message, is_local: bool) -> Room {
    if exchanges.pending() < PENDING_MAX {
        return if is_local { Room::Free } else { room_for_peer(exchanges, message) };
    }
    let mut counts: BTreeMap<Option<&UserId>, usize> = BTreeMap::new();
    for (key, exchange) in pending(exchanges) {
        *counts.entry(proven_user(exchanges, key, exchange)).or_default() += 1;
    }
    // Several of a client's may come before the controller has found that they are its user's.
    let is_alike = |exchange: &Exchange| {
        matches!(exchange.requester, Requester::Local(_)) && exchange.message.user() == message.user()
    };
    let alike = pending(exchanges).filter(|(_, exchange)| is_local && is_alike(exchange)).count();
    let own = counts.get(&message.user()).copied().unwrap_or(0).max(alike);
    let Some((user, _)) = share::greediest(counts.into_iter(), own) else { return Room::Full };
    in_place_of_slowest(pending(exchanges).filter(|(key, exchange)| proven_user(exchanges, *key, exchange) == user))
}

/// Returns whether one more of peers' requests may come while there are places. Some of these are for users who are proven; beyond
/// the others, a request in some user's name takes the place of the slowest that nobody has proven.
fn room_for_peer(exchanges: &Exchanges, message: &Message) -> Room {
    let of_peer = |exchange: &Exchange| matches!(exchange.requester, Requester::Upstream(_));
    let is_unproven = |key, exchange: &Exchange| proven_user(exchanges, key, exchange).is_none();
    let unproven = || pending(exchanges).filter(|(key, exchange)| of_peer(exchange) && is_unproven(*key, exchange));
    if exchanges.pending() < UNPROVEN_MAX || unproven().count() < UNPROVEN_MAX {
        return Room::Free;
    }
    in_place_of_slowest(unproven().filter(|_| message.user().is_some()))
}

fn pending(exchanges: &Exchanges) -> impl Iterator<Item = (ExchangeKey, &Exchange)> {
    exchanges.iter().filter(|(_, exchange)| exchange.is_pending())
}

fn in_place_of_slowest<'a>(of: impl Iterator<Item = (ExchangeKey, &'a Exchange)>) -> Room {
    let slowest = of.min_by_key(|(_, exchange)| exchange.started);
    slowest.map_or(Room::Full, |(key, _)| Room::InPlaceOf(key))
}

/// Returns the user of a request, if the controller has found it to have signed that, or the same on the other way.
fn proven_user<'a>(exchanges: &Exchanges, key: ExchangeKey, exchange: &'a Exchange) -> Option<&'a UserId> {
    let other = || exchanges.get((key.0.twin(), key.1));
    let is_proven = || other().is_some_and(|other| other.is_proven && other.message == exchange.message);
    exchange.message.user().filter(|_| exchange.is_proven || is_proven())
}
