// SPDX-License-Identifier: Apache-2.0
//! What was used: when meters are read.

pub(crate) mod metering;
