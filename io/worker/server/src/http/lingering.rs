// SPDX-License-Identifier: Apache-2.0
//! The end of a connection that nobody uses any more, while its client may still take the last answer.

use std::io::{self, IoSlice};
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::time::timeout;

use super::heads::Foreign;
use super::rewound::Rewound;
use crate::limits;

/// A stream that is read for a while longer when it is dropped, if its [`End`] says so: what a client sends to a socket that is closed, such
/// as windows of HTTP/2, has the kernel reset the connection, and throw away what the client has not taken.
pub struct Lingering<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> {
    stream: Option<S>,
    end: End,
    /// Whether something was to be written that the stream did not take.
    is_blocked: bool,
}

/// How a stream ends. Clones are of the same one.
#[derive(Clone, Default)]
pub struct End(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    how: How,
    /// What was read of it, and by nobody else.
    unread: Vec<u8>,
}

#[derive(Default)]
enum How {
    /// It is closed at once.
    #[default]
    Closed,
    /// It is read for a while, until that is over at most.
    Lingers(Over),
    /// It is one with another connection from there on.
    Joined(Foreign, Over),
}

type Over = Pin<Box<dyn Future<Output = ()> + Send>>;

impl End {
    /// Has the stream be read for a while longer, until `over` at most.
    pub fn linger(&self, over: impl Future<Output = ()> + Send + 'static) {
        self.set(How::Lingers(Box::pin(over)));
    }

    /// Has the stream be one with a server's, until `over` at most.
    pub fn join(&self, server: Foreign, over: impl Future<Output = ()> + Send + 'static) {
        self.set(How::Joined(server, Box::pin(over)));
    }

    /// Has what was read of the stream go where it goes, before what it has.
    pub fn leave(&self, unread: Vec<u8>) {
        self.lock().unread = unread;
    }

    fn set(&self, how: How) {
        self.lock().how = how;
    }

    fn take(&self) -> Inner {
        mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Lingering<S> {
    /// Returns a stream with its end.
    pub fn new(stream: S, end: End) -> Lingering<S> {
        Lingering { stream: Some(stream), end, is_blocked: false }
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut S> {
        Pin::new(self.get_mut().stream.as_mut().expect("it is there until it is dropped"))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Drop for Lingering<S> {
    fn drop(&mut self) {
        let Inner { how, unread } = self.end.take();
        match (how, self.stream.take()) {
            (How::Lingers(over), Some(stream)) => drop(tokio::spawn(linger(stream, limits::LINGER_TIME_MAX, over))),
            // Between its bytes and the server's, others would be missing.
            (How::Joined(..), Some(_)) if self.is_blocked => {}
            (How::Joined(server, over), Some(stream)) => {
                drop(tokio::spawn(join(Rewound::new(unread, stream), server, over)));
            }
            (How::Closed, _) | (_, None) => {}
        }
    }
}

async fn linger(stream: impl AsyncRead + AsyncWrite + Unpin, most: Duration, over: Over) {
    tokio::select! {
        _ = timeout(most, read_out(stream)) => {}
        () = over => {}
    }
}

async fn join(mut client: impl AsyncRead + AsyncWrite + Unpin, server: Foreign, over: Over) {
    let (mut server, begun) = server;
    let joined = async {
        client.write_all(&begun).await?;
        // Either end may break it off.
        tokio::io::copy_bidirectional(&mut client, &mut server).await.map(drop)
    };
    tokio::select! {
        _ = joined => {}
        () = over => {}
    }
}

/// Says that nothing more comes, and reads until the client has closed, or sends more than one does that only takes an answer.
async fn read_out(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    stream.shutdown().await?;
    let mut rest = stream.take(limits::LINGER_BYTES_MAX);
    tokio::io::copy(&mut rest, &mut tokio::io::sink()).await.map(drop)
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> AsyncRead for Lingering<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> AsyncWrite for Lingering<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.as_mut().stream().poll_write(context, bytes);
        self.is_blocked = written.is_pending();
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.as_mut().stream().poll_write_vectored(context, pieces);
        self.is_blocked = written.is_pending();
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;
    use tokio::sync::oneshot;

    use super::*;

    /// What is never over, and when it is dropped.
    fn never() -> (Over, oneshot::Receiver<()>) {
        let (sender, dropped) = oneshot::channel::<()>();
        let over = async move {
            let _kept = sender;
            std::future::pending::<()>().await;
        };
        (Box::pin(over), dropped)
    }

    /// Goal: a connection that was let linger hears nothing more from here, is read, and is closed when its client closes it, has sent more than
    /// it may, or the site ends.
    #[tokio::test]
    async fn a_stream_is_read_until_its_client_or_the_site_ends_it() {
        for most_is_sent in [false, true] {
            let (near, mut far) = duplex(1024);
            let (over, mut dropped) = never();
            let end = End::default();
            let stream = Lingering::new(near, end.clone());
            end.linger(over);
            drop(stream);
            assert_eq!(far.read(&mut [0; 1]).await.unwrap(), 0, "nothing more comes");
            far.write_all(&[0; 64]).await.unwrap();
            assert!(dropped.try_recv() == Err(oneshot::error::TryRecvError::Empty));
            if most_is_sent {
                let all = vec![0; usize::try_from(limits::LINGER_BYTES_MAX).unwrap() + 2048];
                assert!(far.write_all(&all).await.is_err(), "it is closed meanwhile");
            } else {
                drop(far);
            }
            assert!(dropped.await.is_err());
        }
        let (near, mut far) = duplex(1024);
        let end = End::default();
        end.linger(async {});
        drop(Lingering::new(near, end));
        far.read_to_end(&mut Vec::new()).await.unwrap();
        while far.write_all(b"x").await.is_ok() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_client_that_never_closes_is_closed_in_time() {
        let (near, _far) = duplex(1024);
        let (over, dropped) = never();
        let begun = std::time::Instant::now();
        linger(near, Duration::from_millis(50), over).await;
        assert!(begun.elapsed() >= Duration::from_millis(50) && dropped.await.is_err());
    }

    #[tokio::test]
    async fn one_that_is_not_let_linger_is_closed_at_once() {
        let (near, mut far) = duplex(1024);
        drop(Lingering::new(near, End::default()));
        assert!(far.write_all(b"x").await.is_err());
    }
}
