// SPDX-License-Identifier: Apache-2.0
//! What this node saw of the path to a peer, for the entry of that peer.

use std::net::IpAddr;
use std::time::Duration;

use netserv_gist::TransferAttributes;
use netserv_model::request::{Hop, HopProof, NodeReport};

/// Returns what GIST says of the path to the peer that a message came from, whose Response brought back a Query's cookie. TLS
/// proves nothing to this node without a certificate.
pub(crate) fn hop_to(
    attributes: TransferAttributes,
    rtt: Option<Duration>,
    ip_distance: Option<u8>,
    tls_name: Option<String>,
) -> Hop {
    let tls_name = tls_name.filter(|_| attributes.secure);
    let proof = match (attributes.reliable, &tls_name) {
        (_, Some(_)) => HopProof::Tls,
        (true, None) => HopProof::Association,
        (false, None) => HopProof::ResponseCookie,
    };
    Hop {
        rtt_us: rtt.map(|rtt| u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX)),
        // GIST counts what the TTL lost, which is the routers between.
        ip_hops: ip_distance.map(|routers| routers.saturating_add(1)),
        proof: Some(proof),
        tls_name,
    }
}

/// Puts it on the first entry of the peer's answer if that is the peer's own. Whatever else that entry says of it is the
/// peer's own word, which does not count.
pub(crate) fn note_hop(entries: &mut [NodeReport], peer: IpAddr, hop: &Hop) {
    if let Some(first) = entries.first_mut() {
        first.hop = Some(hop.clone()).filter(|_| first.address == peer);
    }
}
