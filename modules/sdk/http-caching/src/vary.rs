// SPDX-License-Identifier: Apache-2.0
//! Variants: responses that differ by headers of the request (RFC 9111 §4.1).

use std::cmp::Reverse;

use crate::fields::{Fields, Request, has, is_one_of, members, split, values};
use crate::limits::{KEY_BYTES_MAX, VARY_NAMES_MAX};

/// Returns the names that select among variants, in order; nothing if no variant can be selected.
pub fn names(response: &Fields) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for member in members(response, "vary") {
        if member == b"*" {
            return None;
        }
        names.push(String::from_utf8_lossy(member).to_ascii_lowercase());
    }
    names.sort();
    names.dedup();
    (names.len() <= VARY_NAMES_MAX).then_some(names)
}

/// Returns the names of those headers that a response shows to have selected it, although it may not say so in `Vary`: it names one origin
/// (Fetch, §3.3.5), or has a coding.
pub fn unsaid(response: &Fields) -> impl Iterator<Item = &'static str> {
    let is_for_one = values(response, "access-control-allow-origin").any(|value| !matches!(value, b"*" | b"null"));
    let is_coded = members(response, "content-encoding").any(|coding| !coding.eq_ignore_ascii_case(b"identity"));
    [is_for_one.then_some("origin"), is_coded.then_some("accept-encoding")].into_iter().flatten()
}

/// Returns the key of the variant that a request selects; nothing if it would be too long.
///
/// It is the key and, on lines of their own, what the request says: all variants of a key begin with it and a line's end.
#[must_use]
pub fn variant_key(key: &str, names: &[String], request: &Request<'_>) -> Option<String> {
    let mut variant = key.to_owned();
    for name in names {
        variant.push('\n');
        variant.push_str(name);
        // A field that is missing is not one that is empty.
        if has(request.headers, name) {
            variant.push(':');
            variant.push_str(&normal(request.headers, name));
        }
        if variant.len() > KEY_BYTES_MAX {
            return None;
        }
    }
    Some(variant)
}

/// Returns what the origin is told of a client's `Accept-Encoding`, and what selects by it: those codings of its list that origins use, in one
/// order. Nothing if the list stays as it is: it is missing, or takes other codings, or does not take an uncoded response (RFC 9110 §12.5.3).
pub fn codings(fields: &Fields) -> Option<String> {
    let wishes: Vec<(String, bool)> = members(fields, ACCEPT_ENCODING)
        .map(wish)
        .map(|wish| match wish.split_once(';') {
            Some((coding, weight)) => (coding.to_owned(), NO_WEIGHT.contains(&weight)),
            None => (wish, false),
        })
        .collect();
    let says = |coding: &str, is_refused: bool| wishes.contains(&(coding.to_owned(), is_refused));
    if !has(fields, ACCEPT_ENCODING) || wishes.iter().any(|(coding, _)| coding == "*") || says("identity", true) {
        return None;
    }
    let taken: Vec<&str> = CODINGS.into_iter().filter(|coding| says(coding, false) && !says(coding, true)).collect();
    Some(if taken.is_empty() { "identity".to_owned() } else { taken.join(", ") })
}

/// Returns a field's value so that values that mean the same are the same.
fn normal(fields: &Fields, name: &str) -> String {
    if name == ACCEPT_ENCODING
        && let Some(codings) = codings(fields)
    {
        return codings;
    }
    if is_one_of(name, &PREFERENCES) {
        return by_weight(members(fields, name).map(wish).collect());
    }
    // Lines of a field are members of one list. What is not text is written as bytes, so that no two are alike.
    let all: Vec<String> = values(fields, name).flat_map(|value| split(value, b',')).map(escaped).collect();
    all.join(",")
}

/// Returns a preference in lower case, without blanks, and without a weight of 1.
fn wish(member: &[u8]) -> String {
    let pieces = split(member, b';').map(|piece| escaped(piece).to_ascii_lowercase());
    let pieces = pieces.filter(|piece| !matches!(&**piece, "q=1" | "q=1.0" | "q=1.00" | "q=1.000"));
    pieces.collect::<Vec<String>>().join(";")
}

/// Returns a list of preferences with the largest weight first. Those of one weight keep their order, which counts for some servers (RFC 9110
/// §12.5.4). A list with a weight that cannot be read stays as it is.
fn by_weight(mut wishes: Vec<String>) -> String {
    if wishes.iter().all(|wish| permille(wish).is_some()) {
        wishes.sort_by_key(|wish| Reverse(permille(wish)));
    }
    wishes.join(",")
}

/// Returns the weight of a preference in thousandths (RFC 9110 §12.4.2).
fn permille(wish: &str) -> Option<u16> {
    let Some(weight) = wish.split(';').skip(1).find(|piece| piece.starts_with('q')) else { return Some(1000) };
    let text = weight.strip_prefix("q=")?;
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let is_weight = whole == "0" && rest.len() <= 3 && rest.bytes().all(|byte| byte.is_ascii_digit());
    is_weight.then(|| format!("{rest:0<3}").parse().ok()).flatten()
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'%' | 0..=0x1f | 0x7f..=0xff => text.push_str(&format!("%{byte:02x}")),
            b' '..=b'~' => text.push(char::from(*byte)),
        }
    }
    text
}

/// The field of the codings that a client takes.
pub const ACCEPT_ENCODING: &str = "accept-encoding";
/// Codings of origins. `deflate` is none: all who take it take `gzip`, too.
const CODINGS: [&str; 3] = ["br", "gzip", "zstd"];
/// The weight of what is refused (RFC 9110 §12.4.2).
const NO_WEIGHT: [&str; 4] = ["q=0", "q=0.0", "q=0.00", "q=0.000"];
/// Lists of preferences with weights.
const PREFERENCES: [&str; 4] = ["accept", "accept-charset", "accept-encoding", "accept-language"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_response_shows_to_vary_by_counts_although_it_does_not_say_so() {
        let shown = |lines: &[(&str, &str)]| unsaid(&fields(lines)).collect::<Vec<_>>();
        assert_eq!(shown(&[("Access-Control-Allow-Origin", "https://a.example")]), ["origin"]);
        assert!(shown(&[("access-control-allow-origin", "*"), ("content-encoding", "identity")]).is_empty());
        assert_eq!(shown(&[("content-encoding", "gzip")]), ["accept-encoding"]);
    }

    fn fields(lines: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
        lines.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect()
    }

    fn variant(names: &[&str], lines: &[(&str, &str)]) -> String {
        let headers = fields(lines);
        let request = Request { method: "GET", scheme: "http", authority: "a", path: "/", headers: &headers };
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        variant_key("a/", &names, &request).unwrap_or_default()
    }

    #[test]
    fn names_are_gathered_from_all_lines() {
        assert_eq!(names(&fields(&[("Vary", "Foo, bar"), ("vary", "BAR,")])), Some(vec!["bar".into(), "foo".into()]));
        assert_eq!(names(&[]), Some(Vec::new()));
        for star in ["*", "*, *", ", *", "*, Foo", "Foo, *"] {
            assert_eq!(names(&fields(&[("Vary", star)])), None, "{star}");
        }
        let many: Vec<String> = (0..=VARY_NAMES_MAX).map(|at| format!("x{at}")).collect();
        assert_eq!(names(&fields(&[("Vary", &many.join(","))])), None);
        assert!(names(&fields(&[("Vary", &many[1..].join(","))])).is_some());
    }

    #[test]
    fn what_means_the_same_selects_the_same() {
        let languages = |text| variant(&["accept-language"], &[("Accept-Language", text)]);
        for same in ["en, de", " eN ,   De", "en;q=1.0, de; q=1"] {
            assert_eq!(languages(same), "a/\naccept-language:en,de", "{same}");
        }
        assert_eq!(languages("en;q=0.5, de, fr;q=0.55"), languages("de, fr;q=0.55, en;q=0.5"));
        assert_ne!(languages("en;q=0.5, de"), languages("en, de"));
        // haproxy/haproxy#987 and #988: two lines are one list, and no other one selects the same.
        let codings = |lines: &[&str]| {
            variant(&["accept-encoding"], &lines.iter().map(|line| ("Accept-Encoding", *line)).collect::<Vec<_>>())
        };
        assert_eq!(codings(&["gzip", "br"]), codings(&["br, gzip"]));
        for other in ["gzip", "gzip;q=0, br", "br,gzip,*", "br,gzip,identity;q=0", ""] {
            assert_ne!(codings(&["gzip", "br"]), codings(&[other]), "{other}");
        }
        assert_ne!(codings(&[""]), codings(&[]));
        let foo = |lines: &[(&str, &str)]| variant(&["foo"], lines);
        assert_eq!(foo(&[("Foo", "1"), ("Foo", "2")]), foo(&[("foo", " 1, 2 ")]));
        assert_ne!(foo(&[("Foo", "2, 1")]), foo(&[("Foo", "1, 2")]));
        assert_ne!(foo(&[("Foo", "\"1, 2\"")]), foo(&[("Foo", "\"1,2\"")]));
        assert_ne!(foo(&[("Foo", "")]), foo(&[]));
        assert_ne!(foo(&[("Foo", "A")]), foo(&[("Foo", "a")]));
    }

    /// Goal: no client gets what the origin made for one that named the same in another order, which counts for Express, as for other servers.
    #[test]
    fn the_order_of_equal_preferences_selects() {
        for (name, one, other) in [
            ("accept-language", "de, en", "en, de"),
            ("accept-language", "fr, de;q=0.5, en;q=0.5", "fr, en;q=0.5, de;q=0.5"),
            ("accept-language", "de;q=x, en", "en, de;q=x"),
            ("accept", "application/json, text/html", "text/html, application/json"),
        ] {
            let of = |value| variant(&[name], &[(name, value)]);
            assert_ne!(of(one), of(other), "{name}: {one}");
        }
    }

    #[test]
    fn weights_are_read_as_they_are_written() {
        for (wish, expected) in [
            ("de", Some(1000)),
            ("text/html;level=1;q=0.25", Some(250)),
            ("de;q=0", Some(0)),
            ("de;q=0.5", Some(500)),
            ("de;q=0.500", Some(500)),
            ("de;q=2", None),
            ("de;q", None),
            ("de;q =0.5", None),
            ("de;q=0.0001", None),
            ("de;q=0.x", None),
        ] {
            assert_eq!(permille(wish), expected, "{wish}");
        }
    }

    #[test]
    fn codings_are_those_that_origins_use() {
        let check = |lines: &[&str], expected: Option<&str>| {
            let lines: Vec<_> = lines.iter().map(|line| ("Accept-Encoding", *line)).collect();
            assert_eq!(codings(&fields(&lines)).as_deref(), expected, "{lines:?}");
        };
        check(&[], None);
        // Chrome, Firefox and curl; Safari; all of them without TLS.
        for browser in ["gzip, deflate, br, zstd", "deflate, gzip, br, zstd"] {
            check(&[browser], Some("br, gzip, zstd"));
        }
        check(&["gzip, deflate, br"], Some("br, gzip"));
        check(&["gzip, deflate"], Some("gzip"));
        check(&["GZip;Q=0.5", "x, deflate"], Some("gzip"));
        for uncoded in ["", "identity", "deflate", "x-made-up", "gzip;q=0", "gzip; q=0.000, br;q=0.0"] {
            check(&[uncoded], Some("identity"));
        }
        check(&["gzip, gzip;q=0"], Some("identity"));
        for other in ["*", "gzip, *;q=0", "gzip, identity;q=0", "*;q=0.1, gzip"] {
            check(&[other], None);
        }
    }

    #[test]
    fn no_value_can_be_another_variant() {
        // Neither the end of a line nor what stands for one gets from a value into the key.
        assert_eq!(variant(&["a", "b"], &[("A", "1\nb:2")]), "a/\na:1%0ab:2\nb");
        assert_ne!(variant(&["a"], &[("A", "%0a")]), variant(&["a"], &[("A", "\n")]));
        assert_eq!(variant(&["a"], &[("A", &"x".repeat(KEY_BYTES_MAX))]), "");
    }
}
