// SPDX-License-Identifier: Apache-2.0
//! Counters of packets by destination in the kernel's packet filter: a table of nf_tables with a chain before all others of
//! PREROUTING, in which two rules count for each prefix.

use std::sync::{Mutex, PoisonError};

use ipnet::IpNet;
use netserv_wire::netlink::attributes;
use rustix::io::Errno;

use super::nftables::{
    Batch, EQUAL, GET_OBJECT, INET, META_FAMILY, META_IN, META_PROTOCOL, NOT_EQUAL, OBJECT_DATA, OBJECT_NAME, Rule,
    TRANSPORT, Tables, text,
};
use crate::counted::distinct;
use crate::{DestinationCount, DestinationCounters, DriverError};

/// The counters of one instance in one network namespace, from their opening until [`Counted::close`].
#[derive(Debug)]
pub(crate) struct Counted {
    table: Vec<u8>,
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
    tables: Option<Tables>,
}

impl Counted {
    /// Returns the counters of an instance, none at first.
    pub fn open(instance: &str) -> Counted {
        let counted = Counted { table: text(&table_name(instance)), state: Mutex::default() };
        // Without nf_tables in the kernel, or the right to ask it, nothing can be counted.
        counted.state.lock().unwrap_or_else(PoisonError::into_inner).tables = Tables::open().ok();
        counted
    }

    /// Has nothing be counted any more. The table goes when this is dropped, after the queues.
    pub fn close(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.closed, state.wanted, state.places) = (true, Vec::new(), Vec::new());
    }

    /// Counts for other prefixes than before.
    fn make(&self, tables: &Tables, before: Option<&[IpNet]>, places: &[IpNet]) -> Result<(), DriverError> {
        let mut batch = Batch::new();
        match before {
            None => batch.table(INET, &self.table, CHAIN, BEFORE_ALL),
            Some(before) => {
                batch.empty(INET, &self.table, CHAIN);
                names(before).for_each(|(name, ..)| batch.remove_counter(INET, &self.table, &name));
            }
        }
        for (name, prefix, is_syn) in names(places) {
            batch.counter(INET, &self.table, &name);
            batch.rule(INET, &self.table, CHAIN, &rule(prefix, is_syn, &name), false);
        }
        tables.carry_out(batch).map(drop).map_err(failed)
    }

    /// Reads all counters.
    fn packets(&self, tables: &Tables, places: usize) -> Result<Vec<DestinationCount>, DriverError> {
        let (mut counts, mut seen) = (vec![DestinationCount::default(); places], 0);
        let each = |body: &[u8]| seen += usize::from(note(body, &mut counts));
        tables.each(INET, &self.table, GET_OBJECT, each).map_err(failed)?;
        if seen == 2 * places { Ok(counts) } else { Err(failed(Errno::NOENT)) }
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
fn names(places: &[IpNet]) -> impl Iterator<Item = (Vec<u8>, &IpNet, bool)> {
    let of = |(number, prefix)| {
        [("p", false), ("s", true)].map(|(kind, is_syn)| (text(&format!("{kind}{number}")), prefix, is_syn))
    };
    places.iter().enumerate().flat_map(of)
}

/// Returns the rule that counts what goes to a prefix and does not come from this machine.
fn rule(prefix: &IpNet, is_syn: bool, counter: &[u8]) -> Rule {
    let mut rule = Rule::default();
    rule.meta(META_IN).compare(NOT_EQUAL, &LOOPBACK_INDEX.to_ne_bytes());
    let family = if prefix.addr().is_ipv4() { 2_u8 } else { 10 };
    rule.meta(META_FAMILY).compare(EQUAL, &[family]).prefix(prefix, false);
    if is_syn {
        rule.meta(META_PROTOCOL).compare(EQUAL, &[TCP]);
        rule.load(TRANSPORT, TCP_FLAGS_OFFSET, 1).masked(&[TCP_SYN | TCP_ACK]).compare(EQUAL, &[TCP_SYN]);
    }
    rule.count(counter);
    rule
}

/// Takes a counter's message for what it says; returns whether it says something.
fn note(body: &[u8], counts: &mut [DestinationCount]) -> bool {
    let of = |bytes: &[u8], wanted: u16| {
        attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, content)| content.to_vec())
    };
    let name = of(body, OBJECT_NAME).and_then(|name| String::from_utf8(name).ok()).unwrap_or_default();
    let packets = of(body, OBJECT_DATA).and_then(|data| of(&data, COUNTER_PACKETS));
    let Some(packets) = packets.and_then(|bytes| bytes.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))) else {
        return false;
    };
    let Some((kind, number)) = name.trim_end_matches('\0').split_at_checked(1) else { return false };
    let Some(count) = number.parse::<usize>().ok().and_then(|number| counts.get_mut(number)) else { return false };
    match kind {
        "p" => count.packets = packets,
        "s" => count.syns = packets,
        _ => return false,
    }
    true
}

fn failed(error: Errno) -> DriverError {
    DriverError::system(WHAT, error)
}

/// Returns the name of an instance's table, which the longest name of an instance leaves short enough.
fn table_name(instance: &str) -> String {
    format!("netserv-counted-{}", super::instance_text(instance))
}

const WHAT: &str = "counting packets by destination (nf_tables)";
const CHAIN: &[u8] = b"came\0";
/// Before `raw`, and before connections are tracked (`NF_IP_PRI_RAW_BEFORE_DEFRAG`), at which packets are as they came.
const BEFORE_ALL: i32 = -450;
const COUNTER_PACKETS: u16 = 2;
/// The loopback interface has this index in every namespace.
const LOOPBACK_INDEX: u32 = 1;
const TCP: u8 = 6;
/// RFC 9293 §3.1: where the flags are, and two of them.
const TCP_FLAGS_OFFSET: u32 = 13;
const TCP_SYN: u8 = 0x02;
const TCP_ACK: u8 = 0x10;
