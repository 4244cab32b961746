// SPDX-License-Identifier: Apache-2.0
//! A hash table from sums to numbers, with open addressing, so that a look-up mostly touches one cache line.

/// The table. Its keys are sums already, and nothing can be listed.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    /// A power of two of them, of which at most half are in use, or none.
    places: Vec<Place>,
    used: usize,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    sum: u64,
    /// [`EMPTY`] where nothing is.
    number: u32,
}

impl Table {
    /// Returns the number that is kept for a sum.
    #[inline]
    pub fn find(&self, sum: u64) -> Option<u32> {
        let place = self.places.get(self.place_of(sum)?)?;
        (place.number != EMPTY).then_some(place.number)
    }

    /// Keeps a number, which is not `u32::MAX`, for a sum; returns the one that was there.
    pub fn put(&mut self, sum: u64, number: u32) -> Option<u32> {
        debug_assert!(number != EMPTY, "this number means that there is none");
        if 2 * (self.used + 1) > self.places.len() {
            self.grow();
        }
        let at = self.place_of(sum).expect("a table that has grown has places");
        let before = std::mem::replace(&mut self.places[at], Place { sum, number }).number;
        self.used += usize::from(before == EMPTY);
        (before != EMPTY).then_some(before)
    }

    /// Forgets a sum.
    pub fn remove(&mut self, sum: u64) {
        let Some(mut hole) = self.place_of(sum).filter(|at| self.places[*at].number != EMPTY) else { return };
        self.used -= 1;
        let last = self.places.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & last;
            let Place { sum, number } = self.places[at];
            if number == EMPTY {
                break;
            }
            // It may fill the hole unless that lies before the place where its search begins.
            let walked = at.wrapping_sub(self.begin(sum)) & last;
            if walked >= at.wrapping_sub(hole) & last {
                self.places[hole] = self.places[at];
                hole = at;
            }
        }
        self.places[hole].number = EMPTY;
    }

    /// Returns where a sum is, or else where it would be put; nothing if the table has no places.
    #[inline]
    fn place_of(&self, sum: u64) -> Option<usize> {
        let last = self.places.len().checked_sub(1)?;
        let mut at = self.begin(sum);
        // There is always an empty place, so this ends.
        loop {
            let place = self.places[at];
            if place.sum == sum || place.number == EMPTY {
                // A sum that was moved away leaves its copy behind, but then the place is empty.
                return Some(at);
            }
            at = (at + 1) & last;
        }
    }

    #[inline]
    fn begin(&self, sum: u64) -> usize {
        let last = u64::try_from(self.places.len() - 1).expect("a length fits 64 bits");
        usize::try_from(sum & last).expect("less than a length")
    }

    fn grow(&mut self) {
        let places = (2 * self.places.len()).max(PLACES_MIN);
        let before = std::mem::replace(&mut self.places, vec![Place { sum: 0, number: EMPTY }; places]);
        self.used = 0;
        for place in before.into_iter().filter(|place| place.number != EMPTY) {
            self.put(place.sum, place.number);
        }
    }
}

const EMPTY: u32 = u32::MAX;
const PLACES_MIN: usize = 64;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Sums that begin their search at few places, so that they get into each other's way.
        #[test]
        fn it_is_a_map(changes in proptest::collection::vec((0_u64..6, 60_u64..70, any::<bool>()), 1..200)) {
            let (mut table, mut map) = (Table::default(), BTreeMap::new());
            for (number, (high, low, put)) in (0..).zip(changes) {
                let sum = high << 32 | low;
                if put {
                    prop_assert_eq!(table.put(sum, number), map.insert(sum, number));
                } else {
                    table.remove(sum);
                    map.remove(&sum);
                }
                for sum in (0..6).flat_map(|high| (60..70).map(move |low| high << 32 | low)) {
                    prop_assert_eq!(table.find(sum), map.get(&sum).copied());
                }
            }
        }
    }

    #[test]
    fn it_grows_with_what_is_in_it_and_not_with_changes() {
        let mut table = Table::default();
        for sum in 0..1000 {
            assert_eq!(table.put(sum, 7), None);
            table.remove(sum);
        }
        assert_eq!(table.places.len(), PLACES_MIN);
        (0..1000).for_each(|sum| assert_eq!(table.put(sum, 7), None));
        assert_eq!(table.places.len(), 2048);
        assert!((0..1000).all(|sum| table.find(sum) == Some(7)) && table.find(1000).is_none());
    }
}
