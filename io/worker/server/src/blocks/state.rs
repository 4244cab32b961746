// SPDX-License-Identifier: Apache-2.0
//! What the building blocks keep for one instance.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};

use netserv_worker_base::compute::Budget;
use netserv_worker_base::storage::limits::CACHE_READERS_MAX;

use crate::module::Module;

/// What the building blocks keep for one instance.
pub struct BlockState {
    /// What is bounded of the blocks that only compute.
    pub compute: ComputeState,
    /// How many bodies it may begin to read from the cache.
    pub cache_readers: Budget,
    /// The streams that give what others have in memory, too, with what says whether the bytes that each gave last are its own.
    pub lending: Streams<AtomicBool>,
    /// The outputs of media jobs, with what says whether they were handed over.
    pub media: Streams<AtomicBool>,
    /// The streams that compress others.
    pub coding: Streams<()>,
    /// How many control messages had come for the module when the instance began.
    pub told: u64,
}

impl BlockState {
    /// Returns the state of an instance that has not done anything.
    pub fn new(module: &Arc<Module>) -> BlockState {
        let cache_readers = Budget::new(CACHE_READERS_MAX);
        let (lending, told) = (Streams::default(), module.control.told());
        BlockState {
            compute: ComputeState::new(&module.coder_memory),
            cache_readers,
            lending,
            media: Streams::default(),
            coding: Streams::default(),
            told,
        }
    }
}

/// Some streams of an instance by their numbers in its table, each with what lives as long as it does.
pub struct Streams<T>(Vec<(u32, Weak<T>)>);

impl<T> Default for Streams<T> {
    fn default() -> Streams<T> {
        Streams(Vec::new())
    }
}

impl<T> Streams<T> {
    /// Takes note of a stream, with what it has of its own.
    pub fn note(&mut self, number: u32, own: &Arc<T>) {
        // The number of one that is gone may be another's.
        self.0.retain(|(_, stream)| stream.strong_count() > 0);
        self.0.push((number, Arc::downgrade(own)));
    }

    /// Returns what a stream has of its own; nothing if it is none of these.
    pub fn find(&self, number: u32) -> Option<Arc<T>> {
        self.0.iter().filter(|(of, _)| *of == number).find_map(|(_, stream)| stream.upgrade())
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
