// SPDX-License-Identifier: Apache-2.0
//! The packets inside containers, found again by their cookie.

use super::held::Held;

/// The packets inside containers, found again by their cookie.
#[derive(Default)]
pub(crate) struct Pending {
    places: Vec<Place>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Place {
    generation: u32,
    held: Option<Held>,
}

impl Pending {
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the cookie that the next inserted packet gets.
    pub(crate) fn next_cookie(&self) -> u64 {
        match self.free.last() {
            Some(number) => cookie(*number, self.places[*number as usize].generation),
            None => cookie(u32::try_from(self.places.len()).unwrap_or(u32::MAX), 0),
        }
    }

    pub(crate) fn insert(&mut self, held: Held) {
        match self.free.pop() {
            Some(number) => self.places[number as usize].held = Some(held),
            None => self.places.push(Place { generation: 0, held: Some(held) }),
        }
    }

    /// Takes out the packet of a cookie; a cookie that is not of this moment gives none.
    pub(crate) fn remove(&mut self, wanted: u64) -> Option<Held> {
        let number = u32::try_from(wanted & u64::from(u32::MAX)).ok()?;
        let place = self.places.get_mut(number as usize)?;
        if wanted != cookie(number, place.generation) {
            return None;
        }
        let held = place.held.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(number);
        Some(held)
    }
}

fn cookie(place: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(place)
}
