// SPDX-License-Identifier: Apache-2.0
//! Whether a response is stored (RFC 9111 §3).

use std::time::Duration;

use crate::directives::{RequestControl, ResponseControl, Scope};
use crate::fields::{Head, Request, has, is_of_connection, is_one_of};
use crate::forward;
use crate::freshness::{self, Lifetime};
use crate::policy::{Policy, Times};
use crate::stored::{Stored, says_who};
use crate::vary;

/// Why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotKept {
    /// The request is no `GET`, or must not be stored.
    Request,
    /// The request has `Authorization`, and the response does not say that others may get it.
    Authorized,
    /// The response is partial, not final, or of a status that it wants to be understood.
    Status,
    /// The response forbids it.
    Forbidden,
    /// It gives a viewer a name (`Set-Cookie`), and does not say that others may have it.
    Personal,
    /// `Vary` has `*` or too many names.
    Vary,
    /// It would never be used: it is stale and cannot be validated.
    Stale,
}

impl Policy {
    /// Decides whether a response is stored, and as what.
    ///
    /// # Errors
    /// Why it is not.
    pub fn keep(&self, request: &Request<'_>, response: &Head<'_>, times: &Times) -> Result<Stored, NotKept> {
        let control = ResponseControl::of(response.headers, self);
        if request.method != "GET" || RequestControl::of(request.headers).no_store {
            return Err(NotKept::Request);
        }
        let understood = UNDERSTOOD.contains(&response.status);
        if matches!(response.status, 0..=199 | 206 | 304) || (control.must_understand && !understood) {
            return Err(NotKept::Status);
        }
        // RFC 9111 §5.2.2.3: who understands `must-understand` and the status does not mind `no-store`.
        if control.no_store && !control.must_understand || control.private == Scope::All {
            return Err(NotKept::Forbidden);
        }
        let for_others = control.public || control.must_revalidate || control.s_maxage.is_some();
        if has(request.headers, "authorization") && !for_others {
            return Err(NotKept::Authorized);
        }
        if vary::names(response.headers).is_none() {
            return Err(NotKept::Vary);
        }
        let stored = self.stored(request, response, &control, times);
        // A name that one viewer is given goes to others only if the response is fresh for all.
        if has(response.headers, "set-cookie") && !stored.is_for_all {
            return Err(NotKept::Personal);
        }
        stored.is_of_use(request).then_some(stored).ok_or(NotKept::Stale)
    }

    fn stored(&self, request: &Request<'_>, response: &Head<'_>, control: &ResponseControl, times: &Times) -> Stored {
        let date = freshness::date(response.headers, times.received);
        let (lifetime, is_said) = match freshness::lifetime(control, response.headers, date, times.received) {
            Lifetime::Explicit(lifetime) => (lifetime, !lifetime.is_zero()),
            Lifetime::Unsaid => (self.guessed(request, response, control, date, times.received), false),
        };
        let age = freshness::initial_age(response.headers, date, times);
        // What never was fresh is stale for others only if it says so itself.
        let forbids_stale = control.forbids_stale() || control.s_maxage.is_some() || age >= lifetime;
        // Beside `s-maxage`, which is for shared caches alone, an origin means them by these as well (RFC 5861 §3, §4).
        let named = |seconds: u64| if control.forbids_stale() { 0 } else { seconds };
        let by_policy = if forbids_stale { 0 } else { self.stale_if_error.as_secs() };
        Stored {
            status: response.status,
            headers: self.fields_kept(response, control, times),
            received: times.received,
            age,
            lifetime,
            stale_while_revalidate: named(control.stale_while_revalidate),
            stale_if_error: named(control.stale_if_error).max(by_policy),
            forbids_stale,
            validates_always: control.no_cache == Scope::All,
            is_for_all: is_said && age < lifetime && control.no_cache != Scope::All,
            is_personal: is_personal(request, response),
            number: 0,
        }
    }

    /// Returns the lifetime of a response that says none: none for who is known by a cookie.
    fn guessed(
        &self,
        request: &Request<'_>,
        response: &Head<'_>,
        control: &ResponseControl,
        date: Duration,
        now: Duration,
    ) -> Duration {
        let may_be = HEURISTIC.contains(&response.status) || control.public;
        if !may_be || is_personal(request, response) {
            return Duration::ZERO;
        }
        let otherwise = if response.status < 400 { self.lifetime } else { self.lifetime_of_errors };
        freshness::heuristic(response.headers, date, now).unwrap_or(otherwise)
    }

    fn fields_kept(&self, response: &Head<'_>, control: &ResponseControl, times: &Times) -> Vec<(String, Vec<u8>)> {
        let kept = response.headers.iter().filter(|(name, _)| {
            let of_one = control.no_cache.names(name) || control.private.names(name);
            !of_one && !is_one_of(name, &["age", "content-length"]) && !is_of_connection(name, response.headers)
        });
        forward::with_own(kept.cloned().collect(), response.headers, self, times.received)
    }
}

fn is_personal(request: &Request<'_>, response: &Head<'_>) -> bool {
    says_who(request) || has(response.headers, "set-cookie")
}

/// Statuses that may be guessed about (RFC 9110 §15.1), but for 206, which is not stored.
const HEURISTIC: [u16; 11] = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501];
/// Statuses of which all is known that a cache has to know.
const UNDERSTOOD: [u16; 20] =
    [200, 203, 204, 300, 301, 302, 303, 307, 308, 400, 403, 404, 405, 410, 414, 500, 501, 502, 503, 504];
