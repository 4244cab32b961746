// SPDX-License-Identifier: Apache-2.0
//! The module as its node knows it.

use std::net::SocketAddr;
use std::time::Instant;

use netserv_server_sdk::tcp::{self, Action, Address, Connection, Decision, Error, Flow, Side, TcpModule};
use netserv_server_sdk::{control, counters, kv, properties, tcp_module};

use crate::host::{Counter, Host, Sent};
use crate::limits::{SERVERS_MAX, TICK_MS};
use crate::reflector::Reflector;
use crate::settings::Settings;

struct StreamReflector {
    reflector: Reflector,
    begun: Instant,
    is_ticking: bool,
}

impl Default for StreamReflector {
    fn default() -> StreamReflector {
        let reflector = Reflector::new(Settings::read(properties::get));
        StreamReflector { reflector, begun: Instant::now(), is_ticking: false }
    }
}

impl StreamReflector {
    /// Has the reflector do something, and time go on for as long as it has something to do.
    fn run<T>(&mut self, run: impl FnOnce(&mut Reflector, &mut Node, u64) -> T) -> T {
        let now_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        while let Some(message) = control::inbox::receive() {
            if message.topic == DRAINING {
                self.reflector.reopen(&mut Node, now_ms);
            }
        }
        let outcome = run(&mut self.reflector, &mut Node, now_ms);
        if self.is_ticking == self.reflector.is_idle() {
            self.is_ticking = !self.is_ticking;
            if !self.is_ticking {
                tcp::cancel_timer(TIMER);
                self.reflector.show(&mut Node);
            } else if tcp::set_timer(TIMER, TICK_MS, TICK_MS).is_err() {
                self.is_ticking = false;
            }
        }
        outcome
    }
}

const TIMER: u32 = 1;
/// What the node tells a module that goes on with its connections alone.
const DRAINING: &str = "draining";

impl TcpModule for StreamReflector {
    fn connect(&mut self, id: Connection, flow: &Flow) -> Decision {
        let server = if flow.intercepted { flow.server.ip.parse().ok() } else { None };
        let server = server.map(|ip| SocketAddr::new(ip, flow.server.port));
        self.run(|reflector, host, now_ms| reflector.connect(host, now_ms, id, server))
    }

    fn data(&mut self, id: Connection, source: Side, bytes: &[u8]) -> Action {
        self.run(|reflector, host, now_ms| reflector.data(host, now_ms, id, source, bytes))
    }

    fn end(&mut self, id: Connection, _: Side) {
        self.run(|reflector, host, now_ms| reflector.end(host, now_ms, id));
    }

    fn room(&mut self, id: Connection, _: Side) {
        self.run(|reflector, host, _| reflector.room(host, id));
    }

    fn closed(&mut self, id: Connection) {
        self.run(|reflector, host, now_ms| reflector.closed(host, now_ms, id));
    }

    fn timer(&mut self, _: u32) {
        self.run(|reflector, host, now_ms| reflector.tick(host, now_ms));
    }

    fn export(&mut self, id: Connection) -> Option<Vec<u8>> {
        self.run(|reflector, host, _| reflector.export(host, id))
    }

    fn import(&mut self, id: Connection, _: Option<&Flow>, state: &[u8]) -> bool {
        self.run(|reflector, host, now_ms| reflector.import(host, now_ms, id, state))
    }
}

/// The node.
struct Node;

impl Host for Node {
    fn may_open(&mut self, to: SocketAddr) -> Option<bool> {
        // Nothing else says so. One that may be is given up before it is there.
        match tcp::open(&Address { ip: to.ip().to_string(), port: to.port() }) {
            Ok(id) => {
                self.close(id);
                Some(true)
            }
            Err(Error::NotPermitted | Error::Invalid) => Some(false),
            Err(Error::NotFound | Error::WouldBlock | Error::Quota) => None,
        }
    }

    fn open(&mut self, to: SocketAddr) -> Option<Connection> {
        tcp::open(&Address { ip: to.ip().to_string(), port: to.port() })
            .inspect_err(|error| eprintln!("no connection to {to}: {error:?}"))
            .ok()
    }

    fn send(&mut self, id: Connection, to: Side, bytes: &[u8]) -> Sent {
        match tcp::send(id, to, bytes) {
            Ok(()) => Sent::Done,
            Err(Error::WouldBlock | Error::Quota) => Sent::Full,
            Err(Error::NotFound | Error::NotPermitted | Error::Invalid) => Sent::Gone,
        }
    }

    fn queued(&mut self, id: Connection, to: Side) -> Option<u64> {
        tcp::queued(id, to).ok()
    }

    fn pause(&mut self, id: Connection, of: Side, is_paused: bool) {
        // One that is gone says so by `closed`.
        let _ = if is_paused { tcp::pause(id, of) } else { tcp::resume(id, of) };
    }

    fn shutdown(&mut self, id: Connection, to: Side) -> bool {
        tcp::shutdown(id, to).is_ok()
    }

    fn close(&mut self, id: Connection) {
        // It may be gone.
        let _ = tcp::close(id);
    }

    fn count(&mut self, counter: Counter, amount: u64) {
        let _ = counters::add(counter.name(), amount);
    }

    fn set(&mut self, counter: Counter, value: u64) {
        let _ = counters::set(counter.name(), value);
    }

    fn learn(&mut self, server: SocketAddr) {
        let has_room = kv::keys(None, SERVERS_MAX).is_ok_and(|keys| keys.len() < SERVERS_MAX as usize);
        if has_room && kv::set(server.to_string().as_bytes(), &[]).is_ok() {
            let _ = counters::add(Counter::Learned.name(), 1);
        }
    }

    fn is_learned(&mut self, server: SocketAddr) -> bool {
        matches!(kv::get(server.to_string().as_bytes()), Ok(Some(_)))
    }
}

tcp_module!(StreamReflector);
