// SPDX-License-Identifier: Apache-2.0
//! Does with connections what their clients say, most of it bad.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

use netserv_server_sdk::tcp::{
    self, Action, Address, Connection, Decision, Error, Flow, Side, TcpModule, open, queued, send, set_timer, watch,
};
use netserv_server_sdk::wasi::clocks::monotonic_clock::subscribe_duration;
use netserv_server_sdk::{properties, tcp_module};

#[derive(Default)]
struct Tests {
    /// Clients by what the module opened for them.
    opened: HashMap<Connection, Connection>,
    /// Clients by the token or timer that they wait for.
    waiting: HashMap<u32, Connection>,
    /// What the version before told of a connection.
    told: String,
    /// What the instance on another node told.
    carried: Vec<u8>,
    /// Connections that it was told of.
    known: HashSet<Connection>,
}

impl TcpModule for Tests {
    fn connect(&mut self, id: Connection, _: &Flow) -> Decision {
        self.known.insert(id);
        match properties::get("decision").as_deref() {
            Some("serve") => Decision::Serve,
            Some("splice") => Decision::Splice,
            _ => Decision::Accept,
        }
    }

    fn opened(&mut self, id: Connection) {
        if let Some(client) = self.opened.get(&id) {
            answer(*client, b"opened");
        }
    }

    fn data(&mut self, id: Connection, source: Side, bytes: &[u8]) -> Action {
        if source == Side::Server {
            let client = self.opened.get(&id).copied().unwrap_or(id);
            return answer(client, bytes);
        }
        let text = std::str::from_utf8(bytes).unwrap_or("");
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match word {
            "flood" if rest == "and close" => {
                let _ = send(id, Side::Client, &vec![b'x'; 1 << 20]);
                Action::Close
            }
            "grow" => {
                let grown = Vec::<u8>::new().try_reserve_exact(1 << 30).is_ok();
                answer(id, if grown { b"grown" } else { b"small" })
            }
            "trap" => std::process::abort(),
            "fill" => {
                let mut size = 1 << 20;
                while size > 0 {
                    if send(id, Side::Client, &vec![b'f'; size]).is_err() {
                        size /= 2;
                    }
                }
                println!("{} bytes wait", queued(id, Side::Client).unwrap_or_default());
                Action::Pass
            }
            "queued" => {
                answer(id, queued(id, Side::Client).map_or("gone".to_owned(), |bytes| bytes.to_string()).as_bytes())
            }
            "open" => self.open(id, rest),
            "pause" => {
                let _ = tcp::pause(id, Side::Client);
                self.wait(id, |token| set_timer(token, number(rest), 0))
            }
            "block" => {
                subscribe_duration(number(rest) * 1_000_000).block();
                answer(id, b"blocked")
            }
            "watch" => self.wait(id, |token| watch(subscribe_duration(number(rest) * 1_000_000), token)),
            "carried" => answer(id, &self.carried),
            "who" => answer(id, format!("{} {}", property("version"), self.told).as_bytes()),
            _ => answer(id, bytes),
        }
    }

    fn export(&mut self, _: Connection) -> Option<Vec<u8>> {
        match property("export").as_str() {
            "trap" => std::process::abort(),
            "large" => Some(vec![0; 64 * 1024 + 1]),
            "largest" => Some(vec![0; 64 * 1024]),
            "stall" => loop {
                std::hint::black_box(());
            },
            "" => None,
            text => Some(text.into()),
        }
    }

    fn import(&mut self, id: Connection, flow: Option<&Flow>, state: &[u8]) -> bool {
        match property("import").as_str() {
            "trap" => std::process::abort(),
            "refuse" => return false,
            // The connection is there already.
            _ => drop(send(id, Side::Client, b"imported")),
        }
        let client = flow.map_or_else(String::new, |flow| flow.client.ip.clone());
        self.told = format!("{} {client}", state.len());
        true
    }

    fn export_state(&mut self) -> Result<Vec<u8>, String> {
        match property("export-state").as_str() {
            "trap" => std::process::abort(),
            "refuse" => Err("not\u{1b}[2J now".to_owned()),
            "stall" => loop {
                std::hint::black_box(());
            },
            text => Ok([text.as_bytes(), self.carried.as_slice()].concat()),
        }
    }

    fn import_state(&mut self, state: &[u8]) -> Result<(), String> {
        match property("import-state").as_str() {
            "trap" => std::process::abort(),
            "refuse" => Err("never".to_owned()),
            _ => {
                self.carried = state.to_vec();
                Ok(())
            }
        }
    }

    fn end(&mut self, id: Connection, source: Side) {
        if source == Side::Server && self.opened.contains_key(&id) {
            let _ = tcp::close(id);
        }
    }

    fn room(&mut self, id: Connection, _: Side) {
        answer(id, b"room");
    }

    fn closed(&mut self, id: Connection) {
        if !self.known.remove(&id) && !property("strict").is_empty() {
            std::process::abort();
        }
        if let Some(client) = self.opened.remove(&id) {
            answer(client, b"closed");
        }
        self.opened.retain(|own, client| {
            let goes = *client == id;
            if goes {
                // It may be gone, too.
                let _ = tcp::close(*own);
            }
            !goes
        });
    }

    fn timer(&mut self, token: u32) {
        if let Some(id) = self.waiting.remove(&token) {
            answer(id, b"resumed");
            let _ = tcp::resume(id, Side::Client);
        }
    }

    fn ready(&mut self, token: u32) {
        if let Some(id) = self.waiting.remove(&token) {
            answer(id, b"watched");
        }
    }
}

fn property(name: &str) -> String {
    properties::get(name).unwrap_or_default()
}

impl Tests {
    fn open(&mut self, id: Connection, remote: &str) -> Action {
        let (ip, port) = match remote.parse::<SocketAddr>() {
            Ok(remote) => (remote.ip().to_string(), remote.port()),
            Err(_) => (remote.to_owned(), 1),
        };
        match open(&Address { ip, port }) {
            Ok(own) => {
                self.opened.insert(own, id);
                let _ = send(own, Side::Server, b"hello from the module");
                Action::Pass
            }
            Err(error) => answer(id, error.name().as_bytes()),
        }
    }

    fn wait(&mut self, id: Connection, begin: impl FnOnce(u32) -> Result<(), Error>) -> Action {
        let token = u32::try_from(id).unwrap_or(u32::MAX);
        match begin(token) {
            Ok(()) => {
                self.waiting.insert(token, id);
                Action::Pass
            }
            Err(error) => answer(id, error.name().as_bytes()),
        }
    }
}

fn number(text: &str) -> u64 {
    text.trim().parse().unwrap_or(0)
}

fn answer(id: Connection, bytes: &[u8]) -> Action {
    // A client that is gone learns nothing.
    let _ = send(id, Side::Client, bytes);
    Action::Pass
}

tcp_module!(Tests);
