// SPDX-License-Identifier: Apache-2.0
//! What was used: meters, and sums of what they counted.

pub(crate) mod ledger;
pub(crate) mod metering;
