// SPDX-License-Identifier: Apache-2.0
//! What an address says of a user: a digest at a well-known path (RFC 8615).

use std::net::IpAddr;
use std::time::{Duration, Instant};

use netserv_model::{Digest, Refusal, RefusalKind, UserId};

use crate::limits::{ADDRESS_ANSWER_BYTES_MAX, ADDRESS_ANSWER_TIME_MAX};
use crate::source::{FetchLimits, Fetcher, IsOwn, Sources};

/// Asks addresses by HTTP on port 80, themselves and not by a name.
#[derive(Debug)]
pub struct Asker {
    fetcher: Fetcher,
    time: Duration,
}

impl Asker {
    /// Returns one that asks no address of the node's own or of its link.
    pub fn new(is_own: IsOwn) -> Asker {
        let sources = Sources { https: false, http: true, ..Sources::default() };
        Asker { fetcher: Fetcher::new(sources, is_own), time: ADDRESS_ANSWER_TIME_MAX }
    }

    /// Returns what lies at an address of a user. It follows no redirects.
    ///
    /// # Errors
    /// A refusal of kind `bad-url` (the address is the node's own or of its link) or `fetch-failed` (nobody answers in time, or
    /// with something else than a digest).
    pub fn ask(&self, address: IpAddr, user: &UserId) -> Result<Digest, Refusal> {
        self.ask_at(&url_of(address, user))
    }

    fn ask_at(&self, url: &str) -> Result<Digest, Refusal> {
        let limits = FetchLimits { time: self.time, bytes: ADDRESS_ANSWER_BYTES_MAX, redirects: 0 };
        let mut answer = Vec::new();
        let fetched = self.fetcher.get(url, Instant::now() + self.time, &limits, &mut answer);
        let failed = |detail: String| Refusal::new(RefusalKind::FetchFailed, format!("{url}: {detail}"));
        fetched.map_err(|refusal| {
            let is_long = refusal.kind == RefusalKind::PackageTooLarge;
            let detail = format!("{url}: {}", refusal.detail);
            if is_long {
                failed(format!("more than {ADDRESS_ANSWER_BYTES_MAX} bytes"))
            } else {
                Refusal { detail, ..refusal }
            }
        })?;
        let text = String::from_utf8_lossy(&answer);
        text.trim().parse().map_err(|_| failed("it is no digest such as sha256:<64 hex digits>".to_owned()))
    }
}

/// Returns where an address says something of a user.
pub fn url_of(address: IpAddr, user: &UserId) -> String {
    let host = if address.is_ipv4() { address.to_string() } else { format!("[{address}]") };
    format!("http://{host}{WELL_KNOWN}{user}")
}

/// The path of that without the user's name.
pub const WELL_KNOWN: &str = "/.well-known/netserv/";

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// A server that gives each client an answer, and the rest of a URL that leads there.
    fn serve(answer: Vec<u8>, then: Duration) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/x", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(&answer);
            std::thread::sleep(then);
        });
        url
    }

    fn ask(answer: &str, then: Duration) -> Result<Digest, Refusal> {
        let sources = Sources { https: false, http: true, ..Sources::default() };
        let sources = Sources { hosts: Some(vec!["127.0.0.1".to_owned()]), own_addresses: true, ..sources };
        let fetcher = Fetcher::new(sources, IsOwn::default());
        let asker = Asker { fetcher, time: Duration::from_millis(700) };
        asker.ask_at(&serve(answer.as_bytes().to_vec(), then))
    }

    #[test]
    fn only_a_digest_is_an_answer() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let answer = |body: &str| format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        assert_eq!(ask(&answer(&format!("{digest}\n")), Duration::ZERO), Ok(Digest([0xab; 32])));
        for (bad, detail) in [
            (answer("hello"), "no digest"),
            (answer(""), "no digest"),
            (answer(&"a".repeat(1_000_000)), "more than 256 bytes"),
            (format!("HTTP/1.1 200 OK\r\n\r\n{}", "a".repeat(1_000_000)), "more than 256 bytes"),
            ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(), "404"),
            ("HTTP/1.1 302 Found\r\nlocation: /y\r\ncontent-length: 0\r\n\r\n".to_owned(), "redirects"),
            ("nonsense\r\n\r\n".to_owned(), "http://"),
        ] {
            let refusal = ask(&bad, Duration::ZERO).unwrap_err();
            assert!(refusal.kind == RefusalKind::FetchFailed && refusal.detail.contains(detail), "{refusal:?}");
        }
        let silent = ask("HTTP/1.1 200 OK\r\ncontent-length: 71\r\n\r\nsha", Duration::from_secs(30)).unwrap_err();
        assert_eq!(silent.kind, RefusalKind::FetchFailed, "{silent:?}");
    }

    #[test]
    fn no_address_of_the_nodes_own_is_asked() {
        let asker = Asker::new(IsOwn::new(|address| address == IpAddr::from([192, 0, 2, 1])));
        let user = "k-a".parse().unwrap();
        for own in ["192.0.2.1", "127.0.0.1", "::1", "169.254.169.254", "::ffff:192.0.2.1"] {
            let refusal = asker.ask(own.parse().unwrap(), &user).unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::BadUrl, "{refusal:?}");
        }
        assert_eq!(url_of("2001:db8::1".parse().unwrap(), &user), "http://[2001:db8::1]/.well-known/netserv/k-a");
    }
}
