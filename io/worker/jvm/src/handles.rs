// SPDX-License-Identifier: Apache-2.0
//! What bundles hold of the native side, by number.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::limits::JAVA_HANDLES_MAX;

/// The last number that was given. None is given twice in a process, so that an old one is nothing, not something else.
static LAST: AtomicI64 = AtomicI64::new(0);

/// Things by number.
#[derive(Debug)]
pub struct Handles<T>(RwLock<BTreeMap<i64, Arc<T>>>);

impl<T> Handles<T> {
    /// Returns an empty table.
    pub const fn new() -> Handles<T> {
        Handles(RwLock::new(BTreeMap::new()))
    }

    /// Keeps a thing, and returns its number, above 0; nothing for more than [`JAVA_HANDLES_MAX`].
    pub fn keep(&self, thing: T) -> Option<i64> {
        let mut things = self.write();
        if things.len() >= JAVA_HANDLES_MAX {
            return None;
        }
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        things.insert(number, Arc::new(thing));
        Some(number)
    }

    /// Returns the thing with a number.
    pub fn get(&self, number: i64) -> Option<Arc<T>> {
        self.read().get(&number).cloned()
    }

    /// Forgets a number. The thing goes with the last one who uses it.
    pub fn release(&self, number: i64) -> Option<Arc<T>> {
        self.write().remove(&number)
    }

    /// Returns all there are.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.read().values().cloned().collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<i64, Arc<T>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<i64, Arc<T>>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for Handles<T> {
    fn default() -> Handles<T> {
        Handles::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_once_and_bounded() {
        let handles = Handles::new();
        let given: Vec<i64> = std::iter::from_fn(|| handles.keep('a')).take(JAVA_HANDLES_MAX + 1).collect();
        let first = given[0];
        assert_eq!((given.len(), first > 0), (JAVA_HANDLES_MAX, true));
        assert_eq!((handles.release(first).as_deref(), handles.release(first)), (Some(&'a'), None));
        let next = handles.keep('b').unwrap();
        assert_eq!((given.contains(&next), handles.keep('c')), (false, None));
        let found =
            [i64::MIN, 0, first, given[1], next, i64::MAX].map(|number| handles.get(number).map(|thing| *thing));
        assert_eq!(found, [None, None, None, Some('a'), Some('b'), None]);
        assert_eq!(handles.all().len(), JAVA_HANDLES_MAX);
    }
}
