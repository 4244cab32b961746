// SPDX-License-Identifier: Apache-2.0
//! Tables of nf_tables that belong to this process, over netlink, after `linux/netfilter/nf_tables.h`.
//!
//! Nobody else can change or remove such a table, not even by `nft flush ruleset`, and it goes when its socket is closed, in
//! whatever way the process ends (`NFT_TABLE_F_OWNER`, Linux 5.12).
//!
//! Numbers in attributes are in network byte order. Expressions of a rule run from left to right; one that does not match
//! ends the rule.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use netserv_model::PortRange;
use netserv_wire::netlink::{
    FLAG_ACK, FLAG_DUMP, FLAG_REQUEST, Message, TYPE_DONE, TYPE_ERROR, append, append_attribute, attributes,
    error_number, messages, nested,
};
use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use crate::DriverError;

/// A socket, and with it the tables that were made by it. It belongs to the namespace in which it was opened, wherever it is
/// used.
#[derive(Debug)]
pub(super) struct Tables(OwnedFd);

/// A rule that the kernel made, by the number of its request.
pub(super) type Handles = BTreeMap<u32, u64>;

impl Tables {
    /// Opens a socket without tables.
    pub fn open() -> Result<Tables, Errno> {
        let (flags, protocol) = (SocketFlags::CLOEXEC, Some(netlink::NETFILTER));
        let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(ANSWER_WAIT))?;
        // Only root may, and only root needs it.
        let _ = sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES);
        let _ = sockopt::set_socket_send_buffer_size_force(&socket, BUFFER_BYTES);
        Ok(Tables(socket))
    }

    /// Makes the changes, all or none. Returns the handles of the new rules.
    pub fn carry_out(&self, mut batch: Batch) -> Result<Handles, Errno> {
        append(&mut batch.bytes, BATCH_END, FLAG_REQUEST, 0, &OF_NFTABLES, &[]);
        self.drain();
        self.send(&batch.bytes)?;
        let (mut missing, mut handles, mut buffer) = (batch.requests, Handles::new(), vec![0; ANSWER_BYTES]);
        while missing > 0 {
            let (length, _) = rustix::net::recv(&self.0, buffer.as_mut_slice(), RecvFlags::empty())?;
            for message in messages(&buffer[..length]) {
                match (message.kind, error_number(message.body)) {
                    (TYPE_ERROR, Some(0)) => missing -= 1,
                    (TYPE_ERROR, number) => {
                        // The rest of a refused batch is answered too, or not; nobody waits for that.
                        return Err(Errno::from_raw_os_error(number.unwrap_or(libc::EIO)));
                    }
                    _ => handles.extend(handle(&message).map(|handle| (message.sequence, handle))),
                }
            }
        }
        Ok(handles)
    }

    /// Hands out what the kernel has of a kind in a table, message by message.
    pub fn each(&self, family: u8, table: &[u8], kind: u16, mut each: impl FnMut(&[u8])) -> Result<(), Errno> {
        self.drain();
        let mut request = Vec::new();
        let flags = FLAG_REQUEST | FLAG_DUMP;
        append(&mut request, SUBSYSTEM << 8 | kind, flags, 1, &[family, 0, 0, 0], &[(TABLE_NAME, table)]);
        self.send(&request)?;
        let mut buffer = vec![0; ANSWER_BYTES];
        for _ in 0..ANSWERS_MAX {
            let (length, _) = rustix::net::recv(&self.0, buffer.as_mut_slice(), RecvFlags::empty())?;
            for message in messages(&buffer[..length]) {
                match (message.kind, error_number(message.body)) {
                    (TYPE_DONE, _) => return Ok(()),
                    (TYPE_ERROR, Some(number)) => return Err(Errno::from_raw_os_error(number)),
                    _ => each(message.body.get(OF_NFTABLES.len()..).unwrap_or_default()),
                }
            }
        }
        Err(Errno::MSGSIZE)
    }

    /// Reads away what came too late for an earlier question.
    fn drain(&self) {
        while rustix::net::recv(&self.0, [0_u8; 1].as_mut_slice(), RecvFlags::DONTWAIT | RecvFlags::TRUNC).is_ok() {}
    }

    fn send(&self, bytes: &[u8]) -> Result<(), Errno> {
        rustix::net::sendto(&self.0, bytes, SendFlags::empty(), &SocketAddrNetlink::new(0, 0)).map(drop)
    }
}

/// Returns the error for changes that the kernel refused.
pub(super) fn refused(what: &'static str, error: Errno) -> DriverError {
    match error {
        // Where the kernel lacks an expression, it has no such file either.
        Errno::NOENT | Errno::OPNOTSUPP | Errno::INVAL | Errno::PROTONOSUPPORT => {
            DriverError::Unsupported { what, why: io::Error::from(error).to_string() }
        }
        error => DriverError::system(what, error),
    }
}

fn handle(message: &Message<'_>) -> Option<u64> {
    let list = message.body.get(OF_NFTABLES.len()..).filter(|_| message.kind == SUBSYSTEM << 8 | NEW_RULE)?;
    let (_, bytes) = attributes(list).find(|(kind, _)| *kind == RULE_HANDLE)?;
    bytes.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

/// Changes of tables that the kernel makes all or none.
#[derive(Debug)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    requests: u32,
}

impl Batch {
    pub fn new() -> Batch {
        let mut bytes = Vec::new();
        append(&mut bytes, BATCH_BEGIN, FLAG_REQUEST, 0, &OF_NFTABLES, &[]);
        Batch { bytes, requests: 0 }
    }

    /// Makes a table that nobody has yet, with a chain at PREROUTING. What its rules do not decide goes on.
    pub fn table(&mut self, family: u8, table: &[u8], chain: &[u8], priority: i32) {
        self.push(family, table, NEW_TABLE, CREATE | EXCLUSIVE, &[(TABLE_FLAGS, &OWNED.to_be_bytes())]);
        let place = nested(&[(1, &PREROUTING.to_be_bytes()), (2, &priority.to_be_bytes())]);
        let list: [(u16, &[u8]); 4] = [(3, chain), (4, &place), (5, &ACCEPT.to_be_bytes()), (7, b"filter\0")];
        self.push(family, table, NEW_CHAIN, CREATE, &list);
    }

    /// Makes a chain to which rules lead.
    pub fn chain(&mut self, family: u8, table: &[u8], chain: &[u8]) {
        self.push(family, table, NEW_CHAIN, CREATE, &[(3, chain)]);
    }

    /// Takes the rules of a chain away. The chain stays: when a hook leaves a namespace, the kernel drops all packets there that
    /// wait for a verdict.
    pub fn empty(&mut self, family: u8, table: &[u8], chain: &[u8]) {
        self.push(family, table, DELETE_RULE, 0, &[(2, chain)]);
    }

    pub fn counter(&mut self, family: u8, table: &[u8], name: &[u8]) {
        let list: [(u16, &[u8]); 3] = [(OBJECT_NAME, name), (3, &COUNTER.to_be_bytes()), (OBJECT_DATA, &[])];
        self.push(family, table, NEW_OBJECT, CREATE, &list);
    }

    pub fn remove_counter(&mut self, family: u8, table: &[u8], name: &[u8]) {
        self.push(family, table, DELETE_OBJECT, 0, &[(OBJECT_NAME, name), (3, &COUNTER.to_be_bytes())]);
    }

    /// Adds a rule at the end of a chain, or at its front; returns the number by which its handle is told.
    pub fn rule(&mut self, family: u8, table: &[u8], chain: &[u8], rule: &Rule, at_front: bool) -> u32 {
        let place = if at_front { 0 } else { APPEND };
        self.push(family, table, NEW_RULE, CREATE | ECHO | place, &[(2, chain), (4, &rule.0)]);
        self.requests
    }

    pub fn remove_rule(&mut self, family: u8, table: &[u8], chain: &[u8], handle: u64) {
        self.push(family, table, DELETE_RULE, 0, &[(2, chain), (RULE_HANDLE, &handle.to_be_bytes())]);
    }

    fn push(&mut self, family: u8, table: &[u8], kind: u16, flags: u16, list: &[(u16, &[u8])]) {
        let list: Vec<(u16, &[u8])> = std::iter::once((TABLE_NAME, table)).chain(list.iter().copied()).collect();
        self.requests += 1;
        let flags = FLAG_REQUEST | FLAG_ACK | flags;
        append(&mut self.bytes, SUBSYSTEM << 8 | kind, flags, self.requests, &[family, 0, 0, 0], &list);
    }
}

/// Expressions, as the content of a rule's list.
#[derive(Clone, Debug, Default)]
pub(super) struct Rule(Vec<u8>);

impl Rule {
    /// Loads what the kernel knows of a packet besides its bytes.
    pub fn meta(&mut self, key: u32) -> &mut Rule {
        self.expression("meta", &[(1, &REGISTER.to_be_bytes()), (2, &key.to_be_bytes())])
    }

    /// Loads bytes of a packet; does not match if it does not have them.
    pub fn load(&mut self, base: u32, offset: u32, length: usize) -> &mut Rule {
        let length = u32::try_from(length).expect("addresses are short");
        let numbers = [REGISTER, base, offset, length].map(u32::to_be_bytes);
        self.expression("payload", &[(1, &numbers[0]), (2, &numbers[1]), (3, &numbers[2]), (4, &numbers[3])])
    }

    /// Loads what kind of address the destination is to this machine (`RTN_LOCAL` and others).
    pub fn destination_kind(&mut self) -> &mut Rule {
        let numbers = [REGISTER, FIB_ADDRESS_KIND, FIB_DESTINATION].map(u32::to_be_bytes);
        self.expression("fib", &[(1, &numbers[0]), (2, &numbers[1]), (3, &numbers[2])])
    }

    pub fn compare(&mut self, operation: u32, value: &[u8]) -> &mut Rule {
        let data = nested(&[(DATA_VALUE, value)]);
        self.expression("cmp", &[(1, &REGISTER.to_be_bytes()), (2, &operation.to_be_bytes()), (3, &data)])
    }

    pub fn masked(&mut self, mask: &[u8]) -> &mut Rule {
        let length = u32::try_from(mask.len()).expect("addresses are short").to_be_bytes();
        let (keep, flip) = (nested(&[(DATA_VALUE, mask)]), nested(&[(DATA_VALUE, &vec![0; mask.len()])]));
        let register = REGISTER.to_be_bytes();
        self.expression("bitwise", &[(1, &register), (2, &register), (3, &length), (4, &keep), (5, &flip)])
    }

    /// Matches an address in a prefix.
    pub fn prefix(&mut self, prefix: &ipnet::IpNet, is_source: bool) -> &mut Rule {
        let (octets, mask, offset) = match prefix {
            ipnet::IpNet::V4(v4) => {
                (v4.network().octets().to_vec(), v4.netmask().octets().to_vec(), if is_source { 12 } else { 16 })
            }
            ipnet::IpNet::V6(v6) => {
                (v6.network().octets().to_vec(), v6.netmask().octets().to_vec(), if is_source { 8 } else { 24 })
            }
        };
        match prefix.prefix_len() {
            0 => self,
            _ => self.load(NETWORK, offset, octets.len()).masked(&mask).compare(EQUAL, &octets),
        }
    }

    /// Matches a port of UDP or TCP.
    pub fn port(&mut self, ports: PortRange, is_source: bool) -> &mut Rule {
        let (first, last) = (ports.first().to_be_bytes(), ports.last().to_be_bytes());
        self.load(TRANSPORT, if is_source { 0 } else { 2 }, 2);
        if first == last { self.compare(EQUAL, &first) } else { self.compare(AT_LEAST, &first).compare(AT_MOST, &last) }
    }

    pub fn count(&mut self, counter: &[u8]) -> &mut Rule {
        self.expression("objref", &[(1, &COUNTER.to_be_bytes()), (2, counter)])
    }

    /// Has the packet go on in another chain.
    pub fn goto(&mut self, chain: &[u8]) -> &mut Rule {
        let verdict = nested(&[(1, &GOTO.to_be_bytes()), (2, chain)]);
        let data = nested(&[(DATA_VERDICT, &verdict)]);
        self.expression("immediate", &[(1, &VERDICT_REGISTER.to_be_bytes()), (2, &data)])
    }

    /// Hands the packet to one of the netfilter queues with these numbers; it goes on if nobody has that.
    ///
    /// By the target of `iptables`, since more kernels have that than the expression `queue`.
    pub fn queue(&mut self, first: u16, count: u16) -> &mut Rule {
        let info = [first, count, QUEUE_BYPASS, 0].map(u16::to_ne_bytes).concat();
        self.expression("target", &[(1, b"NFQUEUE\0"), (2, &QUEUE_REVISION.to_be_bytes()), (3, &info)])
    }

    fn expression(&mut self, name: &str, list: &[(u16, &[u8])]) -> &mut Rule {
        append_attribute(&mut self.0, LIST_ELEMENT, &nested(&[(1, &text(name)), (2, &nested(list))]));
        self
    }
}

/// Returns a name as the kernel takes it.
pub(super) fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

/// How long the kernel's answer is waited for.
const ANSWER_WAIT: Duration = Duration::from_secs(2);
const ANSWER_BYTES: usize = 64 * 1024;
/// Bytes of one set of changes, and of the answers to it.
const BUFFER_BYTES: usize = 4 * 1024 * 1024;
/// Datagrams of one answer at most.
const ANSWERS_MAX: usize = 1024;

/// `NFNL_SUBSYS_NFTABLES`, and messages of it: `NFT_MSG_NEWTABLE` and others.
const SUBSYSTEM: u16 = 10;
const NEW_TABLE: u16 = 0;
const NEW_CHAIN: u16 = 3;
const NEW_RULE: u16 = 6;
const DELETE_RULE: u16 = 8;
const NEW_OBJECT: u16 = 18;
/// `NFT_MSG_GETOBJ`.
pub(super) const GET_OBJECT: u16 = 19;
const DELETE_OBJECT: u16 = 20;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
/// `nfgenmsg` of a batch: any family, version 0, the subsystem.
const OF_NFTABLES: [u8; 4] = [0, 0, 0, 10];
/// `NLM_F_CREATE`, `NLM_F_EXCL`, `NLM_F_APPEND` and `NLM_F_ECHO`.
const CREATE: u16 = 0x400;
const EXCLUSIVE: u16 = 0x200;
const APPEND: u16 = 0x800;
const ECHO: u16 = 0x08;

/// The attribute with the table's name, the same in all messages.
const TABLE_NAME: u16 = 1;
const TABLE_FLAGS: u16 = 2;
/// `NFT_TABLE_F_OWNER`.
const OWNED: u32 = 2;
const RULE_HANDLE: u16 = 3;
/// `NFTA_OBJ_NAME` and `NFTA_OBJ_DATA`.
pub(super) const OBJECT_NAME: u16 = 2;
pub(super) const OBJECT_DATA: u16 = 4;
/// `NFT_OBJECT_COUNTER`.
const COUNTER: u32 = 1;
const LIST_ELEMENT: u16 = 1;
const DATA_VALUE: u16 = 1;
const DATA_VERDICT: u16 = 2;
/// `NFT_GOTO` and `NFT_REG_VERDICT`.
const GOTO: i32 = -4;
const VERDICT_REGISTER: u32 = 0;

/// `NFPROTO_INET`: both versions of IP, and each by itself.
pub(super) const INET: u8 = 1;
pub(super) const IPV4: u8 = 2;
pub(super) const IPV6: u8 = 10;
const PREROUTING: u32 = 0;
const ACCEPT: i32 = 1;
/// `NFT_REG_1`, of 16 bytes.
const REGISTER: u32 = 1;
/// Keys of `meta`.
pub(super) const META_MARK: u32 = 3;
pub(super) const META_IN: u32 = 4;
pub(super) const META_IN_NAME: u32 = 6;
pub(super) const META_FAMILY: u32 = 15;
pub(super) const META_PROTOCOL: u32 = 16;
/// Bases of `payload`.
const NETWORK: u32 = 1;
pub(super) const TRANSPORT: u32 = 2;
/// Operations of `cmp`.
pub(super) const EQUAL: u32 = 0;
pub(super) const NOT_EQUAL: u32 = 1;
const AT_MOST: u32 = 3;
const AT_LEAST: u32 = 5;
/// `NFT_FIB_RESULT_ADDRTYPE` and `NFTA_FIB_F_DADDR`.
const FIB_ADDRESS_KIND: u32 = 3;
const FIB_DESTINATION: u32 = 2;
/// `struct xt_NFQ_info_v3` and `NFQ_FLAG_BYPASS`.
const QUEUE_REVISION: u32 = 3;
const QUEUE_BYPASS: u16 = 1;
