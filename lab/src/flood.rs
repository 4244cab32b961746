// SPDX-License-Identifier: Apache-2.0
//! Floods of forged signaling: packets at a rate, with any source, past the sender's kernel.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use netserv_model::SessionId;
use netserv_wire::gist::{Cookie, Message, MessageType, Mri, Nli, PathCoupled, UDP_PORT};
use netserv_wire::ip::build;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::netns::Lab;
use crate::sys::PacketSocket;

/// How often the flood catches up with its rate.
const TURN: Duration = Duration::from_millis(1);
/// The TTL of all that is sent.
const TTL: u8 = 64;
/// ICMP over either version of IP, and the header of its message that nobody listens on a port.
const ICMP: u8 = 1;
const ICMP_PORT_UNREACHABLE: [u8; 8] = [3, 3, 0, 0, 0, 0, 0, 0];
const ICMPV6: u8 = 58;
const ICMPV6_PORT_UNREACHABLE: [u8; 8] = [1, 4, 0, 0, 0, 0, 0, 0];
/// TCP, and the third word of a header of 20 bytes in which SYN alone is set, with a window of 64 kB (RFC 9293 §3.1).
const TCP: u8 = 6;
const TCP_SYN: u32 = 5 << 28 | 2 << 16 | 0xffff;
/// Where SIP servers are.
const SIP_PORT: u16 = 5060;
/// The header of a binding request before its transaction (RFC 8489 §5).
const STUN_BINDING: [u8; 8] = [0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42];
/// A packet of 20 ms of G.711, and its first bytes.
const RTP_BYTES: usize = 172;
const RTP_PCMU: [u8; 2] = [0x80, 0];
/// What stands before a packet of each version on Ethernet.
const ETHERTYPE_V4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_V6: [u8; 2] = [0x86, 0xdd];
/// NetServ's NSLP.
const NSLP: u16 = 32_704;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Queries that name made up senders of a network, by which the machine is reached from there.
    Queries {
        /// The network.
        network: IpAddr,
        /// Bits of its prefix.
        bits: u32,
    },
    /// ICMP errors in the name of a flow's destination, that nobody listens to a Query of the node whose cookie is a guess.
    Refusals,
    /// TCP segments that ask the flows' destination for connections, from made up senders of a network. Their checksums are wrong,
    /// so that nobody answers.
    Syns {
        /// The network.
        network: IpAddr,
        /// Bits of its prefix.
        bits: u32,
        /// The port that they ask for.
        port: u16,
    },
    /// Keep-alives of SIP to the flows' destination, by CRLF, STUN and OPTIONS in turn, from made up senders of a network.
    KeepAlives {
        /// The network.
        network: IpAddr,
        /// Bits of its prefix.
        bits: u32,
    },
    /// RTP of G.711 to the flows' destination, of made up senders of a network and synchronization sources.
    Media {
        /// The network.
        network: IpAddr,
        /// Bits of its prefix.
        bits: u32,
        /// Where it goes: from this port
        first: u16,
        /// to this one.
        last: u16,
    },
}

/// Packets to a node at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flood {
    /// What is sent.
    pub kind: Kind,
    /// The node's address.
    pub to: IpAddr,
    /// The destination of the flows that it is about, of the same version.
    pub destination: IpAddr,
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
        let ethertype = if self.to.is_ipv4() { ETHERTYPE_V4 } else { ETHERTYPE_V6 };
        let ethernet = [mac(lab, neighbour, machine)?, mac(lab, machine, neighbour)?, ethertype.to_vec()].concat();
        lab.enter(machine)?;
        let socket = PacketSocket::open(&format!("to-{neighbour}"))?;
        let mut random = StdRng::seed_from_u64(1);
        at_rate(self.rate, self.time, || {
            let frame = [&ethernet[..], &self.packet(&mut random)?].concat();
            socket.send(&frame).context("the flood")
        })
    }

    fn packet(&self, random: &mut StdRng) -> Result<Vec<u8>> {
        let gist = |address: IpAddr| SocketAddr::new(address, UDP_PORT);
        let packet = match self.kind {
            Kind::Queries { network, bits } => {
                let source = within(network, bits, random);
                build::udp(gist(source), gist(self.to), TTL, &query(source, self.destination, random))?
            }
            Kind::Refusals => {
                let query = query(self.to, self.destination, random);
                let quoted = build::udp(gist(self.to), gist(self.destination), TTL, &query)?;
                let (protocol, header) = match self.to {
                    IpAddr::V4(_) => (ICMP, ICMP_PORT_UNREACHABLE),
                    IpAddr::V6(_) => (ICMPV6, ICMPV6_PORT_UNREACHABLE),
                };
                build::ip(self.destination, self.to, protocol, TTL, &[&header[..], &quoted].concat())?
            }
            Kind::Syns { network, bits, port } => {
                let source = within(network, bits, random);
                let [source_port, sequence] = [random.random::<u16>().into(), random.random::<u32>()];
                let ports = source_port << 16 | u32::from(port);
                let words = [ports, sequence, 0, TCP_SYN, 0].map(u32::to_be_bytes);
                build::ip(source, self.destination, TCP, TTL, words.as_flattened())?
            }
            Kind::KeepAlives { network, bits } => {
                let source = SocketAddr::new(within(network, bits, random), random.random_range(1024..u16::MAX));
                let server = SocketAddr::new(self.destination, SIP_PORT);
                build::udp(source, server, TTL, &keep_alive(source, server, random))?
            }
            Kind::Media { network, bits, first, last } => {
                let source = SocketAddr::new(within(network, bits, random), random.random_range(1024..u16::MAX));
                let mut rtp = vec![0xff; RTP_BYTES];
                rtp[..12].copy_from_slice(&random.random::<[u8; 12]>());
                rtp[..2].copy_from_slice(&RTP_PCMU);
                build::udp(source, SocketAddr::new(self.destination, random.random_range(first..=last)), TTL, &rtp)?
            }
        };
        Ok(packet)
    }
}

/// Does something so many times a second for a time; returns how many times a second that was in truth.
pub(crate) fn at_rate(rate: u32, time: Duration, mut act: impl FnMut() -> Result<()>) -> Result<f64> {
    let (mut done, begun) = (0_u32, Instant::now());
    while begun.elapsed() < time {
        let due = begun.elapsed().as_secs_f64() * f64::from(rate);
        while f64::from(done) < due {
            act()?;
            done += 1;
        }
        std::thread::sleep(TURN);
    }
    Ok(f64::from(done) / begun.elapsed().as_secs_f64())
}

/// Returns a made up address of a network.
pub(crate) fn within(network: IpAddr, bits: u32, random: &mut StdRng) -> IpAddr {
    match network {
        IpAddr::V4(v4) => {
            let host = random.random::<u32>().checked_shr(bits).unwrap_or_default();
            Ipv4Addr::from_bits(v4.to_bits() | host).into()
        }
        IpAddr::V6(v6) => {
            let host = random.random::<u128>().checked_shr(bits).unwrap_or_default();
            Ipv6Addr::from_bits(v6.to_bits() | host).into()
        }
    }
}

/// Returns a Query of a made up session and cookie.
pub(crate) fn query(source: IpAddr, destination: IpAddr, random: &mut StdRng) -> Vec<u8> {
    let mut query = Message::new(MessageType::Query, NSLP);
    query.hops = 8;
    query.mri = PathCoupled::new(source, destination).map(Mri::PathCoupled);
    query.session = Some(SessionId(random.random()));
    let validity = Duration::from_secs(30);
    query.nli = Some(Nli { peer_identity: vec![7; 16], ip_ttl: TTL, validity, address: source });
    query.query_cookie = Some(Cookie(random.random::<[u8; 16]>().to_vec()));
    query.emit_datagram()
}

/// Returns what a phone sends to stay reachable.
fn keep_alive(phone: SocketAddr, server: SocketAddr, random: &mut StdRng) -> Vec<u8> {
    match random.random_range(0..3) {
        0 => b"\r\n\r\n".to_vec(),
        1 => [&STUN_BINDING[..], &random.random::<[u8; 12]>()].concat(),
        _ => {
            let number: u32 = random.random();
            let text = format!(
                "OPTIONS sip:{server} SIP/2.0\r\nVia: SIP/2.0/UDP {phone};branch=z9hG4bK{number}\r\nMax-Forwards: 70\r\n\
                 From: <sip:f@{phone}>;tag={number}\r\nTo: <sip:{server}>\r\nCall-ID: {number}\r\nCSeq: 1 OPTIONS\r\n\
                 User-Agent: a flood of the lab\r\nContent-Length: 0\r\n\r\n"
            );
            text.into_bytes()
        }
    }
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
