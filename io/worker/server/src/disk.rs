// SPDX-License-Identifier: Apache-2.0
//! Threads for what waits for the disk. Those of the runtime may all wait for name servers that do not answer.

use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::limits;

/// Runs a task that may wait for the disk, after others if [`limits::DISK_THREADS_MAX`] are at work.
pub fn spawn_blocking<T: Send + 'static>(task: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    static THREADS: OnceLock<Option<Runtime>> = OnceLock::new();
    let build =
        || Builder::new_current_thread().thread_name("disk").max_blocking_threads(limits::DISK_THREADS_MAX).build();
    match THREADS.get_or_init(|| build().ok()) {
        Some(threads) => threads.spawn_blocking(task),
        None => tokio::task::spawn_blocking(task),
    }
}
