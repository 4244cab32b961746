// SPDX-License-Identifier: Apache-2.0
//! How permits, filters and addresses become matches of rules.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use netserv_model::policy::NetworkRate;
use netserv_model::{Filter, PortRange, Protocol};
use netserv_netlink::message::octets;
use netserv_netlink::nftables::{End, Rule, Transaction, Verdict};
use netserv_wire::ip::IpVersion;
use netserv_wire::ip::protocol::{ICMP, ICMPV6, TCP, UDP};

/// What a firewall lets pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Permits {
    /// The container's own addresses.
    pub addresses: Vec<IpAddr>,
    /// Those that float to it.
    pub floating: BTreeSet<IpAddr>,
    /// What it may accept.
    pub listen: Vec<Filter>,
    /// What it may open.
    pub connect: Vec<Filter>,
    /// The node's addresses, which a permit to connect has to name.
    pub node: BTreeSet<IpAddr>,
    /// The connections between others that it takes over.
    pub intercepts: Vec<Intercept>,
    /// How fast it sends and receives.
    pub rate: NetworkRate,
}

impl Permits {
    /// Returns all addresses that the container may speak with.
    pub(super) fn all_addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.addresses.iter().chain(&self.floating).copied()
    }
}

/// Connections that a container takes over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intercept {
    /// Whose: TCP with the server's port, as packets from client to server look.
    pub filter: Filter,
    /// The ports of the listening sockets that take new ones; nothing while nobody takes them.
    pub ports: Option<ListenerPorts>,
    /// New ones that nobody takes are reset; else they go on untouched.
    pub refuse: bool,
}

impl Intercept {
    /// Returns whether new connections are reset.
    pub(super) fn is_refused(&self) -> bool {
        self.refuse && self.ports.is_none()
    }
}

/// The ports of listening sockets inside a container, on its loopback interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenerPorts {
    /// That for IPv4.
    pub v4: Option<u16>,
    /// That for IPv6.
    pub v6: Option<u16>,
}

/// One of the rules that a filter becomes, and its protocol's number.
pub(super) struct Matched {
    pub protocol: u8,
    pub rule: Rule,
}

/// Returns a rule for each version and protocol that a filter takes; `reversed`, for the packets that come back.
pub(super) fn matching(filter: &Filter, reversed: bool) -> Vec<Matched> {
    let protocols: &[(u8, Option<IpVersion>)] = match filter.protocol() {
        Protocol::Any => &[(TCP, None), (UDP, None), (ICMP, Some(IpVersion::V4)), (ICMPV6, Some(IpVersion::V6))],
        Protocol::Tcp => &[(TCP, None)],
        Protocol::Udp => &[(UDP, None)],
        Protocol::Icmp => &[(ICMP, Some(IpVersion::V4)), (ICMPV6, Some(IpVersion::V6))],
    };
    let wanted = filter.source().or(filter.destination()).map(|net| version_of(net.addr()));
    let mut rules = Vec::new();
    for (protocol, version) in protocols {
        if wanted.zip(*version).is_some_and(|(wanted, version)| wanted != version) {
            continue;
        }
        let mut rule = Rule::new();
        if let Some(version) = wanted.or(*version) {
            rule = rule.version(version);
        }
        rules.push(Matched { protocol: *protocol, rule: ends(rule.protocol(*protocol), filter, reversed) });
    }
    rules
}

/// Adds the matches of a filter's two ends; `reversed`, for the packets that come back.
pub(super) fn ends(rule: Rule, filter: &Filter, reversed: bool) -> Rule {
    each_end(rule, filter, reversed, |rule, end, prefix| rule.prefix(end, &prefix), Rule::port)
}

/// Returns the rules that match what routers say of a filter's packets of TCP that are too long for their way, whichever
/// end sent them.
pub(super) fn about_too_long(filter: &Filter) -> impl Iterator<Item = Rule> {
    let about = |version: IpVersion, reversed| {
        let address =
            |rule: Rule, end, prefix: IpNet| rule.quoted_address(end, &octets(prefix.addr()), prefix.prefix_len());
        let port = |rule: Rule, end, ports| rule.quoted_port(version, end, ports);
        each_end(too_long(version), filter, reversed, address, port)
    };
    versions(filter).flat_map(move |version| [about(version, false), about(version, true)])
}

/// Returns a rule that matches what routers say of a packet of TCP that is too long for its way (RFC 1191 §4, RFC 4443 §3.2).
pub(super) fn too_long(version: IpVersion) -> Rule {
    let (protocol, kind): (_, &[u8]) = match version {
        IpVersion::V4 => (ICMP, &[3, 4]),
        IpVersion::V6 => (ICMPV6, &[2]),
    };
    Rule::new().version(version).protocol(protocol).transport_bytes(0, kind).quotes(version, TCP)
}

fn each_end(
    mut rule: Rule,
    filter: &Filter,
    reversed: bool,
    address: impl Fn(Rule, End, IpNet) -> Rule,
    port: impl Fn(Rule, End, PortRange) -> Rule,
) -> Rule {
    let (first, second) = if reversed { (End::Destination, End::Source) } else { (End::Source, End::Destination) };
    for (end, prefix) in [(first, filter.source()), (second, filter.destination())] {
        if let Some(prefix) = prefix.filter(|prefix| prefix.prefix_len() > 0) {
            rule = address(rule, end, prefix);
        }
    }
    for (end, ports) in [(first, filter.source_ports()), (second, filter.destination_ports())] {
        if let Some(ports) = ports {
            rule = port(rule, end, ports);
        }
    }
    rule
}

/// Returns the rules that match a filter's packets of one protocol, whatever protocol it names, one for each version of IP;
/// `reversed`, those of the packets that come back.
pub(super) fn of_protocol(filter: &Filter, protocol: u8, reversed: bool) -> impl Iterator<Item = (IpVersion, Rule)> {
    let of = move |version| (version, ends(Rule::new().version(version).protocol(protocol), filter, reversed));
    versions(filter).map(of)
}

/// Returns the versions of IP that a filter is about.
fn versions(filter: &Filter) -> impl Iterator<Item = IpVersion> {
    let versions = [(IpVersion::V4, 4), (IpVersion::V6, 6)].into_iter();
    let versions = versions.filter(|(_, number)| filter.version().is_none_or(|wanted| wanted == *number));
    versions.map(|(version, _)| version)
}

/// Leads packets of which an end is no other machine to a chain: the node itself, its link, or many machines at a time.
pub(super) fn lead_near(batch: &mut Transaction, chain: &str, end: End, to: &'static str) {
    for version in VERSIONS {
        let of_node = Rule::new().address_in(end, version, node_set(version));
        batch.rule(chain, &of_node.verdict(Verdict::Goto(to)), "the node's addresses");
    }
    for prefix in NOT_OTHER_MACHINES {
        let prefix: IpNet = prefix.parse().expect("our own prefixes are prefixes");
        let octets = octets(prefix.addr());
        let near = Rule::new().version(version_of(prefix.addr())).address(end, &octets, prefix.prefix_len());
        batch.rule(chain, &near.verdict(Verdict::Goto(to)), "addresses of no other machine");
    }
}

/// Returns the name of the set of the node's addresses.
pub(super) fn node_set(version: IpVersion) -> &'static str {
    match version {
        IpVersion::V4 => "node4",
        IpVersion::V6 => "node6",
    }
}

pub(super) fn version_of(address: IpAddr) -> IpVersion {
    if address.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 }
}

pub(super) const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

/// Loopback and "this" network, one link, many receivers.
const NOT_OTHER_MACHINES: [&str; 9] = [
    "0.0.0.0/8",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "224.0.0.0/4",
    "255.255.255.255/32",
    "::/127",
    "::ffff:0.0.0.0/96",
    "fe80::/10",
    "ff00::/8",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(filter: &str, expected: &[u8]) {
        let filter: Filter = filter.parse().unwrap();
        let found: Vec<u8> = matching(&filter, false).iter().map(|matched| matched.protocol).collect();
        assert_eq!(found, expected, "{filter}");
    }

    #[test]
    fn a_filter_becomes_a_rule_for_each_protocol_of_its_version() {
        check("tcp port 80", &[TCP]);
        check("ip", &[TCP, UDP, ICMP, ICMPV6]);
        check("ip src 10.0.0.0/8", &[TCP, UDP, ICMP]);
        check("icmp", &[ICMP, ICMPV6]);
        check("icmp dst 2001:db8::/32", &[ICMPV6]);
    }
}
