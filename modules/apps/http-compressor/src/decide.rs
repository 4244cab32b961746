// SPDX-License-Identifier: Apache-2.0
//! What may be compressed, how, and what its head says then (RFC 9110 §8.4, §8.8.3, §12.5.3).

use std::cmp::Reverse;

/// Lines of a head.
pub type Headers = Vec<(String, Vec<u8>)>;

/// How a body is compressed, as `content-encoding` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// RFC 7932.
    Br,
    /// RFC 8878.
    Zstd,
    /// RFC 1952.
    Gzip,
}

impl Coding {
    /// Returns what it is called.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Br => "br",
            Coding::Zstd => "zstd",
            Coding::Gzip => "gzip",
        }
    }

    /// Returns the one of this name.
    pub fn named(name: &str) -> Option<Coding> {
        [Coding::Br, Coding::Zstd, Coding::Gzip].into_iter().find(|coding| coding.name() == name)
    }
}

/// Returns the first value of a name that is text.
pub fn header<'a>(headers: &'a [(String, Vec<u8>)], name: &str) -> Option<&'a str> {
    all(headers, name).next()
}

fn all<'a>(headers: &'a [(String, Vec<u8>)], name: &str) -> impl Iterator<Item = &'a str> {
    let named = headers.iter().filter(move |(key, _)| key.eq_ignore_ascii_case(name));
    named.filter_map(|(_, value)| std::str::from_utf8(value).ok()).map(str::trim)
}

fn words<'a>(headers: &'a [(String, Vec<u8>)], name: &str) -> impl Iterator<Item = &'a str> {
    all(headers, name).flat_map(|line| line.split(',')).map(str::trim).filter(|word| !word.is_empty())
}

/// Returns the codings that a client takes, the one that it likes most first; of those that it likes as much, in the order of `known`.
/// None if it likes what is not compressed more.
pub fn accepted(request: &[(String, Vec<u8>)], known: &[Coding]) -> Vec<Coding> {
    let mut weights = Vec::new();
    for word in words(request, "accept-encoding").take(WORDS_MAX) {
        let word = word.to_ascii_lowercase();
        let (name, parameters) = word.split_once(';').unwrap_or((&word, ""));
        let weight = parameters.split(';').find_map(|part| {
            let (name, value) = part.split_once('=')?;
            (name.trim() == "q").then_some(value)
        });
        // A weight that is none does not say that it is wanted.
        weights.push((name.trim().to_owned(), weight.map_or(Some(1000), permille).unwrap_or(0)));
    }
    let said = |name: &str| weights.iter().find(|(known, _)| known == name).map(|(_, weight)| *weight);
    let of = |coding: Coding| {
        let other_name = (coding == Coding::Gzip).then(|| said("x-gzip")).flatten();
        said(coding.name()).or(other_name).or_else(|| said("*")).unwrap_or(0)
    };
    let least = said("identity").unwrap_or(0);
    let mut taken: Vec<Coding> =
        known.iter().copied().filter(|coding| of(*coding) > 0 && of(*coding) >= least).collect();
    taken.sort_by_key(|coding| Reverse(of(*coding)));
    taken
}

/// Returns a weight in thousandths (RFC 9110 §12.4.2); nothing if it is none.
fn permille(text: &str) -> Option<u16> {
    let (whole, rest) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    if rest.len() > 3 || !rest.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let rest = format!("{rest:0<3}").parse().ok()?;
    match (whole, rest) {
        ("0", rest) => Some(rest),
        ("1", 0) => Some(1000),
        _ => None,
    }
}

/// Returns whether an answer is such that all of it is compressed for whoever takes that. Of an answer with a part, that is what the whole is.
pub fn is_negotiated(request: &[(String, Vec<u8>)], status: u16, response: &[(String, Vec<u8>)], least: u64) -> bool {
    let untouched = |headers| words(headers, "cache-control").any(|word| word.eq_ignore_ascii_case("no-transform"));
    let has_body = !matches!(status, 100..=199 | 204 | 205 | 226 | 304);
    let is_coded = words(response, "content-encoding").any(|word| !word.eq_ignore_ascii_case("identity"));
    let is_less = |length: &str| length.parse().map_or(true, |length: u64| length < least);
    let is_short = match header(response, "content-range").and_then(|range| range.rsplit_once('/')) {
        Some((_, whole)) => whole != "*" && is_less(whole),
        None => header(response, "content-length").is_some_and(is_less),
    };
    // What cannot be read may say that it is not to be touched.
    let is_clear = response.iter().chain(request).all(|(name, value)| {
        let matters = ["cache-control", "content-encoding"].iter().any(|own| name.eq_ignore_ascii_case(own));
        !matters || value.is_ascii()
    });
    has_body
        && is_clear
        && !is_coded
        && !is_short
        && !untouched(request)
        && !untouched(response)
        && header(response, "content-type").is_some_and(shrinks)
}

/// Returns whether an answer is a part, which is sent as it is. A server may answer a request for a part with the whole (RFC 9110 §14.2).
pub fn is_part(status: u16, response: &[(String, Vec<u8>)]) -> bool {
    status == 206 || header(response, "content-range").is_some()
}

/// Returns whether what has this media type gets shorter, as a rule.
fn shrinks(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    let Some((kind, name)) = essence.split_once('/') else { return false };
    match kind {
        "text" => true,
        "application" => {
            let known = [
                "javascript",
                "x-javascript",
                "ecmascript",
                "json",
                "xml",
                "wasm",
                "rtf",
                "x-ndjson",
                "graphql",
                "sql",
                "toml",
                "yaml",
                "vnd.ms-fontobject",
                "x-font-ttf",
            ];
            known.contains(&name) || ["+json", "+xml", "+yaml", "+text"].iter().any(|suffix| name.ends_with(suffix))
        }
        "font" => matches!(name, "ttf" | "otf" | "collection" | "sfnt"),
        "image" => matches!(name, "svg+xml" | "bmp" | "x-icon" | "vnd.microsoft.icon" | "x-ms-bmp"),
        _ => false,
    }
}

/// Has a head say that its answer depends on what the client takes.
pub fn vary(response: &mut Headers) {
    let says = words(response, "vary").any(|word| word == "*" || word.eq_ignore_ascii_case("accept-encoding"));
    if !says {
        response.push(("vary".to_owned(), b"accept-encoding".to_vec()));
    }
}

/// Has a head be that of the compressed answer: another length, digests of other bytes, and an entity tag that is not for byte ranges.
pub fn code(response: &mut Headers, coding: Coding) {
    response.retain(|(name, _)| !OF_THE_BYTES.iter().any(|own| name.eq_ignore_ascii_case(own)));
    weaken(response);
    response.push(("content-encoding".to_owned(), coding.name().as_bytes().to_vec()));
}

/// Has the head of an answer that says that nothing has changed be that of one which may have been compressed: what it says replaces what
/// the client knows. `made_weak`: the client has a tag that may have been made weak here.
pub fn unchanged(response: &mut Headers, made_weak: bool) {
    vary(response);
    if made_weak {
        response.retain(|(name, _)| !OF_THE_BYTES.iter().any(|own| name.eq_ignore_ascii_case(own)));
        weaken(response);
    }
}

/// Returns the codings that a body of this kind is worth: those that take much memory are for what is over soon.
pub fn worth(codings: &mut Vec<Coding>, response: &[(String, Vec<u8>)]) {
    let length = header(response, "content-length").and_then(|length| length.parse::<u64>().ok());
    if length.is_none_or(|length| length > LARGE_BYTES) {
        codings.retain(|coding| *coding == Coding::Gzip);
    }
}

/// Makes a strong entity tag a weak one.
pub fn weaken(response: &mut [(String, Vec<u8>)]) {
    for (_, value) in response.iter_mut().filter(|(name, _)| name.eq_ignore_ascii_case("etag")) {
        if value.starts_with(b"\"") {
            value.splice(0..0, *b"W/");
        }
    }
}

/// Has a request name each weak tag of `if-none-match` and `if-match` as a strong one, too: it may be one that was made weak here, which
/// a server compares as a text, or with which nothing would ever match. Returns whether `if-none-match` had one.
pub fn map_back(request: &mut [(String, Vec<u8>)]) -> bool {
    let mut had = false;
    for (name, value) in request.iter_mut() {
        let is_none_match = name.eq_ignore_ascii_case("if-none-match");
        if !is_none_match && !name.eq_ignore_ascii_case("if-match") {
            continue;
        }
        let Ok(text) = std::str::from_utf8(value) else { continue };
        let strong: Vec<String> = tags(text).filter_map(|tag| tag.strip_prefix("W/")).map(str::to_owned).collect();
        for tag in strong {
            had |= is_none_match;
            if value.len() + tag.len() > TAGS_BYTES_MAX {
                continue;
            }
            match is_none_match {
                true => value.extend_from_slice(format!(", {tag}").as_bytes()),
                // Apache looks no further than at a weak one.
                false => drop(value.splice(0..0, format!("{tag}, ").into_bytes())),
            }
        }
    }
    had
}

/// Returns the entity tags of a list. A comma within quotes is part of a tag.
fn tags(list: &str) -> impl Iterator<Item = &str> {
    let mut rest = list;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches([',', ' ', '\t']);
        let quote = rest.find('"')?;
        let end = quote + 1 + rest[quote + 1..].find('"')? + 1;
        let (tag, after) = rest.split_at(end);
        rest = after;
        Some(tag.trim())
    })
}

/// Returns whether a header is about one connection only (RFC 9110 §7.6.1) or the node's own to set.
pub fn is_of_connection(name: &str) -> bool {
    ["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "host"]
        .iter()
        .any(|own| name.eq_ignore_ascii_case(own))
}

/// Lines that are true of the bytes as the server sent them (RFC 9110 §14.3, RFC 9530, RFC 1864).
const OF_THE_BYTES: [&str; 7] =
    ["content-length", "content-encoding", "accept-ranges", "content-digest", "repr-digest", "digest", "content-md5"];
/// Bytes of an answer beyond which the coders that take most are not for it.
const LARGE_BYTES: u64 = 8 << 20;
/// Codings of one request that are looked at.
const WORDS_MAX: usize = 32;
/// Bytes of a list of tags with those that are added.
const TAGS_BYTES_MAX: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Coding; 3] = [Coding::Br, Coding::Zstd, Coding::Gzip];

    fn head(lines: &[(&str, &str)]) -> Headers {
        lines.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect()
    }

    #[test]
    fn clients_get_what_they_like_most() {
        let names = |accept: &str| {
            let codings = accepted(&head(&[("Accept-Encoding", accept)]), &ALL);
            codings.into_iter().map(Coding::name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names("gzip, deflate, br, zstd"), "br zstd gzip");
        assert_eq!(names("gzip;q=1.0, br;q=0.5, zstd;q=0"), "gzip br");
        assert_eq!(names("GZIP ; Q=1"), "gzip");
        assert_eq!(names("x-gzip"), "gzip");
        assert_eq!(names("*"), "br zstd gzip");
        assert_eq!(names("*;q=0, gzip;q=0.1"), "gzip");
        assert_eq!(names("identity, gzip;q=0.5"), "");
        assert_eq!(names("identity;q=0.5, gzip;q=0.5"), "gzip");
        for none in [
            "",
            "identity",
            "deflate",
            "gzip;Q=0",
            "gzip;q =0",
            "gzip;q=2",
            "gzip;q=x",
            "gzip;q=NaN",
            "gzip;q=1.001",
            "gzip;q=0.0001",
            "gzip;q=",
            "gzip;q=.5",
            ";;,,;q=",
            "gzip x",
        ] {
            assert_eq!(names(none), "", "{none}");
        }
        assert!(accepted(&Headers::new(), &ALL).is_empty());
        let two_lines = head(&[("accept-encoding", "gzip"), ("accept-encoding", "br")]);
        assert_eq!(accepted(&two_lines, &[Coding::Gzip, Coding::Br]), [Coding::Gzip, Coding::Br]);
    }

    #[test]
    fn only_what_shrinks_and_may_be_changed_is_compressed() {
        let text = ("content-type", "text/html; charset=utf-8");
        let check = |request: &[(&str, &str)], status, response: &[(&str, &str)]| {
            let (request, response) = (head(request), head(response));
            is_negotiated(&request, status, &response, 1024) && !is_part(status, &response)
        };
        assert!(
            check(&[], 200, &[text])
                && check(&[], 404, &[text])
                && check(&[], 200, &[text, ("content-length", "1024")])
        );
        assert!(check(&[], 200, &[("content-type", "Application/Problem+JSON")]));
        assert!(check(&[], 200, &[("content-type", "text/event-stream")]));
        assert!(check(&[], 200, &[text, ("content-encoding", "identity")]));
        for status in [100, 204, 205, 206, 304] {
            assert!(!check(&[], status, &[text]), "{status}");
        }
        for line in [
            ("content-encoding", "gzip"),
            ("content-length", "1023"),
            ("content-length", "many"),
            ("content-range", "bytes 0-5/9"),
            ("cache-control", "public, No-Transform"),
        ] {
            assert!(!check(&[], 200, &[text, line]), "{line:?}");
        }
        assert!(check(&[("range", "bytes=0-1")], 200, &[text]), "the server answers with the whole");
        assert!(!check(&[("cache-control", "no-transform")], 200, &[text]));
        for kind in ["image/png", "video/mp4", "application/zip", "application/octet-stream", "font/woff2", "text", ""]
        {
            assert!(!check(&[], 200, &[("content-type", kind)]), "{kind}");
        }
        let mut unclear = head(&[text]);
        unclear.push(("Cache-Control".to_owned(), b"no-transform, x=\xe9".to_vec()));
        assert!(!is_negotiated(&[], 200, &unclear, 0) && !is_negotiated(&unclear, 200, &head(&[text]), 0));
        assert!(!check(&[], 200, &[]), "what it is has to be known");
    }

    /// Goal: a part says of itself what the whole does (RFC 9110 §15.3.7, `github.com/caddyserver/caddy/issues/5849`).
    #[test]
    fn a_part_is_of_what_is_compressed() {
        let text = ("content-type", "text/html");
        for (lines, expected) in [
            (&[text, ("content-range", "bytes 0-9/2000"), ("content-length", "10")][..], true),
            (&[text, ("content-range", "bytes 0-9/*")], true),
            (&[text, ("content-range", "bytes 0-9/1000"), ("content-length", "10")], false),
            (&[text, ("content-range", "bytes 0-9/2000"), ("content-encoding", "gzip")], false),
            (&[("content-type", "image/png"), ("content-range", "bytes 0-9/2000")], false),
        ] {
            let lines = head(lines);
            assert_eq!(is_negotiated(&[], 206, &lines, 1024), expected, "{lines:?}");
            assert!(is_part(206, &lines));
        }
    }

    #[test]
    fn a_compressed_answer_has_another_head() {
        let mut headers = head(&[
            ("ETag", "\"a,b\""),
            ("Content-Length", "5000"),
            ("accept-ranges", "bytes"),
            ("Repr-Digest", "sha-256=:x:"),
            ("x-other", "stays"),
        ]);
        vary(&mut headers);
        code(&mut headers, Coding::Zstd);
        let expected =
            [("ETag", "W/\"a,b\""), ("x-other", "stays"), ("vary", "accept-encoding"), ("content-encoding", "zstd")];
        assert_eq!(headers, head(&expected));
        for says in ["*", "cookie, Accept-Encoding"] {
            let mut headers = head(&[("vary", says)]);
            vary(&mut headers);
            assert_eq!(headers.len(), 1, "{says}");
        }
        let mut headers = head(&[("etag", "W/\"x\""), ("vary", "cookie")]);
        vary(&mut headers);
        weaken(&mut headers);
        assert_eq!(headers, head(&[("etag", "W/\"x\""), ("vary", "cookie"), ("vary", "accept-encoding")]));
    }

    #[test]
    fn what_has_not_changed_says_what_its_compressed_form_would() {
        let origin =
            [("etag", "\"t\""), ("vary", "cookie"), ("accept-ranges", "bytes"), ("cache-control", "max-age=5")];
        let mut headers = head(&origin);
        unchanged(&mut headers, true);
        let vary = ("vary", "accept-encoding");
        assert_eq!(headers, head(&[("etag", "W/\"t\""), origin[1], origin[3], vary]));
        let mut headers = head(&origin);
        unchanged(&mut headers, false);
        assert_eq!(headers, head(&[origin[0], origin[1], origin[2], origin[3], vary]));
    }

    #[test]
    fn what_may_last_takes_little_memory() {
        let fit = |lines: &[(&str, &str)]| {
            let mut codings = ALL.to_vec();
            worth(&mut codings, &head(lines));
            codings.len()
        };
        assert_eq!(fit(&[("content-length", "8388608")]), 3);
        assert_eq!([fit(&[("content-length", "8388609")]), fit(&[]), fit(&[("content-length", "x")])], [1, 1, 1]);
    }

    #[test]
    fn tags_that_were_made_weak_are_strong_again() {
        let back = |value: &str| {
            let mut headers = head(&[("If-None-Match", value)]);
            let had = map_back(&mut headers);
            (had, String::from_utf8(headers.remove(0).1).unwrap())
        };
        assert_eq!(back("W/\"a,b\""), (true, "W/\"a,b\", \"a,b\"".to_owned()));
        assert_eq!(back("\"x\", W/\"y\",W/\"z\""), (true, "\"x\", W/\"y\",W/\"z\", \"y\", \"z\"".to_owned()));
        for same in ["\"x\"", "*", "", "W/\"", "W/", "\"", "x"] {
            assert_eq!(back(same), (false, same.to_owned()));
        }
        let mut both = head(&[("If-Match", "W/\"x\""), ("x-match", "W/\"x\"")]);
        assert!(!map_back(&mut both));
        assert_eq!(both, head(&[("If-Match", "\"x\", W/\"x\""), ("x-match", "W/\"x\"")]));
        let long = format!("W/\"{}\"", "x".repeat(5000));
        assert_eq!(back(&long), (true, long));
    }
}
