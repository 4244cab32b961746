// SPDX-License-Identifier: Apache-2.0
//! Requests for streams, and the heads of answers to them.

use std::collections::BTreeMap;

use httparse::Status;

use crate::limits::{ANSWER_HEAD_BYTES_MAX, REQUEST_HEAD_BYTES_MAX, REQUEST_LINES_MAX, SHARED_HEAD_BYTES_MAX};

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
    /// Whether it names an origin, so that lines of the answer are for that (CORS).
    pub has_origin: bool,
    /// What the server is asked: the client's request, by HTTP/1.0, and with titles.
    pub onward: Vec<u8>,
}

/// Lines that go on to the server.
const ONWARD: [&str; 5] = ["host", "user-agent", "accept", "referer", "origin"];
/// Lines that change nothing about a stream, and are said to the server by nobody. With one that is neither here nor otherwise known, a
/// request is for one client.
const WITHOUT_EFFECT: [&str; 11] = [
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "dnt",
    "keep-alive",
    "pragma",
    "priority",
    "sec-gpc",
    "upgrade-insecure-requests",
    // A number that players of Apple's give each of their listeners.
    "x-playback-session-id",
];
/// Begins of such lines.
const WITHOUT_EFFECT_BEGINS: [&str; 2] = ["sec-fetch-", "sec-ch-ua"];

/// Looks at the first bytes of a client.
pub fn asked(bytes: &[u8]) -> Asked {
    const GET: &[u8] = b"GET /";
    if !GET.starts_with(&bytes[..bytes.len().min(GET.len())]) {
        return Asked::Other;
    }
    let mut headers = [httparse::EMPTY_HEADER; REQUEST_LINES_MAX];
    let mut head = httparse::Request::new(&mut headers);
    match head.parse(bytes) {
        Ok(Status::Partial) if bytes.len() < REQUEST_HEAD_BYTES_MAX => Asked::Incomplete,
        Ok(Status::Complete(length)) if length == bytes.len() && length <= REQUEST_HEAD_BYTES_MAX => {
            request(&head).map_or(Asked::Other, Asked::Stream)
        }
        Ok(_) | Err(_) => Asked::Other,
    }
}

fn request(head: &httparse::Request<'_, '_>) -> Option<Request> {
    let target = head.path?;
    let mut onward = format!("GET {target} HTTP/1.0\r\n");
    let mut said: BTreeMap<String, &str> = BTreeMap::new();
    for line in &*head.headers {
        let (name, value) = (line.name.to_ascii_lowercase(), std::str::from_utf8(line.value).ok()?);
        if !is_shared(&name, value) {
            return None;
        }
        if ONWARD.contains(&&*name) {
            onward.push_str(&format!("{}: {value}\r\n", line.name));
        }
        // Servers differ in which of two lines counts.
        if said.insert(name, value).is_some() {
            return None;
        }
    }
    onward.push_str("Icy-MetaData: 1\r\nConnection: close\r\n\r\n");
    let of = |name: &str| said.get(name).copied();
    let host = of("host").map(str::to_ascii_lowercase);
    // SHOUTcast shows browsers a page where others get the stream.
    let is_browser = of("user-agent").is_some_and(|agent| agent.starts_with("Mozilla"));
    let [referer, origin] =
        ["referer", "origin"].map(|name| of(name).map_or(String::new(), |value| format!(" {value}")));
    let key = format!("{target} {is_browser}\n{}\n{referer}\n{origin}", host.unwrap_or_default());
    let wants_titles = of("icy-metadata") == Some("1");
    Some(Request { key, wants_titles, has_origin: of("origin").is_some(), onward: onward.into_bytes() })
}

/// Returns whether an answer is for others, too, as far as this line of a request goes.
fn is_shared(name: &str, value: &str) -> bool {
    let is_each = |known: &[&str]| value.split(',').all(|word| known.contains(&&*word.trim().to_ascii_lowercase()));
    match name {
        "host" => value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte)),
        "user-agent" | "referer" | "origin" | "icy-metadata" => true,
        "accept" => value.contains("*/*") || value.contains("audio/"),
        "connection" => is_each(&["keep-alive", "close"]),
        "range" => value == "bytes=0-",
        other => WITHOUT_EFFECT.contains(&other) || WITHOUT_EFFECT_BEGINS.iter().any(|begin| other.starts_with(begin)),
    }
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
        /// Whether it says that it is sound or film.
        is_media: bool,
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
    /// Whether it says that it is a radio's; else it may be a file.
    pub is_radio: bool,
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
/// Lines of an answer that are for all listeners. Others may be for the first one alone.
const SHARED: [&str; 6] =
    ["content-type", "server", "cache-control", "pragma", "expires", "cross-origin-resource-policy"];
/// Begins of such lines.
const SHARED_BEGINS: [&str; 3] = ["icy-", "ice-", "x-audiocast-"];
/// Such lines where all listeners named the same origin.
const SHARED_BY_ORIGIN: [&str; 3] =
    ["access-control-allow-origin", "access-control-allow-credentials", "access-control-expose-headers"];
/// Lines of requests by which answers may differ: who has one has no part in a stream, or only with those that have the same.
const VARIES_BY: [&str; 8] =
    ["accept-encoding", "authorization", "cookie", "host", "icy-metadata", "origin", "range", "referer"];

/// Looks at the first bytes of a server.
pub fn answered(bytes: &[u8], has_origin: bool) -> Answered {
    let Some(length) = head_length(bytes) else {
        let is_endless = bytes.len() >= ANSWER_HEAD_BYTES_MAX;
        let other = Answered::Other { has_titles: false, is_media: false };
        return if is_endless { other } else { Answered::Incomplete };
    };
    let mut lines = lines(&bytes[..length]);
    let first = lines.next().unwrap_or_default();
    let mut words = first.splitn(3, |byte| *byte == b' ');
    let (version, status) = (words.next().unwrap_or_default(), words.next());
    let is_icy = version == b"ICY";
    let is_found = (is_icy || version.starts_with(b"HTTP/1.")) && status == Some(b"200");
    let mut onward = [first, b"\r\n"].concat();
    let (mut media_type, mut interval, mut is_radio) = (String::new(), Some(0), is_icy);
    let (mut is_file, mut is_own) = (false, false);
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = String::from_utf8_lossy(&line[..colon]).to_ascii_lowercase();
        let value = String::from_utf8_lossy(&line[colon + 1..]);
        let value = value.trim();
        match &*name {
            "content-type" => media_type = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase(),
            "icy-metaint" => interval = value.parse::<usize>().ok(),
            "content-length" | "content-range" | "last-modified" | "etag" => is_file = true,
            "accept-ranges" => is_file |= value != "none",
            "transfer-encoding" | "content-encoding" => is_own = true,
            "vary" => is_own |= !varies_by_known(value),
            _ => {}
        }
        is_radio |= name.starts_with("icy-") || name.starts_with("ice-");
        if is_for_all(&name, has_origin) {
            onward.extend_from_slice(line);
            onward.extend_from_slice(b"\r\n");
        }
    }
    if is_icy && media_type.is_empty() {
        "audio/mpeg".clone_into(&mut media_type);
    }
    let is_known = MEDIA_TYPES.contains(&&*media_type) && onward.len() <= SHARED_HEAD_BYTES_MAX;
    match interval {
        // A file has a length; of a radio's stream it says nothing.
        Some(interval) if is_found && is_known && !is_own && (is_radio || !is_file) => {
            Answered::Stream(Answer { length, interval, media_type, is_radio, onward })
        }
        interval => Answered::Other { has_titles: interval != Some(0), is_media: is_found && is_media(&media_type) },
    }
}

fn is_media(media_type: &str) -> bool {
    ["audio/", "video/"].iter().any(|begin| media_type.starts_with(begin)) || media_type == "application/ogg"
}

fn is_for_all(name: &str, has_origin: bool) -> bool {
    let begins = SHARED_BEGINS.iter().any(|begin| name.starts_with(begin)) && name != "icy-metaint";
    begins || SHARED.contains(&name) || (has_origin && SHARED_BY_ORIGIN.contains(&name))
}

fn varies_by_known(value: &str) -> bool {
    value.split(',').all(|name| VARIES_BY.contains(&&*name.trim().to_ascii_lowercase()))
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

fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.take_while(|line| !line.is_empty())
}

#[cfg(test)]
mod tests;
