// SPDX-License-Identifier: Apache-2.0
//! When something was seen last: as many things as there is room for, of which newer ones take the places of older ones.

use std::hash::{DefaultHasher, Hash, Hasher as _};

/// When things were seen.
#[derive(Clone, Debug)]
pub struct Table {
    /// By what a thing is told from others of its place (0 is nobody's), and milliseconds.
    slots: Vec<(u32, u32)>,
}

/// Where a thing is in any table, and by what it is told from others there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    slot: u32,
    tag: u32,
}

/// Returns the place of a thing.
pub fn place(secret: u64, thing: &impl Hash) -> Place {
    let mut hasher = DefaultHasher::new();
    (secret, thing).hash(&mut hasher);
    let [a, b, c, d, rest @ ..] = hasher.finish().to_be_bytes();
    Place { slot: u32::from_be_bytes([a, b, c, d]), tag: u32::from_be_bytes(rest).max(1) }
}

impl Table {
    /// Makes an empty one with room for so many things, a power of two.
    pub fn new(room: usize) -> Table {
        assert!(room.is_power_of_two());
        Table { slots: vec![(0, 0); room] }
    }

    /// Returns how long ago a thing was seen; nothing if it was not, or another one took its place.
    pub fn age(&self, place: Place, now_ms: u32) -> Option<u32> {
        let (tag, seen_ms) = self.slots[self.index(place)];
        (tag == place.tag).then(|| now_ms.wrapping_sub(seen_ms))
    }

    /// Takes note that a thing was seen.
    pub fn put(&mut self, place: Place, now_ms: u32) {
        let index = self.index(place);
        self.slots[index] = (place.tag, now_ms);
    }

    fn index(&self, place: Place) -> usize {
        place.slot as usize & (self.slots.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_known() {
        let mut table = Table::new(1 << 10);
        (0..5000_u32).for_each(|thing| table.put(place(7, &thing), thing));
        let known = (0..5000_u32).filter(|thing| table.age(place(7, thing), 5000) == Some(5000 - thing)).count();
        assert!((900..=1 << 10).contains(&known) && table.slots.len() == 1 << 10, "{known}");
        assert_eq!(table.age(place(7, &4999_u32), 3), Some(u32::MAX - 4995), "the clock began anew");
        assert_ne!(place(7, &1), place(8, &1));
    }
}
