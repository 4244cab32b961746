// SPDX-License-Identifier: Apache-2.0
//! What the building blocks keep for one instance.

use std::sync::Arc;

use crate::compute::Budget;
use crate::server::module::Module;
use crate::storage::limits::CACHE_READERS_MAX;

/// What the building blocks keep for one instance.
pub struct BlockState {
    /// What is bounded of the blocks that only compute.
    pub compute: ComputeState,
    /// How many bodies it may begin to read from the cache.
    pub cache_readers: Budget,
}

impl BlockState {
    /// Returns the state of an instance that has not done anything.
    pub fn new(module: &Arc<Module>) -> BlockState {
        let cache_readers = Budget::new(CACHE_READERS_MAX);
        BlockState { compute: ComputeState::new(&module.coder_memory), cache_readers }
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
