// SPDX-License-Identifier: Apache-2.0
//! A TCP connection that counts what it takes, beneath TLS as well.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A connection with a count of the bytes that the kernel took.
pub struct Metered {
    stream: TcpStream,
    taken: Progress,
}

/// How many bytes the kernel took so far.
#[derive(Clone, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    fn add(&self, bytes: usize) {
        self.0.fetch_add(u64::try_from(bytes).unwrap_or(0), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns once no byte was taken for a time, or up to a quarter of it longer.
    pub async fn stalled(&self, time: Duration) {
        let (mut before, mut quarters) = (self.get(), 0);
        while quarters < 4 {
            tokio::time::sleep(time / 4).await;
            let at = self.get();
            quarters = if at == before { quarters + 1 } else { 0 };
            before = at;
        }
    }
}

impl Metered {
    /// Returns one that has counted nothing.
    pub fn new(stream: TcpStream) -> Metered {
        Metered { stream, taken: Progress::default() }
    }

    /// Returns the count, which goes on.
    pub fn progress(&self) -> Progress {
        self.taken.clone()
    }

    /// Has the kernel send at once: triggers must not wait to be bundled (RFC 5971 §5.4.1).
    pub fn set_nodelay(&self) {
        // It may have ended already.
        let _ = self.stream.set_nodelay(true);
    }
}

impl AsyncRead for Metered {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let taken = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.taken.add(taken);
        Poll::Ready(Ok(taken))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let taken = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, slices))?;
        self.taken.add(taken);
        Poll::Ready(Ok(taken))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
