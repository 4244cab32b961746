// SPDX-License-Identifier: Apache-2.0
//! Counters of packets by destination in the kernel's packet filter: a table of nf_tables with a chain before all others of
//! PREROUTING, in which two rules count for each prefix.

use std::io;
use std::sync::{Mutex, PoisonError};

use ipnet::IpNet;
use netserv_netlink::nftables::{self, End, Hook, Rule, Table, Transaction};
use netserv_netlink::{Family, Socket};
use netserv_plane::{DestinationCount, DestinationCounters, DriverError, counted::distinct};
use netserv_wire::ip::IpVersion;
use netserv_wire::ip::protocol::TCP;

/// The counters of one instance in one network namespace, from their opening until [`Counted::close`].
#[derive(Debug)]
pub(crate) struct Counted {
    table: Table,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether there is a table.
    is_made: bool,
    closed: bool,
    /// As they were given.
    wanted: Vec<IpNet>,
    /// Those in the table, by the numbers of their counters.
    places: Vec<IpNet>,
    tables: Option<Socket>,
}

impl Counted {
    /// Returns the counters of an instance, none at first.
    pub fn open(instance: &str) -> Counted {
        let counted = Counted { table: Table::inet(&table_name(instance)), state: Mutex::default() };
        // Without nf_tables in the kernel, or the right to ask it, nothing can be counted.
        counted.state.lock().unwrap_or_else(PoisonError::into_inner).tables = Socket::open(Family::Netfilter).ok();
        counted
    }

    /// Has nothing be counted any more. The table goes when this is dropped, after the queues.
    pub fn close(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.closed, state.wanted, state.places) = (true, Vec::new(), Vec::new());
    }

    /// Counts for other prefixes than before.
    fn make(&self, tables: &Socket, before: Option<&[IpNet]>, places: &[IpNet]) -> Result<(), DriverError> {
        let mut batch = Transaction::of(self.table.clone());
        match before {
            None => {
                batch.new_own_table();
                batch.chain(CHAIN, Some(Hook::Prerouting(BEFORE_ALL)));
            }
            Some(before) => {
                batch.remove_rules_of(CHAIN);
                names(before).for_each(|(name, ..)| batch.remove_counter(&name));
            }
        }
        for (name, prefix, is_syn) in names(places) {
            batch.counter(&name);
            batch.rule(CHAIN, &rule(prefix, is_syn, &name), "a counter");
        }
        tables.carry_out(&batch.finish()).map_err(|refused| DriverError::system(WHAT, refused.source))
    }

    /// Reads all counters.
    fn packets(&self, tables: &Socket, places: usize) -> Result<Vec<DestinationCount>, DriverError> {
        let mut counts = vec![DestinationCount::default(); places];
        let counters = nftables::counters(tables, &self.table).map_err(|error| DriverError::system(WHAT, error))?;
        let seen = counters.iter().filter(|(name, packets)| note(name, *packets, &mut counts)).count();
        let missing = || DriverError::system(WHAT, io::Error::from_raw_os_error(libc::ENOENT));
        if seen == 2 * places { Ok(counts) } else { Err(missing()) }
    }
}

impl DestinationCounters for Counted {
    fn count(&self, prefixes: &[IpNet]) -> Result<(), DriverError> {
        let places = distinct(prefixes)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.wanted = Vec::new();
        let Some(tables) = state.tables.as_ref().filter(|_| !state.closed) else {
            let why = "the kernel has no nf_tables, or does not let this process at it".to_owned();
            let refused = DriverError::Unsupported { what: "a counter of packets by destination", why };
            return if places.is_empty() { Ok(()) } else { Err(refused) };
        };
        if state.is_made || !places.is_empty() {
            self.make(tables, state.is_made.then_some(&state.places), &places)?;
            state.is_made = true;
        }
        (state.wanted, state.places) = (prefixes.iter().map(IpNet::trunc).collect(), places);
        Ok(())
    }

    fn read(&self) -> Result<Vec<DestinationCount>, DriverError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tables) = state.tables.as_ref().filter(|_| !state.places.is_empty()) else { return Ok(Vec::new()) };
        let counts = self.packets(tables, state.places.len())?;
        let of =
            |wanted: &IpNet| state.places.binary_search(wanted).map_or_else(|_| Default::default(), |at| counts[at]);
        Ok(state.wanted.iter().map(of).collect())
    }
}

/// Returns the names of the counters of prefixes: of all packets, and of opening segments.
fn names(places: &[IpNet]) -> impl Iterator<Item = (String, &IpNet, bool)> {
    let of = |(number, prefix)| {
        [("p", false), ("s", true)].map(|(kind, is_syn)| (format!("{kind}{number}"), prefix, is_syn))
    };
    places.iter().enumerate().flat_map(of)
}

/// Returns the rule that counts what goes to a prefix and does not come from this machine.
fn rule(prefix: &IpNet, is_syn: bool, counter: &str) -> Rule {
    let version = if prefix.addr().is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
    let mut rule = Rule::new().not_of_loopback().version(version).prefix(End::Destination, prefix);
    if is_syn {
        rule = rule.protocol(TCP).opening(true);
    }
    rule.count(counter)
}

/// Takes what a counter says; returns whether it is one of ours.
fn note(name: &str, packets: u64, counts: &mut [DestinationCount]) -> bool {
    let Some((kind, number)) = name.split_at_checked(1) else { return false };
    let Some(count) = number.parse::<usize>().ok().and_then(|number| counts.get_mut(number)) else { return false };
    match kind {
        "p" => count.packets = packets,
        "s" => count.syns = packets,
        _ => return false,
    }
    true
}

/// Returns the name of an instance's table, which the longest name of an instance leaves short enough.
fn table_name(instance: &str) -> String {
    format!("netserv-counted-{}", super::instance_text(instance))
}

const WHAT: &str = "counting packets by destination (nf_tables)";
const CHAIN: &str = "came";
/// Before `raw`, and before connections are tracked (`NF_IP_PRI_RAW_BEFORE_DEFRAG`), at which packets are as they came.
const BEFORE_ALL: i32 = -450;
