// SPDX-License-Identifier: Apache-2.0
//! Lets so many requests a minute through to the next module of its service as the property `per-minute` says.

use netserv_server_sdk::http::{HttpMiddleware, Request, Response};
use netserv_server_sdk::{http_middleware, kv, properties, wasi};

struct Quota;

impl HttpMiddleware for Quota {
    fn handle(_: &Request) -> Option<Response> {
        let allowed = properties::get("per-minute").and_then(|text| text.parse::<i64>().ok()).unwrap_or(60);
        let minute = wasi::clocks::wall_clock::now().seconds / 60;
        let key = format!("minute/{}", minute % 2);
        // The entry of two minutes ago has the same name: it counts for another minute, so it starts anew.
        let stamp = format!("stamp/{}", minute % 2);
        let now = minute.to_le_bytes();
        if !matches!(kv::get(stamp.as_bytes()), Ok(Some(stamped)) if stamped == now) {
            let _ = kv::delete(key.as_bytes());
            let _ = kv::set(stamp.as_bytes(), &now);
        }
        match kv::increment(key.as_bytes(), 1) {
            Ok(count) if count <= allowed => None,
            Ok(_) => Some(Response::text(429, "too many requests\n").with("retry-after", "60")),
            Err(error) => Some(Response::text(503, format!("requests cannot be counted: {error:?}\n"))),
        }
    }
}

http_middleware!(Quota);
