// SPDX-License-Identifier: Apache-2.0
//! A look at all blocks of a file, by which entries are found.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::block::{self, HEADER_BYTES, Head, Header, REST, place};
use super::entry::{Entry, Rest, block_counts};
use super::index::Index;
use super::pool::{Blocks, Pool};
use crate::storage::Disk;
use crate::storage::limits::CACHE_BLOCK_BYTES;

/// What a header says: the part's number, the block's place in it, and the block.
type Seen = (u64, u32, u32);

/// The heads that were seen, by age; as many of them as an index may have.
struct Heads<'a> {
    by_age: BTreeMap<(u64, u32, u64), SeenHead<'a>>,
    cost: u64,
}

impl<'a> Heads<'a> {
    fn push(&mut self, head: Head, text_bytes: usize, first: &'a [Seen], cost_max: u64) {
        self.cost += head.cost();
        self.by_age.insert((head.put_at, head.revision, first[0].0), (head, text_bytes, first));
        while self.cost > cost_max
            && let Some((_, (oldest, ..))) = self.by_age.pop_first()
        {
            self.cost -= oldest.cost();
        }
    }
}

/// A head, the bytes of its texts, and the blocks of its part.
type SeenHead<'a> = (Head, usize, &'a [Seen]);

/// Finds the entries of a file. Returns the highest number of a part, and how many reads failed.
pub(super) fn scan(disk: &dyn Disk, pool: &Arc<Pool>, index: &mut Index) -> (u64, u64) {
    let (headers, failures) = read_headers(disk, pool);
    let last = headers.last().map_or(0, |(number, _, _)| *number);
    let mut heads = Heads { by_age: BTreeMap::new(), cost: 0 };
    let mut rests: BTreeMap<u64, &[Seen]> = BTreeMap::new();
    for group in headers.chunk_by(|one, other| one.0 == other.0) {
        let (first, rest) = group.split_at(group.partition_point(|(_, at, _)| at & REST == 0));
        if first.first().is_some_and(|(_, at, _)| *at == 0)
            && let Some((head, text_bytes)) = read_head(disk, first[0].2, first[0].0)
        {
            heads.push(head, text_bytes, first, index.cost_max());
        }
        if !rest.is_empty() {
            rests.insert(group[0].0, rest);
        }
    }
    // Those that were put first are used first; of the heads of one body, the last one counts.
    let mut heads: Vec<_> = heads.by_age.into_values().collect();
    heads.sort_by_key(|(head, _, first)| (Reverse(head.revision), head.put_at, first[0].0));
    let mut entries = vec![];
    for (head, text_bytes, first) in heads {
        let rest = rests.get(&head.rest_number).copied().unwrap_or_default();
        if let Some(entry) = whole(head, text_bytes, first, rest, pool) {
            entries.push(entry);
        }
    }
    entries.sort_by_key(|entry| (entry.head.put_at, entry.head.revision, entry.number));
    for entry in entries {
        index.insert(Arc::new(entry));
    }
    (last, failures)
}

/// Returns the headers of all blocks by number and place, and how many reads failed.
fn read_headers(disk: &dyn Disk, pool: &Pool) -> (Vec<Seen>, u64) {
    // Room for all at once, since a vector that grows takes up to three times as much. What is not used costs nothing.
    let mut headers = Vec::with_capacity(pool.len() as usize);
    let mut failures = 0;
    for block in 0..pool.len() {
        let mut bytes = [0; HEADER_BYTES];
        match disk.read_at(place(block), &mut bytes) {
            Ok(()) => {
                let header = Header::parse(&bytes);
                // Without its head, an entry is none.
                if let Some(header) = header.filter(|header| header.index > 0 || !header.is_forgotten) {
                    headers.push((header.number, header.index, block));
                }
            }
            Err(_) => failures += 1,
        }
    }
    headers.sort_unstable();
    // Of two blocks that claim the same place, the first one is as good.
    headers.dedup_by_key(|(number, index, _)| (*number, *index));
    (headers, failures)
}

fn whole(head: Head, text_bytes: usize, first: &[Seen], rest: &[Seen], pool: &Arc<Pool>) -> Option<Entry> {
    let (first_count, rest_count) = block_counts(&head, text_bytes)?;
    let number = first[0].0;
    let first = blocks(first, first_count, 0)?;
    let rest = blocks(rest, rest_count, REST)?;
    let first = Blocks::claim(first, pool)?;
    let rest = Blocks::claim(rest, pool)?;
    Entry::new(head, text_bytes, number, first, Rest::new(rest), true)
}

/// Returns the blocks if they are so many, without a gap.
fn blocks(seen: &[Seen], count: usize, base: u32) -> Option<Vec<u32>> {
    let is_whole = seen.len() == count && seen.iter().zip(0..).all(|((_, at, _), place)| *at == place | base);
    is_whole.then(|| seen.iter().map(|(_, _, block)| *block).collect())
}

fn read_head(disk: &dyn Disk, block: u32, number: u64) -> Option<(Head, usize)> {
    let mut bytes = vec![0; CACHE_BLOCK_BYTES];
    disk.read_at(place(block), &mut bytes).ok()?;
    Head::parse(block::payload(&bytes, number, 0)?)
}
