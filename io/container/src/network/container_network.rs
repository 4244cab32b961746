// SPDX-License-Identifier: Apache-2.0
//! One container's network, from its making to its removal.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use netserv_model::Filter;
use netserv_model::floating::is_container_address;
use netserv_model::policy::NetworkRate;
use netserv_model::usage::Traffic;
use netserv_netlink::{Family, Requests, Socket, nftables};

use super::addresses::{addresses_of, node_addresses};
use super::error::NetworkError;
use super::limits::{ADDRESSES_MAX, PERMITS_MAX};
use super::link_state::HostEnd;
use super::matching::Permits;
use super::namespace::Inside;
use super::rate::Ends;
use super::{firewall, link, rate, sent, sockets};

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
    /// How fast it sends, and receives.
    pub rate: NetworkRate,
}

/// A container's network. Dropping it takes the link away; the namespace goes with the last process in it.
#[derive(Debug)]
pub struct ContainerNetwork {
    pub(super) name: String,
    pub(super) namespace: OwnedFd,
    /// What is set up inside, by its kind.
    pub(super) routes: Socket,
    pub(super) rules: Socket,
    /// The indices of both ends of the link: the node's and the container's.
    pub(super) indices: (u32, u32),
    pub(super) permits: Mutex<Permits>,
    /// Whether the namespace hands on packets of others.
    pub(super) prepared: Mutex<bool>,
    pub(super) removed: AtomicBool,
}

impl ContainerNetwork {
    /// Makes a network, in the network namespace of the calling thread: 2 to 6 ms. Needs root.
    ///
    /// # Errors
    /// [`NetworkError`] if the specification is over a bound, an address is taken, or the kernel refuses.
    pub fn create(spec: &NetworkSpec) -> Result<ContainerNetwork, NetworkError> {
        check(spec)?;
        let host = sockets::routes()?;
        let node = addresses_of(&host)?;
        let NetworkSpec { name, addresses, listen, connect, rate } = spec.clone();
        let permits = Permits { addresses, listen, connect, node, rate, ..Permits::default() };
        let Inside { namespace, routes, rules, generic } = Inside::make()?;
        // Before there is a link, so that nothing passes unjudged.
        rules.carry_out(&firewall::new(&permits))?;
        link::make_pair(&host, &name, namespace.as_fd())?;
        let (permits, prepared, removed) = (Mutex::new(permits), Mutex::new(false), AtomicBool::new(false));
        let indices = (0, 0);
        let mut network = ContainerNetwork { name, namespace, routes, rules, indices, permits, prepared, removed };
        let index = |socket: &Socket, name: &str| {
            link::index_of(socket, name).map_err(NetworkError::kernel(format!("find the device {name}")))
        };
        network.indices = (index(&host, &network.name)?, index(&network.routes, link::INSIDE_NAME)?);
        rate::take_datagrams_apart(&generic, network.indices.1)?;
        let rules = sockets::rules()?;
        sent::see(&rules, &network.name, network.indices.0)?;
        network.hold(&host, rate)?;
        link::set_up_inside(&network.routes, &spec.addresses)?;
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

    /// Returns the container's own addresses.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.permits().addresses.clone()
    }

    /// Returns what the container may accept, what it may open, and how fast it sends and receives.
    pub fn permitted(&self) -> (Vec<Filter>, Vec<Filter>, NetworkRate) {
        let permits = self.permits();
        (permits.listen.clone(), permits.connect.clone(), permits.rate)
    }

    /// Changes what the container may accept and open, and how fast it sends and receives, at once and for connections that
    /// are open too.
    ///
    /// # Errors
    /// [`NetworkError`] if there are too many filters or the kernel refuses; then all is as it was.
    pub fn permit(&self, listen: &[Filter], connect: &[Filter], rate: NetworkRate) -> Result<(), NetworkError> {
        check_permits(listen, connect)?;
        rate.check().map_err(NetworkError::Spec)?;
        let before = self.permits().rate;
        let host = sockets::routes()?;
        let hold = |rate| if rate == before { Ok(()) } else { self.hold(&host, rate) };
        let changed = hold(rate).and_then(|()| {
            self.change(|permits| {
                permits.listen = listen.to_vec();
                permits.connect = connect.to_vec();
                permits.rate = rate;
            })
        });
        if changed.is_err() && rate != before {
            let restored = self.hold(&host, before);
            restored
                .unwrap_or_else(|error| tracing::warn!(%error, name = self.name, "a container's rate is another one"));
        }
        changed
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

    /// Returns how many packets were dropped, by reason: `refused-in`, `refused-out`, `spoofed` (a source that is not the
    /// container's), `flows-full` (see [`FLOWS_MAX`](super::limits::FLOWS_MAX)), `link` (of no use on this link), and those
    /// over the rate: `packet-rate-in`, `packet-rate-out`, `bit-rate-in` and `bit-rate-out`.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn dropped(&self) -> io::Result<BTreeMap<String, u64>> {
        let _alone = self.permits();
        let mut dropped = nftables::counters(&self.rules, &firewall::table())?;
        dropped.push((rate::PACKETS_OUT.to_owned(), sent::dropped(&Socket::open(Family::Netfilter)?, &self.name)?));
        dropped.extend(self.ends(&Socket::open(Family::Route)?).dropped()?);
        Ok(dropped.into_iter().collect())
    }

    /// Returns what the container received (in) and sent (out) since the network was made, with link headers, also what the
    /// other end dropped then.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn traffic(&self) -> io::Result<Traffic> {
        let Traffic { packets_in, bytes_in, packets_out, bytes_out } =
            link::traffic_of(&Socket::open(Family::Route)?, self.indices.0)?;
        // What comes out of this end of the link, the container sent.
        Ok(Traffic { packets_in: packets_out, bytes_in: bytes_out, packets_out: packets_in, bytes_out: bytes_in })
    }

    /// Puts back what somebody took away of what counts and bounds what the container sends. Returns whether that was so.
    ///
    /// # Errors
    /// [`NetworkError`] if the kernel does not tell, or refuses.
    pub fn restore(&self) -> Result<bool, NetworkError> {
        let (rules, host) = (sockets::rules()?, sockets::routes()?);
        // What goes on holds the same.
        let permits = self.permits();
        let is_there = sent::is_there(&rules, &self.name);
        let is_there = is_there.map_err(NetworkError::kernel("ask for tables of the packet filter"))?;
        if !is_there {
            sent::see(&rules, &self.name, self.indices.0)?;
            sent::bound(&rules, &self.name, permits.rate)?;
        }
        let is_shaped = self.ends(&host).is_shaped().map_err(NetworkError::kernel("ask how a link sends"))?;
        if !is_shaped {
            self.ends(&host).shape(permits.rate)?;
        }
        Ok(!is_there || !is_shaped)
    }

    /// Puts back what somebody took away of the node's end of the link: that it is up, routes, and neighbours. Returns what that
    /// was, for people.
    ///
    /// # Errors
    /// [`NetworkError`] if the kernel does not tell, or refuses.
    pub fn restore_link(&self) -> Result<Vec<&'static str>, NetworkError> {
        let host = sockets::routes()?;
        let permits = self.permits();
        let neighbours: Vec<IpAddr> = permits.all_addresses().collect();
        let (own, floating) = (&permits.addresses, &permits.floating);
        let wanted = HostEnd { index: self.indices.0, neighbours: &neighbours, own, floating, is_open: false };
        let mut requests = Requests::default();
        let missing = wanted.mend(&host, &mut requests);
        let missing = missing.map_err(NetworkError::kernel("ask for the node's end of a container's link"))?;
        host.carry_out(&requests)?;
        Ok(missing)
    }

    /// Takes the link away, and with it routes and neighbours: about 30 ms. Returns when it is gone.
    ///
    /// # Errors
    /// [`NetworkError`] if the kernel refuses.
    pub fn remove(&self) -> Result<(), NetworkError> {
        let host = sockets::routes()?;
        link::remove(&host, &self.name)?;
        let rules = sockets::rules()?;
        sent::forget(&rules, &self.name, self.indices.0)?;
        self.removed.store(true, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Permits)) -> Result<(), NetworkError> {
        let mut permits = self.permits();
        let mut wanted = permits.clone();
        change(&mut wanted);
        self.rules.carry_out(&firewall::changed(&wanted))?;
        *permits = wanted;
        Ok(())
    }

    /// Holds both ends of the link to a rate; `host` is a socket of the node's namespace, which is this thread's.
    fn hold(&self, host: &Socket, rate: NetworkRate) -> Result<(), NetworkError> {
        let rules = sockets::rules()?;
        sent::bound(&rules, &self.name, rate)?;
        self.ends(host).shape(rate)
    }

    fn ends<'a>(&'a self, host: &'a Socket) -> Ends<'a> {
        Ends { host: (host, self.indices.0), inside: (&self.routes, self.indices.1) }
    }

    pub(super) fn permits(&self) -> MutexGuard<'_, Permits> {
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
    spec.rate.check().map_err(NetworkError::Spec)?;
    check_permits(&spec.listen, &spec.connect)
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
            rate: NetworkRate::default(),
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
            NetworkSpec { rate: NetworkRate { bits_per_second: 0, ..good.rate }, ..good.clone() },
        ] {
            assert!(matches!(check(&bad), Err(NetworkError::Spec(_))), "{bad:?}");
        }
    }
}
