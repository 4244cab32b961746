// SPDX-License-Identifier: Apache-2.0
//! What the rights of users come from whom no configuration names.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::ParseIdError;
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

/// What the rights of a user come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// A chain of grants, the issuer's first.
    Grants(Vec<String>),
    /// An address that vouches for itself.
    Address(ProvenAddress),
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
    fn proofs_are_read_as_they_are_written() {
        for address in ["192.0.2.1", "2001:db8::1"] {
            let text = format!("{address} ed25519:{} {}", "12".repeat(32), "ab".repeat(16));
            assert_eq!(text.parse::<AddressProof>().unwrap().to_string(), text);
            assert!(text[1..].replace(' ', "").parse::<AddressProof>().is_err());
        }
        assert!("".parse::<AddressProof>().is_err());
    }
}
