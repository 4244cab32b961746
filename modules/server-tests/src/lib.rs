// SPDX-License-Identifier: Apache-2.0
//! Answers HTTP requests in the ways that the path says, most of them bad.

#![cfg(target_os = "wasi")]

use std::sync::atomic::{AtomicU32, Ordering};

use netserv_server_sdk::state::StateModule;
use netserv_server_sdk::{connection, state_module};
use wasi::exports::http::incoming_handler::Guest;
use wasi::http::outgoing_handler;
use wasi::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingRequest, Method, OutgoingBody, OutgoingRequest,
    OutgoingResponse, ResponseOutparam, Scheme,
};
use wasi::io::streams::{InputStream, OutputStream, StreamError};

struct Tests;

/// Requests that this instance has seen: never more than one.
static SEEN: AtomicU32 = AtomicU32::new(0);

impl Guest for Tests {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let seen = SEEN.fetch_add(1, Ordering::Relaxed) + 1;
        let target = request.path_with_query().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let number: u64 = query.parse().unwrap_or(0);
        match path {
            "/version" => answer(out, 200, property("version").as_bytes()),
            "/seen" => answer(out, 200, seen.to_string().as_bytes()),
            "/head" => answer(out, 200, head(&request).as_bytes()),
            "/flow" => answer(out, 200, flow().as_bytes()),
            "/count" => answer(out, 200, count(&request).as_bytes()),
            "/spin" => loop {
                std::hint::black_box(());
            },
            "/sleep" => {
                sleep(number);
                answer(out, 200, b"slept");
            }
            "/trap" => std::process::abort(),
            "/panic" => panic!("on request"),
            "/silent" => {}
            "/exit" => std::process::exit(3),
            "/status" => answer(out, u16::try_from(number).unwrap_or(0), b""),
            "/memory" => answer(out, 200, take_memory(number).to_string().as_bytes()),
            "/leak" => {
                std::mem::forget(vec![1_u8; usize::try_from(number).unwrap_or(0)]);
                answer(out, 200, b"leaked");
            }
            "/hold" => {
                std::mem::forget(vec![1_u8; usize::try_from(number).unwrap_or(0)]);
                count(&request);
                answer(out, 200, b"held");
            }
            "/headers" => {
                (0..number).for_each(|_| leak_headers());
                answer(out, 200, b"leaked");
            }
            "/requests" => {
                (0..number).for_each(|_| leak_request());
                answer(out, 200, b"leaked");
            }
            "/many" => stream(out, number, || {}),
            "/break" => stream(out, number, || std::process::abort()),
            "/drip" => drip(out),
            "/print" => {
                println!("{query}");
                eprint!("no end of line");
                answer(out, 200, b"printed");
            }
            "/fetch" => fetch(out, query),
            "/upload" => upload(out, query),
            "/work" => {
                answer(out, 200, b"answered");
                sleep(number);
                println!("worked");
            }
            _ => answer(out, 404, b"nothing here"),
        }
    }
}

impl StateModule for Tests {
    fn export_state() -> Result<Vec<u8>, String> {
        match property("export-state").as_str() {
            "trap" => std::process::abort(),
            "refuse" => Err("not now".to_owned()),
            text => Ok(text.into()),
        }
    }

    fn import_state(state: &[u8]) -> Result<(), String> {
        println!("imported {}", String::from_utf8_lossy(state));
        if state == b"refused" { Err("never".to_owned()) } else { Ok(()) }
    }
}

fn property(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn head(request: &IncomingRequest) -> String {
    let scheme = match request.scheme() {
        Some(Scheme::Https) => "https",
        Some(Scheme::Http) => "http",
        Some(Scheme::Other(_)) | None => "other",
    };
    let mut text = format!("{scheme} {}\n", request.authority().unwrap_or_default());
    for (name, value) in request.headers().entries() {
        text.push_str(&format!("{name}: {}\n", String::from_utf8_lossy(&value)));
    }
    text
}

/// Returns between whom the request came.
fn flow() -> String {
    let Some(ends) = connection::request() else { return "nobody".to_owned() };
    let (client, server) = (ends.client, ends.server);
    let how = if ends.intercepted { "intercepted" } else { "served" };
    format!("{} {} -> {} {} {how} tls={}", client.ip, client.port, server.ip, server.port, ends.tls)
}

/// Reads the whole body. Returns how long it was, and how it ended.
fn count(request: &IncomingRequest) -> String {
    let Ok(body) = request.consume() else { return "no body".to_owned() };
    let Ok(stream) = body.stream() else { return "no stream".to_owned() };
    let (length, end) = read_all(&stream, |_| {});
    format!("{length} {end}")
}

fn read_all(stream: &InputStream, mut each: impl FnMut(&[u8])) -> (u64, &'static str) {
    let mut length = 0;
    loop {
        match stream.blocking_read(65_536) {
            Ok(bytes) => {
                length += bytes.len() as u64;
                each(&bytes);
            }
            Err(StreamError::Closed) => return (length, "ended"),
            Err(StreamError::LastOperationFailed(_)) => return (length, "failed"),
        }
    }
}

fn sleep(ms: u64) {
    wasi::clocks::monotonic_clock::subscribe_duration(ms * 1_000_000).block();
}

/// Returns how many mebibytes of `wanted` there were.
fn take_memory(wanted: u64) -> u64 {
    let mut taken = vec![];
    for number in 0..wanted {
        let mut piece: Vec<u8> = vec![];
        if piece.try_reserve_exact(1 << 20).is_err() {
            return number;
        }
        piece.resize(1 << 20, 7);
        taken.push(piece);
    }
    wanted
}

/// Makes about 110 KiB of headers, and keeps them.
fn leak_headers() {
    let headers = Fields::new();
    for number in 0..100 {
        if headers.append(&format!("x-{number}"), &vec![b'x'; 1024]).is_err() {
            break;
        }
    }
    std::mem::forget(headers);
}

/// Makes a request with some of its body, and keeps it without sending it.
fn leak_request() {
    let request = OutgoingRequest::new(Fields::new());
    if let Ok(body) = request.body()
        && let Ok(stream) = body.write()
    {
        while let Ok(room @ 1..) = stream.check_write() {
            let piece = vec![b'x'; usize::try_from(room.min(65_536)).unwrap_or(0)];
            if stream.write(&piece).is_err() {
                break;
            }
        }
        std::mem::forget((body, stream));
    }
    std::mem::forget(request);
}

fn begin(out: ResponseOutparam, status: u16) -> Option<(OutgoingBody, OutputStream)> {
    let headers = Fields::from_list(&[("content-type".to_owned(), b"text/plain".to_vec())]).ok()?;
    let response = OutgoingResponse::new(headers);
    if response.set_status_code(status).is_err() {
        response.set_status_code(500).ok()?;
    }
    let body = response.body().ok()?;
    ResponseOutparam::set(out, Ok(response));
    let stream = body.write().ok()?;
    Some((body, stream))
}

fn answer(out: ResponseOutparam, status: u16, text: &[u8]) {
    let Some((body, stream)) = begin(out, status) else { return };
    for piece in text.chunks(4096) {
        if stream.blocking_write_and_flush(piece).is_err() {
            return;
        }
    }
    drop(stream);
    let _ = OutgoingBody::finish(body, None);
}

/// Writes `length` bytes, and then `before_the_end`.
fn stream(out: ResponseOutparam, length: u64, before_the_end: impl FnOnce()) {
    let Some((body, stream)) = begin(out, 200) else { return };
    let mut left = length;
    while left > 0 {
        let piece = left.min(4096);
        if stream.blocking_write_and_flush(&vec![b'x'; usize::try_from(piece).unwrap_or(0)]).is_err() {
            println!("the client left");
            return;
        }
        left -= piece;
    }
    before_the_end();
    drop(stream);
    let _ = OutgoingBody::finish(body, None);
}

fn drip(out: ResponseOutparam) {
    let Some((_body, stream)) = begin(out, 200) else { return };
    while stream.blocking_write_and_flush(b"x").is_ok() {
        sleep(10);
    }
}

/// Fetches `http://AUTHORITY/path`, and answers with its status and body, or why there is none.
fn fetch(out: ResponseOutparam, url: &str) {
    let Some(request) = request(&Method::Get, url) else { return answer(out, 400, b"not a URL") };
    answer(out, 200, fetched(outgoing_handler::handle(request, None)).as_bytes());
}

/// Sends some of a body to a URL, and then does what comes before the URL: `end`, `trap`, or wait.
fn upload(out: ResponseOutparam, query: &str) {
    let Some((then, url)) = query.split_once('&') else { return answer(out, 400, b"no URL") };
    let Some(request) = request(&Method::Post, url) else { return answer(out, 400, b"not a URL") };
    let Ok(body) = request.body() else { return };
    let Ok(stream) = body.write() else { return };
    let sent = outgoing_handler::handle(request, None);
    let _ = stream.blocking_write_and_flush(b"some of it");
    println!("some was sent");
    match then {
        "end" => {
            drop(stream);
            let _ = OutgoingBody::finish(body, None);
            answer(out, 200, fetched(sent).as_bytes());
        }
        "trap" => {
            sleep(100);
            std::process::abort();
        }
        _ => sleep(60_000),
    }
}

fn request(method: &Method, url: &str) -> Option<OutgoingRequest> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let request = OutgoingRequest::new(Fields::new());
    let scheme = if scheme == "https" { Scheme::Https } else { Scheme::Http };
    let set = request
        .set_method(method)
        .and_then(|()| request.set_scheme(Some(&scheme)))
        .and_then(|()| request.set_authority(Some(authority)))
        .and_then(|()| request.set_path_with_query(Some(&format!("/{path}"))));
    set.ok().map(|()| request)
}

/// Waits for an answer. Returns its status and body, or why there is none.
fn fetched(sent: Result<FutureIncomingResponse, ErrorCode>) -> String {
    let future = match sent {
        Ok(future) => future,
        Err(code) => return format!("{code:?}"),
    };
    future.subscribe().block();
    match future.get() {
        Some(Ok(Ok(response))) => {
            let mut text = format!("{} ", response.status());
            if let Ok(body) = response.consume()
                && let Ok(stream) = body.stream()
            {
                read_all(&stream, |bytes| text.push_str(&String::from_utf8_lossy(bytes)));
            }
            text
        }
        Some(Ok(Err(code))) => format!("{code:?}"),
        Some(Err(())) | None => "nothing".to_owned(),
    }
}

wasi::http::proxy::export!(Tests);
state_module!(Tests);
