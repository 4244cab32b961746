// SPDX-License-Identifier: Apache-2.0
//! What the building blocks keep for one instance.

use std::sync::Arc;

use crate::compute::Budget;
use crate::compute::compress::CodeError;
use crate::limits;
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
    /// Compressors and decompressors.
    pub coders: usize,
    /// Sets of patterns.
    pub pattern_sets: usize,
    budget: Budget,
}

impl ComputeState {
    /// Returns the state of an instance that has nothing. `budget` is what all coders of its module may take.
    pub fn new(budget: &Budget) -> ComputeState {
        ComputeState { coders: 0, pattern_sets: 0, budget: budget.clone() }
    }

    /// Returns where a further coder's memory comes from.
    ///
    /// # Errors
    /// [`CodeError::Quota`] if the instance may not have another one.
    pub fn more_coders(&self) -> Result<&Budget, CodeError> {
        if self.coders < limits::CODERS_MAX { Ok(&self.budget) } else { Err(CodeError::Quota) }
    }
}
