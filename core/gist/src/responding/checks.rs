// SPDX-License-Identifier: Apache-2.0
//! What may be wrong with a Query.

use std::net::{IpAddr, SocketAddr};

use netserv_wire::gist::{Direction, ErrorCode, Message, Mri, NatTraversal, Nli, ObjectType};

use crate::api::Prefix;
use crate::limits;
use crate::messages::{Arrival, Fault, MRI, UPSTREAM_TTL_MIN};

/// Returns what is wrong with a Query, by the checks of its routing method (RFC 5971 §5.8.1.2, §5.8.1.3, §7.2).
pub(super) fn query_fault(
    arrival: &Arrival,
    query: &Message,
    mri: &Mri,
    nli: &Nli,
    source: SocketAddr,
    ttl: u8,
) -> Option<Fault> {
    let Some((flow_source, _)) = mri.addresses() else {
        return Some(Fault::of_mri(ErrorCode::ValueNotSupported, mri, MRI_METHOD));
    };
    if flow_source.is_ipv4() != source.is_ipv4() || flow_source.is_ipv4() != arrival.local.is_ipv4() {
        return Some(Fault::of_mri(ErrorCode::IpVersionMismatch, mri, IP_VERSION));
    }
    if nli.address.is_ipv4() != source.is_ipv4() {
        return Some(Fault::of_nli(ErrorCode::ValueNotSupported, nli, IP_VERSION));
    }
    if let Some(fault) = query.nat_traversal.as_ref().and_then(|nats| nat_fault(query, mri, nats)) {
        return Some(fault);
    }
    if query.source_is_signaller && source.ip() != nli.address {
        return Some(Fault::of_type(ErrorCode::UntranslatedObject, MRI));
    }
    match (mri, mri.direction()?) {
        (Mri::PathCoupled(_), Direction::Upstream) if ttl < UPSTREAM_TTL_MIN => Some(ErrorCode::InvalidIpTtl.into()),
        // RFC 5971 §5.8.2: there is no way to ask from the edge.
        (Mri::LooseEnd(_), Direction::Upstream) => Some(Fault::of_mri(ErrorCode::ValueNotSupported, mri, DIRECTION)),
        (Mri::PathCoupled(_), _) | (Mri::LooseEnd(_), Direction::Downstream) | (Mri::Other(_), _) => None,
    }
}

/// Returns whether a Query's IP destination is one of its flow's, as that of a Query in Q-mode is (RFC 5971 §5.8.1.2). One that is
/// addressed to a node off the flow's path proves nothing of that node's place, nor does one that a NAT changed which leaves GIST alone.
pub(super) fn leads_along(mri: &Mri, destination: IpAddr) -> bool {
    match mri {
        Mri::PathCoupled(flow) if flow.direction() == Direction::Downstream => {
            Prefix { address: flow.destination(), bits: flow.destination_prefix() }.covers(destination, u8::MAX)
        }
        Mri::PathCoupled(_) | Mri::LooseEnd(_) | Mri::Other(_) => false,
    }
}

/// Returns what is wrong with what NATs say of a Query (RFC 5971 §7.2.2): they have to have translated every object with
/// addresses, and to tell of a flow of the same kind, within bounds.
fn nat_fault(query: &Message, mri: &Mri, nats: &NatTraversal) -> Option<Fault> {
    let configuration = query.stack_configuration.as_ref().map(|_| ObjectType::StackConfiguration);
    let addressed = [Some(ObjectType::Mri), Some(ObjectType::Nli), configuration];
    if let Some(left) = addressed.into_iter().flatten().find(|object| !nats.has_translated(*object)) {
        return Some(Fault::of_type(ErrorCode::UntranslatedObject, left.number()));
    }
    let same_version = match (mri.addresses(), nats.mri.addresses()) {
        (Some((ours, _)), Some((theirs, _))) => ours.is_ipv4() == theirs.is_ipv4(),
        (_, _) => false,
    };
    let same_kind = std::mem::discriminant(mri) == std::mem::discriminant(&nats.mri);
    let same = same_kind && same_version && mri.direction() == nats.mri.direction();
    let bounded = nats.nats.len() <= limits::NATS_MAX && nats.value_bytes() <= limits::NAT_TRAVERSAL_BYTES_MAX;
    let offset = if same { NAT_COUNT } else { NAT_MRI };
    (!same || !bounded).then(|| Fault::of_nat_traversal(ErrorCode::ValueNotSupported, nats, offset))
}

/// Where the MRI has its method, and MRI and NLI their IP version (RFC 5971 A.3.1, A.3.3).
const MRI_METHOD: usize = 0;
const IP_VERSION: usize = 2;
/// Where a path-coupled MRI has the flow's source.
pub(super) const FLOW_SOURCE: usize = 4;
/// Where a NAT traversal object has its number of NATs, and its MRI (RFC 5971 A.3.8).
const NAT_COUNT: usize = 2;
const NAT_MRI: usize = 4;
/// Where a loose-end MRI has its direction (RFC 5971 A.3.1.2).
const DIRECTION: usize = 2;
