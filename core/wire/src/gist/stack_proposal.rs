// SPDX-License-Identifier: Apache-2.0
//! Stack proposal (object 3, RFC 5971 A.3.4): which stacks of protocols a messaging association may use.

use super::ErrorCode;
use super::error::ValueError;
use super::reader::{Reader, pad};

/// The MA-Protocol-ID of TCP in the forward direction.
pub const PROTOCOL_FORWARDS_TCP: u8 = 0x01;
/// The MA-Protocol-ID of TLS, initiated by the querying node.
pub const PROTOCOL_TLS: u8 = 0x02;
/// The MA-Protocol-ID of SCTP in the forward direction (RFC 6084).
pub const PROTOCOL_FORWARDS_SCTP: u8 = 0x03;

/// Which stacks of protocols a messaging association may use, most wanted first.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackProposal {
    /// MA-Protocol-IDs from top to bottom, 1–255 of them, in each of 1–255 profiles.
    pub profiles: Vec<Vec<u8>>,
}

impl StackProposal {
    pub(super) fn parse(value: &[u8]) -> Result<StackProposal, ValueError> {
        let mut reader = Reader::new(value);
        let count = reader.u8()?;
        reader.align()?;
        if count == 0 {
            return Err(ValueError::unsupported(0, "a stack proposal without profiles"));
        }
        let profiles = (0..count).map(|_| parse_profile(&mut reader)).collect::<Result<_, _>>()?;
        reader.finish()?;
        Ok(StackProposal { profiles })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let count = u8::try_from(self.profiles.len()).expect("a stack proposal has at most 255 profiles");
        out.extend_from_slice(&[count, 0, 0, 0]);
        for profile in &self.profiles {
            out.push(u8::try_from(profile.len()).expect("a stack profile has at most 255 protocols"));
            out.extend_from_slice(profile);
            pad(out);
        }
    }
}

fn parse_profile(reader: &mut Reader<'_>) -> Result<Vec<u8>, ValueError> {
    let start = reader.position();
    let layers = usize::from(reader.u8()?);
    if layers == 0 {
        return Err(ValueError::new(ErrorCode::EmptyList, start, "a stack profile without protocols"));
    }
    let profile = reader.take(layers)?.to_vec();
    reader.align()?;
    Ok(profile)
}
