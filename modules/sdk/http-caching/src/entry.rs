// SPDX-License-Identifier: Apache-2.0
//! What is kept beside a body, as bytes.

use std::time::Duration;

use crate::limits::META_BYTES_MAX;
use crate::stored::Stored;

/// What is stored under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A response, whose body is the entry's.
    Stored(Stored),
    /// Names of headers: each variant has a [key of its own](crate::variant_key).
    Variants(Vec<String>),
    /// Responses are not stored: each request goes to the origin, and none waits for another.
    Pass,
}

impl Entry {
    /// Returns it as bytes.
    ///
    /// Nothing if they are more than [`META_BYTES_MAX`] or a header has the end of a line.
    #[must_use]
    pub fn encode(&self) -> Option<Vec<u8>> {
        let bytes = match self {
            Entry::Stored(stored) => encode(stored)?,
            Entry::Variants(names) => format!("{VARIANTS} {}\n", names.join(",")).into_bytes(),
            Entry::Pass => format!("{PASS}\n").into_bytes(),
        };
        (bytes.len() <= META_BYTES_MAX).then_some(bytes)
    }

    /// Reads what [`Entry::encode`] wrote; nothing if it is something else.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Entry> {
        let mut lines = bytes.strip_suffix(b"\n")?.split(|byte| *byte == b'\n');
        let first = std::str::from_utf8(lines.next()?).ok()?;
        let (kind, rest) = first.split_once(' ').unwrap_or((first, ""));
        match kind {
            PASS => Some(Entry::Pass),
            VARIANTS => Some(Entry::Variants(rest.split(',').map(str::to_owned).collect())),
            RESPONSE => {
                let mut numbers = rest.split(' ').map(|number| number.parse::<u64>().ok());
                let mut next = || numbers.next().flatten();
                Some(Entry::Stored(Stored {
                    status: u16::try_from(next()?).ok()?,
                    received: Duration::from_millis(next()?),
                    age: Duration::from_millis(next()?),
                    lifetime: Duration::from_millis(next()?),
                    stale_while_revalidate: next()?,
                    stale_if_error: next()?,
                    forbids_stale: next()? == 1,
                    validates_always: next()? == 1,
                    is_for_all: next()? == 1,
                    is_personal: next()? == 1,
                    number: next()?,
                    headers: lines.map(header).collect::<Option<_>>()?,
                }))
            }
            _ => None,
        }
    }
}

fn encode(stored: &Stored) -> Option<Vec<u8>> {
    let numbers = format!(
        "{RESPONSE} {} {} {} {} {} {} {} {} {} {} {}\n",
        stored.status,
        stored.received.as_millis(),
        stored.age.as_millis(),
        stored.lifetime.as_millis(),
        stored.stale_while_revalidate,
        stored.stale_if_error,
        u8::from(stored.forbids_stale),
        u8::from(stored.validates_always),
        u8::from(stored.is_for_all),
        u8::from(stored.is_personal),
        stored.number,
    );
    let mut bytes = numbers.into_bytes();
    for (name, value) in &stored.headers {
        if name.contains([':', '\n', '\r']) || value.iter().any(|byte| matches!(byte, b'\n' | b'\r' | 0)) {
            return None;
        }
        bytes.extend([name.as_bytes(), b":", value, b"\n"].concat());
    }
    Some(bytes)
}

fn header(line: &[u8]) -> Option<(String, Vec<u8>)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    Some((String::from_utf8_lossy(&line[..colon]).into_owned(), line.get(colon + 1..)?.to_vec()))
}

const RESPONSE: &str = "response/2";
const VARIANTS: &str = "variants/1";
const PASS: &str = "pass/1";

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(headers: &[(&str, &str)]) -> Stored {
        Stored {
            status: 200,
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect(),
            received: Duration::from_millis(1_700_000_000_123),
            age: Duration::from_secs(3),
            lifetime: Duration::from_secs(60),
            stale_while_revalidate: 7,
            stale_if_error: 8,
            forbids_stale: true,
            validates_always: false,
            is_for_all: true,
            is_personal: false,
            number: u64::MAX,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for entry in [
            Entry::Stored(stored(&[("a", "b: c"), ("Empty", ""), ("é", "ü")])),
            Entry::Stored(stored(&[])),
            Entry::Variants(vec!["accept".to_owned(), "foo".to_owned()]),
            Entry::Pass,
        ] {
            let bytes = entry.encode().unwrap();
            assert_eq!(Entry::decode(&bytes), Some(entry));
            for end in 0..bytes.len() {
                // What is cut is something else or nothing, and never a panic.
                let _ = Entry::decode(&bytes[..end]);
            }
        }
    }

    #[test]
    fn what_cannot_be_kept_is_not() {
        assert!(Entry::Stored(stored(&[("a", "1\nb:2")])).encode().is_none());
        assert!(Entry::Stored(stored(&[("a:b", "1")])).encode().is_none());
        let longest = META_BYTES_MAX - Entry::Stored(stored(&[])).encode().unwrap().len() - "a:\n".len();
        assert!(Entry::Stored(stored(&[("a", &"x".repeat(longest))])).encode().is_some());
        assert!(Entry::Stored(stored(&[("a", &"x".repeat(longest + 1))])).encode().is_none());
        for damaged in [
            "",
            "\n",
            "response/2\n",
            "response/2 99999 1 1 1 1 1 1 1 1 1 1\n",
            "response/1 200 1 1 1 1 1 1 1\n",
            "pass/1",
        ] {
            assert_eq!(Entry::decode(damaged.as_bytes()), None, "{damaged:?}");
        }
    }
}
