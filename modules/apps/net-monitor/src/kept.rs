// SPDX-License-Identifier: Apache-2.0
//! What is kept in kv state: an entry for each source, destination and time to live, and one of totals.
//!
//! `10.1.0.2 10.2.0.1 61` has `300 3 420`: an estimate, the packets that were looked at, and their bytes. An entry of one number is
//! an estimate of a version that counted no bytes. `total` has seven numbers, and spaces behind them.

use std::fmt;
use std::net::IpAddr;

/// The key of the totals.
pub const TOTALS: &[u8] = b"total";

/// Source, destination, time to live.
pub type Key = (IpAddr, IpAddr, u8);

/// What was counted of one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Packets, with those that each one that was looked at stands for.
    pub estimate: u64,
    /// Packets that were looked at.
    pub packets: u64,
    /// Bytes of these, from their IP headers on.
    pub bytes: u64,
}

/// What was counted of all packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets that the module was given.
    pub seen: u64,
    /// Packets that were looked at, and are in an entry.
    pub counted: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Packets that were looked at, and have no IP header that is whole.
    pub not_ip: u64,
    /// Packets that were looked at, and for whose entry there was no room.
    pub no_room: u64,
    /// Bytes of these.
    pub no_room_bytes: u64,
    /// One packet in how many was looked at last; none for 0.
    pub sample: u64,
}

/// Returns what the name of an entry says; nothing for another entry.
pub fn key(name: &[u8]) -> Option<Key> {
    let mut words = std::str::from_utf8(name).ok()?.split(' ');
    let key = (words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    words.next().is_none().then_some(key)
}

impl Sum {
    /// Returns what an entry says.
    pub fn parse(value: &[u8]) -> Option<Sum> {
        match numbers(value)?[..] {
            [estimate, packets, bytes] => Some(Sum { estimate, packets, bytes }),
            [estimate] => Some(Sum { estimate, packets: estimate, bytes: 0 }),
            _ => None,
        }
    }

    /// Adds another one, wrapping.
    pub fn add(&mut self, other: Sum) {
        self.estimate = self.estimate.wrapping_add(other.estimate);
        self.packets = self.packets.wrapping_add(other.packets);
        self.bytes = self.bytes.wrapping_add(other.bytes);
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.estimate, self.packets, self.bytes)
    }
}

impl Totals {
    /// Returns what the entry says.
    pub fn parse(value: &[u8]) -> Option<Totals> {
        let [seen, counted, bytes, not_ip, no_room, no_room_bytes, sample] = numbers(value)?[..] else { return None };
        Some(Totals { seen, counted, bytes, not_ip, no_room, no_room_bytes, sample })
    }

    /// Adds what came since, whose sample holds.
    pub fn add(&mut self, since: Totals) {
        self.seen = self.seen.wrapping_add(since.seen);
        self.counted = self.counted.wrapping_add(since.counted);
        self.bytes = self.bytes.wrapping_add(since.bytes);
        self.not_ip = self.not_ip.wrapping_add(since.not_ip);
        self.no_room = self.no_room.wrapping_add(since.no_room);
        self.no_room_bytes = self.no_room_bytes.wrapping_add(since.no_room_bytes);
        self.sample = since.sample;
    }

    /// Returns packets that were not looked at.
    pub fn sampled_away(&self) -> u64 {
        self.seen.saturating_sub(self.counted).saturating_sub(self.not_ip).saturating_sub(self.no_room)
    }

    /// Returns the entry: always as long, so that it has room where nothing else has.
    pub fn to_bytes(self) -> Vec<u8> {
        let Totals { seen, counted, bytes, not_ip, no_room, no_room_bytes, sample } = self;
        let text = format!("{seen} {counted} {bytes} {not_ip} {no_room} {no_room_bytes} {sample}");
        format!("{text:TOTALS_CHARS$}").into_bytes()
    }
}

fn numbers(value: &[u8]) -> Option<Vec<u64>> {
    let text = std::str::from_utf8(value).ok()?.trim_end_matches(' ');
    text.split(' ').map(|number| number.parse().ok()).collect()
}

/// Seven numbers of 20 digits, with spaces between.
const TOTALS_CHARS: usize = 7 * 20 + 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_they_were_written() {
        let sum = Sum { estimate: 300, packets: 3, bytes: u64::MAX };
        assert_eq!(Sum::parse(sum.to_string().as_bytes()), Some(sum));
        assert_eq!(Sum::parse(b"7"), Some(Sum { estimate: 7, packets: 7, bytes: 0 }));
        for wrong in [&b""[..], b" ", b"7 8", b"1 2 3 4", b"-1", b"x", b"\xff", b"1  2", b"18446744073709551616"] {
            assert_eq!(Sum::parse(wrong), None, "{wrong:?}");
        }
        let most = Totals {
            seen: u64::MAX,
            counted: u64::MAX,
            bytes: u64::MAX,
            not_ip: u64::MAX,
            no_room: u64::MAX,
            no_room_bytes: u64::MAX,
            sample: u64::MAX,
        };
        for totals in [Totals { seen: 9, counted: 1, sample: 5, ..Totals::default() }, most] {
            assert_eq!(Totals::parse(&totals.to_bytes()), Some(totals));
            assert_eq!(totals.to_bytes().len(), TOTALS_CHARS);
        }
        assert_eq!(Totals::parse(b"1 2 3 4 5 6"), None);
    }

    #[test]
    fn names_of_entries_are_addresses_and_a_time_to_live() {
        let [a, b] = ["10.1.0.2", "2001:db8::1"].map(|text| text.parse::<IpAddr>().unwrap());
        assert_eq!(key(b"10.1.0.2 2001:db8::1 255"), Some((a, b, 255)));
        for wrong in [TOTALS, b"", b"10.1.0.2 10.1.0.2", b"10.1.0.2 10.1.0.2 256", b"10.1.0.2 10.1.0.2 1 ", b"\xff"] {
            assert_eq!(key(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn what_was_not_looked_at_is_the_rest() {
        let mut totals = Totals { seen: 10, counted: 2, not_ip: 1, no_room: 3, ..Totals::default() };
        assert_eq!(totals.sampled_away(), 4);
        totals.add(Totals { seen: 2, counted: 2, bytes: 5, sample: 1, ..Totals::default() });
        assert_eq!((totals.sampled_away(), totals.bytes, totals.sample), (4, 5, 1));
        assert_eq!(Totals { counted: 1, ..Totals::default() }.sampled_away(), 0);
    }
}
