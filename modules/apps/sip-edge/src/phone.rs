// SPDX-License-Identifier: Apache-2.0
//! What is known of a phone's connection, and how the next version of the module is told.

use std::net::SocketAddr;

use netserv_sip::Rport;

use crate::framing::Framing;

/// A phone's connection.
#[derive(Debug)]
pub struct Phone {
    /// Where the phone is.
    pub at: SocketAddr,
    /// What it sends.
    pub to_server: Framing,
    /// What the server sends.
    pub to_client: Framing,
    /// Answers of ours that wait until the server's message is over.
    pub answers: Vec<u8>,
    /// What the server says to `rport` on it.
    pub rport: Rport,
    /// When something went on to the server last; below 0 if the version before sent it.
    heard_ms: i64,
}

impl Phone {
    /// Builds one that has just come.
    pub fn new(at: SocketAddr, now_ms: u64) -> Phone {
        let (to_server, to_client) = (Framing::default(), Framing::default());
        let rport = Rport::Unknown;
        Phone { at, to_server, to_client, answers: Vec::new(), rport, heard_ms: now_ms.cast_signed() }
    }

    /// Takes note that something goes on to the server.
    pub fn heard(&mut self, now_ms: u64) {
        self.heard_ms = now_ms.cast_signed();
    }

    /// Returns whether the server has heard nothing for so long; 0 is never.
    pub fn is_silent(&self, silence_s: u32, now_ms: u64) -> bool {
        silence_s > 0 && self.silence_ms(now_ms) >= u64::from(silence_s) * 1000
    }

    /// Returns how many bytes are held of it.
    pub fn held(&self) -> usize {
        self.to_server.held() + self.to_client.held() + self.answers.len()
    }

    /// Returns it as bytes: the milliseconds in which the server has heard nothing (8), the lengths of both directions' states (4 each),
    /// these, and the answers. Numbers are big-endian.
    pub fn to_bytes(&self, now_ms: u64) -> Option<Vec<u8>> {
        let [to_server, to_client] = [self.to_server.to_bytes(), self.to_client.to_bytes()];
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).ok().map(u32::to_be_bytes);
        let lengths = [length(&to_server)?, length(&to_client)?].concat();
        Some([&self.silence_ms(now_ms).to_be_bytes()[..], &lengths, &to_server, &to_client, &self.answers].concat())
    }

    /// Returns the one that bytes say.
    pub fn from_bytes(at: SocketAddr, bytes: &[u8], now_ms: u64) -> Option<Phone> {
        let (silence_ms, rest) = bytes.split_first_chunk()?;
        let (first, rest) = rest.split_first_chunk()?;
        let (second, rest) = rest.split_first_chunk()?;
        let (to_server, rest) = rest.split_at_checked(u32::from_be_bytes(*first).try_into().ok()?)?;
        let (to_client, answers) = rest.split_at_checked(u32::from_be_bytes(*second).try_into().ok()?)?;
        Some(Phone {
            at,
            to_server: Framing::from_bytes(to_server)?,
            to_client: Framing::from_bytes(to_client)?,
            answers: answers.to_vec(),
            // It says so again with its next answer.
            rport: Rport::Unknown,
            heard_ms: now_ms.cast_signed().saturating_sub_unsigned(u64::from_be_bytes(*silence_ms)),
        })
    }

    fn silence_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_add_signed(self.heard_ms.saturating_neg())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> SocketAddr {
        "192.0.2.9:40000".parse().unwrap()
    }

    /// Goal: a new version has the server hear each phone when it is due, not all of them at once, nor later.
    #[test]
    fn the_next_version_knows_for_how_long_the_server_has_heard_nothing() {
        let mut phone = Phone::new(at(), 1000);
        assert!(!phone.is_silent(45, 45_999) && phone.is_silent(45, 46_000) && !phone.is_silent(0, u64::MAX));
        phone.heard(100_000);
        phone.answers = b"\r\n".to_vec();
        phone.to_server.push(b"OPTIONS", |_| true);
        // Versions begin to count anew.
        let next = Phone::from_bytes(at(), &phone.to_bytes(130_000).unwrap(), 2000).unwrap();
        assert_eq!((next.held(), &next.answers[..]), (phone.held(), &b"\r\n"[..]));
        assert!(!next.is_silent(45, 16_999) && next.is_silent(45, 17_000));
        let third = Phone::from_bytes(at(), &next.to_bytes(12_000).unwrap(), 0).unwrap();
        assert!(!third.is_silent(45, 4_999) && third.is_silent(45, 5_000));
    }

    #[test]
    fn what_is_no_state_is_refused() {
        let bytes = Phone::new(at(), 0).to_bytes(0).unwrap();
        assert!((0..bytes.len()).all(|length| Phone::from_bytes(at(), &bytes[..length], 0).is_none()));
        let mut long = bytes.clone();
        long[8..12].fill(0xff);
        assert!(Phone::from_bytes(at(), &long, 0).is_none());
        let mut old = bytes;
        old[..8].fill(0xff);
        assert!(Phone::from_bytes(at(), &old, 0).unwrap().is_silent(45, 0));
    }
}
