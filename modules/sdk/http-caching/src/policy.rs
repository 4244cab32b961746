// SPDX-License-Identifier: Apache-2.0
//! What decisions go by beside the messages.

use std::time::Duration;

/// What the operator of a cache decides.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The cache's name in `Via` and `Cache-Status`.
    pub name: String,
    /// The name by which `Surrogate-Control` targets this cache; nothing if the field does not count.
    pub surrogate: Option<String>,
    /// The lifetime of a response that may be guessed about and says nothing to guess from.
    pub lifetime: Duration,
    /// The same for errors, which are kept shorter.
    pub lifetime_of_errors: Duration,
    /// How long a stale response may be served when the origin fails, if the response says nothing of it.
    pub stale_if_error: Duration,
}

/// When a request went to the origin, and when the response's head came back, since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// When the request went.
    pub requested: Duration,
    /// When the head came.
    pub received: Duration,
}
