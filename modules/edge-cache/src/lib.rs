// SPDX-License-Identifier: Apache-2.0
//! Answers HTTP requests on their way from a cache: what a content provider puts close to its users.
//!
//! `GET` without `authorization` or `cookie` is answered from the cache if it is there and fresh. Everything else goes on
//! to the server that it was for. What the server says of its own `max-age` holds; the property `max-age` (seconds) is for
//! answers that say nothing.
//!
//! `netserv tell example.org/edge-cache --topic purge www.example.org/page.html` takes an answer out of the cache before the next
//! request is answered; several of them, each on a line of its own.
//!
//! The host in a request is the client's word. Where servers of several people are behind the filters, the property `hosts`
//! has to name those whose answers are kept (`www.example.org img.example.org:8080`): otherwise one of these people can
//! put a page of another's into the cache.

use netserv_server_sdk::cache::{self, Entry, Writer};
use netserv_server_sdk::http::{Fetched, HttpModule, Request, Response, Scheme, forward, read, write_all};
use netserv_server_sdk::{control, counters, http_module, properties};

struct EdgeCache;

impl HttpModule for EdgeCache {
    fn handle(request: Request) -> Response {
        while let Some(message) = control::inbox::receive() {
            purge(&message);
        }
        let key = format!("{}{}", request.authority, request.path);
        let cacheable = request.method == "GET"
            && request.header("authorization").is_none()
            && request.header("cookie").is_none()
            && request.header("range").is_none()
            && is_kept(&request.authority, properties::get("hosts").as_deref());
        if cacheable && let Some(response) = from_cache(&key) {
            return response;
        }
        from_server(request, cacheable.then_some(key))
    }
}

/// Takes what the module's user names out of the cache.
fn purge(message: &control::Message) {
    let text = String::from_utf8_lossy(&message.body);
    for key in text.lines().map(str::trim).filter(|_| message.topic == "purge") {
        if cache::remove(key) {
            count("purged");
        }
    }
}

fn from_cache(key: &str) -> Option<Response> {
    let (entry, stream) = cache::get(key, None).ok()??;
    if entry.age >= entry.max_age {
        return None;
    }
    count("hits");
    let length = entry.size.to_string();
    let response = Response::chunks(200, move || read(&stream));
    Some(head(response, &entry).with("content-length", &length).with("x-cache", "hit"))
}

fn head(response: Response, entry: &Entry) -> Response {
    let mut response = response.with("age", &entry.age.to_string());
    for (name, value) in [("content-type", &entry.content_type), ("etag", &entry.etag)] {
        if !value.is_empty() {
            response = response.with(name, value);
        }
    }
    response
}

fn from_server(request: Request, key: Option<String>) -> Response {
    let headers: Vec<_> = request.headers().iter().filter(|(name, _)| !is_of_connection(name)).cloned().collect();
    let fetched = match forward(&Scheme::Http, request, &headers) {
        Ok(fetched) => fetched,
        Err(error) => return Response::text(502, format!("the server does not answer: {error:?}\n")),
    };
    count("misses");
    let writer = key.filter(|_| fetched.status == 200).and_then(|key| begin(&key, &fetched));
    let headers = fetched.headers.iter().filter(|(name, _)| !is_of_connection(name)).cloned().collect();
    let mut response = pass_on(fetched, writer);
    response.headers = headers;
    response.with("x-cache", "miss")
}

/// Hands the body on while it is put into the cache, where it shows up when it is whole.
fn pass_on(mut fetched: Fetched, writer: Option<Writer>) -> Response {
    let mut into = writer.and_then(|writer| Some((writer.body().ok()?, writer)));
    Response::chunks(fetched.status, move || {
        let chunk = fetched.chunk()?;
        match &chunk {
            Some(bytes) => {
                if let Some((stream, _)) = &into
                    && write_all(stream, bytes).is_err()
                {
                    into = None;
                }
            }
            None => {
                if let Some((stream, writer)) = into.take() {
                    drop(stream);
                    let _ = Writer::finish(writer);
                }
            }
        }
        Ok(chunk)
    })
}

fn begin(key: &str, fetched: &Fetched) -> Option<Writer> {
    let text = |name| fetched.header(name).map(|value| String::from_utf8_lossy(value).into_owned()).unwrap_or_default();
    let max_age = max_age(&text("cache-control").to_ascii_lowercase())?;
    if fetched.header("vary").is_some() || fetched.header("set-cookie").is_some() {
        return None;
    }
    cache::put(key, &text("content-type"), &text("etag"), max_age).ok()
}

/// Returns for how many seconds an answer may be kept; nothing if it may not.
fn max_age(control: &str) -> Option<u64> {
    let mut age = None;
    for part in control.split(',').map(str::trim) {
        match part.split_once('=').unwrap_or((part, "")) {
            ("no-store" | "no-cache" | "private", _) => return None,
            ("max-age" | "s-maxage", seconds) => age = Some(seconds.parse().ok()?),
            _ => {}
        }
    }
    let default = || properties::get("max-age").and_then(|text| text.parse().ok()).unwrap_or(0);
    Some(age.unwrap_or_else(default)).filter(|seconds| *seconds > 0)
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

fn count(name: &str) {
    // A counter over its quota costs nothing but the count.
    let _ = counters::add(name, 1);
}

http_module!(EdgeCache);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_kept_is_known() {
        assert_eq!(max_age("public, max-age=30"), Some(30));
        assert_eq!(max_age("max-age=0"), None);
        assert_eq!(max_age("max-age=60, no-store"), None);
        assert_eq!(max_age("private"), None);
        assert_eq!(max_age("max-age=soon"), None);
    }

    #[test]
    fn hosts_are_kept_as_the_property_says() {
        assert!(is_kept("a.example", None) && is_kept("A.example", Some("b.example:81 a.example")));
        assert!(!is_kept("a.example:81", Some("b.example:81 a.example")) && !is_kept("a.example", Some("")));
    }
}
