// SPDX-License-Identifier: Apache-2.0
//! The words of a filter.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

use super::words::{ParseFilterError, PortRange, Protocol};
use crate::prefix;

/// The word for the addresses of the module's container.
pub(super) const CONTAINER: &str = "self";

/// The word for segments that open connections.
const OPENING: &str = "syn";

/// What is written for source or destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A prefix.
    Net(IpNet),
    /// The word [`CONTAINER`].
    Container,
}

/// A filter as it is written, whatever its parts mean together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) protocol: Protocol,
    pub(super) opens_only: bool,
    pub(super) source: Option<End>,
    pub(super) destination: Option<End>,
    pub(super) source_ports: Option<PortRange>,
    pub(super) destination_ports: Option<PortRange>,
}

impl fmt::Display for Parts {
    /// Writes the canonical form, which parses back to the same parts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { protocol, opens_only, source, destination, source_ports, destination_ports } = self;
        f.write_str(protocol.as_str())?;
        if *opens_only {
            write!(f, " {OPENING}")?;
        }
        for (key, end) in [("src", source), ("dst", destination)] {
            match end {
                Some(End::Net(net)) => write!(f, " {key} {net}")?,
                Some(End::Container) => write!(f, " {key} {CONTAINER}")?,
                None => {}
            }
        }
        for (key, ports) in [("sport", source_ports), ("port", destination_ports)] {
            if let Some(ports) = ports {
                write!(f, " {key} {ports}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Parts {
    type Err = ParseFilterError;

    fn from_str(text: &str) -> Result<Parts, ParseFilterError> {
        let mut words = text.split_ascii_whitespace().peekable();
        let protocol = match words.peek().copied() {
            Some("ip") => Some(Protocol::Any),
            Some("tcp") => Some(Protocol::Tcp),
            Some("udp") => Some(Protocol::Udp),
            Some("icmp") => Some(Protocol::Icmp),
            Some(_) => None,
            None => return Err(ParseFilterError::Empty),
        };
        if protocol.is_some() {
            words.next();
        }
        let opens_only = protocol.is_some() && words.next_if_eq(&OPENING).is_some();
        let mut parts = Parts { protocol: protocol.unwrap_or_default(), opens_only, ..Parts::default() };
        while let Some(key) = words.next() {
            let value = words.next().ok_or_else(|| ParseFilterError::Word(key.chars().take(40).collect()))?;
            let repeated = match key {
                "src" => parts.source.replace(parse_end(value)?).is_some(),
                "dst" => parts.destination.replace(parse_end(value)?).is_some(),
                "sport" => parts.source_ports.replace(value.parse()?).is_some(),
                "port" | "dport" => parts.destination_ports.replace(value.parse()?).is_some(),
                _ => return Err(ParseFilterError::Word(key.chars().take(40).collect())),
            };
            if repeated {
                return Err(ParseFilterError::Word(key.to_owned()));
            }
        }
        Ok(parts)
    }
}

fn parse_end(text: &str) -> Result<End, ParseFilterError> {
    if text == CONTAINER {
        return Ok(End::Container);
    }
    let parsed = prefix::parse(text).or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
    parsed.map(End::Net).ok_or_else(|| ParseFilterError::Net(text.chars().take(60).collect()))
}
