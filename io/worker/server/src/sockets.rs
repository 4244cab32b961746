// SPDX-License-Identifier: Apache-2.0
//! `wasi:sockets`: own addresses and published ports to take connections at, permitted ones to open.
//!
//! The kernel's rules around the container say the same again, also for who took over the worker.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::sockets::SocketAddrUse;

use super::module::{Module, Transport};

/// Lets an instance of `module` make sockets, and look up names. With a gate, it waits there before it takes a port.
pub fn permit(wasi: &mut WasiCtxBuilder, module: &Arc<Module>, gate: Option<Gate>) {
    let module = Arc::clone(module);
    wasi.allow_tcp(true).allow_udp(true).allow_ip_name_lookup(true);
    wasi.socket_addr_check(move |address, of| {
        let permitted = is_permitted(&module, address, of);
        let takes_port = matches!(of, SocketAddrUse::TcpBind | SocketAddrUse::UdpBind) && address.port() != 0;
        let gate = gate.clone().filter(|_| permitted && takes_port);
        Box::pin(async move {
            if let Some(gate) = gate {
                gate.pass().await;
            }
            permitted
        })
    });
}

/// Where a program waits before it takes a port or a message, until the version before it has left.
#[derive(Clone, Debug)]
pub struct Gate {
    asks: mpsc::Sender<()>,
    open: watch::Receiver<bool>,
}

/// Who opens a [`Gate`].
#[derive(Debug)]
pub struct Porter {
    asked: mpsc::Receiver<()>,
    open: watch::Sender<bool>,
}

/// Returns a closed gate, and who opens it.
pub fn gate() -> (Gate, Porter) {
    let (asks, asked) = mpsc::channel(1);
    let (sender, open) = watch::channel(false);
    (Gate { asks, open }, Porter { asked, open: sender })
}

impl Gate {
    /// Returns whether the version before has left.
    pub fn is_open(&self) -> bool {
        *self.open.borrow()
    }

    /// Says that the program is here, and waits until the gate is open.
    pub async fn pass(mut self) {
        // Who asked before is heard, too.
        let _ = self.asks.try_send(());
        // Without a porter the program is being ended.
        let _ = self.open.wait_for(|open| *open).await;
    }
}

impl Porter {
    /// Waits until the program is at the gate, or for so long. Returns whether it has not ended.
    pub async fn wait(&mut self, at_most: Duration) -> bool {
        timeout(at_most, self.asked.recv()).await.map_or(true, |asked| asked.is_some())
    }

    /// Lets the program pass, from here on.
    pub fn open(&self) {
        self.open.send_replace(true);
    }
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
