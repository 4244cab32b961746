// SPDX-License-Identifier: Apache-2.0
//! Calls of G.711 through a relay that speaks rtpengine's ng protocol: one side sends, the other one echoes, and how long that takes and what
//! is lost is measured.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::netns::Lab;

/// What a node is set to that is to delay media no more than a program in user space: it has a core to look for packets on, for longer than
/// is between two of a call.
pub const NODE_LOOKS: &str = "dataplane.cores = [1]\ndataplane.real-time = true\ndataplane.busy-poll-us = 20000";

impl Lab {
    /// Starts rtpengine in user space on a machine, at an address of it: its requests come to `port`, and media to `media`. Returns its
    /// process.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_rtpengine(&mut self, machine: &str, at: IpAddr, port: u16, media: RangeInclusive<u16>) -> Result<u32> {
        let mut command = self.command(machine, "rtpengine");
        command.args(["--foreground", "--log-stderr", "--log-level=4", "--table=-1"]);
        command.args([format!("--port-min={}", media.start()), format!("--port-max={}", media.end())]);
        command.args([format!("--interface={at}"), format!("--listen-ng={at}:{port}")]);
        self.start(machine, "rtpengine", &mut command)
    }
}

/// What calls there are.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Where the relay takes requests.
    #[arg(long)]
    ng: SocketAddr,
    /// Where the callers are, with a port that is free.
    #[arg(long)]
    local: SocketAddr,
    /// Where all callees are, who send back what they get.
    #[arg(long)]
    echo: SocketAddr,
    /// How many calls.
    #[arg(long, default_value_t = 1)]
    calls: u32,
    /// For how long they talk.
    #[arg(long, default_value_t = 2)]
    seconds: u64,
}

/// What became of what was sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// Packets of all callers.
    pub sent: u64,
    /// Those that came back.
    pub received: u64,
    /// Of these, those that came behind a later one of their call.
    pub late: u64,
    /// How long half of them took there and back, in microseconds.
    pub p50_us: u64,
    /// And 95 in 100.
    pub p95_us: u64,
    /// And 99 in 100.
    pub p99_us: u64,
    /// The longest time for which a caller got nothing, in milliseconds.
    pub gap_ms_max: u64,
}

/// Runs calls, and prints what became of them as JSON.
///
/// # Errors
/// The relay refuses one, or an address is not there.
pub fn run(options: &Options) -> Result<()> {
    let ng = Ng::open(options)?;
    let socket = UdpSocket::bind(options.local).context("the callers' address")?;
    let ends = (0..options.calls).map(|call| ng.begin(call, options)).collect::<Result<Vec<SocketAddr>>>()?;
    let begun = Instant::now();
    let sent = AtomicU64::new(0);
    let mut told = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&socket, options, begun));
        send(&socket, &ends, options, (begun, &sent))?;
        receiver.join().expect("the receiver ends")
    })?;
    told.sent = sent.load(Ordering::Relaxed);
    (0..options.calls).try_for_each(|call| ng.end(call))?;
    println!("{}", serde_json::to_string(&told)?);
    Ok(())
}

/// Sends back what comes, until the process is ended.
///
/// # Errors
/// The address is not there.
pub fn echo(local: SocketAddr) -> Result<()> {
    let socket = UdpSocket::bind(local)?;
    println!("echoing at {local}");
    let mut bytes = [0; 2048];
    loop {
        let (length, from) = socket.recv_from(&mut bytes)?;
        // A relay that closed the port says so by an error; others go on.
        let _ = socket.send_to(&bytes[..length], from);
    }
}

fn send(
    socket: &UdpSocket,
    ends: &[SocketAddr],
    options: &Options,
    (begun, sent): (Instant, &AtomicU64),
) -> Result<()> {
    let each = PACKET_EACH / options.calls;
    for sequence in 0..u32::try_from(options.seconds * PACKETS_PER_SECOND)? {
        for (call, end) in (0_u32..).zip(ends) {
            let due = PACKET_EACH * sequence + each * call;
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
            let mut packet = [0xff; HEADER_BYTES + PAYLOAD_BYTES];
            packet[..4].copy_from_slice(&[0x80, 0, sequence.to_be_bytes()[2], sequence.to_be_bytes()[3]]);
            packet[4..8].copy_from_slice(&(sequence * 160).to_be_bytes());
            packet[8..12].copy_from_slice(&(FIRST_SSRC + call).to_be_bytes());
            packet[12..16].copy_from_slice(&call.to_be_bytes());
            let now = u64::try_from(begun.elapsed().as_micros())?;
            packet[16..24].copy_from_slice(&now.to_be_bytes());
            if socket.send_to(&packet, end).is_ok() {
                sent.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    Ok(())
}

fn receive(socket: &UdpSocket, options: &Options, begun: Instant) -> Result<Told> {
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    let (mut took_us, mut heard, mut gap) = (Vec::new(), vec![None; options.calls as usize], Duration::ZERO);
    let (mut last, mut late) = (vec![0; options.calls as usize], 0);
    let mut bytes = [0; 2048];
    while begun.elapsed() < Duration::from_secs(options.seconds) + LAST_WAIT {
        let Ok((length, _)) = socket.recv_from(&mut bytes) else { continue };
        ensure!(length == HEADER_BYTES + PAYLOAD_BYTES, "a packet of {length} bytes");
        let (now, call) = (begun.elapsed(), u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]));
        let sent = u64::from_be_bytes([16, 17, 18, 19, 20, 21, 22, 23].map(|at| bytes[at]));
        took_us.push(u64::try_from(now.as_micros())?.saturating_sub(sent));
        let heard = heard.get_mut(call as usize).context("a call that is none")?;
        if let Some(before) = heard.replace(now) {
            gap = gap.max(now.saturating_sub(before));
        }
        // Its time stamp, which goes on for days.
        let stamp = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let last = &mut last[call as usize];
        late += u64::from(stamp < *last);
        *last = stamp.max(*last);
    }
    took_us.sort_unstable();
    let part = |hundredth: usize| took_us.get(took_us.len() * hundredth / 100).copied().unwrap_or(0);
    Ok(Told {
        sent: 0,
        received: took_us.len() as u64,
        late,
        p50_us: part(50),
        p95_us: part(95),
        p99_us: part(99),
        gap_ms_max: u64::try_from(gap.as_millis())?,
    })
}

/// A client of the ng protocol.
struct Ng(UdpSocket);

impl Ng {
    fn open(options: &Options) -> Result<Ng> {
        let socket = UdpSocket::bind(SocketAddr::new(options.local.ip(), 0))?;
        socket.connect(options.ng)?;
        socket.set_read_timeout(Some(Duration::from_millis(500)))?;
        Ok(Ng(socket))
    }

    /// Makes a call, and returns where its caller sends to.
    fn begin(&self, call: u32, options: &Options) -> Result<SocketAddr> {
        let (id, offer, answer) = (format!("call-{call}"), sdp(options.local), sdp(options.echo));
        let names = [("call-id", &*id), ("from-tag", "a")];
        self.ask(&[&[("command", "offer"), ("sdp", &offer)], &names[..]].concat())?;
        let told = self.ask(&[&[("command", "answer"), ("sdp", &answer), ("to-tag", "b")], &names[..]].concat())?;
        destination(&told).with_context(|| format!("no address in {told}"))
    }

    fn end(&self, call: u32) -> Result<()> {
        let id = format!("call-{call}");
        self.ask(&[("command", "delete"), ("call-id", &id), ("from-tag", "a")]).map(drop)
    }

    fn ask(&self, entries: &[(&str, &str)]) -> Result<String> {
        static COOKIE: AtomicU64 = AtomicU64::new(0);
        let text = |text: &str| format!("{}:{text}", text.len());
        let dict: String = entries.iter().map(|(name, value)| text(name) + &text(value)).collect();
        let cookie = format!("{}_{} ", std::process::id(), COOKIE.fetch_add(1, Ordering::Relaxed));
        let mut bytes = vec![0; 65_536];
        for _ in 0..5 {
            self.0.send(format!("{cookie}d{dict}e").as_bytes())?;
            while let Ok(length) = self.0.recv(&mut bytes) {
                let told = String::from_utf8_lossy(&bytes[..length]).into_owned();
                if told.starts_with(&cookie) {
                    ensure!(told.contains("6:result2:ok"), "refused: {told}");
                    return Ok(told);
                }
            }
        }
        bail!("the relay does not answer")
    }
}

fn sdp(end: SocketAddr) -> String {
    let version = if end.is_ipv4() { 4 } else { 6 };
    let (address, port) = (end.ip(), end.port());
    format!(
        "v=0\r\no=- 1 1 IN IP{version} {address}\r\ns=-\r\nc=IN IP{version} {address}\r\nt=0 0\r\nm=audio {port} RTP/AVP 0\r\n"
    )
}

/// Returns where the description in an answer has RTP go to.
fn destination(told: &str) -> Option<SocketAddr> {
    let behind = |start: &str| told.split_once(start)?.1.split([' ', '\r', '\n']).next();
    let address = behind("c=IN IP4 ").or_else(|| behind("c=IN IP6 "))?;
    Some(SocketAddr::new(address.parse().ok()?, behind("m=audio ")?.parse().ok()?))
}

/// What G.711 has in 20 ms.
const PAYLOAD_BYTES: usize = 160;
const HEADER_BYTES: usize = 12;
const PACKET_EACH: Duration = Duration::from_millis(20);
const PACKETS_PER_SECOND: u64 = 50;
const FIRST_SSRC: u32 = 0x1000;
/// How long what was sent last is waited for.
const LAST_WAIT: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_to_send_is_read_from_an_answer() {
        for end in ["192.0.2.1:30000", "[2001:db8::1]:30002"] {
            let end: SocketAddr = end.parse().unwrap();
            let sdp = sdp(end);
            assert_eq!(destination(&format!("1_1 d6:result2:ok3:sdp{}:{sdp}e", sdp.len())), Some(end));
        }
        assert_eq!(destination("1_1 d6:result2:oke"), None);
    }
}
