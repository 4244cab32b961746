// SPDX-License-Identifier: Apache-2.0
//! The node's side of interception: packets of flows that a container takes over are led to its link.
//!
//! One table of nf_tables for each instance, which is named after it, marks these packets of both directions, but not
//! those that come from a container; a rule of policy routing leads each mark to a table of routes with one way, the
//! container's link. When a link goes, its routes go, and the packets go on as all others do. A second set of rules there
//! judges what comes from such a container: its own addresses, and the ends of its flows.
//!
//! What routers say of packets that are too long for their way goes with the flow whose packet it quotes, also what the node
//! itself says: it is for the addresses of both ends, which the container speaks with.
//!
//! Others can take rules of policy routing and routes away, but not the table. So it also drops what would go past a module
//! that fails closed: packets of its flows that are about to leave by another device than the container's link.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use netserv_model::container_link::{CONTAINER_LINKS_MAX, container_link_group, container_link_prefix};
use netserv_model::{Filter, share};
use netserv_netlink::message::octets;
use netserv_netlink::nftables::{self, End, Hook, Rule, Table, Transaction, Verdict};
use netserv_netlink::{Requests, Socket};
use netserv_wire::ip::IpVersion;
use netserv_wire::ip::protocol::TCP;

use super::container_network::ContainerNetwork;
use super::error::NetworkError;
use super::limits::{INTERCEPTS_EACH, NODE_INTERCEPTS_MAX};
use super::link_state::HostEnd;
use super::matching::{VERSIONS, about_too_long, too_long, version_of};
use super::{intercept, link, routing, sockets};

/// What a node leads to containers other than packets for their own addresses. Dropping it takes all of it away.
#[derive(Debug)]
pub struct HostIntercepts {
    instance: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    routes: Socket,
    rules: Socket,
    links: BTreeMap<String, Link>,
    /// Whether there is a table.
    is_made: bool,
}

/// One container's link.
#[derive(Clone, Debug)]
struct Link {
    index: u32,
    mark: u32,
    /// Where a table of routes leads, and of which versions of IP there is one.
    hops: [IpAddr; 2],
    versions: Vec<IpVersion>,
    addresses: Vec<IpAddr>,
    filters: Vec<Filter>,
    /// Those of modules that fail closed.
    closed: Vec<Filter>,
}

impl HostIntercepts {
    /// Returns the intercepts of an instance in this network namespace, none at first; those that a killed run left go.
    ///
    /// # Errors
    /// [`NetworkError`] if the kernel gives no socket or does not let them go.
    pub fn open(instance: &str) -> Result<HostIntercepts, NetworkError> {
        remove_intercepts(instance)?;
        let routes = sockets::routes()?;
        let rules = sockets::rules()?;
        let state = Mutex::new(State { routes, rules, links: BTreeMap::new(), is_made: false });
        Ok(HostIntercepts { instance: instance.to_owned(), state })
    }

    /// Leads the packets that a container's filters match, and those of the way back, to the container; those of filters
    /// that are not named any more go as they would.
    ///
    /// # Errors
    /// [`NetworkError`] if there are too many or the kernel refuses; then all is as it was.
    pub fn set(&self, network: &ContainerNetwork, filters: &[Filter]) -> Result<(), NetworkError> {
        intercept::check(filters.iter())?;
        let mut state = self.state();
        let name = network.name().to_owned();
        let others = state.links.iter().filter(|(link, _)| **link != name).map(|(_, link)| link.filters.len());
        if !share::leaves_room(others.chain([filters.len()]), INTERCEPTS_EACH, NODE_INTERCEPTS_MAX) {
            let text = format!(
                "a node intercepts by {NODE_INTERCEPTS_MAX} filters at most, half of them beyond {INTERCEPTS_EACH} of each container"
            );
            return Err(NetworkError::Spec(text));
        }
        let mut links = state.links.clone();
        if filters.is_empty() {
            if links.remove(&name).is_none() {
                return Ok(());
            }
        } else if let Some(link) = links.get_mut(&name) {
            link.filters = filters.to_vec();
            link.closed = closed_of(network);
            link.addresses = network.permits().all_addresses().collect();
        } else {
            links.insert(name.clone(), state.lead(network, filters)?);
        }
        let (had, has) = (state.links.get(&name).map(|link| link.mark), links.contains_key(&name));
        let changed = state.rules.carry_out(&table(&self.instance, &links));
        if changed.is_ok() {
            (state.links, state.is_made) = (links, true);
        }
        let gone = if changed.is_ok() { !has } else { had.is_none() };
        if gone && let Some(mark) = had.or_else(|| mark_of(&name)) {
            state.let_go(&name, mark);
        }
        Ok(changed?)
    }

    /// Forgets a container whose link is being removed.
    ///
    /// # Errors
    /// [`NetworkError`] if the kernel refuses.
    pub fn forget(&self, network: &ContainerNetwork) -> Result<(), NetworkError> {
        if self.state().links.contains_key(network.name()) { self.set(network, &[]) } else { Ok(()) }
    }

    /// Returns rules of policy routing of others by which packets may go past containers, since they come before ours, in the
    /// words of `ip rule`.
    ///
    /// # Errors
    /// [`NetworkError`] if the kernel does not tell.
    pub fn preceding(&self) -> Result<Vec<String>, NetworkError> {
        let state = self.state();
        let marks: Vec<u32> = state.links.values().map(|link| link.mark).collect();
        let mut found = Vec::new();
        for version in VERSIONS {
            if state.links.values().any(|link| link.versions.contains(&version)) {
                let rules = routing::preceding(&state.routes, version, &marks);
                found.extend(rules.map_err(NetworkError::kernel("ask for policy routing"))?);
            }
        }
        Ok(found)
    }

    /// Puts back what somebody took away of what leads packets to containers: rules of policy routing, routes, and neighbours. Returns
    /// what that was, for people.
    ///
    /// # Errors
    /// [`NetworkError`] if the kernel does not tell, or refuses.
    pub fn restore(&self) -> Result<Vec<&'static str>, NetworkError> {
        let state = self.state();
        let mut missing = Vec::new();
        if state.links.is_empty() {
            return Ok(missing);
        }
        for version in VERSIONS {
            let marks =
                routing::marks(&state.routes, version).map_err(NetworkError::kernel("ask for policy routing"))?;
            for link in state.links.values().filter(|link| link.versions.contains(&version)) {
                let mut requests = Requests::default();
                let hop = link.hops[usize::from(version == IpVersion::V6)];
                let neighbours = [hop];
                let is_open = version == IpVersion::V4;
                let (own, floating) = (&[], &BTreeSet::new());
                let end = HostEnd { index: link.index, neighbours: &neighbours, own, floating, is_open };
                let mended = end.mend(&state.routes, &mut requests);
                missing.extend(mended.map_err(NetworkError::kernel("ask for the node's end of a container's link"))?);
                if !marks.contains(&link.mark) {
                    routing::add_rule(&mut requests, version, link.mark, link.mark);
                    missing.push("rules of policy routing");
                }
                let leads = routing::leads(&state.routes, version, link.mark, link.index);
                // Without the rule, the question says nothing of the route.
                if !marks.contains(&link.mark) || !leads.map_err(NetworkError::kernel("ask for a route"))? {
                    routing::lead_to(&mut requests, link.mark, link.index, hop);
                    missing.push("routes");
                }
                state.routes.carry_out(&requests)?;
            }
        }
        missing.dedup();
        Ok(missing)
    }

    /// Returns how many packets of a container's were dropped here, by reason: `spoofed` if neither its own address nor an end of
    /// its flows was the source, and `astray` if they would have gone past a module of its that fails closed.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn dropped(&self, network: &ContainerNetwork) -> io::Result<BTreeMap<&'static str, u64>> {
        let state = self.state();
        let counters =
            if state.is_made { nftables::counters(&state.rules, &table_of(&self.instance))? } else { vec![] };
        let of = |reason| {
            let name = counter(network.name(), reason);
            counters.iter().find(|(counter, _)| *counter == name).map(|(_, packets)| (reason, *packets))
        };
        Ok([SPOOFED, ASTRAY].into_iter().filter_map(of).collect())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HostIntercepts {
    fn drop(&mut self) {
        let state = self.state();
        if !state.is_made {
            return;
        }
        if let Err(error) = nftables::remove_table(&state.rules, table_of(&self.instance)) {
            tracing::debug!(%error, "the table of intercepts goes with its socket");
        }
        if let Err(error) = remove_intercepts(&self.instance) {
            tracing::warn!(%error, "rules of interception are left behind");
        }
    }
}

impl State {
    /// Makes the way to a container.
    fn lead(&self, network: &ContainerNetwork, filters: &[Filter]) -> Result<Link, NetworkError> {
        let name = network.name();
        let mark = mark_of(name).ok_or_else(|| NetworkError::Spec(format!("`{name}` is no container's link")))?;
        let (index, hops, has_v6) = link::open_host_end(&self.routes, name)?;
        let mut versions = Vec::new();
        for (version, hop) in VERSIONS.into_iter().zip(hops).filter(|(version, _)| has_v6 || *version == IpVersion::V4)
        {
            let mut requests = Requests::default();
            routing::lead_to(&mut requests, mark, index, hop);
            routing::add_rule(&mut requests, version, mark, mark);
            match self.routes.carry_out(&requests) {
                Err(error) if version == IpVersion::V6 && routing::is_missing_here(&error) => {}
                Err(error) => {
                    self.let_go(name, mark);
                    return Err(error.into());
                }
                Ok(()) => versions.push(version),
            }
        }
        let addresses = network.permits().all_addresses().collect();
        let closed = closed_of(network);
        Ok(Link { index, mark, hops, versions, addresses, filters: filters.to_vec(), closed })
    }

    /// Takes the way to a container away; routes go with its link, and lead nowhere without the rule.
    fn let_go(&self, name: &str, mark: u32) {
        for version in VERSIONS {
            if routing::marks(&self.routes, version).is_ok_and(|marks| marks.contains(&mark)) {
                let mut requests = Requests::default();
                routing::remove_rule(&mut requests, version, mark, mark);
                if let Err(error) = self.routes.carry_out(&requests) {
                    tracing::warn!(%error, name, "a rule of policy routing is left behind");
                }
            }
        }
        if let Err(error) = link::close_host_end(&self.routes, name) {
            tracing::debug!(%error, name, "the link is gone");
        }
    }
}

/// Removes the rules by which an instance leads packets to containers in this network namespace, also what a killed run left.
/// Its table goes with its socket.
///
/// # Errors
/// [`NetworkError`] with the first that could not be removed.
pub fn remove_intercepts(instance: &str) -> Result<(), NetworkError> {
    let routes = sockets::routes()?;
    for version in VERSIONS {
        let marks = routing::marks(&routes, version).map_err(NetworkError::kernel("ask for policy routing"))?;
        let mut requests = Requests::default();
        let first = first_mark(instance);
        for mark in marks.into_iter().filter(|mark| (first..first + CONTAINER_LINKS_MAX).contains(mark)) {
            routing::remove_rule(&mut requests, version, mark, mark);
        }
        routes.carry_out(&requests)?;
    }
    Ok(())
}

/// Returns the filters by which a container's modules that fail closed take connections over.
fn closed_of(network: &ContainerNetwork) -> Vec<Filter> {
    let permits = network.permits();
    permits.intercepts.iter().filter(|intercept| intercept.refuse).map(|intercept| intercept.filter.clone()).collect()
}

const MARK: &str = "mark";
const JUDGE: &str = "judge";
const GUARD: &str = "guard";
const OWN: &str = "own";
const TOO_LONG: &str = "too-long";
const SPOOFED: &str = "spoofed";
const ASTRAY: &str = "astray";
/// Just after destinations were translated, so that both directions show the addresses that they have on the inside.
const PRIORITY: i32 = -99;

/// Returns what makes the table, or its rules anew. It stays until the node ends, for the reason that [`sent`](super::sent)
/// has.
fn table(instance: &str, links: &BTreeMap<String, Link>) -> Requests {
    let mut batch = Transaction::of(table_of(instance));
    batch.own_table();
    batch.chain(MARK, Some(Hook::Prerouting(PRIORITY)));
    batch.chain(GUARD, Some(Hook::AfterForward));
    batch.chain(OWN, Some(Hook::Reroute(PRIORITY)));
    [JUDGE, TOO_LONG].iter().for_each(|chain| batch.chain(chain, None));
    batch.remove_rules();
    // Counters stay until the node ends, and the next link of this name goes on with them.
    for name in links.keys() {
        [SPOOFED, ASTRAY].iter().for_each(|reason| batch.counter(&counter(name, reason)));
    }
    if links.is_empty() {
        return batch.finish();
    }
    if let Some(group) = links.keys().find_map(|name| container_link_group(name)) {
        batch.rule(MARK, &Rule::new().of_group(group).verdict(Verdict::Goto(JUDGE)), "what containers send");
        batch.rule(GUARD, &Rule::new().of_group(group).verdict(Verdict::Accept), "what containers send");
    }
    for (name, link) in links {
        for filter in &link.closed {
            for (_, rule) in intercept::matching(filter, false).chain(intercept::matching(filter, true)) {
                let past = rule.not_out_by(link.index).count(&counter(name, ASTRAY)).verdict(Verdict::Drop);
                batch.rule(GUARD, &past, "flows past a module that fails closed");
            }
        }
    }
    for (name, link) in links {
        for address in &link.addresses {
            let (octets, bits) = (octets(*address), if address.is_ipv4() { 32 } else { 128 });
            let own = Rule::new().of_device(link.index).version(version_of(*address));
            batch.rule(JUDGE, &own.address(End::Source, &octets, bits).verdict(Verdict::Accept), "own addresses");
        }
        for filter in &link.filters {
            for rule in intercept::sent(filter) {
                let sent = rule.of_device(link.index).verdict(Verdict::Accept);
                batch.rule(JUDGE, &sent, "what intercepting containers send");
            }
            for rule in about_too_long(filter) {
                let back = rule.of_device(link.index).verdict(Verdict::Accept);
                batch.rule(JUDGE, &back, "bounds on the way of connections of others");
            }
        }
        let other = Rule::new().of_device(link.index).count(&counter(name, SPOOFED)).verdict(Verdict::Drop);
        batch.rule(JUDGE, &other, "other sources");
    }
    for version in VERSIONS {
        for chain in [MARK, OWN] {
            batch.rule(chain, &too_long(version).verdict(Verdict::Goto(TOO_LONG)), "bounds on the way");
        }
    }
    batch.rule(MARK, &Rule::new().not_protocol(TCP).verdict(Verdict::Accept), "what is not TCP");
    for link in links.values() {
        for filter in &link.filters {
            for (_, rule) in intercept::matching(filter, false).chain(intercept::matching(filter, true)) {
                batch.rule(MARK, &rule.mark(link.mark).verdict(Verdict::Accept), "flows to intercept");
            }
            for rule in about_too_long(filter) {
                let led = rule.mark(link.mark).verdict(Verdict::Accept);
                batch.rule(TOO_LONG, &led, "bounds on the way of flows to intercept");
            }
        }
    }
    batch.finish()
}

/// Returns the name of a counter of a link's.
fn counter(link: &str, reason: &str) -> String {
    format!("{link}-{reason}")
}

/// The table is called as the links, without their numbers.
fn table_of(instance: &str) -> Table {
    Table::inet(&table_name(instance))
}

fn table_name(instance: &str) -> String {
    container_link_prefix(instance).trim_end_matches('n').to_owned()
}

/// Returns the mark of the packets that go to a container, which is also the number of their table of routes.
fn mark_of(name: &str) -> Option<u32> {
    let number: u32 = name.rsplit_once('n')?.1.parse().ok()?;
    container_link_group(name).map(|group| base(group) + number % CONTAINER_LINKS_MAX)
}

fn first_mark(instance: &str) -> u32 {
    container_link_group(&format!("{}0", container_link_prefix(instance))).map_or(0, base)
}

/// Numbers below are in use by others: tables of the system, and small marks.
const BASE_MIN: u32 = 0x0100_0000;

fn base(group: u32) -> u32 {
    group.clamp(BASE_MIN, u32::MAX - CONTAINER_LINKS_MAX)
}

#[cfg(test)]
mod tests {
    use netserv_model::container_link::container_link;

    use super::*;

    #[test]
    fn marks_are_told_apart_and_found_by_the_instance() {
        for instance in ["0a1b2c3d", "00000001", "ffffffff", "a node"] {
            let first = first_mark(instance);
            for number in [0, 7, CONTAINER_LINKS_MAX - 1] {
                assert_eq!(mark_of(&container_link(instance, number)), Some(first + number), "{instance}");
            }
            assert!(first >= BASE_MIN && table_name(instance).len() == 10, "{instance}");
        }
        assert_eq!(mark_of("eth0"), None);
    }
}
