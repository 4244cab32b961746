// SPDX-License-Identifier: Apache-2.0
//! All that was counted, added up by what the page shows it by.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::IpAddr;

use net_monitor::kept::{Key, Sum, key};

use crate::limits::ROWS_MAX;

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count {
    /// Bytes, by which rows are ordered first.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
}

/// What was counted. Entries are added in the order of their names, so those of a source follow each other.
#[derive(Debug, Default)]
pub struct Table {
    /// Entries.
    pub keys: u64,
    /// All of them together.
    pub all: Count,
    flows: Top<Key>,
    sources: Top<IpAddr>,
    /// The source of the last entries.
    source: Option<(IpAddr, Count)>,
    destinations: BTreeMap<IpAddr, Count>,
    ttls: BTreeMap<u8, Count>,
}

/// The largest of many, the largest first, and the others.
#[derive(Debug, PartialEq, Eq)]
pub struct Largest<K> {
    /// At most [`ROWS_MAX`].
    pub rows: Vec<(K, Count)>,
    /// How many others there are.
    pub others: u64,
    /// The others together.
    pub rest: Count,
}

impl Table {
    /// Adds an entry of kv state, if it is a count.
    pub fn add(&mut self, name: &[u8], value: &[u8]) {
        let (Some(flow), Some(sum)) = (key(name), Sum::parse(value)) else { return };
        let count = Count { bytes: sum.bytes, packets: sum.packets };
        let (source, destination, ttl) = flow;
        self.keys += 1;
        self.all.add(count);
        self.flows.add(flow, count);
        match &mut self.source {
            Some((last, sum)) if *last == source => sum.add(count),
            Some(_) | None => {
                let ended = self.source.replace((source, count));
                self.sources.extend(ended);
            }
        }
        self.destinations.entry(destination).or_default().add(count);
        self.ttls.entry(ttl).or_default().add(count);
    }

    /// Returns the largest by source, destination and time to live.
    pub fn flows(&self) -> Largest<Key> {
        self.flows.largest()
    }

    /// Returns the largest by source.
    pub fn sources(&self) -> Largest<IpAddr> {
        let mut sources = self.sources.clone();
        sources.extend(self.source);
        sources.largest()
    }

    /// Returns the largest by destination.
    pub fn destinations(&self) -> Largest<IpAddr> {
        largest(&self.destinations)
    }

    /// Returns the largest by time to live.
    pub fn ttls(&self) -> Largest<u8> {
        largest(&self.ttls)
    }
}

impl Count {
    fn add(&mut self, other: Count) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.packets = self.packets.saturating_add(other.packets);
    }

    fn less(self, other: Count) -> Count {
        Count { bytes: self.bytes.saturating_sub(other.bytes), packets: self.packets.saturating_sub(other.packets) }
    }
}

fn largest<K: Ord + Copy>(counts: &BTreeMap<K, Count>) -> Largest<K> {
    let mut top = Top::default();
    top.extend(counts.iter().map(|(key, count)| (*key, *count)));
    top.largest()
}

/// The largest of what was added so far. Of equal ones the one with the smaller key counts as larger.
#[derive(Clone, Debug)]
struct Top<K> {
    smallest_first: BinaryHeap<Reverse<(Count, Reverse<K>)>>,
    seen: u64,
    all: Count,
}

impl<K: Ord> Default for Top<K> {
    fn default() -> Top<K> {
        Top { smallest_first: BinaryHeap::new(), seen: 0, all: Count::default() }
    }
}

impl<K: Ord + Copy> Top<K> {
    fn add(&mut self, key: K, count: Count) {
        self.seen += 1;
        self.all.add(count);
        self.smallest_first.push(Reverse((count, Reverse(key))));
        if self.smallest_first.len() > ROWS_MAX {
            self.smallest_first.pop();
        }
    }

    fn extend(&mut self, counts: impl IntoIterator<Item = (K, Count)>) {
        counts.into_iter().for_each(|(key, count)| self.add(key, count));
    }

    fn largest(&self) -> Largest<K> {
        // The order of what is reversed: the largest comes first.
        let sorted = self.smallest_first.clone().into_sorted_vec();
        let rows: Vec<(K, Count)> = sorted.into_iter().map(|Reverse((count, Reverse(key)))| (key, count)).collect();
        let mut shown = Count::default();
        rows.iter().for_each(|(_, count)| shown.add(*count));
        Largest { others: self.seen - rows.len() as u64, rest: self.all.less(shown), rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(entries: &[(&str, &str)]) -> Table {
        let mut table = Table::default();
        entries.iter().for_each(|(name, value)| table.add(name.as_bytes(), value.as_bytes()));
        table
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn entries_are_added_up_by_each_of_their_parts() {
        let table = table(&[
            ("10.1.0.1 10.2.0.1 61", "3 3 300"),
            ("10.1.0.1 10.2.0.1 60", "1 1 900"),
            ("10.1.0.2 10.2.0.1 61", "500 5 400"),
            ("2001:db8::1 2001:db8::2 61", "7"),
            ("total", "1 2 3 4 5 6 7   "),
            ("something else", "1 1 1"),
            ("10.1.0.1 10.2.0.1 63", "nonsense"),
        ]);
        assert_eq!((table.keys, table.all), (4, Count { bytes: 1600, packets: 16 }));
        let sources = table.sources();
        let rows = [("10.1.0.1", 1200, 4), ("10.1.0.2", 400, 5), ("2001:db8::1", 0, 7)];
        assert_eq!(sources.rows, rows.map(|(text, bytes, packets)| (address(text), Count { bytes, packets })));
        assert_eq!((sources.others, sources.rest), (0, Count::default()));
        assert_eq!(table.destinations().rows[0], (address("10.2.0.1"), Count { bytes: 1600, packets: 9 }));
        let ttls = [(60, Count { bytes: 900, packets: 1 }), (61, Count { bytes: 700, packets: 15 })];
        assert_eq!(table.ttls().rows, ttls);
        let flows = table.flows();
        assert_eq!(flows.rows[0].0, (address("10.1.0.1"), address("10.2.0.1"), 60));
        assert_eq!(flows.rows.len(), 4);
    }

    #[test]
    fn what_is_beyond_the_rows_is_a_sum() {
        let mut table = Table::default();
        let most = u16::try_from(ROWS_MAX).unwrap() + 7;
        for number in 1..=most {
            let [high, low] = number.to_be_bytes();
            table.add(format!("10.0.{high}.{low} 10.2.0.1 {low}").as_bytes(), format!("2 2 {number}").as_bytes());
        }
        for (rows, others, rest) in [
            (table.sources().rows.len(), table.sources().others, table.sources().rest),
            (table.ttls().rows.len(), table.ttls().others, table.ttls().rest),
        ] {
            assert_eq!((rows, others, rest), (ROWS_MAX, 7, Count { bytes: 28, packets: 14 }));
        }
        assert_eq!(table.destinations().rows.len(), 1);
        let flows = table.flows();
        assert_eq!((flows.rows.len(), flows.others, flows.rest), (ROWS_MAX, 7, Count { bytes: 28, packets: 14 }));
        assert_eq!(flows.rows[0].1.bytes, u64::from(most));
    }

    #[test]
    fn equal_rows_are_in_the_order_of_their_keys() {
        let mut top = Top::default();
        (0..=255_u8).rev().for_each(|key| top.add(key, Count { bytes: 1, packets: 1 }));
        let keys: Vec<u8> = top.largest().rows.into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, (0..100).collect::<Vec<u8>>());
    }
}
