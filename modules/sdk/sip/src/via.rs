// SPDX-License-Identifier: Apache-2.0
//! The topmost Via (RFC 3261 §18.2, RFC 3581).

use std::net::{IpAddr, SocketAddr};

use netserv_sdk::text::{ByteSet, Writer};

use crate::grammar::{is_text, quote_end};

/// What a request came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams.
    Udp,
    /// A connection, on which the server may see another port of the client's than the one that is seen here.
    Tcp(Rport),
}

/// What the server says to `rport` on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rport {
    /// It has said nothing yet.
    Unknown,
    /// It does not speak RFC 3581.
    Bare,
    /// This port.
    Port(u16),
}

/// Which datagrams without `rport` are answered as if they had it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forced {
    /// None: answers go to the port of the Via (RFC 3261 §18.2.2).
    Never,
    /// Those whose Via names another address than the one that they come from: behind a NAT, that port may be somebody else's.
    #[default]
    BehindNat,
    /// All.
    Always,
}

/// What the topmost Via of a request says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Top<'a> {
    /// The port that the sender listens on.
    pub(crate) port: u16,
    /// Whether the answer goes to the port that the request came from.
    pub(crate) has_rport: bool,
    /// Whether the Via names another address than the one that the request came from, and does not ask for its port.
    pub(crate) is_behind_nat: bool,
    /// The other Vias in the same header.
    pub(crate) others: &'a [u8],
}

/// Writes the first Via of a header value with where the request really came from, and returns what it says.
///
/// Returns nothing if it is damaged or asks for another transport or address; what was written has no meaning then.
#[inline(always)]
pub(crate) fn answer_first<'a>(
    value: &'a [u8],
    source: SocketAddr,
    transport: Transport,
    text: &mut Writer<'_>,
) -> Option<Top<'a>> {
    let mut end = part_end(value, 0);
    let sent = value[..end].trim_ascii();
    let expected = match transport {
        Transport::Udp => OVER_UDP,
        Transport::Tcp(_) => OVER_TCP,
    };
    let (protocol, sent_by) = sent.split_at_checked(expected.len())?;
    if !is_text(protocol, expected) || !sent_by.first()?.is_ascii_whitespace() {
        return None;
    }
    let (host, port) = split_port(sent_by.trim_ascii())?;
    text.put(sent);
    let mut has_rport = false;
    while value.get(end) == Some(&b';') {
        let start = end + 1;
        end = part_end(value, start);
        match Parameter::of(&value[start..end]) {
            Parameter::Maddr => return None,
            Parameter::Rport => has_rport = true,
            Parameter::Received => {}
            Parameter::Other(parameter) => {
                text.put(b";");
                text.put(parameter);
            }
        }
    }
    let named = if has_rport { None } else { address_of(host) };
    if has_rport || named != Some(source.ip()) {
        text.put(b";received=");
        put_address(text, source.ip());
    }
    if has_rport {
        text.put(b";rport");
        let said = match transport {
            Transport::Udp => Some(source.port()),
            Transport::Tcp(Rport::Port(port)) => Some(port),
            Transport::Tcp(Rport::Bare | Rport::Unknown) => None,
        };
        if let Some(port) = said {
            text.put(b"=");
            text.put_number(port);
        }
    }
    let is_behind_nat = named.is_some_and(|named| named != source.ip());
    Some(Top { port, has_rport, is_behind_nat, others: value.get(end + 1..).unwrap_or_default().trim_ascii() })
}

enum Parameter<'a> {
    Maddr,
    Rport,
    Received,
    Other(&'a [u8]),
}

impl Parameter<'_> {
    fn of(text: &[u8]) -> Parameter<'_> {
        let text = text.trim_ascii();
        // By the first letter first: most parameters are none of these.
        if !matches!(text.first(), Some(b'm' | b'M' | b'r' | b'R')) {
            return Parameter::Other(text);
        }
        if text == b"rport" {
            return Parameter::Rport;
        }
        let name = text[..EQUALS.find(text, 0)].trim_ascii_end();
        match name.len() {
            5 if is_text(name, b"maddr") => Parameter::Maddr,
            5 if is_text(name, b"rport") => Parameter::Rport,
            8 if is_text(name, b"received") => Parameter::Received,
            _ => Parameter::Other(text),
        }
    }
}

/// Returns where the part ends that starts at `start`: at a semicolon or comma outside quotes, or at the end.
fn part_end(value: &[u8], start: usize) -> usize {
    let mut end = PART_STOPS.find(value, start);
    while value.get(end) == Some(&b'"') {
        end = PART_STOPS.find(value, quote_end(value, end) + 1);
    }
    end
}

#[inline(always)]
fn put_address(text: &mut Writer<'_>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets().map(u16::from);
            text.put_number(a);
            for octet in [b, c, d] {
                text.put(b".");
                text.put_number(octet);
            }
        }
        IpAddr::V6(address) => text.put(address.to_string().as_bytes()),
    }
}

fn address_of(host: &[u8]) -> Option<IpAddr> {
    let bare = host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")).unwrap_or(host);
    std::str::from_utf8(bare).ok()?.parse().ok()
}

/// Splits `host`, `host:port` or `[address]:port`.
fn split_port(sent_by: &[u8]) -> Option<(&[u8], u16)> {
    let (name, bracket) = match sent_by.first()? {
        b'[' => (&ADDRESS_V6, 1),
        _ => (&HOST, 0),
    };
    let host_end = name.find_other(sent_by, bracket) + bracket;
    let (host, rest) = sent_by.split_at_checked(host_end)?;
    let rest = rest.trim_ascii();
    if host.is_empty() || bracket == 1 && !host.ends_with(b"]") {
        return None;
    }
    if rest.is_empty() {
        return Some((host, DEFAULT_PORT));
    }
    let digits = rest.strip_prefix(b":")?.trim_ascii();
    let port = digits.iter().try_fold(0_u16, |port, digit| {
        let digit = digit.is_ascii_digit().then(|| u16::from(digit - b'0'))?;
        port.checked_mul(10)?.checked_add(digit)
    });
    Some((host, port.filter(|_| !digits.is_empty())?))
}

const OVER_UDP: &[u8; 11] = b"SIP/2.0/UDP";
const OVER_TCP: &[u8; 11] = b"SIP/2.0/TCP";
const PART_STOPS: ByteSet = ByteSet::of(b";,\"");
const EQUALS: ByteSet = ByteSet::of(b"=");
const HOST: ByteSet = ByteSet::of(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._");
const ADDRESS_V6: ByteSet = ByteSet::of(b"abcdefABCDEF0123456789:.");
/// RFC 3261 §18.2.2.
const DEFAULT_PORT: u16 = 5060;

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(value: &str, source: &str) -> Option<(String, u16, String)> {
        let source = source.parse().unwrap();
        let mut room = [0; 200];
        let mut writer = Writer::new(&mut room);
        let top = answer_first(value.as_bytes(), source, Transport::Udp, &mut writer)?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let port = if top.has_rport { source.port() } else { top.port };
        Some((text(writer.finish().unwrap()), port, text(top.others)))
    }

    fn check(value: &str, source: &str, expected: &str, port: u16) {
        assert_eq!(answer(value, source), Some((expected.to_owned(), port, String::new())));
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
    fn the_other_vias_stay() {
        let (first, _, others) =
            answer("SIP/2.0/UDP a;x=\"1,\\\"2\" , SIP/2.0/UDP b, SIP/2.0/TCP c", "192.0.2.9:1").unwrap();
        assert_eq!(first, "SIP/2.0/UDP a;x=\"1,\\\"2\";received=192.0.2.9");
        assert_eq!(others, "SIP/2.0/UDP b, SIP/2.0/TCP c");
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
            "SIP/2.0/UDP a[b]",
            "SIP/2.0/UDP [phone]:5060",
            "SIP/2.0/UDP a;maddr=239.1.1.1",
        ] {
            assert_eq!(answer(value, "192.0.2.9:1"), None, "{value}");
        }
    }
}
