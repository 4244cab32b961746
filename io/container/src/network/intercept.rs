// SPDX-License-Identifier: Apache-2.0
//! Interception inside the container's namespace: the rules that hand packets of other machines' connections to sockets.
//!
//! Packets of a flow come in by the container's link since the node marks them ([`HostIntercepts`]). What opens a
//! connection is handed to the listening socket; what belongs to a socket of such a connection is delivered here; all
//! else of the flow goes back out as it came, so that connections that were there before go on. A container whose
//! worker died has no listening socket, and then the kernel does that with new connections too.
//!
//! The same becomes of what routers say of packets that are too long for their way: it is for the address that the container
//! speaks with, and comes in by the same link.
//!
//! [`HostIntercepts`]: super::HostIntercepts

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netserv_model::Filter;
use netserv_netlink::message::octets;
use netserv_netlink::nftables::{End, Hook, Rule, Transaction, Verdict};
use netserv_wire::ip::IpVersion;
use netserv_wire::ip::protocol::TCP;

use super::error::NetworkError;
use super::limits::INTERCEPTS_MAX;
use super::matching::{
    Intercept, Permits, VERSIONS, about_too_long, lead_near, node_set, of_protocol, too_long, version_of,
};

/// Refuses filters that say nothing about connections to a port, and too many of them.
pub(super) fn check<'a>(filters: impl Iterator<Item = &'a Filter>) -> Result<(), NetworkError> {
    let mut count = 0;
    for filter in filters {
        count += 1;
        if !filter.is_of_connections() {
            let text = format!("`{filter}` cannot be intercepted: it takes `tcp` with the `port` of a server");
            return Err(NetworkError::Spec(text));
        }
    }
    if count > INTERCEPTS_MAX {
        let text = format!("a container intercepts by {INTERCEPTS_MAX} filters at most, not {count}");
        return Err(NetworkError::Spec(text));
    }
    Ok(())
}

/// Returns the rules that match a filter's packets, one for each version of IP; `reversed`, those of the way back.
pub(super) fn matching(filter: &Filter, reversed: bool) -> impl Iterator<Item = (IpVersion, Rule)> {
    of_protocol(filter, TCP, reversed)
}

/// Returns the rules that match what a container sends of a filter's flows: connections are opened to the server only.
pub(super) fn sent(filter: &Filter) -> impl Iterator<Item = Rule> {
    let to_server = matching(filter, false).map(|(_, rule)| rule);
    to_server.chain(matching(filter, true).map(|(_, rule)| rule.opening(false)))
}

/// Adds the rules that hand packets to sockets here.
pub(super) fn take(batch: &mut Transaction, permits: &Permits) {
    if permits.intercepts.is_empty() {
        return;
    }
    batch.chain(TAKE, Some(Hook::Prerouting(PRIORITY)));
    let here = |rule: Rule| rule.mark(DELIVER).verdict(Verdict::Accept);
    batch.rule(TAKE, &Rule::new().loopback(Hook::Prerouting(PRIORITY)).verdict(Verdict::Accept), "loopback");
    for address in permits.all_addresses() {
        let (octets, bits) = (octets(address), if address.is_ipv4() { 32 } else { 128 });
        let own = Rule::new().version(version_of(address)).address(End::Destination, &octets, bits);
        batch.rule(TAKE, &own.verdict(Verdict::Accept), "own addresses, which are judged as ever");
    }
    batch.rule(TAKE, &here(Rule::new().protocol(TCP).of_transparent_socket()), "taken connections (nft_socket)");
    for version in VERSIONS {
        // Of an error, the kernel looks for the socket that sent what is quoted. How many pass, the chain of what comes in says.
        batch.rule(TAKE, &here(too_long(version).of_transparent_socket()), "bounds on the way (nft_socket)");
    }
    // Whatever others take, these are refused further on.
    for Intercept { filter, .. } in permits.intercepts.iter().filter(|intercept| intercept.is_refused()) {
        for (_, rule) in matching(filter, false) {
            batch.rule(TAKE, &rule.opening(true).verdict(Verdict::Accept), "new connections that nobody may take");
        }
    }
    for Intercept { filter, ports, .. } in &permits.intercepts {
        for (version, rule) in matching(filter, false) {
            let (address, port) = match version {
                IpVersion::V4 => (IpAddr::V4(Ipv4Addr::LOCALHOST), ports.and_then(|ports| ports.v4)),
                IpVersion::V6 => (IpAddr::V6(Ipv6Addr::LOCALHOST), ports.and_then(|ports| ports.v6)),
            };
            if let Some(port) = port {
                let taken = rule.opening(true).deliver_to(version, &octets(address), port);
                batch.rule(TAKE, &here(taken), "new connections (nft_tproxy)");
            }
        }
    }
}

/// Accepts what was handed to sockets here.
pub(super) fn accept_in(batch: &mut Transaction, chain: &str, permits: &Permits) {
    if !permits.intercepts.is_empty() {
        let taken = Rule::new().marked(DELIVER).protocol(TCP).verdict(Verdict::Accept);
        batch.rule(chain, &taken, "intercepted packets");
    }
}

/// Lets pass on what nobody here takes; what opens a connection is reset if it is to be refused.
pub(super) fn pass_on(batch: &mut Transaction, chain: &str, permits: &Permits) {
    for Intercept { filter, refuse, .. } in &permits.intercepts {
        for (_, rule) in matching(filter, false).filter(|_| *refuse) {
            batch.rule(chain, &rule.opening(true).count(REFUSED).reset(), "new connections that nobody takes");
        }
    }
    for Intercept { filter, .. } in &permits.intercepts {
        for (_, rule) in matching(filter, false).chain(matching(filter, true)) {
            batch.rule(chain, &rule.verdict(Verdict::Accept), "connections of others");
        }
    }
    if !permits.intercepts.is_empty() {
        // The node would not take back what has a source of its own.
        let of_node = too_long(IpVersion::V4).address_in(End::Source, IpVersion::V4, node_set(IpVersion::V4));
        batch.rule(chain, &of_node.source_from_quoted_destination(), "bounds of the node's own links");
    }
    for Intercept { filter, .. } in &permits.intercepts {
        for rule in about_too_long(filter) {
            batch.rule(chain, &rule.verdict(Verdict::Accept), "bounds on the way of connections of others");
        }
    }
}

/// Lets sockets here send with the addresses of both ends, where the filters say so, but not to the node.
pub(super) fn send_out(batch: &mut Transaction, chain: &str, refuse: &'static str, permits: &Permits) {
    if permits.intercepts.is_empty() {
        return;
    }
    batch.chain(THROUGH, None);
    batch.rule(THROUGH, &Rule::new().options().verdict(Verdict::Goto(refuse)), "options");
    lead_near(batch, THROUGH, End::Destination, refuse);
    batch.rule(THROUGH, &Rule::new().verdict(Verdict::Accept), "intercepted packets");
    // Others in the container do not go past them either.
    for Intercept { filter, .. } in permits.intercepts.iter().filter(|intercept| intercept.is_refused()) {
        for (_, rule) in matching(filter, false) {
            batch.rule(chain, &rule.opening(true).verdict(Verdict::Goto(refuse)), "connections past who is down");
        }
    }
    for Intercept { filter, .. } in &permits.intercepts {
        for rule in sent(filter) {
            batch.rule(chain, &rule.verdict(Verdict::Goto(THROUGH)), "intercepted packets");
        }
    }
}

/// New connections that were reset since nobody took them.
pub(super) const REFUSED: &str = "refused-intercepted";
const TAKE: &str = "take";
const THROUGH: &str = "through";
/// `NF_IP_PRI_MANGLE`.
const PRIORITY: i32 = -150;
/// The mark of packets that are delivered here, and the table that delivers them. Marks do not leave a namespace.
pub(super) const DELIVER: u32 = 1;
