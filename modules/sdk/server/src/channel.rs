// SPDX-License-Identifier: Apache-2.0
//! The module's channel: topics that its instances and its packet part publish to, and its instances read.
//!
//! ```no_run
//! use netserv_server_sdk::channel::{self, Framing, Start};
//! use netserv_server_sdk::http::{HttpModule, Request, Response};
//! use netserv_server_sdk::http_module;
//!
//! struct Board;
//!
//! impl HttpModule for Board {
//!     fn handle(request: Request) -> Response {
//!         if request.method != "POST" {
//!             // The instance ends, and the node goes on.
//!             return channel::events(&request, "board");
//!         }
//!         let Ok(words) = request.body(1000) else { return Response::text(400, "too long\n") };
//!         let event = format!("data: {}\n\n", String::from_utf8_lossy(&words).trim());
//!         match channel::publish("board", event.as_bytes(), None) {
//!             Ok(number) => Response::text(200, format!("message {number}\n")),
//!             Err(error) => Response::text(503, format!("{error:?}\n")),
//!         }
//!     }
//! }
//!
//! http_module!(Board);
//!
//! // A program reads by itself; a stream ends when the topic is closed, and fails once if its reader is too slow.
//! let stream = channel::subscribe("board", Start::Oldest, Framing::Bytes).expect("a topic");
//! while let Ok(bytes) = stream.blocking_read(4096) {
//!     println!("{}", String::from_utf8_lossy(&bytes));
//! }
//! ```

#[doc(inline)]
pub use crate::bindings::imports::netserv::channel::channel::{
    Error, Framing, Start, close, is_behind, publish, subscribe,
};
use crate::http::{Bounds, Request, Response};

/// Answers with the messages of a topic as server-sent events: those that are kept, or those behind the last one that the client
/// had, and then what comes. Each message is to be an event without its number, such as `data: hello` with an empty line behind it.
/// The instance ends, and the node goes on for a day, or until the topic is silent for five minutes: clients come back by themselves.
pub fn events(request: &Request, topic: &str) -> Response {
    let last = request.header("last-event-id").and_then(|value| std::str::from_utf8(value).ok()?.parse().ok());
    let resumed = last.map(|number| subscribe(topic, Start::After(number), Framing::Events));
    let subscribed = match resumed {
        // What the client lacks is lost: it begins anew.
        None | Some(Err(Error::Gone)) => subscribe(topic, Start::Oldest, Framing::Events),
        Some(subscribed) => subscribed,
    };
    match subscribed {
        Ok(stream) => Response::stream(200, stream, Bounds { idle_ms: IDLE_MS, total_ms: 0, least_rate: 0 })
            .with("content-type", "text/event-stream")
            .with("cache-control", "no-store"),
        Err(error) => Response::text(503, format!("no events: {error:?}\n")),
    }
}

/// How long a topic may be silent: clients that went away without a word are noticed only when they are sent something.
const IDLE_MS: u32 = 300_000;
