// SPDX-License-Identifier: Apache-2.0
//! Whole decisions: what is stored of a response, and what it is for later requests.

mod reuse;
mod storing;
mod updates;

use std::time::Duration;

use crate::{Answer, Decision, Entry, Head, NotKept, Policy, Refresh, Request, Stored, Times, date};

/// A time at which responses come: seconds since 1970.
const COMES: u64 = 1_700_000_000;

/// Header lines, in which `{N}` is the date N seconds after [`COMES`].
type Lines<'a> = &'a [(&'a str, &'a str)];

fn fields(lines: Lines<'_>) -> Vec<(String, Vec<u8>)> {
    let value = |text: &str| match text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
        Some(offset) => {
            let offset: i64 = offset.parse().unwrap();
            date::format(Duration::from_secs(COMES.checked_add_signed(offset).unwrap())).into_bytes()
        }
        None => text.as_bytes().to_vec(),
    };
    lines.iter().map(|(name, text)| ((*name).to_owned(), value(text))).collect()
}

fn policy() -> Policy {
    Policy { name: "test".to_owned(), ..Policy::default() }
}

fn get(headers: &[(String, Vec<u8>)]) -> Request<'_> {
    Request { method: "GET", scheme: "http", authority: "a.example", path: "/", headers }
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(COMES + seconds)
}

fn times(seconds: u64) -> Times {
    Times { requested: at(seconds), received: at(seconds) }
}

fn kept_by(policy: &Policy, request: Lines<'_>, status: u16, response: Lines<'_>) -> Result<Stored, NotKept> {
    policy.keep(&get(&fields(request)), &Head { status, headers: &fields(response) }, &times(0))
}

fn kept(response: Lines<'_>) -> Stored {
    kept_by(&policy(), &[], 200, response).unwrap()
}

/// Returns what a stored response is for a request some seconds later, after it was written and read.
fn decided(stored: &Stored, request: Lines<'_>, seconds: u64) -> Decision {
    let bytes = Entry::Stored(stored.clone()).encode().unwrap();
    let Some(Entry::Stored(read)) = Entry::decode(&bytes) else { panic!("it is read") };
    assert_eq!(&read, stored);
    read.decide(&get(&fields(request)), at(seconds))
}

fn answer(stored: &Stored, request: Lines<'_>, size: u64) -> Answer {
    stored.answer(&get(&fields(request)), at(0), Some(size))
}

fn header<'a>(headers: &'a [(String, Vec<u8>)], name: &str) -> Option<&'a str> {
    let all: Vec<_> = headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name)).collect();
    assert!(all.len() < 2, "{name} is there twice");
    all.first().map(|(_, value)| std::str::from_utf8(value).unwrap())
}
