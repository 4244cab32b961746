// SPDX-License-Identifier: Apache-2.0
//! Answers in capitals, by `netserv:tcp@1.0.0`, as modules do that were built when there was nothing newer.

#[allow(
    missing_docs,
    unsafe_code,
    unused_imports,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    reason = "generated; the documentation is in wit/"
)]
#[rustfmt::skip]
mod bindings;

use bindings::exports::netserv::tcp1_0_0::handler::{Action, Connection, Decision, Flow, Guest, Side};
use bindings::netserv::tcp1_0_0::control::{send, set_timer};

struct First;

impl Guest for First {
    fn connect(id: Connection, _: Flow) -> Decision {
        // Its number is the connection's, for which it says something later.
        let _ = set_timer(u32::try_from(id).unwrap_or(u32::MAX), 20, 0);
        Decision::Accept
    }

    fn data(id: Connection, source: Side, bytes: Vec<u8>) -> Action {
        if source == Side::Client {
            let _ = send(id, Side::Client, &bytes.to_ascii_uppercase());
        }
        Action::Pass
    }

    fn end(_: Connection, _: Side) {}

    fn closed(_: Connection) {}

    fn timer(id: u32) {
        let _ = send(u64::from(id), Side::Client, b"later");
    }
}

#[cfg(target_arch = "wasm32")]
#[allow(unsafe_code, reason = "exports are")]
mod export {
    use super::{First, bindings};

    bindings::export!(First with_types_in bindings);
}
