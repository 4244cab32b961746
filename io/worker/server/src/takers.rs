// SPDX-License-Identifier: Apache-2.0
//! Modules that take over the same connections: what one hands on comes to the next, and only the last speaks with the server.
//!
//! Each is given a connection of its own with the ends of the flow as they are, so that none knows of the others.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use netserv_model::effect::ModuleSlot;
use netserv_model::{Filter, ModuleName};
use tokio::net::{TcpListener, TcpStream};

use super::accepted::Accepted;
use super::listeners::Handler;
use super::module::{Transport, flow};
use super::origin::Origin;
use crate::limits;

/// The modules of a container that take connections over.
#[derive(Default)]
pub struct Takers(RwLock<Places>);

#[derive(Default)]
struct Places {
    all: BTreeMap<ModuleSlot, Taker>,
    /// Modules that failed and want nobody past them, with when that was.
    failed: Vec<(Taker, Instant)>,
}

/// A version of a module that takes connections over.
pub struct Taker {
    /// The later it was loaded, the greater.
    pub ticket: u64,
    /// The module.
    pub name: ModuleName,
    /// Which connections it takes.
    pub filters: Vec<Filter>,
    /// Nobody gets past it while it is down.
    pub refuse: bool,
    /// What takes them.
    pub handler: Handler,
}

impl Taker {
    /// Returns whether it failed, and wants nobody past it.
    fn is_down(&self) -> bool {
        self.refuse && self.handler.has_failed()
    }

    fn takes(&self, [client, server]: [SocketAddr; 2]) -> bool {
        let server = SocketAddr::new(server.ip().to_canonical(), server.port());
        let flow = flow(Transport::Tcp, client.ip().to_canonical(), Some(client.port()), server);
        self.filters.iter().any(|filter| filter.matches(&flow))
    }
}

impl Takers {
    /// Puts a version into a place.
    pub fn put(&self, slot: ModuleSlot, taker: Taker) {
        let mut places = self.write();
        places.failed.retain(|(failed, _)| failed.name != taker.name);
        places.all.insert(slot, taker);
    }

    /// Empties a place.
    pub fn remove(&self, slot: ModuleSlot) {
        let mut places = self.write();
        places.failed.retain(|(_, since)| since.elapsed() < limits::FAILED_TAKER_TIME);
        if let Some(taker) = places.all.remove(&slot)
            && taker.is_down()
        {
            places.failed.push((taker, Instant::now()));
        }
    }

    /// Gives a connection to the version in a place. What that hands on comes to the other modules that take the same connection,
    /// in the order in which their versions were loaded, and then to `origin`.
    pub fn accept(
        self: &Arc<Self>,
        slot: ModuleSlot,
        stream: TcpStream,
        ends: [SocketAddr; 2],
        origin: Arc<dyn Origin>,
    ) {
        let first = self.read().all.get(&slot).map(|first| (first.name.clone(), first.handler.clone()));
        if let Some((name, handler)) = first {
            let onward = Onward { takers: Arc::clone(self), passed: vec![name], ends, origin };
            onward.hand_over(&handler, stream);
        }
    }

    /// Returns the first module that takes such a connection, and is none of those `passed`; nothing if there is none.
    ///
    /// # Errors
    /// One of them is down, and wants nobody past it.
    fn next(&self, passed: &[ModuleName], ends: [SocketAddr; 2]) -> io::Result<Option<(ModuleName, Handler)>> {
        let places = self.read();
        let wants = |taker: &&Taker| !passed.contains(&taker.name) && taker.takes(ends);
        let failed = places.failed.iter().filter(|(_, since)| since.elapsed() < limits::FAILED_TAKER_TIME);
        let down = failed.map(|(taker, _)| taker).chain(places.all.values().filter(|taker| taker.is_down()));
        let open = || places.all.values().filter(|taker| taker.handler.is_open());
        if down.filter(wants).any(|down| !open().any(|taker| taker.name == down.name)) {
            return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "a module on the way is down"));
        }
        let Some(next) = open().filter(wants).min_by_key(|taker| taker.ticket) else { return Ok(None) };
        // While a version replaces another, connections go to the one that comes.
        let versions = open().filter(|taker| taker.name == next.name);
        let newest = versions.max_by_key(|taker| taker.ticket).unwrap_or(next);
        Ok(Some((next.name.clone(), newest.handler.clone())))
    }

    fn read(&self) -> RwLockReadGuard<'_, Places> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Places> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a connection goes on that some modules have passed: to the next module, as things are then, or to the server.
struct Onward {
    takers: Arc<Takers>,
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
        let (name, handler) = match self.takers.next(&self.passed, self.ends) {
            Ok(Some(next)) => next,
            Ok(None) => return self.origin.connect(),
            Err(down) => return Box::pin(async { Err(down) }),
        };
        let passed = self.passed.iter().cloned().chain([name]).collect();
        let (takers, origin) = (Arc::clone(&self.takers), Arc::clone(&self.origin));
        let onward = Onward { takers, passed, ends: self.ends, origin };
        Box::pin(async move {
            let [ours, theirs] = pair().await?;
            // It may have begun to end meanwhile: whoever takes the connection then has it.
            if !handler.is_open() {
                let Onward { takers, mut passed, ends, origin } = onward;
                passed.pop();
                return Onward { takers, passed, ends, origin }.connect().await;
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
