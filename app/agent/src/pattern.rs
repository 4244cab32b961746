// SPDX-License-Identifier: Apache-2.0
//! Lines of logs, as far as a rule wants to know them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::str::FromStr;

use anyhow::{Result, bail, ensure};
use serde::Deserialize;

/// What a line looks like: text, and names in braces for what stands between, as in `{client} - {user} "{method} {path}`. It may
/// begin anywhere in the line, and what comes after it does not matter.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// Up to the text that follows, or else to the next space.
    Field(String),
}

impl Pattern {
    /// Returns the fields of a line, unless it looks otherwise.
    pub fn fields<'l>(&self, line: &'l str) -> Option<BTreeMap<&str, &'l str>> {
        let mut rest = line;
        let mut fields = BTreeMap::new();
        for (index, part) in self.parts.iter().enumerate() {
            match part {
                Part::Text(text) if index == 0 => rest = &rest[rest.find(text.as_str())? + text.len()..],
                Part::Text(text) => rest = rest.strip_prefix(text.as_str())?,
                Part::Field(name) => {
                    let end = match self.parts.get(index + 1) {
                        Some(Part::Text(text)) => {
                            let is_before_port =
                                matches!(self.parts.get(index + 2), Some(Part::Field(name)) if name == PORT);
                            end_before(name, rest, text, is_before_port)?
                        }
                        Some(Part::Field(_)) | None => rest.find(char::is_whitespace).unwrap_or(rest.len()),
                    };
                    fields.insert(name.as_str(), &rest[..end]);
                    rest = &rest[end..];
                }
            }
        }
        Some(fields)
    }

    /// Returns whether lines have a field.
    pub fn has(&self, field: &str) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Field(name) if name == field))
    }
}

/// Returns where a field ends that a text follows. HAProxy writes `2001:db8::1:5060` for an address and a port, so a client ends
/// where it is an address. If a port is to follow, a number does.
fn end_before(field: &str, rest: &str, text: &str, is_before_port: bool) -> Option<usize> {
    let mut ends = rest.match_indices(text).map(|(end, _)| end);
    let addresses = ends.clone().take_while(|end| *end <= ADDRESS_BYTES_MAX && field == CLIENT);
    let is_followed =
        |end: usize| !is_before_port || rest[end + text.len()..].starts_with(|c: char| c.is_ascii_digit());
    let longest = addresses.filter(|end| is_followed(*end) && address(&rest[..*end]).is_some()).last();
    longest.or_else(|| ends.next())
}

/// Reads a client's address, also as `[2001:db8::1]`.
pub fn address(text: &str) -> Option<IpAddr> {
    let within = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    within.unwrap_or(text).parse().ok()
}

/// The field that says who came.
pub const CLIENT: &str = "client";
/// The field that says from which port.
const PORT: &str = "port";

/// Bytes of the longest text of an address: eight groups, the last two as IPv4 has them, in brackets.
const ADDRESS_BYTES_MAX: usize = 47;

impl TryFrom<String> for Pattern {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Pattern> {
        text.parse()
    }
}

impl FromStr for Pattern {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Pattern> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('{') {
                let Some((name, after)) = inside.split_once('}') else { bail!("`{text}` has `{{` without `}}`") };
                let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
                ensure!(is_name, "`{{{name}}}` in `{text}` is no name of letters, digits and `-`");
                ensure!(!matches!(parts.last(), Some(Part::Field(_))), "nothing stands between two fields of `{text}`");
                parts.push(Part::Field(name.to_owned()));
                rest = after;
            } else {
                let end = rest.find('{').unwrap_or(rest.len());
                parts.push(Part::Text(rest[..end].to_owned()));
                rest = &rest[end..];
            }
        }
        Ok(Pattern { parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found() {
        let pattern: Pattern = "nginx: {client} - {user} [{time}] \"{method} {path} ".parse().unwrap();
        let line =
            "<190>Nov 26 03:00:00 host nginx: 192.0.2.7 - - [26/Nov/2026:03:00:00 +0000] \"GET /a b HTTP/1.1\" 200";
        let fields = pattern.fields(line).unwrap();
        assert_eq!((fields["client"], fields["method"], fields["path"]), ("192.0.2.7", "GET", "/a"));
        assert_eq!(fields["time"], "26/Nov/2026:03:00:00 +0000");
        assert!(pattern.has("client") && !pattern.has("status"));
        for other in ["", "nginx:", "nginx: 192.0.2.7", "apache: 192.0.2.7 - - [x] \"GET / "] {
            assert_eq!(pattern.fields(other), None, "{other}");
        }
        let last: Pattern = "from {client}".parse().unwrap();
        assert_eq!(last.fields("a REGISTER from 2001:db8::1 came").unwrap()["client"], "2001:db8::1");
        assert_eq!(last.fields("from ").unwrap()["client"], "");
    }

    /// Goal: a client is its address whatever follows it, as HAProxy, Envoy and Apache write it. fail2ban/fail2ban 1745.
    #[test]
    fn a_clients_port_is_none_of_its_address() {
        let pattern: Pattern = "haproxy[{pid}]: {client}:{port} [".parse().unwrap();
        for (text, client) in [
            ("10.0.0.1:58340", "10.0.0.1"),
            ("2001:db8::1:58340", "2001:db8::1"),
            ("::1:1", "::1"),
            ("2001:67c:2564:ab0e:e93:3cf1:b20b:f512:39694", "2001:67c:2564:ab0e:e93:3cf1:b20b:f512"),
            ("::ffff:195.95.239.60:54241", "::ffff:195.95.239.60"),
            ("[2001:db8::1]:58340", "2001:db8::1"),
        ] {
            let line = format!("<134>Feb  9 17:28:18 haproxy[1540]: {text} [09/Feb/2021:17:28:18.698] https~ a/b 0/0");
            let fields = pattern.fields(&line).unwrap();
            assert_eq!(address(fields[CLIENT]), Some(client.parse().unwrap()), "{text}");
            assert_eq!(Some(fields["port"]), text.rsplit(':').next());
        }
        // A number is a port only where it is followed by what follows ports.
        let more: Pattern = "{client}:{port}:{server} ".parse().unwrap();
        let fields = more.fields("2001:db8::1:5060:web ").unwrap();
        assert_eq!((fields[CLIENT], fields["port"], fields["server"]), ("2001:db8::1", "5060", "web"));
        // What is no address ends before what follows it, as any field does.
        for (text, client) in [("unix:1", "unix"), (":1", "")] {
            assert_eq!(pattern.fields(&format!("haproxy[1]: {text} [")).unwrap()[CLIENT], client);
        }
        assert!(pattern.fields(&format!("haproxy[1]: {}", ":".repeat(8192))).is_none());
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in ["{client", "{}", "{a b}", "{a}{b}"] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }
}
