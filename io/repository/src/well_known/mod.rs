// SPDX-License-Identifier: Apache-2.0
//! What an address says of a user: a digest at a well-known path (RFC 8615).
//!
//! By default an address is asked by HTTP on port 80. Where it refuses that or leads to HTTPS, it is asked by HTTPS on port 443, whatever
//! certificate it has: who can answer by HTTP for an address gets in anyway, so a certificate that nobody checks makes that no easier. An
//! operator for whom that is too weak has addresses asked by HTTPS alone, with a certificate for the address itself.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use netserv_model::policy::AddressTls;
use netserv_model::{Digest, Refusal, RefusalKind, UserId};
use ureq::Body;
use ureq::http::Response;
use ureq::http::header::LOCATION;
use ureq::tls::{RootCerts, TlsConfig};

use crate::limits::{ADDRESS_ANSWER_BYTES_MAX, ADDRESS_ANSWER_TIME_MAX};
use crate::source::{Ask, FetchLimits, Fetcher, Hop, IsOwn, Sources, explain, failed, parse, take};

/// Asks addresses, themselves and not by a name.
#[derive(Debug)]
pub struct AddressAsker {
    /// By HTTP.
    plain: Fetcher,
    /// By HTTPS, whoever the server is.
    any: Fetcher,
    /// By HTTPS, with a certificate for the address.
    certified: Fetcher,
    time: Duration,
    /// Of HTTP and HTTPS.
    ports: [u16; 2],
}

impl AddressAsker {
    /// Returns one that asks no address of the node's own or of its link.
    pub fn new(is_own: &IsOwn) -> AddressAsker {
        AddressAsker::with(&Sources::default(), is_own, RootCerts::WebPki)
    }

    fn with(sources: &Sources, is_own: &IsOwn, authorities: RootCerts) -> AddressAsker {
        let by = |https: bool, tls: TlsConfig| {
            let sources = Sources { https, http: !https, ..sources.clone() };
            Fetcher::with_tls(sources, is_own.clone(), tls)
        };
        AddressAsker {
            plain: by(false, TlsConfig::default()),
            any: by(true, TlsConfig::builder().disable_verification(true).build()),
            certified: by(true, TlsConfig::builder().root_certs(authorities).build()),
            time: ADDRESS_ANSWER_TIME_MAX,
            ports: [80, 443],
        }
    }

    /// Returns what lies at an address of a user. No redirect is followed, but one to HTTPS has the same address asked by that.
    ///
    /// # Errors
    /// A refusal of kind `bad-url` (the address is the node's own or of its link) or `fetch-failed` (nobody answers in time, or
    /// with something else than a digest).
    pub fn ask(&self, address: IpAddr, user: &UserId, tls: AddressTls) -> Result<Digest, Refusal> {
        let deadline = Instant::now() + self.time;
        let [plain, https] = [("http", self.ports[0]), ("https", self.ports[1])].map(|at| url_at(at, address, user));
        match tls {
            AddressTls::Require => self.said(&self.certified, &https, deadline),
            AddressTls::Allow => match self.said_plainly(&plain, deadline)? {
                Plainly::Said(digest) => Ok(digest),
                Plainly::AskByTls(why) => self.said(&self.any, &https, deadline).map_err(|refusal| {
                    let detail = format!("{plain} {why}; {}", refusal.detail);
                    Refusal { detail, ..refusal }
                }),
            },
        }
    }

    fn said_plainly(&self, url: &str, deadline: Instant) -> Result<Plainly, Refusal> {
        match self.call(&self.plain, url, deadline)? {
            Err(error) if refuses(&error) => Ok(Plainly::AskByTls("is refused")),
            Ok(response) if leads_to_tls(&response) => Ok(Plainly::AskByTls("leads to HTTPS")),
            called => self.digest(url, called).map(Plainly::Said),
        }
    }

    fn said(&self, by: &Fetcher, url: &str, deadline: Instant) -> Result<Digest, Refusal> {
        self.digest(url, self.call(by, url, deadline)?)
    }

    fn call(&self, by: &Fetcher, url: &str, deadline: Instant) -> Result<Called, Refusal> {
        let ask = Ask { uri: parse(url)?, accept: None, authorization: None, if_none_match: None };
        by.check(&ask.uri)?;
        Ok(by.call(&ask, deadline))
    }

    /// Reads the digest that a server answered with.
    fn digest(&self, url: &str, called: Called) -> Result<Digest, Refusal> {
        let limits = FetchLimits { time: self.time, bytes: ADDRESS_ANSWER_BYTES_MAX, redirects: 0 };
        let mut answer = Vec::new();
        let hop = called.map_err(|error| explain(&error, &limits));
        let hop = hop.and_then(|response| take(&parse(url)?, response, &limits, &mut answer));
        let at = |refusal: Refusal| Refusal { detail: format!("{url}: {}", refusal.detail), ..refusal };
        match hop {
            Ok(Hop::Answer(answered)) if (200..=299).contains(&answered.status) => {}
            Ok(Hop::Answer(answered)) => return Err(at(failed(format!("the server answered {}", answered.line)))),
            Ok(Hop::Redirect(_)) => return Err(at(failed("redirects are not followed"))),
            Err(refusal) if refusal.kind == RefusalKind::PackageTooLarge => {
                return Err(at(failed(format!("more than {ADDRESS_ANSWER_BYTES_MAX} bytes"))));
            }
            Err(refusal) => return Err(at(refusal)),
        }
        let text = String::from_utf8_lossy(&answer);
        text.trim().parse().map_err(|_| at(failed("it is no digest such as sha256:<64 hex digits>")))
    }
}

/// What came of asking a server.
type Called = Result<Response<Body>, ureq::Error>;

/// What an address says by HTTP.
enum Plainly {
    Said(Digest),
    /// It wants to be asked by HTTPS, as it shows so.
    AskByTls(&'static str),
}

/// Returns whether nobody speaks HTTP there, as the address or a firewall before it says.
fn refuses(error: &ureq::Error) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, HostUnreachable};
    matches!(error, ureq::Error::Io(error) if matches!(error.kind(), ConnectionRefused | HostUnreachable))
}

/// Returns whether a server leads to HTTPS, of whatever host: its own address is what counts.
fn leads_to_tls(response: &Response<Body>) -> bool {
    let location = response.headers().get(LOCATION).map_or(&b""[..], |location| location.as_bytes());
    let scheme = location.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"https://"));
    response.status().is_redirection() && scheme
}

/// Returns where an address says something of a user.
pub fn url_of(address: IpAddr, user: &UserId) -> String {
    url_at(("http", 80), address, user)
}

fn url_at((scheme, port): (&str, u16), address: IpAddr, user: &UserId) -> String {
    let host = if address.is_ipv4() { address.to_string() } else { format!("[{address}]") };
    let port = if [80, 443].contains(&port) { String::new() } else { format!(":{port}") };
    format!("{scheme}://{host}{port}{WELL_KNOWN}{user}")
}

/// The path of that without the user's name.
pub const WELL_KNOWN: &str = "/.well-known/netserv/";

#[cfg(test)]
mod tests;
