// SPDX-License-Identifier: Apache-2.0
//! Token buckets for networks of addresses, in bounded memory whatever addresses are made up.

use std::net::IpAddr;

use netserv_model::{Instant, share};
use sha2::{Digest, Sha256};

use super::bucket::TokenBucket;
use crate::limits::{self, RateLimit};

/// A bucket for each network; networks may share one, by a secret that nobody can aim with.
#[derive(Debug)]
pub(crate) struct NetworkBuckets {
    secret: [u8; 32],
    buckets: Vec<TokenBucket>,
}

impl NetworkBuckets {
    pub(crate) fn new(limit: RateLimit, secret: [u8; 32]) -> NetworkBuckets {
        let buckets = (0..limits::NETWORK_BUCKETS).map(|_| TokenBucket::new(limit)).collect();
        NetworkBuckets { secret, buckets }
    }

    pub(crate) fn take(&mut self, now: Instant, address: IpAddr) -> bool {
        let mut hash = Sha256::new();
        hash.update(self.secret);
        hash.update(network(address).to_be_bytes());
        let [first, second, ..]: [u8; 32] = hash.finalize().into();
        let index = usize::from(u16::from_be_bytes([first, second])) % self.buckets.len();
        self.buckets[index].take(now)
    }
}

/// Returns an address's network: its first 24 bits for IPv4, 64 for IPv6.
fn network(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(v4) => u64::from(v4.to_bits() >> 8),
        IpAddr::V6(v6) => u64::try_from(v6.to_bits() >> 64).expect("64 bits are left"),
    }
}

/// Returns what somebody has who has one address of it: 24 bits of IPv4, 56 of IPv6 (RFC 6177 §2).
pub(crate) fn site(address: IpAddr) -> IpAddr {
    share::network(address, 24, 56)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_uses_up_its_own_bucket() {
        let mut buckets = NetworkBuckets::new(RateLimit { per_second: 10, burst: 2 }, [1; 32]);
        let at = Instant::from_millis;
        let mut takes = |ms: u64, address: &str| buckets.take(at(ms), address.parse().unwrap());
        assert_eq!([takes(0, "10.0.0.1"), takes(0, "10.0.0.2"), takes(0, "10.0.0.3")], [true, true, false]);
        assert!(takes(0, "10.0.1.1"), "another network");
        assert_eq!([takes(0, "fd00::1"), takes(0, "fd00::2"), takes(0, "fd00::3")], [true, true, false]);
        assert!(takes(0, "fd00:0:0:1::1"));
        assert_eq!([takes(100, "10.0.0.9"), takes(100, "10.0.0.9")], [true, false]);
    }

    #[test]
    fn network_buckets_do_not_grow_with_networks() {
        let mut buckets = NetworkBuckets::new(RateLimit { per_second: 1, burst: 1 }, [7; 32]);
        let now = Instant::from_millis(5);
        let taken =
            (0..=u16::MAX).filter(|n| buckets.take(now, IpAddr::from([10, n.to_be_bytes()[0], n.to_be_bytes()[1], 1])));
        assert_eq!(taken.count(), limits::NETWORK_BUCKETS);
    }
}
