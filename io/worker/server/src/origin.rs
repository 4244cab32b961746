// SPDX-License-Identifier: Apache-2.0
//! Servers of connections that were taken over.

use std::io;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A connection to a server, whatever it goes by.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Where an intercepted request came to be sent.
pub trait Origin: Send + Sync {
    /// Connects to the server of the flow, from the client's own address.
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;
}
