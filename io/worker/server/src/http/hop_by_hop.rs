// SPDX-License-Identifier: Apache-2.0
//! Header lines that are for one connection only (RFC 9110 §7.6.1), and answers that are for one client only.

use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, SET_COOKIE, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, VARY,
};

/// Takes out `connection`, the lines that it names, and those that have always been for one connection.
pub fn strip(headers: &mut HeaderMap) {
    let members = headers.get_all(CONNECTION).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let named = members.filter_map(|member| HeaderName::from_bytes(member.trim_ascii()).ok());
    // What says whom a message is for, and how long it is, is never for one connection only.
    let is_kept = |name: &HeaderName| matches!(*name, HOST | CONTENT_LENGTH | VARY | SET_COOKIE) || is_for_caches(name);
    let named: Vec<HeaderName> = named.filter(|name| !is_kept(name)).collect();
    for name in named.iter().chain(&[CONNECTION, HeaderName::from_static("keep-alive")]) {
        headers.remove(name);
    }
    headers.remove("proxy-connection");
}

/// Has no cache that several clients share keep an answer, whatever that says.
pub fn make_private(headers: &mut HeaderMap) {
    let said: Vec<HeaderValue> = headers.get_all(CACHE_CONTROL).iter().cloned().collect();
    let names: Vec<HeaderName> = headers.keys().filter(|name| is_for_caches(name)).cloned().collect();
    for name in names {
        headers.remove(name);
    }
    // Before what may not be read to its end.
    headers.append(CACHE_CONTROL, HeaderValue::from_static("private"));
    for value in said {
        headers.append(CACHE_CONTROL, value);
    }
}

/// Returns whether a line says to caches, or to some of them, what they may keep: those to some count before the one to all (RFC 9213 §2.2).
fn is_for_caches(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.ends_with("cache-control") || ["surrogate-control", "edge-control", "x-accel-expires"].contains(&name)
}

/// Takes out what says how a message comes, of one that goes on in another way.
pub fn strip_framing(headers: &mut HeaderMap) {
    for name in [TE, TRAILER, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_connection_names_go_and_no_others() {
        let check = |lines: &[(&str, &str)], expected: &[&str]| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
            }
            strip(&mut headers);
            let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
            left.sort_unstable();
            assert_eq!(left, expected, "{lines:?}");
        };
        check(&[("connection", "close"), ("accept", "a")], &["accept"]);
        check(
            &[("connection", "X-One , te"), ("connection", "x-two"), ("x-one", "1"), ("x-two", "2"), ("te", "a")],
            &[],
        );
        check(&[("x-one", "1"), ("te", "trailers"), ("keep-alive", "5"), ("proxy-connection", "a")], &["te", "x-one"]);
        check(
            &[("connection", "host, content-length"), ("host", "a"), ("content-length", "1")],
            &["content-length", "host"],
        );
        check(&[("connection", ",, ,(x)"), ("accept", "a")], &["accept"]);
        check(
            &[("connection", "vary, Cache-Control"), ("vary", "a"), ("cache-control", "b")],
            &["cache-control", "vary"],
        );
    }

    #[test]
    fn what_is_made_private_is_so_for_all_caches() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("cache-control", "max-age=60, x=\"open"),
            ("cdn-cache-control", "max-age=60"),
            ("surrogate-control", "max-age=60"),
            ("vary", "accept"),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        make_private(&mut headers);
        let said: Vec<&HeaderValue> = headers.get_all(CACHE_CONTROL).iter().collect();
        assert_eq!(said, ["private", "max-age=60, x=\"open"]);
        assert_eq!(headers.keys_len(), 2);
    }
}
