// SPDX-License-Identifier: Apache-2.0
//! A connection whose first bytes were looked at, and are read once more.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection that begins with bytes that it was read of already.
pub struct Rewound<S> {
    begun: Bytes,
    stream: S,
}

impl<S> Rewound<S> {
    /// Puts `begun` back before what `stream` has.
    pub fn new(begun: Vec<u8>, stream: S) -> Rewound<S> {
        Rewound { begun: begun.into(), stream }
    }

    /// Returns the connection itself.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }
}

/// Takes as much as there is room for of what was read before.
pub(super) fn read_begun(begun: &mut Bytes, buffer: &mut ReadBuf<'_>) {
    let length = begun.len().min(buffer.remaining());
    buffer.put_slice(&begun[..length]);
    begun.advance(length);
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.begun.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        read_begun(&mut self.begun, buffer);
        if self.begun.is_empty() {
            // What was read once has no use any more.
            self.begun = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
