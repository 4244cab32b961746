// SPDX-License-Identifier: Apache-2.0
//! The server part: `GET /` shows for whom the door is open, `POST /close/ADDRESS` closes it.

use netserv_server_sdk::http::{HttpModule, Request, Response};
use netserv_server_sdk::{http_module, kv, wasi};

struct Page;

impl HttpModule for Page {
    fn handle(request: Request) -> Response {
        match (request.method.as_str(), request.path.as_str(), request.path.strip_prefix("/close/")) {
            ("GET", "/", _) => Response::text(200, page()),
            ("POST", _, Some(address)) => close(address),
            _ => Response::text(404, "nothing here\n"),
        }
    }
}

fn page() -> String {
    let now = wasi::clocks::wall_clock::now();
    let now_ms = now.seconds * 1000 + u64::from(now.nanoseconds / 1_000_000);
    let (mut text, mut after) = ("The door is open for:\n".to_owned(), None);
    while let Ok(keys) = kv::keys(after.as_deref(), 100) {
        let Some(last) = keys.last() else { break };
        after = Some(last.clone());
        for key in &keys {
            let Some(address) = std::str::from_utf8(key).ok().and_then(|key| key.strip_prefix("open/")) else { continue };
            let value = kv::get(key).ok().flatten().unwrap_or_default();
            let until = value.try_into().map_or(0, u64::from_le_bytes);
            if until > now_ms {
                text.push_str(&format!("{address} for {} s\n", (until - now_ms) / 1000));
            }
        }
    }
    text
}

/// The packet part looks at kv state for each packet to the door, so the next one meets a closed door.
fn close(address: &str) -> Response {
    match kv::delete(format!("open/{address}").as_bytes()) {
        Ok(true) => Response::text(200, format!("closed for {address}\n")),
        Ok(false) => Response::text(404, format!("the door is not open for {address}\n")),
        Err(error) => Response::text(500, format!("{error:?}\n")),
    }
}

http_module!(Page);
