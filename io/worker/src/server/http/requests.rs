// SPDX-License-Identifier: Apache-2.0
//! The requests of an intercepted connection, looked at before hyper has them: with the first one that the node cannot read, the connection
//! goes to its server.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection::Progress;
use super::opening::{self, Framing, Opening};
use super::rewound::read_begun;
use super::upstream::Upstream;
use crate::limits;

/// A client's connection whose requests' heads are looked at.
pub struct Requests<S> {
    stream: S,
    next: Next,
    /// What has come of a head,
    head: Vec<u8>,
    /// and how much of that was looked at.
    looked: usize,
    /// What is to be read before anything else.
    begun: Bytes,
    /// Whether what has come is for the server, with all that follows.
    is_passed: bool,
    upstream: Option<Arc<Upstream>>,
    progress: Progress,
}

/// What comes next on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The head of a request.
    Head,
    /// So many bytes of a body.
    Body(u64),
    /// Something whose end is not known here, or no request any more.
    Any,
}

impl<S> Requests<S> {
    /// Looks at what comes by a connection, on which requests are in `progress`. Without the server that it was opened to, what the module
    /// cannot be asked is written as it can, or left to hyper.
    pub fn new(stream: S, upstream: Option<Arc<Upstream>>, progress: Progress) -> Requests<S> {
        Requests {
            stream,
            next: Next::Head,
            head: Vec::new(),
            looked: 0,
            begun: Bytes::new(),
            is_passed: false,
            upstream,
            progress,
        }
    }

    /// Looks at what has come of a head. Returns whether it is the server's, with the connection.
    fn look(&mut self) -> bool {
        if self.head.is_empty() || !opening::may_tell_more(&self.head, self.looked) {
            return false;
        }
        self.looked = self.head.len();
        match opening::request(&self.head) {
            Opening::Unknown => return false,
            // RFC 9113 §3.4: within TLS, connections are of HTTP/2, too.
            Opening::Other if self.head.starts_with(HTTP_2) => self.is_known(self.head.len(), Next::Any),
            Opening::Other if self.upstream.is_some() => return true,
            Opening::Other => match opening::encoded(&self.head) {
                Some(encoded) => {
                    (self.head, self.looked) = (encoded, 0);
                    return self.look();
                }
                None => self.is_known(self.head.len(), Next::Any),
            },
            Opening::Upgrade | Opening::Tls(_) => self.is_known(self.head.len(), Next::Any),
            Opening::Http(Some(Framing { head, body: Some(0) })) => self.is_known(head, Next::Head),
            Opening::Http(Some(Framing { head, body: Some(body) })) => self.is_known(head, Next::Body(body)),
            Opening::Http(Some(Framing { body: None, .. }) | None) => self.is_known(self.head.len(), Next::Any),
        }
        false
    }

    /// Has so much of what came be read.
    fn is_known(&mut self, bytes: usize, next: Next) {
        let rest = self.head.split_off(bytes);
        self.begun = std::mem::replace(&mut self.head, rest).into();
        (self.looked, self.next) = (0, next);
        if let Next::Body(left) = &mut self.next {
            let of_body = usize::try_from(*left).unwrap_or(usize::MAX).min(self.head.len());
            *left -= of_body as u64;
            let rest = self.head.split_off(of_body);
            self.begun = [&self.begun[..], &std::mem::replace(&mut self.head, rest)].concat().into();
        }
        if self.next == Next::Body(0) {
            self.next = Next::Head;
        }
    }
}

/// What connections of HTTP/2 begin with.
const HTTP_2: &[u8] = b"PRI * HTTP/2.0\r\n";

impl<S: AsyncRead + Unpin> Requests<S> {
    /// Reads a piece of a head. Returns whether no more comes.
    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut space = [0; limits::OPENING_BYTES];
        let mut piece = ReadBuf::new(&mut space);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut piece))?;
        self.head.extend_from_slice(piece.filled());
        Poll::Ready(Ok(piece.filled().is_empty()))
    }

    fn poll_body(&mut self, left: u64, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, into))?;
        let came = into.filled().len() - before;
        let of_body = usize::try_from(left).unwrap_or(usize::MAX).min(came);
        // What is behind it is the next request's.
        self.head.extend_from_slice(&into.filled()[before + of_body..]);
        into.set_filled(before + of_body);
        let left = left - of_body as u64;
        self.next = if left == 0 { Next::Head } else { Next::Body(left) };
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Requests<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            if !self.begun.is_empty() {
                read_begun(&mut self.begun, into);
                return Poll::Ready(Ok(()));
            }
            match self.next {
                Next::Any => return Pin::new(&mut self.stream).poll_read(context, into),
                Next::Body(left) => return self.poll_body(left, context, into),
                Next::Head => {}
            }
            if self.is_passed || self.look() {
                self.is_passed = true;
                ready!(self.progress.poll_idle(context));
                if let Some(upstream) = self.upstream.take() {
                    upstream.pass(std::mem::take(&mut self.head));
                }
                // Whoever takes the connection drops this.
                return Poll::Pending;
            }
            if self.begun.is_empty() && ready!(self.poll_head(context))? {
                let all = self.head.len();
                self.is_known(all, Next::Any);
                if all == 0 {
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Requests<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
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

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
