// SPDX-License-Identifier: Apache-2.0
//! Which requests are of an emergency: they always go on (RFC 7339 §5.10.1).

use netserv_sip::Request;
use netserv_sip::message::{address, list};

use crate::bindings::unescaped;

/// What is of an emergency, beside `urn:service:sos` (RFC 5031) and `Priority: emergency` (RFC 3261 §20.26).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emergency {
    users: Vec<Vec<u8>>,
    namespaces: Vec<Vec<u8>>,
}

/// What phones dial, as the property `emergency` has it if nobody says otherwise. Other numbers are ordinary ones somewhere.
pub const USERS: &str = "112 911 999 000 sos";
/// Namespaces of `Resource-Priority` (RFC 4412, RFC 7135), as the property `emergency-namespaces` has them.
pub const NAMESPACES: &str = "esnet ets wps";
/// Words of each property; further ones do not count.
pub const WORDS_MAX: usize = 64;

impl Default for Emergency {
    fn default() -> Emergency {
        Emergency::new(USERS, NAMESPACES)
    }
}

impl Emergency {
    /// Takes users of URIs, such as dialled numbers, and namespaces, with spaces between.
    pub fn new(users: &str, namespaces: &str) -> Emergency {
        let words = |text: &str| {
            text.split_ascii_whitespace().take(WORDS_MAX).map(|word| word.to_ascii_lowercase().into_bytes()).collect()
        };
        Emergency { users: words(users), namespaces: words(namespaces) }
    }

    /// Returns whether a request is of an emergency. Who says so is believed.
    pub fn is(&self, request: &Request<'_>) -> bool {
        let has_priority = request.priority().is_some_and(|priority| priority.eq_ignore_ascii_case(b"emergency"));
        let mut values = request.resource_priorities().iter().flat_map(|value| list(value));
        has_priority
            || values.any(|value| self.is_namespace(value))
            || self.is_uri(request.uri())
            || address(request.to()).is_some_and(|(uri, _)| self.is_uri(uri))
    }

    fn is_namespace(&self, value: &[u8]) -> bool {
        let namespace = value.split(|byte| *byte == b'.').next().unwrap_or_default();
        self.namespaces.iter().any(|known| known.eq_ignore_ascii_case(namespace))
    }

    fn is_uri(&self, uri: &[u8]) -> bool {
        let after = |scheme: &[u8]| {
            let start = uri.get(..scheme.len()).filter(|start| start.eq_ignore_ascii_case(scheme));
            start.map(|_| &uri[scheme.len()..])
        };
        if let Some(rest) = after(SOS) {
            return matches!(rest.first(), None | Some(b'.' | b';' | b'?'));
        }
        let user = match after(b"sip:").or_else(|| after(b"sips:")) {
            Some(rest) => rest.iter().position(|byte| *byte == b'@').map(|at| &rest[..at]),
            None => after(b"tel:"),
        };
        user.is_some_and(|user| self.is_user(user))
    }

    /// Compares the user of a URI, or a number, without its parameters and password, and without what only makes it legible (RFC 3966 §5.1.1).
    fn is_user(&self, user: &[u8]) -> bool {
        let end = user.iter().position(|byte| matches!(byte, b';' | b':')).unwrap_or(user.len());
        let mut plain = unescaped(&user[..end.min(USER_BYTES_MAX)]).to_ascii_lowercase();
        plain.retain(|byte| !b"-.()".contains(byte));
        let plain = plain.strip_prefix(b"+").unwrap_or(&plain);
        self.users.iter().any(|known| known == plain)
    }
}

const SOS: &[u8] = b"urn:service:sos";
/// Bytes of a user that are compared.
const USER_BYTES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str, to: &str, more: &str) -> String {
        format!(
            "INVITE {uri} SIP/2.0\r\nVia: SIP/2.0/UDP 10.0.0.5;branch=z9hG4bK1\r\nFrom: <sip:a@b>;tag=1\r\nTo: {to}\r\n\
             Call-ID: 1\r\nCSeq: 1 INVITE\r\n{more}\r\n"
        )
    }

    /// Goal: emergency calls continue, however they are dialled or marked: `urn:service:sos`, numbers and users of a property
    /// in `sip:`, `sips:` and `tel:`, `Priority: emergency`, and namespaces of `Resource-Priority`.
    #[test]
    fn calls_of_an_emergency_are_known_however_they_are_written() {
        let known = Emergency::default();
        let is =
            |uri: &str, to: &str, more: &str| known.is(&Request::parse(request(uri, to, more).as_bytes()).unwrap());
        for uri in [
            "urn:service:sos",
            "URN:service:SOS.police",
            "sip:112@example.org;user=phone",
            "sips:911@example.org",
            "sip:+1-1.2@example.org",
            "sip:%31%31%32:secret@example.org",
            "sip:112;phone-context=+49@example.org",
            "SIP:SOS@example.org",
            "tel:112",
            "tel:9-1-1;phone-context=+1",
        ] {
            assert!(is(uri, "<sip:x@y>", ""), "{uri}");
            assert!(is("sip:x@y", &format!("\"Help\" <{uri}>"), ""), "{uri}");
        }
        for more in [
            "Priority: emergency\r\n",
            "Priority: Emergency\r\n",
            "Resource-Priority: esnet.1\r\n",
            "resource-priority: dsn.flash , WPS.0\r\n",
            "Resource-Priority: q735.0\r\nResource-Priority: ets.4\r\n",
        ] {
            assert!(is("sip:x@y", "<sip:x@y>", more), "{more}");
        }
        for uri in [
            "sip:112",
            "sip:1120@example.org",
            "sip:x@112",
            "sip:112x@example.org",
            "sip:%zz@example.org",
            "sip:%3@example.org",
            "urn:service:sosnot",
            "sip:urn:service:sos@x",
            "tel:1122",
            "sip:@example.org",
        ] {
            assert!(!is(uri, "<sip:x@y>", ""), "{uri}");
        }
        for more in [
            "Priority: urgent\r\n",
            "Resource-Priority: dsn.flash\r\n",
            "Resource-Priority: esnetx.1\r\n",
            "X: esnet.1\r\n",
        ] {
            assert!(!is("sip:x@y", "<sip:x@y>", more), "{more}");
        }
        let other = Emergency::new("144", "dsn");
        let of = |uri: &str, more: &str| other.is(&Request::parse(request(uri, "<sip:x@y>", more).as_bytes()).unwrap());
        assert!(of("sip:144@x", "") && of("sip:x@y", "Resource-Priority: dsn.flash\r\n"));
        assert!(!of("sip:112@x", "") && of("urn:service:sos", ""));
    }
}
