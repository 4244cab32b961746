// SPDX-License-Identifier: Apache-2.0
//! Finds the filters that a packet matches, at a cost that does not grow with the number of filters.
//!
//! Tuple space search: filters that look at the same bits share a tuple, and a look-up costs one hash per tuple, of which
//! there are at most [`FILTER_TUPLES_MAX`]. When they run out, new filters are filed under coarser masks. What is found
//! under a mask is always compared again, so that coarse masks and equal sums cost time and never change what is found.
//!
//! Packets are anybody's, but only filters are stored: nobody can make a look-up longer by the packets that he sends.
//! Filters are admitted, yet a user could choose his so that their sums are equal, and make look-ups of others longer;
//! the secret seed of the sums is against that. Filters with equal masks and equal values under them are found one after
//! the other, and a user can only pile up such filters for his own prefixes.

mod mask;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use mask::{Bits, COARSE_MASKS, Grain, Mask, pattern};
use table::Table;

use crate::effect::FilterId;
use crate::limits::FILTER_TUPLES_MAX;
use crate::{Filter, Flow};

/// Filters by the bits that they look at, each with a value of the caller's.
#[derive(Clone, Debug)]
pub struct FilterIndex<T> {
    secrets: [u64; 4],
    tuples: Vec<Tuple>,
    /// The first entry for each sum of a tuple and what stands under its mask.
    sums: Table,
    entries: Vec<Option<Entry<T>>>,
    free: Vec<u32>,
    by_id: BTreeMap<FilterId, u32>,
}

/// The filters with one mask.
#[derive(Clone, Debug)]
struct Tuple {
    mask: Mask,
    bits: Bits,
    /// What the mask adds to sums.
    salt: u64,
    filters: usize,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    id: FilterId,
    filter: Filter,
    value: T,
    mask: Mask,
    sum: u64,
    /// The next one with the same sum.
    next: Option<u32>,
    /// What must stand under the mask.
    wanted: Bits,
    /// Everything that the filter asks for is in that.
    is_exact: bool,
}

impl<T: Copy> FilterIndex<T> {
    /// Returns an index without filters. The seed is to be random and secret.
    pub fn new(seed: u64) -> FilterIndex<T> {
        let secret = |number: u64| fold(seed ^ SECRETS[0], (number + 1).wrapping_mul(SECRETS[1])) ^ seed;
        FilterIndex {
            secrets: [secret(0), secret(1), secret(2), secret(3)],
            tuples: Vec::new(),
            sums: Table::default(),
            entries: Vec::new(),
            free: Vec::new(),
            by_id: BTreeMap::new(),
        }
    }

    /// Adds a filter, in the place of the one with the same id if there is one.
    pub fn insert(&mut self, id: FilterId, filter: Filter, value: T) {
        self.remove(id);
        let (mask, wanted, grain) = self.fit(&filter);
        let is_exact = mask::is_exact(&filter, grain);
        let at = self.tuples.iter().position(|tuple| tuple.mask == mask).unwrap_or_else(|| {
            let salt = fold(mask.number() ^ self.secrets[2], self.secrets[3]);
            self.tuples.push(Tuple { mask, bits: mask.bits(), salt, filters: 0 });
            self.tuples.len() - 1
        });
        self.tuples[at].filters += 1;
        let sum = self.sum(&wanted, self.tuples[at].salt);
        let number = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            u32::try_from(self.entries.len() - 1).expect("filters are fewer than 32 bits count")
        });
        let next = self.sums.put(sum, number);
        self.entries[place(number)] = Some(Entry { id, filter, value, mask, sum, next, wanted, is_exact });
        self.by_id.insert(id, number);
    }

    /// Takes a filter away; returns its value.
    pub fn remove(&mut self, id: FilterId) -> Option<T> {
        let number = self.by_id.remove(&id)?;
        let entry = self.entries[place(number)].take()?;
        self.free.push(number);
        self.unlink(number, &entry);
        if let Some(at) = self.tuples.iter().position(|tuple| tuple.mask == entry.mask) {
            self.tuples[at].filters -= 1;
            if self.tuples[at].filters == 0 {
                self.tuples.swap_remove(at);
            }
        }
        Some(entry.value)
    }

    /// Puts the filters that match a flow into `found`, in the order of their ids, in the place of what is there.
    pub fn matching(&self, flow: &Flow, found: &mut Vec<(FilterId, T)>) {
        found.clear();
        self.for_each_candidate(flow, |entry, under_mask| {
            // Equal sums are not yet equal bits, and coarse masks leave out some of what the filter asks for.
            if if entry.is_exact { *under_mask == entry.wanted } else { entry.filter.matches(flow) } {
                found.push((entry.id, entry.value));
            }
        });
        if found.len() > 1 {
            found.sort_unstable_by_key(|(id, _)| *id);
        }
    }

    /// Returns the value of a filter.
    pub fn value(&self, id: FilterId) -> Option<T> {
        let number = self.by_id.get(&id)?;
        self.entries[place(*number)].as_ref().map(|entry| entry.value)
    }

    /// Returns how many filters there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns whether there is no filter.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Returns how many tuples there are, which is what a look-up costs.
    pub fn tuples(&self) -> usize {
        self.tuples.len()
    }

    /// Shows the filters that a flow may match: all with the same sum as the flow has under their mask, and what that is.
    #[inline]
    fn for_each_candidate<'a>(&'a self, flow: &Flow, mut each: impl FnMut(&'a Entry<T>, &Bits)) {
        let (bits, version) = (Bits::of(flow), mask::version(flow.destination));
        for tuple in self.tuples.iter().filter(|tuple| tuple.mask.takes(version)) {
            let under_mask = bits.under(&tuple.bits);
            let mut next = self.sums.find(self.sum(&under_mask, tuple.salt));
            while let Some(entry) = next.and_then(|number| self.entries[place(number)].as_ref()) {
                each(entry, &under_mask);
                next = entry.next;
            }
        }
    }

    /// Returns the finest mask of a filter for which there is a place, and what must stand under it.
    fn fit(&self, filter: &Filter) -> (Mask, Bits, Grain) {
        let fine = self.tuples.iter().filter(|tuple| !tuple.mask.is_coarse()).count();
        let fits = |mask: &Mask| {
            // Coarse masks are so few that their places can be kept for them.
            mask.is_coarse()
                || fine < FILTER_TUPLES_MAX - COARSE_MASKS
                || self.tuples.iter().any(|tuple| tuple.mask == *mask)
        };
        let grains = Grain::ALL.into_iter().filter(|grain| grain.suits(filter));
        let mut patterns = grains.map(|grain| (pattern(filter, grain), grain));
        let found = patterns.find(|((mask, _), _)| fits(mask));
        let ((mask, wanted), grain) = found.expect("the coarsest grain has coarse masks");
        (mask, wanted, grain)
    }

    fn unlink(&mut self, number: u32, entry: &Entry<T>) {
        let Some(mut before) = self.sums.find(entry.sum) else { return };
        if before == number {
            match entry.next {
                Some(next) => {
                    self.sums.put(entry.sum, next);
                }
                None => self.sums.remove(entry.sum),
            }
            return;
        }
        while let Some(other) = self.entries[place(before)].as_mut() {
            match other.next {
                Some(next) if next == number => {
                    other.next = entry.next;
                    return;
                }
                Some(next) => before = next,
                None => return,
            }
        }
    }

    #[inline]
    fn sum(&self, bits: &Bits, salt: u64) -> u64 {
        let ((source_high, source_low), (destination_high, destination_low)) =
            (halves(bits.source), halves(bits.destination));
        let mut sum = fold(source_high ^ self.secrets[0], destination_high ^ self.secrets[1]);
        if source_low | destination_low != 0 {
            sum ^= fold(source_low ^ self.secrets[2], destination_low ^ self.secrets[3]).rotate_left(32);
        }
        fold(sum ^ bits.rest, salt)
    }
}

/// Mixes two numbers into one.
#[inline]
fn fold(one: u64, other: u64) -> u64 {
    let (low, high) = one.carrying_mul(other, 0);
    low ^ high
}

#[inline]
fn halves(bits: u128) -> (u64, u64) {
    let half = |half: u128| u64::try_from(half & u128::from(u64::MAX)).expect("masked to 64 bits");
    (half(bits >> 64), half(bits))
}

#[inline]
fn place(number: u32) -> usize {
    usize::try_from(number).expect("32 bits fit in usize")
}

/// Odd numbers without a pattern, from the digits of pi.
const SECRETS: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345];
