// SPDX-License-Identifier: Apache-2.0
//! What a cache does with a request.

use std::time::Duration;

use crate::directives::RequestControl;
use crate::fields::{Request, has, text};
use crate::stored::Stored;

/// What part the cache has in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// A stored response may answer it.
    Cache,
    /// It goes to the origin, and changes nothing that is stored.
    Pass,
    /// It goes to the origin; a success [makes responses wrong](crate::key::invalidated), which go.
    Unsafe,
}

impl Route {
    /// Returns the part that the cache has in a request.
    #[must_use]
    pub fn of(request: &Request<'_>) -> Route {
        let has_body = has(request.headers, "transfer-encoding")
            || text(request.headers, "content-length").is_some_and(|length| length != "0");
        let only_origin_knows = ["if-match", "if-unmodified-since", "upgrade"];
        match request.method {
            "GET" | "HEAD" if has_body || only_origin_knows.iter().any(|name| has(request.headers, name)) => {
                Route::Pass
            }
            "GET" | "HEAD" => Route::Cache,
            "OPTIONS" | "TRACE" | "CONNECT" | "PROPFIND" | "REPORT" | "SEARCH" => Route::Pass,
            _ => Route::Unsafe,
        }
    }

    /// Returns whether a request wants 504 if nothing is stored for it.
    #[must_use]
    pub fn is_only_if_cached(request: &Request<'_>) -> bool {
        RequestControl::of(request.headers).only_if_cached
    }

    /// Returns whether the response to a request must not be stored.
    #[must_use]
    pub fn is_no_store(request: &Request<'_>) -> bool {
        RequestControl::of(request.headers).no_store
    }
}

/// What a stored response is for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is the answer.
    Serve,
    /// It is the answer though it is stale, and is validated meanwhile.
    ServeAndRefresh,
    /// The origin is asked.
    Validate {
        /// Whether the request wants it although the response is fresh.
        by_request: bool,
        /// Whether it is the answer if the origin fails.
        or_stale: bool,
    },
    /// It is not the answer, and the request does not want the origin to be asked: 504.
    Unavailable,
}

impl Stored {
    /// Returns what it is for a request that selects it.
    #[must_use]
    pub fn decide(&self, request: &Request<'_>, now: Duration) -> Decision {
        let control = RequestControl::of(request.headers);
        let age = self.age_at(now);
        let validates = self.validates_always || self.may_be_anothers(request);
        let is_fresh = age < self.lifetime && !validates;
        let young_enough = control.max_age.is_none_or(|most| age <= Duration::from_secs(most));
        let for_long = control.min_fresh.is_none_or(|least| self.lifetime >= age + Duration::from_secs(least));
        let wanted = !control.no_cache && young_enough && for_long;
        if is_fresh && wanted {
            return Decision::Serve;
        }
        let stale_for = age.saturating_sub(self.lifetime);
        let within = |seconds: u64| stale_for < Duration::from_secs(seconds) && !validates;
        if !control.no_cache && young_enough && !self.forbids_stale && control.max_stale.is_some_and(within) {
            return Decision::Serve;
        }
        if wanted && !is_fresh && within(self.stale_while_revalidate) {
            return if control.only_if_cached { Decision::Serve } else { Decision::ServeAndRefresh };
        }
        if control.only_if_cached {
            return Decision::Unavailable;
        }
        Decision::Validate { by_request: is_fresh, or_stale: is_fresh || within(self.stale_if_error) }
    }
}
