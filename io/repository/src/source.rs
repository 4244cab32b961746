// SPDX-License-Identifier: Apache-2.0
//! From where packages may come, and how they are had from there.

use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use netserv_model::{Refusal, RefusalKind, limits};
use ureq::Body;
use ureq::http::header::{ACCEPT, AUTHORIZATION, ETAG, HeaderName, IF_NONE_MATCH, LOCATION, WWW_AUTHENTICATE};
use ureq::http::{Response, StatusCode, Uri};
use ureq::tls::TlsConfig;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

use crate::limits::{REDIRECTS_MAX, URL_BYTES_MAX};
use crate::room::not_kept;

/// Bytes that are read at once.
const PIECE_BYTES: usize = 64 * 1024;

/// From where packages may come; set by the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// Whether `https:` URLs are fetched, and `oci:` URLs by it.
    pub https: bool,
    /// Whether `http:` URLs are fetched, and `oci:` URLs by it if `https` does not answer; digest and signature protect the content all the same.
    pub http: bool,
    /// Hosts that may be asked: `cp.example`, `cp.example:8080`, or `*.cp.example` for every host below; `None` means
    /// every host. An entry without a port allows every port.
    pub hosts: Option<Vec<String>>,
    /// Whether hosts that `hosts` lists are also asked at addresses of this node or of one link. They are otherwise
    /// refused, and the refusal is the same whoever listens there.
    pub own_addresses: bool,
    /// Folders under which `file:` URLs may point; none means no `file:` URLs.
    pub file_roots: Vec<PathBuf>,
    /// Hosts that states of modules may be written to, as in `hosts`; none means that nothing is written
    /// anywhere.
    pub put_hosts: Vec<String>,
}

impl Default for Sources {
    fn default() -> Sources {
        Sources {
            https: true,
            http: false,
            hosts: None,
            own_addresses: false,
            file_roots: Vec::new(),
            put_hosts: Vec::new(),
        }
    }
}

/// Tells which addresses are the node's own, beside those that are every machine's own, such as loopback.
#[derive(Clone)]
pub struct IsOwn(Arc<dyn Fn(IpAddr) -> bool + Send + Sync>);

impl IsOwn {
    /// Asks this function, before each connection.
    pub fn new(is_own: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> IsOwn {
        IsOwn(Arc::new(is_own))
    }
}

impl Default for IsOwn {
    /// Knows of no further address.
    fn default() -> IsOwn {
        IsOwn::new(|_| false)
    }
}

impl fmt::Debug for IsOwn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("IsOwn")
    }
}

/// What one fetch may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Time in all, with name lookup, connections and redirects.
    pub time: Duration,
    /// Bytes of the package.
    pub bytes: u64,
    /// Redirects followed.
    pub redirects: u32,
}

impl Default for FetchLimits {
    fn default() -> FetchLimits {
        FetchLimits { time: limits::FETCH_TIME_MAX, bytes: limits::PACKAGE_BYTES_MAX, redirects: REDIRECTS_MAX }
    }
}

/// Fetches by URL.
#[derive(Debug)]
pub(crate) struct Fetcher {
    pub(crate) agent: ureq::Agent,
    pub(crate) sources: Sources,
}

impl Fetcher {
    pub(crate) fn new(sources: Sources, is_own: IsOwn) -> Fetcher {
        Fetcher::with_tls(sources, is_own, TlsConfig::default())
    }

    /// Returns one that also asks addresses of the node's own and of its link.
    pub(crate) fn everywhere(sources: Sources) -> Fetcher {
        Fetcher::with(sources, None, TlsConfig::default())
    }

    /// Returns one that believes servers by other rules.
    pub(crate) fn with_tls(sources: Sources, is_own: IsOwn, tls: TlsConfig) -> Fetcher {
        let is_own = (!sources.own_addresses || sources.hosts.is_none()).then_some(is_own);
        Fetcher::with(sources, is_own, tls)
    }

    fn with(sources: Sources, is_own: Option<IsOwn>, tls: TlsConfig) -> Fetcher {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .max_idle_connections(0)
            .tls_config(tls)
            .user_agent(concat!("netserv/", env!("CARGO_PKG_VERSION")));
        let resolver = Elsewhere { is_own, names: DefaultResolver::default() };
        Fetcher { agent: ureq::Agent::with_parts(config.build(), DefaultConnector::default(), resolver), sources }
    }

    /// Writes what is at a URL of `file`, `http` or `https`. Every hop is checked against the operator's list.
    pub(crate) fn get(
        &self,
        url: &str,
        deadline: Instant,
        limits: &FetchLimits,
        out: &mut dyn Write,
    ) -> Result<(), Refusal> {
        if let Some(path) = url.strip_prefix("file://") {
            return self.read_file(path.strip_prefix("localhost").unwrap_or(path), limits, out);
        }
        let ask = Ask { uri: parse(url)?, accept: None, authorization: None, if_none_match: None };
        let answered = self.follow(ask, deadline, limits, out)?;
        match answered.status {
            200..=299 => Ok(()),
            _ => Err(failed(format!("the server answered {}", answered.line))),
        }
    }

    /// Returns the schemes that may be fetched over the network, the safer one first.
    pub(crate) fn schemes(&self) -> Vec<&'static str> {
        let schemes = [(self.sources.https, "https"), (self.sources.http, "http")];
        schemes.into_iter().filter_map(|(allowed, scheme)| allowed.then_some(scheme)).collect()
    }

    /// Asks a server, and follows where it leads. Every hop is checked against the operator's list.
    /// The body of a success is written.
    pub(crate) fn follow(
        &self,
        ask: Ask<'_>,
        deadline: Instant,
        limits: &FetchLimits,
        out: &mut dyn Write,
    ) -> Result<Answered, Refusal> {
        let mut ask = ask;
        for _ in 0..=limits.redirects {
            self.check(&ask.uri)?;
            match self.hop(&ask, deadline, limits, out)? {
                Hop::Answer(answered) => return Ok(answered),
                Hop::Redirect(next) => {
                    // What a server asked for is not for the next one to see.
                    let same = next.authority() == ask.uri.authority() && next.scheme() == ask.uri.scheme();
                    ask = Ask { uri: next, authorization: ask.authorization.filter(|_| same), ..ask };
                }
            }
        }
        Err(failed(format!("more than {} redirects", limits.redirects)))
    }

    /// Returns the host and the port that are to be asked.
    ///
    /// # Errors
    /// A refusal of kind `bad-url`: the operator does not let the node ask them.
    pub(crate) fn check(&self, uri: &Uri) -> Result<(String, u16), Refusal> {
        let scheme = uri.scheme_str().unwrap_or_default();
        let allowed = match scheme {
            "https" => self.sources.https,
            "http" => self.sources.http,
            _ => false,
        };
        if !allowed {
            return Err(bad_url(format!("the node does not fetch `{scheme}:`")));
        }
        let authority = uri.authority().ok_or_else(|| bad_url("no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad_url("a user name or password in the URL"));
        }
        let (host, port) = (authority.host().to_ascii_lowercase(), authority.port_u16());
        let port = port.unwrap_or(if scheme == "https" { 443 } else { 80 });
        let listed = |hosts: &Vec<String>| hosts.iter().any(|pattern| host_matches(pattern, &host, port));
        if self.sources.hosts.as_ref().is_none_or(listed) {
            Ok((host, port))
        } else {
            Err(bad_url(format!("the node does not ask host `{host}` on port {port}")))
        }
    }

    fn hop(&self, ask: &Ask<'_>, deadline: Instant, limits: &FetchLimits, out: &mut dyn Write) -> Result<Hop, Refusal> {
        take(&ask.uri, self.call(ask, deadline).map_err(|error| explain(&error, limits))?, limits, out)
    }

    /// Asks a server; the body of its answer is still to be read.
    pub(crate) fn call(&self, ask: &Ask<'_>, deadline: Instant) -> Result<Response<Body>, ureq::Error> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ureq::Error::Timeout(ureq::Timeout::Global));
        }
        let mut request = self.agent.get(ask.uri.clone()).config().timeout_global(Some(left)).build();
        let headers = [(ACCEPT, ask.accept), (AUTHORIZATION, ask.authorization), (IF_NONE_MATCH, ask.if_none_match)];
        for (name, value) in headers {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        request.call()
    }

    fn read_file(&self, path: &str, limits: &FetchLimits, out: &mut dyn Write) -> Result<(), Refusal> {
        if self.sources.file_roots.is_empty() {
            return Err(bad_url("the node does not fetch `file:`"));
        }
        let path = PathBuf::from(percent_decode(path).ok_or_else(|| bad_url("a broken path"))?);
        if !path.is_absolute() {
            return Err(bad_url("write file:///absolute/path"));
        }
        let outside = || bad_url(format!("{} is outside the folders that the node reads", path.display()));
        let roots = &self.sources.file_roots;
        let roots: Vec<PathBuf> =
            roots.iter().flat_map(|root| [Some(root.clone()), root.canonicalize().ok()]).flatten().collect();
        let inside = |path: &Path| roots.iter().any(|root| path.starts_with(root));
        // Before the file system is asked: nobody may learn which files there are elsewhere.
        if !inside(&path) || path.components().any(|part| part == Component::ParentDir) {
            return Err(outside());
        }
        let found = path.canonicalize().map_err(|error| failed(format!("{}: {error}", path.display())))?;
        if !inside(&found) {
            return Err(outside());
        }
        read_regular(&found, limits, out)
    }
}

/// Reads what a server at a URL answered. The body of a success is written.
pub(crate) fn take(
    uri: &Uri,
    response: Response<Body>,
    limits: &FetchLimits,
    out: &mut dyn Write,
) -> Result<Hop, Refusal> {
    let status = response.status();
    let header = |name: HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok());
    if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
        return resolve(uri, header(LOCATION).ok_or_else(|| failed(format!("{status} without a location")))?)
            .map(Hop::Redirect);
    }
    let (challenge, etag) = (challenges(&response), header(ETAG).map(str::to_owned));
    let answered = Answered { status: status.as_u16(), line: status.to_string(), challenge, etag };
    if !status.is_success() {
        return Ok(Hop::Answer(answered));
    }
    if response.body().content_length().is_some_and(|bytes| bytes > limits.bytes) {
        return Err(too_large(limits));
    }
    copy(&mut response.into_body().into_reader(), limits, out, |error| match error.downcast::<ureq::Error>() {
        Ok(error) => explain(&error, limits),
        Err(error) => failed(format!("the download broke off: {error}")),
    })?;
    Ok(Hop::Answer(answered))
}

/// Returns what a server wants to be asked with, of however many lines.
pub(crate) fn challenges(response: &Response<Body>) -> Option<String> {
    let lines = response.headers().get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    lines.map(str::to_owned).reduce(|all, line| format!("{all}, {line}"))
}

/// Looks names up, and leaves out addresses that a stranger's URL must not lead to unless the operator allows it: those of
/// this node, and those of its link, of which a cloud's metadata service is one.
///
/// It is asked for every connection, which then goes to one of the addresses that are left: so neither a name that changes
/// its address nor a redirect leads around it.
#[derive(Debug)]
struct Elsewhere {
    /// `None` if every address is allowed.
    is_own: Option<IsOwn>,
    names: DefaultResolver,
}

impl Resolver for Elsewhere {
    fn resolve(
        &self,
        uri: &Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.names.resolve(uri, config, timeout)?;
        let Some(IsOwn(is_own)) = &self.is_own else { return Ok(found) };
        let mut kept = self.empty();
        // A mapped address is asked as the IPv4 address in it.
        let elsewhere = |address: IpAddr| is_beyond_one_link(address.to_canonical()) && !is_own(address.to_canonical());
        for address in found.iter().filter(|address| elsewhere(address.ip())) {
            kept.push(*address);
        }
        if kept.is_empty() {
            return Err(ureq::Error::Other(Box::new(OnlyHere { host: uri.host().unwrap_or_default().to_owned() })));
        }
        Ok(kept)
    }
}

/// A host has no other addresses than those of this node or of one link.
#[derive(Debug, thiserror::Error)]
#[error("`{host}` is at an address of the node itself or of its link, which it does not ask (`fetch.own-addresses`)")]
struct OnlyHere {
    host: String,
}

fn is_beyond_one_link(address: IpAddr) -> bool {
    let near = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast() || v4.octets()[0] == 0,
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    !near && !address.is_loopback() && !address.is_multicast() && !address.is_unspecified()
}

/// What a server is asked.
#[derive(Clone, Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) uri: Uri,
    /// The types of content that are understood.
    pub(crate) accept: Option<&'a str>,
    /// What proves who asks.
    pub(crate) authorization: Option<&'a str>,
    /// The version that is not to be sent again.
    pub(crate) if_none_match: Option<&'a str>,
}

/// What a server answered.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    /// The status in words.
    pub(crate) line: String,
    /// What the server wants to be asked with.
    pub(crate) challenge: Option<String>,
    /// What it calls this version of what it gives.
    pub(crate) etag: Option<String>,
}

/// What a server says.
pub(crate) enum Hop {
    Answer(Answered),
    Redirect(Uri),
}

/// Reads a plain file; anything else might never end, or never begin.
fn read_regular(path: &Path, limits: &FetchLimits, out: &mut dyn Write) -> Result<(), Refusal> {
    let io = |error: std::io::Error| failed(format!("{}: {error}", path.display()));
    let metadata = path.metadata().map_err(io)?;
    if !metadata.is_file() {
        return Err(failed(format!("{} is not a plain file", path.display())));
    }
    if metadata.len() > limits.bytes {
        return Err(too_large(limits));
    }
    copy(&mut File::open(path).map_err(io)?, limits, out, io)
}

/// Writes what comes, if it is no more than the limits let.
fn copy(
    from: &mut dyn Read,
    limits: &FetchLimits,
    out: &mut dyn Write,
    not_read: impl Fn(std::io::Error) -> Refusal,
) -> Result<(), Refusal> {
    let (mut piece, mut left) = (vec![0; PIECE_BYTES], limits.bytes);
    loop {
        let length = match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(not_read(error)),
        };
        left = left.checked_sub(u64::try_from(length).unwrap_or(u64::MAX)).ok_or_else(|| too_large(limits))?;
        out.write_all(&piece[..length]).map_err(|error| not_kept(&error))?;
    }
}

pub(crate) fn parse(url: &str) -> Result<Uri, Refusal> {
    url.parse().map_err(|error| bad_url(format!("`{}`: {error}", url.chars().take(100).collect::<String>())))
}

/// Resolves a redirect: another URL, another host, another path, or a path beside the present one.
fn resolve(base: &Uri, location: &str) -> Result<Uri, Refusal> {
    if location.len() > URL_BYTES_MAX {
        return Err(bad_url(format!("a redirect to {} bytes", location.len())));
    }
    let location = location.split('#').next().unwrap_or_default();
    let scheme = base.scheme_str().unwrap_or_default();
    let authority = base.authority().map(ToString::to_string).unwrap_or_default();
    if location.contains("://") {
        return parse(location);
    }
    if location.starts_with("//") {
        return parse(&format!("{scheme}:{location}"));
    }
    if location.starts_with('/') {
        return parse(&format!("{scheme}://{authority}{location}"));
    }
    let folder = base.path().rsplit_once('/').map(|(folder, _)| folder).unwrap_or_default();
    parse(&format!("{scheme}://{authority}{folder}/{location}"))
}

pub(crate) fn host_matches(pattern: &str, host: &str, port: u16) -> bool {
    let pattern = pattern.to_ascii_lowercase();
    // What follows the last colon is a port, except inside the brackets of an IPv6 address.
    let (name, wanted) = match pattern.rsplit_once(':') {
        Some((name, digits)) if !digits.contains(']') => (name, Some(digits)),
        Some(_) | None => (pattern.as_str(), None),
    };
    let port_fits = wanted.is_none_or(|digits| digits.parse() == Ok(port));
    let name_fits = match name.strip_prefix("*.") {
        Some(domain) => host.strip_suffix(domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        None => host == name,
    };
    port_fits && name_fits
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (high, low) = (char::from(rest.next()?).to_digit(16)?, char::from(rest.next()?).to_digit(16)?);
        bytes.push(u8::try_from(high << 4 | low).ok()?);
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

pub(crate) fn explain(error: &ureq::Error, limits: &FetchLimits) -> Refusal {
    if matches!(error, ureq::Error::Timeout(_)) {
        return too_slow(limits);
    }
    if let ureq::Error::Other(other) = error
        && other.is::<OnlyHere>()
    {
        return bad_url(other.to_string());
    }
    failed(error.to_string())
}

pub(crate) fn too_slow(limits: &FetchLimits) -> Refusal {
    failed(format!("not done within {} s", limits.time.as_secs_f64()))
}

fn too_large(limits: &FetchLimits) -> Refusal {
    Refusal::new(RefusalKind::PackageTooLarge, format!("more than {} bytes", limits.bytes))
}

pub(crate) fn failed(detail: impl AsRef<str>) -> Refusal {
    Refusal::new(RefusalKind::FetchFailed, detail)
}

pub(crate) fn bad_url(detail: impl AsRef<str>) -> Refusal {
    Refusal::new(RefusalKind::BadUrl, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_patterns_match_what_they_say() {
        for (pattern, host, port, expected) in [
            ("cp.example", "cp.example", 443, true),
            ("CP.example", "cp.example", 8080, true),
            ("cp.example", "xcp.example", 443, false),
            ("cp.example:8080", "cp.example", 8080, true),
            ("cp.example:8080", "cp.example", 443, false),
            ("*.cp.example", "a.b.cp.example", 443, true),
            ("*.cp.example", "cp.example", 443, false),
            ("*.cp.example", "evilcp.example", 443, false),
            ("*.cp.example", ".cp.example", 443, false),
            ("[2001:db8::1]", "[2001:db8::1]", 443, true),
            ("[2001:db8::1]:8080", "[2001:db8::1]", 443, false),
            ("cp.example:http", "cp.example", 80, false),
        ] {
            assert_eq!(host_matches(pattern, host, port), expected, "{pattern} {host} {port}");
        }
    }

    #[test]
    fn this_machine_and_its_link_are_known() {
        for ok in ["10.0.0.1", "192.0.2.1", "2001:db8::1", "fd00::1"] {
            assert!(is_beyond_one_link(ok.parse().unwrap()), "{ok}");
        }
        for bad in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(!is_beyond_one_link(bad.parse().unwrap()), "{bad}");
        }
    }

    #[test]
    fn redirects_resolve_against_their_base() {
        let base: Uri = "http://cp.example:81/a/b.nsm?x=1".parse().unwrap();
        for (location, expected) in [
            ("https://other.example/c", "https://other.example/c"),
            ("//other.example/c", "http://other.example/c"),
            ("/c?d#e", "http://cp.example:81/c?d"),
            ("c.nsm", "http://cp.example:81/a/c.nsm"),
        ] {
            assert_eq!(resolve(&base, location).unwrap().to_string(), expected);
        }
        let long = format!("/{}", "a".repeat(URL_BYTES_MAX));
        assert_eq!(resolve(&base, &long).unwrap_err().kind, RefusalKind::BadUrl);
    }

    #[test]
    fn percent_signs_are_decoded_or_refused() {
        assert_eq!(percent_decode("/a%20b"), Some("/a b".to_owned()));
        for bad in ["/%", "/%2", "/%zz", "/%ff", "/%00"] {
            assert_eq!(percent_decode(bad), None, "{bad}");
        }
    }
}
