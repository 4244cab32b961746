// SPDX-License-Identifier: Apache-2.0
//! The server part: `GET /` is the page, `GET /senders` the same as text, `POST /block/ADDRESS` and
//! `POST /allow/ADDRESS` are wishes. With the property `token`, wishes need `authorization: Bearer TOKEN`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use netserv_server_sdk::http::{HttpModule, Request, Response};
use netserv_server_sdk::{http_module, kv, messages, properties};

struct Page;

impl HttpModule for Page {
    fn handle(request: Request) -> Response {
        let wish = request.path.strip_prefix('/').and_then(|path| path.split_once('/'));
        match (&*request.method, &*request.path, wish) {
            ("GET", "/", _) => Response::html(200, page(&senders())),
            ("GET", "/senders", _) => Response::text(200, text(&senders())),
            ("POST", _, Some((verb @ ("block" | "allow"), address))) => take_wish(&request, verb, address),
            ("GET" | "POST", ..) => Response::text(404, "nothing here\n"),
            _ => Response::text(405, "GET / or POST /block/ADDRESS\n").with("allow", "GET, POST"),
        }
    }
}

/// What is known of one sender.
#[derive(Clone, Copy, Default)]
struct Sender {
    packets: u64,
    blocked: bool,
}

fn senders() -> BTreeMap<IpAddr, Sender> {
    let mut senders: BTreeMap<IpAddr, Sender> = BTreeMap::new();
    let mut after = None;
    // In portions, as the node hands them out.
    while let Ok(keys) = kv::keys(after.as_deref(), 256) {
        let Some(last) = keys.last() else { break };
        after = Some(last.clone());
        for key in &keys {
            let Some((kind, address)) = std::str::from_utf8(key).ok().and_then(|key| key.split_once('/')) else {
                continue;
            };
            let Ok(address) = address.parse() else { continue };
            let sender = senders.entry(address).or_default();
            match kind {
                "blocked" => sender.blocked = true,
                "seen" => sender.packets = number(key),
                _ => {}
            }
        }
    }
    senders
}

fn number(key: &[u8]) -> u64 {
    let value = kv::get(key).ok().flatten().unwrap_or_default();
    <[u8; 8]>::try_from(value).map(u64::from_le_bytes).unwrap_or(0)
}

fn take_wish(request: &Request, verb: &str, address: &str) -> Response {
    let token = properties::get("token").unwrap_or_default();
    let given = request.header("authorization").unwrap_or_default();
    if !token.is_empty() && given != format!("Bearer {token}").as_bytes() {
        return Response::text(401, "a token is needed\n").with("www-authenticate", "Bearer");
    }
    let Ok(address) = address.parse::<IpAddr>() else {
        return Response::text(400, format!("`{address}` is no address\n"));
    };
    match messages::send(format!("{verb} {address}").as_bytes()) {
        Ok(()) => Response::text(202, format!("{verb} {address}\n")),
        Err(error) => Response::text(503, format!("the packet part does not listen: {error:?}\n")),
    }
}

fn text(senders: &BTreeMap<IpAddr, Sender>) -> String {
    let mut text = String::new();
    for (address, Sender { packets, blocked }) in senders {
        let _ = writeln!(text, "{address} {packets} {}", if *blocked { "blocked" } else { "allowed" });
    }
    text
}

fn page(senders: &BTreeMap<IpAddr, Sender>) -> String {
    let mut rows = String::new();
    for (address, Sender { packets, blocked }) in senders {
        let verb = if *blocked { "allow" } else { "block" };
        let _ = write!(
            rows,
            "<tr><td>{address}<td>{packets}<td><form method=post action=/{verb}/{address}><button>{verb}</button></form>"
        );
    }
    format!(
        "<!doctype html><meta charset=utf-8><title>guard</title><h1>Who sends packets</h1>\
         <table id=senders><tr><th>address<th>packets<th>{rows}</table>"
    )
}

http_module!(Page);
