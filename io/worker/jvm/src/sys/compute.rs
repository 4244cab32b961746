// SPDX-License-Identifier: Apache-2.0
//! The memory of what only computes for bundles, which all of them share.

use std::sync::OnceLock;

use netserv_worker_base::compute::Budget;
use netserv_worker_base::limits::COMPRESS_MEMORY_BYTES_MAX;

static BUDGET: OnceLock<Budget> = OnceLock::new();

/// Bounds the memory of all compressed streams and sets of patterns that are open at a time.
pub fn set_memory(bytes: usize) {
    let _ = BUDGET.set(Budget::new(bytes));
}

pub(super) fn budget() -> &'static Budget {
    BUDGET.get_or_init(|| Budget::new(COMPRESS_MEMORY_BYTES_MAX))
}
