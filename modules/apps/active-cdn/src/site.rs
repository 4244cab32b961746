// SPDX-License-Identifier: Apache-2.0
//! Where a request's answer comes from, and what the provider wants of the cache.

use std::cell::OnceCell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use netserv_http_caching as caching;
use netserv_http_caching::Policy;
use netserv_server_sdk::http::{Request, Scheme};
use netserv_server_sdk::{connection, node, properties};

use crate::process::rules::{self, Plan};
use crate::{stall, usage};

/// One request's target, by itself: the request may be gone while it is filled for others.
pub struct Site {
    /// What the provider decides.
    pub policy: Policy,
    /// How the origin is asked.
    pub scheme: Scheme,
    /// Whom the request goes to.
    pub authority: String,
    /// Of a request on its way to somebody else, to whom its connection goes: a viewer can name any host there.
    server: Option<String>,
    /// Whether responses of this authority are stored.
    pub is_kept: bool,
    /// What is made of the response.
    pub plan: Option<Plan>,
    /// What its counters have behind their names.
    pub label: String,
    /// Whether the request may wait for the origin, once that was looked at.
    may_ask: OnceCell<bool>,
    method: String,
    path: String,
    headers: Vec<(String, Vec<u8>)>,
}

impl Site {
    /// Returns where a request goes; nothing if it was opened to the module itself, and no origin is named.
    pub fn of(request: &Request) -> Option<Site> {
        let ends = connection::request();
        let origin = properties::get("origin").filter(|origin| !origin.is_empty());
        let (scheme, authority) = match origin {
            // On its way to somebody else, it is for whom it says.
            _ if ends.as_ref().is_some_and(|ends| ends.intercepted) => {
                let scheme = if ends.is_some_and(|ends| ends.tls) { Scheme::Https } else { Scheme::Http };
                (scheme, request.authority.clone())
            }
            Some(origin) => parse_origin(&origin),
            None => return None,
        };
        let (path, plan) = match rules::plan(&request.method, &request.path) {
            Some((path, plan)) => (path, Some(plan)),
            None => (request.path.clone(), None),
        };
        let mut headers = request.headers().to_vec();
        if plan.is_some() {
            // What is made changes without its original.
            headers.retain(|(name, _)| !name.eq_ignore_ascii_case("if-modified-since"));
        }
        let server = connection::request().filter(|ends| ends.intercepted).map(|ends| server_of(&ends));
        let site = Site::at(scheme, authority, request.method.clone(), path, headers);
        Some(Site { plan, server, ..site })
    }

    /// Returns what a URL names, `host/path` or a path of the origin's, as a request without headers asks for it.
    pub fn of_target(text: &str) -> Option<Site> {
        let origin = properties::get("origin").filter(|origin| !origin.is_empty()).map(|origin| parse_origin(&origin));
        let (scheme, authority, path) = parse_target(text, origin)?;
        Some(Site::at(scheme, authority, "GET".to_owned(), path, Vec::new()))
    }

    fn at(scheme: Scheme, authority: String, method: String, path: String, headers: Vec<(String, Vec<u8>)>) -> Site {
        let hosts = usage::hosts();
        let is_kept = is_kept(&authority, hosts.as_deref());
        let label = usage::label(&authority, hosts.as_deref());
        let (plan, may_ask) = (None, OnceCell::new());
        Site { policy: policy(), scheme, server: None, is_kept, label, authority, plan, may_ask, method, path, headers }
    }

    /// Returns whether the request was on its way to somebody else.
    pub fn is_taken_over(&self) -> bool {
        self.server.is_some()
    }

    /// Returns the key of what the request asks for; nothing if it has none. What servers said on connections that were taken over is
    /// theirs alone, and beside the rest as a variant is.
    pub fn key(&self) -> Option<String> {
        let key = self.own_key()?;
        Some(match &self.server {
            Some(server) => format!("{key}\n@{server}"),
            None => key,
        })
    }

    /// Returns the key of what the module fetched by itself from the host that the request names; nothing if that is what
    /// [`Site::key`] is.
    pub fn fetched_key(&self) -> Option<String> {
        self.server.as_ref().and_then(|_| self.own_key())
    }

    fn own_key(&self) -> Option<String> {
        caching::key::of(&self.request())
    }

    /// Returns the request as decisions take it.
    pub fn request(&self) -> caching::Request<'_> {
        let scheme = if matches!(self.scheme, Scheme::Https) { "https" } else { "http" };
        caching::Request {
            method: &self.method,
            scheme,
            authority: &self.authority,
            path: &self.path,
            headers: &self.headers,
        }
    }

    /// Returns whether the request may wait for the origin: not while that stands still.
    pub fn may_ask(&self) -> bool {
        *self.may_ask.get_or_init(|| stall::may_ask(&self.label))
    }

    /// Returns the same request for the whole body.
    pub fn get(&self) -> caching::Request<'_> {
        caching::Request { method: "GET", ..self.request() }
    }
}

/// Returns the time since 1970.
pub fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn server_of(ends: &connection::Ends) -> String {
    let connection::Address { ip, port } = &ends.server;
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}

/// Reads an origin, `https://host:port` or `host:port`.
fn parse_origin(text: &str) -> (Scheme, String) {
    let (scheme, rest) = match text.split_once("://") {
        Some(("https", rest)) => (Scheme::Https, rest),
        Some((_, rest)) => (Scheme::Http, rest),
        None => (Scheme::Http, text),
    };
    (scheme, rest.trim_end_matches('/').to_ascii_lowercase())
}

/// Reads what is to be fetched: a URL, or as keys have it, whose host the origin's scheme is for.
fn parse_target(text: &str, origin: Option<(Scheme, String)>) -> Option<(Scheme, String, String)> {
    if text.starts_with('/') {
        let (scheme, authority) = origin?;
        return Some((scheme, authority, text.to_owned()));
    }
    let (said, rest) = match text.split_once("://") {
        Some(("https", rest)) => (Some(Scheme::Https), rest),
        Some(("http", rest)) => (Some(Scheme::Http), rest),
        Some(_) => return None,
        None => (None, text),
    };
    let end = rest.find('/').unwrap_or(rest.len());
    let authority = rest[..end].to_ascii_lowercase();
    let path = if end == rest.len() { "/" } else { &rest[end..] };
    let of_origin = origin.filter(|(_, own)| *own == authority).map(|(scheme, _)| scheme);
    Some((said.or(of_origin).unwrap_or(Scheme::Http), authority, path.to_owned()))
}

fn policy() -> Policy {
    let seconds = |name: &str| {
        let said = properties::get(name).and_then(|text| text.parse().ok());
        Duration::from_secs(said.unwrap_or(0))
    };
    let id = node::id();
    Policy {
        name: if id.is_empty() { "netserv".to_owned() } else { id },
        surrogate: Some("netserv".to_owned()),
        lifetime: seconds("max-age"),
        lifetime_of_errors: seconds("negative-max-age"),
        stale_if_error: seconds("stale-if-error"),
    }
}

/// Returns whether responses of a host are stored: of all of them, unless there is a list.
fn is_kept(host: &str, hosts: Option<&str>) -> bool {
    hosts.is_none_or(|hosts| hosts.split_whitespace().any(|kept| kept.eq_ignore_ascii_case(host)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_read() {
        let read = |text| {
            let (scheme, authority) = parse_origin(text);
            (matches!(scheme, Scheme::Https), authority)
        };
        assert_eq!(read("www.Example.org"), (false, "www.example.org".to_owned()));
        assert_eq!(read("http://a:8080/"), (false, "a:8080".to_owned()));
        assert_eq!(read("https://a"), (true, "a".to_owned()));
    }

    #[test]
    fn what_is_to_be_fetched_is_read() {
        let read = |text| {
            let (scheme, authority, path) = parse_target(text, Some((Scheme::Https, "a:8080".to_owned())))?;
            Some((matches!(scheme, Scheme::Https), authority, path))
        };
        let target = |is_secure, authority: &str, path: &str| Some((is_secure, authority.to_owned(), path.to_owned()));
        assert_eq!(read("/b?c"), target(true, "a:8080", "/b?c"));
        assert_eq!(read("A:8080/b"), target(true, "a:8080", "/b"));
        assert_eq!(read("http://A:8080/b"), target(false, "a:8080", "/b"));
        assert_eq!(read("d.example"), target(false, "d.example", "/"));
        assert_eq!(read("https://d.example/x/"), target(true, "d.example", "/x/"));
        assert_eq!(read("ftp://d.example/x"), None);
        assert!(parse_target("/b", None).is_none());
    }

    #[test]
    fn hosts_are_kept_as_the_property_says() {
        assert!(is_kept("a.example", None) && is_kept("A.example", Some("b.example:81 a.example")));
        assert!(!is_kept("a.example:81", Some("b.example:81 a.example")));
    }
}
