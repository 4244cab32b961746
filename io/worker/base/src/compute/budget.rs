// SPDX-License-Identifier: Apache-2.0
//! Memory that is handed out until there is none left.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::HostError;

/// Bytes that all instances of a module share. Clones share them, too.
#[derive(Clone, Debug)]
pub struct Budget {
    bytes: usize,
    left: Arc<AtomicUsize>,
}

/// A part of a budget, which goes back when this is dropped.
#[derive(Debug)]
pub struct Reserved {
    bytes: usize,
    left: Arc<AtomicUsize>,
}

impl Budget {
    /// Returns a budget of so many bytes.
    pub fn new(bytes: usize) -> Budget {
        Budget { bytes, left: Arc::new(AtomicUsize::new(bytes)) }
    }

    /// Returns how many bytes it has in all.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns how many bytes are left, unless others take some meanwhile.
    pub fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    /// Takes bytes out of the budget.
    ///
    /// # Errors
    /// [`HostError::Quota`] if it has fewer.
    pub fn reserve(&self, bytes: usize) -> Result<Reserved, HostError> {
        let took = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        took.map_err(|_| HostError::Quota)?;
        Ok(Reserved { bytes, left: Arc::clone(&self.left) })
    }
}

impl Reserved {
    /// Makes it larger or smaller.
    ///
    /// # Errors
    /// [`HostError::Quota`] if the budget has too little left; it is then as before.
    pub fn resize(&mut self, bytes: usize) -> Result<(), HostError> {
        let own = self.bytes;
        let took = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| (left + own).checked_sub(bytes));
        took.map_err(|_| HostError::Quota)?;
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.left.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_back_in_the_end() {
        let budget = Budget::new(100);
        let other = budget.clone();
        let most = other.reserve(60).unwrap();
        assert_eq!((budget.reserve(41).unwrap_err(), budget.left()), (HostError::Quota, 40));
        let rest = budget.reserve(40).unwrap();
        drop(most);
        assert!(budget.reserve(61).is_err());
        drop(rest);
        assert!(budget.reserve(100).is_ok());
    }

    #[test]
    fn what_is_taken_grows_and_shrinks() {
        let budget = Budget::new(100);
        let mut part = budget.reserve(0).unwrap();
        part.resize(70).unwrap();
        assert_eq!(part.resize(101).unwrap_err(), HostError::Quota);
        assert!(budget.reserve(31).is_err() && budget.reserve(30).is_ok());
        part.resize(20).unwrap();
        assert!(budget.reserve(80).is_ok());
        drop(part);
        assert!(budget.reserve(100).is_ok());
    }
}
