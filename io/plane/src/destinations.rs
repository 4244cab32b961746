// SPDX-License-Identifier: Apache-2.0
//! Where packets of modules may be sent: a bounded memory of what the kernel says of destinations.
//!
//! What the kernel would deliver on this machine must not come from a module: sent as the node's own, it would reach the
//! node's services past the rules for packets from outside. The node's addresses are not all of that: there are the
//! subnet-router anycast address of each prefix (RFC 4291 §2.6.1), local routes, and broadcasts. So the kernel is asked
//! for the type of the route.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use netserv_netlink::routes::{self, Routes};
use netserv_netlink::{Family, Socket};

use crate::{DriverError, limits};

/// What is known of destinations. It is forgotten at every notice of a change, and after a short while in any case.
pub struct Destinations {
    routes: Routes,
    /// Tells when links, addresses, routes or rules of routing change.
    notices: Socket,
    /// The mark of the packets.
    mark: u32,
    known: HashMap<IpAddr, (bool, Instant)>,
    now: Instant,
}

impl Destinations {
    /// Opens the ways to ask for packets with a mark.
    pub fn open(mark: u32) -> Result<Destinations, DriverError> {
        // First the notices, so that no change goes unseen.
        let notices = routes::listen(Family::Route, GROUPS)?;
        Ok(Destinations { routes: Routes::open()?, notices, mark, known: HashMap::new(), now: Instant::now() })
    }

    /// Forgets what may have changed. To be called before a batch of packets.
    pub fn look(&mut self) {
        self.now = Instant::now();
        if self.notices.drain() {
            self.known.clear();
        }
    }

    /// Returns whether a packet of a module may be sent to an address: it is one of another machine, beyond a single
    /// link, and the kernel has a unicast route to it. What the kernel does not tell is refused.
    pub fn may_receive(&mut self, destination: IpAddr) -> bool {
        if !is_beyond_one_link(destination) {
            return false;
        }
        match self.known.get(&destination) {
            Some((unicast, found)) if self.now.saturating_duration_since(*found) <= BELIEVED => *unicast,
            Some(_) | None => self.find(destination),
        }
    }

    fn find(&mut self, destination: IpAddr) -> bool {
        let unicast = self.routes.is_unicast(destination, self.mark).unwrap_or_else(|error| {
            tracing::debug!(%error, "a destination is refused, since its route is not known");
            false
        });
        if self.known.len() >= limits::DESTINATIONS_MAX {
            self.known.clear();
        }
        self.known.insert(destination, (unicast, self.now));
        unicast
    }
}

/// Links, the addresses and routes of both versions, and the rules of both.
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400 | 1 << 7 | 1 << 18;
/// How long an answer is believed without a notice.
const BELIEVED: Duration = Duration::from_secs(5);

/// Returns whether an address can be one of a machine somewhere: not of this one, of whoever shares a link with it (a
/// cloud's metadata service is such), of many or of none.
#[inline]
pub fn is_beyond_one_link(address: IpAddr) -> bool {
    let near = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast() || v4.octets()[0] == 0,
        // The kernel takes a mapped address for the IPv4 address in it.
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6.to_ipv4_mapped().is_some(),
    };
    !near && !address.is_loopback() && !address.is_multicast() && !address.is_unspecified()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn addresses_of_one_link_and_of_many_are_no_destinations() {
        for ok in ["10.0.0.1", "192.0.2.1", "2001:db8::1", "fd00::1"] {
            assert!(is_beyond_one_link(ok.parse().unwrap()), "{ok}");
        }
        for bad in [
            "127.0.0.1",
            "127.255.1.2",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "224.0.0.5",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
        ] {
            assert!(!is_beyond_one_link(bad.parse().unwrap()), "{bad}");
        }
    }

    /// Asking needs no rights; what the answers are is of no interest here.
    #[test]
    fn destinations_max_destinations_are_remembered() {
        let mut destinations = Destinations::open(0).unwrap();
        for number in 0..u32::try_from(limits::DESTINATIONS_MAX).unwrap() + 3 {
            destinations.may_receive(Ipv4Addr::from_bits(0xc612_0000 + number).into());
            assert!(destinations.known.len() <= limits::DESTINATIONS_MAX);
        }
        assert_eq!(destinations.known.len(), 3);
        let last = *destinations.known.keys().next().unwrap();
        destinations.now += 2 * BELIEVED;
        destinations.may_receive(last);
        assert_eq!(destinations.known[&last].1, destinations.now, "an old answer is asked for again");
    }
}
