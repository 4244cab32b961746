// SPDX-License-Identifier: Apache-2.0
//! Counts the connections and bytes of TCP streams on their way, and lets everything pass.

use netserv_server_sdk::tcp::{Action, Connection, Decision, Flow, Side, TcpModule};
use netserv_server_sdk::{counters, tcp_module};

#[derive(Default)]
struct ByteCount {
    to_server: u64,
    to_client: u64,
}

impl TcpModule for ByteCount {
    fn connect(&mut self, _: Connection, _: &Flow) -> Decision {
        add("connections", 1);
        Decision::Accept
    }

    fn data(&mut self, _: Connection, source: Side, bytes: &[u8]) -> Action {
        match source {
            Side::Client => self.to_server += bytes.len() as u64,
            Side::Server => self.to_client += bytes.len() as u64,
        }
        Action::Pass
    }

    /// It knows nothing of single connections.
    fn export(&mut self, _: Connection) -> Option<Vec<u8>> {
        self.tell();
        Some(Vec::new())
    }

    fn import(&mut self, _: Connection, _: Option<&Flow>, _: &[u8]) -> bool {
        true
    }

    fn closed(&mut self, _: Connection) {
        self.tell();
    }
}

impl ByteCount {
    fn tell(&mut self) {
        add("to-server", std::mem::take(&mut self.to_server));
        add("to-client", std::mem::take(&mut self.to_client));
    }
}

fn add(name: &str, amount: u64) {
    // A counter over its quota costs nothing but the count.
    let _ = counters::add(name, amount);
}

tcp_module!(ByteCount);
