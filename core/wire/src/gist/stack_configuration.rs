// SPDX-License-Identifier: Apache-2.0
//! Stack configuration data (object 4, RFC 5971 A.3.5): where and how the proposed protocols are reached.

use std::time::Duration;

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
