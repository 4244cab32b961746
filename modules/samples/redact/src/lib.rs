// SPDX-License-Identifier: Apache-2.0
//! Takes a word out of TCP streams on their way: each of its letters becomes a `*`. The word is the property `word`.
//!
//! Bytes keep their number, so that everything that counts them goes on to fit. A word that is split over two reads is
//! found too: the bytes that may be its beginning are held back until more come, or the stream ends.

use std::collections::HashMap;

use netserv_server_sdk::tcp::{Action, Connection, Decision, Flow, Side, TcpModule, send};
use netserv_server_sdk::{counters, properties, tcp_module};

struct Redact {
    word: Vec<u8>,
    held: HashMap<(Connection, bool), Vec<u8>>,
}

impl Default for Redact {
    fn default() -> Redact {
        let word = properties::get("word").unwrap_or_else(|| "secret".to_owned());
        Redact { word: word.into_bytes(), held: HashMap::new() }
    }
}

impl TcpModule for Redact {
    fn connect(&mut self, _: Connection, flow: &Flow) -> Decision {
        if flow.intercepted && !self.word.is_empty() { Decision::Accept } else { Decision::Refuse }
    }

    fn data(&mut self, id: Connection, source: Side, bytes: &[u8]) -> Action {
        let held = self.held.remove(&(id, source == Side::Client)).unwrap_or_default();
        let had = held.len();
        let mut all = held;
        all.extend_from_slice(bytes);
        let found = blot_out(&mut all, &self.word);
        if found > 0 {
            // A counter over its quota costs nothing but the count.
            let _ = counters::add("words", found);
        }
        let keep = beginning_of(&all, &self.word);
        if had == 0 && found == 0 && keep == 0 {
            return Action::Pass;
        }
        let rest = all.split_off(all.len() - keep);
        if !rest.is_empty() {
            self.held.insert((id, source == Side::Client), rest);
        }
        Action::Replace(all)
    }

    fn end(&mut self, id: Connection, source: Side) {
        if let Some(rest) = self.held.remove(&(id, source == Side::Client)) {
            let other = if source == Side::Client { Side::Server } else { Side::Client };
            // Whoever went away needs no rest.
            let _ = send(id, other, &rest);
        }
    }

    /// What is held back goes along: the length of the client's part, both parts.
    fn export(&mut self, id: Connection) -> Option<Vec<u8>> {
        let [client, server] = [true, false].map(|is_client| self.held.remove(&(id, is_client)).unwrap_or_default());
        Some([&u32::try_from(client.len()).ok()?.to_be_bytes()[..], &client, &server].concat())
    }

    fn import(&mut self, id: Connection, _: Option<&Flow>, state: &[u8]) -> bool {
        let Some((length, held)) = state.split_first_chunk() else { return false };
        let length = u32::from_be_bytes(*length);
        let Some((client, server)) = usize::try_from(length).ok().and_then(|length| held.split_at_checked(length))
        else {
            return false;
        };
        for (is_client, held) in [(true, client), (false, server)].into_iter().filter(|(_, held)| !held.is_empty()) {
            self.held.insert((id, is_client), held.to_vec());
        }
        true
    }

    fn closed(&mut self, id: Connection) {
        self.held.retain(|(of, _), _| *of != id);
    }
}

tcp_module!(Redact);

/// Replaces each `word` in `text`. Returns how many there were.
fn blot_out(text: &mut [u8], word: &[u8]) -> u64 {
    let mut found = 0;
    let mut start = 0;
    while let Some(at) = memchr::memmem::find(&text[start..], word) {
        text[start + at..start + at + word.len()].fill(b'*');
        found += 1;
        start += at + word.len();
    }
    found
}

/// Returns how many bytes at the end of `text` may be the beginning of `word`.
fn beginning_of(text: &[u8], word: &[u8]) -> usize {
    (1..word.len()).rev().find(|length| text.ends_with(&word[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_back_goes_to_the_next_version() {
        let [mut old, mut new] = [(); 2].map(|()| Redact { word: b"secret".to_vec(), held: HashMap::new() });
        old.held.extend([((7, true), b"sec".to_vec()), ((7, false), b"s".to_vec()), ((8, true), b"se".to_vec())]);
        let said = old.export(7).unwrap();
        assert!(new.import(7, None, &said));
        let expected = HashMap::from([((7, true), b"sec".to_vec()), ((7, false), b"s".to_vec())]);
        assert_eq!((new.held, old.held.len()), (expected, 1));
        for bad in [&b""[..], b"\0\0\0", b"\0\0\0\x04abc"] {
            assert!(!Redact { word: Vec::new(), held: HashMap::new() }.import(7, None, bad));
        }
    }

    #[test]
    fn words_are_blotted_out_and_beginnings_are_known() {
        let mut text = b"a secret and a secretary".to_vec();
        assert_eq!(blot_out(&mut text, b"secret"), 2);
        assert_eq!(text, b"a ****** and a ******ary");
        assert_eq!(beginning_of(b"my sec", b"secret"), 3);
        assert_eq!(beginning_of(b"my sece", b"secret"), 0);
        assert_eq!(beginning_of(b"", b"secret"), 0);
    }
}
