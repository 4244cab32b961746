// SPDX-License-Identifier: Apache-2.0
//! What the words of a filter stand for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The upper-layer protocol that a filter asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// Every protocol.
    #[default]
    Any,
    /// TCP, 6.
    Tcp,
    /// UDP, 17.
    Udp,
    /// ICMP (1) over IPv4, ICMPv6 (58) over IPv6.
    Icmp,
}

impl Protocol {
    /// Returns whether an IP protocol number is meant by this protocol.
    pub fn matches(self, number: u8) -> bool {
        match self {
            Protocol::Any => true,
            Protocol::Tcp => number == 6,
            Protocol::Udp => number == 17,
            Protocol::Icmp => number == 1 || number == 58,
        }
    }

    /// Returns whether packets of this protocol have ports.
    pub fn has_ports(self) -> bool {
        matches!(self, Protocol::Tcp | Protocol::Udp)
    }

    /// Returns the name used in filter text.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Any => "ip",
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Icmp => "icmp",
        }
    }
}

/// An inclusive range of ports; `first` is never above `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// Every port.
    pub const ALL: PortRange = PortRange { first: 0, last: u16::MAX };

    /// Returns the range, or `None` if it is upside down.
    pub fn new(first: u16, last: u16) -> Option<PortRange> {
        (first <= last).then_some(PortRange { first, last })
    }

    /// Returns the range that holds one port.
    pub fn single(port: u16) -> PortRange {
        PortRange { first: port, last: port }
    }

    /// Returns the lowest port.
    pub fn first(self) -> u16 {
        self.first
    }

    /// Returns the highest port.
    pub fn last(self) -> u16 {
        self.last
    }

    /// Returns whether a port is in the range.
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }

    /// Returns whether every port of `other` is in this range.
    pub fn covers(self, other: PortRange) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { write!(f, "{}", self.first) } else { write!(f, "{}-{}", self.first, self.last) }
    }
}

impl FromStr for PortRange {
    type Err = ParseFilterError;

    fn from_str(text: &str) -> Result<PortRange, ParseFilterError> {
        let bad = || ParseFilterError::Port(text.chars().take(40).collect());
        let port =
            |digits: &str| -> Option<u16> { digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())? };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let range = port(first).zip(port(last)).and_then(|(first, last)| PortRange::new(first, last));
        range.ok_or_else(bad)
    }
}

impl TryFrom<String> for PortRange {
    type Error = ParseFilterError;

    fn try_from(text: String) -> Result<PortRange, ParseFilterError> {
        text.parse()
    }
}

impl From<PortRange> for String {
    fn from(range: PortRange) -> String {
        range.to_string()
    }
}

/// Why text is not a filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseFilterError {
    /// Nothing was written.
    #[error("an empty filter; write for instance `udp dst 10.2.0.0/24 port 5060`")]
    Empty,
    /// A word that means nothing here, is repeated, or lacks its value.
    #[error(
        "`{0}` is not understood here, repeated or lacks its value; a filter is `[ip|tcp|tcp syn|udp|icmp] [src NET] [dst NET] [sport PORTS] [port PORTS]`"
    )]
    Word(String),
    /// Not a prefix.
    #[error("`{0}` is not an address or a prefix such as 10.2.0.0/24")]
    Net(String),
    /// Not a port or a range of ports.
    #[error("`{0}` is not a port or a range such as 16384-32767")]
    Port(String),
    /// Ports need TCP or UDP.
    #[error("ports need `tcp` or `udp` in front")]
    PortsWithoutProtocol,
    /// The word `syn` behind another protocol.
    #[error("`syn` needs `tcp` in front")]
    SynWithoutTcp,
    /// The word `self` for both ends.
    #[error("`self` is one end only: what a container sends to itself passes no filter")]
    TwoContainers,
    /// An IPv4 and an IPv6 prefix in one filter.
    #[error("source and destination are of different IP versions, so no packet would match")]
    MixedVersions,
}
