// SPDX-License-Identifier: Apache-2.0
//! What viewers ask, and the answers. A connection is for one request.

use crate::limits::REQUEST_HEAD_BYTES_MAX;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a str,
    /// The path without its query.
    pub path: &'a str,
    /// The query; empty without one.
    pub query: &'a str,
}

/// Returns the request of a head; nothing while it has not come whole.
///
/// # Errors
/// It is none, or too long: the status of the answer.
pub fn request(head: &[u8]) -> Result<Option<Request<'_>>, u16> {
    let Some(end) = head.windows(4).position(|end| end == b"\r\n\r\n").filter(|end| *end <= REQUEST_HEAD_BYTES_MAX)
    else {
        return if head.len() > REQUEST_HEAD_BYTES_MAX { Err(431) } else { Ok(None) };
    };
    let line = head[..end].split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = std::str::from_utf8(line).map_err(|_| 400_u16)?;
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(400);
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Ok(Some(Request { method, path, query }))
}

/// Returns an answer.
pub fn answer(status: u16, media_type: &str, body: &[u8]) -> Vec<u8> {
    let mut answer = head(status);
    answer.extend(format!("Content-Type: {media_type}\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes());
    answer.extend_from_slice(body);
    answer
}

/// Returns an answer of a line of text.
pub fn text(status: u16, line: &str) -> Vec<u8> {
    answer(status, "text/plain; charset=utf-8", format!("{line}\n").as_bytes())
}

/// Returns the head of the answer that has pictures, each of which replaces the one before.
pub fn pictures() -> Vec<u8> {
    let mut answer = head(200);
    answer.extend(b"Content-Type: multipart/x-mixed-replace; boundary=picture\r\n\r\n");
    answer
}

/// Returns a picture as a part of such an answer.
pub fn part(media_type: &str, quality: &str, picture: &[u8]) -> Vec<u8> {
    let length = picture.len();
    let mut part =
        format!("--picture\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\nQuality: {quality}\r\n\r\n")
            .into_bytes();
    part.extend_from_slice(picture);
    part.extend_from_slice(b"\r\n");
    part
}

fn head(status: u16) -> Vec<u8> {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        431 => "Request Header Fields Too Large",
        _ => "Service Unavailable",
    };
    format!("HTTP/1.1 {status} {reason}\r\nConnection: close\r\nCache-Control: no-store\r\n{SECURITY}").into_bytes()
}

/// A page asks nobody but this module, and is shown in no other.
const SECURITY: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
    X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_when_they_are_whole() {
        let whole = b"GET /video?size=80x60 HTTP/1.1\r\nHost: a\r\n\r\n";
        let expected = Request { method: "GET", path: "/video", query: "size=80x60" };
        assert_eq!(request(whole), Ok(Some(expected)));
        assert!((0..whole.len()).all(|length| request(&whole[..length]) == Ok(None)));
        for bad in ["\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/2\r\n\r\n", "GET /a b HTTP/1.1\r\n\r\n"] {
            assert_eq!(request(bad.as_bytes()), Err(400), "{bad:?}");
        }
        assert_eq!(request(b"GET /\xff HTTP/1.1\r\n\r\n"), Err(400));
        let mut long = b"GET / HTTP/1.1\r\nx: ".to_vec();
        long.resize(REQUEST_HEAD_BYTES_MAX + 1, b'a');
        assert_eq!(request(&long), Err(431));
        long.extend(b"\r\n\r\n");
        assert_eq!(request(&long), Err(431));
    }
}
