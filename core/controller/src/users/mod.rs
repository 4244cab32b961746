// SPDX-License-Identifier: Apache-2.0
//! What is remembered of users' requests and code, and who may ask for what.

pub(crate) mod admission;
mod overheard;
pub(crate) mod proving;
pub(crate) mod quota;
pub(crate) mod revoking;
pub(crate) mod seen;
