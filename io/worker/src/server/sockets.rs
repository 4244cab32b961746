// SPDX-License-Identifier: Apache-2.0
//! `wasi:sockets`: own addresses and published ports to take connections at, permitted ones to open.
//!
//! The kernel's rules around the container say the same again, also for who took over the worker.

use std::net::SocketAddr;
use std::sync::Arc;

use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::sockets::SocketAddrUse;

use super::module::{Module, Transport};

/// Lets an instance of `module` make sockets, and look up names.
pub fn permit(wasi: &mut WasiCtxBuilder, module: &Arc<Module>) {
    let module = Arc::clone(module);
    wasi.allow_tcp(true).allow_udp(true).allow_ip_name_lookup(true);
    wasi.socket_addr_check(move |address, of| {
        let permitted = is_permitted(&module, address, of);
        Box::pin(async move { permitted })
    });
}

fn is_permitted(module: &Module, address: SocketAddr, of: SocketAddrUse) -> bool {
    match of {
        // A port of the system's choice is that of a connection to be opened, or of nobody who listens yet.
        SocketAddrUse::TcpBind => address.port() == 0 || module.may_listen(Transport::Tcp, address),
        SocketAddrUse::TcpListen => module.may_listen(Transport::Tcp, address),
        SocketAddrUse::UdpBind => address.port() == 0 || module.may_listen(Transport::Udp, address),
        SocketAddrUse::TcpConnect => module.may_connect(Transport::Tcp, address),
        SocketAddrUse::TcpAccept => {
            module.counts.connection();
            true
        }
        // A server answers whoever asked it, of whom only the kernel knows.
        SocketAddrUse::UdpSend => module.listens_to_datagrams() || module.may_connect(Transport::Udp, address),
        SocketAddrUse::UdpReceive => true,
    }
}
