// SPDX-License-Identifier: Apache-2.0
//! Keys of responses: where they are from.

use crate::fields::{Head, Request, text};
use crate::limits::KEY_BYTES_MAX;

/// Returns the key of what a request asks for; nothing if the target is too long or damaged.
///
/// It is the authority in lower case without the scheme's own port, and the path with its query. Over TLS, `https://` is
/// before it.
#[must_use]
pub fn of(request: &Request<'_>) -> Option<String> {
    let (port, prefix) = if request.scheme == "https" { ("443", "https://") } else { ("80", "") };
    let authority = authority(request.authority, port);
    let key = format!("{prefix}{authority}{}", path(request.path));
    let is_clean = key.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    let is_target = !authority.is_empty() && !authority.contains(['/', '@', '#', '?']) && request.path.starts_with('/');
    (is_clean && is_target && key.len() <= KEY_BYTES_MAX).then_some(key)
}

/// Returns a key, or how keys begin, as it is written here, of what a provider writes: with `http://` or the scheme's own port, hosts in
/// capitals, and percent signs where none are needed.
#[must_use]
pub fn of_text(text: &str) -> String {
    let split = text.find("://").map(|end| (text[..end].to_ascii_lowercase(), &text[end + 3..]));
    let (port, prefix, rest) = match &split {
        Some((scheme, rest)) if scheme == "https" => ("443", "https://", *rest),
        Some((scheme, rest)) if scheme == "http" => ("80", "", *rest),
        Some(_) => return text.to_owned(),
        None => ("80", "", text),
    };
    match rest.find(['/', '?']) {
        Some(end) => format!("{prefix}{}{}", authority(&rest[..end], port), path(&rest[end..])),
        // The beginning of a host may be that of several.
        None => format!("{prefix}{}", rest.to_ascii_lowercase()),
    }
}

/// Returns an authority as others are that mean the same (RFC 3986 §6.2.2.1, §6.2.3).
fn authority(text: &str, own_port: &str) -> String {
    let text = text.to_ascii_lowercase();
    match text.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !host.is_empty() => {
            match port.trim_start_matches('0') {
                "" => host.to_owned(),
                port if port == own_port => host.to_owned(),
                port => format!("{host}:{port}"),
            }
        }
        Some(_) | None => text,
    }
}

/// Returns a path and query as others are that mean the same (RFC 3986 §6.2.2.1, §6.2.2.2).
fn path(text: &str) -> String {
    let mut rest = text;
    let mut normal = String::with_capacity(text.len());
    while let Some(at) = rest.find('%') {
        normal.push_str(&rest[..at]);
        rest = &rest[at..];
        let coded = rest.get(1..3).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let byte = coded.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (coded, byte) {
            (Some(_), Some(byte)) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                normal.push(char::from(byte));
                rest = &rest[3..];
            }
            (Some(digits), Some(_)) => {
                normal.push('%');
                normal.push_str(&digits.to_ascii_uppercase());
                rest = &rest[3..];
            }
            (_, _) => {
                normal.push('%');
                rest = &rest[1..];
            }
        }
    }
    normal.push_str(rest);
    normal
}

/// Returns the keys of what a response to an unsafe request makes wrong (RFC 9111 §4.4).
///
/// Each has its variants beside it.
#[must_use]
pub fn invalidated(request: &Request<'_>, response: &Head<'_>) -> Vec<String> {
    if !(200..400).contains(&response.status) {
        return Vec::new();
    }
    let said = ["location", "content-location"].iter().filter_map(|name| text(response.headers, name));
    let paths = said.filter_map(|reference| same_origin(request, reference));
    let mut keys: Vec<String> = paths.filter_map(|path| of(&Request { path: &path, ..*request })).collect();
    keys.extend(of(request));
    keys
}

/// Returns the path that a reference is to, if it is of the same origin (RFC 3986 §5.2).
fn same_origin(request: &Request<'_>, reference: &str) -> Option<String> {
    let reference = reference.split('#').next().unwrap_or_default();
    let scheme_end = reference.find(':').filter(|end| !reference[..*end].contains(['/', '?']));
    let rest = match scheme_end {
        Some(end) if reference[..end].eq_ignore_ascii_case(request.scheme) => &reference[end + 1..],
        Some(_) => return None,
        None => reference,
    };
    if let Some(rest) = rest.strip_prefix("//") {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let there = Request { authority: &rest[..end], path: "/", ..*request };
        if of(&there)? != of(&Request { path: "/", ..*request })? {
            return None;
        }
        return Some(without_dots(&rest[end..]));
    }
    let base = request.path.split('?').next().unwrap_or_default();
    match rest.bytes().next() {
        None => Some(request.path.to_owned()),
        Some(b'/') => Some(without_dots(rest)),
        Some(b'?') => Some(format!("{base}{rest}")),
        Some(_) => Some(without_dots(&format!("{}/{rest}", base.rsplit_once('/').map_or("", |(folder, _)| folder)))),
    }
}

/// Returns a path without its segments `.` and `..`.
fn without_dots(path: &str) -> String {
    let (path, query) = path.find('?').map_or((path, ""), |at| path.split_at(at));
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    format!("/{}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request<'a>(authority: &'a str, path: &'a str) -> Request<'a> {
        Request { method: "POST", scheme: "http", authority, path, headers: &[] }
    }

    #[test]
    fn keys_are_of_one_place_each() {
        let key = |authority: &str, path: &str| of(&request(authority, path));
        assert_eq!(key("WWW.Example.org:80", "/A?b"), Some("www.example.org/A?b".to_owned()));
        assert_eq!(key("a:8080", "/"), Some("a:8080/".to_owned()));
        for (authority, path) in
            [("", "/"), ("a", ""), ("a", "b/"), ("a", "/ b"), ("a", "/\nb"), ("a/b", "/"), ("u@a", "/")]
        {
            assert_eq!(key(authority, path), None, "{authority} {path}");
        }
        assert_eq!(key("a", &format!("/{}", "b".repeat(KEY_BYTES_MAX - 2))).map(|key| key.len()), Some(KEY_BYTES_MAX));
        assert_eq!(key("a", &format!("/{}", "b".repeat(KEY_BYTES_MAX - 1))), None);
        let https = Request { scheme: "https", ..request("a:443", "/") };
        assert_eq!(of(&https), Some("https://a/".to_owned()));
    }

    /// Goal: what is the same place has one key, however it is spelled, and what may be another one has its own.
    #[test]
    fn spellings_of_a_place_have_one_key() {
        let key = |authority: &str, path: &str| of(&request(authority, path)).unwrap();
        for (authority, path) in [
            ("A.Example", "/~a/x%2Fy?b=c%20d"),
            ("a.example:80", "/%7Ea/x%2fy?b=c%20d"),
            ("a.example:", "/%7ea/%78%2Fy?b=%63%20%64"),
            ("a.example:0080", "/~a/x%2Fy?b=c%20d"),
        ] {
            assert_eq!(key(authority, path), "a.example/~a/x%2Fy?b=c%20d", "{authority}{path}");
        }
        assert_eq!(key("[::1]:80", "/%zz%"), "[::1]/%zz%");
        for other in [key("a.example:8080", "/x/y"), key("a.example", "/x%2Fy"), key("a.example", "/X/Y")] {
            assert_ne!(other, key("a.example", "/x/y"));
        }
        for (text, expected) in [
            ("http://A.example:80/%7ea/", "a.example/~a/"),
            ("HTTPS://A.example:443/x", "https://a.example/x"),
            ("A.example:8080/x?%61", "a.example:8080/x?a"),
            ("A.exam", "a.exam"),
            ("/x%2f", "/x%2F"),
            ("ftp://A/", "ftp://A/"),
        ] {
            assert_eq!(of_text(text), expected, "{text}");
        }
    }

    #[test]
    fn what_a_success_makes_wrong_is_of_the_same_origin() {
        let keys = |location: &str| {
            let headers = [("Location".to_owned(), location.as_bytes().to_vec())];
            let request = request("a.example", "/dir/page?q=1");
            invalidated(&request, &Head { status: 201, headers: &headers })
        };
        let own = "a.example/dir/page?q=1".to_owned();
        for (location, path) in [
            ("/other", "/other"),
            ("other", "/dir/other"),
            ("./other?x#f", "/dir/other?x"),
            ("../up/./b/..", "/up/"),
            ("../../../../x", "/x"),
            ("?z", "/dir/page?z"),
            ("http://A.example:80/abs", "/abs"),
            ("HTTP://a.example", "/"),
            ("//a.example/net?a=http://b", "/net?a=http://b"),
            ("", "/dir/page?q=1"),
        ] {
            assert_eq!(keys(location), [format!("a.example{path}"), own.clone()], "{location}");
        }
        for location in
            ["http://b.example/x", "https://a.example/x", "//b.example/x", "mailto:x", "http://u@a.example/"]
        {
            assert_eq!(keys(location), std::slice::from_ref(&own), "{location}");
        }
        let failed = Head { status: 500, headers: &[] };
        assert!(invalidated(&request("a", "/"), &failed).is_empty());
    }
}
