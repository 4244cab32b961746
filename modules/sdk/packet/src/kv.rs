// SPDX-License-Identifier: Apache-2.0
//! State that outlives the module's replacement by another version with the same `state-schema`, and the node's restart.

use crate::error::Error;
use crate::host;

/// Returns a key's value.
pub fn value(key: &[u8]) -> Option<Vec<u8>> {
    host::kv_value(key).ok()
}

/// Stores a value.
///
/// # Errors
/// [`Error::Quota`] if the module may not keep more, [`Error::TooLarge`] for a key over 256 or a value over 65,536
/// bytes, [`Error::Invalid`] for an empty key.
pub fn set(key: &[u8], value: &[u8]) -> Result<(), Error> {
    host::kv_set(key, value)
}

/// Forgets a key.
///
/// # Errors
/// [`Error::NotFound`] if there is none.
pub fn delete(key: &[u8]) -> Result<(), Error> {
    host::kv_delete(key)
}

/// Adds to an entry of eight little-endian bytes, wrapping; one that is not there counts as 0. Returns the sum. The
/// module's server part comes in between neither here nor in [`compare_and_set`].
///
/// # Errors
/// [`Error::Invalid`] for an entry of another length, and those of [`set`].
pub fn increment(key: &[u8], delta: i64) -> Result<i64, Error> {
    host::kv_increment(key, delta)
}

/// Stores `new`, or forgets the key, if its value is `old`. Returns whether it was.
///
/// # Errors
/// Those of [`set`].
pub fn compare_and_set(key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, Error> {
    host::kv_compare_and_set(key, old, new)
}

/// Returns all keys in byte order. Keys may come and go meanwhile.
pub fn keys() -> impl Iterator<Item = Vec<u8>> {
    std::iter::successors(host::kv_next(b"").ok(), |key| host::kv_next(key).ok())
}
