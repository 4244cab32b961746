// SPDX-License-Identifier: Apache-2.0
//! Pages of modules: files that are part of the component, and what browsers are told of them.
//!
//! A page asks nobody but its own module, so it works where only the node can be reached, and nothing on it runs that is not one of
//! its files. [`LIVE`] has what live pages share, and [`UPLOT`] charts; `modules/apps/net-monitor-live` shows how a page is made of them.
//!
//! ```no_run
//! use netserv_server_sdk::http::{HttpModule, Request, Response};
//! use netserv_server_sdk::page::{self, Asset, HTML};
//! use netserv_server_sdk::{channel, http_module, properties};
//!
//! static PAGE: [Asset; 1] = [Asset::new("/", HTML, b"<!doctype html><script type=module src=/live.js></script>")];
//!
//! struct Page;
//!
//! impl HttpModule for Page {
//!     fn handle(request: Request) -> Response {
//!         if let Some(refusal) = page::refusal(&request, &properties::get("token").unwrap_or_default()) {
//!             return refusal;
//!         }
//!         match &*request.path {
//!             "/events" => channel::events(&request, "page"),
//!             _ => page::asset(&request, PAGE.iter().chain(&page::LIVE)).unwrap_or_else(page::not_found),
//!         }
//!     }
//! }
//!
//! http_module!(Page);
//! # fn main() {}
//! ```

mod headers;

use crate::compress::{Encoding, compress};
use crate::http::{Request, Response};

/// A file that is part of the component.
#[derive(Debug)]
pub struct Asset {
    path: &'static str,
    media_type: &'static str,
    bytes: &'static [u8],
    digest: u64,
}

impl Asset {
    /// Makes one that is found at a path, such as `/page.js`.
    pub const fn new(path: &'static str, media_type: &'static str, bytes: &'static [u8]) -> Asset {
        Asset { path, media_type, bytes, digest: fnv1a(bytes) }
    }

    fn tag(&self) -> String {
        // Weak, since it is the same with and without compression.
        format!("W/\"{:016x}\"", self.digest)
    }
}

/// Answers a request for one of the files, compressed for clients that take that; nothing if it is for another path.
///
/// Browsers keep a file, and ask each time whether it is still the same.
pub fn asset<'a>(request: &Request, assets: impl IntoIterator<Item = &'a Asset>) -> Option<Response> {
    let asset = assets.into_iter().find(|asset| asset.path == path(request))?;
    if !matches!(&*request.method, "GET" | "HEAD") {
        return Some(not_allowed());
    }
    let tag = asset.tag();
    let answer = |status, body: &[u8]| {
        let response = secured(Response::new(status, body)).with("etag", &tag).with("cache-control", "no-cache");
        response.with("vary", "accept-encoding")
    };
    if request.header("if-none-match").is_some_and(|tags| headers::names_tag(tags, &tag)) {
        return Some(answer(304, b""));
    }
    let wanted = asset.bytes.len() >= COMPRESSED_BYTES_MIN
        && request.header("accept-encoding").is_some_and(headers::accepts_gzip);
    // Without room for a coder it goes as it is.
    let compressed = wanted.then(|| compress(Encoding::Gzip, GZIP_LEVEL, asset.bytes).ok()).flatten();
    let response = match &compressed {
        Some(bytes) => answer(200, bytes).with("content-encoding", "gzip"),
        None => answer(200, asset.bytes),
    };
    Some(response.with("content-type", asset.media_type))
}

/// Returns the path of a request, without its query.
pub fn path(request: &Request) -> &str {
    request.path.split('?').next().unwrap_or_default()
}

/// Adds what keeps an answer from being used for anything but a page of this module: only its own files run and are shown there, and
/// no other page frames it.
pub fn secured(response: Response) -> Response {
    SECURITY.iter().fold(response, |response, (name, value)| response.with(name, value))
}

/// Returns the answer for a client that does not show the token: by `authorization: Bearer TOKEN`, or, as browsers ask their users,
/// as the password of any name. There is none if it does, or if the token is empty.
pub fn refusal(request: &Request, token: &str) -> Option<Response> {
    let shown = request.header("authorization").and_then(headers::token);
    let is_permitted = token.is_empty() || shown.is_some_and(|shown| headers::are_equal(&shown, token.as_bytes()));
    (!is_permitted).then(|| {
        let challenge = "Basic realm=\"module\", charset=\"UTF-8\"";
        secured(Response::text(401, "a token is needed\n")).with("www-authenticate", challenge)
    })
}

/// Returns the answer for a path where nothing is.
pub fn not_found() -> Response {
    secured(Response::text(404, "nothing here\n"))
}

/// Returns the answer for a method other than `GET` and `HEAD`.
pub fn not_allowed() -> Response {
    secured(Response::text(405, "GET or HEAD\n")).with("allow", "GET, HEAD")
}

/// The 64-bit digest FNV-1a.
const fn fnv1a(bytes: &[u8]) -> u64 {
    let (mut digest, mut at) = (0xcbf2_9ce4_8422_2325_u64, 0);
    while at < bytes.len() {
        digest = (digest ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    digest
}

/// The media type of pages.
pub const HTML: &str = "text/html; charset=utf-8";
/// The media type of scripts.
pub const SCRIPT: &str = "text/javascript; charset=utf-8";
/// The media type of style sheets.
pub const STYLE: &str = "text/css; charset=utf-8";

/// `/live.js`, which reads events again and again, fills tables and draws charts, and `/live.css`.
pub static LIVE: [Asset; 2] = [
    Asset::new("/live.js", SCRIPT, include_bytes!("live.js")),
    Asset::new("/live.css", STYLE, include_bytes!("live.css")),
];

/// `/uplot.js`, `/uplot.css` and `/uplot-licence.txt`: [uPlot](https://github.com/leeoniya/uPlot), by which `/live.js` draws.
pub static UPLOT: [Asset; 3] = [
    Asset::new("/uplot.js", SCRIPT, include_bytes!("../../third-party/uplot/uPlot.iife.min.js")),
    Asset::new("/uplot.css", STYLE, include_bytes!("../../third-party/uplot/uPlot.min.css")),
    Asset::new("/uplot-licence.txt", "text/plain; charset=utf-8", include_bytes!("../../third-party/uplot/LICENSE")),
];

const SECURITY: [(&str, &str); 4] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
];
/// Smaller files go as they are.
const COMPRESSED_BYTES_MIN: usize = 1024;
const GZIP_LEVEL: u8 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_tag_of_its_own() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
        let tags: std::collections::BTreeSet<_> = LIVE.iter().chain(&UPLOT).map(Asset::tag).collect();
        assert_eq!(tags.len(), 5);
    }

    /// Nothing that a page loads comes from elsewhere.
    #[test]
    fn shared_files_name_no_other_server() {
        for asset in &LIVE {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            assert!(!text.contains("://") && !text.contains("url("), "{}", asset.path);
        }
    }
}
