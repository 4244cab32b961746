// SPDX-License-Identifier: Apache-2.0
//! The number of a worker, which packets carry.

use std::num::TryFromIntError;

/// The number of a worker's slot. It never becomes that of another worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WorkerSlot(pub(super) u32);

impl From<WorkerSlot> for u64 {
    fn from(slot: WorkerSlot) -> u64 {
        slot.0.into()
    }
}

impl TryFrom<u64> for WorkerSlot {
    type Error = TryFromIntError;

    fn try_from(number: u64) -> Result<WorkerSlot, TryFromIntError> {
        u32::try_from(number).map(WorkerSlot)
    }
}
