// SPDX-License-Identifier: Apache-2.0
//! What a container may send and receive, as rules inside its own namespace, where it has no right to change them.
//!
//! No connection tracking: the kernel has one bound on its entries for all namespaces, and strangers fill the table.
//! - TCP is told by its flags. Only what opens a connection is judged by who opens; every other segment passes between ends
//!   that a permit names, in both directions. The kernel drops what belongs to no connection of its own.
//! - UDP has a set of a fixed size of the remote ends that the container opened, which only the container itself can fill.
//!   Datagrams to what it listens for, and from there, pass without one, or made-up senders would fill it. But for clients on
//!   the node and its link, which have a set of their own: to these a container does not speak first.
//! - ICMP errors pass at a bounded rate: the kernel asks whether they belong to a socket. Echoes pass as permits say.

use netserv_model::{Filter, Protocol};
use netserv_netlink::Requests;
use netserv_netlink::message::octets;
use netserv_netlink::nftables::{End, Hook, Rule, Table, Transaction, Verdict};
use netserv_wire::ip::IpVersion;
use netserv_wire::ip::protocol::{ICMP, ICMPV6, TCP, UDP};

use super::limits::{FLOW_IDLE, FLOW_UNANSWERED, FLOWS_MAX, FLOWS_NEAR_MAX, ICMP_ERRORS_PER_SECOND};
use super::matching::{Permits, VERSIONS, lead_near, matching, node_set, of_protocol, version_of};
use super::{intercept, rate};

/// Returns the table in a container's namespace.
pub(super) fn table() -> Table {
    Table::inet("netserv")
}

/// Returns what makes the firewall in a namespace that has none.
pub(super) fn new(permits: &Permits) -> Requests {
    let mut batch = Transaction::of(table());
    batch.table();
    COUNTERS.iter().for_each(|name| batch.counter(name));
    for version in VERSIONS {
        batch.set(opened(version), octets_of(version) + 8, Some(FLOWS_MAX));
        batch.set(near(version), octets_of(version) + 8, Some(FLOWS_NEAR_MAX));
        batch.set(node_set(version), octets_of(version), None);
    }
    batch.chain(IN, Some(Hook::Input));
    batch.chain(FORWARD, Some(Hook::Forward));
    batch.chain(OUT, Some(Hook::Output));
    batch.chain(ACCEPTED, Some(Hook::AfterInput));
    [ADMIT_IN, ADMIT_NEAR, ADMIT_OUT, FROM_OWN, REFUSE].iter().for_each(|name| batch.chain(name, None));
    fill(&mut batch, permits);
    batch.finish()
}

/// Returns what changes the firewall; flows that are under way go on if they are still permitted.
pub(super) fn changed(permits: &Permits) -> Requests {
    let mut batch = Transaction::of(table());
    batch.remove_rules();
    fill(&mut batch, permits);
    batch.finish()
}

/// Why packets are dropped, as the counters are called.
pub(super) const COUNTERS: [&str; 7] =
    [REFUSED_IN, REFUSED_OUT, SPOOFED, FLOWS_FULL, LINK, intercept::REFUSED, rate::PACKETS_IN];

const REFUSED_IN: &str = "refused-in";
const REFUSED_OUT: &str = "refused-out";
const SPOOFED: &str = "spoofed";
const FLOWS_FULL: &str = "flows-full";
const LINK: &str = "link";

const IN: &str = "in";
const OUT: &str = "out";
const FORWARD: &str = "forward";
/// What the container gets, after all was judged: strangers do not use up what it may receive.
const ACCEPTED: &str = "accepted";
/// Datagrams that a container is permitted to get. Nothing is kept of them, but for those of the node and its link.
const ADMIT_IN: &str = "admit-in";
const ADMIT_NEAR: &str = "admit-near";
/// Adds the flow of a datagram that a container is permitted to open.
const ADMIT_OUT: &str = "admit-out";
/// What has a source of the container's own.
const FROM_OWN: &str = "from-own";
const REFUSE: &str = "refuse";

fn fill(batch: &mut Transaction, permits: &Permits) {
    for version in VERSIONS {
        let addresses = permits.node.iter().filter(|address| version_of(**address) == version);
        batch.replace_elements(node_set(version), addresses.map(|address| octets(*address)));
    }
    admit(batch);
    intercept::take(batch, permits);
    intercept::accept_in(batch, IN, permits);
    intercept::pass_on(batch, FORWARD, permits);
    incoming(batch, permits);
    outgoing(batch, permits);
    batch.rule(ACCEPTED, &Rule::new().loopback(Hook::AfterInput).verdict(Verdict::Accept), "loopback");
    batch.rule(ACCEPTED, &rate::over(permits.rate, rate::PACKETS_IN), "packets in a second");
}

fn admit(batch: &mut Transaction) {
    lead_near(batch, ADMIT_IN, End::Source, ADMIT_NEAR);
    batch.rule(ADMIT_IN, &Rule::new().verdict(Verdict::Accept), "datagrams of other machines");
    for version in VERSIONS {
        let of = |remote| Rule::new().version(version).flow(version, remote);
        let taken = of(End::Source).flow_add(near(version), FLOW_UNANSWERED, false);
        batch.rule(ADMIT_NEAR, &taken.verdict(Verdict::Accept), "flows");
        let taken = of(End::Destination).flow_add(opened(version), FLOW_IDLE, true);
        batch.rule(ADMIT_OUT, &taken.verdict(Verdict::Accept), "flows");
    }
    for chain in [ADMIT_NEAR, ADMIT_OUT] {
        batch.rule(chain, &Rule::new().count(FLOWS_FULL).verdict(Verdict::Drop), "flows");
    }
    batch.rule(REFUSE, &Rule::new().count(REFUSED_OUT).reject(), "a rejection");
}

fn incoming(batch: &mut Transaction, permits: &Permits) {
    batch.rule(IN, &Rule::new().loopback(Hook::Input).verdict(Verdict::Accept), "loopback");
    for permit in &permits.connect {
        for (version, rule) in datagrams(permit, true) {
            let known = rule.flow(version, End::Source).flow_in(opened(version));
            batch.rule(IN, &known.verdict(Verdict::Accept), "flows");
        }
    }
    // Their first one has passed, or else they come to nothing.
    batch.rule(IN, &Rule::new().version(IpVersion::V6).later_fragment().verdict(Verdict::Accept), "fragments");
    answers(batch, IN, &permits.connect);
    openings(batch, IN, &permits.listen, ADMIT_IN);
    icmp_errors(batch, IN);
    batch.rule(IN, &Rule::new().count(REFUSED_IN).verdict(Verdict::Drop), "the end");
}

fn outgoing(batch: &mut Transaction, permits: &Permits) {
    batch.rule(OUT, &Rule::new().loopback(Hook::Output).verdict(Verdict::Accept), "loopback");
    // The neighbours are known, and nobody asks for groups: what the kernel says of itself has no listener.
    for (first, last) in LINK_MESSAGES {
        let chatter = Rule::new().version(IpVersion::V6).protocol(ICMPV6).icmp(first, last);
        batch.rule(OUT, &chatter.count(LINK).verdict(Verdict::Drop), "messages of the link");
    }
    for address in permits.all_addresses() {
        let octets = octets(address);
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let own = Rule::new().version(version_of(address)).address(End::Source, &octets, bits);
        batch.rule(OUT, &own.verdict(Verdict::Goto(FROM_OWN)), "own addresses");
    }
    intercept::send_out(batch, OUT, REFUSE, permits);
    batch.rule(OUT, &Rule::new().count(SPOOFED).verdict(Verdict::Drop), "other sources");
    // Every program may have the routers lead its packets elsewhere than to their destination (RFC 791, source route).
    batch.rule(FROM_OWN, &Rule::new().options().verdict(Verdict::Goto(REFUSE)), "options");
    for permit in &permits.listen {
        for (version, rule) in datagrams(permit, true) {
            let known = rule.flow(version, End::Destination).flow_in(near(version));
            let kept = known.flow_add(near(version), FLOW_IDLE, true);
            batch.rule(FROM_OWN, &kept.verdict(Verdict::Accept), "flows");
        }
    }
    answers(batch, FROM_OWN, &permits.listen);
    icmp_errors(batch, FROM_OWN);
    let (named, unnamed): (Vec<_>, Vec<_>) = permits.connect.iter().partition(|permit| permit.destination().is_some());
    openings(batch, FROM_OWN, named, ADMIT_OUT);
    lead_near(batch, FROM_OWN, End::Destination, REFUSE);
    for permit in &permits.listen {
        for (_, rule) in datagrams(permit, true) {
            batch.rule(FROM_OWN, &rule.verdict(Verdict::Accept), "datagrams of what listens");
        }
    }
    openings(batch, FROM_OWN, unnamed, ADMIT_OUT);
    batch.rule(FROM_OWN, &Rule::new().verdict(Verdict::Goto(REFUSE)), "the end");
}

/// Returns the rules that match a permit's datagrams, one for each version of IP; `reversed`, those that come back.
fn datagrams(permit: &Filter, reversed: bool) -> impl Iterator<Item = (IpVersion, Rule)> {
    let is_about = matches!(permit.protocol(), Protocol::Udp | Protocol::Any);
    of_protocol(permit, UDP, reversed).filter(move |_| is_about)
}

/// Passes the answers to what permits let begin on the other side, but for datagrams.
fn answers(batch: &mut Transaction, chain: &str, permits: &[Filter]) {
    for permit in permits {
        for matched in matching(permit, true) {
            let answer = match matched.protocol {
                TCP => matched.rule.opening(false),
                UDP => continue,
                ICMP => matched.rule.icmp(ECHO_REPLY, ECHO_REPLY),
                _ => matched.rule.icmp(ECHO_REPLY_V6, ECHO_REPLY_V6),
            };
            batch.rule(chain, &answer.verdict(Verdict::Accept), &permit.to_string());
        }
    }
}

/// Passes what permits let begin; datagrams by way of `admit`.
fn openings<'a>(
    batch: &mut Transaction,
    chain: &str,
    permits: impl IntoIterator<Item = &'a Filter>,
    admit: &'static str,
) {
    for permit in permits {
        for matched in matching(permit, false) {
            let (rule, verdict) = match matched.protocol {
                TCP => (matched.rule, Verdict::Accept),
                UDP => (matched.rule, Verdict::Goto(admit)),
                ICMP => (matched.rule.icmp(ECHO, ECHO), Verdict::Accept),
                _ => (matched.rule.icmp(ECHO_V6, ECHO_V6), Verdict::Accept),
            };
            batch.rule(chain, &rule.verdict(verdict), &permit.to_string());
        }
    }
}

fn icmp_errors(batch: &mut Transaction, chain: &str) {
    for (version, protocol, first, last) in ICMP_ERRORS {
        let error = Rule::new().version(version).protocol(protocol).icmp(first, last);
        let rule = error.at_most_per_second(ICMP_ERRORS_PER_SECOND).verdict(Verdict::Accept);
        batch.rule(chain, &rule, "ICMP errors");
    }
}

const ECHO_REPLY: u8 = 0;
const ECHO: u8 = 8;
const ECHO_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;
/// Unreachable with what is too big; time exceeded with bad parameters. RFC 4443 §2.1: all four of ICMPv6.
const ICMP_ERRORS: [(IpVersion, u8, u8, u8); 3] =
    [(IpVersion::V4, ICMP, 3, 3), (IpVersion::V4, ICMP, 11, 12), (IpVersion::V6, ICMPV6, 1, 4)];
/// Listeners of groups, routers and neighbours; the second version of the first.
const LINK_MESSAGES: [(u8, u8); 2] = [(130, 137), (143, 143)];

/// The set of remote ends to which the container sent first.
fn opened(version: IpVersion) -> &'static str {
    match version {
        IpVersion::V4 => "opened4",
        IpVersion::V6 => "opened6",
    }
}

/// The set of remote ends on the node and its link that sent first.
fn near(version: IpVersion) -> &'static str {
    match version {
        IpVersion::V4 => "near4",
        IpVersion::V6 => "near6",
    }
}

fn octets_of(version: IpVersion) -> u32 {
    match version {
        IpVersion::V4 => 4,
        IpVersion::V6 => 16,
    }
}
