// SPDX-License-Identifier: Apache-2.0
//! SIP over connections (RFC 3261 §18.3): where messages begin and end.

use netserv_sip::message::Head;

use crate::limits::HEAD_BYTES_MAX;

/// Tells the messages of one direction of a connection apart.
#[derive(Debug, Default)]
pub struct Framing {
    /// What came of a head that is not there as a whole.
    held: Vec<u8>,
    /// Bytes of a body that are still to come, and whether they go on.
    body: Option<(usize, bool)>,
    /// The last byte was a zero that went on, and may be the first of STUN.
    is_behind_zero: bool,
    /// Nothing more is looked at.
    is_lost: bool,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A double CRLF between messages.
    Ping,
    /// A single CRLF between messages.
    Pong,
    /// The head of a message. [`Framing::keep`] says whether its body goes on.
    Head(&'a [u8]),
    /// A part of a body, and whether it goes on.
    Body(&'a [u8], bool),
    /// What is no SIP: it goes on as it is.
    Other(&'a [u8]),
}

impl Framing {
    /// Gives each piece of the bytes that came to `take`, which says of a head whether its body goes on.
    pub fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Piece<'_>) -> bool) {
        let joined;
        let mut rest = match self.held.is_empty() {
            true => bytes,
            false => {
                joined = [&std::mem::take(&mut self.held)[..], bytes].concat();
                &joined[..]
            }
        };
        while !rest.is_empty() {
            if self.is_lost {
                take(Piece::Other(rest));
                return;
            }
            if let Some((left, goes_on)) = self.body.take() {
                let (part, after) = rest.split_at(left.min(rest.len()));
                take(Piece::Body(part, goes_on));
                self.body = (part.len() < left).then_some((left - part.len(), goes_on));
                rest = after;
                continue;
            }
            if std::mem::take(&mut self.is_behind_zero) && matches!(rest[0], 1 | 0x11) {
                match Start::of(&[&[0], &rest[..rest.len().min(STUN_HEADER_BYTES)]].concat()) {
                    Start::KeepAlive(length) => {
                        self.body = Some((length - 1, true));
                        continue;
                    }
                    Start::TooShort => {
                        self.is_behind_zero = true;
                        return self.held = rest.to_vec();
                    }
                    Start::Sip | Start::Other => {}
                }
            }
            if rest == [0] {
                // A keep-alive of zeros, which nobody says is over, goes on at once.
                take(Piece::Body(rest, true));
                self.is_behind_zero = true;
                return;
            }
            if rest.starts_with(b"\r") {
                let (piece, length) = match rest {
                    [b'\r', b'\n', b'\r', b'\n', ..] => (Piece::Ping, 4),
                    // The other half of a ping may follow; then the server answers it.
                    [b'\r', b'\n'] => (Piece::Pong, 2),
                    [b'\r', b'\n', after, ..] if *after != b'\r' => (Piece::Pong, 2),
                    _ if b"\r\n\r\n".starts_with(rest) => return self.held = rest.to_vec(),
                    _ => {
                        self.is_lost = true;
                        continue;
                    }
                };
                take(piece);
                rest = &rest[length..];
                continue;
            }
            match Start::of(rest) {
                Start::Sip => {}
                Start::TooShort => return self.held = rest.to_vec(),
                Start::KeepAlive(length) => {
                    self.body = Some((length, true));
                    continue;
                }
                Start::Other => {
                    self.is_lost = true;
                    continue;
                }
            }
            let Some(length) = head_length(rest) else {
                if rest.len() <= HEAD_BYTES_MAX {
                    return self.held = rest.to_vec();
                }
                self.is_lost = true;
                continue;
            };
            let head = Head::parse(&rest[..length]).filter(Head::is_sip);
            let body = head.and_then(|head| head.body_length());
            let Some(body) = body.filter(|_| length <= HEAD_BYTES_MAX) else {
                // Where the next one begins nobody knows.
                self.is_lost = true;
                continue;
            };
            let goes_on = take(Piece::Head(&rest[..length]));
            self.body = (body > 0).then_some((body, goes_on));
            rest = &rest[length..];
        }
    }

    /// Returns whether what came so far is whole messages, so that something may be put in.
    pub fn is_between(&self) -> bool {
        self.held.is_empty() && self.body.is_none() && !self.is_lost
    }

    /// Returns whether what came is no SIP any more.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Returns what the next version of the module has to know.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (left, goes_on) = self.body.unwrap_or((0, true));
        let flags = u8::from(self.is_lost) | u8::from(goes_on) << 1 | u8::from(self.is_behind_zero) << 2;
        [&[flags][..], &u64::try_from(left).unwrap_or(u64::MAX).to_be_bytes(), &self.held].concat()
    }

    /// Reads what the version before had to say.
    pub fn from_bytes(bytes: &[u8]) -> Option<Framing> {
        let (flags, rest) = bytes.split_first()?;
        let (left, held) = rest.split_first_chunk()?;
        let left = usize::try_from(u64::from_be_bytes(*left)).ok()?;
        let body = (left > 0).then_some((left, flags & 2 != 0));
        Some(Framing { held: held.to_vec(), body, is_behind_zero: flags & 4 != 0, is_lost: flags & 1 != 0 })
    }

    /// Returns how many bytes are held back.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns what is held back; if that is something, nothing more is looked at.
    pub fn give_up(&mut self) -> Vec<u8> {
        self.is_lost |= !self.held.is_empty();
        std::mem::take(&mut self.held)
    }
}

/// What something between messages is by its first bytes. What is no SIP is not held back until it might have been.
#[derive(Debug, PartialEq, Eq)]
enum Start {
    /// A message, so far.
    Sip,
    /// It may be several of these.
    TooShort,
    /// So many bytes of another protocol that only keep a connection alive: messages may follow.
    KeepAlive(usize),
    /// Anything else, such as TLS.
    Other,
}

impl Start {
    fn of(bytes: &[u8]) -> Start {
        let is_begun = |known: &[u8]| known.starts_with(&bytes[..bytes.len().min(known.len())]);
        if is_begun(STATUS) {
            return Start::Sip;
        }
        if is_begun(JAK) {
            return match bytes.get(JAK.len()) {
                _ if bytes.len() < JAK.len() => Start::TooShort,
                Some(0) => Start::KeepAlive(JAK.len() + 1),
                _ => Start::KeepAlive(JAK.len()),
            };
        }
        match bytes {
            // RFC 8489 §5: the type of a request, an indication or an answer, the length behind the header, the magic cookie.
            [0 | 1, 1 | 0x11, high, low, 0x21, 0x12, 0xa4, 0x42, ..] => {
                return Start::KeepAlive(STUN_HEADER_BYTES + usize::from(u16::from_be_bytes([*high, *low])));
            }
            [0 | 1] | [0 | 1, 1 | 0x11, ..] if bytes.len() < 8 => return Start::TooShort,
            // Alone, or behind what came before.
            [0, other, ..] if !matches!(other, 1 | 0x11) => return Start::KeepAlive(1),
            _ => {}
        }
        let end = bytes.iter().position(|byte| *byte == b'\r');
        let line = &bytes[..end.unwrap_or(bytes.len())];
        let method = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        let is_method = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._!%*+`'~".contains(byte);
        let is_request = (1..=METHOD_BYTES_MAX).contains(&method.len())
            && method.iter().all(is_method)
            && line.iter().all(|byte| *byte >= b' ' && *byte != 0x7f);
        let version = line.len().checked_sub(VERSION.len()).map(|at| &line[at..]);
        let is_ended_well = end.is_none() || version.is_some_and(|version| version.eq_ignore_ascii_case(VERSION));
        if is_request && is_ended_well { Start::Sip } else { Start::Other }
    }
}

/// How responses begin, and how the first line of a request ends.
const STATUS: &[u8] = b"SIP/2.0 ";
const VERSION: &[u8] = b" SIP/2.0";
/// What some phones send as a keep-alive, with a zero behind it or without.
const JAK: &[u8] = b"jaK";
const STUN_HEADER_BYTES: usize = 20;
/// Bytes of a method; the longest known one has nine.
const METHOD_BYTES_MAX: usize = 32;

/// Returns the length of the head with its empty line, if all of it is there.
fn head_length(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &str = "MESSAGE sip:a SIP/2.0\r\nl: 5\r\n\r\nhello";
    const EMPTY: &str = "OPTIONS sip:a SIP/2.0\r\nl: 0\r\n\r\n";

    /// Returns the pieces, those of bodies joined, as they come when so many bytes come at a time.
    fn pieces(bytes: &[u8], at_a_time: usize) -> (Vec<String>, Framing) {
        let mut framing = Framing::default();
        let mut found: Vec<String> = Vec::new();
        for part in bytes.chunks(at_a_time) {
            framing.push(part, |piece| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let (kind, text) = match piece {
                    Piece::Ping => ("ping", String::new()),
                    Piece::Pong => ("pong", String::new()),
                    Piece::Head(head) => ("head", text(head)),
                    Piece::Body(body, true) => ("body", text(body)),
                    Piece::Body(body, false) => ("gone", text(body)),
                    Piece::Other(other) => ("other", text(other)),
                };
                match found.last_mut() {
                    Some(last) if matches!(kind, "body" | "gone" | "other") && last.starts_with(kind) => {
                        last.push_str(&text);
                    }
                    _ => found.push(format!("{kind} {text}")),
                }
                !text.starts_with("MESSAGE")
            });
        }
        (found, framing)
    }

    /// Goal: what is no SIP by its first bytes goes on at once, and phones' other keep-alives leave what follows in sight.
    #[test]
    fn what_is_no_sip_is_not_held_back() {
        let hello = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[0xa5; 200]].concat();
        for foreign in [
            &hello[..],
            b"GET / HTTP/1.1\r\nhost: a\r\n",
            b"hello, world",
            b"\x00\x02ab",
            b"\x00\x01\x00\x00abcd",
            b"A\tb",
        ] {
            let mut framing = Framing::default();
            let mut on = Vec::new();
            framing.push(foreign, |piece| {
                let (Piece::Other(bytes) | Piece::Body(bytes, true)) = piece else { panic!("{piece:?}") };
                on.extend_from_slice(bytes);
                true
            });
            assert_eq!((on, framing.held(), framing.is_lost()), (foreign.to_vec(), 0, true), "{foreign:?}");
        }
        let stun = [&[0, 1, 0, 4, 0x21, 0x12, 0xa4, 0x42][..], &[7; 12], b"attr"].concat();
        let answer = [&[1, 1][..], &stun[2..]].concat();
        for keep_alive in [&b"jaK"[..], b"jaK\0", b"\0\0\0\0", &stun, &answer] {
            let all = [EMPTY.as_bytes(), keep_alive, EMPTY.as_bytes()].concat();
            for at_a_time in [1, 7, all.len()] {
                let (found, framing) = pieces(&all, at_a_time);
                let heads = found.iter().filter(|piece| piece.starts_with("head OPTIONS")).count();
                assert_eq!(
                    (heads, framing.held(), framing.is_lost()),
                    (2, 0, false),
                    "{keep_alive:?} by {at_a_time}: {found:?}"
                );
            }
        }
        // Zeros are held back for nothing that may follow, however many there are.
        for zeros in 1..6 {
            for at_a_time in [1, 2, 9] {
                let (found, framing) = pieces(&vec![0; zeros], at_a_time);
                assert_eq!((found, framing.held()), (vec![format!("body {}", "\0".repeat(zeros))], 0));
                let next = [&vec![0; zeros - 1][..], &stun, EMPTY.as_bytes()].concat();
                let (found, framing) = pieces(&next, at_a_time);
                assert!(found.len() == 2 && found[1].starts_with("head") && framing.is_between(), "{found:?}");
            }
        }
        assert_eq!(Start::of(b"INVITE sip:a SIP/2.0\r"), Start::Sip);
        assert_eq!(Start::of(b"INVITE sip:a sip/2.0\r\nx"), Start::Sip);
        assert_eq!(Start::of(b"inv.ITE~ sip:a SIP/2.0\r\n"), Start::Sip, "RFC 4475 3.1.1.2");
        assert_eq!(Start::of(b"INVITE sip:a HTTP/1.1\r\n"), Start::Other);
        assert_eq!(Start::of(&[b'A'; METHOD_BYTES_MAX + 1]), Start::Other);
    }

    #[test]
    fn messages_are_told_apart_however_they_come() {
        let stream = format!("{EMPTY}{REQUEST}\r\n\r\n{EMPTY}INFO sip:a SIP/2.0\r\nl: 2\r\n\r\nhi");
        for at_a_time in [1000, 7, 3] {
            let (found, framing) = pieces(stream.as_bytes(), at_a_time);
            let heads: Vec<&str> = found.iter().map(|piece| piece.split(' ').next().unwrap()).collect();
            let kinds: Vec<&str> = heads.into_iter().filter(|kind| !matches!(*kind, "ping" | "pong")).collect();
            assert_eq!(kinds, ["head", "head", "gone", "head", "head", "body"], "{at_a_time}: {found:?}");
            assert!(found[2] == "gone hello" && found.last().unwrap() == "body hi" && framing.is_between());
        }
    }

    #[test]
    fn what_is_not_whole_is_held_and_what_is_damaged_goes_on() {
        let (found, mut framing) = pieces(&EMPTY.as_bytes()[..10], 100);
        assert!(found.is_empty() && !framing.is_between());
        assert_eq!((framing.held(), framing.give_up()), (10, b"OPTIONS si".to_vec()));
        assert!(framing.is_lost() && framing.held() == 0);
        for damaged in [
            "OPTIONS sip:a SIP/2.0\r\nl: x\r\n\r\n",
            "\x16\x03\x01 and what TLS begins with\r\n\r\n",
            "\rx",
            &format!("OPTIONS sip:a SIP/2.0\r\n{}", "x: y\r\n".repeat(HEAD_BYTES_MAX)),
        ] {
            for at_a_time in [1_000_000, 1000] {
                let (found, framing) = pieces(damaged.as_bytes(), at_a_time);
                assert_eq!(found, [format!("other {damaged}")]);
                assert!(!framing.is_between());
            }
        }
    }

    #[test]
    fn the_next_version_goes_on_where_this_one_was() {
        let stream = format!("{REQUEST}{EMPTY}");
        for cut in 0..stream.len() {
            let (before, framing) = pieces(&stream.as_bytes()[..cut], 1000);
            let mut next = Framing::from_bytes(&framing.to_bytes()).unwrap();
            let mut heads = before.iter().filter(|piece| piece.starts_with("head")).count();
            next.push(&stream.as_bytes()[cut..], |piece| {
                heads += usize::from(matches!(piece, Piece::Head(_)));
                assert!(!matches!(piece, Piece::Other(_) | Piece::Body(_, true)), "{cut}");
                false
            });
            assert_eq!(heads, 2, "{cut}");
        }
        assert!(Framing::from_bytes(b"").is_none() && Framing::from_bytes(&[0; 8]).is_none());
    }

    #[test]
    fn line_ends_between_messages_are_pings_and_pongs() {
        assert_eq!(pieces(b"\r\n\r\n\r\n", 100).0, ["ping ", "pong "]);
        assert_eq!(pieces(format!("\r\n{EMPTY}").as_bytes(), 100).0.len(), 2);
        // One that comes in halves is the server's, or is put together.
        assert_eq!(pieces(b"\r\n\r\n", 3).0, ["ping "]);
        assert_eq!(pieces(b"\r\n\r\n", 2).0, ["pong ", "pong "]);
        assert!(pieces(b"\r\n", 2).1.is_between() && !pieces(b"\r\n\r", 3).1.is_between());
    }
}
