// SPDX-License-Identifier: Apache-2.0
//! Answers from what is there.

use netserv_http_caching::{CacheStatus, Stored};
use netserv_server_sdk::cache::{Range, Reader};
use netserv_server_sdk::http::{Bounds, Response};

use crate::site::{Site, now};

/// Answers with an entry of the cache. The node sends it by itself.
pub fn sent(site: &Site, reader: &Reader, stored: &Stored, status: CacheStatus) -> Response {
    let request = site.request();
    let answer = stored.answer(&request, now(), reader.entry().size);
    let mut response = if answer.has_body || request.method == "HEAD" {
        let range = answer.range.map(|range| Range { start: range.start, length: Some(range.length) });
        match reader.body(range) {
            Ok(stream) => Response::stream(answer.status, stream, BOUNDS),
            Err(_) => return Response::text(503, "too many want this at a time\n"),
        }
    } else {
        Response::new(answer.status, [])
    };
    response.headers = answer.headers;
    response.headers.push(status.field(&site.policy.name));
    response
}

/// Answers with bytes.
pub fn sent_bytes(site: &Site, bytes: &[u8], stored: &Stored, status: CacheStatus) -> Response {
    let answer = stored.answer(&site.request(), now(), u64::try_from(bytes.len()).ok());
    let position = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    let part = match answer.range {
        Some(part) => bytes.get(position(part.start)..position(part.start + part.length)).unwrap_or_default(),
        None => bytes,
    };
    // To `HEAD`, the node leaves it out.
    let has_body = answer.has_body || !matches!(answer.status, 304 | 416);
    let mut response = Response::new(answer.status, if has_body { part } else { &[] });
    response.headers = answer.headers;
    response.headers.push(status.field(&site.policy.name));
    response
}

/// The node's own bounds hold.
pub const BOUNDS: Bounds = Bounds { idle_ms: 0, total_ms: 0, least_rate: 0 };
