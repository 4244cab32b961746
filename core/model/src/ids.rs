// SPDX-License-Identifier: Apache-2.0
//! Names and identifiers as types of their own, so that none is taken for another.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;

/// Names one effect, from the moment that it is wanted to its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EffectId(pub u64);

/// Text that is not an identifier of the wanted kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {wanted}")]
pub struct ParseIdError {
    /// The offending text, cut to 80 characters.
    pub text: String,
    /// What was wanted, as a noun phrase.
    pub wanted: &'static str,
}

impl ParseIdError {
    pub(crate) fn new(text: &str, wanted: &'static str) -> ParseIdError {
        ParseIdError { text: text.chars().take(80).collect(), wanted }
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $wanted:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Returns the identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<$name, ParseIdError> {
                let check: fn(&str) -> bool = $check;
                if check(text) { Ok($name(text.to_owned())) } else { Err(ParseIdError::new(text, $wanted)) }
            }
        }

        impl TryFrom<String> for $name {
            type Error = ParseIdError;

            fn try_from(text: String) -> Result<$name, ParseIdError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// A user: who owns modules and signs requests. 1–32 characters of `a-z 0-9 - _ .`, starting with a letter.
    UserId, "a user name (1-32 characters of a-z 0-9 - _ ., starting with a letter)", is_user_name
}

text_id! {
    /// A node's own name, shown in response stacks. 1–64 characters of `a-z A-Z 0-9 - _ .`.
    NodeId, "a node name (1-64 characters of a-z A-Z 0-9 - _ .)", is_node_name
}

text_id! {
    /// An operator's domain, as in the DNS: `isp.example`. At most 128 characters, in lower case.
    DomainName, "a domain such as isp.example, in lower case", is_domain_name
}

text_id! {
    /// A module's unique name, a domain and a path: `example.org/net-monitor`. At most 128 characters.
    ModuleName, "a module name such as example.org/net-monitor", is_module_name
}

text_id! {
    /// What a control message to or from a module is about. 1–64 visible ASCII characters.
    Topic, "a topic (1-64 visible ASCII characters, without spaces)", is_topic
}

/// A module at one version: `example.org/net-monitor@1.2.0`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct ModuleRef {
    /// The unique name.
    pub name: ModuleName,
    /// The semantic version.
    pub version: semver::Version,
}

impl FromStr for ModuleRef {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<ModuleRef, ParseIdError> {
        let wanted = "a module reference such as example.org/net-monitor@1.2.0";
        let (name, version) = text.rsplit_once('@').ok_or_else(|| ParseIdError::new(text, wanted))?;
        let version = version.parse().map_err(|_| ParseIdError::new(text, wanted))?;
        Ok(ModuleRef { name: name.parse()?, version })
    }
}

impl TryFrom<String> for ModuleRef {
    type Error = ParseIdError;

    fn try_from(text: String) -> Result<ModuleRef, ParseIdError> {
        text.parse()
    }
}

impl From<ModuleRef> for String {
    fn from(module: ModuleRef) -> String {
        module.to_string()
    }
}

impl fmt::Display for ModuleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.version)
    }
}

macro_rules! byte_id {
    ($(#[$doc:meta])* $name:ident, $bytes:literal, $prefix:literal, $wanted:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(pub [u8; $bytes]);

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<$name, ParseIdError> {
                let bytes = text.strip_prefix($prefix).and_then(parse_hex);
                bytes.map($name).ok_or_else(|| ParseIdError::new(text, $wanted))
            }
        }

        impl TryFrom<String> for $name {
            type Error = ParseIdError;

            fn try_from(text: String) -> Result<$name, ParseIdError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($prefix)?;
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

byte_id! {
    /// The digest of a module package: the SHA-256 of its OCI image manifest, written `sha256:<64 hex digits>`.
    Digest, 32, "sha256:", "a digest such as sha256:<64 hex digits>"
}

byte_id! {
    /// An Ed25519 public key, written `ed25519:<64 hex digits>`.
    PublicKey, 32, "ed25519:", "a public key such as ed25519:<64 hex digits>"
}

byte_id! {
    /// An Ed25519 signature, written `ed25519:<128 hex digits>`.
    Signature, 64, "ed25519:", "a signature such as ed25519:<128 hex digits>"
}

byte_id! {
    /// Sixteen random bytes that make a request unique within its user.
    Nonce, 16, "", "a nonce of 32 hex digits"
}

byte_id! {
    /// The 128-bit session identifier of RFC 5971 §3.7: one per signaling session, the same along the whole path.
    SessionId, 16, "", "a session id of 32 hex digits"
}

impl SessionId {
    /// Returns the session of the way back, on which the last node sends a request to its requester. Its own way back is the first
    /// one again, so that a request cannot go to and fro.
    #[must_use]
    pub fn twin(self) -> SessionId {
        SessionId(self.0.map(|byte| !byte))
    }

    /// Returns the one of both ways that stands for both.
    #[must_use]
    pub fn either_way(self) -> SessionId {
        self.min(self.twin())
    }

    /// Returns what sessions have in common that one client has for one module and path, whichever nodes each is for: the first half
    /// of their names, whichever way.
    #[must_use]
    pub fn family(self) -> SessionId {
        let SessionId(mut bytes) = self.either_way();
        bytes[8..].fill(0);
        SessionId(bytes)
    }
}

fn is_user_name(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b);
    (1..=limits::USER_NAME_CHARS_MAX).contains(&text.len())
        && text.bytes().all(allowed)
        && text.as_bytes()[0].is_ascii_lowercase()
}

fn is_node_name(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    (1..=limits::NODE_NAME_CHARS_MAX).contains(&text.len()) && text.bytes().all(allowed)
}

fn is_domain_name(text: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    text.len() <= limits::DOMAIN_NAME_CHARS_MAX && text.split('.').all(label)
}

fn is_topic(text: &str) -> bool {
    (1..=limits::TOPIC_CHARS_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}

fn is_module_name(text: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['-', '.'])
            && !part.ends_with(['-', '.'])
            && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._".contains(&b))
    };
    text.len() <= limits::MODULE_NAME_CHARS_MAX && text.contains('/') && text.split('/').all(part)
}

fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let text = text.as_bytes();
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = hex_digit(pair[0])? << 4 | hex_digit(pair[1])?;
    }
    Some(bytes)
}

/// Only lower case, so that every value has one spelling and signatures cover one text.
fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_to_their_alphabet() {
        assert!("janedoe".parse::<UserId>().is_ok());
        for bad in ["", "Jane", "1jane", "jane doe", "jane/doe", "a23456789012345678901234567890123"] {
            assert!(bad.parse::<UserId>().is_err(), "{bad}");
        }
        for good in ["a", "purge", "rate/limit:v2", "~!", &"t".repeat(64)] {
            assert_eq!(good.parse::<Topic>().unwrap().as_str(), good);
        }
        for bad in ["", " ", "a b", "a\n", "ü", "\u{7f}", &"t".repeat(65)] {
            assert!(bad.parse::<Topic>().is_err(), "{bad}");
        }
        for good in ["isp.example", "lab", "xn--e1afmkfd.example", &"d".repeat(128)] {
            assert_eq!(good.parse::<DomainName>().unwrap().as_str(), good);
        }
        for bad in
            ["", "ISP.example", "isp.", ".isp", "isp..example", "-isp", "isp-", "is p", "*.isp", &"d".repeat(129)]
        {
            assert!(bad.parse::<DomainName>().is_err(), "{bad}");
        }
        assert!("example.org/net-monitor".parse::<ModuleName>().is_ok());
        for bad in
            ["net-monitor", "example.org/", "../etc/passwd", "example.org/../x", "example.org//x", "Example.org/x"]
        {
            assert!(bad.parse::<ModuleName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn module_references_round_trip() {
        let text = "example.org/net-monitor@1.2.0-rc.1";
        assert_eq!(text.parse::<ModuleRef>().unwrap().to_string(), text);
        for bad in ["example.org/net-monitor", "example.org/net-monitor@1", "@1.0.0"] {
            assert!(bad.parse::<ModuleRef>().is_err(), "{bad}");
        }
    }

    #[test]
    fn byte_identifiers_have_one_spelling() {
        let text = format!("sha256:{}", "9f".repeat(32));
        assert_eq!(text.parse::<Digest>().unwrap().to_string(), text);
        assert!(text.to_uppercase().parse::<Digest>().is_err());
        assert!(format!("sha256:{}", "9f".repeat(31)).parse::<Digest>().is_err());
        assert!("9f".repeat(32).parse::<Digest>().is_err());
    }
}
