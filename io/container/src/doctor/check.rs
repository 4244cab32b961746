// SPDX-License-Identifier: Apache-2.0
//! What a look at the machine says.

/// One thing that containers need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What it is.
    pub what: &'static str,
    /// Whether it is there.
    pub ok: bool,
    /// What was found.
    pub found: String,
    /// What to do if it is not there.
    pub fix: &'static str,
}
