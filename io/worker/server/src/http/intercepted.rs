// SPDX-License-Identifier: Apache-2.0
//! Intercepted connections of an HTTP module: requests are the module's, and so is TLS for names of its own. Whatever
//! else comes goes to the server that it was for, as it is.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use super::opening::{self, Opening};
use super::rewound::Rewound;
use super::upstream::Upstream;
use crate::accepted::{Accepted, Flow};
use crate::limits;
use crate::module::Counts;
use crate::origin::Origin;
use crate::relay::{self, relay, reset};

/// A connection whose requests the module answers.
pub struct Ours {
    /// The client, with what was read of it.
    pub stream: Rewound<TcpStream>,
    /// Between whom it is.
    pub flow: Flow,
    /// To where its requests were on their way.
    pub upstream: Arc<Upstream>,
}

/// Looks what a connection is, for whose names `tls_names` the module has a certificate. One that is not the module's is
/// relayed to its end.
pub async fn begin(
    counts: &Counts,
    tls_names: Option<&BTreeSet<String>>,
    accepted: Accepted,
    origin: Arc<dyn Origin>,
) -> Option<Ours> {
    let mut flow = accepted.flow(false);
    let client = accepted.stream;
    relay::prepare(&client);
    let mut begun = Begun { read: Vec::new(), server: None };
    let Ok(opening) = begun.look(&client, &*origin).await else {
        reset(&client);
        return None;
    };
    let Begun { read, server } = begun;
    let own = |name: &Option<String>| name.as_ref().zip(tls_names).is_some_and(|(name, names)| names.contains(name));
    let name = match opening {
        Opening::Http(_) => None,
        Opening::Tls(name) if own(&name) => name,
        Opening::Tls(_) | Opening::Upgrade | Opening::Other | Opening::Unknown => {
            match Upstream::new(origin, None, server).connect().await {
                Ok(server) => relay(counts, client, server, &read).await,
                Err(_) => {
                    counts.failed();
                    reset(&client);
                }
            }
            return None;
        }
    };
    flow.is_secure = name.is_some();
    let upstream = Arc::new(Upstream::new(origin, name, server));
    Some(Ours { stream: Rewound::new(read, client), flow, upstream })
}

/// What has come of a connection.
struct Begun {
    /// From the client.
    read: Vec<u8>,
    /// The server, if it was connected because the client was silent.
    server: Option<TcpStream>,
}

impl Begun {
    /// Waits until it is known what a connection is. It is something else, too, if the client ends or stalls before, or
    /// if the server speaks first.
    ///
    /// # Errors
    /// The client is gone, or its server cannot be reached.
    async fn look(&mut self, client: &TcpStream, origin: &dyn Origin) -> io::Result<Opening> {
        let mut ended = match timeout(limits::SILENT_TIME_MAX, more(client, &mut self.read)).await {
            Ok(ended) => ended?,
            Err(_) => {
                let connected = timeout(limits::EGRESS_CONNECT_TIME_MAX, origin.connect()).await??;
                relay::prepare(&connected);
                let server = self.server.insert(connected);
                tokio::select! {
                    biased;
                    ended = more(client, &mut self.read) => ended?,
                    spoken = speaks(server) => return spoken.map(|()| Opening::Other),
                }
            }
        };
        let until = Instant::now() + limits::HEAD_TIME_MAX;
        let mut looked = 0;
        loop {
            if ended || opening::may_tell_more(&self.read, looked) {
                looked = self.read.len();
                match opening::look(&self.read) {
                    Opening::Unknown if !ended => {}
                    Opening::Unknown => return Ok(Opening::Other),
                    known @ (Opening::Http(_) | Opening::Upgrade | Opening::Tls(_) | Opening::Other) => {
                        return Ok(known);
                    }
                }
            }
            ended = match timeout_at(until, more(client, &mut self.read)).await {
                Ok(ended) => ended?,
                Err(_) if opening::is_request(&self.read) => return Ok(Opening::Http(None)),
                Err(_) => return Ok(Opening::Other),
            };
        }
    }
}

/// Reads what comes next behind `read`. Returns whether no more comes. Nothing is lost if this is given up.
async fn more(client: &TcpStream, read: &mut Vec<u8>) -> io::Result<bool> {
    loop {
        client.readable().await?;
        read.reserve(limits::OPENING_BYTES);
        match client.try_read_buf(read) {
            Ok(length) => return Ok(length == 0),
            // It is told now and then that there is something when there is nothing.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits until a server says something, or ends.
async fn speaks(server: &TcpStream) -> io::Result<()> {
    server.peek(&mut [0]).await.map(drop)
}
