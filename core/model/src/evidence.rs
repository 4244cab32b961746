// SPDX-License-Identifier: Apache-2.0
//! What the rights of users come from whom no configuration names.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::ids::ParseIdError;
use crate::limits::CHECKLIST_BYTES_MAX;
use crate::{Nonce, PublicKey, UnixTime};

/// What a request says by which an address vouches for a key: a digest of the key and a random number lies at the address.
///
/// Written `ADDRESS KEY RANDOM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressProof {
    /// The address, which is asked.
    pub address: IpAddr,
    /// The key.
    pub key: PublicKey,
    /// The random number, which only who made the proof knew before.
    pub random: Nonce,
}

impl FromStr for AddressProof {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<AddressProof, ParseIdError> {
        let bad = || ParseIdError::new(text, "an address, a public key and a random number of 32 hex digits");
        let mut words = text.split(' ');
        let (Some(address), Some(key), Some(random), None) = (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(bad());
        };
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let (key, random) = (key.parse().map_err(|_| bad())?, random.parse().map_err(|_| bad())?);
        Ok(AddressProof { address: address.to_canonical(), key, random })
    }
}

impl fmt::Display for AddressProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.address, self.key, self.random)
    }
}

/// An address that vouched for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvenAddress {
    /// The address.
    pub address: IpAddr,
    /// The key.
    pub key: PublicKey,
    /// When it was asked.
    pub asked: UnixTime,
}

/// An RPKI Signed Checklist (RFC 9323) in DER: the holder of prefixes says that it is its own what has one of these digests. It has
/// 1 to [`CHECKLIST_BYTES_MAX`] bytes, which may be anything.
///
/// Written as base64url without padding (RFC 4648 §5).
#[derive(Clone, PartialEq, Eq)]
pub struct Checklist(Vec<u8>);

impl Checklist {
    /// Takes bytes as a checklist.
    ///
    /// # Errors
    /// There are none, or too many.
    pub fn new(der: Vec<u8>) -> Result<Checklist, ParseIdError> {
        let fits = (1..=CHECKLIST_BYTES_MAX).contains(&der.len());
        let bad = || ParseIdError::new(&format!("{} bytes", der.len()), "a checklist of 1 to 6000 bytes");
        if fits { Ok(Checklist(der)) } else { Err(bad()) }
    }

    /// Returns the bytes.
    pub fn der(&self) -> &[u8] {
        &self.0
    }
}

impl FromStr for Checklist {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Checklist, ParseIdError> {
        let shown: String = text.chars().take(16).collect();
        let bad = |_| ParseIdError::new(&shown, "a checklist in base64url");
        Checklist::new(BASE64.decode(text).map_err(bad)?)
    }
}

impl fmt::Display for Checklist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64.encode(&self.0))
    }
}

impl fmt::Debug for Checklist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Checklist({} bytes)", self.0.len())
    }
}

impl Serialize for Checklist {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Checklist {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Checklist, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// What the holder of a checklist speaks for, as the RPKI has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its prefixes.
    pub prefixes: Vec<IpNet>,
    /// When the first of the certificates ends that say so.
    pub until: UnixTime,
}

/// Grants whose first one a checklist names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedGrants {
    /// The grants, that of the holder of the prefixes first.
    pub grants: Vec<String>,
    /// The checklist.
    pub checklist: Checklist,
    /// Who is behind it, as it was last found.
    pub holder: Holder,
}

/// What the rights of a user come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// A chain of grants, the issuer's first.
    Grants(Vec<String>),
    /// An address that vouches for itself.
    Address(ProvenAddress),
    /// A chain of grants, the first one of the holder of its prefixes.
    Checklist(Box<CheckedGrants>),
}

/// Returns the grants in a file's text: one a line, the issuer's first. Empty lines and those that begin with `#` are none.
pub fn grants_in(text: &str) -> Vec<String> {
    let is_grant = |line: &&str| !line.is_empty() && !line.starts_with('#');
    text.lines().map(str::trim).filter(is_grant).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checklists_are_read_as_they_are_written() {
        let checklist = Checklist::new((0..=255).collect()).unwrap();
        assert_eq!(checklist.to_string().parse::<Checklist>().unwrap(), checklist);
        let json = serde_json::to_string(&checklist).unwrap();
        assert_eq!(serde_json::from_str::<Checklist>(&json).unwrap(), checklist);
        for text in ["", "AA=", "A A", "ä"] {
            assert!(text.parse::<Checklist>().is_err(), "{text}");
        }
        assert!(Checklist::new(vec![0; CHECKLIST_BYTES_MAX]).is_ok());
        assert!(Checklist::new(vec![0; CHECKLIST_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn proofs_are_read_as_they_are_written() {
        for address in ["192.0.2.1", "2001:db8::1"] {
            let text = format!("{address} ed25519:{} {}", "12".repeat(32), "ab".repeat(16));
            assert_eq!(text.parse::<AddressProof>().unwrap().to_string(), text);
            assert!(text[1..].replace(' ', "").parse::<AddressProof>().is_err());
        }
        assert!("".parse::<AddressProof>().is_err());
    }
}
