// SPDX-License-Identifier: Apache-2.0
//! What is in the cache for a request.

use netserv_http_caching::cache_status::Forwarded;
use netserv_http_caching::{Decision, Entry, Request, Stored, variant_key};
use netserv_server_sdk::cache::{self, Error, Opened, Reader};

use crate::site::{Site, now};

/// Returns the place of a stored response that a request selects.
pub fn place_of(site: &Site, stored: &Stored) -> Option<Place> {
    let request = site.request();
    let (base, names) = (site.key()?, stored.vary());
    let key = if names.is_empty() { base.clone() } else { variant_key(&base, &names, &request)? };
    Some(Place { base, key })
}

/// What is in the cache under a key, or under that of the variant that a request selects.
pub enum Found {
    /// A response.
    Stored(Held),
    /// Nothing.
    Nothing(Place),
    /// The word that responses are not stored, or no key for the variant.
    Pass,
}

/// A stored response.
pub struct Held {
    /// Where it is.
    pub place: Place,
    /// Its body.
    pub reader: Reader,
    /// Its head.
    pub stored: Stored,
}

/// Where a response is or would be.
#[derive(Clone)]
pub struct Place {
    /// The key of all variants.
    pub base: String,
    /// The key of the one that the request selects, the same if none are known.
    pub key: String,
}

impl Place {
    /// Returns why a request goes on that finds nothing here.
    pub fn miss(&self) -> Forwarded {
        if self.key == self.base { Forwarded::UriMiss } else { Forwarded::VaryMiss }
    }
}

/// Looks for a response.
pub fn find(base: String, request: &Request<'_>) -> Found {
    match entry_of(&base) {
        Some((Entry::Variants(names), _)) => match variant_key(&base, &names, request) {
            Some(key) => response(Place { base, key }),
            None => Found::Pass,
        },
        Some((Entry::Stored(stored), reader)) => {
            Found::Stored(Held { place: Place { key: base.clone(), base }, reader, stored })
        }
        Some((Entry::Pass, reader)) if is_fresh(&reader) => Found::Pass,
        Some((Entry::Pass, _)) | None => Found::Nothing(Place { key: base.clone(), base }),
    }
}

fn response(place: Place) -> Found {
    match entry_of(&place.key) {
        Some((Entry::Stored(stored), reader)) => Found::Stored(Held { place, reader, stored }),
        Some((Entry::Pass, reader)) if is_fresh(&reader) => Found::Pass,
        Some((Entry::Variants(_) | Entry::Pass, _)) | None => Found::Nothing(place),
    }
}

/// What opening a place for a fill gave.
pub enum Filled {
    /// Nobody else writes it.
    Writer(cache::Writer),
    /// Another request's response, on its way or there.
    Held(Held),
    /// So many are written that it is no one's: each asks the origin on its own.
    Alone,
    /// It cannot be had from the cache.
    Pass,
    /// Too many wait for those who fill the cache, or this one does for too long.
    Stalled,
}

/// Opens a place that has nothing of use, or joins who fills it. What others brought is an answer only for whom a later request
/// would have it without a question (RFC 9111 §4): the rest ask, each for itself.
pub fn open(place: Place, request: &Request<'_>) -> (Place, Filled) {
    let mut place = place;
    for _ in 0..STEPS_MAX {
        let opened = cache::open_or_join(&place.key);
        let reader = match opened {
            Ok(Opened::Writer(writer)) => return (place, Filled::Writer(writer)),
            Ok(Opened::Reader(reader)) => reader,
            Err(Error::Busy) => return (place, Filled::Alone),
            Err(Error::Stalled) => return (place, Filled::Stalled),
            // Who filled it gave up, or had a 304. What is there is of use, or each goes on its own.
            Err(_) => return given_up(place, request),
        };
        match Entry::decode(&reader.entry().details.meta) {
            Some(Entry::Stored(stored)) if may_be_had(&stored, request) => {
                let held = Held { place: place.clone(), reader, stored };
                return (place, Filled::Held(held));
            }
            // The variant is another place, which this request may be the first to want.
            Some(Entry::Variants(names)) => match variant_key(&place.base, &names, request) {
                Some(key) if key != place.key => place.key = key,
                Some(_) | None => return (place, Filled::Pass),
            },
            Some(Entry::Stored(_) | Entry::Pass) | None => return (place, Filled::Pass),
        }
    }
    (place, Filled::Pass)
}

fn given_up(place: Place, request: &Request<'_>) -> (Place, Filled) {
    let held = match entry_of(&place.key) {
        Some((Entry::Stored(stored), reader)) if may_be_had(&stored, request) => {
            Filled::Held(Held { place: place.clone(), reader, stored })
        }
        Some(_) | None => Filled::Pass,
    };
    (place, held)
}

/// Returns whether a stored response is the answer as it is.
fn may_be_had(stored: &Stored, request: &Request<'_>) -> bool {
    matches!(stored.decide(request, now()), Decision::Serve | Decision::ServeAndRefresh)
}

fn entry_of(key: &str) -> Option<(Entry, Reader)> {
    let reader = cache::get(key).ok().flatten()?;
    Some((Entry::decode(&reader.entry().details.meta)?, reader))
}

/// Returns whether what was found is still there, by its number; of nothing, whether responses may be stored at its place.
pub fn is_as_before(place: &Place, held: Option<&Held>) -> bool {
    match (held, entry_of(held.map_or(&place.base, |held| &held.place.key))) {
        (Some(held), Some((Entry::Stored(stored), _))) => stored.number == held.stored.number,
        (Some(_), _) => false,
        (None, Some((Entry::Pass, reader))) => !is_fresh(&reader),
        (None, _) => true,
    }
}

fn is_fresh(reader: &Reader) -> bool {
    let entry = reader.entry();
    entry.age < entry.details.max_age
}

/// How often a request goes from what is there to a variant of it.
const STEPS_MAX: u32 = 3;
