// SPDX-License-Identifier: Apache-2.0
//! ICMP errors about datagrams of this node.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// An ICMP error about a datagram that this node sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IcmpError {
    /// What it says.
    pub kind: IcmpKind,
    /// Who says it; `None` if the system does not tell.
    pub reporter: Option<IpAddr>,
    /// What the error brings back of the datagram's UDP payload.
    #[serde(with = "hex::serde")]
    pub quoted: Vec<u8>,
}

/// What an ICMP error says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IcmpKind {
    /// The datagram reached a host where nobody listens.
    Port,
    /// The host has no UDP.
    Protocol,
    /// The last router does not reach the host.
    Host,
    /// A router has no route.
    Network,
    /// A firewall does not let it pass.
    Prohibited,
    /// It came to a router more often than its TTL allows.
    TimeExceeded,
    /// It is longer than a link on its way takes.
    TooBig {
        /// The longest packet that the link takes, in bytes.
        mtu: u16,
    },
}

impl IcmpKind {
    /// Returns whether it says that the Query has arrived where it comes from.
    pub(crate) fn is_refusal(self) -> bool {
        match self {
            IcmpKind::Port | IcmpKind::Protocol | IcmpKind::Prohibited => true,
            IcmpKind::Host | IcmpKind::Network | IcmpKind::TimeExceeded | IcmpKind::TooBig { .. } => false,
        }
    }

    /// Returns what it says, in words that go on after the reporter's address.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            IcmpKind::Port => "says that nobody listens on the Query's port",
            IcmpKind::Protocol => "says that it has no UDP",
            IcmpKind::Host => "does not reach the flow's destination",
            IcmpKind::Network => "has no route to the flow's destination",
            IcmpKind::Prohibited => "does not let Queries pass",
            IcmpKind::TooBig { .. } => "says that the Query is too long for a link on the way",
            IcmpKind::TimeExceeded => "says that the Query's TTL ran out on the way",
        }
    }
}
