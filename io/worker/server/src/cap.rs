// SPDX-License-Identifier: Apache-2.0
//! The cap on what an instance of a component may have of the node's memory.

use std::time::Instant;

use netserv_worker_base::compute::{Budget, Reserved};
use netserv_worker_wasm::limits::TABLE_ELEMENTS_MAX;
use wasmtime::ResourceLimiter;

use crate::limits;

/// What an instance may grow to, all its memories together.
#[derive(Debug)]
pub struct Cap {
    allowed: u64,
    used: u64,
    /// What it has of what all instances of the container may have together.
    shared: Option<Reserved>,
    /// What they may have.
    shared_allowed: usize,
    /// What the instance asked for last and did not get.
    pub denied: Option<Denied>,
}

/// Memory that an instance did not get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied {
    /// How many bytes it would have had.
    pub wanted: u64,
    /// How many it may have.
    pub allowed: u64,
    /// Whether it was others that had too much.
    pub by_others: bool,
    at: Instant,
}

impl Denied {
    /// Returns that it did not get memory just then.
    pub fn new(wanted: u64, allowed: u64) -> Denied {
        Denied { wanted, allowed, by_others: false, at: Instant::now() }
    }

    /// Returns whether a trap at `now` is likely to come from it: a program goes on for long after it was told.
    pub fn explains_trap(&self, now: Instant) -> bool {
        now.duration_since(self.at) < limits::DENIED_TIME_MAX
    }
}

impl Cap {
    /// Returns the cap of an instance that has nothing.
    pub fn new(memory_bytes: u64) -> Cap {
        Cap { allowed: memory_bytes, used: 0, shared: None, shared_allowed: usize::MAX, denied: None }
    }

    /// Takes what the instance has over [`limits::INSTANCE_BYTES_FREE`] out of what all of them have.
    pub fn share(&mut self, memory: &Budget) {
        // Nothing is always left.
        self.shared = memory.reserve(0).ok();
        self.shared_allowed = memory.bytes();
    }

    /// Returns whether a trap just now is likely to come from memory that other instances have.
    pub fn is_crowded(&self) -> bool {
        self.denied.is_some_and(|denied| denied.by_others && denied.explains_trap(Instant::now()))
    }

    /// Returns how many bytes it may have.
    pub fn allowed(&self) -> u64 {
        self.allowed
    }

    /// Returns how many bytes the instance has.
    pub fn used(&self) -> u64 {
        self.used
    }
}

impl ResourceLimiter for Cap {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let wanted = self.used.saturating_add(desired.saturating_sub(current) as u64);
        if wanted > self.allowed {
            self.denied = Some(Denied::new(wanted, self.allowed));
            return Ok(false);
        }
        let counted = usize::try_from(wanted.saturating_sub(limits::INSTANCE_BYTES_FREE)).unwrap_or(usize::MAX);
        if self.shared.as_mut().is_some_and(|shared| shared.resize(counted).is_err()) {
            let most = limits::INSTANCE_BYTES_FREE.saturating_add(self.shared_allowed as u64).min(self.allowed);
            self.denied = Some(Denied { by_others: wanted <= most, ..Denied::new(wanted, most) });
            return Ok(false);
        }
        self.used = wanted;
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS_MAX)
    }

    fn instances(&self) -> usize {
        limits::CORE_INSTANCES_MAX
    }

    fn memories(&self) -> usize {
        limits::MEMORIES_MAX
    }

    fn tables(&self) -> usize {
        limits::SERVER_TABLES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_memories_of_an_instance_count_together() {
        let mut cap = Cap::new(3 * 65_536);
        assert!(cap.memory_growing(0, 65_536, None).unwrap());
        assert!(cap.memory_growing(0, 65_536, None).unwrap());
        assert!(!cap.memory_growing(65_536, 3 * 65_536, None).unwrap());
        let denied = cap.denied.unwrap();
        assert_eq!((denied.wanted, denied.allowed), (4 * 65_536, 3 * 65_536));
        assert!(denied.explains_trap(denied.at) && !denied.explains_trap(denied.at + limits::DENIED_TIME_MAX));
        assert!(cap.memory_growing(65_536, 2 * 65_536, None).unwrap());
        assert!(!cap.memory_growing(0, 1, None).unwrap());
    }

    #[test]
    fn what_instances_have_beyond_a_little_is_bounded_together() {
        const PAGE: usize = 65_536;
        let free = usize::try_from(limits::INSTANCE_BYTES_FREE).unwrap();
        let memory = Budget::new(2 * PAGE);
        let cap = || {
            let mut cap = Cap::new(u64::MAX);
            cap.share(&memory);
            cap
        };
        let (mut one, mut other) = (cap(), cap());
        assert!(one.memory_growing(0, free + 2 * PAGE, None).unwrap());
        assert!(other.memory_growing(0, free, None).unwrap());
        assert!(!other.memory_growing(free, free + PAGE, None).unwrap());
        assert!(other.is_crowded() && other.used() == limits::INSTANCE_BYTES_FREE);
        drop(one);
        assert!(other.memory_growing(free, free + PAGE, None).unwrap());
        assert!(!other.memory_growing(free + PAGE, free + 3 * PAGE, None).unwrap());
        assert!(!other.is_crowded(), "nobody else has any");
        assert_eq!(other.denied.unwrap().allowed, limits::INSTANCE_BYTES_FREE + 2 * PAGE as u64);
    }

    #[test]
    fn tables_are_bounded() {
        let mut cap = Cap::new(0);
        assert!(cap.table_growing(0, TABLE_ELEMENTS_MAX, None).unwrap());
        assert!(!cap.table_growing(0, TABLE_ELEMENTS_MAX + 1, None).unwrap());
    }
}
