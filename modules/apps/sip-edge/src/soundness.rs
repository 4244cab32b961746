// SPDX-License-Identifier: Apache-2.0
//! Whether a request that is answered in the server's place is sound: one that is damaged gets the server's own answer (RFC 3261 §8.2, §16.3).

use netserv_sip::message::{
    CALL_ID, CONTACT, CONTENT_LENGTH, CSEQ, FROM, Head, Name, TO, VIA, address, cseq, list, number, tag,
};

const MAX_FORWARDS: Name = Name("max-forwards", "max-forwards");

/// Returns whether all headers by which a server judges a ping are as RFC 3261 §25.1 has them, and it has no body.
pub fn is_sound(message: &[u8]) -> bool {
    let Some(head) = Head::parse(message) else { return false };
    let mut words = head.first.split(|byte| *byte == b' ');
    let is_uri = words.nth(1).is_some_and(|uri| is_uri(uri) && !uri.contains(&b'?'));
    is_uri
        && head.headers.iter().all(|(_, value)| is_text(value))
        && [FROM, TO].iter().all(|name| head.only(*name).is_some_and(is_address))
        && head.only(FROM).is_some_and(|from| tag(from).is_some_and(|tag| !tag.is_empty()))
        && head.only(CALL_ID).is_some_and(is_word)
        && head.only(CSEQ).and_then(cseq).is_some_and(|(number, _)| number < CSEQ_END)
        && head.all(VIA).flat_map(list).all(is_via)
        && head.all(CONTACT).flat_map(list).all(is_address)
        && counts(&head, MAX_FORWARDS).is_some_and(|hops| hops.is_none_or(|hops| hops <= MAX_FORWARDS_MAX))
        && match counts(&head, CONTENT_LENGTH) {
            Some(Some(length)) => length == 0,
            // Without a length, a datagram's body goes to its end.
            Some(None) => message.len() == head.length,
            None => false,
        }
}

/// Returns the number that a header has, if there is one; nothing if it is none, or there are several.
fn counts(head: &Head<'_>, name: Name) -> Option<Option<u32>> {
    let mut all = head.all(name);
    match (all.next(), all.next()) {
        (None, _) => Some(None),
        (Some(value), None) => number(value).map(Some),
        (Some(_), Some(_)) => None,
    }
}

/// Returns whether a value is text in UTF-8 without controls; lines may go on.
fn is_text(value: &[u8]) -> bool {
    let is_shown = |byte: &u8| !byte.is_ascii_control() || matches!(byte, b'\t' | b'\r' | b'\n');
    value.iter().all(is_shown) && std::str::from_utf8(value).is_ok()
}

/// Returns whether a value is a URI, with a name and parameters.
fn is_address(value: &[u8]) -> bool {
    let Some((uri, rest)) = address(value) else { return false };
    let quotes =
        value.iter().filter(|byte| **byte == b'"').count() - value.windows(2).filter(|two| two == b"\\\"").count();
    is_uri(uri) && quotes % 2 == 0 && (rest.is_empty() || rest.starts_with(b";"))
}

/// Returns whether a text is a URI, as far as all have it; of SIP with a host and a port.
fn is_uri(uri: &[u8]) -> bool {
    let Some(colon) = uri.iter().position(|byte| *byte == b':') else { return false };
    let (scheme, rest) = (&uri[..colon], &uri[colon + 1..]);
    let is_known = scheme.eq_ignore_ascii_case(b"sip") || scheme.eq_ignore_ascii_case(b"sips");
    let is_scheme = scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
    let is_text = rest.iter().all(|byte| byte.is_ascii_graphic() && !b"<>\"\\^`{|}".contains(byte));
    is_scheme && is_text && escapes_are_whole(rest) && !rest.is_empty() && (!is_known || is_host(rest))
}

fn escapes_are_whole(text: &[u8]) -> bool {
    let is_whole = |rest: &[u8]| matches!(rest, [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
    text.iter().enumerate().all(|(at, byte)| *byte != b'%' || is_whole(&text[at + 1..]))
}

/// Returns whether a URI of SIP, without its scheme, has a host, and a port if it has a colon.
fn is_host(rest: &[u8]) -> bool {
    let end = rest.iter().position(|byte| matches!(byte, b';' | b'?')).unwrap_or(rest.len());
    // A user may have both.
    let at = rest.iter().rposition(|byte| *byte == b'@').map_or(0, |at| at + 1);
    let end = if at > end {
        rest[at..].iter().position(|byte| matches!(byte, b';' | b'?')).map_or(rest.len(), |end| at + end)
    } else {
        end
    };
    let host_port = &rest[at..end];
    let (host, port) = match host_port.strip_prefix(b"[") {
        Some(inner) => {
            let Some(close) = inner.iter().position(|byte| *byte == b']') else { return false };
            let is_v6 =
                std::str::from_utf8(&inner[..close]).is_ok_and(|text| text.parse::<std::net::Ipv6Addr>().is_ok());
            (is_v6, &inner[close + 1..])
        }
        None => {
            let colon = host_port.iter().position(|byte| *byte == b':').unwrap_or(host_port.len());
            let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
            (colon > 0 && host_port[..colon].iter().all(is_name), &host_port[colon..])
        }
    };
    let is_port = |digits: &[u8]| number(digits).is_some_and(|port| (1..=65_535).contains(&port));
    host && (port.is_empty() || port.strip_prefix(b":").is_some_and(is_port))
}

/// Returns whether one Via is of SIP, with who sent it.
fn is_via(via: &[u8]) -> bool {
    let mut words = via.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let is_protocol = words.next().is_some_and(|word| word.to_ascii_uppercase().starts_with(b"SIP/2.0/"));
    is_protocol && words.next().is_some_and(|by| !by.starts_with(b";"))
}

/// Returns whether a value is one word, as Call-IDs are.
fn is_word(value: &[u8]) -> bool {
    value.iter().all(u8::is_ascii_graphic)
}

/// RFC 3261 §8.1.1.5.
const CSEQ_END: u32 = 1 << 31;
/// RFC 3261 §20.22.
const MAX_FORWARDS_MAX: u32 = 255;

#[cfg(test)]
mod tests {
    use super::*;

    const PING: &str = "OPTIONS sip:example.com SIP/2.0\r\nVia: SIP/2.0/UDP 10.0.0.5:5060;branch=z9hG4bK1;rport\r\n\
        From: \"A \\\" b\" <sip:alice@example.com;x=y>;tag=42\r\nTo: sip:example.com\r\nCall-ID: 1234@10.0.0.5\r\n\
        CSeq: 7 OPTIONS\r\nMax-Forwards: 70\r\nContact: <sip:alice@[2001:db8::5]:5060;ob>\r\nContent-Length: 0\r\n\r\n";

    /// Goal: what phones send is sound, and each kind of damage is the server's, whatever else is right.
    #[test]
    fn damage_is_the_servers_to_judge() {
        assert!(is_sound(PING.as_bytes()));
        for (from, to) in [
            ("Content-Length: 0\r\n", ""),
            ("Max-Forwards: 70\r\n", ""),
            ("sip:example.com SIP", "sip:192.0.2.7:5061;transport=udp SIP"),
            ("To: sip:example.com", "To: <tel:+49-30-1;phone-context=x>"),
            ("Max-Forwards: 70", "Max-Forwards: 0"),
            ("Contact: ", "Subject: \u{fc}ber\r\nContact: "),
            ("Content-Length: 0\r\n\r\n", "l: 0\r\n\r\nbeyond its length"),
            ("alice@[2001:db8::5]:5060;ob>", "alice;x=a@b.example?h=v>"),
        ] {
            let text = PING.replacen(from, to, 1);
            assert!(text != PING && is_sound(text.as_bytes()), "{text}");
        }
        for (from, to) in [
            ("CSeq: 7", "CSeq: 2147483648"),
            ("CSeq: 7", "CSeq: 99999999999"),
            ("Max-Forwards: 70", "Max-Forwards: 256"),
            ("Max-Forwards: 70", "Max-Forwards: seventy"),
            ("Max-Forwards: 70", "Max-Forwards: 70\r\nMax-Forwards: 70"),
            ("Content-Length: 0", "Content-Length: -1"),
            ("Content-Length: 0", "Content-Length: 9999"),
            ("Content-Length: 0", "Content-Length: 0\r\nl: 0"),
            ("Content-Length: 0\r\n\r\n", "\r\nbody"),
            (";tag=42", ""),
            (";tag=42", ";tag="),
            (";tag=42", " tag=42"),
            ("<sip:alice@example.com;x=y>", "<sip:alice@example.com;x=y"),
            ("<sip:alice@example.com;x=y>", "<alice>"),
            ("\"A \\\" b\"", "\"A"),
            ("To: sip:example.com", "To: sip:"),
            ("To: sip:example.com", "To: <sip:exa mple.com>"),
            ("To: sip:example.com", "To: <sip:a%4@example.com>"),
            ("sip:example.com SIP", "sip:example.com:99999 SIP"),
            ("sip:example.com SIP", "sip:example.com:x SIP"),
            ("sip:example.com SIP", "sip:example.com?h=v SIP"),
            ("sip:example.com SIP", "<sip:example.com> SIP"),
            ("sip:example.com SIP", "sip:[2001:db8::x] SIP"),
            ("1234@10.0.0.5", "1234 @10.0.0.5"),
            ("Contact: <sip:alice", "Contact: <sip:alice> junk, <sip:alice"),
            ("Contact: ", "Via: HTTP/1.1 x\r\nContact: "),
            ("Contact: ", "Via: SIP/2.0/UDP ;branch=1\r\nContact: "),
            ("Contact: ", "Subject: \u{1}\r\nContact: "),
        ] {
            let text = PING.replacen(from, to, 1);
            assert!(text != PING && !is_sound(text.as_bytes()), "{text}");
        }
        let no_utf8 = [PING.as_bytes(), b""].concat();
        let at = PING.find("Max").unwrap();
        let no_utf8 = [&no_utf8[..at], b"Subject: \xff\r\n", &no_utf8[at..]].concat();
        assert!(!is_sound(&no_utf8));
        // Bytes of strangers end nothing.
        for length in 0..PING.len() {
            let _ = is_sound(&PING.as_bytes()[..length]);
            let mut damaged = PING.as_bytes().to_vec();
            damaged[length] = b'%';
            let _ = is_sound(&damaged);
        }
    }
}
