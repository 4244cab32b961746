// SPDX-License-Identifier: Apache-2.0
//! A container's own network: a namespace, a link to the node, addresses, and a firewall that the container cannot change.
//!
//! The node routes packets for the container's addresses to its end of the link; both ends know each other's station, so
//! that nobody has to ask, and the next hop is an address of one link that nobody needs to have. The firewall is inside
//! the namespace, where the container has no right to change it, and goes away with it.

mod detached;
mod doctor;
mod error;
mod firewall;
mod host_intercepts;
mod intercept;
pub mod limits;
mod link;
mod nftables;
mod routing;
mod socket;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use netserv_model::Filter;
use netserv_model::container_link::{container_link_group, container_link_prefix, is_container_link};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use doctor::{doctor, forwarding};
pub use error::NetworkError;
pub use host_intercepts::{HostIntercepts, remove_intercepts};
pub use intercept::{Intercept, ListenerPorts, Listeners};

use firewall::Permits;
use limits::{ADDRESSES_MAX, NODE_ADDRESSES_MAX, PERMITS_MAX, TCP_BUFFER_BYTES_MAX};
use socket::Socket;

use crate::sys;

/// What a container's network is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkSpec {
    /// The name of the node's end of the link, as [`container_link`](netserv_model::container_link::container_link) gives it.
    pub name: String,
    /// The container's addresses, of either version of IP or both; none of them is anybody else's.
    pub addresses: Vec<IpAddr>,
    /// What it may accept, as its peers' packets look: their source, its own destination port.
    pub listen: Vec<Filter>,
    /// What it may open, as its own packets look. One that names no destination is about other machines: not about the
    /// node, not about addresses of one link or of many.
    pub connect: Vec<Filter>,
}

/// A container's network. Dropping it takes the link away; the namespace goes with the last process in it.
#[derive(Debug)]
pub struct ContainerNetwork {
    name: String,
    namespace: OwnedFd,
    rules: Socket,
    permits: Mutex<Permits>,
    /// Whether the namespace hands on packets of others.
    prepared: Mutex<bool>,
    removed: AtomicBool,
}

impl ContainerNetwork {
    /// Makes a network, in the network namespace of the calling thread: 2 to 6 ms. Needs root.
    ///
    /// # Errors
    /// [`NetworkError`] if the specification is over a bound, an address is taken, or the kernel refuses.
    pub fn create(spec: &NetworkSpec) -> Result<ContainerNetwork, NetworkError> {
        check(spec)?;
        let host = Socket::routes().map_err(NetworkError::kernel("open a netlink socket"))?;
        let node = addresses_of(&host)?;
        let NetworkSpec { name, addresses, listen, connect } = spec.clone();
        let permits = Permits { addresses, listen, connect, node, intercepts: Vec::new() };
        let Inside { namespace, routes, rules } = Inside::make()?;
        // Before there is a link, so that nothing passes unjudged.
        rules.carry_out(&firewall::new(&permits))?;
        link::make_pair(&host, &name, namespace.as_fd())?;
        let (permits, prepared, removed) = (Mutex::new(permits), Mutex::new(false), AtomicBool::new(false));
        let network = ContainerNetwork { name, namespace, rules, permits, prepared, removed };
        link::set_up_inside(&routes, &spec.addresses)?;
        link::set_up_host(&host, &network.name, &spec.addresses)?;
        Ok(network)
    }

    /// Returns the namespace that the container's processes are to enter.
    pub fn netns(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }

    /// Returns the name of the node's end of the link.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the container's addresses.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.permits().addresses.clone()
    }

    /// Returns what the container may accept, and what it may open.
    pub fn permitted(&self) -> (Vec<Filter>, Vec<Filter>) {
        let permits = self.permits();
        (permits.listen.clone(), permits.connect.clone())
    }

    /// Changes what the container may accept and open, at once and for connections that are open too.
    ///
    /// # Errors
    /// [`NetworkError`] if there are too many filters or the kernel refuses; then all is as it was.
    pub fn permit(&self, listen: &[Filter], connect: &[Filter]) -> Result<(), NetworkError> {
        check_permits(listen, connect)?;
        self.change(|permits| {
            permits.listen = listen.to_vec();
            permits.connect = connect.to_vec();
        })
    }

    /// Learns which addresses the node has by now, and keeps the container from them. To be called when
    /// [`AddressWatch`] tells of a change.
    ///
    /// # Errors
    /// [`NetworkError`] if the kernel refuses.
    pub fn follow_node(&self) -> Result<(), NetworkError> {
        let node = node_addresses()?;
        if self.permits().node == node {
            return Ok(());
        }
        self.change(|permits| permits.node = node)
    }

    /// Returns how many packets the firewall dropped, by reason: `refused-in`, `refused-out`, `spoofed` (a source that is
    /// not the container's), `flows-full` (see [`FLOWS_MAX`](limits::FLOWS_MAX)) and `link` (of no use on this link).
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn dropped(&self) -> io::Result<BTreeMap<String, u64>> {
        let _alone = self.permits();
        Ok(nftables::counters(&self.rules, nftables::TABLE)?.into_iter().collect())
    }

    /// Takes the link away, and with it routes and neighbours: about 30 ms. Returns when it is gone.
    ///
    /// # Errors
    /// [`NetworkError`] if the kernel refuses.
    pub fn remove(&self) -> Result<(), NetworkError> {
        let host = Socket::routes().map_err(NetworkError::kernel("open a netlink socket"))?;
        link::remove(&host, &self.name)?;
        self.removed.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn change(&self, change: impl FnOnce(&mut Permits)) -> Result<(), NetworkError> {
        let mut permits = self.permits();
        let mut wanted = permits.clone();
        change(&mut wanted);
        self.rules.carry_out(&firewall::changed(&wanted))?;
        *permits = wanted;
        Ok(())
    }

    fn permits(&self) -> MutexGuard<'_, Permits> {
        self.permits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ContainerNetwork {
    fn drop(&mut self) {
        if self.removed.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = self.remove() {
            tracing::warn!(%error, name = self.name, "a container's link is left behind");
        }
    }
}

/// Tells when addresses of the node change, in the network namespace in which it was made.
#[derive(Debug)]
pub struct AddressWatch(Socket);

impl AddressWatch {
    /// Begins to watch.
    ///
    /// # Errors
    /// The kernel gives no socket.
    pub fn open() -> io::Result<AddressWatch> {
        Socket::listening(link::ADDRESS_GROUPS).map(AddressWatch)
    }

    /// Waits for a change at most so long, and returns whether there was one.
    pub fn wait(&self, time: Duration) -> bool {
        let mut fds = [PollFd::new(self.0.fd(), PollFlags::IN)];
        let time = Timespec::try_from(time).ok();
        let changed = poll(&mut fds, time.as_ref()).is_ok_and(|ready| ready > 0);
        if changed {
            self.0.drain();
        }
        changed
    }
}

/// Removes the links of all containers of an instance in this network namespace and what leads packets of others there,
/// also what a killed run left, and returns how many links there were. However many: about 30 ms.
///
/// # Errors
/// [`NetworkError`] with the first that could not be removed.
pub fn remove_networks(instance: &str) -> Result<usize, NetworkError> {
    remove_intercepts(instance)?;
    let host = Socket::routes().map_err(NetworkError::kernel("open a netlink socket"))?;
    let found = links_of(&host, instance)?;
    let Some(group) = found.first().and_then(|name| container_link_group(name)) else { return Ok(0) };
    if let Err(error) = link::remove_group(&host, group) {
        tracing::debug!(%error, "links of containers are removed one by one");
    }
    links_of(&host, instance)?.iter().try_for_each(|name| link::remove(&host, name))?;
    Ok(found.len())
}

fn links_of(host: &Socket, instance: &str) -> Result<Vec<String>, NetworkError> {
    let prefix = container_link_prefix(instance);
    let names = link::names(host).map_err(NetworkError::kernel("ask for devices"))?;
    Ok(names.into_iter().filter(|name| is_container_link(name) && name.starts_with(&prefix)).collect())
}

/// A namespace and ways to change it.
struct Inside {
    namespace: OwnedFd,
    routes: Socket,
    rules: Socket,
}

impl Inside {
    /// Makes a namespace on a thread of its own, since what it enters it does not leave.
    fn make() -> Result<Inside, NetworkError> {
        let thread = std::thread::Builder::new().name("network".to_owned()).spawn(Inside::enter);
        let thread = thread.map_err(NetworkError::kernel("start a thread"))?;
        let crashed = || NetworkError::Spec("the thread that makes networks crashed".to_owned());
        thread.join().map_err(|_| crashed())?
    }

    fn enter() -> Result<Inside, NetworkError> {
        sys::unshare(libc::CLONE_NEWNET).map_err(NetworkError::kernel("make a network namespace (needs root)"))?;
        let namespace = File::open("/proc/thread-self/ns/net").map_err(NetworkError::kernel("open the namespace"))?;
        let settings = [
            // The container has no capability for the ports below 1024; the firewall says which it may have.
            ("ip_unprivileged_port_start", "0".to_owned()),
            ("tcp_rmem", format!("4096 131072 {TCP_BUFFER_BYTES_MAX}")),
            ("tcp_wmem", format!("4096 16384 {TCP_BUFFER_BYTES_MAX}")),
        ];
        for (name, value) in settings {
            let written = fs::write(format!("/proc/sys/net/ipv4/{name}"), value);
            written.map_err(NetworkError::kernel("write /proc/sys/net in the container's namespace"))?;
        }
        let socket = |opened: io::Result<Socket>| opened.map_err(NetworkError::kernel("open a netlink socket"));
        Ok(Inside { namespace: namespace.into(), routes: socket(Socket::routes())?, rules: socket(Socket::rules())? })
    }
}

fn check(spec: &NetworkSpec) -> Result<(), NetworkError> {
    let refuse = |text: String| Err(NetworkError::Spec(text));
    if spec.name.is_empty()
        || spec.name.len() >= libc::IFNAMSIZ
        || !spec.name.bytes().all(|b| b.is_ascii_alphanumeric())
    {
        return refuse(format!("`{}` is no name for a device", spec.name.escape_debug()));
    }
    if spec.addresses.is_empty() || spec.addresses.len() > ADDRESSES_MAX {
        return refuse(format!("a container has 1 to {ADDRESSES_MAX} addresses, not {}", spec.addresses.len()));
    }
    if let Some(address) = spec.addresses.iter().find(|address| !is_container_address(**address)) {
        return refuse(format!("{address} cannot be a container's address"));
    }
    check_permits(&spec.listen, &spec.connect)
}

/// Returns whether a container can have the address: one of one machine, and not only on one link.
pub fn is_container_address(address: IpAddr) -> bool {
    let near = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6.to_ipv4_mapped().is_some(),
    };
    !(near || address.is_unspecified() || address.is_loopback() || address.is_multicast())
}

fn check_permits(listen: &[Filter], connect: &[Filter]) -> Result<(), NetworkError> {
    for (what, filters) in [("listen", listen), ("connect", connect)] {
        if filters.len() > PERMITS_MAX {
            let count = filters.len();
            return Err(NetworkError::Spec(format!("`{what}` has {count} filters, but {PERMITS_MAX} are the most")));
        }
    }
    Ok(())
}

/// Returns what this network namespace takes for itself, but for loopback: its addresses and the broadcasts of their
/// networks, at most [`NODE_ADDRESSES_MAX`] of each version
/// of IP.
///
/// # Errors
/// [`NetworkError`] if the kernel does not tell.
pub fn node_addresses() -> Result<BTreeSet<IpAddr>, NetworkError> {
    let host = Socket::routes().map_err(NetworkError::kernel("open a netlink socket"))?;
    addresses_of(&host)
}

fn addresses_of(host: &Socket) -> Result<BTreeSet<IpAddr>, NetworkError> {
    let mut all: BTreeSet<IpAddr> =
        link::addresses(host).map_err(NetworkError::kernel("ask for the node's addresses"))?.into_iter().collect();
    for is_v4 in [true, false] {
        let over: Vec<IpAddr> =
            all.iter().copied().filter(|address| address.is_ipv4() == is_v4).skip(NODE_ADDRESSES_MAX).collect();
        if !over.is_empty() {
            tracing::warn!(over = over.len(), "containers are not kept from all addresses of this node");
            all.retain(|address| !over.contains(address));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use netserv_model::container_link::container_link;

    use super::*;

    #[test]
    fn what_makes_no_sense_or_is_too_much_is_refused() {
        let good = NetworkSpec {
            name: container_link("x", 0),
            addresses: vec!["192.0.2.1".parse().unwrap()],
            listen: vec![Filter::default(); PERMITS_MAX],
            connect: vec![],
        };
        assert!(check(&good).is_ok());
        let addresses = |text: &[&str]| text.iter().map(|address| address.parse().unwrap()).collect::<Vec<IpAddr>>();
        let many = ["192.0.2.1"; ADDRESSES_MAX + 1];
        for bad in [
            NetworkSpec { name: "a name that is long".to_owned(), ..good.clone() },
            NetworkSpec { name: "../x".to_owned(), ..good.clone() },
            NetworkSpec { addresses: vec![], ..good.clone() },
            NetworkSpec { addresses: addresses(&many), ..good.clone() },
            NetworkSpec { addresses: addresses(&["fe80::5"]), ..good.clone() },
            NetworkSpec { addresses: addresses(&["127.0.0.1"]), ..good.clone() },
            NetworkSpec { addresses: addresses(&["::"]), ..good.clone() },
            NetworkSpec { listen: vec![Filter::default(); PERMITS_MAX + 1], ..good.clone() },
            NetworkSpec { connect: vec![Filter::default(); PERMITS_MAX + 1], ..good.clone() },
        ] {
            assert!(matches!(check(&bad), Err(NetworkError::Spec(_))), "{bad:?}");
        }
    }
}
