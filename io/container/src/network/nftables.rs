// SPDX-License-Identifier: Apache-2.0
//! Rules of the kernel's packet filter as netlink messages, after `linux/netfilter/nf_tables.h`: tables of the family `inet`,
//! which sees both versions of IP.
//!
//! Numbers in attributes are in network byte order. Expressions of a rule run from left to right; one that does not match
//! ends the rule.

use netserv_model::PortRange;
use netserv_wire::ip::IpVersion;
use netserv_wire::netlink::{FLAG_DUMP, append_attribute, attributes, nested};

use super::error::NetworkError;
use super::socket::{Requests, Socket};

/// The name of the table in a container's namespace.
pub(super) const TABLE: &str = "netserv";

/// A hook of the kernel at which a chain begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hook {
    /// Before packets are routed, at this place among others' chains. What is not judged passes.
    Prerouting(i32),
    Input,
    /// What the chain at `Input` accepted. What is not judged passes.
    AfterInput,
    Forward,
    /// What others let pass between machines. What is not judged passes.
    AfterForward,
    Output,
}

/// What becomes of a packet that a rule matched.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verdict {
    Accept,
    Drop,
    /// It goes on in another chain, and does not come back.
    Goto(&'static str),
}

/// Which end of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Source,
    Destination,
}

/// Changes that the kernel makes all or none.
#[derive(Debug)]
pub(super) struct Transaction {
    requests: Requests,
    table: Vec<u8>,
}

impl Transaction {
    /// Returns changes of the table of this name.
    pub fn of(table: &str) -> Transaction {
        let mut requests = Requests::default();
        requests.push_silent(BATCH_BEGIN, &BATCH_HEADER);
        Transaction { requests, table: text(table) }
    }

    /// Returns the requests, to be carried out.
    pub fn finish(mut self) -> Requests {
        self.requests.push_silent(BATCH_END, &BATCH_HEADER);
        self.requests
    }

    pub fn table(&mut self) {
        self.push(NEW_TABLE, FLAG_CREATE, &[], "make a table of the packet filter (nf_tables)");
    }

    /// Makes a table that only this socket can change or take away, and that goes with it (Linux 5.12).
    pub fn own_table(&mut self) {
        let what = "make a table of the packet filter that has an owner (nf_tables)";
        self.push(NEW_TABLE, FLAG_CREATE, &[(TABLE_FLAGS, &TABLE_OWNED.to_be_bytes())], what);
    }

    /// Takes the table away, which must be there, with all that is in it.
    pub fn remove_table(&mut self) {
        self.push(DELETE_TABLE, 0, &[], "remove a table of the packet filter");
    }

    /// Adds a chain; one at a hook drops what its rules do not accept, unless the hook says otherwise.
    pub fn chain(&mut self, name: &str, hook: Option<Hook>) {
        let name = text(name);
        let (number, priority, policy): (u32, i32, i32) = match hook {
            None => return self.push(NEW_CHAIN, FLAG_CREATE, &[(CHAIN_NAME, &name)], "add a chain"),
            Some(Hook::Prerouting(priority)) => (0, priority, ACCEPT),
            Some(Hook::Input) => (1, 0, DROP),
            Some(Hook::AfterInput) => (1, 10, ACCEPT),
            Some(Hook::Forward) => (2, 0, DROP),
            Some(Hook::AfterForward) => (2, 10, ACCEPT),
            Some(Hook::Output) => (3, 0, DROP),
        };
        let place = nested(&[(1, &number.to_be_bytes()), (2, &priority.to_be_bytes())]);
        let list: [(u16, &[u8]); 4] = [
            (CHAIN_NAME, &name),
            (CHAIN_HOOK, &place),
            (CHAIN_POLICY, &policy.to_be_bytes()),
            (CHAIN_TYPE, b"filter\0"),
        ];
        self.push(NEW_CHAIN, FLAG_CREATE, &list, "add a chain");
    }

    /// Takes a chain away, with its rules. Nothing may lead there.
    pub fn remove_chain(&mut self, name: &str) {
        self.push(DELETE_CHAIN, 0, &[(CHAIN_NAME, &text(name))], "remove a chain");
    }

    pub fn counter(&mut self, name: &str) {
        let list: [(u16, &[u8]); 3] =
            [(OBJECT_NAME, &text(name)), (3, &OBJECT_COUNTER.to_be_bytes()), (OBJECT_DATA, &[])];
        self.push(NEW_OBJECT, FLAG_CREATE, &list, "add a counter");
    }

    pub fn remove_counter(&mut self, name: &str) {
        let list: [(u16, &[u8]); 2] = [(OBJECT_NAME, &text(name)), (3, &OBJECT_COUNTER.to_be_bytes())];
        self.push(DELETE_OBJECT, 0, &list, "remove a counter");
    }

    /// Adds a map of devices' indices to chains in which packets go on.
    pub fn verdict_map(&mut self, name: &str) {
        let (name, flags, key) = (text(name), SET_MAP.to_be_bytes(), DEVICE_INDEX_BYTES.to_be_bytes());
        let list: [(u16, &[u8]); 5] =
            [(2, &name), (3, &flags), (5, &key), (6, &MAP_OF_VERDICTS.to_be_bytes()), (10, &[0, 0, 0, 1])];
        self.push(NEW_SET, FLAG_CREATE, &list, "add a map");
    }

    /// Has packets with a key go on in a chain, by a map.
    pub fn lead(&mut self, map: &str, key: &[u8], chain: &str) {
        let key = nested(&[(DATA_VALUE, key)]);
        let verdict = nested(&[(1, &GOTO.to_be_bytes()), (2, &text(chain))]);
        let element = nested(&[(1, &key), (2, &nested(&[(DATA_VERDICT, &verdict)]))]);
        let elements = nested(&[(LIST_ELEMENT, &element)]);
        self.push(NEW_ELEMENTS, FLAG_CREATE, &[(2, &text(map)), (3, &elements)], "add to a map");
    }

    /// Takes a key out of a map, where it must be.
    pub fn lead_no_more(&mut self, map: &str, key: &[u8]) {
        let element = nested(&[(1, &nested(&[(DATA_VALUE, key)]))]);
        let elements = nested(&[(LIST_ELEMENT, &element)]);
        self.push(DELETE_ELEMENTS, 0, &[(2, &text(map)), (3, &elements)], "take out of a map");
    }

    /// Adds a set of keys of so many bytes. Rules add to it if there is a size, and what is added leaves after its time.
    pub fn set(&mut self, name: &str, key_bytes: u32, size: Option<u32>) {
        let flags: u32 = if size.is_some() { SET_TIMEOUT | SET_EVAL } else { 0 };
        let about = size.map(|size| nested(&[(1, &size.to_be_bytes())])).unwrap_or_default();
        let (name, flags, key) = (text(name), flags.to_be_bytes(), key_bytes.to_be_bytes());
        // The identifier is for elements of the same batch, and has to be there.
        let mut list: Vec<(u16, &[u8])> = vec![(2, &name), (3, &flags), (5, &key), (10, &[0, 0, 0, 1])];
        if size.is_some() {
            list.push((9, &about));
        }
        self.push(NEW_SET, FLAG_CREATE, &list, "add a set");
    }

    /// Puts elements into a set, in place of those that are there.
    pub fn replace_elements(&mut self, set: &str, keys: impl IntoIterator<Item = Vec<u8>>) {
        let name = text(set);
        self.push(DELETE_ELEMENTS, 0, &[(2, &name)], "empty a set");
        let mut list = Vec::new();
        for key in keys {
            append_attribute(&mut list, LIST_ELEMENT, &nested(&[(1, &nested(&[(DATA_VALUE, &key)]))]));
        }
        if !list.is_empty() {
            self.push(NEW_ELEMENTS, FLAG_CREATE, &[(2, &name), (3, &list)], "fill a set");
        }
    }

    /// Takes away the rules of all chains.
    pub fn remove_rules(&mut self) {
        self.push(DELETE_RULES, 0, &[], "remove rules");
    }

    /// Takes away the rules of a chain.
    pub fn remove_rules_of(&mut self, chain: &str) {
        self.push(DELETE_RULES, 0, &[(2, &text(chain))], "remove a chain's rules");
    }

    /// Appends a rule to a chain. `what` is for the error that names it.
    pub fn rule(&mut self, chain: &str, rule: &Rule, what: &str) {
        let list: [(u16, &[u8]); 2] = [(2, &text(chain)), (4, &rule.0)];
        self.push(NEW_RULE, FLAG_CREATE | FLAG_APPEND, &list, &format!("add a rule ({what})"));
    }

    fn push(&mut self, kind: u16, flags: u16, list: &[(u16, &[u8])], what: &str) {
        let list: Vec<(u16, &[u8])> =
            std::iter::once((TABLE_NAME, self.table.as_slice())).chain(list.iter().copied()).collect();
        self.requests.push(SUBSYSTEM << 8 | kind, flags, &HEADER, &list, what);
    }
}

/// Returns how many packets each counter of the table has seen.
pub(super) fn counters(socket: &Socket, table: &str) -> std::io::Result<Vec<(String, u64)>> {
    let mut found = Vec::new();
    socket.ask(SUBSYSTEM << 8 | GET_OBJECT, FLAG_DUMP, &HEADER, &[(TABLE_NAME, &text(table))], |message| {
        let of = |bytes: &'_ [u8], wanted: u16| {
            attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, content)| content.to_vec())
        };
        let Some(body) = message.body.get(4..) else { return };
        let name = of(body, OBJECT_NAME).map(|name| String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned());
        let packets = of(body, OBJECT_DATA).and_then(|data| of(&data, COUNTER_PACKETS));
        let packets = packets.and_then(|bytes| bytes.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)));
        found.extend(name.zip(packets));
    })?;
    Ok(found)
}

/// Returns whether there is a table of this name.
pub(super) fn has_table(socket: &Socket, table: &str) -> std::io::Result<bool> {
    let mut found = false;
    let asked = socket.ask(SUBSYSTEM << 8 | GET_TABLE, 0, &HEADER, &[(TABLE_NAME, &text(table))], |_| {
        found = true;
    });
    match asked {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        asked => asked.map(|()| found),
    }
}

/// Takes a table away, if there is one of this name.
pub(super) fn remove_table(socket: &Socket, table: &str) -> Result<(), NetworkError> {
    let is_there = has_table(socket, table);
    if is_there.map_err(NetworkError::kernel("ask for tables of the packet filter"))? {
        let mut batch = Transaction::of(table);
        batch.remove_table();
        socket.carry_out(&batch.finish())?;
    }
    Ok(())
}

/// One rule: expressions, as the content of its list.
#[derive(Clone, Debug, Default)]
pub(super) struct Rule(Vec<u8>);

impl Rule {
    pub fn new() -> Rule {
        Rule::default()
    }

    /// Matches packets that come from, or go to, the namespace's own loopback interface.
    pub fn loopback(self, hook: Hook) -> Rule {
        let key = match hook {
            Hook::Prerouting(_) | Hook::Input | Hook::AfterInput | Hook::Forward | Hook::AfterForward => META_IN,
            Hook::Output => META_OUT,
        };
        self.meta(key).compare(EQUAL, &LOOPBACK_INDEX.to_ne_bytes())
    }

    /// Matches packets that came in by a device, by its index.
    pub fn of_device(self, index: u32) -> Rule {
        self.meta(META_IN).compare(EQUAL, &index.to_ne_bytes())
    }

    /// Matches packets that leave by another device.
    pub fn not_out_by(self, index: u32) -> Rule {
        self.meta(META_OUT).compare(NOT_EQUAL, &index.to_ne_bytes())
    }

    /// Has packets go on in the chain to which a map leads the device by which they came in, if it has that.
    pub fn by_device(self, map: &str) -> Rule {
        let numbers = [REGISTER, VERDICT_REGISTER].map(u32::to_be_bytes);
        self.meta(META_IN).expression("lookup", &[(1, &text(map)), (2, &numbers[0]), (3, &numbers[1])])
    }

    /// Matches packets that came in by a device of a group.
    pub fn of_group(self, group: u32) -> Rule {
        self.meta(META_IN_GROUP).compare(EQUAL, &group.to_ne_bytes())
    }

    /// Matches packets with this mark.
    pub fn marked(self, mark: u32) -> Rule {
        self.meta(META_MARK).compare(EQUAL, &mark.to_ne_bytes())
    }

    /// Gives packets a mark.
    pub fn mark(self, mark: u32) -> Rule {
        let marked = self.set_register(REGISTER, &mark.to_ne_bytes());
        marked.expression("meta", &[(2, &META_MARK.to_be_bytes()), (3, &REGISTER.to_be_bytes())])
    }

    /// Matches packets of a connection whose socket here may take any address.
    pub fn of_transparent_socket(self) -> Rule {
        let numbers = [SOCKET_TRANSPARENT, REGISTER].map(u32::to_be_bytes);
        self.expression("socket", &[(1, &numbers[0]), (2, &numbers[1])]).compare(EQUAL, &[1])
    }

    /// Hands packets to the socket that listens at an address of this namespace, wherever they go, and does not match if
    /// there is none. The version and the protocol must have been matched.
    pub fn deliver_to(self, version: IpVersion, octets: &[u8], port: u16) -> Rule {
        let at = self.set_register(REGISTER, octets).set_register(SECOND_REGISTER, &port.to_be_bytes());
        let family: u32 = match version {
            IpVersion::V4 => 2,
            IpVersion::V6 => 10,
        };
        let numbers = [family, REGISTER, SECOND_REGISTER].map(u32::to_be_bytes);
        at.expression("tproxy", &[(1, &numbers[0]), (2, &numbers[1]), (3, &numbers[2])])
    }

    pub fn version(self, version: IpVersion) -> Rule {
        let family = match version {
            IpVersion::V4 => 2,
            IpVersion::V6 => 10,
        };
        self.meta(META_FAMILY).compare(EQUAL, &[family])
    }

    /// Matches the protocol above IP and its extension headers.
    pub fn protocol(self, number: u8) -> Rule {
        self.meta(META_PROTOCOL).compare(EQUAL, &[number])
    }

    /// Matches every other protocol.
    pub fn not_protocol(self, number: u8) -> Rule {
        self.meta(META_PROTOCOL).compare(NOT_EQUAL, &[number])
    }

    /// Matches an address in a prefix. The version must have been matched.
    pub fn address(self, end: End, octets: &[u8], bits: u8) -> Rule {
        let (offset, length) = address_place(end, octets.len());
        let loaded = self.load(NETWORK, offset, length, REGISTER);
        let mask = mask(octets.len(), bits);
        if mask.iter().all(|byte| *byte == 0xff) {
            return loaded.compare(EQUAL, octets);
        }
        loaded.masked(&mask).compare(EQUAL, octets)
    }

    /// Matches an address in a set.
    pub fn address_in(self, end: End, version: IpVersion, set: &str) -> Rule {
        let (offset, length) = address_place(end, address_bytes(version));
        self.version(version).load(NETWORK, offset, length, REGISTER).lookup(set)
    }

    /// Matches a port in a range. The protocol must have been matched.
    pub fn port(self, end: End, ports: PortRange) -> Rule {
        if ports == PortRange::ALL {
            return self;
        }
        let loaded = self.load(TRANSPORT, port_place(end), 2, REGISTER);
        let (first, last) = (ports.first().to_be_bytes(), ports.last().to_be_bytes());
        if first == last {
            return loaded.compare(EQUAL, &first);
        }
        loaded.compare(AT_LEAST, &first).compare(AT_MOST, &last)
    }

    /// Matches IPv4 packets with options in their header.
    pub fn options(self) -> Rule {
        let lengths = self.version(IpVersion::V4).load(NETWORK, 0, 1, REGISTER).masked(&[IPV4_HEADER_LENGTH]);
        lengths.compare(NOT_EQUAL, &[IPV4_HEADER_WORDS])
    }

    /// Matches TCP segments that ask for a new connection, or all others.
    pub fn opening(self, opens: bool) -> Rule {
        let flags = self.load(TRANSPORT, TCP_FLAGS_OFFSET, 1, REGISTER).masked(&[TCP_SYN | TCP_ACK]);
        flags.compare(if opens { EQUAL } else { NOT_EQUAL }, &[TCP_SYN])
    }

    /// Matches messages of ICMP, of types from one to another.
    pub fn icmp(self, first: u8, last: u8) -> Rule {
        self.load(TRANSPORT, 0, 1, REGISTER).compare(AT_LEAST, &[first]).compare(AT_MOST, &[last])
    }

    /// Matches fragments of IPv6 but the first of each packet.
    pub fn later_fragment(self) -> Rule {
        let list: [(u16, &[u8]); 4] = [
            (1, &REGISTER.to_be_bytes()),
            (2, &[IPV6_FRAGMENT]),
            (3, &FRAGMENT_OFFSET.to_be_bytes()),
            (4, &2_u32.to_be_bytes()),
        ];
        self.expression("exthdr", &list).masked(&[0xff, 0xf8]).compare(NOT_EQUAL, &[0, 0])
    }

    /// Loads address and port of the remote end and the own port, as a key. UDP must have been matched.
    pub fn flow(self, version: IpVersion, remote: End) -> Rule {
        let own = match remote {
            End::Source => End::Destination,
            End::Destination => End::Source,
        };
        let bytes = address_bytes(version);
        let (offset, length) = address_place(remote, bytes);
        let next = WORD_REGISTER + length / 4;
        let loaded = self.load(NETWORK, offset, length, WORD_REGISTER);
        loaded.load(TRANSPORT, port_place(remote), 2, next).load(TRANSPORT, port_place(own), 2, next + 1)
    }

    /// Matches if the key is in a set.
    pub fn flow_in(self, set: &str) -> Rule {
        self.expression("lookup", &[(1, &text(set)), (2, &WORD_REGISTER.to_be_bytes())])
    }

    /// Adds the key to a set for a time, and does not match if it is full. One that is in it keeps its time, unless that
    /// is to begin again.
    pub fn flow_add(self, set: &str, time: std::time::Duration, again: bool) -> Rule {
        let operation: u32 = if again { 1 } else { 0 };
        let milliseconds = u64::try_from(time.as_millis()).expect("times of flows are minutes");
        let list: [(u16, &[u8]); 4] = [
            (1, &text(set)),
            (3, &operation.to_be_bytes()),
            (4, &WORD_REGISTER.to_be_bytes()),
            (6, &milliseconds.to_be_bytes()),
        ];
        self.expression("dynset", &list)
    }

    /// Matches as long as not more than so many packets come in a second.
    pub fn at_most_per_second(self, packets: u64) -> Rule {
        self.limit(packets, packets, 0)
    }

    /// Matches packets that come when so many were there in a second, after some (`burst`) that may come at once.
    pub fn over_per_second(self, packets: u64, burst: u64) -> Rule {
        self.limit(packets, burst, LIMIT_INVERTED)
    }

    fn limit(self, packets: u64, burst: u64, flags: u32) -> Rule {
        let burst = u32::try_from(burst).expect("rates are small");
        let list: [(u16, &[u8]); 5] = [
            (1, &packets.to_be_bytes()),
            (2, &1_u64.to_be_bytes()),
            (3, &burst.to_be_bytes()),
            (4, &0_u32.to_be_bytes()),
            (5, &flags.to_be_bytes()),
        ];
        self.expression("limit", &list)
    }

    pub fn count(self, counter: &str) -> Rule {
        self.expression("objref", &[(1, &OBJECT_COUNTER.to_be_bytes()), (2, &text(counter))])
    }

    /// Drops the packet and tells its sender that it is prohibited.
    pub fn reject(self) -> Rule {
        self.expression("reject", &[(1, &REJECT_BY_VERSION.to_be_bytes()), (2, &[REJECT_PROHIBITED])])
    }

    /// Drops the segment and tells its sender that nobody takes connections there. TCP must have been matched.
    pub fn reset(self) -> Rule {
        self.expression("reject", &[(1, &REJECT_RESET.to_be_bytes())])
    }

    pub fn verdict(self, verdict: Verdict) -> Rule {
        let code = match verdict {
            Verdict::Accept => ACCEPT,
            Verdict::Drop => DROP,
            Verdict::Goto(_) => GOTO,
        };
        let chain = match verdict {
            Verdict::Accept | Verdict::Drop => None,
            Verdict::Goto(chain) => Some(text(chain)),
        };
        let code = code.to_be_bytes();
        let mut list: Vec<(u16, &[u8])> = vec![(1, &code)];
        list.extend(chain.as_deref().map(|chain| (2, chain)));
        let data = nested(&[(DATA_VERDICT, &nested(&list))]);
        self.expression("immediate", &[(1, &VERDICT_REGISTER.to_be_bytes()), (2, &data)])
    }

    fn set_register(self, register: u32, value: &[u8]) -> Rule {
        let data = nested(&[(DATA_VALUE, value)]);
        self.expression("immediate", &[(1, &register.to_be_bytes()), (2, &data)])
    }

    fn meta(self, key: u32) -> Rule {
        self.expression("meta", &[(1, &REGISTER.to_be_bytes()), (2, &key.to_be_bytes())])
    }

    fn load(self, base: u32, offset: u32, length: u32, register: u32) -> Rule {
        let numbers = [register, base, offset, length].map(u32::to_be_bytes);
        self.expression("payload", &[(1, &numbers[0]), (2, &numbers[1]), (3, &numbers[2]), (4, &numbers[3])])
    }

    fn compare(self, operation: u32, value: &[u8]) -> Rule {
        let data = nested(&[(DATA_VALUE, value)]);
        self.expression("cmp", &[(1, &REGISTER.to_be_bytes()), (2, &operation.to_be_bytes()), (3, &data)])
    }

    fn masked(self, mask: &[u8]) -> Rule {
        let (register, length) = (REGISTER.to_be_bytes(), length_of(mask).to_be_bytes());
        let (keep, flip) = (nested(&[(DATA_VALUE, mask)]), nested(&[(DATA_VALUE, &vec![0; mask.len()])]));
        self.expression("bitwise", &[(1, &register), (2, &register), (3, &length), (4, &keep), (5, &flip)])
    }

    fn lookup(self, set: &str) -> Rule {
        self.expression("lookup", &[(1, &text(set)), (2, &REGISTER.to_be_bytes())])
    }

    fn expression(mut self, name: &str, list: &[(u16, &[u8])]) -> Rule {
        append_attribute(&mut self.0, LIST_ELEMENT, &nested(&[(1, &text(name)), (2, &nested(list))]));
        self
    }
}

/// `NFNL_SUBSYS_NFTABLES`.
const SUBSYSTEM: u16 = 10;
/// `NFNL_MSG_BATCH_BEGIN`.
const BATCH_BEGIN: u16 = 0x10;
/// `NFNL_MSG_BATCH_END`.
const BATCH_END: u16 = 0x11;
/// `nfgenmsg` of a batch: any family, version 0, the subsystem.
const BATCH_HEADER: [u8; 4] = [0, 0, 0, 10];
/// `nfgenmsg` of a table: `NFPROTO_INET`, version 0, no number.
const HEADER: [u8; 4] = [1, 0, 0, 0];
/// `NLM_F_CREATE`.
const FLAG_CREATE: u16 = 0x400;
/// `NLM_F_APPEND`.
const FLAG_APPEND: u16 = 0x800;

/// `NFT_MSG_NEWTABLE` and those after it.
const NEW_TABLE: u16 = 0;
const GET_TABLE: u16 = 1;
const DELETE_TABLE: u16 = 2;
const NEW_CHAIN: u16 = 3;
const DELETE_CHAIN: u16 = 5;
const NEW_RULE: u16 = 6;
const DELETE_RULES: u16 = 8;
const NEW_SET: u16 = 9;
const NEW_ELEMENTS: u16 = 12;
const DELETE_ELEMENTS: u16 = 14;
const NEW_OBJECT: u16 = 18;
const GET_OBJECT: u16 = 19;
const DELETE_OBJECT: u16 = 20;

/// The attribute with the table's name, the same in all messages.
const TABLE_NAME: u16 = 1;
/// `NFTA_TABLE_FLAGS` and `NFT_TABLE_F_OWNER`.
const TABLE_FLAGS: u16 = 2;
const TABLE_OWNED: u32 = 2;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const CHAIN_TYPE: u16 = 7;
const OBJECT_NAME: u16 = 2;
const OBJECT_DATA: u16 = 4;
/// `NFTA_COUNTER_PACKETS`.
const COUNTER_PACKETS: u16 = 2;
/// `NFT_OBJECT_COUNTER`.
const OBJECT_COUNTER: u32 = 1;
/// `NFTA_LIST_ELEM`.
const LIST_ELEMENT: u16 = 1;
const DATA_VALUE: u16 = 1;
const DATA_VERDICT: u16 = 2;
/// `NFT_SET_MAP`, `NFT_SET_TIMEOUT` and `NFT_SET_EVAL`.
const SET_MAP: u32 = 0x08;
const SET_TIMEOUT: u32 = 0x10;
const SET_EVAL: u32 = 0x20;

/// `NFT_DATA_VERDICT`.
const MAP_OF_VERDICTS: u32 = 0xffff_ff00;
/// What a device's index takes.
const DEVICE_INDEX_BYTES: u32 = 4;

/// `NFT_REG_VERDICT`.
const VERDICT_REGISTER: u32 = 0;
/// `NFT_REG_1`, of 16 bytes.
const REGISTER: u32 = 1;
/// `NFT_REG_2`.
const SECOND_REGISTER: u32 = 2;
/// `NFT_REG32_00`, the first of 16 registers of 4 bytes each.
const WORD_REGISTER: u32 = 8;
/// `NFT_META_IIF` and others.
const META_MARK: u32 = 3;
const META_IN: u32 = 4;
const META_OUT: u32 = 5;
const META_FAMILY: u32 = 15;
const META_PROTOCOL: u32 = 16;
const META_IN_GROUP: u32 = 21;
/// `NFT_LIMIT_F_INV`.
const LIMIT_INVERTED: u32 = 1;
/// `NFT_SOCKET_TRANSPARENT`.
const SOCKET_TRANSPARENT: u32 = 0;
/// The loopback interface has this index in every namespace.
const LOOPBACK_INDEX: u32 = 1;
/// `NFT_PAYLOAD_NETWORK_HEADER` and `NFT_PAYLOAD_TRANSPORT_HEADER`.
const NETWORK: u32 = 1;
const TRANSPORT: u32 = 2;
/// `NFT_CMP_EQ` and others.
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;
const AT_MOST: u32 = 3;
const AT_LEAST: u32 = 5;
/// RFC 791 §3.1: the length in words, 5 of which have their place.
const IPV4_HEADER_LENGTH: u8 = 0x0f;
const IPV4_HEADER_WORDS: u8 = 5;
/// RFC 9293 §3.1.
const TCP_FLAGS_OFFSET: u32 = 13;
const TCP_SYN: u8 = 0x02;
const TCP_ACK: u8 = 0x10;
/// RFC 8200 §4.5: the header's number, and where in it the offset is, with three bits of other things.
const IPV6_FRAGMENT: u8 = 44;
const FRAGMENT_OFFSET: u32 = 2;
/// `NFT_REJECT_ICMPX_UNREACH` and `NFT_REJECT_ICMPX_ADMIN_PROHIBITED`.
const REJECT_BY_VERSION: u32 = 2;
const REJECT_PROHIBITED: u8 = 3;
/// `NFT_REJECT_TCP_RST`.
const REJECT_RESET: u32 = 1;
/// `NF_DROP`, `NF_ACCEPT` and `NFT_GOTO`.
const DROP: i32 = 0;
const ACCEPT: i32 = 1;
const GOTO: i32 = -4;

fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

fn length_of(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("values of rules are short")
}

fn address_bytes(version: IpVersion) -> usize {
    match version {
        IpVersion::V4 => 4,
        IpVersion::V6 => 16,
    }
}

/// Returns where an address is in the IP header, and its length.
fn address_place(end: End, bytes: usize) -> (u32, u32) {
    match (bytes, end) {
        (4, End::Source) => (12, 4),
        (4, End::Destination) => (16, 4),
        (_, End::Source) => (8, 16),
        (_, End::Destination) => (24, 16),
    }
}

fn port_place(end: End) -> u32 {
    match end {
        End::Source => 0,
        End::Destination => 2,
    }
}

fn mask(bytes: usize, bits: u8) -> Vec<u8> {
    let byte = |place: usize| {
        let left = usize::from(bits).saturating_sub(8 * place).min(8);
        !u8::try_from(0xff_usize >> left).expect("a shifted byte is a byte")
    };
    (0..bytes).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_as_many_bits_as_the_prefix() {
        assert_eq!(mask(4, 0), [0, 0, 0, 0]);
        assert_eq!(mask(4, 9), [0xff, 0x80, 0, 0]);
        assert_eq!(mask(4, 32), [0xff; 4]);
        assert_eq!(mask(16, 61)[6..9], [0xff, 0xf8, 0]);
    }

    /// Goal: an expression has the bytes that `nft --debug=netlink` shows for `meta l4proto tcp`.
    #[test]
    fn an_expression_is_a_name_and_its_numbers() {
        let Rule(bytes) = Rule::new().protocol(6);
        let list: Vec<_> = attributes(&bytes).collect();
        assert_eq!(list.len(), 2);
        let parts: Vec<_> = attributes(list[0].1).collect();
        assert_eq!(parts[0], (1, b"meta\0".as_slice()));
        let numbers: Vec<_> = attributes(parts[1].1).collect();
        assert_eq!(numbers, [(1, [0, 0, 0, 1].as_slice()), (2, [0, 0, 0, 16].as_slice())]);
        let compared: Vec<_> = attributes(list[1].1).collect();
        assert_eq!(compared[0], (1, b"cmp\0".as_slice()));
        let (_, data) = attributes(compared[1].1).last().unwrap();
        assert_eq!(attributes(data).collect::<Vec<_>>(), [(DATA_VALUE, [6].as_slice())]);
    }
}
