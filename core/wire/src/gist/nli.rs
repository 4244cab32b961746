// SPDX-License-Identifier: Apache-2.0
//! Network layer information (object 2, RFC 5971 A.3.3): who sent a message and where answers go.

use std::net::IpAddr;
use std::time::Duration;

use super::error::ValueError;
use super::reader::{IpVersion, Reader, pad, put_address};
use super::time::{duration_field, milliseconds};

/// Who sent a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nli {
    /// Opaque and the same on all interfaces of a node until it restarts; at most 255 bytes.
    pub peer_identity: Vec<u8>,
    /// The TTL that the packet left with, or a hop distance; 0 is unknown.
    pub ip_ttl: u8,
    /// How long the routing state lives, in whole milliseconds, at least one.
    pub validity: Duration,
    /// The sender's address on the interface that it sent from.
    pub address: IpAddr,
}

impl Nli {
    pub(super) fn parse(value: &[u8]) -> Result<Nli, ValueError> {
        let mut reader = Reader::new(value);
        let identity_bytes = usize::from(reader.u8()?);
        let ip_ttl = reader.u8()?;
        let version = IpVersion::parse(reader.u16()?, 2)?;
        let validity = duration_field(&mut reader)?;
        let peer_identity = reader.take(identity_bytes)?.to_vec();
        reader.align()?;
        let address = reader.address(version)?;
        reader.finish()?;
        Ok(Nli { peer_identity, ip_ttl, validity, address })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let identity_bytes = u8::try_from(self.peer_identity.len()).expect("a peer identity has at most 255 bytes");
        out.extend_from_slice(&[identity_bytes, self.ip_ttl]);
        out.extend_from_slice(&IpVersion::field(self.address).to_be_bytes());
        out.extend_from_slice(&milliseconds(self.validity).to_be_bytes());
        out.extend_from_slice(&self.peer_identity);
        pad(out);
        put_address(out, self.address);
    }
}
