// SPDX-License-Identifier: Apache-2.0
//! Counters of packets by destination in the kernel's packet filter: a table of nf_tables with a chain before all others of
//! PREROUTING, in which two rules count for each prefix.
//!
//! Expressions of a rule run from left to right; one that does not match ends the rule. Numbers are in network byte order.

use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use netserv_wire::netlink::{
    FLAG_ACK, FLAG_DUMP, FLAG_REQUEST, Message, TYPE_DONE, TYPE_ERROR, append, append_attribute, attributes,
    error_number, messages, nested,
};
use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

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
    /// As they were given.
    wanted: Vec<IpNet>,
    /// Those in the table, by the numbers of their counters.
    places: Vec<IpNet>,
    /// It belongs to the namespace in which it was opened, wherever it is used.
    socket: Option<OwnedFd>,
}

impl Counted {
    /// Returns the counters of an instance, none at first. What an earlier run left goes.
    pub fn open(instance: &str) -> Result<Counted, DriverError> {
        let counted = Counted { table: text(&table_name(instance)), state: Mutex::default() };
        // Without nf_tables in the kernel, or the right to ask it, nothing is left either.
        if let Ok(socket) = open() {
            counted.remove_table(&socket)?;
            counted.state.lock().unwrap_or_else(PoisonError::into_inner).socket = Some(socket);
        }
        Ok(counted)
    }

    /// Takes the table away; nothing can be counted after that.
    pub fn close(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { places, socket, .. } = std::mem::take(&mut *state);
        let Some(socket) = socket.filter(|_| !places.is_empty()) else { return };
        if let Err(error) = self.remove_table(&socket) {
            tracing::warn!(%error, "counters of packets by destination are left behind");
        }
    }

    fn remove_table(&self, socket: &OwnedFd) -> Result<(), DriverError> {
        let mut batch = Batch::new(&self.table);
        batch.push(DELETE_TABLE, 0, &[]);
        match batch.carry_out(socket) {
            Err(Errno::NOENT | Errno::OPNOTSUPP | Errno::INVAL | Errno::PERM) | Ok(()) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    fn add_table(&self, socket: &OwnedFd, places: &[IpNet]) -> Result<(), DriverError> {
        let mut batch = Batch::new(&self.table);
        batch.push(NEW_TABLE, CREATE, &[]);
        let place = nested(&[(1, &PREROUTING.to_be_bytes()), (2, &BEFORE_ALL.to_be_bytes())]);
        let accept = ACCEPT.to_be_bytes();
        batch.push(NEW_CHAIN, CREATE, &[(3, CHAIN), (4, &place), (5, &accept), (7, b"filter\0")]);
        for (number, prefix) in places.iter().enumerate() {
            for (kind, is_syn) in [("p", false), ("s", true)] {
                let counter = text(&format!("{kind}{number}"));
                batch.push(NEW_OBJECT, CREATE, &[(2, &counter), (3, &COUNTER.to_be_bytes()), (4, &[])]);
                batch.push(NEW_RULE, CREATE | APPEND, &[(2, CHAIN), (4, &rule(prefix, is_syn, &counter))]);
            }
        }
        batch.carry_out(socket).map_err(failed)
    }

    /// Reads all counters; nothing if not all of them are there.
    fn packets(&self, socket: &OwnedFd, places: usize) -> Result<Option<Vec<DestinationCount>>, DriverError> {
        // An answer that came too late for an earlier question is none to this one.
        while rustix::net::recv(socket, [0_u8; 1].as_mut_slice(), RecvFlags::DONTWAIT | RecvFlags::TRUNC).is_ok() {}
        let (mut counts, mut seen) = (vec![DestinationCount::default(); places], 0);
        let mut request = Vec::new();
        let flags = FLAG_REQUEST | FLAG_DUMP;
        append(&mut request, SUBSYSTEM << 8 | GET_OBJECT, flags, 1, &INET, &[(TABLE_NAME, &self.table)]);
        send(socket, &request).map_err(failed)?;
        let mut buffer = vec![0; ANSWER_BYTES];
        for _ in 0..ANSWERS_MAX {
            let (length, _) = rustix::net::recv(socket, buffer.as_mut_slice(), RecvFlags::empty()).map_err(failed)?;
            for message in messages(&buffer[..length]) {
                match (message.kind, error_number(message.body)) {
                    (TYPE_DONE, _) => return Ok((seen == 2 * places).then_some(counts)),
                    (TYPE_ERROR, Some(number)) => return Err(failed(Errno::from_raw_os_error(number))),
                    _ => seen += usize::from(note(&message, &mut counts)),
                }
            }
        }
        Err(DriverError::system(WHAT, std::io::Error::other("the answer has no end")))
    }
}

impl DestinationCounters for Counted {
    fn count(&self, prefixes: &[IpNet]) -> Result<(), DriverError> {
        let places = distinct(prefixes)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.wanted, state.places) = (Vec::new(), Vec::new());
        if let Some(socket) = &state.socket {
            self.remove_table(socket)?;
        }
        if places.is_empty() {
            return Ok(());
        }
        let Some(socket) = &state.socket else {
            let why = "the kernel has no nf_tables, or does not let this process at it".to_owned();
            return Err(DriverError::Unsupported { what: "a counter of packets by destination", why });
        };
        self.add_table(socket, &places)?;
        (state.wanted, state.places) = (prefixes.iter().map(IpNet::trunc).collect(), places);
        Ok(())
    }

    fn read(&self) -> Result<Vec<DestinationCount>, DriverError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(socket) = state.socket.as_ref().filter(|_| !state.places.is_empty()) else { return Ok(Vec::new()) };
        let Some(counts) = self.packets(socket, state.places.len())? else {
            // Somebody took them away, as `nft flush ruleset` does; they begin anew.
            self.remove_table(socket)?;
            self.add_table(socket, &state.places)?;
            return Err(DriverError::system(
                WHAT,
                std::io::Error::other("the table was taken away, and is made again"),
            ));
        };
        let of =
            |wanted: &IpNet| state.places.binary_search(wanted).map_or_else(|_| Default::default(), |at| counts[at]);
        Ok(state.wanted.iter().map(of).collect())
    }
}

/// Takes away the counters that an instance left when it was killed.
pub(super) fn remove_leftovers(instance: &str) -> Result<(), DriverError> {
    Counted::open(instance).map(drop)
}

/// Changes that the kernel makes all or none.
struct Batch<'a> {
    bytes: Vec<u8>,
    table: &'a [u8],
    requests: u32,
}

impl Batch<'_> {
    fn new(table: &[u8]) -> Batch<'_> {
        let mut bytes = Vec::new();
        append(&mut bytes, BATCH_BEGIN, FLAG_REQUEST, 0, &OF_NFTABLES, &[]);
        Batch { bytes, table, requests: 0 }
    }

    fn push(&mut self, kind: u16, flags: u16, list: &[(u16, &[u8])]) {
        let list: Vec<(u16, &[u8])> = std::iter::once((TABLE_NAME, self.table)).chain(list.iter().copied()).collect();
        self.requests += 1;
        let flags = FLAG_REQUEST | FLAG_ACK | flags;
        append(&mut self.bytes, SUBSYSTEM << 8 | kind, flags, self.requests, &INET, &list);
    }

    fn carry_out(mut self, socket: &OwnedFd) -> Result<(), Errno> {
        append(&mut self.bytes, BATCH_END, FLAG_REQUEST, 0, &OF_NFTABLES, &[]);
        send(socket, &self.bytes)?;
        let (mut missing, mut buffer) = (self.requests, vec![0; ANSWER_BYTES]);
        while missing > 0 {
            let (length, _) = rustix::net::recv(socket, buffer.as_mut_slice(), RecvFlags::empty())?;
            let answers = messages(&buffer[..length]).filter(|message| message.kind == TYPE_ERROR);
            let numbers: Vec<i32> = answers.map(|answer| error_number(answer.body).unwrap_or(libc::EIO)).collect();
            missing = missing.saturating_sub(u32::try_from(numbers.len()).unwrap_or(u32::MAX));
            if let Some(number) = numbers.into_iter().find(|number| *number != 0) {
                // The rest of a refused batch is answered too, or not; nobody waits for that.
                while rustix::net::recv(socket, buffer.as_mut_slice(), RecvFlags::DONTWAIT).is_ok() {}
                return Err(Errno::from_raw_os_error(number));
            }
        }
        Ok(())
    }
}

/// Returns the expressions of a rule that counts what goes to a prefix and does not come from this machine.
fn rule(prefix: &IpNet, is_syn: bool, counter: &[u8]) -> Vec<u8> {
    let (family, offset, octets) = match prefix {
        IpNet::V4(v4) => (2_u8, 16, v4.network().octets().to_vec()),
        IpNet::V6(v6) => (10, 24, v6.network().octets().to_vec()),
    };
    let mut rule = Rule::default();
    rule.meta(META_IN).compare(NOT_EQUAL, &LOOPBACK_INDEX.to_ne_bytes());
    rule.meta(META_FAMILY).compare(EQUAL, &[family]);
    if prefix.prefix_len() > 0 {
        let mask = match prefix {
            IpNet::V4(v4) => v4.netmask().octets().to_vec(),
            IpNet::V6(v6) => v6.netmask().octets().to_vec(),
        };
        rule.load(NETWORK, offset, octets.len()).masked(&mask).compare(EQUAL, &octets);
    }
    if is_syn {
        rule.meta(META_PROTOCOL).compare(EQUAL, &[TCP]);
        rule.load(TRANSPORT, TCP_FLAGS_OFFSET, 1).masked(&[TCP_SYN | TCP_ACK]).compare(EQUAL, &[TCP_SYN]);
    }
    rule.expression("objref", &[(1, &COUNTER.to_be_bytes()), (2, counter)]);
    rule.0
}

/// Expressions, as the content of a rule's list.
#[derive(Default)]
struct Rule(Vec<u8>);

impl Rule {
    fn meta(&mut self, key: u32) -> &mut Rule {
        self.expression("meta", &[(1, &REGISTER.to_be_bytes()), (2, &key.to_be_bytes())])
    }

    fn load(&mut self, base: u32, offset: u32, length: usize) -> &mut Rule {
        let length = u32::try_from(length).expect("addresses are short");
        let numbers = [REGISTER, base, offset, length].map(u32::to_be_bytes);
        self.expression("payload", &[(1, &numbers[0]), (2, &numbers[1]), (3, &numbers[2]), (4, &numbers[3])])
    }

    fn compare(&mut self, operation: u32, value: &[u8]) -> &mut Rule {
        let data = nested(&[(DATA_VALUE, value)]);
        self.expression("cmp", &[(1, &REGISTER.to_be_bytes()), (2, &operation.to_be_bytes()), (3, &data)])
    }

    fn masked(&mut self, mask: &[u8]) -> &mut Rule {
        let length = u32::try_from(mask.len()).expect("addresses are short").to_be_bytes();
        let (keep, flip) = (nested(&[(DATA_VALUE, mask)]), nested(&[(DATA_VALUE, &vec![0; mask.len()])]));
        let register = REGISTER.to_be_bytes();
        self.expression("bitwise", &[(1, &register), (2, &register), (3, &length), (4, &keep), (5, &flip)])
    }

    fn expression(&mut self, name: &str, list: &[(u16, &[u8])]) -> &mut Rule {
        append_attribute(&mut self.0, LIST_ELEMENT, &nested(&[(1, &text(name)), (2, &nested(list))]));
        self
    }
}

/// Takes a counter's message for what it says; returns whether it says something.
fn note(message: &Message<'_>, counts: &mut [DestinationCount]) -> bool {
    let Some(body) = message.body.get(INET.len()..) else { return false };
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

fn open() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC;
    let protocol = Some(netlink::NETFILTER);
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(ANSWER_WAIT))?;
    // Only root may, and only root needs it.
    let _ = sockopt::set_socket_recv_buffer_size_force(&socket, ANSWER_BUFFER_BYTES);
    let _ = sockopt::set_socket_send_buffer_size_force(&socket, ANSWER_BUFFER_BYTES);
    Ok(socket)
}

fn send(socket: &OwnedFd, bytes: &[u8]) -> Result<(), Errno> {
    rustix::net::sendto(socket, bytes, SendFlags::empty(), &SocketAddrNetlink::new(0, 0)).map(drop)
}

fn failed(error: Errno) -> DriverError {
    DriverError::system(WHAT, error)
}

/// Returns the name of an instance's table, which the longest name of an instance leaves short enough.
fn table_name(instance: &str) -> String {
    format!("netserv-counted-{}", super::instance_text(instance))
}

fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

const WHAT: &str = "counting packets by destination (nf_tables)";
/// How long the kernel's answer is waited for.
const ANSWER_WAIT: Duration = Duration::from_secs(1);
const ANSWER_BYTES: usize = 64 * 1024;
/// Bytes of the rules of [`COUNTED_PREFIXES_MAX`](crate::limits::COUNTED_PREFIXES_MAX) prefixes and of the answers to them.
const ANSWER_BUFFER_BYTES: usize = 1024 * 1024;
/// Datagrams of one answer at most.
const ANSWERS_MAX: usize = 64;
/// `NFNL_SUBSYS_NFTABLES`, and messages of it: `NFT_MSG_NEWTABLE` and others.
const SUBSYSTEM: u16 = 10;
const NEW_TABLE: u16 = 0;
const DELETE_TABLE: u16 = 2;
const NEW_CHAIN: u16 = 3;
const NEW_RULE: u16 = 6;
const NEW_OBJECT: u16 = 18;
const GET_OBJECT: u16 = 19;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
/// `nfgenmsg` of a batch: any family, version 0, the subsystem.
const OF_NFTABLES: [u8; 4] = [0, 0, 0, 10];
/// `nfgenmsg` of both versions of IP.
const INET: [u8; 4] = [1, 0, 0, 0];
/// `NLM_F_CREATE` and `NLM_F_APPEND`.
const CREATE: u16 = 0x400;
const APPEND: u16 = 0x800;
/// The attribute with the table's name, the same in all messages.
const TABLE_NAME: u16 = 1;
const CHAIN: &[u8] = b"came\0";
const PREROUTING: u32 = 0;
/// Before `raw`, and before connections are tracked (`NF_IP_PRI_RAW_BEFORE_DEFRAG`), at which packets are as they came.
const BEFORE_ALL: i32 = -450;
const ACCEPT: i32 = 1;
const OBJECT_NAME: u16 = 2;
const OBJECT_DATA: u16 = 4;
const COUNTER_PACKETS: u16 = 2;
/// `NFT_OBJECT_COUNTER`.
const COUNTER: u32 = 1;
const LIST_ELEMENT: u16 = 1;
const DATA_VALUE: u16 = 1;
/// `NFT_REG_1`, of 16 bytes.
const REGISTER: u32 = 1;
const META_IN: u32 = 4;
const META_FAMILY: u32 = 15;
const META_PROTOCOL: u32 = 16;
/// The loopback interface has this index in every namespace.
const LOOPBACK_INDEX: u32 = 1;
const NETWORK: u32 = 1;
const TRANSPORT: u32 = 2;
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;
const TCP: u8 = 6;
/// RFC 9293 §3.1: where the flags are, and two of them.
const TCP_FLAGS_OFFSET: u32 = 13;
const TCP_SYN: u8 = 0x02;
const TCP_ACK: u8 = 0x10;
