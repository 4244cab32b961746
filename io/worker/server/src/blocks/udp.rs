// SPDX-License-Identifier: Apache-2.0
//! `netserv:udp/sockets`.

use std::net::SocketAddr;
use std::sync::Arc;

use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::bindings::sockets::network::IpSocketAddress;
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use crate::state::ServerState;
use crate::udp::{Socket, UdpError};

mod bindings {
    wasmtime::component::bindgen!({
        path: [
            "../../../wit/deps/wasi-io",
            "../../../wit/deps/wasi-clocks",
            "../../../wit/deps/wasi-sockets",
            "../../../wit/deps/netserv-udp",
        ],
        inline: "package netserv:host-udp; world host { import netserv:udp/sockets@1.0.0; }",
        imports: {
            "netserv:udp/sockets.[static]socket.open": async | trappable,
            default: trappable,
        },
        require_store_data_send: true,
        with: {
            "wasi:io": wasmtime_wasi::p2::bindings::io,
            "wasi:sockets": wasmtime_wasi::p2::bindings::sockets,
            "netserv:udp/sockets.socket": crate::blocks::udp::Shared,
        },
    });
}

use bindings::netserv::udp::sockets::{self as wit, Error};

/// Adds the interface to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

/// A socket of an instance, which what waits for it has, too.
pub type Shared = Arc<Socket>;

impl wit::Host for ServerState {}

impl wit::HostSocket for ServerState {
    async fn open(&mut self, local: IpSocketAddress) -> wasmtime::Result<Result<Resource<Shared>, Error>> {
        if !self.has_sockets {
            return Ok(Err(Error::NotPermitted));
        }
        let local = SocketAddr::from(local);
        if let Some(gate) = self.gate.clone().filter(|_| local.port() != 0 && Socket::may_open(&self.module, local)) {
            gate.pass().await;
        }
        match Socket::open(&self.module, local) {
            Ok(socket) => Ok(Ok(self.table.push(Arc::new(socket))?)),
            Err(error) => Ok(Err(error.into())),
        }
    }

    fn local(&mut self, socket: Resource<Shared>) -> wasmtime::Result<IpSocketAddress> {
        Ok(self.table.get(&socket)?.local().into())
    }

    fn receive(&mut self, socket: Resource<Shared>, most: u32) -> wasmtime::Result<Result<wit::Batch, Error>> {
        let batch = self.table.get(&socket)?.receive(usize::try_from(most).unwrap_or(usize::MAX));
        let datagram = |(remote, length): (SocketAddr, usize)| wit::Datagram {
            remote: remote.into(),
            length: u32::try_from(length).unwrap_or(u32::MAX),
        };
        Ok(Ok(wit::Batch { datagrams: batch.datagrams.into_iter().map(datagram).collect(), bytes: batch.bytes }))
    }

    fn subscribe(&mut self, socket: Resource<Shared>) -> wasmtime::Result<Resource<DynPollable>> {
        let socket = Arc::clone(self.table.get(&socket)?);
        let waiting = self.table.push(Waiting { socket, to_send: false })?;
        subscribe(&mut self.table, waiting)
    }

    fn send(
        &mut self,
        socket: Resource<Shared>,
        datagrams: Vec<wit::Datagram>,
        bytes: Vec<u8>,
    ) -> wasmtime::Result<Result<u32, Error>> {
        let length = |datagram: &wit::Datagram| usize::try_from(datagram.length).unwrap_or(usize::MAX);
        let datagrams: Vec<(SocketAddr, usize)> =
            datagrams.iter().map(|datagram| (datagram.remote.into(), length(datagram))).collect();
        let sent = self.table.get(&socket)?.send(&datagrams, &bytes);
        Ok(sent.map(|sent| u32::try_from(sent).unwrap_or(u32::MAX)).map_err(Error::from))
    }

    fn subscribe_to_send(&mut self, socket: Resource<Shared>) -> wasmtime::Result<Resource<DynPollable>> {
        let socket = Arc::clone(self.table.get(&socket)?);
        let waiting = self.table.push(Waiting { socket, to_send: true })?;
        subscribe(&mut self.table, waiting)
    }

    fn drop(&mut self, socket: Resource<Shared>) -> wasmtime::Result<()> {
        self.table.delete(socket)?;
        Ok(())
    }
}

impl From<UdpError> for Error {
    fn from(error: UdpError) -> Error {
        match error {
            UdpError::NotPermitted => Error::NotPermitted,
            UdpError::Taken => Error::Taken,
            UdpError::Invalid => Error::Invalid,
            UdpError::TooLarge => Error::TooLarge,
            UdpError::Quota => Error::Quota,
        }
    }
}

/// What is ready when datagrams may have come, or may go.
struct Waiting {
    socket: Shared,
    to_send: bool,
}

#[wasmtime_wasi::async_trait]
impl Pollable for Waiting {
    async fn ready(&mut self) {
        if self.to_send {
            self.socket.wait_to_send().await;
        } else {
            self.socket.wait_to_receive().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use wit::HostSocket as _;

    use super::*;
    use crate::blocks::testing::{run, state};
    use crate::module::Shared as SharedOfModule;

    #[test]
    fn who_answers_requests_has_no_sockets() {
        run(async {
            let mut state = state(SharedOfModule::for_tests);
            let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
            assert!(matches!(state.open(local.into()).await.unwrap(), Err(Error::NotPermitted)));
            state.has_sockets = true;
            let socket = state.open(local.into()).await.unwrap().unwrap();
            let waiting = state.subscribe(Resource::new_borrow(socket.rep())).unwrap();
            // What waits for a socket goes on when the socket is gone.
            wit::HostSocket::drop(&mut state, socket).unwrap();
            state.table.delete(waiting).unwrap();
        });
    }
}
