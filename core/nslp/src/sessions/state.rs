// SPDX-License-Identifier: Apache-2.0
//! All that is known of SETUPs along paths.

use super::checks::Checks;
use super::ended::Ended;
use super::leases::Leases;
use super::withdrawn::Withdrawn;
use crate::cx::Burst;
use crate::limits::{QUESTIONS_BURST_INTERVAL, QUESTIONS_BURST_MAX};

#[derive(Debug)]
pub(crate) struct Sessions {
    pub(crate) leases: Leases,
    /// Those that ended before their time.
    pub(crate) ended: Ended,
    pub(crate) withdrawn: Withdrawn,
    pub(crate) checks: Checks,
    /// Questions sent.
    pub(crate) questions: Burst,
}

impl Sessions {
    /// Returns none, with room for so many leases.
    pub(crate) fn new(leases_max: usize) -> Sessions {
        Sessions {
            leases: Leases::new(leases_max),
            ended: Ended::default(),
            withdrawn: Withdrawn::default(),
            checks: Checks::default(),
            questions: Burst::new(QUESTIONS_BURST_MAX, QUESTIONS_BURST_INTERVAL),
        }
    }
}
