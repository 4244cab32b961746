// SPDX-License-Identifier: Apache-2.0
//! Interception inside the container's namespace: listening sockets that take connections between others, sockets that
//! go on to the other end with the client's address, and the rules that lead packets to them.
//!
//! Packets of a flow come in by the container's link since the node marks them ([`HostIntercepts`]). What opens a
//! connection is handed to the listening socket; what belongs to a socket of such a connection is delivered here; all
//! else of the flow goes back out as it came, so that connections that were there before go on. A container whose
//! worker died has no listening socket, and then the kernel does that with new connections too.
//!
//! [`HostIntercepts`]: super::HostIntercepts

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use netserv_model::{Filter, Protocol};
use netserv_wire::ip::IpVersion;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::firewall::Permits;
use super::firewall::{TCP, ends, keep_from_node, octets, version_of};
use super::limits::{BACKLOG, INTERCEPTS_MAX, TRANSPARENT_SOCKETS_MAX};
use super::nftables::{Batch, End, Hook, Rule, Verdict};
use super::socket::{Requests, Socket};
use super::{ContainerNetwork, NetworkError, link, routing};
use crate::sys;

/// Connections that a container takes over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intercept {
    /// Whose: TCP with the server's port, as packets from client to server look.
    pub filter: Filter,
    /// The ports of the listening sockets that take new ones; nothing while nobody takes them.
    pub ports: Option<ListenerPorts>,
    /// New ones that nobody takes are reset; else they go on untouched.
    pub refuse: bool,
}

/// The ports of listening sockets inside a container, on its loopback interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenerPorts {
    /// That for IPv4.
    pub v4: Option<u16>,
    /// That for IPv6.
    pub v6: Option<u16>,
}

/// Listening sockets for intercepted connections, in a container's namespace.
#[derive(Debug)]
pub struct Listeners {
    /// That for IPv4; nothing if the kernel has none.
    pub v4: Option<OwnedFd>,
    /// That for IPv6; nothing if the kernel has none.
    pub v6: Option<OwnedFd>,
    /// Their ports.
    pub ports: ListenerPorts,
}

impl ContainerNetwork {
    /// Makes listening sockets that can take connections between others, whose local address is the server's: for a
    /// worker, which has not the right to make them. Non-blocking. About 0.2 ms, and 5 ms the first time.
    ///
    /// When the last copy of them is closed, intercepts with their ports take nothing any more.
    ///
    /// # Errors
    /// [`NetworkError`] if the kernel refuses.
    pub fn listeners(&self) -> Result<Listeners, NetworkError> {
        self.prepare()?;
        self.inside(|| {
            let v4 = listener(IpAddr::V4(Ipv4Addr::LOCALHOST)).map(Some).or_else(without)?;
            let v6 = listener(IpAddr::V6(Ipv6Addr::LOCALHOST)).map(Some).or_else(without)?;
            let [v4_port, v6_port] = [&v4, &v6].map(|listener| listener.as_ref().map(|(_, port)| *port));
            let ports = ListenerPorts { v4: v4_port, v6: v6_port };
            Ok(Listeners { v4: v4.map(|(fd, _)| fd), v6: v6.map(|(fd, _)| fd), ports })
        })
        .map_err(NetworkError::kernel("make a transparent listening socket"))
    }

    /// Makes sockets that may take any address as their own, to go on to a server with a client's: TCP, unbound,
    /// non-blocking, at most [`TRANSPARENT_SOCKETS_MAX`]. The firewall says where they get to.
    ///
    /// # Errors
    /// [`NetworkError`] if too many are asked for or the kernel refuses.
    pub fn transparent_sockets(&self, v6: bool, count: usize) -> Result<Vec<OwnedFd>, NetworkError> {
        if count > TRANSPARENT_SOCKETS_MAX {
            let text = format!("{count} sockets were asked for, but {TRANSPARENT_SOCKETS_MAX} are the most");
            return Err(NetworkError::Spec(text));
        }
        self.inside(|| std::iter::repeat_with(|| transparent(v6)).take(count).collect())
            .map_err(NetworkError::kernel("make a transparent socket"))
    }

    /// Changes which connections the container takes over, at once. The node has to lead their packets to it:
    /// [`HostIntercepts::set`](super::HostIntercepts::set).
    ///
    /// # Errors
    /// [`NetworkError`] if there are too many, one is not about TCP with a port, or the kernel refuses; then all is as it
    /// was.
    pub fn intercept(&self, intercepts: &[Intercept]) -> Result<(), NetworkError> {
        check(intercepts.iter().map(|intercept| &intercept.filter))?;
        if !intercepts.is_empty() {
            self.prepare()?;
        }
        self.change(|permits| permits.intercepts = intercepts.to_vec())
    }

    /// Has the namespace forward and deliver packets of others, once.
    fn prepare(&self) -> Result<(), NetworkError> {
        let mut prepared = self.prepared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if *prepared {
            return Ok(());
        }
        self.inside(|| Ok(prepare_inside(true))).map_err(NetworkError::kernel("enter the container's namespace"))??;
        *prepared = true;
        Ok(())
    }

    /// Does something in the namespace, on a thread of its own.
    fn inside<T: Send>(&self, act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let enter = || {
            move_into_link_name_space(self.netns(), Some(LinkNameSpaceType::Network))?;
            act()
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("network".to_owned()).spawn_scoped(scope, enter)?;
            thread.join().map_err(|_| io::Error::other("the thread in the namespace crashed"))?
        })
    }
}

/// Refuses filters that say nothing about connections to a port, and too many of them.
pub(super) fn check<'a>(filters: impl Iterator<Item = &'a Filter>) -> Result<(), NetworkError> {
    let mut count = 0;
    for filter in filters {
        count += 1;
        if filter.protocol() != Protocol::Tcp || filter.destination_ports().is_none() {
            let text = format!("`{filter}` cannot be intercepted: it takes `tcp` with the `port` of a server");
            return Err(NetworkError::Spec(text));
        }
    }
    if count > INTERCEPTS_MAX {
        let text = format!("a container intercepts by {INTERCEPTS_MAX} filters at most, not {count}");
        return Err(NetworkError::Spec(text));
    }
    Ok(())
}

/// Returns the rules that match a filter's packets, one for each version of IP; `reversed`, those of the way back.
pub(super) fn matching(filter: &Filter, reversed: bool) -> impl Iterator<Item = (IpVersion, Rule)> {
    let versions = [(IpVersion::V4, 4), (IpVersion::V6, 6)].into_iter();
    let versions = versions.filter(move |(_, number)| filter.version().is_none_or(|wanted| wanted == *number));
    versions.map(move |(version, _)| (version, ends(Rule::new().version(version).protocol(TCP), filter, reversed)))
}

/// Returns the rules that match what a container sends of a filter's flows: connections are opened to the server only.
pub(super) fn sent(filter: &Filter) -> impl Iterator<Item = Rule> {
    let to_server = matching(filter, false).map(|(_, rule)| rule);
    to_server.chain(matching(filter, true).map(|(_, rule)| rule.opening(false)))
}

/// Adds the rules that hand packets to sockets here.
pub(super) fn take(batch: &mut Batch, permits: &Permits) {
    if permits.intercepts.is_empty() {
        return;
    }
    batch.chain(TAKE, Some(Hook::Prerouting(PRIORITY)));
    let here = |rule: Rule| rule.mark(DELIVER).verdict(Verdict::Accept);
    batch.rule(TAKE, &Rule::new().loopback(Hook::Prerouting(PRIORITY)).verdict(Verdict::Accept), "loopback");
    for address in &permits.addresses {
        let (octets, bits) = (octets(*address), if address.is_ipv4() { 32 } else { 128 });
        let own = Rule::new().version(version_of(*address)).address(End::Destination, &octets, bits);
        batch.rule(TAKE, &own.verdict(Verdict::Accept), "own addresses, which are judged as ever");
    }
    batch.rule(TAKE, &here(Rule::new().protocol(TCP).of_transparent_socket()), "taken connections (nft_socket)");
    for Intercept { filter, ports, .. } in &permits.intercepts {
        for (version, rule) in matching(filter, false) {
            let (address, port) = match version {
                IpVersion::V4 => (IpAddr::V4(Ipv4Addr::LOCALHOST), ports.and_then(|ports| ports.v4)),
                IpVersion::V6 => (IpAddr::V6(Ipv6Addr::LOCALHOST), ports.and_then(|ports| ports.v6)),
            };
            if let Some(port) = port {
                let taken = rule.opening(true).deliver_to(version, &octets(address), port);
                batch.rule(TAKE, &here(taken), "new connections (nft_tproxy)");
            }
        }
    }
}

/// Accepts what was handed to sockets here.
pub(super) fn accept_in(batch: &mut Batch, chain: &str, permits: &Permits) {
    if !permits.intercepts.is_empty() {
        let taken = Rule::new().marked(DELIVER).protocol(TCP).verdict(Verdict::Accept);
        batch.rule(chain, &taken, "intercepted packets");
    }
}

/// Lets pass on what nobody here takes; what opens a connection is reset if it is to be refused.
pub(super) fn pass_on(batch: &mut Batch, chain: &str, permits: &Permits) {
    for Intercept { filter, refuse, .. } in &permits.intercepts {
        for (_, rule) in matching(filter, false).filter(|_| *refuse) {
            batch.rule(chain, &rule.opening(true).count(REFUSED).reset(), "new connections that nobody takes");
        }
    }
    for Intercept { filter, .. } in &permits.intercepts {
        for (_, rule) in matching(filter, false).chain(matching(filter, true)) {
            batch.rule(chain, &rule.verdict(Verdict::Accept), "connections of others");
        }
    }
}

/// Lets sockets here send with the addresses of both ends, where the filters say so, but not to the node.
pub(super) fn send_out(batch: &mut Batch, chain: &str, refuse: &'static str, permits: &Permits) {
    if permits.intercepts.is_empty() {
        return;
    }
    batch.chain(THROUGH, None);
    batch.rule(THROUGH, &Rule::new().options().verdict(Verdict::Goto(refuse)), "options");
    keep_from_node(batch, THROUGH);
    batch.rule(THROUGH, &Rule::new().verdict(Verdict::Accept), "intercepted packets");
    for Intercept { filter, .. } in &permits.intercepts {
        for rule in sent(filter) {
            batch.rule(chain, &rule.verdict(Verdict::Goto(THROUGH)), "intercepted packets");
        }
    }
}

/// New connections that were reset since nobody took them.
pub(super) const REFUSED: &str = "refused-intercepted";
const TAKE: &str = "take";
const THROUGH: &str = "through";
/// `NF_IP_PRI_MANGLE`.
const PRIORITY: i32 = -150;
/// The mark of packets that are delivered here, and the table that delivers them. Marks do not leave a namespace.
const DELIVER: u32 = 1;

/// Tries all of it out in a namespace of its own, for `doctor`.
pub(super) fn try_out() -> Result<(), NetworkError> {
    let any: Filter = "tcp port 80".parse().expect("our own filter is one");
    let ports = ListenerPorts { v4: Some(1), v6: Some(1) };
    let permits =
        Permits { intercepts: vec![Intercept { filter: any, ports: Some(ports), refuse: true }], ..Permits::default() };
    let trial = move || {
        sys::unshare(libc::CLONE_NEWNET).map_err(NetworkError::kernel("make a network namespace (needs root)"))?;
        prepare_inside(false)?;
        let rules = Socket::rules().map_err(NetworkError::kernel("open a netlink socket"))?;
        rules.carry_out(&super::firewall::new(&permits))?;
        transparent(false).map(drop).map_err(NetworkError::kernel("make a transparent socket"))
    };
    let thread = std::thread::Builder::new().name("network".to_owned()).spawn(trial);
    let thread = thread.map_err(NetworkError::kernel("start a thread"))?;
    thread.join().map_err(|_| NetworkError::Spec("the thread that tries interception crashed".to_owned()))?
}

/// Makes this thread's namespace forward and deliver packets of others, by the container's link unless there is none.
pub(super) fn prepare_inside(with_link: bool) -> Result<(), NetworkError> {
    for (path, value) in SETTINGS {
        let path = Path::new("/proc/sys/net").join(path);
        if path.exists() {
            let written = fs::write(&path, value);
            written.map_err(NetworkError::kernel(format!("write {} in the container", path.display())))?;
        }
    }
    let routes = Socket::routes().map_err(NetworkError::kernel("open a netlink socket"))?;
    if with_link {
        link::open_inside_end(&routes)?;
    } else {
        let mut requests = Requests::default();
        link::start_loopback(&mut requests);
        routes.carry_out(&requests)?;
    }
    for version in [IpVersion::V4, IpVersion::V6] {
        let mut requests = Requests::default();
        routing::add_rule(&mut requests, version, DELIVER, DELIVER_TABLE);
        routing::deliver_here(&mut requests, version, DELIVER_TABLE);
        match routes.carry_out(&requests) {
            // Without a version, there is nothing of it to intercept; without policy routing, nothing at all.
            Err(error) if version == IpVersion::V6 && routing::is_missing_here(&error) => {}
            other => other?,
        }
    }
    Ok(())
}

/// The number of the table that delivers intercepted packets.
const DELIVER_TABLE: u32 = 100;
/// What a namespace needs to hand on packets of others: by the link that they came from, without telling their senders of
/// shorter ways, and with smaller segments where a bound on the way is not heard of, since that is told to the other end.
const SETTINGS: [(&str, &str); 9] = [
    ("ipv4/conf/all/send_redirects", "0"),
    ("ipv4/conf/net0/send_redirects", "0"),
    ("ipv4/conf/all/rp_filter", "0"),
    ("ipv4/conf/net0/rp_filter", "0"),
    ("ipv4/ip_forward", "1"),
    ("ipv6/conf/all/forwarding", "1"),
    ("ipv4/tcp_mtu_probing", "1"),
    ("core/somaxconn", "8192"),
    ("ipv4/tcp_max_syn_backlog", "8192"),
];

fn listener(address: IpAddr) -> io::Result<(OwnedFd, u16)> {
    let socket = transparent(address.is_ipv6())?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &SocketAddr::new(address, 0))?;
    rustix::net::listen(&socket, BACKLOG.into())?;
    let at = SocketAddr::try_from(rustix::net::getsockname(&socket)?)?;
    Ok((socket, at.port()))
}

fn transparent(v6: bool) -> io::Result<OwnedFd> {
    let family = if v6 { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    if v6 {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    sys::set_transparent(socket.as_fd(), v6)?;
    Ok(socket)
}

/// A version of IP that this machine has not needs no socket.
fn without<T>(error: io::Error) -> io::Result<Option<T>> {
    let missing = routing::is_missing(&error) || error.kind() == io::ErrorKind::AddrNotAvailable;
    if missing { Ok(None) } else { Err(error) }
}
