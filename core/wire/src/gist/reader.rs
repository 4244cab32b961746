// SPDX-License-Identifier: Apache-2.0
//! Reads fields of an object one after the other and knows where it is, so that an error can say so.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::error::ValueError;

/// A position in the value of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    /// Returns a reader at the start of bytes.
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, position: 0 }
    }

    /// Returns the next bytes.
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], ValueError> {
        let taken =
            self.rest().get(..count).ok_or_else(|| ValueError::length(self.position, "an object ends early"))?;
        self.position += count;
        Ok(taken)
    }

    /// Returns the next bytes as an array.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], ValueError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// Returns the next byte.
    pub(super) fn u8(&mut self) -> Result<u8, ValueError> {
        self.array().map(u8::from_be_bytes)
    }

    /// Returns the next 16 bits.
    pub(super) fn u16(&mut self) -> Result<u16, ValueError> {
        self.array().map(u16::from_be_bytes)
    }

    /// Returns the next 32 bits.
    pub(super) fn u32(&mut self) -> Result<u32, ValueError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Returns the next address of an IP version that [`IpVersion::parse`] let pass.
    pub(super) fn address(&mut self, version: IpVersion) -> Result<IpAddr, ValueError> {
        match version {
            IpVersion::V4 => self.array::<4>().map(|octets| Ipv4Addr::from(octets).into()),
            IpVersion::V6 => self.array::<16>().map(|octets| Ipv6Addr::from(octets).into()),
        }
    }

    /// Skips to the next word boundary.
    pub(super) fn align(&mut self) -> Result<(), ValueError> {
        self.take(self.position.next_multiple_of(4) - self.position).map(|_| ())
    }

    /// Returns what is not read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }

    /// Returns how many bytes were read.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Checks that all was read.
    pub(super) fn finish(&self) -> Result<(), ValueError> {
        let done = self.rest().is_empty();
        if done { Ok(()) } else { Err(ValueError::length(self.position, "an object is longer than its content")) }
    }
}

/// The version of addresses in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IpVersion {
    V4,
    V6,
}

impl IpVersion {
    /// Reads the 4-bit field IPVer out of the first 4 bits of a 16-bit field at an offset.
    pub(super) fn parse(field: u16, offset: usize) -> Result<IpVersion, ValueError> {
        match field >> 12 {
            4 => Ok(IpVersion::V4),
            6 => Ok(IpVersion::V6),
            _ => Err(ValueError::unsupported(offset, "an IP version that is neither 4 nor 6")),
        }
    }

    /// Returns the field IPVer for an address, in place.
    pub(super) fn field(address: IpAddr) -> u16 {
        if address.is_ipv4() { 0x4000 } else { 0x6000 }
    }
}

/// Appends an address.
pub(super) fn put_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
        IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
    }
}

/// Appends zeros up to the next word boundary.
pub(super) fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}
