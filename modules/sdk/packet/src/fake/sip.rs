// SPDX-License-Identifier: Apache-2.0
//! A reader of SIP for the fake node: of well-formed messages whose headers have one line each.

use super::codes::{INVALID, NOT_FOUND, TOO_LARGE};

pub(crate) fn sip_parse(bytes: &[u8], out: &mut [u8]) -> i32 {
    if bytes.len() > usize::from(u16::MAX) || out.len() < HEAD_BYTES {
        return TOO_LARGE;
    }
    match std::str::from_utf8(bytes).ok().and_then(|text| read(text, out)) {
        Some(headers) => headers,
        None if bytes.windows(7).any(|window| window == b"SIP/2.0") => INVALID,
        None => NOT_FOUND,
    }
}

/// Where a text is in the whole, as start and length.
type Place = [u16; 2];

fn read(text: &str, out: &mut [u8]) -> Option<i32> {
    let place = |part: &str| -> Place {
        let start = part.as_ptr() as usize - text.as_ptr() as usize;
        [start, part.len()].map(|number| u16::try_from(number).unwrap_or(0))
    };
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let (first, rest) = lines.next()?.split_once(' ')?;
    let (subject, last) = rest.split_once(' ')?;
    let is_response = first == "SIP/2.0";
    if !is_response && last != "SIP/2.0" {
        return None;
    }
    let headers: Vec<(&str, &str)> = lines.map(|line| line.split_once(':')).collect::<Option<_>>()?;
    let value = |number: u16| {
        headers.iter().find(|(name, _)| header_number(name.trim()) == number).map(|(_, value)| value.trim())
    };
    let [via, from, to, call_id, cseq] = [value(1)?, value(2)?, value(3)?, value(4)?, value(5)?];
    let (number, method) = cseq.split_once(' ')?;
    if !is_response && method != first {
        return None;
    }
    let method_number = METHODS.iter().position(|known| *known == method).map_or(0, |at| at + 1);
    let status: u16 = if is_response { subject.parse().ok()? } else { 0 };
    let content_length = value(10).map_or(Some(u32::MAX), |length| length.parse().ok())?;
    let body = body.get(..(content_length as usize).min(body.len()))?;
    let counts = [status, u16::try_from(method_number).ok()?, u16::try_from(headers.len()).ok()?, 0];
    put(out, 0, &counts);
    out[8..12].copy_from_slice(&number.parse::<u32>().ok()?.to_le_bytes());
    out[12..16].copy_from_slice(&content_length.to_le_bytes());
    let sent_by = via.split([' ', ';']).nth(1).unwrap_or("");
    let parts = [
        method,
        if is_response { last } else { subject },
        call_id,
        uri(from),
        parameter(from, "tag="),
        uri(to),
        parameter(to, "tag="),
        via,
        sent_by,
        parameter(via, "branch="),
        body,
    ];
    for (number, part) in parts.into_iter().enumerate() {
        put(out, 16 + 4 * number, &if part.is_empty() { [0, 0] } else { place(part) });
    }
    put(out, 60, &[0, 0]);
    for (number, (name, value)) in headers.iter().enumerate() {
        let at = HEAD_BYTES + HEADER_BYTES * number;
        if at + HEADER_BYTES <= out.len() {
            let ([name_start, name_length], [start, length]) = (place(name.trim()), place(value.trim()));
            put(out, at, &[header_number(name.trim()), name_start, name_length, start, length, 0]);
        }
    }
    i32::try_from(headers.len()).ok()
}

fn put(out: &mut [u8], at: usize, numbers: &[u16]) {
    for (place, number) in out[at..].as_chunks_mut::<2>().0.iter_mut().zip(numbers) {
        *place = number.to_le_bytes();
    }
}

fn uri(value: &str) -> &str {
    let inside = value.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    inside.map_or_else(|| value.split(';').next().unwrap_or(value), |(uri, _)| uri)
}

fn parameter<'a>(value: &'a str, name: &str) -> &'a str {
    let parameters = value.rsplit_once('>').map_or(value, |(_, rest)| rest);
    parameters.split(';').skip(1).find_map(|parameter| parameter.trim().strip_prefix(name)).unwrap_or("")
}

fn header_number(name: &str) -> u16 {
    let long = COMPACT.iter().find(|(short, _)| short.eq_ignore_ascii_case(name)).map_or(name, |(_, long)| long);
    let known = HEADERS.iter().position(|known| known.eq_ignore_ascii_case(long));
    known.and_then(|at| u16::try_from(at + 1).ok()).unwrap_or(0)
}

const HEAD_BYTES: usize = 64;
const HEADER_BYTES: usize = 12;
const METHODS: [&str; 14] = [
    "INVITE",
    "ACK",
    "BYE",
    "CANCEL",
    "REGISTER",
    "OPTIONS",
    "PRACK",
    "SUBSCRIBE",
    "NOTIFY",
    "PUBLISH",
    "INFO",
    "REFER",
    "MESSAGE",
    "UPDATE",
];
/// In the order of their numbers; those that have higher ones are `0` here.
const HEADERS: [&str; 17] = [
    "Via",
    "From",
    "To",
    "Call-ID",
    "CSeq",
    "Contact",
    "Max-Forwards",
    "Route",
    "Record-Route",
    "Content-Length",
    "Content-Type",
    "Content-Encoding",
    "Expires",
    "Event",
    "User-Agent",
    "Server",
    "Authorization",
];
const COMPACT: [(&str, &str); 9] = [
    ("v", "Via"),
    ("f", "From"),
    ("t", "To"),
    ("i", "Call-ID"),
    ("m", "Contact"),
    ("l", "Content-Length"),
    ("c", "Content-Type"),
    ("e", "Content-Encoding"),
    ("o", "Event"),
];
