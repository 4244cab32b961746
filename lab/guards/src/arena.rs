// SPDX-License-Identifier: Apache-2.0
//! Memory whose costs depend on nothing.
//!
//! The C library's allocator does more or less depending on what was allocated before, down to the length of the
//! program's own path: one and the same case differed by 5 %. Here an allocation takes the next bytes of one piece of
//! memory, and nothing is given back: the cases end soon.

#![expect(unsafe_code, reason = "a global allocator is unsafe to implement")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The cases take less than 20 MB. Pages that nobody touches cost nothing.
const BYTES: usize = 256 << 20;

#[global_allocator]
static ARENA: Arena = Arena { memory: UnsafeCell::new(MaybeUninit::uninit()), taken: AtomicUsize::new(0) };

struct Arena {
    memory: UnsafeCell<MaybeUninit<[u8; BYTES]>>,
    /// Bytes from the start that are taken.
    taken: AtomicUsize,
}

// SAFETY: each part of `memory` is handed out once, by an atomic addition.
unsafe impl Sync for Arena {}

// SAFETY: a part is as long as was asked for, and aligned; nobody else has it, since `taken` only grows. What no longer
// fits is the system's, and only that is given back to it.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = self.memory.get() as usize;
        let room = layout.size() + layout.align();
        let offset = self.taken.fetch_add(room, Ordering::Relaxed);
        if offset.checked_add(room).is_none_or(|end| end > BYTES) {
            // SAFETY: the layout is the caller's.
            return unsafe { System.alloc(layout) };
        }
        let padding = (start + offset).next_multiple_of(layout.align()) - start;
        // SAFETY: `padding` and the size after it are within `room`, which is within the memory.
        unsafe { self.memory.get().cast::<u8>().add(padding) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let start = self.memory.get() as usize;
        if !(start..start + BYTES).contains(&(pointer as usize)) {
            // SAFETY: it is not from here, so `alloc` had it from the system.
            unsafe { System.dealloc(pointer, layout) };
        }
    }
}
