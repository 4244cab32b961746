// SPDX-License-Identifier: Apache-2.0
//! Tables of the kernel's packet filter as netlink messages, after `linux/netfilter/nf_tables.h`.
//!
//! A table that belongs to a socket ([`Transaction::own_table`]) can be changed and removed by nobody else, not even by
//! `nft flush ruleset`. It goes when the socket is closed, in whatever way the process ends (`NFT_TABLE_F_OWNER`, Linux 5.12).
//!
//! Numbers in attributes are in network byte order. Expressions of a rule run from left to right; one that does not match
//! ends the rule.

mod hook;
mod rule;

use netserv_wire::ip::IpVersion;
use rule::{ACCEPT, DATA_VALUE, DATA_VERDICT, DROP, GOTO, LIST_ELEMENT, OBJECT_COUNTER, family, text};

pub use hook::Hook;
pub use rule::{End, Rule, Verdict, address_bytes};

use crate::message::{FLAG_DUMP, Message, attributes, nested};
use crate::requests::{Refused, Requests};
use crate::socket::Socket;

/// A table, by its family and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    family: u8,
    name: Vec<u8>,
}

impl Table {
    /// Returns the table of this name that sees both versions of IP (`NFPROTO_INET`).
    pub fn inet(name: &str) -> Table {
        Table { family: 1, name: text(name) }
    }

    /// Returns the table of this name that sees one version of IP.
    pub fn of(version: IpVersion, name: &str) -> Table {
        Table { family: family(version), name: text(name) }
    }

    /// `nfgenmsg`: the family, version 0, no number.
    fn header(&self) -> [u8; 4] {
        [self.family, 0, 0, 0]
    }
}

/// Changes that the kernel makes all or none.
#[derive(Debug)]
pub struct Transaction {
    requests: Requests,
    table: Table,
}

impl Default for Transaction {
    /// Returns changes of the tables that [`Transaction::turn_to`] names.
    fn default() -> Transaction {
        Transaction::of(Table::inet(""))
    }
}

impl Transaction {
    /// Returns changes of a table.
    pub fn of(table: Table) -> Transaction {
        let mut requests = Requests::default();
        requests.push_silent(BATCH_BEGIN, &BATCH_HEADER);
        Transaction { requests, table }
    }

    /// Has what follows change this table.
    pub fn turn_to(&mut self, table: Table) {
        self.table = table;
    }

    /// Returns the requests, to be carried out.
    pub fn finish(mut self) -> Requests {
        self.requests.push_silent(BATCH_END, &BATCH_HEADER);
        self.requests
    }

    /// Makes the table.
    pub fn table(&mut self) {
        self.push(NEW_TABLE, FLAG_CREATE, &[], "make a table of the packet filter (nf_tables)");
    }

    /// Makes a table that only this socket can change or take away, and that goes with it (Linux 5.12).
    pub fn own_table(&mut self) {
        let what = "make a table of the packet filter that has an owner (nf_tables)";
        self.push(NEW_TABLE, FLAG_CREATE, &[(TABLE_FLAGS, &TABLE_OWNED.to_be_bytes())], what);
    }

    /// Makes a table as [`Transaction::own_table`], which nobody may have yet.
    pub fn new_own_table(&mut self) {
        let what = "make a new table of the packet filter that has an owner (nf_tables)";
        self.push(NEW_TABLE, FLAG_CREATE | FLAG_EXCLUSIVE, &[(TABLE_FLAGS, &TABLE_OWNED.to_be_bytes())], what);
    }

    /// Takes the table away, which must be there, with all that is in it.
    pub fn remove_table(&mut self) {
        self.push(DELETE_TABLE, 0, &[], "remove a table of the packet filter");
    }

    /// Adds a chain; one at a hook drops what its rules do not accept, unless the hook says otherwise.
    pub fn chain(&mut self, name: &str, hook: Option<Hook>) {
        let name = text(name);
        let (number, priority, policy): (u32, i32, i32) = match hook {
            None => {
                self.push(NEW_CHAIN, FLAG_CREATE, &[(CHAIN_NAME, &name)], "add a chain");
                return;
            }
            Some(Hook::Prerouting(priority)) => (0, priority, ACCEPT),
            Some(Hook::Input) => (1, 0, DROP),
            Some(Hook::AfterInput) => (1, 10, ACCEPT),
            Some(Hook::Forward) => (2, 0, DROP),
            Some(Hook::AfterForward) => (2, 10, ACCEPT),
            Some(Hook::Output) => (3, 0, DROP),
            Some(Hook::Reroute(priority)) => (3, priority, ACCEPT),
        };
        let kind: &[u8] = if matches!(hook, Some(Hook::Reroute(_))) { b"route\0" } else { b"filter\0" };
        let place = nested(&[(1, &number.to_be_bytes()), (2, &priority.to_be_bytes())]);
        let list: [(u16, &[u8]); 4] =
            [(CHAIN_NAME, &name), (CHAIN_HOOK, &place), (CHAIN_POLICY, &policy.to_be_bytes()), (CHAIN_TYPE, kind)];
        self.push(NEW_CHAIN, FLAG_CREATE, &list, "add a chain");
    }

    /// Takes a chain away, with its rules. Nothing may lead there.
    pub fn remove_chain(&mut self, name: &str) {
        self.push(DELETE_CHAIN, 0, &[(CHAIN_NAME, &text(name))], "remove a chain");
    }

    /// Adds a counter.
    pub fn counter(&mut self, name: &str) {
        let list: [(u16, &[u8]); 3] =
            [(OBJECT_NAME, &text(name)), (3, &OBJECT_COUNTER.to_be_bytes()), (OBJECT_DATA, &[])];
        self.push(NEW_OBJECT, FLAG_CREATE, &list, "add a counter");
    }

    /// Takes a counter away, which no rule may use.
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

    /// Adds a key to a set.
    pub fn add_element(&mut self, set: &str, key: &[u8]) {
        let elements = element(key);
        self.push(NEW_ELEMENTS, FLAG_CREATE, &[(2, &text(set)), (3, &elements)], "add to a set");
    }

    /// Takes a key out of a set or a map, where it must be.
    pub fn remove_element(&mut self, set: &str, key: &[u8]) {
        let elements = element(key);
        self.push(DELETE_ELEMENTS, 0, &[(2, &text(set)), (3, &elements)], "take out of a set");
    }

    /// Puts elements into a set, in place of those that are there.
    pub fn replace_elements(&mut self, set: &str, keys: impl IntoIterator<Item = Vec<u8>>) {
        let name = text(set);
        self.push(DELETE_ELEMENTS, 0, &[(2, &name)], "empty a set");
        let mut list = Vec::new();
        for key in keys {
            list.extend(element(&key));
        }
        if !list.is_empty() {
            self.push(NEW_ELEMENTS, FLAG_CREATE, &[(2, &name), (3, &list)], "fill a set");
        }
    }

    /// Takes away the rules of all chains.
    pub fn remove_rules(&mut self) {
        self.push(DELETE_RULES, 0, &[], "remove rules");
    }

    /// Takes away the rules of a chain. The chain stays: when a hook leaves a namespace, the kernel drops all packets there that
    /// wait for a verdict.
    pub fn remove_rules_of(&mut self, chain: &str) {
        self.push(DELETE_RULES, 0, &[(2, &text(chain))], "remove a chain's rules");
    }

    /// Appends a rule to a chain. `what` is for the error that names it.
    pub fn rule(&mut self, chain: &str, rule: &Rule, what: &str) {
        let list: [(u16, &[u8]); 2] = [(2, &text(chain)), (4, &rule.0)];
        self.push(NEW_RULE, FLAG_CREATE | FLAG_APPEND, &list, &format!("add a rule ({what})"));
    }

    /// Adds a rule at the front of a chain or at its end. Returns the number of the request, by which the kernel tells the rule's
    /// [`handle`].
    pub fn told_rule(&mut self, chain: &str, rule: &Rule, at_front: bool) -> u32 {
        let list: [(u16, &[u8]); 2] = [(2, &text(chain)), (4, &rule.0)];
        let place = if at_front { 0 } else { FLAG_APPEND };
        self.push(NEW_RULE, FLAG_CREATE | FLAG_ECHO | place, &list, "add a rule")
    }

    /// Takes a rule away, by its handle.
    pub fn remove_rule(&mut self, chain: &str, handle: u64) {
        self.push(DELETE_RULES, 0, &[(2, &text(chain)), (RULE_HANDLE, &handle.to_be_bytes())], "remove a rule");
    }

    fn push(&mut self, kind: u16, flags: u16, list: &[(u16, &[u8])], what: &str) -> u32 {
        let (header, name) = (self.table.header(), self.table.name.as_slice());
        let list: Vec<(u16, &[u8])> = std::iter::once((TABLE_NAME, name)).chain(list.iter().copied()).collect();
        self.requests.push(SUBSYSTEM << 8 | kind, flags, &header, &list, what)
    }
}

/// Returns a list of one element, a key.
fn element(key: &[u8]) -> Vec<u8> {
    nested(&[(LIST_ELEMENT, &nested(&[(1, &nested(&[(DATA_VALUE, key)]))]))])
}

/// Returns the number of the request that made a rule, and the rule's handle.
pub fn handle(message: &Message<'_>) -> Option<(u32, u64)> {
    let list = message.body.get(4..).filter(|_| message.kind == SUBSYSTEM << 8 | NEW_RULE)?;
    let (_, bytes) = attributes(list).find(|(kind, _)| *kind == RULE_HANDLE)?;
    bytes.first_chunk().map(|bytes| (message.sequence, u64::from_be_bytes(*bytes)))
}

/// Returns how many packets each counter of the table has seen.
///
/// # Errors
/// The kernel does not tell.
pub fn counters(socket: &Socket, table: &Table) -> std::io::Result<Vec<(String, u64)>> {
    let mut found = Vec::new();
    socket.ask(SUBSYSTEM << 8 | GET_OBJECT, FLAG_DUMP, &table.header(), &[(TABLE_NAME, &table.name)], |message| {
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

/// Returns whether there is such a table.
///
/// # Errors
/// The kernel does not tell.
pub fn has_table(socket: &Socket, table: &Table) -> std::io::Result<bool> {
    let mut found = false;
    let asked = socket.ask(SUBSYSTEM << 8 | GET_TABLE, 0, &table.header(), &[(TABLE_NAME, &table.name)], |_| {
        found = true;
    });
    match asked {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        asked => asked.map(|()| found),
    }
}

/// Takes a table away, if it is there.
///
/// # Errors
/// The kernel does not tell of it, or refuses.
pub fn remove_table(socket: &Socket, table: Table) -> Result<(), Refused> {
    let failed = |source| Refused { step: "ask for tables of the packet filter".to_owned(), source };
    if has_table(socket, &table).map_err(failed)? {
        let mut batch = Transaction::of(table);
        batch.remove_table();
        socket.carry_out(&batch.finish())?;
    }
    Ok(())
}

/// `NFNL_SUBSYS_NFTABLES`.
const SUBSYSTEM: u16 = 10;
/// `NFNL_MSG_BATCH_BEGIN`.
const BATCH_BEGIN: u16 = 0x10;
/// `NFNL_MSG_BATCH_END`.
const BATCH_END: u16 = 0x11;
/// `nfgenmsg` of a batch: any family, version 0, the subsystem.
const BATCH_HEADER: [u8; 4] = [0, 0, 0, 10];
/// `NLM_F_CREATE`.
const FLAG_CREATE: u16 = 0x400;
/// `NLM_F_EXCL`.
const FLAG_EXCLUSIVE: u16 = 0x200;
/// `NLM_F_APPEND`.
const FLAG_APPEND: u16 = 0x800;
/// `NLM_F_ECHO`.
const FLAG_ECHO: u16 = 0x08;
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
const RULE_HANDLE: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const CHAIN_TYPE: u16 = 7;
const OBJECT_NAME: u16 = 2;
const OBJECT_DATA: u16 = 4;
/// `NFTA_COUNTER_PACKETS`.
const COUNTER_PACKETS: u16 = 2;
/// `NFT_SET_MAP`, `NFT_SET_TIMEOUT` and `NFT_SET_EVAL`.
const SET_MAP: u32 = 0x08;
const SET_TIMEOUT: u32 = 0x10;
const SET_EVAL: u32 = 0x20;
/// `NFT_DATA_VERDICT`.
const MAP_OF_VERDICTS: u32 = 0xffff_ff00;
/// What a device's index takes.
const DEVICE_INDEX_BYTES: u32 = 4;
