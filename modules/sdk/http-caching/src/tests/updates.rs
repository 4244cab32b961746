// SPDX-License-Identifier: Apache-2.0
//! What later responses make of a stored one, and what goes to the origin.

use super::*;
use crate::{Refresh, forward};

fn stored() -> Stored {
    kept(&[
        ("Cache-Control", "max-age=2"),
        ("ETag", "\"a\""),
        ("Last-Modified", "{-100}"),
        ("Date", "{0}"),
        ("Content-Type", "text/plain"),
        ("Content-Encoding", "x"),
        ("Test", "old"),
        ("Kept", "1"),
    ])
}

fn refreshed(response: Lines<'_>) -> Refresh {
    stored().refreshed(&policy(), &get(&[]), &Head { status: 304, headers: &fields(response) }, &times(50))
}

#[test]
fn the_origin_is_asked_by_both_validators() {
    let conditions = stored().conditions(&get(&[]));
    assert_eq!(header(&conditions, "if-none-match"), Some("\"a\""));
    assert_eq!(header(&conditions, "if-modified-since"), Some(&*date::format(at(0) - Duration::from_secs(100))));
    let found = kept_by(&policy(), &[], 404, &[("Cache-Control", "max-age=2"), ("ETag", "\"a\"")]).unwrap();
    assert!(found.conditions(&get(&[])).is_empty());
}

#[test]
fn a_304_brings_new_headers_but_for_those_of_the_body() {
    let Refresh::Kept(new) = refreshed(&[
        ("Cache-Control", "max-age=7"),
        ("test", "new"),
        ("ETag", "\"b\""),
        ("Content-Length", "9"),
        ("Content-Encoding", "y"),
        ("Content-Type", "text/html"),
        ("Connection", "kept"),
        ("kept", "2"),
    ]) else {
        panic!("it is kept");
    };
    for (name, value) in
        [("test", "new"), ("etag", "\"a\""), ("content-encoding", "x"), ("content-type", "text/html"), ("kept", "1")]
    {
        assert_eq!(header(&new.headers, name), Some(value), "{name}");
    }
    assert_eq!(header(&new.headers, "content-length"), None);
    assert_eq!(header(&new.headers, "via"), Some("1.1 test"));
    // Its age begins anew also without a date.
    assert_eq!(header(&new.headers, "date"), Some(&*date::format(at(50))));
    assert_eq!((new.fresh_for(at(50)).as_secs(), new.age_at(at(53)).as_secs()), (7, 3));
    assert!(matches!(refreshed(&[]), Refresh::Kept(new) if new.fresh_for(at(50)).as_secs() == 2));
}

#[test]
fn a_304_may_end_a_stored_response() {
    let Refresh::Once(last) = refreshed(&[("Cache-Control", "no-store"), ("Test", "new")]) else {
        panic!("it answers once");
    };
    assert_eq!(header(&last.headers, "test"), Some("new"));
    assert!(matches!(refreshed(&[("Vary", "Foo")]), Refresh::Once(_)));
    assert!(matches!(refreshed(&[("Age", "1")]), Refresh::Kept(new) if new.age_at(at(50)).as_secs() == 1));
}

#[test]
fn the_response_to_head_updates_or_ends_it() {
    let after = |status, response: Lines<'_>| {
        let head = fields(response);
        let request = Request { method: "HEAD", ..get(&[]) };
        stored().after_head(&policy(), &request, &Head { status, headers: &head }, &times(50), Some(11))
    };
    let same = [("ETag", "\"a\""), ("Content-Length", "11"), ("Cache-Control", "max-age=1000")];
    assert!(matches!(after(200, &same), Refresh::Kept(new) if new.lifetime.as_secs() == 1000));
    assert_eq!(after(200, &[("ETag", "\"b\"")]), Refresh::Gone);
    assert_eq!(after(200, &[("Content-Length", "12")]), Refresh::Gone);
    assert_eq!(after(200, &[("Last-Modified", "{-99}")]), Refresh::Gone);
    assert_eq!(after(410, &[]), Refresh::Gone);
    assert_eq!(after(503, &[]), Refresh::Same);
    assert_eq!(after(304, &[]), Refresh::Same);
}

#[test]
fn a_fill_asks_for_all_and_for_nobody() {
    let headers = fields(&[
        ("Host", "x"),
        ("Connection", "Abc"),
        ("Abc", "1"),
        ("Range", "bytes=0-1"),
        ("If-None-Match", "\"a\""),
        ("X-Forwarded-Host", "evil"),
        ("Accept", "*/*"),
        ("Via", "1.0 first"),
        ("Surrogate-Capability", "other=\"Surrogate/1.0\""),
    ]);
    let policy = Policy { surrogate: Some("me".to_owned()), ..policy() };
    let names = |headers: &[(String, Vec<u8>)]| headers.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let filled = forward::fill(&get(&headers), &policy);
    assert_eq!(names(&filled), ["Accept", "Via", "via", "surrogate-capability"]);
    let capability = &filled.last().unwrap().1;
    assert_eq!(capability, b"me=\"Surrogate/1.0\", other=\"Surrogate/1.0\"", "one line, ours first");
    let codings = |lines: Lines<'_>| {
        let filled = forward::fill(&get(&fields(lines)), &policy);
        filled.into_iter().filter(|(name, _)| name.eq_ignore_ascii_case("accept-encoding")).collect::<Vec<_>>()
    };
    let one_line = [("accept-encoding".to_owned(), b"br, gzip".to_vec())];
    assert_eq!(codings(&[("Accept-Encoding", "gzip, deflate"), ("accept-encoding", "br;q=0.5")]), one_line);
    assert_eq!(codings(&[("accept-encoding", "*")])[0].1, b"*");
    assert!(codings(&[]).is_empty());
    let passed = forward::request(&get(&headers), &policy);
    assert_eq!(
        names(&passed),
        ["Range", "If-None-Match", "X-Forwarded-Host", "Accept", "Via", "via", "surrogate-capability"]
    );
    let back = forward::response(&fields(&[("Surrogate-Control", "x"), ("TE", "x"), ("A", "1")]), &policy, at(0));
    assert_eq!(names(&back), ["A", "date", "via"]);
}

#[test]
fn a_request_that_comes_round_again_is_a_loop() {
    let is_loop = |lines: Lines<'_>| forward::is_loop(&get(&fields(lines)), &policy());
    assert!(!is_loop(&[("Via", "1.1 test, 1.0 other"), ("Via", "HTTP/2 tests")]));
    assert!(is_loop(&[("Via", "1.1 test, 1.0 other"), ("Via", "1.1 test (comment)")]));
}
