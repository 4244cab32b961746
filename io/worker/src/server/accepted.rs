// SPDX-License-Identifier: Apache-2.0
//! A connection that came in, on its way to the module that takes it.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;

use super::origin::Origin;

/// A connection that came in.
pub struct Accepted {
    /// The connection.
    pub stream: TcpStream,
    /// Who opened it.
    pub client: SocketAddr,
    /// Whom it was opened to.
    pub server: SocketAddr,
    /// How to get to the server if it is not this module itself: the connection is intercepted then.
    pub origin: Option<Arc<dyn Origin>>,
}
