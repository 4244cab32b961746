// SPDX-License-Identifier: Apache-2.0
//! Interim responses of servers (RFC 9110 §15.2), which are read over, but not without an end.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http::{Request, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::limits;

/// That a server wants the body of a request which expects to hear so (RFC 9110 §10.1.1). It is among the request's extensions. Clones are the
/// same one.
#[derive(Clone, Debug, Default)]
pub struct Wanted(Arc<Notify>);

impl Wanted {
    /// Waits until the server says so, or has had its time to.
    pub async fn said(self) {
        // A server of HTTP/1.0 says nothing.
        let _ = timeout(limits::EXPECT_TIME_MAX, self.0.notified()).await;
    }
}

/// Whether a server has sent too many interim responses on a connection.
#[derive(Clone, Debug, Default)]
pub struct Excess(Arc<AtomicBool>);

impl Excess {
    /// Has the interim responses to a request be counted that is sent on the connection.
    pub fn watch<B>(&self, request: &mut Request<B>) {
        let (excess, count) = (self.clone(), AtomicUsize::new(0));
        let wanted = request.extensions_mut().remove::<Wanted>();
        hyper::ext::on_informational(request, move |response| {
            if let Some(wanted) = wanted.as_ref().filter(|_| response.status() == StatusCode::CONTINUE) {
                wanted.0.notify_one();
            }
            if count.fetch_add(1, Ordering::Relaxed) >= limits::EGRESS_INTERIM_MAX {
                excess.0.store(true, Ordering::Relaxed);
            }
        });
    }

    fn error(&self) -> Option<io::Error> {
        let why = "the server sends interim responses without an end";
        self.0.load(Ordering::Relaxed).then(|| io::Error::new(io::ErrorKind::InvalidData, why))
    }
}

/// A connection that cannot be read any more once there was an excess of interim responses.
pub struct Bounded<S> {
    stream: S,
    excess: Excess,
}

impl<S> Bounded<S> {
    /// Bounds what comes by a connection.
    pub fn new(stream: S, excess: Excess) -> Bounded<S> {
        Bounded { stream, excess }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.excess.error() {
            Some(error) => Poll::Ready(Err(error)),
            None => Pin::new(&mut self.stream).poll_read(context, into),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
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
