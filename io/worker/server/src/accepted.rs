// SPDX-License-Identifier: Apache-2.0
//! A connection that came in, on its way to the module that takes it.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;

use super::origin::Origin;

/// Between whom a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Who opened it.
    pub client: SocketAddr,
    /// Whom it was opened to.
    pub server: SocketAddr,
    /// Whether it was taken over on its way.
    pub is_intercepted: bool,
    /// Whether the client speaks TLS with the node.
    pub is_secure: bool,
}

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

impl Accepted {
    /// Returns between whom the connection is.
    pub fn flow(&self, is_secure: bool) -> Flow {
        let Accepted { client, server, ref origin, .. } = *self;
        Flow { client, server, is_intercepted: origin.is_some(), is_secure }
    }
}
