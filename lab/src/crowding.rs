// SPDX-License-Identifier: Apache-2.0
//! Floods of TCP connections: from any address, held as long as the node lets them.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use netserv_wire::gist::MAGIC;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::flood::{at_rate, query, within};
use crate::netns::Lab;

/// How often those that are held say something, and are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How many bytes of rubbish are said.
const RUBBISH_BYTES: usize = 512;

/// What is said on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    /// Nothing.
    Silence,
    /// A GIST message, a byte at a time, and not its end.
    Trickle,
    /// What is of no protocol.
    Rubbish,
    /// A TLS ClientHello whose content is none.
    FalseHello,
}

/// Connections to a node at a rate. The network's addresses have to lead to the machine, and be local there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowding {
    /// What is said.
    pub speech: Speech,
    /// Where they go.
    pub to: SocketAddr,
    /// The network that they come from.
    pub network: IpAddr,
    /// Bits of its prefix.
    pub bits: u32,
    /// New ones per second.
    pub rate: u32,
    /// How many are held at a time; for one more, the oldest goes.
    pub held_max: usize,
    /// For how long.
    pub time: Duration,
}

/// A connection and what it has still to say.
struct Held {
    stream: TcpStream,
    rest: VecDeque<u8>,
    bytes_at_a_time: usize,
}

impl Crowding {
    /// Opens all from a machine, and returns how many per second those were in truth, and how many were held at the end. The
    /// thread stays in the machine's namespace: give it one of its own.
    ///
    /// # Errors
    /// A socket cannot be made.
    pub fn open(&self, lab: &Lab, machine: &str) -> Result<(f64, usize)> {
        lab.enter(machine)?;
        let (mut random, mut held, mut looked) = (StdRng::seed_from_u64(2), VecDeque::new(), Instant::now());
        let rate = at_rate(self.rate, self.time, || {
            if looked.elapsed() >= LOOK {
                held.retain_mut(Held::goes_on);
                looked = Instant::now();
            }
            if held.len() >= self.held_max {
                held.pop_front();
            }
            held.extend(self.connect(&mut random)?);
            Ok(())
        })?;
        held.retain_mut(Held::goes_on);
        Ok((rate, held.len()))
    }

    /// Begins one; `None` if its address is in use.
    fn connect(&self, random: &mut StdRng) -> Result<Option<Held>> {
        let family = if self.to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None).context("a socket")?;
        if self.to.is_ipv4() {
            sockopt::set_ip_freebind(&socket, true)?;
        } else {
            sockopt::set_ipv6_freebind(&socket, true)?;
        }
        let source = SocketAddr::new(within(self.network, self.bits, random), 0);
        rustix::net::bind(&socket, &source).with_context(|| format!("binding to {source}"))?;
        match rustix::net::connect(&socket, &self.to) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("connecting from {source}")),
        }
        let (rest, bytes_at_a_time) = self.words(source.ip(), random);
        Ok(Some(Held { stream: TcpStream::from(socket), rest, bytes_at_a_time }))
    }

    /// Returns what one says, and how much of it at a time.
    fn words(&self, source: IpAddr, random: &mut StdRng) -> (VecDeque<u8>, usize) {
        let mut rubbish = vec![0; RUBBISH_BYTES];
        random.fill(&mut rubbish[..]);
        match self.speech {
            Speech::Silence => (VecDeque::new(), 0),
            Speech::Trickle => {
                let mut message = query(source, self.to.ip(), random).split_off(size_of_val(&MAGIC));
                message.pop();
                (message.into(), 1)
            }
            Speech::Rubbish => (rubbish.into(), usize::MAX),
            Speech::FalseHello => {
                // A record of a handshake with a ClientHello that takes all of it.
                let record = u16::try_from(RUBBISH_BYTES + 4).expect("a record is longer").to_be_bytes();
                let hello = u16::try_from(RUBBISH_BYTES).expect("a record is longer").to_be_bytes();
                let header = [0x16, 0x03, 0x01, record[0], record[1], 0x01, 0x00, hello[0], hello[1], 0x03, 0x03];
                ([&header[..], &rubbish[2..]].concat().into(), usize::MAX)
            }
        }
    }
}

impl Held {
    /// Says what is next; returns whether the node still has it.
    fn goes_on(&mut self) -> bool {
        let next: Vec<u8> = self.rest.iter().copied().take(self.bytes_at_a_time).collect();
        if !next.is_empty() {
            match self.stream.write(&next) {
                Ok(written) => drop(self.rest.drain(..written)),
                Err(error) => return is_open(error.kind()),
            }
        }
        match self.stream.read(&mut [0; 64]) {
            Ok(length) => length > 0,
            Err(error) => is_open(error.kind()),
        }
    }
}

fn is_open(error: ErrorKind) -> bool {
    matches!(error, ErrorKind::WouldBlock | ErrorKind::NotConnected | ErrorKind::Interrupted)
}
