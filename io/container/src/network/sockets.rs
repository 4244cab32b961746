// SPDX-License-Identifier: Apache-2.0
//! Netlink sockets of the namespace that this thread is in.

use netserv_netlink::{Family, Socket};

use super::error::NetworkError;

/// Opens a socket for links, addresses, routes and neighbours.
pub(super) fn routes() -> Result<Socket, NetworkError> {
    open(Family::Route)
}

/// Opens a socket for tables of the packet filter.
pub(super) fn rules() -> Result<Socket, NetworkError> {
    open(Family::Netfilter)
}

/// Opens a socket for families that the kernel numbers when it starts.
pub(super) fn generic() -> Result<Socket, NetworkError> {
    open(Family::Generic)
}

fn open(family: Family) -> Result<Socket, NetworkError> {
    Socket::open(family).map_err(NetworkError::kernel("open a netlink socket"))
}
