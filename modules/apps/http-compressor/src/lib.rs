// SPDX-License-Identifier: Apache-2.0
//! Compresses what servers of others send to browsers, on its way: Brotli, Zstandard or gzip, as the client takes it. What the client has
//! after decompressing is what the server sent. AMnet has it as its HTTP compressor.
//!
//! It leaves alone what is short, compressed already, of a kind that does not shrink, a part of something, or marked `no-transform`.
//! Events and other streams reach their reader within milliseconds. Answers take no instance while they are sent, however long
//! that is. Uploads of any length go by the node, and answers that are late come as they are. If there is no memory for one more coder, answers go on as they are.
//!
//! Properties: `codings` in the order in which they are liked, `level` (0 fast, 9 small), `least`: bytes below which nothing is done.

mod decide;

use netserv_server_sdk::compress::{Compressor, Encoding};
use netserv_server_sdk::http::{Bounds, ErrorCode, Fetched, HttpModule, Request, Response, forward_or_pass};
use netserv_server_sdk::{counters, http_module, properties};

use crate::decide::{
    Coding, Headers, accepted, code, is_negotiated, is_of_connection, is_part, map_back, unchanged, vary, worth,
};

struct HttpCompressor;

impl HttpModule for HttpCompressor {
    fn handle(request: Request) -> Response {
        let is_head = request.method == "HEAD";
        let mut asked = of_the_message(request.headers());
        let had_weak_tag = map_back(&mut asked);
        let fetched = match forward_or_pass(&request.scheme(), request, &asked) {
            Ok(fetched) => fetched,
            Err(ErrorCode::ConnectionLimitReached) => return Response::text(503, "too many uploads at a time\n"),
            Err(error) => return Response::text(502, format!("the server does not answer: {error:?}\n")),
        };
        let status = fetched.status;
        let mut head = of_the_message(&fetched.headers);
        if status == 304 {
            unchanged(&mut head, had_weak_tag);
        }
        if !is_negotiated(&asked, status, &head, number("least", LEAST)) {
            return passed(fetched, head);
        }
        vary(&mut head);
        if is_part(status, &head) {
            return passed(fetched, head);
        }
        let mut codings = accepted(&asked, &known(properties::get("codings").as_deref()));
        worth(&mut codings, &head);
        if is_head {
            if let Some(coding) = codings.first() {
                code(&mut head, *coding);
            }
            return passed(fetched, head);
        }
        let Some((coding, coder)) = codings.iter().find_map(|coding| Some((*coding, open(*coding)?))) else {
            if !codings.is_empty() {
                count("no-memory");
            }
            return passed(fetched, head);
        };
        count(coding.name());
        code(&mut head, coding);
        Response { headers: head, ..Response::coded(status, fetched, coder, BOUNDS) }
    }
}

/// Answers with what came, as it came.
fn passed(fetched: Fetched, headers: Headers) -> Response {
    count("passed");
    Response { headers, ..Response::fetched(fetched.status, fetched, BOUNDS) }
}

fn of_the_message(headers: &[(String, Vec<u8>)]) -> Headers {
    headers.iter().filter(|(name, _)| !is_of_connection(name)).cloned().collect()
}

fn open(coding: Coding) -> Option<Compressor> {
    let encoding = match coding {
        Coding::Br => Encoding::Br,
        Coding::Zstd => Encoding::Zstd,
        Coding::Gzip => Encoding::Gzip,
    };
    let level = u8::try_from(number("level", LEVEL)).unwrap_or(u8::MAX);
    Compressor::open(encoding, level).ok()
}

/// Returns the codings that the property names; all if it says nothing.
fn known(property: Option<&str>) -> Vec<Coding> {
    property.unwrap_or("br zstd gzip").split_whitespace().filter_map(Coding::named).collect()
}

fn number(property: &str, default: u64) -> u64 {
    properties::get(property).and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn count(name: &str) {
    // A counter over its quota costs nothing but the count.
    let _ = counters::add(name, 1);
}

const LEVEL: u64 = 4;
const LEAST: u64 = 1024;
/// The node's own bounds hold.
const BOUNDS: Bounds = Bounds { idle_ms: 0, total_ms: 0, least_rate: 0 };

http_module!(HttpCompressor);
