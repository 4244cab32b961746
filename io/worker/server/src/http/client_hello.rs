// SPDX-License-Identifier: Apache-2.0
//! The name in a TLS ClientHello (RFC 8446 §4.1.2, RFC 6066 §3), which comes in clear. Nothing else of it is looked at.
//!
//! With Encrypted ClientHello (RFC 9849), or what clients send to look like it, the name is the outer one.

use crate::limits;

/// What is known of a ClientHello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hello {
    /// It has not come whole.
    Incomplete,
    /// It is none, or is longer than [`limits::CLIENT_HELLO_BYTES_MAX`].
    None,
    /// It names this server in small letters; nothing if it names none, or in no way that this knows.
    Named(Option<String>),
}

/// Looks at the first bytes of a connection.
pub fn look(bytes: &[u8]) -> Hello {
    match gather(bytes) {
        Gathered::Whole(message) => Hello::Named(name(&message)),
        Gathered::Part if bytes.len() < limits::CLIENT_HELLO_BYTES_MAX => Hello::Incomplete,
        Gathered::Part | Gathered::Wrong => Hello::None,
    }
}

enum Gathered {
    Whole(Vec<u8>),
    Part,
    Wrong,
}

/// Puts the message together from the records that it comes in.
fn gather(bytes: &[u8]) -> Gathered {
    let (mut rest, mut message) = (bytes, Vec::new());
    loop {
        let header = &rest[..rest.len().min(RECORD_HEADER_BYTES)];
        let odd = |place: usize, good: fn(u8) -> bool| header.get(place).is_some_and(|byte| !good(*byte));
        if odd(0, |kind| kind == HANDSHAKE) || odd(1, |major| major == 0x03) || odd(2, |minor| minor <= 0x04) {
            return Gathered::Wrong;
        }
        let &[_, _, _, high, low] = header else { return Gathered::Part };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if length == 0 || length > RECORD_BYTES_MAX {
            return Gathered::Wrong;
        }
        let body = &rest[RECORD_HEADER_BYTES..];
        message.extend_from_slice(&body[..length.min(body.len())]);
        if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            return Gathered::Wrong;
        }
        if let Some(&[_, a, b, c]) = message.first_chunk() {
            let whole = 4 + (usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c));
            if whole > limits::CLIENT_HELLO_BYTES_MAX {
                return Gathered::Wrong;
            }
            if message.len() >= whole {
                message.truncate(whole);
                return Gathered::Whole(message);
            }
        }
        if body.len() < length {
            return Gathered::Part;
        }
        rest = &body[length..];
    }
}

const RECORD_HEADER_BYTES: usize = 5;
/// RFC 8446 §5.1.
const RECORD_BYTES_MAX: usize = 1 << 14;
/// RFC 8446 §5.1: the content type of handshakes.
pub(super) const HANDSHAKE: u8 = 0x16;
/// RFC 8446 §4.
const CLIENT_HELLO: u8 = 0x01;
/// RFC 6066 §3.
const SERVER_NAME: u16 = 0x0000;
const HOST_NAME: u8 = 0x00;

/// Returns the name in a whole message.
fn name(message: &[u8]) -> Option<String> {
    // The type and the length; the version and the random bytes.
    let mut reader = Reader(message.get(4 + 2 + 32..)?);
    let _session = reader.part8()?;
    let _ciphers = reader.part16()?;
    let _compressions = reader.part8()?;
    let mut extensions = Reader(reader.part16()?);
    loop {
        let kind = extensions.number16()?;
        let body = extensions.part16()?;
        if kind == SERVER_NAME {
            let mut names = Reader(Reader(body).part16()?);
            let kind = names.number8()?;
            let name = names.part16()?;
            let plain = kind == HOST_NAME && !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
            return plain.then(|| String::from_utf8_lossy(name).to_ascii_lowercase());
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number8(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes([self.number8()?, self.number8()?]))
    }

    fn part8(&mut self) -> Option<&'a [u8]> {
        let length = self.number8()?;
        self.part(usize::from(length))
    }

    fn part16(&mut self) -> Option<&'a [u8]> {
        let length = self.number16()?;
        self.part(usize::from(length))
    }

    fn part(&mut self, length: usize) -> Option<&'a [u8]> {
        let part = self.0.get(..length)?;
        self.0 = &self.0[length..];
        Some(part)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a ClientHello in records of so many bytes at most.
    pub fn hello(name: Option<&str>, others: &[(u16, &[u8])], record: usize) -> Vec<u8> {
        let mut extensions = Vec::new();
        let mut extend = |kind: u16, body: &[u8]| {
            extensions.extend(kind.to_be_bytes());
            extensions.extend(prefixed(body));
        };
        others.iter().for_each(|(kind, body)| extend(*kind, body));
        if let Some(name) = name {
            let entry = [&[HOST_NAME][..], &prefixed(name.as_bytes())].concat();
            extend(SERVER_NAME, &prefixed(&entry));
        }
        let fixed = [&[3, 3][..], &[7; 32], &[0], &prefixed(&[0x13, 0x01]), &[1, 0]].concat();
        let body = [fixed, prefixed(&extensions)].concat();
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        let message = [&[CLIENT_HELLO][..], &length[1..], &body].concat();
        let in_record = |part: &[u8]| [&[HANDSHAKE, 3, 1][..], &prefixed(part)].concat();
        message.chunks(record).flat_map(in_record).collect()
    }

    fn prefixed(bytes: &[u8]) -> Vec<u8> {
        [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
    }

    fn named(name: &str) -> Hello {
        Hello::Named(Some(name.to_owned()))
    }

    #[test]
    fn a_name_is_found_however_the_message_is_split() {
        for record in [1, 2, 3, 4, 5, 50, 16_384] {
            let bytes = hello(Some("Shop.Example.ORG"), &[(0xfe0d, &[1; 200]), (0x0010, b"h2")], record);
            for length in 0..bytes.len() {
                assert_eq!(look(&bytes[..length]), Hello::Incomplete, "{length} bytes in records of {record}");
            }
            assert_eq!(look(&bytes), named("shop.example.org"));
            // What follows is not looked at.
            assert_eq!(look(&[&bytes[..], b"rest"].concat()), named("shop.example.org"));
        }
        assert_eq!(look(&hello(None, &[(0xfe0d, &[1; 200])], 16_384)), Hello::Named(None));
        assert_eq!(look(&hello(None, &[], 16_384)), Hello::Named(None));
        assert_eq!(look(&hello(Some("a b"), &[], 16_384)), Hello::Named(None));
        assert_eq!(look(&hello(Some(""), &[], 16_384)), Hello::Named(None));
    }

    #[test]
    fn what_is_none_is_known_by_its_first_wrong_byte() {
        for bytes in [&b"GET"[..], &[0x16, 0x02], &[0x16, 3, 9], &[0x16, 3, 1, 0, 0], &[0x16, 3, 1, 0x41, 0]] {
            assert_eq!(look(bytes), Hello::None, "{bytes:?}");
            assert_eq!(look(&bytes[..bytes.len().min(1)]) == Hello::Incomplete, bytes[0] == HANDSHAKE);
        }
        // Another message, and one that is too long to be waited for.
        assert_eq!(look(&[0x16, 3, 1, 0, 4, 2]), Hello::None);
        assert_eq!(look(&[0x16, 3, 1, 0, 4, 1, 1, 0, 0]), Hello::None);
        assert_eq!(look(&hello(Some("a.example"), &[(1, &[0; 16_384])], 16_384)), Hello::None);
        let long = hello(Some("a.example"), &[(1, &[0; 8_000])], 1);
        assert_eq!(look(&long[..limits::CLIENT_HELLO_BYTES_MAX - 1]), Hello::Incomplete);
        assert_eq!(look(&long[..limits::CLIENT_HELLO_BYTES_MAX]), Hello::None);
    }

    #[test]
    fn lengths_that_lie_name_nobody() {
        let good = hello(Some("a.example"), &[], 16_384);
        for place in 5 + 4 + 34..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 0xff;
            // It ends, and does not panic.
            let _ = look(&bad);
        }
        for length in 4 + 34..good.len() - 5 {
            assert_eq!(name(&good[5..length]), None);
        }
    }
}
