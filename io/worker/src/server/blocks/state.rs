// SPDX-License-Identifier: Apache-2.0
//! What the building blocks keep for one instance.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};

use crate::compute::Budget;
use crate::server::module::Module;
use crate::storage::limits::CACHE_READERS_MAX;

/// What the building blocks keep for one instance.
pub struct BlockState {
    /// What is bounded of the blocks that only compute.
    pub compute: ComputeState,
    /// How many bodies it may begin to read from the cache.
    pub cache_readers: Budget,
    /// The streams that give what others have in memory, too.
    pub lending: Lending,
    /// The streams that compress others.
    pub coding: Coding,
    /// How many control messages had come for the module when the instance began.
    pub told: u64,
}

impl BlockState {
    /// Returns the state of an instance that has not done anything.
    pub fn new(module: &Arc<Module>) -> BlockState {
        let cache_readers = Budget::new(CACHE_READERS_MAX);
        let (lending, told) = (Lending::default(), module.control.told());
        BlockState {
            compute: ComputeState::new(&module.coder_memory),
            cache_readers,
            lending,
            coding: Coding::default(),
            told,
        }
    }
}

/// Streams of an instance that give what others have in memory, too, by their numbers in its table.
#[derive(Default)]
pub struct Lending(Vec<(u32, Weak<AtomicBool>)>);

impl Lending {
    /// Takes note of a stream, with what says whether the bytes that it gave last are its own.
    pub fn note(&mut self, number: u32, is_private: &Arc<AtomicBool>) {
        // The number of one that is gone may be another's.
        self.0.retain(|(_, stream)| stream.strong_count() > 0);
        self.0.push((number, Arc::downgrade(is_private)));
    }

    /// Returns what says of a stream whether the bytes that it gave last are its own; nothing if all of them are.
    pub fn find(&self, number: u32) -> Option<Arc<AtomicBool>> {
        self.0.iter().filter(|(of, _)| *of == number).find_map(|(_, stream)| stream.upgrade())
    }

    /// Takes note that a stream has gone from the table, to where it goes on.
    pub fn forget(&mut self, number: u32) {
        self.0.retain(|(of, _)| *of != number);
    }
}

/// Streams of an instance that compress others, by their numbers in its table.
#[derive(Default)]
pub struct Coding(Vec<(u32, Weak<()>)>);

impl Coding {
    /// Takes note of a stream, which has `mark` as long as it is there.
    pub fn note(&mut self, number: u32, mark: &Arc<()>) {
        // The number of one that is gone may be another's.
        self.0.retain(|(_, stream)| stream.strong_count() > 0);
        self.0.push((number, Arc::downgrade(mark)));
    }

    /// Returns whether a stream compresses another one.
    pub fn has(&self, number: u32) -> bool {
        self.0.iter().any(|(of, stream)| *of == number && stream.strong_count() > 0)
    }

    /// Takes note that a stream has gone from the table, to where it goes on.
    pub fn forget(&mut self, number: u32) {
        self.0.retain(|(of, _)| *of != number);
    }
}

/// How much an instance has of what is bounded of the blocks that only compute.
pub struct ComputeState {
    /// What all coders of its container may take.
    pub coder_memory: Budget,
    /// Sets of patterns.
    pub pattern_sets: usize,
}

impl ComputeState {
    /// Returns the state of an instance that has nothing. `coder_memory` is what all coders of its container may take.
    pub fn new(coder_memory: &Budget) -> ComputeState {
        ComputeState { coder_memory: coder_memory.clone(), pattern_sets: 0 }
    }
}
