// SPDX-License-Identifier: Apache-2.0
//! Revocation lists of issuers, at URLs that the operator names.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use netserv_model::effect::ListAnswer;
use netserv_model::{Refusal, RefusalKind};

use crate::limits::{ETAG_BYTES_MAX, LIST_BYTES_MAX, LIST_TIME_MAX, URL_BYTES_MAX};
use crate::source::{Ask, FetchLimits, Fetcher, IsOwn, Sources, bad_url, failed, parse};

/// Asks for lists by `https` and `http`.
#[derive(Clone, Debug)]
pub struct ListAsker {
    is_own: IsOwn,
    time: Duration,
}

impl ListAsker {
    /// Returns one that does not follow a name to an address of the node's own or of its link.
    pub fn new(is_own: IsOwn) -> ListAsker {
        ListAsker { is_own, time: LIST_TIME_MAX }
    }

    /// Returns what lies at a URL; nothing if it is still the version that the server called so. It follows no redirects.
    ///
    /// # Errors
    /// A refusal of kind `bad-url` (see [`check_list_url`]; or the name leads to the node itself) or `fetch-failed` (nobody answers in
    /// time, or with more than [`LIST_BYTES_MAX`] or something else than text).
    pub fn ask(&self, url: &str, etag: Option<&str>) -> Result<Option<ListAnswer>, Refusal> {
        let is_address = check_list_url(url)?;
        let sources = Sources { http: true, ..Sources::default() };
        // Where an address is named, the operator has chosen that machine.
        let fetcher = match is_address {
            true => Fetcher::everywhere(sources),
            false => Fetcher::new(sources, self.is_own.clone()),
        };
        let limits = FetchLimits { time: self.time, bytes: LIST_BYTES_MAX, redirects: 0 };
        let ask = Ask { uri: parse(url)?, accept: None, authorization: None, if_none_match: etag };
        let mut text = Vec::new();
        let answered = fetcher.follow(ask, Instant::now() + self.time, &limits, &mut text).map_err(|refusal| {
            let is_long = refusal.kind == RefusalKind::PackageTooLarge;
            if is_long { failed(format!("more than {LIST_BYTES_MAX} bytes")) } else { refusal }
        })?;
        match answered.status {
            304 if etag.is_some() => return Ok(None),
            200 => {}
            _ => return Err(failed(format!("the server answered {}", answered.line))),
        }
        let text = String::from_utf8(text).map_err(|_| failed("it is no text"))?;
        Ok(Some(ListAnswer { text, etag: answered.etag.filter(|etag| etag.len() <= ETAG_BYTES_MAX) }))
    }
}

/// Checks that lists can be asked for at a URL; returns whether it names an address.
///
/// # Errors
/// A refusal of kind `bad-url`: it is too long, not `https` or `http`, or has no host or a password.
pub fn check_list_url(url: &str) -> Result<bool, Refusal> {
    if url.len() > URL_BYTES_MAX {
        return Err(bad_url(format!("{} bytes, at most {URL_BYTES_MAX}", url.len())));
    }
    let uri = parse(url)?;
    let sources = Sources { http: true, ..Sources::default() };
    let (host, _) = Fetcher::everywhere(sources).check(&uri)?;
    Ok(host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    /// A server that gives one client an answer over and over, and what that asked.
    fn serve(answer: Vec<u8>, times: usize, then: Duration) -> (String, Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/list", listener.local_addr().unwrap());
        let (asked, was_asked) = channel();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap_or(0);
            let _ = asked.send(String::from_utf8_lossy(&request[..length]).to_lowercase());
            for _ in 0..times {
                if stream.write_all(&answer).is_err() {
                    return;
                }
            }
            std::thread::sleep(then);
        });
        (url, was_asked)
    }

    fn asker(time: Duration) -> ListAsker {
        ListAsker { is_own: IsOwn::default(), time }
    }

    fn ask(answer: &str, etag: Option<&str>) -> Result<Option<ListAnswer>, Refusal> {
        let (url, _) = serve(answer.as_bytes().to_vec(), 1, Duration::ZERO);
        asker(Duration::from_secs(60)).ask(&url, etag)
    }

    #[test]
    fn a_list_is_fetched_when_it_is_another_one() {
        let answer = "HTTP/1.1 200 OK\r\netag: \"7\"\r\ncontent-length: 6\r\n\r\na.b.c\n";
        let list = ListAnswer { text: "a.b.c\n".to_owned(), etag: Some("\"7\"".to_owned()) };
        assert_eq!(ask(answer, None), Ok(Some(list)));
        let long = format!("HTTP/1.1 200 OK\r\netag: \"{}\"\r\ncontent-length: 0\r\n\r\n", "7".repeat(ETAG_BYTES_MAX));
        assert_eq!(ask(&long, None).unwrap().unwrap().etag, None);
        let (url, asked) = serve(b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec(), 1, Duration::ZERO);
        assert_eq!(asker(Duration::from_secs(60)).ask(&url, Some("\"7\"")), Ok(None));
        assert!(asked.recv().unwrap().contains("if-none-match: \"7\""));
        let unasked = ask("HTTP/1.1 304 Not Modified\r\n\r\n", None).unwrap_err();
        assert!(unasked.detail.contains("304"), "{unasked:?}");
    }

    #[test]
    fn what_is_no_list_is_refused_within_bounds() {
        for (answer, detail) in [
            ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "404"),
            ("HTTP/1.1 204 No Content\r\n\r\n", "204"),
            ("HTTP/1.1 302 Found\r\nlocation: /y\r\ncontent-length: 0\r\n\r\n", "redirects"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n", "more than 65664 bytes"),
            ("nonsense\r\n\r\n", ""),
        ] {
            let refusal = ask(answer, None).unwrap_err();
            assert!(refusal.kind == RefusalKind::FetchFailed && refusal.detail.contains(detail), "{refusal:?}");
        }
        let binary = [&b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n"[..], &[0xff]].concat();
        let (url, _) = serve(binary, 1, Duration::ZERO);
        assert!(asker(Duration::from_secs(60)).ask(&url, None).unwrap_err().detail.contains("no text"));
        // A gigabyte of which the server does not say how long it is; it is cut off at the bound.
        let endless = b"HTTP/1.1 200 OK\r\n\r\n".iter().copied().chain(std::iter::repeat_n(b'a', 1 << 20)).collect();
        let (url, _) = serve(endless, 1024, Duration::ZERO);
        assert!(asker(Duration::from_secs(60)).ask(&url, None).unwrap_err().detail.contains("more than"));
        let (url, _) = serve(b"HTTP/1.1 200 OK\r\ncontent-length: 71\r\n\r\na".to_vec(), 1, Duration::from_secs(30));
        let stalled = asker(Duration::from_millis(300)).ask(&url, None).unwrap_err();
        assert!(stalled.kind == RefusalKind::FetchFailed && stalled.detail.contains("0.3 s"), "{stalled:?}");
    }

    #[test]
    fn a_name_does_not_lead_to_the_node_itself() {
        let (url, _) = serve(Vec::new(), 0, Duration::ZERO);
        let by_name = url.replace("127.0.0.1", "localhost");
        let refusal = asker(Duration::from_secs(60)).ask(&by_name, None).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::BadUrl, "{refusal:?}");
        for (url, is_address) in [
            ("https://lists.example/house", false),
            ("http://192.0.2.1:8080/x", true),
            ("https://[2001:db8::1]/x", true),
        ] {
            assert_eq!(check_list_url(url), Ok(is_address), "{url}");
        }
        let long = format!("https://lists.example/{}", "a".repeat(URL_BYTES_MAX));
        for bad in
            ["", "lists.example/house", "file:///list", "ftp://lists.example/x", "https://a:b@lists.example/", &long]
        {
            assert_eq!(check_list_url(bad).unwrap_err().kind, RefusalKind::BadUrl, "{bad}");
        }
    }
}
