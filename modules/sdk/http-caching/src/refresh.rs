// SPDX-License-Identifier: Apache-2.0
//! How later responses change a stored one (RFC 9111 §4.3.4 and §4.3.5).

use std::time::Duration;

use crate::date;
use crate::fields::{Head, Request, has, is_of_connection, is_one_of, text};
use crate::forward;
use crate::policy::{Policy, Times};
use crate::stored::Stored;

/// What becomes of a stored response by what the origin says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// It has new headers and is stored with them.
    Kept(Stored),
    /// It has new headers, answers the requests that wait for it, and is forgotten.
    Once(Stored),
    /// It is not what the origin has: it is forgotten.
    Gone,
    /// It stays as it is.
    Same,
}

impl Stored {
    /// Returns it as a 304 makes it that answered [`Stored::conditions`] (RFC 9111 §4.3.4).
    #[must_use]
    pub fn refreshed(&self, policy: &Policy, request: &Request<'_>, response: &Head<'_>, times: &Times) -> Refresh {
        let is_news = |name: &str| !is_one_of(name, &OF_BODY) && !is_of_connection(name, response.headers);
        let old = self.headers.iter().filter(|(name, _)| {
            let replaced = is_news(name) && has(response.headers, name);
            !replaced && !is_one_of(name, &["date", "age"])
        });
        // The cache's own `via` is added once more by what is kept.
        let own = forward::via(policy);
        let old = old.filter(|(name, value)| !(name.eq_ignore_ascii_case(&own.0) && *value == own.1));
        let new = response.headers.iter().filter(|(name, _)| is_news(name));
        let mut headers: Vec<(String, Vec<u8>)> = old.chain(new).cloned().collect();
        if !has(&headers, "date") {
            headers.push(("date".to_owned(), date::format(times.received).into_bytes()));
        }
        let request = Request { method: "GET", ..*request };
        match policy.keep(&request, &Head { status: self.status, headers: &headers }, times) {
            // What selects it is in its key.
            Ok(stored) if stored.vary() == self.vary() => {
                // Whoever asks for it later, it was made for whom it was made for.
                Refresh::Kept(Stored { is_personal: stored.is_personal || self.is_personal, ..stored })
            }
            Ok(_) | Err(_) => {
                // It is as old as this answer.
                headers.retain(|(name, _)| !name.eq_ignore_ascii_case("age"));
                Refresh::Once(Stored { headers, received: times.received, age: Duration::ZERO, ..self.clone() })
            }
        }
    }

    /// Returns what the response to a `HEAD` makes of it (RFC 9111 §4.3.5).
    ///
    /// `size` is that of the body, if it is known.
    #[must_use]
    pub fn after_head(
        &self,
        policy: &Policy,
        request: &Request<'_>,
        response: &Head<'_>,
        times: &Times,
        size: Option<u64>,
    ) -> Refresh {
        match response.status {
            status if status == self.status => {}
            // A client's own condition, or a failure, says nothing of it.
            304 | 500.. => return Refresh::Same,
            _ => return Refresh::Gone,
        }
        let changed =
            |name: &str| has(response.headers, name) && text(response.headers, name) != text(&self.headers, name);
        let length = text(response.headers, "content-length").and_then(|length| length.parse::<u64>().ok());
        // Without a word of the same tag it may be another viewer's.
        let is_other = !(self.is_for_all || has(response.headers, "etag") && has(&self.headers, "etag"));
        if is_other
            || changed("etag")
            || changed("last-modified")
            || length.is_some_and(|length| size.is_some_and(|size| size != length))
        {
            return Refresh::Gone;
        }
        match self.refreshed(policy, request, response, times) {
            Refresh::Kept(stored) => Refresh::Kept(stored),
            Refresh::Once(_) | Refresh::Gone | Refresh::Same => Refresh::Gone,
        }
    }
}

/// Fields of the stored body, which a response without a body does not change.
const OF_BODY: [&str; 5] = ["content-encoding", "content-length", "content-md5", "content-range", "etag"];
