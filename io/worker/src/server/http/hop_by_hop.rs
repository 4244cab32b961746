// SPDX-License-Identifier: Apache-2.0
//! Header lines that are for one connection only (RFC 9110 §7.6.1): nobody beyond it gets them.

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};

/// Takes out `connection`, the lines that it names, and those that have always been for one connection.
pub fn strip(headers: &mut HeaderMap) {
    let members = headers.get_all(CONNECTION).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let named = members.filter_map(|member| HeaderName::from_bytes(member.trim_ascii()).ok());
    // What says whom a message is for, and how long it is, is never for one connection only.
    let named: Vec<HeaderName> = named.filter(|name| !matches!(*name, HOST | CONTENT_LENGTH)).collect();
    for name in named.iter().chain(&[CONNECTION, HeaderName::from_static("keep-alive")]) {
        headers.remove(name);
    }
    headers.remove("proxy-connection");
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
    }
}
