// SPDX-License-Identifier: Apache-2.0
//! Sockets inside the container's namespace that speak with others' addresses: listening ones that take connections
//! between others, and those that go on to the other end with the client's address.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use netserv_netlink::Requests;
use netserv_wire::ip::IpVersion;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::container_network::ContainerNetwork;
use super::error::NetworkError;
use super::intercept::{DELIVER, check};
use super::limits::{BACKLOG, TRANSPARENT_SOCKETS_MAX};
use super::matching::{Intercept, ListenerPorts};
use super::{link, routing, sockets};
use crate::sys;

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

/// Makes this thread's namespace forward and deliver packets of others, by the container's link unless there is none.
pub(super) fn prepare_inside(with_link: bool) -> Result<(), NetworkError> {
    for (path, value) in SETTINGS {
        let path = Path::new("/proc/sys/net").join(path);
        if path.exists() {
            let written = fs::write(&path, value);
            written.map_err(NetworkError::kernel(format!("write {} in the container", path.display())))?;
        }
    }
    let routes = sockets::routes()?;
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
/// shorter ways, and with smaller segments where no router tells of a bound on the way.
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

pub(super) fn transparent(v6: bool) -> io::Result<OwnedFd> {
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
