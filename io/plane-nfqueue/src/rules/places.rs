// SPDX-License-Identifier: Apache-2.0
//! The addresses that filters of modules that fail closed want. A packet of other addresses meets a few lookups, and none of the
//! rules of these filters. Only a filter without an address, or with a prefix of less than four bits, has every packet meet them.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use netserv_model::Filter;
use netserv_netlink::message::octets;
use netserv_netlink::nftables::{End, Rule, Transaction, address_bytes};
use netserv_wire::ip::IpVersion;

/// Sets are of prefixes whose lengths are multiples of this, so that there are few: 9 for each end of IPv4 packets, 33 of IPv6.
const STEP_BITS: u8 = 4;

/// A set of the kernel: the version of IP, an end of packets and the length of its prefixes.
type Kind = (IpVersion, End, u8);

/// How many filters want packets of each prefix, and the sets that have them.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    filters: BTreeMap<(End, IpNet), usize>,
    /// They stay once they are made, but that of all packets, for which the kernel has none.
    sets: BTreeSet<Kind>,
}

impl Places {
    /// Adds a filter that has packets of a version. Returns whether that makes other rules ([`Places::rules`]).
    pub fn add(&mut self, batch: &mut Transaction, version: IpVersion, filter: &Filter) -> bool {
        let (end, net) = place(version, filter);
        let (kind, name) = ((version, end, net.prefix_len()), set_name(end, net.prefix_len()));
        let is_new = self.sets.insert(kind);
        let count = self.filters.entry((end, net)).or_default();
        *count += 1;
        if net.prefix_len() > 0 {
            if is_new {
                let bytes = u32::try_from(address_bytes(version)).expect("addresses are short");
                batch.set(&name, bytes, None);
            }
            if *count == 1 {
                batch.add_element(&name, &octets(net.addr()));
            }
        }
        is_new
    }

    /// Takes a filter away that was added. Returns whether that makes other rules.
    pub fn remove(&mut self, batch: &mut Transaction, version: IpVersion, filter: &Filter) -> bool {
        let (end, net) = place(version, filter);
        let Some(count) = self.filters.get_mut(&(end, net)) else { return false };
        *count -= 1;
        if *count > 0 {
            return false;
        }
        self.filters.remove(&(end, net));
        if net.prefix_len() == 0 {
            return self.sets.remove(&(version, end, 0));
        }
        batch.remove_element(&set_name(end, net.prefix_len()), &octets(net.addr()));
        false
    }

    /// Returns a rule for each set of a version, which matches what is in it.
    pub fn rules(&self, version: IpVersion) -> impl Iterator<Item = Rule> {
        self.sets.iter().filter(move |(of, ..)| *of == version).map(move |(_, end, bits)| match bits {
            0 => Rule::new(),
            bits => Rule::new().prefix_in(*end, version, *bits, &set_name(*end, *bits)),
        })
    }
}

/// Returns a prefix with all of a filter's packets, at the end of which the filter says more.
fn place(version: IpVersion, filter: &Filter) -> (End, IpNet) {
    let bits = |net: Option<IpNet>| net.map_or(0, |net| net.prefix_len());
    let (source, destination) = (filter.source(), filter.destination());
    let (end, net) =
        if bits(source) > bits(destination) { (End::Source, source) } else { (End::Destination, destination) };
    let all = match version {
        IpVersion::V4 => IpNet::V4(Ipv4Net::default()),
        IpVersion::V6 => IpNet::V6(Ipv6Net::default()),
    };
    let net = net.unwrap_or(all);
    let coarse = IpNet::new(net.addr(), net.prefix_len() / STEP_BITS * STEP_BITS);
    let coarse = coarse.expect("no prefix is longer than it was").trunc();
    (if coarse.prefix_len() == 0 { End::Destination } else { end }, coarse)
}

fn set_name(end: End, bits: u8) -> String {
    let end = match end {
        End::Source => "from",
        End::Destination => "to",
    };
    format!("{end}-{bits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_the_prefix_of_the_end_of_which_it_says_more() {
        for (text, version, end, net) in [
            ("udp dst 10.2.0.0/24 port 5060", IpVersion::V4, End::Destination, "10.2.0.0/24"),
            ("udp src 10.2.0.77/31", IpVersion::V4, End::Source, "10.2.0.64/28"),
            ("udp src 10.2.0.1/32 dst 10.0.0.0/8", IpVersion::V4, End::Source, "10.2.0.1/32"),
            ("udp src 2001:db8::/35 dst 2001:db8::1/128", IpVersion::V6, End::Destination, "2001:db8::1/128"),
            ("ip dst 192.0.0.0/3", IpVersion::V4, End::Destination, "0.0.0.0/0"),
            ("icmp", IpVersion::V6, End::Destination, "::/0"),
        ] {
            assert_eq!(place(version, &text.parse().unwrap()), (end, net.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn sets_are_few_whatever_filters_there_are() {
        let (mut places, mut batch) = (Places::default(), Transaction::default());
        for bits in 0..=128 {
            let ends = ["src", "dst"].map(|end| format!("udp {end} 2001:db8::1/{bits}"));
            for text in &ends {
                places.add(&mut batch, IpVersion::V6, &text.parse().unwrap());
            }
        }
        // What says little of addresses is of the destination.
        assert_eq!((places.rules(IpVersion::V6).count(), places.rules(IpVersion::V4).count()), (1 + 2 * 32, 0));
        for bits in 0..=3 {
            for end in ["src", "dst"] {
                let filter = format!("udp {end} 2001:db8::1/{bits}").parse().unwrap();
                let is_last = (bits, end) == (3, "dst");
                assert_eq!(
                    places.remove(&mut batch, IpVersion::V6, &filter),
                    is_last,
                    "the rule of all packets goes with it"
                );
            }
        }
        assert_eq!(places.rules(IpVersion::V6).count(), 2 * 32);
    }
}
