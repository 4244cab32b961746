// SPDX-License-Identifier: Apache-2.0
//! Answers from what is stored (RFC 9111 §4, RFC 9110 §14 and §15).

use std::time::Duration;

use crate::conditional;
use crate::fields::{Request, has, is_one_of, text};
use crate::ranges::{Asked, ByteRange, asked};
use crate::stored::Stored;

/// What a client gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The headers, with `age`, and with `content-length` if it is known.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Whether the stored body, or the part `range` of it, follows.
    pub has_body: bool,
    /// The part; all of it without one.
    pub range: Option<ByteRange>,
}

impl Stored {
    /// Returns the answer to a request that it was [decided](Stored::decide) to answer.
    ///
    /// `size` is that of the body, if it is known.
    #[must_use]
    pub fn answer(&self, request: &Request<'_>, now: Duration, size: Option<u64>) -> Answer {
        if conditional::is_not_modified(self, request.headers, now) {
            return self.not_modified(now);
        }
        let has_body = request.method != "HEAD" && !matches!(self.status, 204 | 304);
        let whole = Answer { status: self.status, headers: self.fields(now), has_body, range: None };
        let Some(size) = size.filter(|_| !matches!(self.status, 204 | 304)) else { return whole };
        match self.part(request, size) {
            Asked::Whole => whole.with("content-length", size.to_string()),
            Asked::Nothing => {
                let mut answer = Answer { status: 416, has_body: false, ..whole };
                answer.headers.retain(|(name, _)| !is_one_of(name, &OF_BODY));
                answer.with("content-range", format!("bytes */{size}")).with("content-length", "0".to_owned())
            }
            Asked::Part(range) => {
                let mut answer = Answer { status: 206, range: Some(range), ..whole };
                answer.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-range"));
                let last = range.start + range.length - 1;
                let answer = answer.with("content-range", format!("bytes {}-{last}/{size}", range.start));
                answer.with("content-length", range.length.to_string())
            }
        }
    }

    fn part(&self, request: &Request<'_>, size: u64) -> Asked {
        let is_asked = request.method == "GET"
            && self.status == 200
            && has(request.headers, "range")
            && conditional::if_range_holds(self, request.headers);
        let range = text(request.headers, "range").filter(|_| is_asked);
        range.map_or(Asked::Whole, |range| asked(range, size))
    }

    fn not_modified(&self, now: Duration) -> Answer {
        let mut headers = self.fields(now);
        headers.retain(|(name, _)| !is_one_of(name, &OF_BODY));
        Answer { status: 304, headers, has_body: false, range: None }
    }

    fn fields(&self, now: Duration) -> Vec<(String, Vec<u8>)> {
        let mut headers = self.headers.clone();
        headers.push(("age".to_owned(), self.age_at(now).as_secs().to_string().into_bytes()));
        headers
    }
}

impl Answer {
    fn with(mut self, name: &str, value: String) -> Answer {
        self.headers.push((name.to_owned(), value.into_bytes()));
        self
    }
}

/// Fields about a body that does not follow (RFC 9110 §15.4.5).
const OF_BODY: [&str; 5] = ["content-type", "content-encoding", "content-language", "content-md5", "content-range"];
