// SPDX-License-Identifier: Apache-2.0
//! Requests for streams, and the heads of answers to them.

use crate::limits::{ANSWER_HEAD_BYTES_MAX, REQUEST_HEAD_BYTES_MAX};

/// What a client's first bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// More has to come.
    Incomplete,
    /// Something that goes to the server as it is.
    Other,
    /// A request whose answer others may have, too.
    Stream(Request),
}

/// A request whose answer others may have, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What makes two requests ones for the same stream.
    pub key: String,
    /// Whether the client wants titles.
    pub wants_titles: bool,
    /// What the server is asked: the client's request, by HTTP/1.0, and with titles.
    pub onward: Vec<u8>,
}

/// Lines that go on to the server: what others have said has no part in what a listener gets.
const ONWARD: [&str; 5] = ["host", "user-agent", "accept", "referer", "origin"];
/// Lines of requests whose answers are for one client alone.
const OWN: [&str; 6] =
    ["authorization", "proxy-authorization", "cookie", "content-length", "transfer-encoding", "expect"];

/// Looks at the first bytes of a client.
pub fn asked(bytes: &[u8]) -> Asked {
    const GET: &[u8] = b"GET /";
    if !GET.starts_with(&bytes[..bytes.len().min(GET.len())]) {
        return Asked::Other;
    }
    let Some(length) = head_length(bytes) else {
        return if bytes.len() >= REQUEST_HEAD_BYTES_MAX { Asked::Other } else { Asked::Incomplete };
    };
    let is_all = length == bytes.len() && length <= REQUEST_HEAD_BYTES_MAX;
    let text = std::str::from_utf8(&bytes[..length]).ok().filter(|_| is_all);
    text.and_then(request).map_or(Asked::Other, Asked::Stream)
}

fn request(head: &str) -> Option<Request> {
    let mut lines = lines(head);
    let first = lines.next()?;
    let mut words = first.split(' ');
    let [_, target, version] = [words.next()?, words.next()?, words.next()?];
    if words.next().is_some() || !matches!(version, "HTTP/1.0" | "HTTP/1.1") {
        return None;
    }
    let mut onward = format!("GET {target} HTTP/1.0\r\n");
    let (mut host, mut wants_titles, mut is_browser) = (String::new(), false, false);
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let (name, value) = (name.to_ascii_lowercase(), value.trim());
        match &*name {
            "host" => host = value.to_ascii_lowercase(),
            "icy-metadata" => wants_titles = value == "1",
            // SHOUTcast shows browsers a page where others get the stream.
            "user-agent" => is_browser = value.starts_with("Mozilla"),
            "range" if value != "bytes=0-" => return None,
            other if OWN.contains(&other) => return None,
            _ => {}
        }
        if ONWARD.contains(&&*name) {
            onward.push_str(line);
            onward.push_str("\r\n");
        }
    }
    onward.push_str("Icy-MetaData: 1\r\nConnection: close\r\n\r\n");
    Some(Request { key: format!("{host} {target} {is_browser}"), wants_titles, onward: onward.into_bytes() })
}

/// What a server's first bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// More has to come.
    Incomplete,
    /// No stream, or one that is known nothing of. With titles among its bytes it is for nobody who did not ask for them.
    Other {
        /// Whether there are titles among the bytes.
        has_titles: bool,
    },
    /// A stream.
    Stream(Answer),
}

/// The head of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Bytes of the head.
    pub length: usize,
    /// Bytes between two titles; 0 if there are none.
    pub interval: usize,
    /// The media type.
    pub media_type: String,
    /// What a listener is told, but for what ends it and says where titles are.
    pub onward: Vec<u8>,
}

/// Media types of streams whose frames are known.
const MEDIA_TYPES: [&str; 9] = [
    "audio/mpeg",
    "audio/mp3",
    "audio/x-mp3",
    "audio/x-mpeg",
    "audio/mpg",
    "audio/aac",
    "audio/aacp",
    "audio/x-aac",
    "audio/x-aacp",
];
/// Lines of an answer that are not for listeners.
const OF_ONE_CONNECTION: [&str; 9] = [
    "icy-metaint",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "accept-ranges",
    "content-range",
    "etag",
    "age",
];

/// Looks at the first bytes of a server.
pub fn answered(bytes: &[u8]) -> Answered {
    let Some(length) = head_length(bytes) else {
        let is_endless = bytes.len() >= ANSWER_HEAD_BYTES_MAX;
        return if is_endless { Answered::Other { has_titles: false } } else { Answered::Incomplete };
    };
    let head = String::from_utf8_lossy(&bytes[..length]);
    let mut lines = lines(&head);
    let first = lines.next().unwrap_or_default();
    let mut words = first.splitn(3, ' ');
    let (version, status) = (words.next().unwrap_or_default(), words.next());
    let is_icy = version == "ICY";
    let is_found = (is_icy || version.starts_with("HTTP/1.")) && status == Some("200");
    let mut onward = format!("{first}\r\n");
    let (mut media_type, mut interval, mut is_radio, mut has_length, mut is_coded) =
        (String::new(), Some(0), is_icy, false, false);
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { continue };
        let (name, value) = (name.to_ascii_lowercase(), value.trim());
        match &*name {
            "content-type" => media_type = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase(),
            "icy-metaint" => interval = value.parse::<usize>().ok(),
            "content-length" => has_length = true,
            "transfer-encoding" | "content-encoding" => is_coded = true,
            _ => {}
        }
        is_radio |= name.starts_with("icy-") || name.starts_with("ice-");
        if !OF_ONE_CONNECTION.contains(&&*name) {
            onward.push_str(line);
            onward.push_str("\r\n");
        }
    }
    if is_icy && media_type.is_empty() {
        "audio/mpeg".clone_into(&mut media_type);
    }
    let is_known = MEDIA_TYPES.contains(&&*media_type);
    match interval {
        // A file has a length; of a radio's stream it says nothing.
        Some(interval) if is_found && is_known && !is_coded && (is_radio || !has_length) => {
            Answered::Stream(Answer { length, interval, media_type, onward: onward.into_bytes() })
        }
        Some(0) => Answered::Other { has_titles: false },
        Some(_) | None => Answered::Other { has_titles: true },
    }
}

/// Returns the head for one listener.
pub fn head_for(onward: &[u8], interval: Option<usize>) -> Vec<u8> {
    let titles = interval.map_or_else(String::new, |interval| format!("icy-metaint: {interval}\r\n"));
    [onward, titles.as_bytes(), b"Connection: close\r\n\r\n"].concat()
}

/// Returns the length of a head with the empty line that ends it, once that has come. Some radios end lines with LF alone.
fn head_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += bytes[at..].iter().position(|byte| *byte == b'\n')? + 1;
        match &bytes[at..] {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
}

fn lines(head: &str) -> impl Iterator<Item = &str> {
    head.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).take_while(|line| !line.is_empty())
}

#[cfg(test)]
mod tests;
