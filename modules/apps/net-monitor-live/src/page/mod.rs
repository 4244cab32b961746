// SPDX-License-Identifier: Apache-2.0
//! The server part: `GET /` is the page, `/events` what it is told as it happens, `/data.json` the same once, and `/data.csv` all
//! entries. With the property `token`, whoever asks has to show it.

use net_monitor::kept::{Sum, TOTALS, Totals, key};
use netserv_server_sdk::http::{HttpModule, Request, Response};
use netserv_server_sdk::page::{self, Asset, HTML, SCRIPT};
use netserv_server_sdk::{channel, http_module, kv, node, properties};

use crate::json;
use crate::limits::ENTRIES_AT_ONCE;
use crate::table::Table;

static PAGE: [Asset; 2] =
    [Asset::new("/", HTML, include_bytes!("page.html")), Asset::new("/page.js", SCRIPT, include_bytes!("page.js"))];
/// The topic of the page's events.
pub const TOPIC: &str = "page";

struct Page;

impl HttpModule for Page {
    fn handle(request: Request) -> Response {
        if let Some(refusal) = page::refusal(&request, &properties::get("token").unwrap_or_default()) {
            return refusal;
        }
        let files = PAGE.iter().chain(&page::LIVE).chain(&page::UPLOT);
        if let Some(file) = page::asset(&request, files) {
            return file;
        }
        let is_read = matches!(&*request.method, "GET" | "HEAD");
        match page::path(&request) {
            "/events" | "/data.json" | "/data.csv" if !is_read => page::not_allowed(),
            "/events" => page::secured(channel::events(&request, TOPIC)),
            "/data.json" => data(Response::new(200, tables()), "application/json"),
            "/data.csv" => data(csv(), "text/csv; charset=utf-8")
                .with("content-disposition", "attachment; filename=\"packets.csv\""),
            _ => page::not_found(),
        }
    }
}

http_module!(Page);

/// Returns what was counted of all packets.
pub fn totals() -> Totals {
    kv::get(TOTALS).ok().flatten().and_then(|value| Totals::parse(&value)).unwrap_or_default()
}

/// Returns all that the page shows, but for rates.
pub fn tables() -> String {
    // Before the entries, which go on meanwhile.
    let (totals, mut table) = (totals(), Table::default());
    let mut after = None;
    while let Some(entries) = entries(&mut after) {
        entries.iter().for_each(|(name, value)| table.add(name, value));
    }
    json::tables(&node::id(), &node::place(), &totals, &table)
}

fn data(response: Response, media_type: &str) -> Response {
    page::secured(response).with("content-type", media_type).with("cache-control", "no-store")
}

/// Returns an answer of all entries, in the order of their names.
fn csv() -> Response {
    let mut after = None;
    let mut head = Some(b"source,destination,ttl,packets,bytes,estimate\r\n".to_vec());
    Response::chunks(200, move || {
        if let Some(head) = head.take() {
            return Ok(Some(head));
        }
        let Some(entries) = entries(&mut after) else { return Ok(None) };
        let mut lines = String::new();
        for (name, value) in &entries {
            if let (Some((source, destination, ttl)), Some(sum)) = (key(name), Sum::parse(value)) {
                let Sum { estimate, packets, bytes } = sum;
                lines.push_str(&format!("{source},{destination},{ttl},{packets},{bytes},{estimate}\r\n"));
            }
        }
        Ok(Some(lines.into_bytes()))
    })
}

/// Returns the next entries of kv state behind a name, and puts the last one's there; nothing at the end.
fn entries(after: &mut Option<Vec<u8>>) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let names = kv::keys(after.as_deref(), ENTRIES_AT_ONCE).ok()?;
    *after = Some(names.last()?.clone());
    let entry = |name: Vec<u8>| {
        let value = kv::get(&name).ok().flatten()?;
        Some((name, value))
    };
    Some(names.into_iter().filter_map(entry).collect())
}
