// SPDX-License-Identifier: Apache-2.0
//! The ports of a container's server modules. A port stays open over an upgrade of its module: new connections wait,
//! and go to the new version.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};

use netserv_model::effect::ModuleSlot;
use netserv_model::{Filter, ModuleName, Refusal, RefusalKind};
use netserv_wire::ip::protocol::TCP;
use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;

use super::accepted::Accepted;
use super::http::site::HttpSite;
use super::tcp::connection;
use super::tcp::service::TcpService;
use crate::limits;

/// What takes connections.
#[derive(Clone)]
pub enum Handler {
    /// An HTTP module.
    Http(Arc<HttpSite>),
    /// A module that handles connections as events.
    Tcp(Arc<TcpService>),
}

impl Handler {
    /// Returns whether it takes new connections, and does not end.
    pub fn is_open(&self) -> bool {
        match self {
            Handler::Http(site) => site.is_open(),
            Handler::Tcp(service) => service.is_open(),
        }
    }

    /// Returns whether its module could not go on.
    pub fn has_failed(&self) -> bool {
        match self {
            // What fails there is a request.
            Handler::Http(_) => false,
            Handler::Tcp(service) => service.has_failed(),
        }
    }

    /// Takes a connection.
    pub fn accept(&self, accepted: Accepted) {
        match self {
            Handler::Http(site) => site.accept(accepted),
            Handler::Tcp(service) => connection::accept(service, accepted),
        }
    }
}

/// The ports that are open.
#[derive(Default)]
pub struct Listeners {
    ports: BTreeMap<u16, OpenPort>,
}

struct OpenPort {
    /// The module that has the port, whichever version.
    name: ModuleName,
    /// The place of its version that takes connections.
    owner: ModuleSlot,
    handler: Arc<RwLock<Handler>>,
    sockets: Vec<Listening>,
}

/// A socket that is listened at, and what takes its connections.
struct Listening {
    listener: Arc<TcpListener>,
    task: JoinHandle<()>,
}

impl Listening {
    fn begin<F: Future<Output = ()> + Send + 'static>(
        listener: TcpListener,
        take: impl FnOnce(Arc<TcpListener>) -> F,
    ) -> Listening {
        let listener = Arc::new(listener);
        Listening { task: tokio::spawn(take(Arc::clone(&listener))), listener }
    }

    /// Ends it, so that its port can be had again at once: the task is dropped, and its socket closed, some time later.
    fn end(&self) {
        // What fails leaves the port to be closed with the task.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        self.task.abort();
    }
}

impl Listeners {
    /// Opens the ports of a module at `addresses`, those that are open already for its new version, and closes what it
    /// has no longer.
    ///
    /// # Errors
    /// [`RefusalKind::PortTaken`] if one is another module's, [`RefusalKind::NodeFailed`] if the kernel refuses; its
    /// ports are then as before.
    pub fn open(
        &mut self,
        (owner, name): (ModuleSlot, &ModuleName),
        ports: &BTreeSet<u16>,
        addresses: &[IpAddr],
        handler: &Handler,
    ) -> Result<(), Refusal> {
        if let Some(taken) = ports.iter().find(|port| self.ports.get(port).is_some_and(|open| open.name != *name)) {
            let detail = format!("another module of the container has TCP port {taken}");
            return Err(Refusal::new(RefusalKind::PortTaken, detail));
        }
        let mut new = Vec::new();
        for port in ports.iter().filter(|port| !self.ports.contains_key(port)) {
            for address in addresses {
                new.push((*port, bind(SocketAddr::new(*address, *port))?));
            }
        }
        self.close_if(|port, open| open.name == *name && !ports.contains(&port));
        for port in ports {
            let handler = || Arc::new(RwLock::new(handler.clone()));
            let new = || OpenPort { name: name.clone(), owner, handler: handler(), sockets: Vec::new() };
            self.ports.entry(*port).or_insert_with(new);
        }
        for open in self.ports.values_mut().filter(|open| open.name == *name) {
            open.owner = owner;
            *open.handler.write().unwrap_or_else(PoisonError::into_inner) = handler.clone();
        }
        for (port, listener) in new {
            if let Some(open) = self.ports.get_mut(&port) {
                let handler = Arc::clone(&open.handler);
                open.sockets.push(Listening::begin(listener, |listener| take(listener, handler)));
            }
        }
        Ok(())
    }

    /// Leaves the ports of a module in one place to its version in another.
    pub fn leave(&mut self, owner: ModuleSlot, heir: ModuleSlot, handler: &Handler) {
        for open in self.ports.values_mut().filter(|open| open.owner == owner) {
            open.owner = heir;
            *open.handler.write().unwrap_or_else(PoisonError::into_inner) = handler.clone();
        }
    }

    /// Closes the ports of a module in a place; those that another version of it has taken over stay open.
    pub fn close(&mut self, owner: ModuleSlot) {
        self.close_if(|_, open| open.owner == owner);
    }

    fn close_if(&mut self, which: impl Fn(u16, &OpenPort) -> bool) {
        self.ports.retain(|port, open| {
            let close = which(*port, open);
            if close {
                open.sockets.iter().for_each(Listening::end);
            }
            !close
        });
    }
}

/// Returns the TCP ports that `filters` name.
///
/// # Errors
/// [`RefusalKind::BadManifest`] if they are more than [`limits::LISTEN_PORTS_MAX`], or none is named.
pub fn tcp_ports(filters: &[Filter]) -> Result<BTreeSet<u16>, Refusal> {
    let mut ports = BTreeSet::new();
    for filter in filters.iter().filter(|filter| filter.protocol().matches(TCP)) {
        let Some(range) = filter.destination_ports() else {
            let detail = format!("`listen` has to name the port: `{filter}`");
            return Err(Refusal::new(RefusalKind::BadManifest, detail));
        };
        ports.extend((range.first()..=range.last()).take(limits::LISTEN_PORTS_MAX + 1));
    }
    if ports.len() > limits::LISTEN_PORTS_MAX {
        let detail = format!("a server module listens at {} ports at most", limits::LISTEN_PORTS_MAX);
        return Err(Refusal::new(RefusalKind::BadManifest, detail));
    }
    Ok(ports)
}

/// Returns where to listen in a container that has `addresses`: at whatever address leads to it, since floating ones come and
/// go, in both versions of IP where there are both. Without a network of its own, a worker has nothing but the loopback's.
pub fn places(addresses: &[IpAddr]) -> Vec<IpAddr> {
    if addresses.is_empty() || addresses.iter().any(IpAddr::is_loopback) {
        return addresses.to_vec();
    }
    let mut places = vec![Ipv4Addr::UNSPECIFIED.into()];
    if addresses.iter().any(IpAddr::is_ipv6) || TcpSocket::new_v6().is_ok() {
        places.push(Ipv6Addr::UNSPECIFIED.into());
    }
    places
}

fn bind(address: SocketAddr) -> Result<TcpListener, Refusal> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    let listener = socket.and_then(|socket| {
        if address.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, true)?;
        }
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(limits::BACKLOG)
    });
    listener.map_err(|error| {
        if error.kind() == std::io::ErrorKind::AddrInUse {
            Refusal::new(RefusalKind::PortTaken, format!("TCP {address} is taken"))
        } else {
            Refusal::new(RefusalKind::NodeFailed, format!("cannot listen at {address}: {error}"))
        }
    })
}

/// Takes connections for whoever has the port at the time.
async fn take(listener: Arc<TcpListener>, handler: Arc<RwLock<Handler>>) {
    loop {
        let Ok((stream, client)) = listener.accept().await else {
            // The connection was given up meanwhile, or there are too many open files until others end.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(server) = stream.local_addr() else { continue };
        let handler = handler.read().unwrap_or_else(PoisonError::into_inner).clone();
        handler.accept(Accepted { stream, client, server, origin: None });
    }
}

const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_listened_in_at_all_addresses_and_the_loopback_at_its_own() {
        let check = |texts: &[&str], expected: &[&str]| {
            let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>();
            assert_eq!(places(&parse(texts)), parse(expected), "{texts:?}");
        };
        check(&[], &[]);
        check(&["127.0.0.1", "::1"], &["127.0.0.1", "::1"]);
        check(&["10.0.0.1"], &["0.0.0.0", "::"]);
        check(&["2001:db8::1"], &["0.0.0.0", "::"]);
    }

    /// Goal: a module that comes again at once has its port. Method: nothing gives the task that took connections time to end.
    #[tokio::test]
    async fn a_port_that_was_closed_is_free_at_once() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let first = bind(any.parse().unwrap()).unwrap();
            let address = first.local_addr().unwrap();
            let first = Listening::begin(first, async |listener: Arc<TcpListener>| _ = listener.accept().await);
            assert_eq!(bind(address).unwrap_err().kind, RefusalKind::PortTaken);
            first.end();
            let second = bind(address).unwrap();
            let _client = tokio::net::TcpStream::connect(address).await.unwrap();
            second.accept().await.unwrap();
        }
    }

    #[test]
    fn ports_are_named_and_bounded() {
        let check = |texts: &[&str], expected: Option<&[u16]>| {
            let filters: Vec<Filter> = texts.iter().map(|text| text.parse().unwrap()).collect();
            let found = tcp_ports(&filters).ok().map(Vec::from_iter);
            assert_eq!(found.as_deref(), expected, "{texts:?}");
        };
        check(&[], Some(&[]));
        check(&["tcp port 80", "udp port 53", "tcp src 192.0.2.0/24 port 8080-8081"], Some(&[80, 8080, 8081]));
        check(&["tcp"], None);
        check(&["tcp port 1-64"], Some(&(1..=64).collect::<Vec<u16>>()));
        check(&["tcp port 1-65"], None);
        check(&["tcp port 0-65535"], None);
    }
}
