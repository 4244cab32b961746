// SPDX-License-Identifier: Apache-2.0
//! Responses that are stored.

use std::time::Duration;

use crate::fields::{Request, has, values};
use crate::vary;

/// A response that is stored, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The status code.
    pub status: u16,
    /// The headers, as they go to clients.
    pub headers: Vec<(String, Vec<u8>)>,
    /// When it came, since 1970.
    pub received: Duration,
    /// How old it was then.
    pub age: Duration,
    /// The age at which it is stale.
    pub lifetime: Duration,
    /// Seconds for which it is served stale while it is validated.
    pub stale_while_revalidate: u64,
    /// Seconds for which it is served stale when the origin fails.
    pub stale_if_error: u64,
    /// Whether it is not served stale unless the two above say so.
    pub forbids_stale: bool,
    /// Whether it is validated before each use.
    pub validates_always: bool,
    /// Whether it says itself that others may have it without a question: it was fresh as it came, for a time that it says. What only may
    /// be guessed about, or is to be asked about, is no answer for who says who it is (`Cookie`, `Authorization`), unless the origin
    /// says so of its `ETag`.
    pub is_for_all: bool,
    /// Whether it was made for somebody who says who it is, or whom it gives a name (`Set-Cookie`).
    pub is_personal: bool,
    /// A number by which who stores it knows it again.
    pub number: u64,
}

impl Stored {
    /// Returns how old it is.
    #[must_use]
    pub fn age_at(&self, now: Duration) -> Duration {
        self.age + now.saturating_sub(self.received)
    }

    /// Returns for how many seconds it is fresh; negative if it is stale.
    #[must_use]
    pub fn ttl_at(&self, now: Duration) -> i64 {
        let (age, lifetime) = (self.age_at(now).as_secs(), self.lifetime.as_secs());
        i64::try_from(lifetime).unwrap_or(i64::MAX).saturating_sub(i64::try_from(age).unwrap_or(i64::MAX))
    }

    /// Returns for how long it answers by itself: what the cache block takes for its age.
    #[must_use]
    pub fn fresh_for(&self, now: Duration) -> Duration {
        if self.validates_always { Duration::ZERO } else { self.lifetime.saturating_sub(self.age_at(now)) }
    }

    /// Returns the headers that ask the origin whether it is the same as ever for a request; none if it cannot be asked.
    ///
    /// A date is no question about pages that are made for each viewer: what changed last for one may be older than what another
    /// has.
    #[must_use]
    pub fn conditions(&self, request: &Request<'_>) -> Vec<(String, Vec<u8>)> {
        let of = |validator, condition: &str| {
            values(&self.headers, validator).next().map(|value| (condition.to_owned(), value.to_vec()))
        };
        let by_date = if self.may_be_anothers(request) { None } else { of("last-modified", "if-modified-since") };
        match self.status {
            200..300 => [of("etag", "if-none-match"), by_date].into_iter().flatten().collect(),
            _ => Vec::new(),
        }
    }

    /// Returns whether it may have been made for another viewer than the one who asks.
    pub(crate) fn may_be_anothers(&self, request: &Request<'_>) -> bool {
        !self.is_for_all && (self.is_personal || says_who(request))
    }

    /// Returns whether it must not take the place of one that is stored: it was made for one viewer, and that is for others, too.
    #[must_use]
    pub fn is_less_than(&self, held: &Stored) -> bool {
        self.is_personal && !self.is_for_all && !held.is_personal
    }

    /// Returns the names of the headers that select among its variants.
    #[must_use]
    pub fn vary(&self) -> Vec<String> {
        let mut names = vary::names(&self.headers).unwrap_or_default();
        for name in vary::unsaid(&self.headers) {
            if !names.iter().any(|said| said == name) {
                names.push(name.to_owned());
            }
        }
        names.sort();
        names
    }

    /// Returns whether it will ever be used for requests such as this one.
    pub(crate) fn is_of_use(&self, request: &Request<'_>) -> bool {
        let for_while = Duration::from_secs(self.stale_while_revalidate.max(self.stale_if_error));
        let can_be_validated = !self.conditions(request).is_empty();
        can_be_validated || !self.validates_always && self.age < self.lifetime + for_while
    }
}

/// Returns whether a request says who asks.
pub(crate) fn says_who(request: &Request<'_>) -> bool {
    ["cookie", "authorization"].iter().any(|name| has(request.headers, name))
}
