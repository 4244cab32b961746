// SPDX-License-Identifier: Apache-2.0
//! Many listeners of a radio stream of MP3 in one process, who write down what they hear: it is looked at when they are done, so that this
//! takes no time from what is measured.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::input;

/// Who listens.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The radio server.
    #[arg(long)]
    server: SocketAddr,
    /// The path of the stream.
    #[arg(long, default_value = "/live.mp3")]
    path: String,
    /// How many.
    #[arg(long, default_value_t = 1)]
    listeners: usize,
    /// How many of them want titles.
    #[arg(long, default_value_t = 0)]
    titles: usize,
    /// For how long they listen.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Goes on beyond that, until the standard input ends.
    #[arg(long)]
    until_input_ends: bool,
    /// Milliseconds between two who come.
    #[arg(long, default_value_t = 2)]
    every_ms: u64,
    /// Where they write what they hear: `NUMBER.mp3`.
    #[arg(long)]
    into: PathBuf,
}

/// What became of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// Those that got a stream.
    pub served: usize,
    /// Those whose connection ended before they were done.
    pub cut: usize,
    /// Those who heard something that is no whole frame.
    pub broken: usize,
    /// Those who were told a title.
    pub titled: usize,
    /// The least that one of them heard, in milliseconds of sound.
    pub heard_ms_least: u64,
    /// The most by which what one heard is shorter than the time for which it listened, in milliseconds.
    pub lacks_ms_most: u64,
    /// The most by which it is longer.
    pub ahead_ms_most: u64,
    /// The longest time for which one of them got nothing, in milliseconds.
    pub silent_ms_most: u64,
}

/// Runs listeners, and prints what became of them as JSON.
///
/// # Errors
/// One cannot connect, or write.
pub fn run(options: &Options) -> Result<()> {
    std::fs::create_dir_all(&options.into)?;
    let is_over = if options.until_input_ends { input::watch_end() } else { Arc::new(AtomicBool::new(true)) };
    let begun = Instant::now();
    let until = begun + Duration::from_secs(options.seconds);
    let mut listeners: Vec<Listener> = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let come = usize::try_from(begun.elapsed().as_millis())? / usize::try_from(options.every_ms.max(1))? + 1;
        while listeners.len() < come.min(options.listeners) {
            listeners.push(Listener::connect(options, listeners.len() < options.titles)?);
        }
        for listener in &mut listeners {
            listener.hear(&mut buffer)?;
        }
        if Instant::now() >= until && is_over.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(LOOK_TIME);
    }
    let done = Instant::now();
    let mut told = Told { heard_ms_least: u64::MAX, ..Told::default() };
    for (number, listener) in listeners.iter().enumerate() {
        let heard = Heard::of(&listener.all);
        told.served += usize::from(heard.is_served);
        told.cut += usize::from(listener.is_cut);
        told.broken += usize::from(heard.is_broken);
        told.titled += usize::from(heard.has_title);
        let listened_ms = u64::try_from((done - listener.begun).as_millis())?;
        told.heard_ms_least = told.heard_ms_least.min(heard.ms);
        told.lacks_ms_most = told.lacks_ms_most.max(listened_ms.saturating_sub(heard.ms));
        told.ahead_ms_most = told.ahead_ms_most.max(heard.ms.saturating_sub(listened_ms));
        told.silent_ms_most = told.silent_ms_most.max(u64::try_from(listener.silent_most.as_millis())?);
        std::fs::write(options.into.join(format!("{number}.mp3")), &heard.sound)?;
    }
    println!("{}", serde_json::to_string(&told)?);
    Ok(())
}

/// How often what came is taken.
const LOOK_TIME: Duration = Duration::from_millis(50);

struct Listener {
    stream: TcpStream,
    all: Vec<u8>,
    is_cut: bool,
    begun: Instant,
    last: Instant,
    silent_most: Duration,
}

impl Listener {
    fn connect(options: &Options, titles: bool) -> Result<Listener> {
        let mut stream = TcpStream::connect(options.server).context("the radio server")?;
        let asked = if titles { "Icy-MetaData: 1\r\n" } else { "" };
        write!(stream, "GET {} HTTP/1.1\r\nHost: {}\r\n{asked}\r\n", options.path, options.server)?;
        stream.set_nonblocking(true)?;
        let now = Instant::now();
        Ok(Listener { stream, all: Vec::new(), is_cut: false, begun: now, last: now, silent_most: Duration::ZERO })
    }

    fn hear(&mut self, buffer: &mut [u8]) -> Result<()> {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => self.is_cut = true,
                Ok(length) => {
                    self.all.extend_from_slice(&buffer[..length]);
                    self.silent_most = self.silent_most.max(self.last.elapsed());
                    self.last = Instant::now();
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => self.is_cut = true,
                Err(error) => return Err(error.into()),
            }
            return Ok(());
        }
    }
}

/// What one has heard.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    /// Whole frames.
    sound: Vec<u8>,
    /// Whether the server had a stream.
    is_served: bool,
    /// Whether something else is in it.
    is_broken: bool,
    has_title: bool,
    ms: u64,
}

impl Heard {
    /// Takes an answer apart: head, titles where it says that there are some, and frames, the first of which must begin at once.
    fn of(all: &[u8]) -> Heard {
        let Some(end) = all.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return Heard::default() };
        let head = String::from_utf8_lossy(&all[..end]).to_ascii_lowercase();
        let interval = head.lines().find_map(|line| line.strip_prefix("icy-metaint:")?.trim().parse::<usize>().ok());
        let (mut sound, mut has_title, mut rest) = (Vec::new(), false, &all[end + 4..]);
        while let Some(interval) = interval.filter(|interval| rest.len() > *interval) {
            sound.extend_from_slice(&rest[..interval]);
            let later = &rest[interval + 1..];
            let (title, later) = later.split_at((16 * usize::from(rest[interval])).min(later.len()));
            has_title |= title.starts_with(b"StreamTitle=");
            rest = later;
        }
        sound.extend_from_slice(rest);
        let (mut at, mut us) = (0, 0);
        let is_served = head.lines().next().is_some_and(|line| line.contains(" 200 ")) && !sound.is_empty();
        let mut is_broken = !is_served;
        while sound.len() - at >= 4 {
            let Some((length, frame_us)) = frame(&sound[at..]) else {
                is_broken = true;
                break;
            };
            if at + length > sound.len() {
                break;
            }
            at += length;
            us += frame_us;
        }
        sound.truncate(at);
        Heard { sound, is_served, is_broken, has_title, ms: us / 1000 }
    }
}

/// Returns length and duration, in microseconds, of the frame of MPEG-1 layer III that begins here.
fn frame(bytes: &[u8]) -> Option<(usize, u64)> {
    const KBIT: [usize; 14] = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
    let [0xff, 0xfa | 0xfb, third, ..] = *bytes else { return None };
    let rate = *KBIT.get(usize::from(third >> 4).checked_sub(1)?)?;
    let hz = *[44_100, 48_000, 32_000].get(usize::from(third >> 2 & 3))?;
    Some((144_000 * rate / hz + usize::from(third >> 1 & 1), 1_152_000_000 / u64::try_from(hz).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_heard_is_taken_apart() {
        let mut frame = vec![0; 417];
        frame[..4].copy_from_slice(&[0xff, 0xfb, 0x90, 0]);
        let sound = frame.repeat(10);
        let plain = [b"HTTP/1.0 200 OK\r\n\r\n", &sound[..], &frame[..100]].concat();
        let heard = |has_title| Heard { sound: sound.clone(), is_served: true, is_broken: false, has_title, ms: 261 };
        assert_eq!(Heard::of(&plain), heard(false));
        let titled =
            [b"ICY 200 OK\r\nicy-metaint:4000\r\n\r\n", &sound[..4000], b"\x01StreamTitle='a';", &sound[4000..]];
        assert_eq!(Heard::of(&titled.concat()), heard(true));
        let broken = [b"HTTP/1.0 200 OK\r\n\r\n", &sound[..1000], &sound[..1000]].concat();
        assert!(Heard::of(&broken).is_broken);
        assert!(Heard::of(b"HTTP/1.0 404 Not Found\r\n\r\n").is_broken);
        assert_eq!(Heard::of(b"HTTP"), Heard::default());
    }
}
