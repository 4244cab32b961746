// SPDX-License-Identifier: Apache-2.0
//! What one instance has of the blocks that only compute.

use crate::compute::Budget;
use crate::compute::compress::CodeError;
use crate::limits;

/// How much of what is bounded an instance has.
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
