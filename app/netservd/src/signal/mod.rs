// SPDX-License-Identifier: Apache-2.0
//! Signaling on the wire: UDP port 270, intercepted Queries, TCP connections of messaging associations.
//!
//! Tasks read and write; what they read becomes a [`SignalInput`] for the control loop, which alone calls the engine.

mod associations;
mod datagrams;
mod interceptor;
mod routes;

use std::net::IpAddr;
use std::sync::Arc;

use anyhow::Result;
use netserv_dataplane::signal::{Intercepted, Interceptor, SignalSocket};
use netserv_gist::{Engine, Transmit};
use netserv_model::Now;
use tokio::sync::mpsc;

use crate::event::{Event, SignalInput};
use crate::readable::readable;
use associations::Associations;
use interceptor::Passing;
use routes::OwnAddresses;

/// The node's signaling sockets.
pub struct SignalIo {
    socket: Arc<SignalSocket>,
    send_router_alert: bool,
    passing: Passing,
    addresses: OwnAddresses,
    associations: Associations,
}

impl SignalIo {
    /// Starts reading from the signaling socket, the interceptor and the TCP port.
    ///
    /// # Errors
    /// A port is taken, or the process may not use it.
    pub fn start(
        socket: SignalSocket,
        interceptor: Option<Interceptor>,
        tcp_port: u16,
        send_router_alert: bool,
        events: mpsc::Sender<Event>,
    ) -> Result<SignalIo> {
        let socket = Arc::new(socket);
        let fd = readable(&*socket)?;
        tokio::spawn(datagrams::read(fd, socket.clone(), events.clone()));
        let passing = Passing::start(interceptor, events.clone())?;
        let associations = Associations::listen(tcp_port, events)?;
        let addresses = OwnAddresses::open()?;
        Ok(SignalIo { socket, send_router_alert, passing, addresses, associations })
    }

    /// Returns the node's own addresses if they may have changed since the last call.
    pub fn changed_addresses(&mut self) -> Option<Vec<IpAddr>> {
        self.addresses.changed()
    }

    /// Returns the node's own addresses.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.addresses.all()
    }

    /// Returns the node's address toward a destination.
    pub fn source_for(&self, destination: IpAddr) -> Option<IpAddr> {
        self.addresses.source_for(destination)
    }

    /// Takes what was intercepted since the last call, in order of arrival.
    pub fn intercepted(&mut self) -> Vec<Intercepted> {
        self.passing.take()
    }

    /// Gives one input to the engine and does what it says of intercepted datagrams.
    pub fn handle(&mut self, now: Now, input: SignalInput, engine: &mut Engine) {
        let now = now.instant;
        match input {
            SignalInput::Intercepted(packet) => {
                let local = self.addresses.on(packet.interface.0, packet.destination);
                let disposition = engine.handle_datagram(now, interceptor::view(&packet, local));
                self.passing.release(packet.id, disposition);
            }
            SignalInput::Datagram(datagram) => {
                // A datagram for the node itself is never forwarded.
                engine.handle_datagram(now, datagrams::view(&datagram));
            }
            SignalInput::Unreachable { destination } => engine.handle_unreachable(now, destination),
            SignalInput::Accepted { local, peer, stream } => {
                let association = engine.handle_accepted(now, local, peer);
                self.associations.attach(association, stream);
            }
            SignalInput::Connected { association } => engine.handle_connected(now, association),
            SignalInput::Bytes { association, bytes } => engine.handle_stream(now, association, &bytes),
            SignalInput::Closed { association, error } => {
                self.associations.forget(association);
                engine.handle_closed(now, association, error);
            }
        }
    }

    /// Carries out what the engine wants to be sent.
    pub fn transmit(&mut self, transmit: Transmit) {
        match transmit {
            Transmit::QMode { local, destination, ttl, rao, payload } => {
                let rao = rao.filter(|_| self.send_router_alert);
                if let Err(error) = self.socket.send_q_mode(local, destination, ttl, rao, &payload) {
                    tracing::debug!(%error, %destination, "a Query could not be sent");
                }
            }
            Transmit::Datagram { local, peer, payload } => {
                if let Err(error) = self.socket.send_datagram(local, peer, &payload) {
                    tracing::debug!(%error, %peer, "a datagram could not be sent");
                }
            }
            Transmit::Connect { association, local, peer } => {
                self.associations.connect(association, local, peer);
            }
            Transmit::Stream { association, bytes } => self.associations.send(association, bytes),
            Transmit::Close { association } => self.associations.close(association),
        }
    }

    /// Takes the interception rule away.
    pub fn stop(&mut self) {
        self.passing.stop();
        self.associations.clear();
    }
}
