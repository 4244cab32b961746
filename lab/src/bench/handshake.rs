// SPDX-License-Identifier: Apache-2.0
//! GIST handshakes between two engines in memory, on one core.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use netserv_gist::{
    ApiCall, AssociationId, Channel, Config, Datagram, Engine, Event, InterfaceId, MessageHandle, SendOptions,
    TransferAttributes, Transmit,
};
use netserv_model::{Instant, SessionId};
use netserv_wire::gist::{Mri, PathCoupled, UDP_PORT};

use super::Plan;
use super::goals::Goal;
use super::summary::{Figure, Row};

const NSLP: u16 = 33;
const RAO: u16 = 65_503;
const NODES: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2))];
/// What the flow is headed for; the second engine's node lies on the way.
const BEYOND: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 1));
/// Handshakes of one pair of engines: all their state is there at the end.
const HANDSHAKES: u64 = 20_000;
/// The engines' clock between two handshakes: slower than they are, so that no rate limit is what is measured.
const STEP: Duration = Duration::from_micros(100);

/// Measures handshakes, with a message each, over datagrams and over one connection.
///
/// # Errors
/// A message did not arrive.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let (mut datagrams, mut stream) = (Vec::new(), Vec::new());
    for _ in 0..plan.handshake_rounds {
        datagrams.push(round(false)?);
        stream.push(round(true)?);
    }
    let how = format!(
        "Query, Response with cookie, Confirm, and one NSLP message of 64 bytes delivered, for {HANDSHAKES} sessions one \
         after the other, whose routing state stays. Both engines run on one core, without sockets: a node is one of \
         the two, so it alone could do about twice as many."
    );
    let rows = vec![
        Row::new("handshakes over datagrams", "per second", &datagrams).goal(Goal::Handshakes),
        Row::new("handshakes, message over the shared connection", "per second", &stream),
    ];
    Ok(vec![Figure { name: "GIST handshakes", how, rows }])
}

fn round(reliable: bool) -> Result<f64> {
    let mut pair = Pair::new();
    let started = std::time::Instant::now();
    for number in 0..HANDSHAKES {
        pair.exchange(number, reliable)?;
    }
    #[allow(clippy::cast_precision_loss, reason = "a small count")]
    Ok(HANDSHAKES as f64 / started.elapsed().as_secs_f64())
}

struct Pair {
    engines: [Engine; 2],
    now: Instant,
    /// What each engine calls its end of a connection.
    connections: Vec<[AssociationId; 2]>,
    received: u64,
}

impl Pair {
    fn new() -> Pair {
        let engine = |identity: u8| {
            let mut config = Config::new(vec![identity; 16]);
            config.hosted.insert(NSLP, RAO);
            Engine::new(config, [identity; 32])
        };
        Pair { engines: [engine(1), engine(2)], now: Instant::from_millis(1000), connections: Vec::new(), received: 0 }
    }

    fn exchange(&mut self, number: u64, reliable: bool) -> Result<()> {
        let mut session = [0; 16];
        session[8..].copy_from_slice(&number.to_be_bytes());
        let flow = PathCoupled::new(NODES[0], BEYOND).context("both addresses are IPv4")?;
        let call = ApiCall::SendMessage {
            handle: MessageHandle(number),
            nslp_id: NSLP,
            session: SessionId(session),
            mri: Mri::PathCoupled(flow),
            attributes: TransferAttributes { reliable, ..TransferAttributes::default() },
            sii: None,
            timeout: Duration::from_secs(10),
            data: vec![0x4e; 64],
            hops: None,
            options: SendOptions::default(),
        };
        self.now = self.now + STEP;
        self.engines[0].handle_api(self.now, call, NODES[0])?;
        while self.step() {}
        ensure!(self.received == number + 1, "message {number} did not arrive");
        Ok(())
    }

    /// Carries one thing from one engine to the other; returns whether there was one.
    fn step(&mut self) -> bool {
        for from in [0, 1] {
            if let Some(transmit) = self.engines[from].poll_transmit() {
                self.carry(from, transmit);
                return true;
            }
            while let Some(event) = self.engines[from].poll_event() {
                self.received += u64::from(matches!(event, Event::RecvMessage { .. }));
            }
            if self.engines[from].poll_timeout().is_some_and(|(due, _)| due <= self.now) {
                self.engines[from].handle_timeout(self.now);
                return true;
            }
        }
        false
    }

    fn carry(&mut self, from: usize, transmit: Transmit) {
        let to = 1 - from;
        match transmit {
            Transmit::QMode { destination, payload, .. } => self.datagram(from, destination, &payload),
            Transmit::Datagram { peer, payload, .. } => self.datagram(from, peer.ip(), &payload),
            Transmit::Connect { association, .. } => {
                let peer = SocketAddr::new(NODES[from], 50_000);
                let accepted = self.engines[to].handle_accepted(self.now, NODES[to], peer, Channel::Plain);
                let ends = if from == 0 { [association, accepted] } else { [accepted, association] };
                self.connections.push(ends);
                self.engines[from].handle_connected(self.now, association, Channel::Plain);
            }
            Transmit::Stream { association, bytes } => {
                self.engines[from].handle_written(self.now, association, bytes.len());
                let ends = self.connections.iter().find(|ends| ends[from] == association);
                if let Some(far) = ends.map(|ends| ends[to]) {
                    self.engines[to].handle_stream(self.now, far, &bytes);
                }
            }
            Transmit::Close { association } => {
                let at = self.connections.iter().position(|ends| ends[from] == association);
                if let Some(ends) = at.map(|at| self.connections.swap_remove(at)) {
                    self.engines[to].handle_closed(self.now, ends[to], None);
                }
            }
        }
    }

    fn datagram(&mut self, from: usize, destination: IpAddr, payload: &[u8]) {
        let to = 1 - from;
        let datagram = Datagram {
            interface: InterfaceId(1),
            local: NODES[to],
            source: SocketAddr::new(NODES[from], UDP_PORT),
            destination,
            destination_is_local: destination == NODES[to],
            ttl: 63,
            q_mode_interceptable: true,
            payload,
        };
        self.engines[to].handle_datagram(self.now, datagram);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_over_datagrams_and_over_a_connection() {
        for reliable in [false, true] {
            let mut pair = Pair::new();
            (0..20).for_each(|number| pair.exchange(number, reliable).unwrap());
            assert_eq!(pair.connections.len(), usize::from(reliable), "one connection serves all sessions");
        }
    }
}
