// SPDX-License-Identifier: Apache-2.0
//! What a shared HTTP cache decides (RFC 9110, 9111, 9211, 9213): pure functions of requests, responses and times.
//!
//! The crate `http-cache-semantics` is not used: it has no ranges, invalidation, keys of variants, targeted fields or
//! `Cache-Status`, and keeps both messages whole beside each body.
//!
//! One request goes so:
//! 1. [`Route::of`] says whether the cache has a part in it, and [`key::of`] under which key.
//! 2. What is stored there is an [`Entry`]: a [`Stored`] response, the names that select among [variants](Entry::Variants), or
//!    the word that responses are not kept ([`Entry::Pass`]).
//! 3. [`Stored::decide`] compares a stored response with the request: [`Decision`].
//! 4. [`Stored::answer`] gives status, headers and range of the answer. Otherwise the request goes on with
//!    [`forward::fill`] headers and those of [`Stored::conditions`], and [`Policy::keep`], [`Stored::refreshed`] or
//!    [`key::invalidated`] say what the response changes.

mod answer;
pub mod cache_status;
mod conditional;
pub mod date;
mod decision;
mod directives;
mod entry;
mod fields;
pub mod forward;
mod freshness;
mod keep;
pub mod key;
pub mod limits;
mod policy;
mod ranges;
mod refresh;
mod stored;
mod vary;

pub use answer::Answer;
pub use cache_status::CacheStatus;
pub use decision::{Decision, Route};
pub use entry::Entry;
pub use fields::{Fields, Head, Request};
pub use keep::NotKept;
pub use policy::{Policy, Times};
pub use ranges::ByteRange;
pub use refresh::Refresh;
pub use stored::Stored;
pub use vary::variant_key;

#[cfg(test)]
mod tests;
