// SPDX-License-Identifier: Apache-2.0
//! Our rules in the kernel's packet filter: tables of nf_tables of our own, one per instance, purpose and version of IP, each
//! with a chain at PREROUTING.
//!
//! There packets have not been routed yet, so that a changed destination is routed afresh, and packets for the node
//! itself are seen too. Nobody else can take the rules away, and they go with this process ([`Transaction::new_own_table`]). Both versions of IP
//! change at once.

mod counted;
pub mod foreign;
mod netlink_tables;
mod places;
mod tool;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use netserv_model::effect::FilterId;
use netserv_model::{Filter, PortRange, Protocol};
use netserv_netlink::message::Message;
use netserv_netlink::nftables::{self, End, Hook, Rule, Table, Transaction, Verdict};
use netserv_netlink::{Family, Refused, Socket};
use netserv_plane::{Change, DriverError, FilterTable, filters};
use netserv_wire::ip::IpVersion;
use netserv_wire::ip::protocol::{ICMP, ICMPV6, TCP, UDP};
use rustix::io::Errno;

pub(crate) use counted::Counted;
use places::Places;

/// Queues with numbers in a row; a packet's addresses and protocol choose the one that it goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueRow {
    pub first: u16,
    /// Not 0.
    pub count: u16,
}

/// The queues that filters lead to.
#[derive(Clone, Debug)]
pub(crate) struct QueueNumbers {
    /// Those of modules that fail open.
    pub open: QueueRow,
    /// Those of modules that fail closed.
    pub closed: QueueRow,
    /// Whether there ever was a rule that leads there.
    pub is_closed_used: Arc<AtomicBool>,
}

/// The rules that lead signaling messages for other nodes to a queue. They go when this is dropped.
pub struct Signaling {
    _tables: Socket,
}

impl Signaling {
    /// Leads UDP packets to a port that start with a magic number to a queue, but those with the mark, those for this
    /// machine, and those that come in by one device.
    ///
    /// The magic number is looked for where the UDP payload of IPv4 packets starts; IPv6 packets are told apart later.
    pub fn open(
        instance: &str,
        (queue, mark): (u16, u32),
        (port, magic): (u16, u32),
        except: Option<&str>,
    ) -> Result<Signaling, DriverError> {
        let (tables, mut batch) = (open()?, Transaction::default());
        for version in versions_here() {
            batch.turn_to(Table::of(version, &format!("{SIGNALING}{}", instance_text(instance))));
            batch.new_own_table();
            batch.chain(CHAIN, Some(Hook::Prerouting(BEFORE_PACKETS)));
            let mut rule = Rule::new().protocol(UDP).port(End::Destination, PortRange::single(port)).not_marked(mark);
            if let Some(device) = except {
                rule = rule.not_of_device_named(device);
            }
            rule = rule.not_for_this_machine();
            if version == IpVersion::V4 {
                rule = rule.transport_bytes(UDP_HEADER_BYTES, &magic.to_be_bytes());
            }
            batch.rule(CHAIN, &rule.queue(queue, 1), "signaling");
        }
        tables.carry_out(&batch.finish()).map_err(refused)?;
        Ok(Signaling { _tables: tables })
    }
}

/// What a guard of modules that fail closed lets pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The name of the device by which the driver hands packets to the kernel.
    pub own_device: String,
    /// The group of the node's ends of containers' links.
    pub containers: Option<u32>,
}

/// The filters that lead packets to a queue.
#[derive(Debug)]
pub struct Rules {
    /// The name of the tables.
    table: String,
    /// Where the rules of filters are.
    chain: &'static str,
    /// Where those of modules that fail closed are once more.
    guard: Option<&'static str>,
    versions: Vec<IpVersion>,
    queues: QueueNumbers,
    mark: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    tables: Socket,
    closed: bool,
    filters: BTreeMap<FilterId, Filter>,
    /// The kernel's rules of each, and the chain of each rule.
    rules: BTreeMap<FilterId, Vec<(IpVersion, &'static str, u64)>>,
    /// What the guarded filters want.
    places: Places,
    /// As they were set last.
    devices: Vec<u32>,
    guard: Option<Guard>,
}

impl Rules {
    /// Makes the tables, without filters; rules leave packets with the mark alone.
    ///
    /// # Errors
    /// Another process has tables of this instance, or the kernel lacks something.
    pub(crate) fn open(instance: &str, queues: QueueNumbers, mark: u32) -> Result<Rules, DriverError> {
        Rules::open_in(CHAIN, None, instance, queues, mark)
    }

    /// Makes the tables for packets that come in by some devices, none at first ([`Rules::set_devices`]).
    ///
    /// # Errors
    /// As of [`Rules::open`].
    pub(crate) fn open_for_devices(instance: &str, queues: QueueNumbers, mark: u32) -> Result<Rules, DriverError> {
        Rules::open_in(OF_DEVICES, Some(PAST), instance, queues, mark)
    }

    fn open_in(
        chain: &'static str,
        guard: Option<&'static str>,
        instance: &str,
        queues: QueueNumbers,
        mark: u32,
    ) -> Result<Rules, DriverError> {
        let table = format!("{PACKETS}{}", instance_text(instance));
        let (tables, versions, mut batch) = (open()?, versions_here(), Transaction::default());
        for version in &versions {
            batch.turn_to(Table::of(*version, &table));
            batch.new_own_table();
            batch.chain(CHAIN, Some(Hook::Prerouting(AFTER_MANGLE)));
            [Some(chain).filter(|chain| *chain != CHAIN), guard]
                .into_iter()
                .flatten()
                .for_each(|chain| batch.chain(chain, None));
        }
        tables.carry_out(&batch.finish()).map_err(refused)?;
        let (filters, rules, places) = (BTreeMap::new(), BTreeMap::new(), Places::default());
        let state = State { tables, closed: false, filters, rules, places, devices: Vec::new(), guard: None };
        let state = Mutex::new(state);
        Ok(Rules { table, chain, guard, versions, queues, mark, state })
    }

    /// Leads to the filters what comes in by these devices and, if there is a guard, to those of modules that fail closed what came
    /// past the driver by any other. The guard lets pass what comes by the driver's own device, which is named, or out of a
    /// container.
    ///
    /// # Errors
    /// The kernel refuses, and all is as it was.
    pub fn set_devices(&self, devices: &[u32], guard: Option<&Guard>) -> Result<(), DriverError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut batch = Transaction::default();
        self.lead(&mut batch, devices, guard, &state.places);
        state.tables.carry_out(&batch.finish()).map_err(refused)?;
        (state.devices, state.guard) = (devices.to_vec(), guard.cloned());
        Ok(())
    }

    fn lead(&self, batch: &mut Transaction, devices: &[u32], guard: Option<&Guard>, places: &Places) {
        for version in &self.versions {
            batch.turn_to(self.table(*version));
            batch.remove_rules_of(CHAIN);
            for device in devices {
                let rule = Rule::new().of_device(*device).verdict(Verdict::Goto(self.chain));
                batch.rule(CHAIN, &rule, "devices");
            }
            let Some((past, guard)) = self.guard.zip(guard) else { continue };
            if let Some(group) = guard.containers {
                batch.rule(CHAIN, &Rule::new().of_group(group).verdict(Verdict::Accept), "what containers send");
            }
            for rule in places.rules(*version) {
                let rule = rule.not_of_device_named(&guard.own_device).not_for_this_machine();
                batch.rule(CHAIN, &rule.verdict(Verdict::Goto(past)), "what came past the driver");
            }
        }
    }

    /// Takes all rules away; filters cannot be changed after that. The tables go when this is dropped, which has to be after the
    /// queues: with a hook, the kernel drops all packets that wait for a verdict.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut state.closed, true) {
            return;
        }
        let mut batch = Transaction::default();
        for version in &self.versions {
            batch.turn_to(self.table(*version));
            batch.remove_rules_of(CHAIN);
        }
        if let Err(error) = state.tables.carry_out(&batch.finish()) {
            tracing::warn!(%error, "rules stay until the process ends");
        }
    }

    /// Returns the rule of a filter; `None` if it matches nothing in this version of IP.
    fn rule(&self, version: IpVersion, filter: &Filter, fails_closed: bool) -> Option<Rule> {
        let QueueRow { first, count } = if fails_closed { self.queues.closed } else { self.queues.open };
        Some(matching(version, filter)?.not_marked(self.mark).queue(first, count))
    }

    fn table(&self, version: IpVersion) -> Table {
        Table::of(version, &self.table)
    }
}

impl FilterTable for Rules {
    /// Rules of modules that fail closed go to the front: a packet that others want too comes by their queue.
    fn change(&self, changes: &[Change<'_>]) -> Result<(), DriverError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return Err(DriverError::Closed);
        }
        let mut filters = state.filters.clone();
        filters::apply(&mut filters, changes)?;
        refuse_missing_version(changes, &self.versions)?;
        // A filter may be installed and removed by the same changes.
        let (mut batch, mut adding, mut removing) = (Transaction::default(), BTreeMap::new(), Vec::new());
        for change in changes {
            match *change {
                Change::Install(id, filter) => drop(adding.insert(id, (filter, false))),
                Change::InstallClosed(id, filter) => drop(adding.insert(id, (filter, true))),
                Change::Remove(id) if adding.remove(&id).is_none() => removing.push(id),
                Change::Remove(_) => {}
            }
        }
        let (mut places, mut other_rules) = (state.places.clone(), false);
        for id in &removing {
            for (version, chain, handle) in state.rules.get(id).into_iter().flatten() {
                batch.turn_to(self.table(*version));
                batch.remove_rule(chain, *handle);
                if Some(*chain) == self.guard {
                    other_rules |= places.remove(&mut batch, *version, &state.filters[id]);
                }
            }
        }
        let mut made = Vec::new();
        for (id, (filter, fails_closed)) in adding {
            self.queues.is_closed_used.fetch_or(fails_closed, Ordering::Relaxed);
            for version in &self.versions {
                if let Some(rule) = self.rule(*version, filter, fails_closed) {
                    batch.turn_to(self.table(*version));
                    for chain in [Some(self.chain), self.guard.filter(|_| fails_closed)].into_iter().flatten() {
                        made.push((id, *version, chain, batch.told_rule(chain, &rule, fails_closed)));
                        if Some(chain) == self.guard {
                            other_rules |= places.add(&mut batch, *version, filter);
                        }
                    }
                }
            }
        }
        if other_rules {
            self.lead(&mut batch, &state.devices, state.guard.as_ref(), &places);
        }
        let mut handles = BTreeMap::new();
        let told = |message: &Message<'_>| handles.extend(nftables::handle(message));
        state.tables.carry_out_and_hear(&batch.finish(), told).map_err(refused)?;
        state.rules.retain(|id, _| !removing.contains(id));
        for (id, version, chain, number) in made {
            let handle = handles.get(&number).copied().unwrap_or_default();
            state.rules.entry(id).or_default().push((version, chain, handle));
        }
        (state.filters, state.places) = (filters, places);
        Ok(())
    }
}

/// Returns what matches a filter's packets; `None` if there are none in this version of IP.
fn matching(version: IpVersion, filter: &Filter) -> Option<Rule> {
    let number = match version {
        IpVersion::V4 => 4,
        IpVersion::V6 => 6,
    };
    if filter.version().is_some_and(|wanted| wanted != number) {
        return None;
    }
    let mut rule = Rule::new();
    for (net, end) in [(filter.source(), End::Source), (filter.destination(), End::Destination)] {
        if let Some(net) = net {
            rule = rule.prefix(end, &net);
        }
    }
    let protocol = match (filter.protocol(), version) {
        (Protocol::Any, _) => None,
        (Protocol::Tcp, _) => Some(TCP),
        (Protocol::Udp, _) => Some(UDP),
        (Protocol::Icmp, IpVersion::V4) => Some(ICMP),
        (Protocol::Icmp, IpVersion::V6) => Some(ICMPV6),
    };
    if let Some(protocol) = protocol {
        rule = rule.protocol(protocol);
    }
    if filter.opens_only() {
        rule = rule.opening_alone();
    }
    for (ports, end) in [(filter.source_ports(), End::Source), (filter.destination_ports(), End::Destination)] {
        if let Some(ports) = ports {
            rule = rule.port(end, ports);
        }
    }
    Some(rule)
}

/// Finds out whether our rules can be had, by making some that match nothing.
pub(crate) fn probe() -> Result<(), DriverError> {
    let queues = QueueNumbers {
        open: QueueRow { first: 0, count: 1 },
        closed: QueueRow { first: 0, count: 1 },
        is_closed_used: Arc::default(),
    };
    let rules = Rules::open(&format!("probe-{}", std::process::id()), queues, 1)?;
    let filter: Filter = "udp dst 192.0.2.1 port 270".parse().expect("the filter is a constant");
    rules.change(&[Change::Install(FilterId(0), &filter)])
}

fn open() -> Result<Socket, DriverError> {
    Socket::open(Family::Netfilter).map_err(|error| of_kernel(WHAT, error))
}

fn refused(Refused { source, .. }: Refused) -> DriverError {
    of_kernel(WHAT, source)
}

/// Returns the error for what the kernel refused.
fn of_kernel(what: &'static str, error: io::Error) -> DriverError {
    match Errno::from_io_error(&error) {
        // Where the kernel lacks an expression, it has no such file either.
        Some(Errno::NOENT | Errno::OPNOTSUPP | Errno::INVAL | Errno::PROTONOSUPPORT) => {
            DriverError::Unsupported { what, why: error.to_string() }
        }
        _ => DriverError::system(what, error),
    }
}

fn refuse_missing_version(changes: &[Change<'_>], versions: &[IpVersion]) -> Result<(), DriverError> {
    let wants_v6 = |change: &Change<'_>| match change {
        Change::Install(_, filter) | Change::InstallClosed(_, filter) => filter.version() == Some(6),
        Change::Remove(_) => false,
    };
    if versions.contains(&IpVersion::V6) || !changes.iter().any(wants_v6) {
        return Ok(());
    }
    Err(DriverError::Unsupported { what: "a filter for IPv6", why: "this kernel has no IPv6".to_owned() })
}

fn versions_here() -> Vec<IpVersion> {
    let v6 = std::path::Path::new("/proc/thread-self/net/if_inet6").exists();
    if v6 { vec![IpVersion::V4, IpVersion::V6] } else { vec![IpVersion::V4] }
}

/// Returns an instance name in the characters that may stand in names of tables.
pub(crate) fn instance_text(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    name.chars().map(keep).take(INSTANCE_CHARS_MAX).collect()
}

/// What the names of all our tables begin with, and those of each kind.
const OURS: &str = "netserv-";
const PACKETS: &str = "netserv-p-";
const SIGNALING: &str = "netserv-s-";
const CHAIN: &str = "came";
/// What came by the devices that count.
const OF_DEVICES: &str = "devices";
/// What came past the driver.
const PAST: &str = "past";
/// A table's name may have 255 characters.
const INSTANCE_CHARS_MAX: usize = 100;
const WHAT: &str = "leading packets to netfilter queues (nf_tables with owners of Linux 5.12, nft_compat, xt_NFQUEUE)";
/// Right after `NF_IP_PRI_MANGLE`: what others change and mark there is known.
const AFTER_MANGLE: i32 = -149;
/// Signaling goes first: a message of ours that a module's filter matches too is a message.
const BEFORE_PACKETS: i32 = -151;
const UDP_HEADER_BYTES: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_be_too_long_or_odd() {
        assert_eq!(instance_text("a b\"\n-j DROP;ü"), "a_b__-j_DROP__");
        assert_eq!(instance_text(&"x".repeat(300)).len(), INSTANCE_CHARS_MAX);
    }

    #[test]
    fn filters_are_of_the_versions_of_their_addresses() {
        for (text, v4, v6) in [
            ("udp dst 10.2.0.0/24 port 5060", true, false),
            ("udp src 2001:db8::/32", false, true),
            ("icmp", true, true),
            ("ip", true, true),
        ] {
            let filter: Filter = text.parse().unwrap();
            let has = |version| matching(version, &filter).is_some();
            assert_eq!((has(IpVersion::V4), has(IpVersion::V6)), (v4, v6), "{text}");
        }
    }
}
