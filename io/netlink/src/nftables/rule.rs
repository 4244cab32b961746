// SPDX-License-Identifier: Apache-2.0
//! One rule of the kernel's packet filter, as the expressions that it consists of.

use ipnet::IpNet;
use netserv_model::PortRange;
use netserv_wire::ip::IpVersion;

use super::hook::Hook;
use crate::message::{append_attribute, nested};
use crate::rtnetlink::{LOOPBACK_INDEX, ROUTE_LOCAL};

/// What becomes of a packet that a rule matched.
#[derive(Clone, Copy, Debug)]
pub enum Verdict<'a> {
    /// It goes on by itself.
    Accept,
    /// It is dropped.
    Drop,
    /// It goes on in another chain, and does not come back.
    Goto(&'a str),
}

/// Which end of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// Who sent it.
    Source,
    /// Whom it is for.
    Destination,
}

/// One rule: expressions, as the content of its list.
#[derive(Clone, Debug, Default)]
pub struct Rule(pub(super) Vec<u8>);

impl Rule {
    /// Returns a rule that matches every packet and decides nothing.
    pub fn new() -> Rule {
        Rule::default()
    }

    /// Matches packets that come from, or go to, the namespace's own loopback interface.
    pub fn loopback(self, hook: Hook) -> Rule {
        let key = match hook {
            Hook::Prerouting(_) | Hook::Input | Hook::AfterInput | Hook::Forward | Hook::AfterForward => META_IN,
            Hook::Output | Hook::Reroute(_) => META_OUT,
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

    /// Matches packets that did not come in by the namespace's own loopback interface.
    pub fn not_of_loopback(self) -> Rule {
        self.meta(META_IN).compare(NOT_EQUAL, &LOOPBACK_INDEX.to_ne_bytes())
    }

    /// Matches packets that came in by a device with another name.
    pub fn not_of_device_named(self, name: &str) -> Rule {
        let mut bytes = name.as_bytes().to_vec();
        bytes.resize(DEVICE_NAME_BYTES, 0);
        self.meta(META_IN_NAME).compare(NOT_EQUAL, &bytes)
    }

    /// Matches packets whose destination is no address of this machine.
    pub fn not_for_this_machine(self) -> Rule {
        let numbers = [REGISTER, FIB_ADDRESS_KIND, FIB_DESTINATION].map(u32::to_be_bytes);
        let loaded = self.expression("fib", &[(1, &numbers[0]), (2, &numbers[1]), (3, &numbers[2])]);
        loaded.compare(NOT_EQUAL, &u32::from(ROUTE_LOCAL).to_ne_bytes())
    }

    /// Matches packets without this mark.
    pub fn not_marked(self, mark: u32) -> Rule {
        self.meta(META_MARK).compare(NOT_EQUAL, &mark.to_ne_bytes())
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
        let numbers = [u32::from(family(version)), REGISTER, SECOND_REGISTER].map(u32::to_be_bytes);
        at.expression("tproxy", &[(1, &numbers[0]), (2, &numbers[1]), (3, &numbers[2])])
    }

    /// Matches a version of IP.
    pub fn version(self, version: IpVersion) -> Rule {
        self.meta(META_FAMILY).compare(EQUAL, &[family(version)])
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
        self.address_behind(NETWORK, 0, end, octets, bits)
    }

    /// Matches an address in a prefix, in the packet that an error of ICMP quotes. The error must have been matched.
    pub fn quoted_address(self, end: End, octets: &[u8], bits: u8) -> Rule {
        self.address_behind(TRANSPORT, ICMP_HEADER_BYTES, end, octets, bits)
    }

    fn address_behind(self, base: u32, start: u32, end: End, octets: &[u8], bits: u8) -> Rule {
        let (offset, length) = address_place(end, octets.len());
        let loaded = self.load(base, start + offset, length, REGISTER);
        let mask = mask(octets.len(), bits);
        if mask.iter().all(|byte| *byte == 0xff) {
            return loaded.compare(EQUAL, octets);
        }
        loaded.masked(&mask).compare(EQUAL, octets)
    }

    /// Matches an address in a prefix, and every address in one of no bits. The version must have been matched.
    pub fn prefix(self, end: End, net: &IpNet) -> Rule {
        match net {
            _ if net.prefix_len() == 0 => self,
            IpNet::V4(v4) => self.address(end, &v4.network().octets(), v4.prefix_len()),
            IpNet::V6(v6) => self.address(end, &v6.network().octets(), v6.prefix_len()),
        }
    }

    /// Matches an address in a set.
    pub fn address_in(self, end: End, version: IpVersion, set: &str) -> Rule {
        let (offset, length) = address_place(end, address_bytes(version));
        self.version(version).load(NETWORK, offset, length, REGISTER).lookup(set)
    }

    /// Matches an address whose first bits, and no others, are in a set. The version must have been matched.
    pub fn prefix_in(self, end: End, version: IpVersion, bits: u8, set: &str) -> Rule {
        let bytes = address_bytes(version);
        let (offset, length) = address_place(end, bytes);
        self.load(NETWORK, offset, length, REGISTER).masked(&mask(bytes, bits)).lookup(set)
    }

    /// Matches a port in a range. The protocol must have been matched.
    pub fn port(self, end: End, ports: PortRange) -> Rule {
        self.port_behind(0, end, ports)
    }

    /// Matches a port in a range, in the packet that an error of ICMP quotes. [`Rule::quotes`] must have been matched.
    pub fn quoted_port(self, version: IpVersion, end: End, ports: PortRange) -> Rule {
        self.port_behind(ICMP_HEADER_BYTES + ip_header_bytes(version), end, ports)
    }

    fn port_behind(self, start: u32, end: End, ports: PortRange) -> Rule {
        if ports == PortRange::ALL {
            return self;
        }
        let loaded = self.load(TRANSPORT, start + port_place(end), 2, REGISTER);
        let (first, last) = (ports.first().to_be_bytes(), ports.last().to_be_bytes());
        if first == last {
            return loaded.compare(EQUAL, &first);
        }
        loaded.compare(AT_LEAST, &first).compare(AT_MOST, &last)
    }

    /// Matches errors of ICMP that quote a packet of a protocol, without options or extension headers. That it is an error
    /// must have been matched.
    pub fn quotes(self, version: IpVersion, protocol: u8) -> Rule {
        let first = match version {
            IpVersion::V4 => self.transport_bytes(ICMP_HEADER_BYTES, &[IPV4_WITHOUT_OPTIONS]),
            IpVersion::V6 => self,
        };
        first.transport_bytes(ICMP_HEADER_BYTES + protocol_place(version), &[protocol])
    }

    /// Has the destination of the packet that an error of ICMP quotes be the error's source. That it is one, over IPv4, must
    /// have been matched.
    pub fn source_from_quoted_destination(self) -> Rule {
        let (from, length) = address_place(End::Destination, 4);
        let (to, _) = address_place(End::Source, 4);
        let loaded = self.load(TRANSPORT, ICMP_HEADER_BYTES + from, length, REGISTER);
        let numbers = [REGISTER, NETWORK, to, length, CHECKSUM_INTERNET, IPV4_CHECKSUM_OFFSET].map(u32::to_be_bytes);
        let [register, base, offset, length, checksum, checksum_offset] = &numbers;
        let list: [(u16, &[u8]); 6] =
            [(5, register), (2, base), (3, offset), (4, length), (6, checksum), (7, checksum_offset)];
        loaded.expression("payload", &list)
    }

    /// Matches IPv4 packets with options in their header.
    pub fn options(self) -> Rule {
        let lengths = self.version(IpVersion::V4).load(NETWORK, 0, 1, REGISTER).masked(&[IPV4_HEADER_LENGTH]);
        lengths.compare(NOT_EQUAL, &[IPV4_HEADER_WORDS])
    }

    /// Matches TCP segments with SYN and none of ACK, RST and FIN. TCP must have been matched.
    pub fn opening_alone(self) -> Rule {
        self.load(TRANSPORT, TCP_FLAGS_OFFSET, 1, REGISTER).masked(&[TCP_OPENING_FLAGS]).compare(EQUAL, &[TCP_SYN])
    }

    /// Matches bytes at a place behind the header of IP and its extensions.
    pub fn transport_bytes(self, offset: u32, bytes: &[u8]) -> Rule {
        self.load(TRANSPORT, offset, length_of(bytes), REGISTER).compare(EQUAL, bytes)
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

    /// Counts the packet with a counter of the table.
    pub fn count(self, counter: &str) -> Rule {
        self.expression("objref", &[(1, &OBJECT_COUNTER.to_be_bytes()), (2, &text(counter))])
    }

    /// Hands the packet to one of the netfilter queues with these numbers; it goes on if nobody has that.
    ///
    /// By the target of `iptables`, since more kernels have that than the expression `queue`.
    pub fn queue(self, first: u16, count: u16) -> Rule {
        let info = [first, count, QUEUE_BYPASS, 0].map(u16::to_ne_bytes).concat();
        self.expression("target", &[(1, b"NFQUEUE\0"), (2, &QUEUE_REVISION.to_be_bytes()), (3, &info)])
    }

    /// Drops the packet and tells its sender that it is prohibited.
    pub fn reject(self) -> Rule {
        self.expression("reject", &[(1, &REJECT_BY_VERSION.to_be_bytes()), (2, &[REJECT_PROHIBITED])])
    }

    /// Drops the segment and tells its sender that nobody takes connections there. TCP must have been matched.
    pub fn reset(self) -> Rule {
        self.expression("reject", &[(1, &REJECT_RESET.to_be_bytes())])
    }

    /// Decides what becomes of the packet.
    pub fn verdict(self, verdict: Verdict<'_>) -> Rule {
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

/// `NFT_OBJECT_COUNTER`.
pub(super) const OBJECT_COUNTER: u32 = 1;
/// `NFTA_LIST_ELEM`.
pub(super) const LIST_ELEMENT: u16 = 1;
pub(super) const DATA_VALUE: u16 = 1;
pub(super) const DATA_VERDICT: u16 = 2;
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
const META_IN_NAME: u32 = 6;
const META_FAMILY: u32 = 15;
const META_PROTOCOL: u32 = 16;
const META_IN_GROUP: u32 = 21;
/// `IFNAMSIZ`.
const DEVICE_NAME_BYTES: usize = 16;
/// `NFT_FIB_RESULT_ADDRTYPE` and `NFTA_FIB_F_DADDR`.
const FIB_ADDRESS_KIND: u32 = 3;
const FIB_DESTINATION: u32 = 2;
/// `struct xt_NFQ_info_v3` and `NFQ_FLAG_BYPASS`.
const QUEUE_REVISION: u32 = 3;
const QUEUE_BYPASS: u16 = 1;
/// `NFT_LIMIT_F_INV`.
const LIMIT_INVERTED: u32 = 1;
/// `NFT_SOCKET_TRANSPARENT`.
const SOCKET_TRANSPARENT: u32 = 0;
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
const IPV4_WITHOUT_OPTIONS: u8 = 0x45;
const IPV4_CHECKSUM_OFFSET: u32 = 10;
/// `NFT_PAYLOAD_CSUM_INET`.
const CHECKSUM_INTERNET: u32 = 1;
/// RFC 792, RFC 4443 §2.1: what an error quotes comes behind so much.
const ICMP_HEADER_BYTES: u32 = 8;
/// RFC 9293 §3.1.
const TCP_FLAGS_OFFSET: u32 = 13;
const TCP_SYN: u8 = 0x02;
const TCP_ACK: u8 = 0x10;
/// FIN, SYN, RST and ACK.
const TCP_OPENING_FLAGS: u8 = 0x17;
/// RFC 8200 §4.5: the header's number, and where in it the offset is, with three bits of other things.
const IPV6_FRAGMENT: u8 = 44;
const FRAGMENT_OFFSET: u32 = 2;
/// `NFT_REJECT_ICMPX_UNREACH` and `NFT_REJECT_ICMPX_ADMIN_PROHIBITED`.
const REJECT_BY_VERSION: u32 = 2;
const REJECT_PROHIBITED: u8 = 3;
/// `NFT_REJECT_TCP_RST`.
const REJECT_RESET: u32 = 1;
/// `NF_DROP`, `NF_ACCEPT` and `NFT_GOTO`.
pub(super) const DROP: i32 = 0;
pub(super) const ACCEPT: i32 = 1;
pub(super) const GOTO: i32 = -4;

/// `NFPROTO_IPV4` and `NFPROTO_IPV6`, which are the kernel's numbers of the versions elsewhere, too.
pub(super) fn family(version: IpVersion) -> u8 {
    match version {
        IpVersion::V4 => 2,
        IpVersion::V6 => 10,
    }
}

pub(super) fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

fn length_of(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("values of rules are short")
}

/// Returns how many bytes an address has.
pub fn address_bytes(version: IpVersion) -> usize {
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

/// Returns the length of the IP header, without options.
fn ip_header_bytes(version: IpVersion) -> u32 {
    match version {
        IpVersion::V4 => 20,
        IpVersion::V6 => 40,
    }
}

/// Returns where the IP header has the number of what follows.
fn protocol_place(version: IpVersion) -> u32 {
    match version {
        IpVersion::V4 => 9,
        IpVersion::V6 => 6,
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
    use crate::message::attributes;

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
