// SPDX-License-Identifier: Apache-2.0
//! One worker per user and flavour: started when a module wants in, started again when it died, stopped when it is
//! empty.

pub(crate) mod changes;
pub(crate) mod draining;
pub(crate) mod release;
pub(crate) mod start;
