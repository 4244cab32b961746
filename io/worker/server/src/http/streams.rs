// SPDX-License-Identifier: Apache-2.0
//! Streams of HTTP/2: each is a task, and ends at a deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::rt::Executor;
use tokio::time::Instant;

use super::connection::Deadline;

/// Runs streams of HTTP/2, and resets those whose clients do not read: hyper asks a body for nothing while it cannot be
/// sent, so that the body cannot end by itself.
#[derive(Clone)]
pub struct StreamExecutor {
    /// How long a request may take, and the end of its stream.
    pub stream_ms: Arc<AtomicU64>,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for StreamExecutor {
    fn execute(&self, stream: F) {
        let time = Duration::from_millis(self.stream_ms.load(Ordering::Relaxed));
        let deadline = Deadline::new(Instant::now() + time);
        // Nobody waits for it, however it ends.
        tokio::spawn(STREAM.scope(deadline.clone(), async move { deadline.bound(stream).await }));
    }
}

/// Returns when the stream ends that this task runs; nothing if it runs a connection of HTTP/1.
pub fn deadline() -> Option<Deadline> {
    STREAM.try_with(Deadline::clone).ok()
}

tokio::task_local! {
    /// When the stream ends that the task runs.
    static STREAM: Deadline;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_ends_at_its_deadline_as_it_is_then() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            for (first, then) in [(10, 50), (50, 10), (20, 20)] {
                let begun = Instant::now();
                let deadline = Deadline::new(begun + Duration::from_millis(first));
                let own = deadline.clone();
                let stream = async move {
                    assert!(super::deadline().is_some_and(|known| known.at() == own.at()));
                    own.set(begun + Duration::from_millis(then));
                    std::future::pending::<()>().await;
                };
                let ended = STREAM.scope(deadline.clone(), async { deadline.bound(stream).await }).await;
                assert!(ended.is_none());
                let took = begun.elapsed();
                assert!(took >= Duration::from_millis(then) && took < Duration::from_secs(60), "{took:?}");
            }
            let minute = Deadline::new(Instant::now() + Duration::from_secs(60));
            assert_eq!(minute.bound(async { 7 }).await, Some(7));
            assert!(deadline().is_none());
        });
    }
}
