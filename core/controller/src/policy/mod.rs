// SPDX-License-Identifier: Apache-2.0
//! What the operator's policy lets a user have.

pub(crate) mod asked;
pub(crate) mod filters;
pub(crate) mod package;
