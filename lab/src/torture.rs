// SPDX-License-Identifier: Apache-2.0
//! SIP messages that torture: those of RFC 4475, and others damaged at random.

use anyhow::{Context, Result, ensure};
use rand::RngExt;
use rand::rngs::StdRng;

use crate::node::workspace;

/// How many messages RFC 4475 has.
const CASES: usize = 49;
/// Bytes by which others are replaced.
const SHARP: &[u8] = b"\0\r\n\t :;,<>\"\\[]%=@\xff";
/// Places at which one message is damaged at most.
const DAMAGES_MAX: usize = 4;
/// Bytes that one place has at most.
const DAMAGED_BYTES_MAX: usize = 24;

/// Returns the messages of `vectors/torture` with their names.
///
/// # Errors
/// They are not there.
pub fn messages() -> Result<Vec<(String, Vec<u8>)>> {
    let mut all = Vec::new();
    for file in std::fs::read_dir(workspace().join("vectors/torture"))? {
        let file = file?.path();
        if file.extension().is_some_and(|end| end == "sip") {
            let name = file.file_stem().and_then(|name| name.to_str()).context("a name")?;
            all.push((name.to_owned(), std::fs::read(&file)?));
        }
    }
    all.sort();
    ensure!(all.len() == CASES, "{} messages", all.len());
    Ok(all)
}

/// Returns whether a module that answers for a server may take a message: one whose sender only keeps something alive.
pub fn is_answerable(message: &[u8]) -> bool {
    let begins = |text: &str| message.starts_with(text.as_bytes());
    begins("\r\n") && message.len() <= 4 || [0, 1] == message[..message.len().min(2)] || {
        let is_keep_alive = message.windows(10).any(|bytes| bytes.eq_ignore_ascii_case(b"keep-alive"));
        begins("OPTIONS ") || begins("REGISTER ") || begins("NOTIFY ") && is_keep_alive
    }
}

/// Damages a message in some places: other bytes, some less, some more, some twice.
pub fn damage(message: &mut Vec<u8>, random: &mut StdRng) {
    for _ in 0..random.random_range(1..=DAMAGES_MAX) {
        if message.is_empty() {
            return;
        }
        let at = random.random_range(0..message.len());
        let end = (at + random.random_range(1..=DAMAGED_BYTES_MAX)).min(message.len());
        match random.random_range(0..6) {
            0 => message[at] = SHARP[random.random_range(0..SHARP.len())],
            1 => message[at] ^= 1 << random.random_range(0..8),
            2 => drop(message.drain(at..end)),
            3 => {
                let twice = message[at..end].to_vec();
                drop(message.splice(at..at, twice));
            }
            4 => message.insert(at, SHARP[random.random_range(0..SHARP.len())]),
            _ => message.truncate(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn messages_are_told_from_keep_alives() {
        let all = messages().unwrap();
        let answerable = all.iter().filter(|(_, message)| is_answerable(message)).count();
        assert_eq!(answerable, 23, "REGISTER and OPTIONS of all sorts");
        for text in ["\r\n\r\n", "\r\n", "\0\x01xx", "NOTIFY sip:a SIP/2.0\r\nEvent: Keep-Alive\r\n"] {
            assert!(is_answerable(text.as_bytes()), "{text}");
        }
        for text in
            ["", "\0", "\r\nINVITE", "NOTIFY sip:a SIP/2.0\r\n", "INVITE sip:a SIP/2.0\r\nEvent: keep-alive\r\n"]
        {
            assert!(!is_answerable(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn damage_is_the_same_for_a_seed_and_all_kinds_come() {
        let whole = vec![b'x'; 100];
        let damaged = |seed| {
            let mut message = whole.clone();
            damage(&mut message, &mut StdRng::seed_from_u64(seed));
            message
        };
        assert_eq!(damaged(1), damaged(1));
        let lengths: std::collections::BTreeSet<usize> = (0..200).map(|seed| damaged(seed).len()).collect();
        assert!(
            lengths.contains(&100)
                && lengths.iter().any(|length| *length < 50)
                && lengths.iter().any(|length| *length > 110)
        );
    }
}
