// SPDX-License-Identifier: Apache-2.0
//! SIP callers that do not slow down: each source sends so many calls a second whatever becomes of them, and sends a request again that
//! is not answered (RFC 3261 §17.1.1.2).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use rustix::net::RecvFlags;
use serde::{Deserialize, Serialize};

use crate::input;
use crate::phones::user;

/// Who calls.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The SIP server, by an address of each version of IP that there are sources of.
    #[arg(long, required = true)]
    server: Vec<SocketAddr>,
    /// For how long calls begin.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// How many of the lab's phones are called, each once, instead of one user that there is not.
    #[arg(long, default_value_t = 0)]
    phones: u32,
    /// The number of the first one's user.
    #[arg(long, default_value_t = 0)]
    first: u32,
    /// Says after each second what became of calls so far, and begins none any more once the standard input ends.
    #[arg(long)]
    follow: bool,
    /// A source's address and its calls a second: `192.0.2.1=170`.
    #[arg(required = true)]
    sources: Vec<Source>,
}

/// A source of calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Source {
    /// Where they come from.
    pub address: IpAddr,
    /// Calls a second.
    pub rate: f64,
}

impl FromStr for Source {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Source> {
        let (address, rate) = text.split_once('=').context("write ADDRESS=RATE")?;
        let rate: f64 = rate.parse()?;
        anyhow::ensure!((0.0..=100_000.0).contains(&rate), "{rate} calls a second");
        Ok(Source { address: address.parse()?, rate })
    }
}

/// What became of the calls of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Calls that began, by the second.
    pub began: Vec<u32>,
    /// Those that the server, or who was called, answered, by the second in which they began.
    pub answered: Vec<u32>,
    /// Those that were taken: answered with 200.
    pub taken: u32,
    /// Those that were answered with 503.
    pub rejected: u32,
    /// Those without an answer.
    pub lost: u32,
}

/// Runs callers, and prints what became of each source's calls as JSON.
///
/// # Errors
/// A source's address is not there.
pub fn run(options: &Options) -> Result<()> {
    let begun = Instant::now();
    let is_over = if options.follow { input::watch_end() } else { Arc::new(AtomicBool::new(false)) };
    let (so_far, news) = channel();
    let callers: Vec<_> = (0..)
        .zip(&options.sources)
        .map(|(number, source)| {
            let (source, options, is_over, so_far) = (*source, options.clone(), Arc::clone(&is_over), so_far.clone());
            std::thread::spawn(move || {
                let tell = |told: &Told| drop(so_far.send((number, told.clone())));
                Caller::open(source, &options, begun)?.run(Duration::from_secs(options.seconds), &is_over, tell)
            })
        })
        .collect();
    drop(so_far);
    let mut all = vec![Told::default(); callers.len()];
    for (number, told) in news {
        all[number] = told;
        if options.follow {
            println!("{}", serde_json::to_string(&all)?);
        }
    }
    let told =
        callers.into_iter().map(|caller| caller.join().expect("a caller ends")).collect::<Result<Vec<Told>>>()?;
    println!("{}", serde_json::to_string(&told)?);
    Ok(())
}

/// Returns from which second on, for so many of them, as many calls of each source were answered as is enough; and how many were.
pub fn enough_from(told: &[Told], seconds: u32, is_enough: impl Fn(&[u32]) -> bool) -> Option<(usize, Vec<u32>)> {
    let seconds = usize::try_from(seconds).ok()?;
    let last = told.iter().map(|told| told.answered.len()).min()?.checked_sub(seconds)?;
    let answered = |from: usize| {
        (from, told.iter().map(|told| told.answered[from..from + seconds].iter().sum()).collect::<Vec<u32>>())
    };
    (0..=last).map(answered).find(|(_, answered)| is_enough(answered))
}

struct Caller {
    source: Source,
    server: SocketAddr,
    /// The users who are called in turn, and the first of them.
    phones: u32,
    first: u32,
    socket: UdpSocket,
    begun: Instant,
    calls: HashMap<u32, Call>,
    /// When a request is sent again: the call's number, and how often it was sent.
    again: BinaryHeap<Reverse<(Instant, u32, u32)>>,
    told: Told,
}

/// A call without a final answer.
struct Call {
    second: usize,
}

impl Caller {
    fn open(source: Source, options: &Options, begun: Instant) -> Result<Caller> {
        let socket =
            UdpSocket::bind((source.address, 0)).with_context(|| format!("no socket at {}", source.address))?;
        let server = options.server.iter().find(|server| server.is_ipv4() == source.address.is_ipv4());
        let server = *server.context("the server has no address of this version of IP")?;
        socket.connect(server)?;
        Ok(Caller {
            source,
            server,
            phones: options.phones,
            first: options.first,
            socket,
            begun,
            calls: HashMap::new(),
            again: BinaryHeap::new(),
            told: Told::default(),
        })
    }

    /// Calls for so long, or until it is over; tells after each second what became of that so far.
    fn run(mut self, mut lasts: Duration, is_over: &AtomicBool, tell: impl Fn(&Told)) -> Result<Told> {
        let mut room = [0; 4096];
        let (mut number, mut second) = (0_u32, 0);
        let each = Duration::from_secs_f64(1.0 / self.source.rate.max(0.001));
        let mut due = each;
        loop {
            let now = Instant::now();
            let since = now.duration_since(self.begun);
            if is_over.load(Ordering::Relaxed) {
                lasts = lasts.min(since);
            }
            if since.as_secs() > second {
                second = since.as_secs();
                tell(&self.told);
            }
            if since >= lasts + LAST_WAIT {
                break;
            }
            // What is there is read first, so that who calls more than it can do still hears of what became of that.
            while let Ok((length, _)) = rustix::net::recv(&self.socket, &mut room[..], RecvFlags::DONTWAIT) {
                self.answered(&room[..length]);
            }
            let is_through = self.phones > 0 && number == self.phones;
            let late = since.saturating_sub(due);
            if since < lasts && !is_through && since >= due {
                // Calls for which the machine had no time are none: they would come all at once.
                due += if self.phones == 0 && late > LATE_MAX { late } else { each };
                number += 1;
                self.call(number, now)?;
                continue;
            }
            while let Some(Reverse((_, number, sent))) = self.again.peek().copied().filter(|again| again.0.0 <= now) {
                self.again.pop();
                if self.calls.contains_key(&number) {
                    self.send(number, "INVITE", "");
                    self.again_later(number, sent + 1, now);
                }
            }
            // As soon as the next call is due, or an answer is there.
            self.socket.set_read_timeout(Some(each.min(Duration::from_millis(10))))?;
            if let Ok(length) = self.socket.recv(&mut room) {
                self.answered(&room[..length]);
            }
        }
        self.told.lost = u32::try_from(self.calls.len())?;
        Ok(self.told)
    }

    fn call(&mut self, number: u32, now: Instant) -> Result<()> {
        let second = usize::try_from(now.duration_since(self.begun).as_secs())?;
        for counts in [&mut self.told.began, &mut self.told.answered] {
            counts.resize(counts.len().max(second + 1), 0);
        }
        self.told.began[second] += 1;
        self.calls.insert(number, Call { second });
        self.send(number, "INVITE", "");
        self.again_later(number, 1, now);
        Ok(())
    }

    fn again_later(&mut self, number: u32, sent: u32, now: Instant) {
        if sent < SENT_MAX {
            self.again.push(Reverse((now + T1 * 2_u32.pow(sent - 1), number, sent)));
        }
    }

    fn send(&self, number: u32, method: &str, to_tag: &str) {
        let (from, server) = (self.source.address, self.server);
        let called = match self.phones {
            0 => "bob".to_owned(),
            _ => user(self.first as usize + number as usize - 1),
        };
        let at = self.socket.local_addr().map_or_else(|_| from.to_string(), |at| at.to_string());
        let text = format!(
            "{method} sip:{called}@{server} SIP/2.0\r\nVia: SIP/2.0/UDP {at};branch=z9hG4bKc{number};rport\r\n\
             From: <sip:alice@{server}>;tag={number}\r\nTo: <sip:{called}@{server}>{to_tag}\r\nCall-ID: c{number}@{at}\r\n\
             CSeq: 1 {method}\r\nMax-Forwards: 70\r\nContact: <sip:alice@{at}>\r\n\
             User-Agent: a caller of the lab, which says who it is at length\r\nContent-Length: 0\r\n\r\n"
        );
        // What finds no way is not answered.
        let _ = self.socket.send(text.as_bytes());
    }

    /// Takes an answer. Nothing of one that is not understood, or is to a call that is over.
    fn answered(&mut self, message: &[u8]) -> Option<()> {
        let text = std::str::from_utf8(message).ok()?;
        let status: u16 = text.strip_prefix("SIP/2.0 ")?.get(..3)?.parse().ok()?;
        let number: u32 =
            text.lines().find_map(|line| line.strip_prefix("Call-ID: c"))?.split('@').next()?.parse().ok()?;
        let to = text.lines().find_map(|line| line.strip_prefix("To: "))?;
        if status < 200 {
            return None;
        }
        let tag = to.split_once(";tag=").map(|(_, tag)| format!(";tag={tag}")).unwrap_or_default();
        self.send(number, "ACK", &tag);
        let call = self.calls.remove(&number)?;
        if status == 503 {
            self.told.rejected += 1;
        } else {
            self.told.taken += u32::from(status == 200);
            self.told.answered[call.second] += 1;
        }
        Some(())
    }
}

/// How late a call may begin.
const LATE_MAX: Duration = Duration::from_millis(200);
const T1: Duration = Duration::from_millis(500);
/// A request is sent so often at most.
const SENT_MAX: u32 = 4;
/// How long the last calls are waited for.
const LAST_WAIT: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_in_which_enough_is_answered_are_found() {
        let check = |answered: [&[u32]; 2], expected: Option<(usize, u32, u32)>| {
            let told = answered.map(|answered| Told { answered: answered.to_vec(), ..Told::default() });
            let found = enough_from(&told, 2, |sums| sums[0] >= 10 && sums[0] + sums[1] >= 30);
            assert_eq!(found.map(|(from, sums)| (from, sums[0], sums[1])), expected, "{told:?}");
        };
        check([&[0, 5, 5, 5], &[9, 0, 9, 11]], Some((2, 10, 20)));
        check([&[5, 5, 5, 5], &[9, 0, 9]], None);
        check([&[5, 4, 5, 4], &[90, 90, 90, 90]], None);
        check([&[5, 5], &[10, 11]], Some((0, 10, 21)));
        check([&[5], &[10, 10]], None);
        check([&[], &[]], None);
    }
}
