// SPDX-License-Identifier: Apache-2.0
//! Which blocks of the file are somebody's.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Blocks that are somebody's, and nobody's once this is dropped or gave them back.
pub(super) struct Blocks {
    pub(super) numbers: Vec<u32>,
    pool: Arc<Pool>,
    /// Counts them once no entry of the index has them.
    gone: OnceLock<Arc<AtomicU32>>,
    is_given_back: AtomicBool,
}

impl Blocks {
    /// Returns no blocks.
    pub(super) fn none(pool: &Arc<Pool>) -> Blocks {
        Blocks::of(vec![], pool)
    }

    /// Takes the first `count` blocks of a file that has as many, and of which nobody has any.
    pub(super) fn at_begin(count: u32, pool: &Arc<Pool>) -> Blocks {
        let numbers: Vec<u32> = (0..count).collect();
        let mut free = pool.lock();
        numbers.iter().for_each(|block| free.mark(*block, false));
        drop(free);
        Blocks::of(numbers, pool)
    }

    /// Takes these very blocks; nothing if one of them is somebody's, is named twice, or is none.
    pub(super) fn claim(numbers: Vec<u32>, pool: &Arc<Pool>) -> Option<Blocks> {
        let mut free = pool.lock();
        for (taken, block) in numbers.iter().enumerate() {
            if *block >= pool.count || !free.is_free(*block) {
                numbers[..taken].iter().for_each(|block| free.mark(*block, true));
                return None;
            }
            free.mark(*block, false);
        }
        drop(free);
        Some(Blocks::of(numbers, pool))
    }

    fn of(numbers: Vec<u32>, pool: &Arc<Pool>) -> Blocks {
        Blocks { numbers, pool: Arc::clone(pool), gone: OnceLock::new(), is_given_back: AtomicBool::new(false) }
    }

    /// Returns how many they are.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.numbers.len()).expect("a file has few blocks")
    }

    /// Has `gone` count them until they are nobody's.
    pub(super) fn count_as_gone(&self, gone: &Arc<AtomicU32>) {
        if self.gone.set(Arc::clone(gone)).is_ok() {
            gone.fetch_add(self.count(), Ordering::Relaxed);
        }
    }

    /// Makes them nobody's. Who reads them sees by their numbers that they are another's.
    pub(super) fn give_back(&self) {
        if self.is_given_back.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(gone) = self.gone.get() {
            gone.fetch_sub(self.count(), Ordering::Relaxed);
        }
        let mut free = self.pool.lock();
        self.numbers.iter().for_each(|block| free.mark(*block, true));
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl fmt::Debug for Blocks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", self.numbers)
    }
}

/// The blocks of the file, and which of them are nobody's.
pub(super) struct Pool {
    count: u32,
    free: Mutex<Free>,
}

/// A bit for each block, which is set while it is nobody's.
struct Free {
    words: Vec<u64>,
    /// No word before this one has a bit.
    first: usize,
}

impl Free {
    fn is_free(&self, block: u32) -> bool {
        self.words[block as usize / 64] & 1 << (block % 64) != 0
    }

    fn mark(&mut self, block: u32, is_free: bool) {
        let (word, bit) = (block as usize / 64, 1 << (block % 64));
        if is_free {
            self.words[word] |= bit;
            self.first = self.first.min(word);
        } else {
            self.words[word] &= !bit;
        }
    }
}

impl Pool {
    pub(super) fn new(count: u32) -> Pool {
        let mut free = Free { words: vec![0; count.div_ceil(64) as usize], first: 0 };
        (0..count).for_each(|block| free.mark(block, true));
        Pool { count, free: Mutex::new(free) }
    }

    pub(super) fn len(&self) -> u32 {
        self.count
    }

    pub(super) fn take(&self) -> Option<u32> {
        let mut free = self.lock();
        while let Some(word) = free.words.get(free.first) {
            if *word != 0 {
                let block = u32::try_from(free.first * 64).expect("a file has few blocks") + word.trailing_zeros();
                free.mark(block, false);
                return Some(block);
            }
            free.first += 1;
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_claimed_all_or_not_at_all() {
        let pool = Arc::new(Pool::new(70));
        let some = Blocks::claim(vec![1, 69], &pool).unwrap();
        for numbers in [vec![0, 1], vec![2, 70], vec![3, 3], vec![u32::MAX]] {
            assert!(Blocks::claim(numbers, &pool).is_none());
        }
        drop(Blocks::claim(vec![0, 2, 3], &pool).unwrap());
        drop(some);
        assert_eq!((0..70).filter(|_| pool.take().is_some()).count(), 70);
        assert_eq!(pool.take(), None);
    }
}
