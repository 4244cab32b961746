// SPDX-License-Identifier: Apache-2.0
//! Sets of flows: prefixes, and the rules that say about which flows a peer may speak.

use std::net::IpAddr;

use netserv_wire::gist::Mri;
use serde::{Deserialize, Serialize};

/// Addresses of one IP version whose first bits are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefix {
    /// One of them.
    pub address: IpAddr,
    /// How many bits are the same: at most 32 of IPv4, 128 of IPv6.
    pub bits: u8,
}

impl Prefix {
    /// Returns whether all addresses that have the first bits of this one are in the prefix.
    pub fn covers(&self, address: IpAddr, bits: u8) -> bool {
        let (own, other, width) = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (u128::from(own.to_bits()), u128::from(other.to_bits()), 32),
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits(), other.to_bits(), 128),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
        };
        // Of 128 bits none is left to compare after a shift by all of them.
        let differing = (own ^ other).checked_shr(u32::from(width - self.bits.min(width))).unwrap_or(0);
        bits >= self.bits && differing == 0
    }
}

/// About which flows a peer may speak: the first rule that a flow fits says so, and where there are rules, no other flow is
/// for it. Without rules, about all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowScope(pub Vec<FlowRule>);

/// One rule of a [`FlowScope`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRule {
    /// The peer may speak about them; otherwise it may not.
    pub allow: bool,
    /// The flows whose source or destination lies in one of these; all, if there are none.
    pub prefixes: Vec<Prefix>,
}

impl FlowScope {
    /// Returns whether the peer may speak about a flow, in either direction.
    pub fn allows(&self, mri: &Mri) -> bool {
        let rule = self.0.iter().find(|rule| rule.fits(mri));
        rule.map_or(self.0.is_empty(), |rule| rule.allow)
    }
}

impl FlowRule {
    fn fits(&self, mri: &Mri) -> bool {
        let ends = match mri {
            Mri::PathCoupled(flow) => {
                [(flow.source(), flow.source_prefix()), (flow.destination(), flow.destination_prefix())]
            }
            Mri::LooseEnd(flow) => [flow.source(), flow.destination()].map(|address| (address, u8::MAX)),
            Mri::Other(_) => return self.prefixes.is_empty(),
        };
        let lies_in = |prefix: &Prefix| ends.iter().any(|(address, bits)| prefix.covers(*address, *bits));
        self.prefixes.is_empty() || self.prefixes.iter().any(lies_in)
    }
}
