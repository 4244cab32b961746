// SPDX-License-Identifier: Apache-2.0
//! Of which Queries the node becomes the peer (RFC 5971 §4.3.2): rules by flow, and what an NSLP decides.

use std::net::IpAddr;

use netserv_wire::gist::Mri;
use serde::{Deserialize, Serialize};

use super::flows::Prefix;

/// Which Queries the node becomes the peer of, for one NSLP. The flow's endpoint always becomes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peering {
    /// The first that covers the flow decides; at most [`limits::PEER_RULES_MAX`](crate::limits::PEER_RULES_MAX).
    pub rules: Vec<PeerRule>,
    /// What holds where none does.
    pub otherwise: PeerChoice,
}

/// What the node does with Queries about some flows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerRule {
    /// All of the flow's sources are in it.
    pub source: Prefix,
    /// All of the flow's destinations are in it.
    pub destination: Prefix,
    /// What the node does.
    pub choice: PeerChoice,
}

/// What the node does with a Query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PeerChoice {
    /// It becomes the peer.
    #[default]
    Peer,
    /// The Query goes on as if the NSLP were not here.
    Forward,
    /// The NSLP is asked.
    Ask {
        /// The node becomes the peer if the NSLP says nothing in time or cannot be asked; else the Query goes on.
        silence_is_peer: bool,
    },
}

/// What an NSLP says of a Query (RFC 5971 appendix B.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryDecision {
    /// The node becomes the peer.
    Peer {
        /// What the Response says to the NSLP that asked, at most [`limits::HANDSHAKE_DATA_BYTES_MAX`](crate::limits::HANDSHAKE_DATA_BYTES_MAX).
        data: Option<Vec<u8>>,
    },
    /// The Query goes on; at the flow's endpoint the node becomes the peer all the same.
    Forward {
        /// What the Query says from here on in place of its own payload; it must stay as short as a datagram may be.
        data: Option<Vec<u8>>,
    },
}

impl Peering {
    pub(crate) fn choice(&self, mri: &Mri) -> PeerChoice {
        let Some((source, destination)) = nets(mri) else { return self.otherwise };
        let covers = |rule: &&PeerRule| {
            rule.source.covers(source.address, source.bits)
                && rule.destination.covers(destination.address, destination.bits)
        };
        self.rules.iter().find(covers).map_or(self.otherwise, |rule| rule.choice)
    }
}

/// Returns the prefixes of a flow's sources and destinations.
fn nets(mri: &Mri) -> Option<(Prefix, Prefix)> {
    let (source, destination) = mri.addresses()?;
    let (source_bits, destination_bits) = match mri {
        Mri::PathCoupled(flow) => (flow.source_prefix(), flow.destination_prefix()),
        Mri::LooseEnd(_) | Mri::Other(_) => (u8::MAX, u8::MAX),
    };
    let prefix = |address: IpAddr, bits| Prefix { address, bits };
    Some((prefix(source, source_bits), prefix(destination, destination_bits)))
}
