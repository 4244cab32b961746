// SPDX-License-Identifier: Apache-2.0
//! Does with connections what their clients say, most of it bad.

use netserv_server_sdk::tcp::{Action, Connection, Decision, Flow, Side, TcpModule, send};
use netserv_server_sdk::tcp_module;

#[derive(Default)]
struct Tests;

impl TcpModule for Tests {
    fn connect(&mut self, _: Connection, _: &Flow) -> Decision {
        Decision::Accept
    }

    fn data(&mut self, id: Connection, _: Side, bytes: &[u8]) -> Action {
        match bytes {
            b"flood and close" => {
                let _ = send(id, Side::Client, &vec![b'x'; 1 << 20]);
                Action::Close
            }
            b"grow" => {
                let grown = Vec::<u8>::new().try_reserve_exact(1 << 30).is_ok();
                answer(id, if grown { b"grown" } else { b"small" })
            }
            b"trap" => std::process::abort(),
            other => answer(id, other),
        }
    }
}

fn answer(id: Connection, bytes: &[u8]) -> Action {
    // A client that is gone learns nothing.
    let _ = send(id, Side::Client, bytes);
    Action::Pass
}

tcp_module!(Tests);
