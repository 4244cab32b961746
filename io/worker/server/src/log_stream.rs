// SPDX-License-Identifier: Apache-2.0
//! Standard output and standard error of a component: lines of the module's log.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use netserv_wire::container::frames::LogLevel;
use netserv_worker_base::failure::Said;
use netserv_worker_base::limits::LOG_LINE_BYTES_MAX;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use super::module::Module;

/// What an instance wrote as an error of late, which its stream and its calls add to.
#[derive(Clone, Debug, Default)]
pub struct SharedSaid(Arc<Mutex<Said>>);

impl SharedSaid {
    /// Takes in what the instance wrote.
    pub fn add(&self, bytes: &[u8]) {
        self.lock().add(bytes, Instant::now());
    }

    /// Takes in one whole line.
    pub fn add_line(&self, line: &[u8]) {
        self.lock().add_line(line, Instant::now());
    }

    /// Returns the last lines of what was said just now.
    pub fn lines(&self) -> Vec<String> {
        self.lock().lines(Instant::now())
    }

    fn lock(&self) -> MutexGuard<'_, Said> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of the two streams of an instance. What it writes is cut to lines, and is never waited for.
#[derive(Clone)]
pub struct LogStream(Arc<Shared>);

struct Shared {
    module: Arc<Module>,
    level: LogLevel,
    /// Where it is kept for the case that the instance fails.
    said: Option<SharedSaid>,
    /// The start of a line.
    begun: Mutex<Vec<u8>>,
}

impl LogStream {
    /// Returns a stream whose lines have `level`, and are kept in `said`.
    pub fn new(module: &Arc<Module>, level: LogLevel, said: Option<SharedSaid>) -> LogStream {
        LogStream(Arc::new(Shared { module: Arc::clone(module), level, said, begun: Mutex::default() }))
    }

    fn take(&self, bytes: &[u8]) {
        if let Some(said) = &self.0.said {
            said.add(bytes);
        }
        let mut begun = self.0.begun.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ended) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            let room = LOG_LINE_BYTES_MAX.saturating_sub(begun.len());
            begun.extend_from_slice(&text[..text.len().min(room)]);
            if ended {
                self.0.module.log(self.0.level, &begun);
                begun.clear();
            }
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let begun = self.begun.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !begun.is_empty() {
            self.module.log(self.level, begun);
        }
    }
}

impl IsTerminal for LogStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogStream {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }
}

impl OutputStream for LogStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(64 * 1024)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for LogStream {
    async fn ready(&mut self) {}
}

impl AsyncWrite for LogStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
