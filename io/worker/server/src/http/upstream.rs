// SPDX-License-Identifier: Apache-2.0
//! The server that an intercepted connection was opened to. Requests on that connection go there by one connection, one
//! after the other, as the client's own would have.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::uri::Authority;
use hyper::client::conn::http1::{self, SendRequest};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use wasmtime_wasi_http::WasiBody;

use super::heads::{Foreign, Heads};
use super::interim::Excess;
use crate::limits;
use crate::origin::Origin;

/// The server of one intercepted connection.
pub struct Upstream {
    origin: Arc<dyn Origin>,
    /// The server's name, if the client speaks TLS with the node in its place.
    pub name: Option<String>,
    /// A connection that nothing was sent on.
    fresh: Mutex<Option<TcpStream>>,
    /// A connection on which an answer has come whole.
    idle: Mutex<Option<Sender>>,
    /// A connection whose answer is not understood, with what came of it.
    foreign: Mutex<Option<Foreign>>,
    is_foreign: Notify,
    /// What came of the client that is no request which the node can read.
    unread: Mutex<Option<Vec<u8>>>,
    is_unread: Notify,
}

impl Upstream {
    /// Returns what gets to the server by `origin`, first by a connection that may be there already.
    pub fn new(origin: Arc<dyn Origin>, name: Option<String>, fresh: Option<TcpStream>) -> Upstream {
        let (idle, foreign) = (Mutex::default(), Mutex::default());
        let (is_foreign, unread, is_unread) = (Notify::new(), Mutex::default(), Notify::new());
        Upstream { origin, name, fresh: Mutex::new(fresh), idle, foreign, is_foreign, unread, is_unread }
    }

    /// Returns whether the client speaks TLS.
    pub fn is_secure(&self) -> bool {
        self.name.is_some()
    }

    /// Connects to the server.
    ///
    /// # Errors
    /// It cannot be reached, in [`limits::EGRESS_CONNECT_TIME_MAX`].
    pub async fn connect(&self) -> io::Result<TcpStream> {
        let fresh = lock(&self.fresh).take();
        match fresh {
            Some(stream) => Ok(stream),
            None => timeout(limits::EGRESS_CONNECT_TIME_MAX, self.origin.connect()).await?,
        }
    }

    /// Takes the connection that is kept for the next request, if it is still there. One to a server of another name ends: its certificate
    /// was looked at for that.
    pub fn take(&self, authority: &Authority) -> Option<Sender> {
        lock(&self.idle).take().filter(|sender| sender.authority == *authority && !sender.requests.is_closed())
    }

    /// Gives the client's connection what comes by one of the server's, as it came.
    pub fn give(&self, foreign: Foreign) {
        *lock(&self.foreign) = Some(foreign);
        self.is_foreign.notify_one();
    }

    /// Waits until there is a connection that was given.
    pub async fn given(&self) -> Foreign {
        taken(&self.foreign, &self.is_foreign).await
    }

    /// Has the client's connection go to the server, with what was read of it and answered by nobody.
    pub fn pass(&self, unread: Vec<u8>) {
        *lock(&self.unread) = Some(unread);
        self.is_unread.notify_one();
    }

    /// Waits until the client's connection is to go to the server. Returns what was read of it.
    pub async fn passed(&self) -> Vec<u8> {
        taken(&self.unread, &self.is_unread).await
    }

    /// Keeps a connection for the next request, if there is none.
    pub fn keep(&self, sender: Sender) {
        if !sender.requests.is_closed() {
            lock(&self.idle).get_or_insert(sender);
        }
    }
}

/// What sends requests on a connection.
pub struct Sender {
    /// Sends them.
    pub requests: SendRequest<WasiBody>,
    /// Whose they are.
    pub authority: Authority,
    /// Whether they go by TLS.
    pub is_secure: bool,
    /// Whether the server has sent too many interim responses there.
    pub excess: Excess,
    /// What is known of its answers' heads.
    pub heads: Heads,
    /// What drives the connection, once something does.
    pub driver: Option<AbortHandle>,
}

impl Sender {
    /// Returns whether it is a server's of that name, by TLS or not.
    pub fn is_to(&self, authority: &Authority, is_secure: bool) -> bool {
        self.authority == *authority && self.is_secure == is_secure
    }
}

/// Returns what speaks HTTP/1 with servers, within the bounds that heads have.
///
/// It bears what clients bear: a blank before a colon goes (RFC 9112 §5.1), a line goes on (§5.2), and what is no header line is left out.
pub fn builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(limits::HEAD_BYTES_MAX).max_headers(limits::SERVER_HEADERS_MAX);
    builder.allow_spaces_after_header_name_in_responses(true).allow_obsolete_multiline_headers_in_responses(true);
    builder.ignore_invalid_headers_in_responses(true);
    builder
}

/// Waits until something is in a place, and takes it.
pub(super) async fn taken<T>(place: &Mutex<Option<T>>, is_there: &Notify) -> T {
    loop {
        let taken = lock(place).take();
        match taken {
            Some(taken) => return taken,
            None => is_there.notified().await,
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
