// SPDX-License-Identifier: Apache-2.0
//! Paths that take shorter packets than usual (RFC 5971 §5.3.3, RFC 1191, RFC 8201), as far as ICMP errors told of them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use netserv_model::Instant;

use crate::limits;

/// The longest packets toward addresses, each for a time.
#[derive(Debug, Default)]
pub(crate) struct PathMtus {
    known: BTreeMap<IpAddr, (u16, Instant)>,
    order: BTreeSet<(Instant, IpAddr)>,
}

impl PathMtus {
    /// Takes the length of the longest packet that gets to an address. The one that is known for longest goes if there are too
    /// many.
    pub(crate) fn learn(&mut self, now: Instant, target: IpAddr, mtu: u16) {
        let least = if target.is_ipv4() { limits::PATH_MTU_V4_MIN } else { limits::PATH_MTU_V6_MIN };
        let until = now + limits::PATH_MTU_TIME;
        if let Some((_, earlier)) = self.known.insert(target, (mtu.max(least), until)) {
            self.order.remove(&(earlier, target));
        }
        self.order.insert((until, target));
        if self.order.len() > limits::PATH_MTUS_MAX
            && let Some((_, first)) = self.order.pop_first()
        {
            self.known.remove(&first);
        }
    }

    /// Returns the length of the longest packet that gets to an address, if it was told lately.
    pub(crate) fn toward(&self, now: Instant, target: IpAddr) -> Option<u16> {
        self.known.get(&target).filter(|(_, until)| now < *until).map(|(mtu, _)| *mtu)
    }

    /// Returns the longest GIST message that may go to an address by datagram, of the length that is configured at most.
    pub(crate) fn message_bytes_max(&self, now: Instant, target: IpAddr, configured: usize) -> usize {
        let known = self.toward(now, target).map(|mtu| usize::from(mtu).saturating_sub(ALLOWANCE_BYTES));
        known.unwrap_or(usize::MAX).min(configured)
    }

    /// Returns the MTU of the path to an address that a datagram for somebody else is too long for, if it is known.
    pub(crate) fn too_long_for(&self, now: Instant, target: IpAddr, payload: &[u8]) -> Option<u16> {
        let headers = if target.is_ipv4() { V4_HEADER_BYTES } else { V6_HEADER_BYTES };
        self.toward(now, target).filter(|mtu| headers + payload.len() > usize::from(*mtu))
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
}

/// What headers may take of a packet, options included (RFC 5971 §5.3.3).
const ALLOWANCE_BYTES: usize = 64;
/// IPv4 with Router Alert, or IPv6 with its hop-by-hop header, and UDP.
const V4_HEADER_BYTES: usize = 32;
const V6_HEADER_BYTES: usize = 56;
