// SPDX-License-Identifier: Apache-2.0
//! Stack configuration data (object 4, RFC 5971 A.3.5): where and how the proposed protocols are reached.

use std::time::Duration;

use super::error::ValueError;
use super::reader::{Reader, pad};
use super::time::{duration_field, milliseconds};
use super::{PROTOCOL_FORWARDS_SCTP, PROTOCOL_FORWARDS_TCP, StackProposal};

/// Where and how the proposed protocols are reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackConfiguration {
    /// How long the sender keeps an idle association, in whole milliseconds, at least one.
    pub hold_time: Duration,
    /// At most 255 options.
    pub options: Vec<ProtocolOption>,
}

/// Configuration of one protocol.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProtocolOption {
    /// The MA-Protocol-ID.
    pub protocol: u8,
    /// Which profile of the proposal this is for, counted from 1; 0 is for all.
    pub profile: u8,
    /// The port that TCP or SCTP listens on; only these two have one.
    pub port: Option<u16>,
    /// Set if the protocol must not be used.
    pub forbidden: bool,
}

impl StackConfiguration {
    /// Returns whether each option is of a profile that the proposal has, and of a protocol in it.
    pub fn fits(&self, proposal: &StackProposal) -> bool {
        let has = |profile: &Vec<u8>, option: &ProtocolOption| profile.contains(&option.protocol);
        self.options.iter().all(|option| match usize::from(option.profile).checked_sub(1) {
            None => proposal.profiles.iter().any(|profile| has(profile, option)),
            Some(index) => proposal.profiles.get(index).is_some_and(|profile| has(profile, option)),
        })
    }

    pub(super) fn parse(value: &[u8]) -> Result<StackConfiguration, ValueError> {
        let mut reader = Reader::new(value);
        let count = reader.u8()?;
        reader.align()?;
        let hold_time = duration_field(&mut reader)?;
        let options = (0..count).map(|_| ProtocolOption::parse(&mut reader)).collect::<Result<_, _>>()?;
        reader.finish()?;
        Ok(StackConfiguration { hold_time, options })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let count = u8::try_from(self.options.len()).expect("a stack configuration has at most 255 options");
        out.extend_from_slice(&[count, 0, 0, 0]);
        out.extend_from_slice(&milliseconds(self.hold_time).to_be_bytes());
        for option in &self.options {
            option.emit(out);
        }
    }
}

impl ProtocolOption {
    fn parse(reader: &mut Reader<'_>) -> Result<ProtocolOption, ValueError> {
        let [protocol, profile, length, flags] = reader.array()?;
        let data_at = reader.position();
        let data = reader.take(usize::from(length))?;
        reader.align()?;
        let has_port = matches!(protocol, PROTOCOL_FORWARDS_TCP | PROTOCOL_FORWARDS_SCTP);
        // RFC 5971 §5.7.2 leaves open whether the padding counts, so the lengths 2 and 4 are both read.
        let port = match (has_port, data) {
            (true, [high, low] | [high, low, _, _]) => Some(u16::from_be_bytes([*high, *low])),
            (true, []) | (false, _) => None,
            (true, _) => return Err(ValueError::length(data_at, "a protocol option that is neither empty nor a port")),
        };
        Ok(ProtocolOption { protocol, profile, port, forbidden: flags & FLAG_FORBIDDEN != 0 })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        let length = if self.port.is_some() { 2 } else { 0 };
        let flags = if self.forbidden { FLAG_FORBIDDEN } else { 0 };
        out.extend_from_slice(&[self.protocol, self.profile, length, flags]);
        if let Some(port) = self.port {
            out.extend_from_slice(&port.to_be_bytes());
            pad(out);
        }
    }
}

/// RFC 5971 A.3.5: the D flag of a protocol option.
const FLAG_FORBIDDEN: u8 = 0x80;
