// SPDX-License-Identifier: Apache-2.0
//! Modules that take over the same connections: what one hands on comes to the next, and only the last speaks with the server.
//!
//! Each is given a connection of its own with the ends of the flow as they are, so that none knows of the others.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use netserv_model::effect::ModuleSlot;
use netserv_model::{Filter, Flow, ModuleName};
use tokio::net::{TcpListener, TcpStream};

use super::accepted::Accepted;
use super::listeners::Handler;
use super::origin::Origin;

/// The number of TCP.
const TCP: u8 = 6;

/// The modules of a container that take connections over.
#[derive(Default)]
pub struct Takers(RwLock<BTreeMap<ModuleSlot, Taker>>);

/// A version of a module that takes connections over.
pub struct Taker {
    /// The later it was loaded, the greater.
    pub ticket: u64,
    /// The module.
    pub name: ModuleName,
    /// Which connections it takes.
    pub filters: Vec<Filter>,
    /// What takes them.
    pub handler: Handler,
}

impl Taker {
    fn takes(&self, [client, server]: [SocketAddr; 2]) -> bool {
        let flow = Flow {
            protocol: TCP,
            source: client.ip().to_canonical(),
            destination: server.ip().to_canonical(),
            source_port: Some(client.port()),
            destination_port: Some(server.port()),
            opens: true,
        };
        self.filters.iter().any(|filter| filter.matches(&flow))
    }
}

impl Takers {
    /// Puts a version into a place.
    pub fn put(&self, slot: ModuleSlot, taker: Taker) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(slot, taker);
    }

    /// Empties a place.
    pub fn remove(&self, slot: ModuleSlot) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&slot);
    }

    /// Gives a connection to the version in a place. What that hands on comes to the modules that were loaded later and take
    /// the same connection, in their order, and then to `origin`.
    pub fn accept(
        self: &Arc<Self>,
        slot: ModuleSlot,
        stream: TcpStream,
        ends: [SocketAddr; 2],
        origin: Arc<dyn Origin>,
    ) {
        let first = self.read().get(&slot).map(|first| (first.ticket, first.name.clone(), first.handler.clone()));
        if let Some((ticket, name, handler)) = first {
            let onward = Onward { takers: Arc::clone(self), ticket, passed: vec![name], ends, origin };
            onward.hand_over(&handler, stream);
        }
    }

    /// Returns the first module that was loaded after `ticket`, takes such a connection, and is none of those `passed`.
    fn next(&self, ticket: u64, passed: &[ModuleName], ends: [SocketAddr; 2]) -> Option<(u64, ModuleName, Handler)> {
        let all = self.read();
        let later = |taker: &&Taker| {
            taker.ticket > ticket && !passed.contains(&taker.name) && taker.takes(ends) && taker.handler.is_open()
        };
        let next = all.values().filter(later).min_by_key(|taker| taker.ticket)?;
        // While a version replaces another, connections go to the one that comes.
        let versions = all.values().filter(|taker| taker.name == next.name);
        let newest = versions.max_by_key(|taker| taker.ticket).unwrap_or(next);
        Some((next.ticket, next.name.clone(), newest.handler.clone()))
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<ModuleSlot, Taker>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a connection goes on that some modules have passed: to the next module, as things are then, or to the server.
struct Onward {
    takers: Arc<Takers>,
    /// That of the last module.
    ticket: u64,
    passed: Vec<ModuleName>,
    ends: [SocketAddr; 2],
    origin: Arc<dyn Origin>,
}

impl Onward {
    fn hand_over(self, handler: &Handler, stream: TcpStream) {
        let [client, server] = self.ends;
        handler.accept(Accepted { stream, client, server, origin: Some(Arc::new(self)) });
    }
}

impl Origin for Onward {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>> {
        let Some((ticket, name, handler)) = self.takers.next(self.ticket, &self.passed, self.ends) else {
            return self.origin.connect();
        };
        let passed = self.passed.iter().cloned().chain([name]).collect();
        let (takers, origin) = (Arc::clone(&self.takers), Arc::clone(&self.origin));
        let onward = Onward { takers, ticket, passed, ends: self.ends, origin };
        Box::pin(async move {
            let [ours, theirs] = pair().await?;
            // It may have begun to end meanwhile, and the others have the connection.
            if !handler.is_open() {
                return onward.connect().await;
            }
            onward.hand_over(&handler, theirs);
            Ok(ours)
        })
    }
}

/// Returns the two ends of a connection within the container. As ends of TCP they tell each other of resets and half-closed
/// sides, as those of the flow do.
async fn pair() -> io::Result<[TcpStream; 2]> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let one = TcpStream::connect(listener.local_addr()?).await?;
    loop {
        let (other, peer) = listener.accept().await?;
        // Others in the container may connect there as well.
        if peer == one.local_addr()? {
            return Ok([one, other]);
        }
    }
}
