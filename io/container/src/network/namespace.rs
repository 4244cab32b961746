// SPDX-License-Identifier: Apache-2.0
//! A new network namespace.

use std::fs::{self, File};
use std::os::fd::OwnedFd;

use netserv_netlink::Socket;

use super::error::NetworkError;
use super::limits::TCP_BUFFER_BYTES_MAX;
use super::sockets;
use crate::sys;

/// A namespace and ways to change it.
pub(super) struct Inside {
    pub namespace: OwnedFd,
    pub routes: Socket,
    pub rules: Socket,
    pub generic: Socket,
}

impl Inside {
    /// Makes a namespace on a thread of its own, since what it enters it does not leave.
    pub fn make() -> Result<Inside, NetworkError> {
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
        let (routes, rules, generic) = (sockets::routes()?, sockets::rules()?, sockets::generic()?);
        Ok(Inside { namespace: namespace.into(), routes, rules, generic })
    }
}
