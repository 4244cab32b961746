// SPDX-License-Identifier: Apache-2.0
//! Many SIP phones in one process, behind whatever the lab puts before them: they register, keep themselves reachable, and take calls.
//!
//! sipp ends at 1,024 sockets; here each phone has one of its own, and so a binding of its own at a NAT.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use rustix::event::epoll;
use serde::{Deserialize, Serialize};

use crate::input;

/// What phones do.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The SIP server.
    #[arg(long)]
    server: SocketAddr,
    /// The address of the phones, which have a port each.
    #[arg(long)]
    local: IpAddr,
    /// How many there are.
    #[arg(long, default_value_t = 100)]
    phones: usize,
    /// The number of the first one's user.
    #[arg(long, default_value_t = 0)]
    first: usize,
    /// Milliseconds between two keep-alives of a phone.
    #[arg(long, default_value_t = 4000)]
    every_ms: u64,
    /// For how long they send some.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Goes on beyond that, until the standard input ends.
    #[arg(long)]
    until_input_ends: bool,
    /// By TCP, with a connection each.
    #[arg(long)]
    tcp: bool,
    /// How they do it, in turn.
    #[arg(long, value_delimiter = ',', default_value = "notify,options,crlf,stun,register")]
    forms: Vec<Form>,
}

/// How a phone keeps itself reachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// NOTIFY with `Event: keep-alive`.
    Notify,
    /// OPTIONS to the server.
    Options,
    /// A double CRLF (RFC 5626).
    Crlf,
    /// A STUN binding request.
    Stun,
    /// A REGISTER that goes on with what there is.
    Register,
    /// It does not.
    Silent,
}

/// What a phone sends on.
enum Wire {
    Udp(UdpSocket),
    /// A connection, and what came of a message that is not whole.
    Tcp(TcpStream, Vec<u8>),
}

/// What became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Phones whose first REGISTER was confirmed.
    pub registered: usize,
    /// Keep-alives that were sent.
    pub sent: usize,
    /// Those that were answered in time.
    pub answered: usize,
    /// Phones that were called, and answered.
    pub called: usize,
    /// Microseconds from a keep-alive to its answer, of half of them.
    pub median_us: u64,
    /// The same of 95 in 100.
    pub p95_us: u64,
    /// The same of 99 in 100.
    pub p99_us: u64,
}

/// Runs phones, and prints what became of it as JSON.
///
/// # Errors
/// There are too few sockets.
pub fn run(options: &Options) -> Result<()> {
    let is_over = if options.until_input_ends { input::watch_end() } else { Arc::new(AtomicBool::new(true)) };
    let told = Phones::open(options)?.run(&is_over)?;
    println!("{}", serde_json::to_string(&told)?);
    Ok(())
}

struct Phones<'a> {
    options: &'a Options,
    poll: OwnedFd,
    phones: Vec<Phone>,
    /// What is to be sent when.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    told: Told,
    /// From each keep-alive to its answer.
    took: Vec<Duration>,
}

struct Phone {
    /// Whose it is.
    number: usize,
    wire: Wire,
    at: SocketAddr,
    form: Form,
    cseq: u32,
    /// When the keep-alive was sent whose answer is missing.
    waits: Option<Instant>,
    is_registered: bool,
    was_called: bool,
}

impl<'a> Phones<'a> {
    fn open(options: &'a Options) -> Result<Phones<'a>> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut phones = Vec::with_capacity(options.phones);
        let mut due = BinaryHeap::new();
        let begun = Instant::now();
        for number in 0..options.phones {
            let wire = Wire::open(options).context("no socket for one more phone")?;
            epoll::add(&poll, wire.fd(), epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?;
            let form = options.forms[number % options.forms.len()];
            let at = wire.address()?;
            phones.push(Phone {
                number: options.first + number,
                wire,
                at,
                form,
                cseq: 0,
                waits: None,
                is_registered: false,
                was_called: false,
            });
            // All of them within one period, which is a second here at least.
            let share = options.every_ms.max(1000) * number as u64 / options.phones as u64;
            due.push(Reverse((begun + Duration::from_millis(share), number)));
        }
        Ok(Phones { options, poll, phones, due, told: Told::default(), took: Vec::new() })
    }

    /// Sends and receives for the time of the options, and then until it is over.
    fn run(mut self, is_over: &AtomicBool) -> Result<Told> {
        let ends = Instant::now() + Duration::from_secs(self.options.seconds);
        let every = Duration::from_millis(self.options.every_ms);
        let mut events = Vec::with_capacity(512);
        loop {
            let now = Instant::now();
            if now >= ends && is_over.load(Ordering::Relaxed) {
                break;
            }
            while let Some(Reverse((when, number))) = self.due.peek().copied().filter(|due| due.0.0 <= now) {
                self.due.pop();
                self.send(number)?;
                self.due.push(Reverse((when + every, number)));
            }
            let until = if now < ends { ends } else { now + LOOK_TIME };
            let next = self.due.peek().map_or(until, |due| due.0.0).min(until);
            let wait = rustix::event::Timespec::try_from(next.saturating_duration_since(now))?;
            events.clear();
            epoll::wait(&self.poll, rustix::buffer::spare_capacity(&mut events), Some(&wait))?;
            for event in &events {
                self.receive(usize::try_from(event.data.u64())?);
            }
        }
        self.told.registered = self.phones.iter().filter(|phone| phone.is_registered).count();
        self.told.called = self.phones.iter().filter(|phone| phone.was_called).count();
        self.took.sort();
        let us = |percent: usize| {
            let place = self.took.len() * percent / 100;
            self.took.get(place).map_or(0, |took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX))
        };
        (self.told.median_us, self.told.p95_us, self.told.p99_us) = (us(50), us(95), us(99));
        Ok(self.told)
    }

    fn send(&mut self, number: usize) -> Result<()> {
        let phone = &mut self.phones[number];
        phone.cseq += 1;
        let message = match phone.form {
            // First of all the server gets to know it.
            _ if !phone.is_registered => phone.request("REGISTER", self.options.server),
            Form::Notify => phone.request("NOTIFY", self.options.server),
            Form::Options => phone.request("OPTIONS", self.options.server),
            Form::Register => phone.request("REGISTER", self.options.server),
            Form::Silent => return Ok(()),
            Form::Crlf => b"\r\n\r\n".to_vec(),
            Form::Stun => [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &phone.transaction()].concat(),
        };
        if phone.is_registered {
            self.told.sent += 1;
            phone.waits = Some(Instant::now());
        }
        // What finds no way is not answered.
        phone.wire.send(&message);
        Ok(())
    }

    fn receive(&mut self, number: usize) {
        let phone = &mut self.phones[number];
        while let Some(message) = phone.wire.receive() {
            if let Some(answer) = phone.call(&message) {
                phone.wire.send(&answer);
            } else if phone.is_answer(&message) {
                if !phone.is_registered {
                    phone.is_registered = true;
                } else if let Some(took) = phone.waits.take().map(|sent| sent.elapsed())
                    && took < ANSWER_TIME_MAX
                {
                    self.told.answered += 1;
                    self.took.push(took);
                }
            }
        }
    }
}

impl Wire {
    fn open(options: &Options) -> Result<Wire> {
        if options.tcp {
            // The machine of the phones has one address of each version of IP.
            let stream = TcpStream::connect(options.server)?;
            stream.set_nonblocking(true)?;
            return Ok(Wire::Tcp(stream, Vec::new()));
        }
        let socket = UdpSocket::bind((options.local, 0))?;
        socket.connect(options.server)?;
        socket.set_nonblocking(true)?;
        Ok(Wire::Udp(socket))
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Wire::Udp(socket) => socket.as_fd(),
            Wire::Tcp(stream, _) => stream.as_fd(),
        }
    }

    fn address(&self) -> Result<SocketAddr> {
        Ok(match self {
            Wire::Udp(socket) => socket.local_addr()?,
            Wire::Tcp(stream, _) => stream.local_addr()?,
        })
    }

    fn protocol(&self) -> &'static str {
        match self {
            Wire::Udp(_) => "UDP",
            Wire::Tcp(..) => "TCP",
        }
    }

    /// Returns what an address of it has in a URI.
    fn parameter(&self) -> &'static str {
        match self {
            Wire::Udp(_) => "",
            Wire::Tcp(..) => ";transport=tcp",
        }
    }

    /// Sends a message. What finds no way is not answered.
    fn send(&mut self, message: &[u8]) {
        let _ = match self {
            Wire::Udp(socket) => socket.send(message).map(drop),
            Wire::Tcp(stream, _) => stream.write_all(message),
        };
    }

    /// Returns a message that has come whole.
    fn receive(&mut self) -> Option<Vec<u8>> {
        let mut room = [0; 4096];
        match self {
            Wire::Udp(socket) => socket.recv(&mut room).ok().map(|length| room[..length].to_vec()),
            Wire::Tcp(stream, come) => loop {
                if let Some(length) = whole(come) {
                    return Some(come.drain(..length).collect());
                }
                match stream.read(&mut room) {
                    Ok(length) if length > 0 => come.extend_from_slice(&room[..length]),
                    Ok(_) | Err(_) => return None,
                }
            },
        }
    }
}

/// Returns the length of the first message of a stream, if all of it is there. The lab's messages have no bodies.
fn whole(come: &[u8]) -> Option<usize> {
    if come.starts_with(b"\r\n") {
        return Some(2);
    }
    come.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

impl Phone {
    fn request(&self, method: &str, server: SocketAddr) -> Vec<u8> {
        let (at, cseq, number, name) = (self.at, self.cseq, self.number, user(self.number));
        let more = match method {
            "NOTIFY" => "Event: keep-alive\r\n".to_owned(),
            "REGISTER" => format!("Contact: <sip:{name}@{at}{}>\r\nExpires: 600\r\n", self.wire.parameter()),
            _ => String::new(),
        };
        let protocol = self.wire.protocol();
        let host = server.ip();
        let host = if host.is_ipv6() { format!("[{host}]") } else { host.to_string() };
        format!(
            "{method} sip:{host} SIP/2.0\r\nVia: SIP/2.0/{protocol} {at};branch=z9hG4bK{number}x{cseq};rport\r\n\
             From: <sip:{name}@{host}>;tag={number}\r\nTo: <sip:{name}@{host}>\r\nCall-ID: {number}@{at}\r\n\
             CSeq: {cseq} {method}\r\nMax-Forwards: 70\r\nUser-Agent: a phone of the lab, which says who it is at length\r\n\
             {more}Content-Length: 0\r\n\r\n"
        )
        .into_bytes()
    }

    fn transaction(&self) -> [u8; 12] {
        let mut id = [0; 12];
        id[..8].copy_from_slice(&(self.number as u64).to_be_bytes());
        id[8..].copy_from_slice(&self.cseq.to_be_bytes());
        id
    }

    /// Returns whether this answers what was sent last.
    fn is_answer(&self, message: &[u8]) -> bool {
        match self.form {
            Form::Crlf if self.is_registered => message == b"\r\n",
            Form::Stun if self.is_registered => {
                message.starts_with(&[1, 1]) && message.get(8..20) == Some(&self.transaction()[..])
            }
            Form::Notify | Form::Options | Form::Register | Form::Silent | Form::Crlf | Form::Stun => {
                let text = String::from_utf8_lossy(message);
                text.starts_with("SIP/2.0 200 ") && text.contains(&format!("\r\nCSeq: {} ", self.cseq))
            }
        }
    }

    /// Returns the answer to a call, or to its end.
    fn call(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(message).ok()?;
        let method = text.split(' ').next()?;
        if !matches!(method, "INVITE" | "BYE") {
            return None;
        }
        self.was_called |= method == "INVITE";
        let copied = |name: &'static str| text.lines().filter(move |line| line.starts_with(name));
        let mut answer = "SIP/2.0 200 OK\r\n".to_owned();
        for line in ["Via:", "Record-Route:", "From:", "Call-ID:", "CSeq:"].into_iter().flat_map(copied) {
            answer.push_str(line);
            answer.push_str("\r\n");
        }
        let to = copied("To:").next()?;
        let tag = if to.contains(";tag=") { "" } else { ";tag=phone" };
        answer.push_str(&format!(
            "{to}{tag}\r\nContact: <sip:phone@{}{}>\r\nContent-Length: 0\r\n\r\n",
            self.at,
            self.wire.parameter()
        ));
        Some(answer.into_bytes())
    }
}

/// Returns the name of a phone's user.
pub fn user(number: usize) -> String {
    format!("phone{number}")
}

/// How often phones that have had their time look whether it is over.
const LOOK_TIME: Duration = Duration::from_millis(100);
/// An answer that takes longer is none.
const ANSWER_TIME_MAX: Duration = Duration::from_millis(500);
