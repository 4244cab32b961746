// SPDX-License-Identifier: Apache-2.0
//! What both interfaces do alike.

use std::sync::Arc;

use netserv_wire::container::frames::LogLevel;
use netserv_worker_base::clock;
use netserv_worker_base::storage::cache::{CacheError, Entry, Share};
use wasmtime_wasi::p2::StreamError;

use crate::disk::spawn_blocking;
use crate::module::Module;

/// Returns the module's share; nothing where there is no file of use, as its log says then.
pub(super) async fn share(module: &Module) -> Option<Arc<Share>> {
    let report = |error: &CacheError| {
        module.log(LogLevel::Warn, format!("there is no cache, which is as if it were empty: {error}").as_bytes());
    };
    module.cache.share(report).await.cloned()
}

/// Returns an entry that is on the disk.
pub(super) async fn find(share: &Arc<Share>, key: &str, is_use: bool) -> wasmtime::Result<Option<Arc<Entry>>> {
    let Some(entry) = share.find(key, is_use) else { return Ok(None) };
    if entry.is_sure() {
        return Ok(Some(entry));
    }
    let share = Arc::clone(share);
    Ok(spawn_blocking(move || share.is_there(&entry).then_some(entry)).await?)
}

/// Returns the seconds since 1970.
pub(super) fn seconds() -> u64 {
    clock::wall_ns() / 1_000_000_000
}

pub(super) fn failed(error: CacheError) -> StreamError {
    StreamError::LastOperationFailed(wasmtime::Error::new(error))
}
