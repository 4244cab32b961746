// SPDX-License-Identifier: Apache-2.0
//! The topmost Via (RFC 3261 §18.2, RFC 3581).

use std::net::{IpAddr, SocketAddr};

/// The topmost Via of a request that came over UDP.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Via<'a> {
    /// The protocol and who sent it, as text.
    sent: &'a [u8],
    host: &'a [u8],
    /// The port that the sender listens on.
    pub(crate) port: u16,
    /// Whether the answer goes to the port that the request came from.
    pub(crate) has_rport: bool,
    /// Its parameters, of which some are not kept.
    parameters: Split<'a>,
}

impl<'a> Via<'a> {
    /// Returns the first Via of a header value, and the others in it.
    pub(crate) fn parse_first(value: &'a [u8]) -> Option<(Via<'a>, &'a [u8])> {
        let mut split = split_outside_quotes(value, b',');
        let (first, others) = (split.next()?, value.get(split.at..).unwrap_or_default().trim_ascii());
        let mut parts = split_outside_quotes(first, b';');
        let sent = parts.next()?.trim_ascii();
        let space = sent.iter().position(u8::is_ascii_whitespace)?;
        let (protocol, sent_by) = (&sent[..space], sent[space..].trim_ascii());
        if !protocol.eq_ignore_ascii_case(b"SIP/2.0/UDP") {
            return None;
        }
        let (host, port) = split_port(sent_by)?;
        let mut via = Via { sent, host, port, has_rport: false, parameters: parts };
        for parameter in parts {
            let name = name_of(parameter);
            if name.eq_ignore_ascii_case(b"maddr") {
                return None;
            }
            via.has_rport |= name.eq_ignore_ascii_case(b"rport");
        }
        Some((via, others))
    }

    /// Writes the Via with where the request really came from.
    pub(crate) fn write_as_received_from(&self, source: SocketAddr, text: &mut Vec<u8>) {
        text.extend_from_slice(self.sent);
        for parameter in self.parameters {
            let name = name_of(parameter);
            if !name.eq_ignore_ascii_case(b"rport") && !name.eq_ignore_ascii_case(b"received") {
                text.push(b';');
                text.extend_from_slice(parameter.trim_ascii());
            }
        }
        if self.has_rport || !is_address(self.host, source.ip()) {
            text.extend_from_slice(b";received=");
            put_address(text, source.ip());
        }
        if self.has_rport {
            text.extend_from_slice(b";rport=");
            put_number(text, source.port());
        }
    }
}

fn name_of(parameter: &[u8]) -> &[u8] {
    parameter.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii()
}

fn put_address(text: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            for (at, octet) in address.octets().into_iter().enumerate() {
                if at > 0 {
                    text.push(b'.');
                }
                put_number(text, octet.into());
            }
        }
        IpAddr::V6(address) => text.extend_from_slice(address.to_string().as_bytes()),
    }
}

/// Writes a number as text, which the formatting of the standard library takes ten times as long for.
fn put_number(text: &mut Vec<u8>, mut number: u16) {
    let mut digits = [0; 5];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + u8::try_from(number % 10).expect("one digit");
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[first..]);
}

fn is_address(host: &[u8], address: IpAddr) -> bool {
    let bare = host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")).unwrap_or(host);
    std::str::from_utf8(bare).ok().and_then(|host| host.parse::<IpAddr>().ok()) == Some(address)
}

/// Splits `host`, `host:port` or `[address]:port`.
fn split_port(sent_by: &[u8]) -> Option<(&[u8], u16)> {
    let host_end = match sent_by.first()? {
        b'[' => sent_by.iter().position(|byte| *byte == b']')? + 1,
        _ => sent_by.iter().position(|byte| *byte == b':').unwrap_or(sent_by.len()),
    };
    let (host, rest) = (sent_by[..host_end].trim_ascii(), sent_by[host_end..].trim_ascii());
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(byte);
    if host.is_empty() || !host.iter().all(is_plain) {
        return None;
    }
    if rest.is_empty() {
        return Some((host, DEFAULT_PORT));
    }
    let digits = rest.strip_prefix(b":")?.trim_ascii();
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some((host, std::str::from_utf8(digits).ok()?.parse().ok()?))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Split<'a> {
    bytes: &'a [u8],
    separator: u8,
    /// Where the next part starts; beyond the end if there is none.
    at: usize,
}

fn split_outside_quotes(bytes: &[u8], separator: u8) -> Split<'_> {
    Split { bytes, separator, at: 0 }
}

impl<'a> Iterator for Split<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let (mut quoted, mut escaped) = (false, false);
        let end = rest.iter().position(|byte| {
            let was_escaped = std::mem::take(&mut escaped);
            match byte {
                b'\\' if quoted && !was_escaped => escaped = true,
                b'"' if !was_escaped => quoted = !quoted,
                _ => {}
            }
            *byte == self.separator && !quoted
        });
        let end = end.unwrap_or(rest.len());
        self.at += end + 1;
        Some(&rest[..end])
    }
}

/// RFC 3261 §18.2.2.
const DEFAULT_PORT: u16 = 5060;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, source: &str, expected: &str, port: u16) {
        let (via, _) = Via::parse_first(value.as_bytes()).unwrap();
        let source = source.parse().unwrap();
        let mut text = Vec::new();
        via.write_as_received_from(source, &mut text);
        assert_eq!(String::from_utf8(text).unwrap(), expected);
        assert_eq!(if via.has_rport { source.port() } else { via.port }, port);
    }

    #[test]
    fn the_source_is_put_in() {
        check(
            "SIP/2.0/UDP 10.0.0.5:5062;branch=z9hG4bK1",
            "10.0.0.5:40000",
            "SIP/2.0/UDP 10.0.0.5:5062;branch=z9hG4bK1",
            5062,
        );
        check(
            "SIP/2.0/UDP 10.0.0.5;branch=z9hG4bK1",
            "192.0.2.9:40000",
            "SIP/2.0/UDP 10.0.0.5;branch=z9hG4bK1;received=192.0.2.9",
            5060,
        );
        check(
            "SIP/2.0/UDP 10.0.0.5;rport;branch=z9hG4bK1",
            "10.0.0.5:40000",
            "SIP/2.0/UDP 10.0.0.5;branch=z9hG4bK1;received=10.0.0.5;rport=40000",
            40000,
        );
        check(
            "sip/2.0/udp  phone.example:5061 ; received=6.6.6.6 ;rport=1;x=\"a;b\"",
            "192.0.2.9:40000",
            "sip/2.0/udp  phone.example:5061;x=\"a;b\";received=192.0.2.9;rport=40000",
            40000,
        );
        check(
            "SIP/2.0/UDP [2001:db8::5]:5062;branch=z",
            "[2001:db8::5]:5062",
            "SIP/2.0/UDP [2001:db8::5]:5062;branch=z",
            5062,
        );
    }

    #[test]
    fn numbers_are_written_as_everywhere() {
        for number in 0..=u16::MAX {
            let mut text = Vec::new();
            put_number(&mut text, number);
            assert_eq!(text, number.to_string().as_bytes());
        }
    }

    #[test]
    fn the_other_vias_stay() {
        let (via, others) = Via::parse_first(b"SIP/2.0/UDP a;x=\"1,2\" , SIP/2.0/UDP b, SIP/2.0/TCP c").unwrap();
        assert_eq!((via.host, others), (&b"a"[..], &b"SIP/2.0/UDP b, SIP/2.0/TCP c"[..]));
    }

    #[test]
    fn other_transports_and_damage_are_nothing() {
        for value in [
            "",
            "SIP/2.0/UDP",
            "SIP/2.0/UDP ;branch=1",
            "SIP/2.0/TCP a",
            "SIP/2.0/UDP a:port",
            "SIP/2.0/UDP a:70000",
            "SIP/2.0/UDP a:",
            "SIP/2.0/UDP [::1",
            "SIP/2.0/UDP a b",
            "SIP/2.0/UDP a;maddr=239.1.1.1",
        ] {
            assert_eq!(Via::parse_first(value.as_bytes()), None, "{value}");
        }
    }
}
