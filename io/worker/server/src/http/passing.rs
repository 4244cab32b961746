// SPDX-License-Identifier: Apache-2.0
//! Answers of servers that go to a client as they come, since nobody on the way understands them.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use http::header::{
    HeaderMap, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use http::uri::PathAndQuery;
use http::{Method, Request};
use hyper::body::Body;

/// A client's request of HTTP/1 whose connection can become one with its server's, until its answer begins. Clones are of the same one.
#[derive(Clone)]
pub struct Passing(Arc<Inner>);

struct Inner {
    method: Method,
    path: Option<PathAndQuery>,
    /// What it says of which part it wants, and when.
    conditions: HeaderMap,
    has_body: bool,
    begun: OnceLock<Begun>,
}

/// How an answer began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    /// The node gives it.
    Given,
    /// The server does.
    Passed,
}

impl Passing {
    /// Returns that of a request whose answer has not begun.
    pub fn new<B: Body>(request: &Request<B>) -> Passing {
        let mut conditions = HeaderMap::new();
        for name in CONDITIONS {
            for value in request.headers().get_all(&name) {
                conditions.append(&name, value.clone());
            }
        }
        Passing(Arc::new(Inner {
            method: request.method().clone(),
            path: request.uri().path_and_query().cloned(),
            conditions,
            has_body: !request.body().is_end_stream(),
            begun: OnceLock::new(),
        }))
    }

    /// Returns whether a request asks what the client does: what a server says to another one is not for the client. `has_body`: the
    /// client's body goes with it.
    pub fn is_same<B>(&self, request: &Request<B>, has_body: bool) -> bool {
        let Inner { method, path, conditions, .. } = &*self.0;
        (has_body || !self.0.has_body)
            && method == request.method()
            && path.as_ref() == request.uri().path_and_query()
            && CONDITIONS.iter().all(|name| members(conditions, name) == members(request.headers(), name))
    }

    /// Has the node answer. Returns false if the server does.
    pub fn give(&self) -> bool {
        self.0.begun.set(Begun::Given).is_ok()
    }

    /// Has the server answer. Returns false if the node does.
    pub fn pass(&self) -> bool {
        self.0.begun.set(Begun::Passed).is_ok()
    }

    /// Returns whether the server answers.
    pub fn is_passed(&self) -> bool {
        self.0.begun.get() == Some(&Begun::Passed)
    }
}

/// RFC 9110 §13.1 and §14.2.
const CONDITIONS: [HeaderName; 6] = [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE, RANGE];

/// Returns the members of a field. A weak tag counts as the strong one, which modules name in its place.
fn members<'a>(headers: &'a HeaderMap, name: &HeaderName) -> BTreeSet<&'a [u8]> {
    let all = headers.get_all(name).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    all.map(|member| member.trim_ascii()).map(|member| member.strip_prefix(b"W/").unwrap_or(member)).collect()
}

#[cfg(test)]
mod tests {
    use http_body_util::{Empty, Full};

    use super::*;

    type Lines<'a> = &'a [(&'a str, &'a str)];

    fn request(method: &str, path: &str, lines: Lines<'_>) -> Request<Empty<&'static [u8]>> {
        let builder = Request::builder().method(method).uri(path);
        let builder = lines.iter().fold(builder, |builder, (name, value)| builder.header(*name, *value));
        builder.body(Empty::new()).unwrap()
    }

    #[test]
    fn only_what_the_client_asks_is_answered_to_it() {
        let check = |own: Lines<'_>, method: &str, path: &str, lines: Lines<'_>, expected: bool| {
            let passing = Passing::new(&request("GET", "/a?b", own));
            assert_eq!(passing.is_same(&request(method, path, lines), false), expected, "{method} {path} {lines:?}");
        };
        check(&[], "GET", "/a?b", &[], true);
        check(&[("accept", "a")], "GET", "/a?b", &[("via", "b")], true);
        check(&[], "GET", "http://origin.test/a?b", &[], true);
        check(&[], "HEAD", "/a?b", &[], false);
        check(&[], "GET", "/a", &[], false);
        check(&[], "GET", "/a?b", &[("if-none-match", "\"x\"")], false);
        check(&[("if-none-match", "\"x\"")], "GET", "/a?b", &[], false);
        check(&[("if-none-match", "W/\"x\"")], "GET", "/a?b", &[("if-none-match", "\"x\", W/\"x\"")], true);
        check(&[("if-none-match", "\"x\"")], "GET", "/a?b", &[("if-none-match", "\"y\"")], false);
        check(&[("range", "bytes=0-1")], "GET", "/a?b", &[], false);
    }

    #[test]
    fn a_body_goes_with_the_request_or_not_at_all() {
        let own = Request::builder().method("POST").uri("/").body(Full::new(&b"body"[..])).unwrap();
        let passing = Passing::new(&own);
        assert!(
            passing.is_same(&request("POST", "/", &[]), true) && !passing.is_same(&request("POST", "/", &[]), false)
        );
        assert!(!passing.is_passed() && passing.pass() && passing.is_passed() && !passing.give() && !passing.pass());
        let passing = Passing::new(&own);
        assert!(passing.give() && !passing.pass() && !passing.is_passed());
    }
}
