// SPDX-License-Identifier: Apache-2.0
//! Answers HTTP requests on their way from a cache: what a content provider puts close to its users.
//!
//! `GET` without `authorization` or `cookie` is answered from the cache if it is there and fresh. Everything else goes on
//! to the server that it was for. Of clients that ask for the same at a time, one has its request go to the server, and the
//! others get what comes back as it comes. What the server says of its own `max-age` holds; the property `max-age` (seconds)
//! is for answers that say nothing. Words in the answer's `cache-tag` are its tags. What is small and in memory the node answers
//! again by itself, without an instance, also to `HEAD`.
//!
//! `netserv tell example.org/edge-cache --topic purge www.example.org/page.html` takes an answer out of the cache before the next
//! request is answered; `www.example.org/img/*` all whose keys begin so, `#news` all with the tag `news`; several of them, each
//! on a line of its own.
//!
//! The host in a request is the client's word. Where servers of several people are behind the filters, the property `hosts`
//! has to name those whose answers are kept (`www.example.org img.example.org:8080`): otherwise one of these people can
//! put a page of another's into the cache.

use netserv_http_caching::{self as caching, forward, key};
use netserv_server_sdk::cache::{self, Details, Error, Opened, Reader, Scope, Writer};
use netserv_server_sdk::http::{self, Bounds, Fetched, HttpModule, Repeat, Request, Response, Scheme, write_all};
use netserv_server_sdk::wasi::io::streams::OutputStream;
use netserv_server_sdk::{control, counters, http_module, properties};

struct EdgeCache;

impl HttpModule for EdgeCache {
    fn handle(request: Request) -> Response {
        while let Some(message) = control::inbox::receive() {
            purge(&message);
        }
        let cacheable = request.method == "GET"
            && request.header("authorization").is_none()
            && request.header("cookie").is_none()
            && request.header("range").is_none()
            && is_kept(&request.authority, properties::get("hosts").as_deref());
        let Some(key) = key_of(&request).filter(|_| cacheable) else {
            return from_server(request, None);
        };
        match open(&key) {
            Ok(Opened::Reader(reader)) => match from_cache(&reader) {
                Some(response) => {
                    let response = response.with("x-cache", "hit");
                    // What it does not give again by itself comes here.
                    let _ = response.repeat(&request, &reader, &REPEAT);
                    response
                }
                None => from_server(request, None),
            },
            Ok(Opened::Writer(writer)) => from_server(request, Some((key, writer))),
            // Without room for it, or if what others got is nothing to keep.
            Err(_) => from_server(request, None),
        }
    }
}

/// Returns the key of what a request asks for, which is one for all spellings that mean the same.
fn key_of(request: &Request) -> Option<String> {
    let (method, authority, path) = (&*request.method, &*request.authority, &*request.path);
    key::of(&caching::Request { method, scheme: "http", authority, path, headers: &[] })
}

/// Opens an entry. When whoever was to write it gave up, another one does.
fn open(key: &str) -> Result<Opened, Error> {
    let mut opened = cache::open_or_join(key);
    for _ in 0..TRIES_MAX {
        if !matches!(opened, Err(Error::Abandoned)) {
            break;
        }
        opened = cache::open_or_join(key);
    }
    opened
}

/// Takes what the module's user names out of the cache.
fn purge(message: &control::Message) {
    let text = String::from_utf8_lossy(&message.body);
    for line in text.lines().map(str::trim).filter(|_| message.topic == "purge") {
        let gone = match (line.strip_suffix('*'), line.strip_prefix('#')) {
            (Some(prefix), _) => cache::purge(&Scope::Prefix(key::of_text(prefix))),
            (None, Some(tag)) => cache::purge(&Scope::Tag(tag.to_owned())),
            (None, None) => Ok(u64::from(cache::remove(&key::of_text(line)))),
        };
        count("purged", gone.unwrap_or(0));
    }
}

/// Answers with what is in the cache, or on its way there. The node sends it by itself.
fn from_cache(reader: &Reader) -> Option<Response> {
    let stream = reader.body(None).ok()?;
    let entry = reader.entry();
    count("hits", 1);
    let mut response = Response::stream(200, stream, BOUNDS);
    response.headers = headers_of(&entry.details.meta);
    if let Some(size) = entry.size {
        response = response.with("content-length", &size.to_string());
    }
    Some(response.with("age", &entry.age.to_string()))
}

fn from_server(request: Request, writer: Option<(String, Writer)>) -> Response {
    let is_for_all = writer.is_some();
    let goes_on = |name: &str| !(is_of_connection(name) || is_for_all && forward::is_of_one_client(name));
    let headers: Vec<_> = request.headers().iter().filter(|(name, _)| goes_on(name)).cloned().collect();
    // Who joins waits for an instance to see the answer; the rest goes on as long as the server takes.
    let answer = match is_for_all {
        true => http::forward(&Scheme::Http, request, &headers),
        false => http::forward_or_pass(&Scheme::Http, request, &headers),
    };
    let fetched = match answer {
        Ok(fetched) => fetched,
        Err(error) => return Response::text(502, format!("the server does not answer: {error:?}\n")),
    };
    count("misses", 1);
    // Who joined goes to the server, too, if this is nothing to keep.
    let begun =
        writer.filter(|_| fetched.status == 200).and_then(|(key, writer)| Some((key, Fill::begin(writer, &fetched)?)));
    let Some((key, fill)) = begun else {
        let headers = fetched.headers.iter().filter(|(name, _)| !is_of_connection(name)).cloned().collect();
        let mut response = Response::fetched(fetched.status, fetched, BOUNDS);
        response.headers = headers;
        return response.with("x-cache", "miss");
    };
    // Its own client reads as all others do, and the entry becomes whole also if that one goes away.
    let response = match cache::open_or_join(&key) {
        Ok(Opened::Reader(reader)) => from_cache(&reader),
        Ok(Opened::Writer(_)) | Err(_) => None,
    };
    let response = response.unwrap_or_else(|| Response::text(503, "too many want this at a time\n"));
    response.with("x-cache", "miss").then(move || fill.run(fetched))
}

/// An entry that is being written.
struct Fill {
    stream: OutputStream,
    writer: Writer,
}

impl Fill {
    fn begin(writer: Writer, fetched: &Fetched) -> Option<Fill> {
        let text =
            |name| fetched.header(name).map(|value| String::from_utf8_lossy(value).into_owned()).unwrap_or_default();
        let max_age = max_age(&fetched.headers)?;
        // What it depends on besides the target is not in the key; a coding and an origin are so also if it does not say that.
        if ["vary", "set-cookie", "content-encoding"].iter().any(|name| fetched.header(name).is_some())
            || fetched.header("access-control-allow-origin").is_some_and(|origin| origin != b"*")
        {
            return None;
        }
        let tags = text("cache-tag").split([',', ' ']).filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
        let meta = meta_of(&fetched.headers);
        let details = Details { content_type: text("content-type"), etag: text("etag"), max_age, meta, tags };
        let stream = writer.begin(&details, text("content-length").parse().ok()).ok()?;
        Some(Fill { stream, writer })
    }

    /// Writes what comes from the server. Who reads it fails if that does.
    fn run(self, mut fetched: Fetched) {
        while let Ok(chunk) = fetched.chunk() {
            let Some(bytes) = chunk else {
                drop(self.stream);
                let _ = Writer::finish(self.writer);
                return;
            };
            if write_all(&self.stream, &bytes).is_err() {
                return;
            }
        }
    }
}

/// Returns headers as they are kept beside a body.
fn meta_of(headers: &[(String, Vec<u8>)]) -> Vec<u8> {
    let kept = headers.iter().filter(|(name, _)| !is_of_connection(name) && !is_own(name));
    kept.flat_map(|(name, value)| [name.as_bytes(), b": ", value, b"\n"].concat()).collect()
}

fn headers_of(meta: &[u8]) -> Vec<(String, Vec<u8>)> {
    let lines = meta.split(|byte| *byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((String::from_utf8_lossy(&line[..colon]).into_owned(), line.get(colon + 2..)?.to_vec()))
    });
    lines.collect()
}

/// Returns whether a header is what this module says of an answer.
fn is_own(name: &str) -> bool {
    ["age", "content-length", "x-cache"].iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// Returns for how many seconds an answer may be kept; nothing if it may not.
///
/// What it says counts, `s-maxage` before `max-age` and in whichever of its lines (RFC 9111 §5.2.2.10), and its `age` is over
/// already.
fn max_age(headers: &[(String, Vec<u8>)]) -> Option<u64> {
    let all = |wanted: &str| {
        let lines = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        lines.map(|(_, value)| String::from_utf8_lossy(value).to_ascii_lowercase()).collect::<Vec<_>>()
    };
    let (mut said, mut said_for_all) = (None, None);
    for part in all("cache-control").join(",").split(',').map(str::trim) {
        match part.split_once('=').unwrap_or((part, "")) {
            ("no-store" | "no-cache" | "private", _) => return None,
            // Of several, the first one counts (RFC 9111 §4.2.1).
            ("max-age", seconds) if said.is_none() => said = Some(seconds.parse::<u64>().ok()?),
            ("s-maxage", seconds) if said_for_all.is_none() => said_for_all = Some(seconds.parse::<u64>().ok()?),
            _ => {}
        }
    }
    let says_otherwise = ["expires", "pragma"].iter().any(|name| !all(name).is_empty());
    let default =
        || properties::get("max-age").filter(|_| !says_otherwise).and_then(|text| text.parse().ok()).unwrap_or(0);
    let age = match all("age").first() {
        Some(age) => age.trim().parse().ok()?,
        None => 0,
    };
    let lifetime: u64 = said_for_all.or(said).unwrap_or_else(default);
    lifetime.checked_sub(age).filter(|seconds| *seconds > 0)
}

/// Returns whether answers of a host are kept: of all of them, unless there is a list.
fn is_kept(host: &str, hosts: Option<&str>) -> bool {
    hosts.is_none_or(|hosts| hosts.split_whitespace().any(|kept| kept.eq_ignore_ascii_case(host)))
}

/// Returns whether a header is about one connection only (RFC 9110 §7.6.1) or the node's own to set.
fn is_of_connection(name: &str) -> bool {
    ["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "host"]
        .iter()
        .any(|own| name.eq_ignore_ascii_case(own))
}

fn count(name: &str, amount: u64) {
    // A counter over its quota costs nothing but the count.
    let _ = counters::add(name, amount);
}

/// How often an entry is tried to be opened whose writer gave up.
const TRIES_MAX: u32 = 3;
/// What [`EdgeCache::handle`] answers from the cache, but for what the node leaves to it in any case.
const REPEAT: Repeat<'_> = Repeat { unless: &["cookie"], for_ms: 0, counter: "hits" };
/// The node's own bounds hold.
const BOUNDS: Bounds = Bounds { idle_ms: 0, total_ms: 0, least_rate: 0 };

http_module!(EdgeCache);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_kept_is_known() {
        let of = |lines: &[(&str, &str)]| {
            let lines = lines.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
            max_age(&lines.collect::<Vec<_>>())
        };
        let control = |value| of(&[("Cache-Control", value)]);
        assert_eq!(control("public, max-age=30"), Some(30));
        for not in [
            "max-age=0",
            "max-age=60, no-store",
            "private",
            "max-age=soon",
            "s-maxage=0, max-age=60",
            "MAX-AGE=9, Private",
        ] {
            assert_eq!(control(not), None, "{not}");
        }
        assert_eq!(control("max-age=60, s-maxage=5"), Some(5));
        assert_eq!(control("s-maxage=5, max-age=60"), Some(5));
        assert_eq!(control("max-age=1, max-age=60"), Some(1));
        assert_eq!(of(&[("cache-control", "max-age=60"), ("cache-control", "private")]), None, "each line counts");
        assert_eq!(of(&[("cache-control", "max-age=60"), ("age", "50")]), Some(10));
        assert_eq!(of(&[("cache-control", "max-age=60"), ("age", "60")]), None, "it is stale already");
        assert_eq!(of(&[("cache-control", "max-age=60"), ("age", "old")]), None);
    }

    #[test]
    fn headers_are_kept_but_for_those_of_the_connection() {
        let all = [("content-type", "a: b"), ("Age", "3"), ("connection", "close"), ("x-empty", "")];
        let all: Vec<_> = all.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec())).into();
        assert_eq!(headers_of(&meta_of(&all)), [all[0].clone(), all[3].clone()]);
        assert!(headers_of(b"no colon\n:\n").is_empty());
    }

    #[test]
    fn hosts_are_kept_as_the_property_says() {
        assert!(is_kept("a.example", None) && is_kept("A.example", Some("b.example:81 a.example")));
        assert!(!is_kept("a.example:81", Some("b.example:81 a.example")) && !is_kept("a.example", Some("")));
    }
}
