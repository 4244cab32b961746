// SPDX-License-Identifier: Apache-2.0
//! Requests, responses and their fields.

/// Header fields in the order in which they came.
pub type Fields = [(String, Vec<u8>)];

/// A cache directive: its name, in lower case, and its value.
pub type Directive = (String, Option<Vec<u8>>);

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a str,
    /// `http` or `https`.
    pub scheme: &'a str,
    /// The host that is asked, with its port if it has one.
    pub authority: &'a str,
    /// The path with its query.
    pub path: &'a str,
    /// The headers.
    pub headers: &'a Fields,
}

/// A response's head.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: &'a Fields,
}

/// Returns the values of all fields of a name.
pub fn values<'a>(fields: &'a Fields, name: &str) -> impl Iterator<Item = &'a [u8]> {
    fields.iter().filter(move |(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
}

/// Returns whether there is a field of a name.
pub fn has(fields: &Fields, name: &str) -> bool {
    values(fields, name).next().is_some()
}

/// Returns the value of the first field of a name, if it is text.
pub fn text<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    values(fields, name).next().and_then(|value| std::str::from_utf8(value).ok()).map(trim)
}

/// Returns the members of a list over all its lines, without those that are empty.
///
/// Commas in quoted strings part nothing.
pub fn members<'a>(fields: &'a Fields, name: &str) -> impl Iterator<Item = &'a [u8]> {
    values(fields, name).flat_map(|value| split(value, b',')).filter(|member| !member.is_empty())
}

/// Splits a value at a byte outside of quoted strings (RFC 9110 §5.6.4), and trims the pieces.
pub fn split(value: &[u8], at: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let whole = rest?;
        let (mut quoted, mut escaped) = (false, false);
        let end = whole.iter().position(|byte| {
            let ends = *byte == at && !quoted;
            if escaped {
                escaped = false;
            } else if *byte == b'"' {
                quoted = !quoted;
            } else if *byte == b'\\' {
                escaped = quoted;
            }
            ends
        });
        rest = end.and_then(|end| whole.get(end + 1..));
        Some(whole[..end.unwrap_or(whole.len())].trim_ascii())
    })
}

/// Splits a directive into its name, in lower case, and its value without quotes.
pub fn directive(text: &[u8]) -> Directive {
    let end = text.iter().position(|byte| *byte == b'=');
    let name = String::from_utf8_lossy(&text[..end.unwrap_or(text.len())]).to_ascii_lowercase();
    (name, end.and_then(|end| text.get(end + 1..)).map(unquoted))
}

/// Returns a quoted string without its quotes, and everything else as it is.
fn unquoted(value: &[u8]) -> Vec<u8> {
    let Some(inner) = value.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")) else {
        return value.to_vec();
    };
    let mut escaped = false;
    let kept = inner.iter().filter(|byte| {
        escaped = **byte == b'\\' && !escaped;
        !escaped
    });
    kept.copied().collect()
}

/// Returns text without blanks and tabs around it.
pub fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// Returns whether a name is one of some, in whatever case.
pub fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|one| name.eq_ignore_ascii_case(one))
}

/// Returns whether a field is about one connection or one proxy (RFC 9110 §7.6.1).
pub fn is_of_connection(name: &str, fields: &Fields) -> bool {
    is_one_of(name, &OF_CONNECTION)
        || members(fields, "connection").any(|nominated| name.as_bytes().eq_ignore_ascii_case(nominated))
}

/// Fields of one connection.
const OF_CONNECTION: [&str; 11] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
];
