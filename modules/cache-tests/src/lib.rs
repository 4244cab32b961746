// SPDX-License-Identifier: Apache-2.0
//! Uses the cache as the path says, with the rest of the query as its argument.

use netserv_server_sdk::bindings::imports::netserv::cache1_0_0::store as first;
use netserv_server_sdk::cache::{self, Details, Opened, Range, Reader, Scope, Writer};
use netserv_server_sdk::http::{
    Bounds, HttpModule, Method, Repeat, Request, Response, Scheme, fetch, hits, read, write_all,
};
use netserv_server_sdk::wasi::clocks::monotonic_clock::subscribe_duration;
use netserv_server_sdk::{http_module, properties};

struct Tests;

impl HttpModule for Tests {
    fn handle(request: Request) -> Response {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        match path {
            "/hand-over" => return hand_over(query, None),
            "/hand-over-part" => return hand_over(query, Some(Range { start: 150_000, length: Some(70_000) })),
            // It promises less than there is, or more.
            "/hand-over-less" => return hand_over(query, None).with("content-length", "200000"),
            "/hand-over-more" => return hand_over(query, None).with("content-length", "500000"),
            "/pass" => return pass(query),
            "/again" => return again(&request, query, 0, false),
            "/again-shortly" => return again(&request, query, 300, false),
            "/again-counted" => return again(&request, query, 0, true),
            _ => {}
        }
        let text = match path {
            "/first" => with_the_first(query),
            "/store" => store(query, 60),
            "/store-shortly" => store(query, 1),
            "/forget" => {
                let target = hits::Target { authority: request.authority.clone(), path_with_query: query.to_owned() };
                format!("{}", hits::remove(&target))
            }
            "/slowly" => open(query, None, |writer| fill(writer, 20_000, 20, || {})),
            "/trap" => open(query, None, |writer| fill(writer, 20_000, 20, || std::process::abort())),
            "/part" => open(query, Some(Range { start: 150_000, length: Some(10) }), |_| "nothing is there".to_owned()),
            "/update" => {
                let details = Details { meta: vec![b'u'; 16_384], ..details() };
                format!("{:?}", cache::update(query, &details))
            }
            "/list" => match cache::list(query, None, 10) {
                Ok(listed) => listed.iter().map(|entry| format!("{} {}\n", entry.key, entry.size)).collect(),
                Err(error) => format!("{error:?}"),
            },
            "/remove" => format!("{}", cache::remove(query)),
            "/purge" => format!("{:?}", cache::purge(&Scope::Prefix(query.to_owned()))),
            "/purge-tag" => format!("{:?}", cache::purge(&Scope::Tag(query.to_owned()))),
            _ => return Response::text(404, "nothing here"),
        };
        Response::text(200, text)
    }
}

/// Puts an entry with a key and a body, which are on both sides of `=`.
fn store(text: &str, max_age: u64) -> String {
    let (key, body) = text.split_once('=').unwrap_or((text, ""));
    let put = || {
        let writer = cache::put(key).ok()?;
        write_all(&writer.begin(&Details { max_age, ..details() }, None).ok()?, body.as_bytes()).ok()?;
        Writer::finish(writer).ok()
    };
    format!("{:?}", put())
}

/// Answers with an entry, and has the node do so as well for so many milliseconds, which is told in `x-put`. Bytes may be counted, too.
fn again(request: &Request, key: &str, for_ms: u32, counts_bytes: bool) -> Response {
    let reader = match cache::open_or_join(key) {
        Ok(Opened::Reader(reader)) => reader,
        Ok(Opened::Writer(_)) | Err(_) => return Response::text(404, "nothing is there"),
    };
    let Ok(stream) = reader.body(None) else { return Response::text(500, "no stream") };
    let repeat = Repeat { unless: &["Cookie"], for_ms, counter: "again" };
    let response = Response::stream(200, stream, BOUNDS).with("etag", "\"1\"").with("vary", "x-kind");
    let put = match counts_bytes {
        true => response.repeat_and_count(request, &reader, &repeat, "again-bytes"),
        false => response.repeat(request, &reader, &repeat),
    };
    response.with("x-put", &format!("{put:?}"))
}

fn details() -> Details {
    Details {
        content_type: "text/plain".into(),
        etag: "\"1\"".into(),
        max_age: 60,
        meta: vec![],
        tags: vec!["tag".into()],
    }
}

/// Puts an entry by 1.0.0, and reads it by both versions.
fn with_the_first(key: &str) -> String {
    let put = || {
        let writer = first::put(key, "text/plain", "", 60).ok()?;
        write_all(&writer.body().ok()?, b"of the first version").ok()?;
        first::Writer::finish(writer).ok()
    };
    if put().is_none() {
        return "it cannot be put".to_owned();
    }
    let range = first::Range { start: 7, length: Some(5) };
    let Ok(Some((entry, stream))) = first::get(key, Some(range)) else { return "it is not there".to_owned() };
    let part = read(&stream).ok().flatten().unwrap_or_default();
    let size = cache::stat(key).and_then(|entry| entry.size);
    format!("{} {} {size:?} {}", entry.size, String::from_utf8_lossy(&part), first::remove(key))
}

/// Reads an entry, or writes it.
fn open(key: &str, range: Option<Range>, write: impl FnOnce(Writer) -> String) -> String {
    match cache::open_or_join(key) {
        Ok(Opened::Writer(writer)) => write(writer),
        Ok(Opened::Reader(reader)) => described(&reader, range),
        Err(error) => format!("{error:?}"),
    }
}

fn described(reader: &Reader, range: Option<Range>) -> String {
    let Ok(stream) = reader.body(range) else { return "no stream".to_owned() };
    let (mut length, mut sum) = (0, 0_u64);
    let end = loop {
        match read(&stream) {
            Ok(Some(bytes)) => {
                length += bytes.len();
                sum += bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
            }
            Ok(None) => break "ended".to_owned(),
            Err(_) => break format!("{:?}", reader.failure()),
        }
    };
    let entry = reader.entry();
    format!("read {length} {sum} {end} of {:?}, {} beside it", entry.size, entry.details.meta.len())
}

/// Hands over an entry, or a part of it, also if it is being written.
fn hand_over(key: &str, range: Option<Range>) -> Response {
    match cache::open_or_join(key) {
        Ok(Opened::Reader(reader)) => match reader.body(range) {
            Ok(stream) => Response::stream(200, stream, BOUNDS),
            Err(error) => Response::text(500, format!("{error:?}")),
        },
        Ok(Opened::Writer(_)) => Response::text(404, "nothing is there"),
        Err(error) => Response::text(500, format!("{error:?}")),
    }
}

/// Hands over what the server of the property `upstream` answers.
fn pass(path: &str) -> Response {
    let upstream = properties::get("upstream").unwrap_or_default();
    match fetch(&Scheme::Http, &upstream, &Method::Get, path, &[]) {
        Ok(fetched) => Response::fetched(fetched.status, fetched, BOUNDS),
        Err(error) => Response::text(502, format!("{error:?}")),
    }
}

/// Writes pieces of so many bytes, the first of zeros, the next of ones, and so on, with 20 ms between them.
fn fill(writer: Writer, piece: usize, pieces: u8, in_the_middle: impl Fn()) -> String {
    let Ok(stream) = writer.begin(&details(), None) else { return "it cannot be begun".to_owned() };
    println!("begun");
    for number in 0..pieces {
        if write_all(&stream, &vec![number; piece]).is_err() {
            return "it cannot be written".to_owned();
        }
        subscribe_duration(20_000_000).block();
        if number == pieces / 2 {
            in_the_middle();
        }
    }
    drop(stream);
    format!("wrote {:?}", Writer::finish(writer))
}

/// Sources may be silent for a second.
const BOUNDS: Bounds = Bounds { idle_ms: 1000, total_ms: 0, least_rate: 0 };

http_module!(Tests);
