// SPDX-License-Identifier: Apache-2.0
//! Connections of the API's clients.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::caller::Caller;

/// Accepts only as many clients as there are places.
pub struct Bounded {
    /// The socket.
    pub listener: UnixListener,
    /// The places.
    pub places: Arc<Semaphore>,
}

impl Listener for Bounded {
    type Io = Client;
    type Addr = tokio::net::unix::SocketAddr;

    async fn accept(&mut self) -> (Client, Self::Addr) {
        let place = self.places.clone().acquire_owned().await.expect("the places are never closed");
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Client { stream, _place: place }, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A connection that gives its place back when it ends.
pub struct Client {
    stream: UnixStream,
    _place: OwnedSemaphorePermit,
}

impl Connected<IncomingStream<'_, Bounded>> for Caller {
    fn connect_info(incoming: IncomingStream<'_, Bounded>) -> Caller {
        // The kernel names each peer of a connected Unix socket.
        incoming
            .io()
            .stream
            .peer_cred()
            .map_or(Caller::Node, |peer| Caller::Process { uid: peer.uid(), pid: peer.pid() })
    }
}

impl AsyncRead for Client {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Client {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
