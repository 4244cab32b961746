// SPDX-License-Identifier: Apache-2.0
//! Servers of connections that were taken over.

use std::io;
use std::pin::Pin;

use tokio::net::TcpStream;

/// Where an intercepted request came to be sent.
pub trait Origin: Send + Sync {
    /// Connects to the server of the flow, from the client's own address.
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;
}
