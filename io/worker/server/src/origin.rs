// SPDX-License-Identifier: Apache-2.0
//! Servers of connections that were taken over.

use std::io;
use std::pin::Pin;

use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A connection to a server, whatever it goes by.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {
    /// Returns whether the kernel has bytes of it that nobody read. The runtime may not have heard of them yet.
    fn has_unread(&self) -> bool;
}

impl Stream for TcpStream {
    fn has_unread(&self) -> bool {
        recv(self, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT).is_ok_and(|(bytes, _)| bytes > 0)
    }
}

impl Stream for TlsStream<TcpStream> {
    fn has_unread(&self) -> bool {
        self.get_ref().0.has_unread()
    }
}

/// Where an intercepted request came to be sent.
pub trait Origin: Send + Sync {
    /// Connects to the server of the flow, from the client's own address.
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;
}
