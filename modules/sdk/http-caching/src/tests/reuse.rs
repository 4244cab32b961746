// SPDX-License-Identifier: Apache-2.0
//! Whether a stored response is the answer, and which answer it is.

use super::*;
use crate::limits::ENTITY_TAGS_MAX;
use crate::{ByteRange, Route};

const ASK: Decision = Decision::Validate { by_request: false, or_stale: false };
const ASK_OR_STALE: Decision = Decision::Validate { by_request: false, or_stale: true };
const ASK_BY_REQUEST: Decision = Decision::Validate { by_request: true, or_stale: true };

#[test]
fn requests_may_want_it_younger_or_take_it_older() {
    let stored = kept(&[("Cache-Control", "max-age=100"), ("Age", "10")]);
    for (control, seconds, wanted) in [
        ("", 0, Decision::Serve),
        ("", 89, Decision::Serve),
        ("", 90, ASK),
        ("no-cache", 0, ASK_BY_REQUEST),
        ("max-age=0", 0, ASK_BY_REQUEST),
        ("max-age=9", 0, ASK_BY_REQUEST),
        ("max-age=10", 0, Decision::Serve),
        ("max-age=x", 0, ASK_BY_REQUEST),
        ("min-fresh=90", 0, Decision::Serve),
        ("min-fresh=91", 0, ASK_BY_REQUEST),
        ("max-stale", 5000, Decision::Serve),
        ("max-stale=11", 100, Decision::Serve),
        ("max-stale=10", 100, ASK),
        ("max-stale=10, no-cache", 95, ASK),
        ("max-stale, max-age=50", 95, ASK),
        ("only-if-cached", 0, Decision::Serve),
        ("only-if-cached", 90, Decision::Unavailable),
        ("only-if-cached, max-stale", 90, Decision::Serve),
    ] {
        assert_eq!(decided(&stored, &[("Cache-Control", control)], seconds), wanted, "{control} {seconds}");
    }
    assert_eq!(decided(&stored, &[("Pragma", "no-cache")], 0), ASK_BY_REQUEST);
}

#[test]
fn stale_responses_are_served_as_they_say() {
    for (control, seconds, wanted) in [
        ("max-age=10, stale-while-revalidate=5", 9, Decision::Serve),
        ("max-age=10, stale-while-revalidate=5", 14, Decision::ServeAndRefresh),
        ("max-age=10, stale-while-revalidate=5", 15, ASK),
        ("s-maxage=10, stale-while-revalidate=5", 14, Decision::ServeAndRefresh),
        ("max-age=10, stale-while-revalidate=5, must-revalidate", 12, ASK),
        ("max-age=10, stale-if-error=5", 14, ASK_OR_STALE),
        ("max-age=10, stale-if-error=5", 15, ASK),
        ("max-age=10, stale-if-error=5, proxy-revalidate", 12, ASK),
        ("no-cache, max-age=10, stale-if-error=5", 0, ASK),
    ] {
        let stored = kept(&[("Cache-Control", control), ("ETag", "\"a\"")]);
        assert_eq!(decided(&stored, &[], seconds), wanted, "{control} {seconds}");
    }
    for control in
        ["max-age=10, must-revalidate", "max-age=10, proxy-revalidate", "s-maxage=10", "no-cache, max-age=10"]
    {
        let must = kept(&[("Cache-Control", control), ("ETag", "\"a\"")]);
        assert_eq!(decided(&must, &[("Cache-Control", "max-stale")], 11), ASK, "{control}");
    }
    // What the operator allows holds where the response does not forbid it.
    let operator = Policy { stale_if_error: Duration::from_secs(60), ..policy() };
    for (control, wanted) in [("max-age=10", ASK_OR_STALE), ("s-maxage=10", ASK), ("max-age=10, must-revalidate", ASK)]
    {
        let stored = kept_by(&operator, &[], 200, &[("Cache-Control", control)]).unwrap();
        assert_eq!(decided(&stored, &[], 30), wanted, "{control}");
    }
}

#[test]
fn some_requests_are_not_for_a_cache() {
    let of = |method, headers: Lines<'_>| Route::of(&Request { method, ..get(&fields(headers)) });
    assert_eq!(of("GET", &[("Cookie", "a=b"), ("Content-Length", "0")]), Route::Cache);
    assert_eq!(of("HEAD", &[("Range", "bytes=0-")]), Route::Cache);
    for line in [("Content-Length", "5"), ("Transfer-Encoding", "chunked"), ("If-Match", "*"), ("Upgrade", "websocket")]
    {
        assert_eq!(of("GET", &[line]), Route::Pass, "{line:?}");
    }
    for (method, route) in [("OPTIONS", Route::Pass), ("POST", Route::Unsafe), ("M-SEARCH", Route::Unsafe)] {
        assert_eq!(of(method, &[]), route);
    }
    let headers = fields(&[("cache-control", "only-if-cached, no-store")]);
    assert!(Route::is_only_if_cached(&get(&headers)) && Route::is_no_store(&get(&headers)));
}

#[test]
fn who_has_it_gets_304() {
    let validators = [("ETag", "\"a\""), ("Last-Modified", "{-100}"), ("Content-Type", "text/plain")];
    let stored = kept(&[&validators[..], &[("Cache-Control", "max-age=100")]].concat());
    for (line, status) in [
        (("If-None-Match", "\"a\""), 304),
        (("If-None-Match", "W/\"a\""), 304),
        (("If-None-Match", "\"b\", \"a\" ,\"c\""), 304),
        (("If-None-Match", "*"), 304),
        (("If-None-Match", "\"b\""), 200),
        (("If-None-Match", "a"), 200),
        (("If-None-Match", ""), 200),
        (("If-Modified-Since", "{-100}"), 304),
        (("If-Modified-Since", "{-50}"), 304),
        (("If-Modified-Since", "{-101}"), 200),
        (("If-Modified-Since", "yesterday"), 200),
    ] {
        assert_eq!(answer(&stored, &[line], 11).status, status, "{line:?}");
    }
    for (others, status) in [(ENTITY_TAGS_MAX - 1, 304), (ENTITY_TAGS_MAX, 200)] {
        let many = format!("{}\"a\"", "\"b\",".repeat(others));
        assert_eq!(answer(&stored, &[("If-None-Match", &many)], 11).status, status);
    }
    let both = [("If-None-Match", "\"b\""), ("If-Modified-Since", "{0}")];
    assert_eq!(answer(&stored, &both, 11).status, 200);
    let answer = answer(&stored, &[("If-None-Match", "\"a\"")], 11);
    assert_eq!(header(&answer.headers, "etag"), Some("\"a\""));
    assert!(!answer.has_body && header(&answer.headers, "content-type").is_none());
    assert_eq!(header(&answer.headers, "content-length"), None);
}

#[test]
fn parts_are_of_whole_bodies() {
    let stored = kept(&[("Cache-Control", "max-age=100"), ("ETag", "\"a\""), ("Last-Modified", "{-100}")]);
    let part = answer(&stored, &[("Range", "bytes=2-3")], 11);
    assert_eq!((part.status, part.range), (206, Some(ByteRange { start: 2, length: 2 })));
    assert_eq!(header(&part.headers, "content-range"), Some("bytes 2-3/11"));
    assert_eq!(header(&part.headers, "content-length"), Some("2"));
    let nothing = answer(&stored, &[("Range", "bytes=11-")], 11);
    assert_eq!((nothing.status, header(&nothing.headers, "content-range")), (416, Some("bytes */11")));
    for (condition, status) in [
        (("If-Range", "\"a\""), 206),
        (("If-Range", "\"b\""), 200),
        (("If-Range", "W/\"a\""), 200),
        (("If-Range", "{-100}"), 206),
        (("If-Range", "{-99}"), 200),
        (("X-Other", ""), 206),
    ] {
        assert_eq!(answer(&stored, &[("Range", "bytes=2-3"), condition], 11).status, status, "{condition:?}");
    }
    let both = [("Range", "bytes=2-3"), ("If-None-Match", "\"a\"")];
    assert_eq!(answer(&stored, &both, 11).status, 304);
    let headers = fields(&[("Range", "bytes=2-3")]);
    let head = stored.answer(&Request { method: "HEAD", ..get(&headers) }, at(0), Some(11));
    assert_eq!((head.status, head.has_body, header(&head.headers, "content-length")), (200, false, Some("11")));
    // A body that is not known whole yet is answered whole.
    let growing = stored.answer(&get(&headers), at(5), None);
    assert_eq!((growing.status, growing.range, header(&growing.headers, "age")), (200, None, Some("5")));
    let found = kept_by(&policy(), &[], 302, &[("Cache-Control", "max-age=100")]).unwrap();
    assert_eq!(answer(&found, &[("Range", "bytes=2-3")], 11).status, 302);
}
