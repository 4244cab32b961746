// SPDX-License-Identifier: Apache-2.0
//! Buffers that connections read into: only those that have something to read have one.

use std::sync::{Mutex, PoisonError};

use crate::limits;

/// Buffers that are free.
#[derive(Default)]
pub struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// Returns an empty buffer with room for so many bytes at least.
    pub fn take(&self, bytes: usize) -> Vec<u8> {
        let kept = if bytes > limits::TCP_CHUNK_BYTES_FIRST { self.lock().pop() } else { None };
        kept.unwrap_or_else(|| Vec::with_capacity(bytes))
    }

    /// Gives a buffer back, of which some large ones are kept.
    pub fn give(&self, mut buffer: Vec<u8>) {
        let mut kept = self.lock();
        if buffer.capacity() >= limits::TCP_CHUNK_BYTES_MAX && kept.len() < limits::TCP_BUFFERS_KEPT_MAX {
            buffer.clear();
            kept.push(buffer);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_buffers_are_kept_and_small_ones_are_not() {
        let buffers = Buffers::default();
        for _ in 0..2 * limits::TCP_BUFFERS_KEPT_MAX {
            buffers.give(vec![1; limits::TCP_CHUNK_BYTES_MAX]);
            buffers.give(vec![1; 10]);
        }
        assert_eq!(buffers.lock().len(), limits::TCP_BUFFERS_KEPT_MAX);
        assert!(buffers.take(limits::TCP_CHUNK_BYTES_MAX).is_empty());
        assert_eq!(buffers.take(10).capacity(), 10);
    }
}
