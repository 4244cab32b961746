// SPDX-License-Identifier: Apache-2.0
//! Sockets, clocks, kv and messages.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use media_relay::calls::Now;
use media_relay::calls::call::KEY;
use media_relay::desk::{Counted, Desk, Output, Reply};
use media_relay::limits::TOLD_MAX;
use media_relay::settings::Settings;
use netserv_server_sdk::udp::{Batch, Socket};
use netserv_server_sdk::wasi::clocks::monotonic_clock::subscribe_duration;
use netserv_server_sdk::wasi::io::poll::poll;
use netserv_server_sdk::wasi::random::random::get_random_u64;
use netserv_server_sdk::{counters, kv, messages, node};

/// Takes requests until the module ends.
pub fn run() {
    let settings = Settings::read(|name| std::env::var(name).ok()).unwrap_or_else(|error| panic!("{error}"));
    let own: Vec<IpAddr> = node::addresses().iter().filter_map(|address| address.parse().ok()).collect();
    let named = if settings.addresses.is_empty() { own.clone() } else { settings.addresses.clone() };
    let strange = named.iter().filter(|address| !own.contains(address));
    let listens = own.iter().chain(strange).map(|address| SocketAddr::new(*address, settings.ng_port));
    let sockets = listens.map(|address| (address, None)).collect();
    let mut server = Server {
        desk: Desk::new(settings, named, draw),
        sockets,
        untold: VecDeque::new(),
        shown: Counted::default(),
        begun: Instant::now(),
        has_opened: false,
    };
    server.open();
    server.restore();
    let mut opened = Instant::now();
    loop {
        server.wait();
        server.take();
        if opened.elapsed() >= OPEN_EACH {
            server.open();
            opened = Instant::now();
        }
        server.put();
    }
}

struct Server {
    desk: Desk,
    /// An address that floats here later has no socket until then.
    sockets: Vec<(SocketAddr, Option<Socket>)>,
    /// What the packet part was not told, since it has too much to read.
    untold: VecDeque<Vec<u8>>,
    shown: Counted,
    begun: Instant,
    /// Each address was tried once.
    has_opened: bool,
}

impl Server {
    fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { ms: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX), s: wall.as_secs() }
    }

    fn open(&mut self) {
        for (address, socket) in self.sockets.iter_mut().filter(|(_, socket)| socket.is_none()) {
            match Socket::bind(*address) {
                Ok(bound) => {
                    println!("listening on {address}");
                    *socket = Some(bound);
                }
                Err(error) if !self.has_opened => eprintln!("not yet listening on {address}: {error:?}"),
                Err(_) => {}
            }
        }
        self.has_opened = true;
    }

    fn restore(&mut self) {
        let now = self.now();
        let mut after = None;
        loop {
            let keys = kv::keys(after.as_deref(), KEYS_EACH).unwrap_or_default();
            for key in keys.iter().filter(|key| key.starts_with(KEY)) {
                if let Ok(Some(value)) = kv::get(key) {
                    self.desk.restore(key, &value, now);
                }
            }
            let Some(last) = keys.last() else { break };
            after = Some(last.clone());
        }
        self.desk.begin();
        self.put();
    }

    fn wait(&self) {
        let now = self.now();
        let due = self.desk.poll_timeout(now).saturating_sub(now.ms);
        let due = if self.untold.is_empty() { due } else { due.min(RETRY_MS) };
        let mut waits = vec![messages::subscribe(), subscribe_duration(due.max(1) * 1_000_000)];
        waits.extend(self.sockets.iter().filter_map(|(_, socket)| socket.as_ref()).map(Socket::subscribe));
        poll(&waits.iter().collect::<Vec<_>>());
    }

    fn take(&mut self) {
        let now = self.now();
        while let Some(news) = messages::receive() {
            self.desk.handle_news(&news, now);
        }
        for (number, (_, socket)) in self.sockets.iter().enumerate() {
            let Some(socket) = socket else { continue };
            for (from, datagram) in socket.try_receive().iter() {
                self.desk.handle_datagram(number, from, datagram, now);
            }
        }
        self.desk.handle_timeout(now);
    }

    fn put(&mut self) {
        while let Some(output) = self.desk.poll_output() {
            match output {
                Output::Reply(reply) => self.send(&reply),
                Output::Tell(order) if self.untold.len() < TOLD_MAX => self.untold.push_back(order),
                // The packet part is long gone; when it is back, it is told of all calls.
                Output::Tell(_) => {}
                Output::Keep(key, value) => {
                    let kept = match value {
                        Some(value) => kv::set(&key, &value),
                        None => kv::delete(&key).map(|_| ()),
                    };
                    if let Err(error) = kept {
                        eprintln!("a call is not kept: {error:?}");
                    }
                }
            }
        }
        while let Some(order) = self.untold.front() {
            if let Err(messages::Error::Quota) = messages::send(order) {
                break;
            }
            self.untold.pop_front();
        }
        self.show();
    }

    fn send(&self, reply: &Reply) {
        let mut batch = Batch::default();
        batch.push(reply.to, &reply.bytes);
        let Some((_, Some(socket))) = self.sockets.get(reply.socket) else { return };
        if let Err(error) = socket.send(&batch) {
            eprintln!("an answer is not sent: {error:?}");
        }
    }

    fn show(&mut self) {
        let counted = self.desk.counted();
        if counted == self.shown {
            return;
        }
        for (name, value) in [
            ("calls", counted.calls),
            ("requests", counted.requests),
            ("failed", counted.failed),
            ("warned", counted.warned),
            ("refused", counted.refused),
            ("damaged", counted.damaged),
            ("expired", counted.expired),
        ] {
            // The manifest has room for all of them.
            let _ = counters::set(name, value);
        }
        self.shown = counted;
    }
}

fn draw(below: usize) -> usize {
    let below = u64::try_from(below).unwrap_or(u64::MAX).max(1);
    usize::try_from(get_random_u64() % below).unwrap_or(0)
}

/// How often an address that is not there yet is tried.
const OPEN_EACH: Duration = Duration::from_secs(1);
/// How soon the packet part is told what it had no room for.
const RETRY_MS: u64 = 5;
/// Keys that are asked of kv at a time.
const KEYS_EACH: u32 = 1024;
