// SPDX-License-Identifier: Apache-2.0
//! Floods of forged signaling: packets at a rate, with any source, past the sender's kernel.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use netserv_model::SessionId;
use netserv_wire::gist::{Cookie, Message, MessageType, Mri, Nli, PathCoupled, UDP_PORT};
use netserv_wire::ip::{build, checksum};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::netns::Lab;
use crate::sys::PacketSocket;

/// How often the flood catches up with its rate.
const TURN: Duration = Duration::from_millis(1);
/// The TTL of all that is sent.
const TTL: u8 = 64;
/// ICMP over IPv4, and the header of its message that nobody listens on a port.
const ICMP: u8 = 1;
const PORT_UNREACHABLE: [u8; 8] = [3, 3, 0, 0, 0, 0, 0, 0];
/// NetServ's NSLP.
const NSLP: u16 = 32_704;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Queries that name made up senders of a network, by which the machine is reached from there.
    Queries {
        /// The network.
        network: Ipv4Addr,
        /// Bits of its prefix.
        bits: u32,
    },
    /// ICMP errors in the name of a flow's destination, that nobody listens to a Query of the node whose cookie is a guess.
    Refusals {
        /// Who is said to refuse.
        destination: Ipv4Addr,
    },
}

/// Packets to a node at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flood {
    /// What is sent.
    pub kind: Kind,
    /// The node's address.
    pub to: Ipv4Addr,
    /// Packets per second.
    pub rate: u32,
    /// For how long.
    pub time: Duration,
}

impl Flood {
    /// Sends all from a machine to its neighbour, and returns how many packets per second that were in truth. The thread stays
    /// in the machine's namespace: give it one of its own.
    ///
    /// # Errors
    /// The machines have no link, or packet sockets are not allowed.
    pub fn send(&self, lab: &Lab, machine: &str, neighbour: &str) -> Result<f64> {
        let ethernet = [mac(lab, neighbour, machine)?, mac(lab, machine, neighbour)?, vec![0x08, 0x00]].concat();
        let namespace = File::open(format!("/run/netns/{}", lab.namespace(machine)))?;
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        let socket = PacketSocket::open(&format!("to-{neighbour}"))?;
        let (mut random, mut sent, begun) = (StdRng::seed_from_u64(1), 0_u64, Instant::now());
        while begun.elapsed() < self.time {
            let due = begun.elapsed().as_secs_f64() * f64::from(self.rate);
            #[allow(clippy::cast_precision_loss, reason = "far fewer packets than a float counts")]
            while (sent as f64) < due {
                let frame = [&ethernet[..], &self.packet(&mut random)?].concat();
                socket.send(&frame).context("the flood")?;
                sent += 1;
            }
            std::thread::sleep(TURN);
        }
        #[allow(clippy::cast_precision_loss, reason = "far fewer packets than a float counts")]
        Ok(sent as f64 / begun.elapsed().as_secs_f64())
    }

    fn packet(&self, random: &mut StdRng) -> Result<Vec<u8>> {
        let gist = |address: Ipv4Addr| SocketAddr::new(address.into(), UDP_PORT);
        let packet = match self.kind {
            Kind::Queries { network, bits } => {
                let host = random.random::<u32>().checked_shr(bits).unwrap_or_default();
                let source = Ipv4Addr::from_bits(network.to_bits() | host);
                build::udp(gist(source), gist(self.to), TTL, &query(source, random))?
            }
            Kind::Refusals { destination } => {
                let quoted = build::udp(gist(self.to), gist(destination), TTL, &query(self.to, random))?;
                let icmp = [&PORT_UNREACHABLE[..], &quoted].concat();
                let mut packet = build::ip(destination.into(), self.to.into(), ICMP, TTL, &icmp)?;
                checksum::fill(&mut packet)?;
                packet
            }
        };
        Ok(packet)
    }
}

/// Returns a Query of a made up session and cookie.
fn query(source: Ipv4Addr, random: &mut StdRng) -> Vec<u8> {
    let address = IpAddr::V4(source);
    let mut query = Message::new(MessageType::Query, NSLP);
    query.hops = 8;
    query.mri = PathCoupled::new(address, Ipv4Addr::new(10, 4, 0, 2).into()).map(Mri::PathCoupled);
    query.session = Some(SessionId(random.random()));
    query.nli = Some(Nli { peer_identity: vec![7; 16], ip_ttl: TTL, validity: Duration::from_secs(30), address });
    query.query_cookie = Some(Cookie(random.random::<[u8; 16]>().to_vec()));
    query.emit_datagram()
}

/// Returns the hardware address of a machine's end of a link.
fn mac(lab: &Lab, machine: &str, neighbour: &str) -> Result<Vec<u8>> {
    let shown = lab.run(machine, "ip", &["-br", "link", "show", "dev", &format!("to-{neighbour}")])?;
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let address = text.split_whitespace().nth(2).unwrap_or_default();
    let bytes: Result<Vec<u8>, _> = address.split(':').map(|byte| u8::from_str_radix(byte, 16)).collect();
    let bytes = bytes.with_context(|| format!("`{text}` is no hardware address"))?;
    ensure!(bytes.len() == 6, "`{text}` is no hardware address");
    Ok(bytes)
}
