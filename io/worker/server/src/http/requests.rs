// SPDX-License-Identifier: Apache-2.0
//! The requests of an intercepted connection, looked at before hyper has them: with the first one that the node cannot read, the connection
//! goes to its server.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::chunks::Chunks;
use super::connection::Progress;
use super::lingering;
use super::opening::{self, End, Framing, Opening};
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
    /// How the connection ends, to which goes what was not read by then.
    end: lingering::End,
}

/// What comes next on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The head of a request.
    Head,
    /// So many bytes of a body.
    Body(u64),
    /// A body in chunks.
    Chunks(Chunks),
    /// Something whose end is not known here, or no request any more.
    Any,
}

impl Next {
    /// Returns how many of these bytes come before the next head.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let (taken, next) = match *self {
            Next::Head => (0, Next::Head),
            Next::Any => (bytes.len(), Next::Any),
            Next::Body(left) => {
                let of_body = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                let left = left - of_body as u64;
                (of_body, if left == 0 { Next::Head } else { Next::Body(left) })
            }
            Next::Chunks(mut chunks) => match chunks.take(bytes) {
                Some(of_body) if chunks == Chunks::Ended => (of_body, Next::Head),
                Some(of_body) => (of_body, Next::Chunks(chunks)),
                // What is to be said of it, hyper says.
                None => (bytes.len(), Next::Any),
            },
        };
        *self = next;
        taken
    }
}

impl<S> Requests<S> {
    /// Looks at what comes by a connection, on which requests are in `progress`. Without the server that it was opened to, what the module
    /// cannot be asked is written as it can, or left to hyper.
    pub fn new(stream: S, upstream: Option<Arc<Upstream>>, progress: Progress, end: lingering::End) -> Requests<S> {
        Requests {
            stream,
            next: Next::Head,
            head: Vec::new(),
            looked: 0,
            begun: Bytes::new(),
            is_passed: false,
            upstream,
            progress,
            end,
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
            Opening::Other if HTTP_2.starts_with(&self.head) => {}
            Opening::Other if self.upstream.is_some() => return true,
            Opening::Other => match opening::encoded(&self.head) {
                Some(encoded) => {
                    (self.head, self.looked) = (encoded, 0);
                    return self.look();
                }
                None => self.is_known(self.head.len(), Next::Any),
            },
            Opening::Tls(_) | Opening::Http(None) => self.is_known(self.head.len(), Next::Any),
            Opening::Http(Some(framing)) => self.is_framed(framing),
            Opening::Upgrade => match opening::framing(&self.head) {
                Some(framing) => self.is_framed(framing),
                None => self.is_known(self.head.len(), Next::Any),
            },
        }
        false
    }

    /// Has a request be read that ends where its head says.
    fn is_framed(&mut self, Framing { head, body }: Framing) {
        match body {
            End::After(bytes) => self.is_known(head, Next::Body(bytes)),
            End::Chunks => self.is_known(head, Next::Chunks(Chunks::begin())),
            End::Odd => self.is_known(self.head.len(), Next::Any),
        }
    }

    /// Has so much of what came be read, and what is of the body behind it.
    fn is_known(&mut self, bytes: usize, next: Next) {
        self.next = next;
        let all = bytes + self.next.take(&self.head[bytes..]);
        let rest = self.head.split_off(all);
        self.begun = std::mem::replace(&mut self.head, rest).into();
        self.looked = 0;
    }
}

impl<S> Drop for Requests<S> {
    fn drop(&mut self) {
        self.end.leave([&self.begun[..], &self.head].concat());
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

    fn poll_body(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, into))?;
        let of_body = self.next.take(&into.filled()[before..]);
        // What is behind it is the next request's.
        self.head.extend_from_slice(&into.filled()[before + of_body..]);
        into.set_filled(before + of_body);
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
                Next::Body(_) | Next::Chunks(_) => return self.poll_body(context, into),
                Next::Head => {}
            }
            if self.progress.is_upgraded() {
                let all = self.head.len();
                self.is_known(all, Next::Any);
                continue;
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::net::TcpStream;
    use tokio::time::timeout;

    use super::*;
    use crate::origin::Origin;

    /// A server that cannot be reached.
    struct Nowhere;

    impl Origin for Nowhere {
        fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>> {
            Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) })
        }
    }

    /// Goal: what a connection of HTTP/2 begins with is that, in whatever pieces it comes.
    #[tokio::test]
    async fn a_preface_in_pieces_is_one() {
        for piece in 1..HTTP_2.len() {
            let (mut far, near) = duplex(64);
            let upstream = Some(Arc::new(Upstream::new(Arc::new(Nowhere), None, None)));
            let mut requests = Requests::new(near, upstream, Progress::default(), lingering::End::default());
            far.write_all(&HTTP_2[..piece]).await.unwrap();
            let mut all = vec![0; HTTP_2.len()];
            assert!(timeout(Duration::from_millis(5), requests.read(&mut all)).await.is_err(), "{piece}");
            far.write_all(&HTTP_2[piece..]).await.unwrap();
            timeout(Duration::from_secs(20), requests.read_exact(&mut all))
                .await
                .expect("it is not passed on")
                .unwrap();
            assert_eq!(all, HTTP_2, "{piece}");
        }
    }
}
