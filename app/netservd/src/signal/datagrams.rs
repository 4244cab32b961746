// SPDX-License-Identifier: Apache-2.0
//! Datagrams for this node, from UDP port 270.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use netserv_node::OwnedDatagram;
use netserv_node::gist::{IcmpError, IcmpKind, InterfaceId};
use netserv_signal::{Received, SignalSocket, UnreachableKind};
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

use crate::event::{Event, SignalInput};

/// Datagrams that are read at most before those that wait for room are looked at.
const RECEIVED_BETWEEN_SENDING: u64 = 64;

/// Reads datagrams, and sends those that wait for room, until the control loop ends.
pub async fn read(fd: AsyncFd<OwnedFd>, socket: Arc<SignalSocket>, events: mpsc::Sender<Event>) {
    loop {
        let Ok(mut ready) = fd.readable().await else { return };
        ready.clear_ready();
        for number in 1_u64.. {
            if number.is_multiple_of(RECEIVED_BETWEEN_SENDING) {
                socket.send_waiting();
            }
            let input = match socket.receive() {
                Ok(Some(received)) => input(received),
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "the signaling socket failed");
                    break;
                }
            };
            let Some(input) = input else { continue };
            if events.send(Event::Signal(input)).await.is_err() {
                return;
            }
        }
        socket.send_waiting();
    }
}

fn input(received: Received) -> Option<SignalInput> {
    match received {
        Received::Datagram { interface, local, source, destination, ttl, payload } => {
            let interface = InterfaceId(interface.0);
            let datagram = OwnedDatagram { interface, local, source, destination, ttl, payload };
            Some(SignalInput::Datagram(Box::new(datagram)))
        }
        Received::Unreachable { destination, kind, reporter, payload } => {
            let Some(kind) = hindrance(kind) else {
                tracing::debug!(%destination, ?kind, ?reporter, "an ICMP error that says nothing about the last node");
                return None;
            };
            Some(SignalInput::Icmp(Box::new(IcmpError { kind, reporter, quoted: payload })))
        }
    }
}

/// Returns what an ICMP error says of the way to the destination, if anything.
fn hindrance(kind: UnreachableKind) -> Option<IcmpKind> {
    match kind {
        UnreachableKind::Port => Some(IcmpKind::Port),
        UnreachableKind::Protocol => Some(IcmpKind::Protocol),
        UnreachableKind::Host => Some(IcmpKind::Host),
        UnreachableKind::Network => Some(IcmpKind::Network),
        UnreachableKind::Prohibited => Some(IcmpKind::Prohibited),
        UnreachableKind::TimeExceeded => Some(IcmpKind::TimeExceeded),
        UnreachableKind::TooBig { mtu: 0 } | UnreachableKind::Other => None,
        UnreachableKind::TooBig { mtu } => Some(IcmpKind::TooBig { mtu }),
    }
}
