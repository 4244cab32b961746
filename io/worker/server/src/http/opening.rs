// SPDX-License-Identifier: Apache-2.0
//! What an intercepted connection begins with: a request of HTTP/1, TLS, or something that is none of the node's business. A request that
//! the node cannot read is none of its business either: what is to be said of it is its server's to say.

use std::mem::MaybeUninit;

use http::Uri;
use http::uri::Authority;

use super::client_hello::{self, HANDSHAKE, Hello};
use crate::limits;

/// What the first bytes of a connection are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// They can be several things.
    Unknown,
    /// A request of HTTP/1.0 or 1.1 that is for the module, and where it ends if its head says that in one way.
    Http(Option<Framing>),
    /// A request by which the connection becomes something else: CONNECT, or an upgrade (RFC 9110 §7.8).
    Upgrade,
    /// A TLS ClientHello, with the name in it.
    Tls(Option<String>),
    /// Something else.
    Other,
}

/// Where a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Bytes of its head, with the empty lines before it.
    pub head: usize,
    /// Where its body ends.
    pub body: End,
}

/// Where the body of a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// After so many bytes.
    After(u64),
    /// With its last chunk.
    Chunks,
    /// Its head does not say so in one way.
    Odd,
}

/// Looks at the first bytes of a connection.
pub fn look(bytes: &[u8]) -> Opening {
    match client_hello::look(bytes) {
        Hello::Named(name) => return Opening::Tls(name),
        Hello::Incomplete if !bytes.is_empty() => return Opening::Unknown,
        Hello::Incomplete | Hello::None => {}
    }
    request(bytes)
}

/// Looks at what may be a request of HTTP/1, in the clear or within TLS.
pub fn request(bytes: &[u8]) -> Opening {
    // RFC 9112 §2.2: an empty line before the request is nothing.
    let start =
        bytes.iter().take(limits::EMPTY_LINE_BYTES_MAX).take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let rest = &bytes[start..];
    let line = rest.iter().position(|byte| *byte == b'\n').map(|end| &rest[..end]);
    match request_line(line.unwrap_or(rest), line.is_some()) {
        Some(true) => head(rest, start),
        Some(false) => Opening::Unknown,
        None => Opening::Other,
    }
}

/// Returns whether a look at these bytes may tell more than one at the first `looked` of them did. Who sends a long head in small pieces
/// has it looked at a few times only.
pub fn may_tell_more(bytes: &[u8], looked: usize) -> bool {
    let (before, new) = bytes.split_at(looked);
    let is_tls = bytes.first() == Some(&HANDSHAKE);
    if before.is_empty() || is_tls || bytes.len() <= limits::LOOK_BYTES || new.len() >= limits::LOOK_BYTES {
        return true;
    }
    // The first line, or the empty one, may be there.
    let first = new.contains(&b'\n') && !before.contains(&b'\n');
    let tail = &bytes[looked.saturating_sub(2)..];
    first || tail.windows(2).any(|end| end == b"\n\n") || tail.windows(3).any(|end| end == b"\n\r\n")
}

/// Returns whether a connection begins with the first line of a request, whatever follows.
pub fn is_request(bytes: &[u8]) -> bool {
    let rest = bytes.trim_ascii_start();
    let line = rest.iter().position(|byte| *byte == b'\n').map(|end| &rest[..end]);
    line.is_some_and(|line| request_line(line, true) == Some(true))
}

/// Returns whether a line is that of a request; nothing if it cannot be or become one.
fn request_line(line: &[u8], is_whole: bool) -> Option<bool> {
    let line = if is_whole { line.strip_suffix(b"\r").unwrap_or(line) } else { line };
    let mut parts = line.splitn(3, |byte| *byte == b' ');
    let (method, target, version) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let has_method = method.len() <= limits::METHOD_BYTES_MAX && method.iter().all(|byte| is_token(*byte));
    let has_target = target.is_none_or(|target| target.iter().all(u8::is_ascii_graphic));
    if !has_method || !has_target || (target.is_some() && method.is_empty()) {
        return None;
    }
    if !is_whole {
        let version = version.unwrap_or_default();
        let begun = VERSIONS.iter().any(|whole| whole.starts_with(version.strip_suffix(b"\r").unwrap_or(version)));
        return (begun && line.len() < limits::HEAD_BYTES_MAX).then_some(false);
    }
    (target.is_some_and(|target| !target.is_empty()) && VERSIONS.iter().any(|whole| Some(*whole) == version))
        .then_some(true)
}

/// HTTP/2 is not among them: its requests could not be sent on as they are.
const VERSIONS: [&[u8]; 2] = [b"HTTP/1.1", b"HTTP/1.0"];

/// Looks at a head whose first line is that of a request, behind so many bytes of empty lines.
fn head(bytes: &[u8], before: usize) -> Opening {
    if bytes.starts_with(b"CONNECT ") {
        return Opening::Upgrade;
    }
    // To empty as many lines as there may be would take longer than to read those that there are.
    let mut lines = [const { MaybeUninit::uninit() }; limits::HEADERS_MAX];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(bytes, &mut lines) {
        Ok(httparse::Status::Complete(length)) => readable(&request, before + length),
        Ok(httparse::Status::Partial) if bytes.len() < limits::HEAD_BYTES_MAX => Opening::Unknown,
        Ok(httparse::Status::Partial) => Opening::Other,
        Err(_) => unreadable(bytes),
    }
}

/// Says what a head of so many bytes is that hyper reads, too: the module's only if it could be asked it.
fn readable(request: &httparse::Request<'_, '_>, length: usize) -> Opening {
    let of = |name: &'static str| request.headers.iter().filter(move |line| line.name.eq_ignore_ascii_case(name));
    if of("connection").any(|line| nominates_upgrade(line.value))
        && of("upgrade").any(|line| names_protocol(line.value))
    {
        return Opening::Upgrade;
    }
    let target = request.path.unwrap_or_default();
    let is_known = target != "*" && Uri::try_from(target).is_ok();
    let mut hosts = of("host");
    let (host, more) = (hosts.next(), hosts.next());
    let is_named = match host {
        Some(host) => Authority::try_from(host.value).is_ok(),
        None => request.version == Some(0),
    };
    if !is_known || !is_named || more.is_some() {
        return Opening::Other;
    }
    Opening::Http(Some(framing_of(request, length)))
}

/// Returns where the first request of these bytes ends; nothing if hyper does not read its head.
pub fn framing(bytes: &[u8]) -> Option<Framing> {
    let mut lines = [const { MaybeUninit::uninit() }; limits::HEADERS_MAX];
    let mut request = httparse::Request::new(&mut []);
    let Ok(httparse::Status::Complete(head)) = request.parse_with_uninit_headers(bytes, &mut lines) else {
        return None;
    };
    Some(framing_of(&request, head))
}

fn framing_of(request: &httparse::Request<'_, '_>, head: usize) -> Framing {
    let of = |name: &'static str| request.headers.iter().filter(move |line| line.name.eq_ignore_ascii_case(name));
    let is_old = request.version == Some(0);
    let mut codings = of("transfer-encoding").map(|line| line.value.trim_ascii());
    let mut lengths = of("content-length").map(|line| str::from_utf8(line.value).ok()?.trim().parse().ok());
    let body = match (codings.next(), codings.next(), lengths.next(), lengths.next()) {
        (Some(coding), None, ..) if coding.eq_ignore_ascii_case(b"chunked") && !is_old => End::Chunks,
        (None, _, None, _) => End::After(0),
        (None, _, Some(Some(length)), None) => End::After(length),
        _ => End::Odd,
    };
    Framing { head, body }
}

/// Says what a head is that hyper does not read, once its end is there.
fn unreadable(bytes: &[u8]) -> Opening {
    let (mut nominated, mut upgrade) = (false, false);
    for line in bytes.split_inclusive(|byte| *byte == b'\n').skip(1) {
        // The last one may not have come whole.
        let Some(line) = line.strip_suffix(b"\n") else { break };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return match (nominated && upgrade, has_odd_framing(bytes)) {
                (true, _) => Opening::Upgrade,
                (false, true) => Opening::Http(None),
                (false, false) => Opening::Other,
            };
        }
        let Some((name, value)) = field(line) else { continue };
        if name.eq_ignore_ascii_case(b"connection") {
            nominated |= nominates_upgrade(value);
        } else if name.eq_ignore_ascii_case(b"upgrade") {
            upgrade |= names_protocol(value);
        }
    }
    if bytes.len() < limits::HEAD_BYTES_MAX { Opening::Unknown } else { Opening::Other }
}

/// Returns whether a head says in an odd way where its request ends: servers differ in what that is, so that nobody gets it (RFC 9112 §11.2).
fn has_odd_framing(bytes: &[u8]) -> bool {
    let lines = bytes.split(|byte| *byte == b'\n').skip(1).take_while(|line| !matches!(line, [] | [b'\r']));
    let mut names = lines.filter_map(|line| field(line).map(|(name, _)| name));
    names.any(|name| {
        let plain: Vec<u8> = name.iter().copied().filter(|byte| is_token(*byte)).collect();
        let frames = [&b"transfer-encoding"[..], b"content-length"].iter().any(|one| plain.eq_ignore_ascii_case(one));
        frames && plain.len() != name.len()
    })
}

/// Returns a head with those bytes of its target percent-encoded that may not be in one (RFC 3986 §2.1); nothing if there are none.
pub fn encoded(bytes: &[u8]) -> Option<Vec<u8>> {
    let from = bytes.iter().position(|byte| *byte == b' ')? + 1;
    let length = bytes[from..].iter().position(|byte| matches!(byte, b' ' | b'\n'))?;
    let target = &bytes[from..from + length];
    if !target.iter().any(|byte| NOT_IN_TARGETS.contains(byte)) {
        return None;
    }
    let mut encoded = bytes[..from].to_vec();
    for byte in target {
        match NOT_IN_TARGETS.contains(byte) {
            true => encoded.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            false => encoded.push(*byte),
        }
    }
    encoded.extend_from_slice(&bytes[from + length..]);
    Some(encoded)
}

/// What clients write into targets all the same.
const NOT_IN_TARGETS: &[u8] = b"\"<>\\^`{|}";

/// Returns whether the value of a `connection` line has `upgrade` in it.
pub fn nominates_upgrade(value: &[u8]) -> bool {
    members(value).any(|member| member.eq_ignore_ascii_case(b"upgrade"))
}

/// Returns whether the value of an `upgrade` line names a protocol that the connection is to become. RFC 9113 §3.1: who asks for
/// HTTP/2 so does without it as well.
pub fn names_protocol(value: &[u8]) -> bool {
    members(value).any(|member| !member.is_empty() && !member.eq_ignore_ascii_case(b"h2c"))
}

fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    Some((&line[..colon], &line[colon + 1..]))
}

/// RFC 9110 §5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::super::client_hello::tests::hello;
    use super::*;

    const HTTP: Opening = Opening::Http(None);

    /// Looks at what bytes are, wherever a request ends.
    fn check(bytes: &[u8], expected: &Opening) {
        let found = look(bytes);
        let found = if matches!(found, Opening::Http(_)) { HTTP } else { found };
        assert_eq!(found, *expected, "{:?}", String::from_utf8_lossy(bytes));
    }

    #[test]
    fn a_request_ends_where_its_head_says() {
        for (lines, body) in [
            ("", End::After(0)),
            ("content-length: 12\r\n", End::After(12)),
            ("content-length: 12\r\ncontent-length: 12\r\n", End::Odd),
            ("content-length: -1\r\n", End::Odd),
            ("transfer-encoding: chunked\r\ncontent-length: 12\r\n", End::Chunks),
        ] {
            let head = format!("\r\nPOST / HTTP/1.1\r\nhost: a\r\n{lines}\r\n");
            let expected = Opening::Http(Some(Framing { head: head.len(), body }));
            assert_eq!(look(format!("{head}GET").as_bytes()), expected, "{lines}");
        }
    }

    #[test]
    fn requests_are_known_by_their_first_line_and_upgrades_by_their_head() {
        check(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", &HTTP);
        check(b"\r\nGET / HTTP/1.0\n\n", &HTTP);
        check(b"PROPFIND /a?b HTTP/1.1\r\nhost: a\r\n\r\nbody", &HTTP);
        check(
            b"GET /chat HTTP/1.1\r\nConnection: keep-alive, Upgrade\r\nUPGRADE: websocket\r\n\r\n",
            &Opening::Upgrade,
        );
        check(b"GET / HTTP/1.1\r\nhost: a\r\nUpgrade: websocket\r\n\r\n", &HTTP);
        let h2c = b"GET / HTTP/1.1\r\nhost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n";
        check(h2c, &HTTP);
        check(b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c, websocket\r\n\r\n", &Opening::Upgrade);
        check(b"CONNECT a:443 HTTP/1.1\r\n", &Opening::Upgrade);
        // A second request of the same bytes is another matter.
        let second = b"GET / HTTP/1.0\r\n\r\nGET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
        check(second, &HTTP);
    }

    #[test]
    fn a_request_that_hyper_would_refuse_is_for_its_server() {
        for head in [
            "GET /?ids=[\"a\"] HTTP/1.1\r\nhost: a",
            "GET /<x> HTTP/1.1\r\nhost: a",
            "OPTIONS * HTTP/1.1\r\nhost: a",
            "GET / HTTP/1.1",
            "GET / HTTP/1.1\r\nhost:",
            "GET / HTTP/1.1\r\nhost: a b",
            "GET / HTTP/1.1\r\nhost: a\r\nhost: b",
            "GET / HTTP/1.1\r\nhost: a\r\nx : b",
            "GET / HTTP/1.1\r\nhost: a\r\nno colon",
            "POST /<x> HTTP/1.1\r\nhost: a\r\ncontent-length: 5",
        ] {
            check(format!("{head}\r\n\r\n").as_bytes(), &Opening::Other);
        }
        check(b"GET / HTTP/1.0\r\n\r\n", &HTTP);
        check(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding : chunked\r\n\r\n", &HTTP);
        check(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length\0: 5\r\n\r\n", &HTTP);
        let many = |lines: usize| format!("GET / HTTP/1.1\r\nhost: a\r\n{}\r\n", "a: b\r\n".repeat(lines));
        check(many(limits::HEADERS_MAX - 1).as_bytes(), &HTTP);
        check(many(limits::HEADERS_MAX).as_bytes(), &Opening::Other);
    }

    #[test]
    fn what_has_not_come_whole_is_waited_for() {
        let whole = b"GET /path HTTP/1.1\r\nhost: a\r\n\r\n";
        for length in 0..whole.len() {
            check(&whole[..length], &Opening::Unknown);
        }
        let long = [b"GET / HTTP/1.1\r\nx: ", &vec![b'x'; limits::HEAD_BYTES_MAX][..]].concat();
        check(&long, &Opening::Other);
        let target = [b"GET /", &vec![b'x'; limits::HEAD_BYTES_MAX][..]].concat();
        check(&target, &Opening::Other);
        check(&target[..1000], &Opening::Unknown);
    }

    /// Goal: a head in the smallest pieces is known as soon as it is there, and costs a few looks. Method: those of the most bytes, with and
    /// without lines.
    #[test]
    fn a_head_in_pieces_is_looked_at_a_few_times() {
        let line = [&b"x: "[..], &vec![b'x'; limits::HEAD_BYTES_MAX - 100]].concat();
        let lines = b"a:\r\n".repeat(limits::HEAD_BYTES_MAX / 4 - 30);
        for (rest, end) in [(&line[..], &b"\r\n\r\n"[..]), (&lines, b"\r\n"), (&lines, b"\n")] {
            let whole = [b"GET / HTTP/1.1\r\n", rest, end].concat();
            let (mut looked, mut looks) = (0, 0);
            let known = (1..=whole.len()).find(|length| {
                if !may_tell_more(&whole[..*length], looked) {
                    return false;
                }
                (looked, looks) = (*length, looks + 1);
                look(&whole[..*length]) != Opening::Unknown
            });
            assert_eq!(known, Some(whole.len()));
            assert!(looks <= limits::LOOK_BYTES + limits::HEAD_BYTES_MAX / limits::LOOK_BYTES + 2, "{looks}");
        }
        let hello = hello(Some("a.example"), &[], 3000);
        assert!((1..=hello.len()).all(|length| may_tell_more(&hello[..length], length - 1)));
        let long = [b"GET /", &vec![b'x'; 2000][..], b"\n"].concat();
        assert!(may_tell_more(&long, long.len() - 1) && !may_tell_more(&long[..2000], 1999));
    }

    #[test]
    fn what_is_something_else_is_known_as_early_as_can_be() {
        for bytes in [
            &b"\0"[..],
            b"\xff\xfb\x01",
            b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
            b"EHLO client.example\r\n",
            b"GET key\r\n",
            b"GET / FTP",
            b"GET  HTTP/1.1\r\n",
            b" GET / HTTP/1.1\r\n",
            b"GET / HTTP/1.1 x\r\n",
            b"GET /\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"A-method-that-is-longer-than-any-of-HTTP",
        ] {
            check(bytes, &Opening::Other);
        }
    }

    #[test]
    fn tls_is_known_by_its_first_message() {
        let bytes = hello(Some("a.example"), &[], 7);
        check(&bytes, &Opening::Tls(Some("a.example".to_owned())));
        check(&bytes[..bytes.len() - 1], &Opening::Unknown);
        check(&bytes[..1], &Opening::Unknown);
        check(&hello(None, &[], 700), &Opening::Tls(None));
        check(&[0x16, 3, 1, 0, 4, 9], &Opening::Other);
    }
}
