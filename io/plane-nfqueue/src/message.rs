// SPDX-License-Identifier: Apache-2.0
//! The messages of the kernel's `nfnetlink_queue`, as bytes.

use std::ops::Range;

use netserv_netlink::message::{self as netlink, FLAG_ACK, FLAG_REQUEST, Message};

/// What the kernel does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// `NF_ACCEPT`.
    Accept,
    /// `NF_DROP`.
    Drop,
}

/// One packet as the kernel hands it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    pub id: u32,
    pub interface: u32,
    /// Where the packet's bytes lie in the buffer that was parsed.
    pub range: Range<usize>,
    /// Whether the kernel left bytes out.
    pub truncated: bool,
}

/// What a message from the kernel says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// A packet waits for its verdict.
    Packet(Queued),
    /// A request of ours went well (0) or not (an error number).
    Answer { sequence: u32, error: i32 },
    /// Something that this code does not know.
    Other,
}

/// Reads the one message that a receive call gave.
pub(crate) fn parse(buffer: &[u8]) -> Received {
    let Some(message) = netlink::messages(buffer).next() else { return Received::Other };
    match message.kind {
        netlink::TYPE_ERROR => match netlink::error_number(message.body) {
            Some(error) => Received::Answer { sequence: message.sequence, error },
            None => Received::Other,
        },
        TYPE_PACKET => parse_packet(buffer, message).map_or(Received::Other, Received::Packet),
        _ => Received::Other,
    }
}

/// Appends the request to own a queue and to get whole packets from it.
///
/// Everything goes in one message, so that no packet comes before all is set. Segments of large sends
/// (`NFQA_CFG_F_GSO`) are not asked for: the kernel then cuts them into packets that fit the link and completes their
/// checksums before we see them, so that modules get what would be on the wire.
pub(crate) fn append_bind(to: &mut Vec<u8>, sequence: u32, queue: u16, packets: u32, fail_open: bool) {
    let [high, low] = queue.to_be_bytes();
    let fail_open = if fail_open { FLAG_FAIL_OPEN } else { 0 };
    let params = [COPY_RANGE.to_be_bytes().as_slice(), &[COPY_PACKET]].concat();
    let attributes: [(u16, &[u8]); 5] = [
        (CONFIG_COMMAND, &[COMMAND_BIND, 0, 0, 0]),
        (CONFIG_PARAMS, &params),
        (CONFIG_QUEUE_MAXLEN, &packets.to_be_bytes()),
        (CONFIG_MASK, &(FLAG_FAIL_OPEN | FLAG_GSO).to_be_bytes()),
        (CONFIG_FLAGS, &fail_open.to_be_bytes()),
    ];
    netlink::append(to, TYPE_CONFIG, FLAG_REQUEST | FLAG_ACK, sequence, &[0, 0, high, low], &attributes);
}

/// Appends the request to have at most so many packets wait in a queue; what is there stays.
pub(crate) fn append_bound(to: &mut Vec<u8>, queue: u16, packets: u32) {
    append(to, TYPE_CONFIG, queue, &[(CONFIG_QUEUE_MAXLEN, &packets.to_be_bytes())]);
}

/// Appends the verdict on one packet, with the bytes that take its place if there are any.
pub(crate) fn append_verdict(to: &mut Vec<u8>, queue: u16, id: u32, decision: Decision, bytes: Option<&[u8]>) {
    let header = verdict_header(id, decision);
    let attributes: [(u16, &[u8]); 2] = [(VERDICT_HEADER, &header), (PAYLOAD, bytes.unwrap_or_default())];
    let count = if bytes.is_some() { 2 } else { 1 };
    append(to, TYPE_VERDICT, queue, &attributes[..count]);
}

/// Appends the verdict on every packet that waits and is not younger than `id`.
pub(crate) fn append_verdict_up_to(to: &mut Vec<u8>, queue: u16, id: u32, decision: Decision) {
    append(to, TYPE_VERDICT_BATCH, queue, &[(VERDICT_HEADER, &verdict_header(id, decision))]);
}

const SUBSYSTEM: u16 = 3 << 8;
const TYPE_PACKET: u16 = SUBSYSTEM;
const TYPE_VERDICT: u16 = SUBSYSTEM | 1;
const TYPE_CONFIG: u16 = SUBSYSTEM | 2;
const TYPE_VERDICT_BATCH: u16 = SUBSYSTEM | 3;

const CONFIG_COMMAND: u16 = 1;
const CONFIG_PARAMS: u16 = 2;
const CONFIG_QUEUE_MAXLEN: u16 = 3;
const CONFIG_MASK: u16 = 4;
const CONFIG_FLAGS: u16 = 5;
const COMMAND_BIND: u8 = 1;
const COPY_PACKET: u8 = 2;
const COPY_RANGE: u32 = 0xffff;
const FLAG_FAIL_OPEN: u32 = 1;
const FLAG_GSO: u32 = 4;

const PACKET_HEADER: u16 = 1;
const VERDICT_HEADER: u16 = 2;
const INTERFACE_IN: u16 = 5;
const PAYLOAD: u16 = 10;
const WHOLE_LENGTH: u16 = 13;

const FAMILY_HEADER_BYTES: usize = 4;

fn append(to: &mut Vec<u8>, kind: u16, queue: u16, attributes: &[(u16, &[u8])]) {
    let [high, low] = queue.to_be_bytes();
    netlink::append(to, kind, FLAG_REQUEST, 0, &[0, 0, high, low], attributes);
}

fn verdict_header(id: u32, decision: Decision) -> [u8; 8] {
    let number = match decision {
        Decision::Drop => 0,
        Decision::Accept => 1,
    };
    let [a, b, c, d] = id.to_be_bytes();
    [0, 0, 0, number, a, b, c, d]
}

fn parse_packet(buffer: &[u8], message: Message<'_>) -> Option<Queued> {
    let number = |content: &[u8]| content.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
    let (mut id, mut interface, mut range, mut truncated) = (None, 0, 0..0, false);
    for (kind, content) in netlink::attributes(message.body.get(FAMILY_HEADER_BYTES..)?) {
        match kind {
            PACKET_HEADER => id = number(content),
            INTERFACE_IN => interface = number(content)?,
            WHOLE_LENGTH => truncated = true,
            PAYLOAD => {
                let start = content.as_ptr().addr() - buffer.as_ptr().addr();
                range = start..start + content.len();
            }
            _ => {}
        }
    }
    Some(Queued { id: id?, interface, range, truncated })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_have_the_bytes_that_the_kernel_wants() {
        let mut bytes = Vec::new();
        append_bind(&mut bytes, 9, 0x0102, 0x1000, true);
        check(
            &bytes,
            "40000000 0203 0500 09000000 00000000 0000 0102 \
             0800 0100 01000000  0900 0200 0000ffff 02000000  0800 0300 00001000 \
             0800 0400 00000005  0800 0500 00000001",
        );
        bytes.clear();
        append_verdict(&mut bytes, 5, 7, Decision::Drop, None);
        check(&bytes, "20000000 0103 0100 00000000 00000000 0000 0005 0c00 0200 00000000 00000007");
        bytes.clear();
        append_verdict(&mut bytes, 5, 7, Decision::Accept, Some(b"abcde"));
        check(
            &bytes,
            "2c000000 0103 0100 00000000 00000000 0000 0005 0c00 0200 00000001 00000007 \
             0900 0a00 6162636465 000000",
        );
        bytes.clear();
        append_verdict_up_to(&mut bytes, 5, 0x0102_0304, Decision::Accept);
        check(&bytes, "20000000 0303 0100 00000000 00000000 0000 0005 0c00 0200 00000001 01020304");
    }

    #[test]
    fn a_recorded_packet_message_is_understood() {
        let queued = Queued { id: 1, interface: 2, range: 60..89, truncated: false };
        assert_eq!(parse(&unhex(RECORDED)), Received::Packet(queued));
    }

    #[test]
    fn a_recorded_packet_message_cut_anywhere_never_panics() {
        let recorded = unhex(RECORDED);
        for length in 0..recorded.len() {
            assert_eq!(parse(&recorded[..length]), Received::Other);
            let mut shorter = recorded[..length].to_vec();
            if length >= 4 {
                shorter[..4].copy_from_slice(&u32::try_from(length).unwrap().to_ne_bytes());
            }
            parse(&shorter);
        }
    }

    #[test]
    fn answers_carry_their_error() {
        let mut bytes = Vec::new();
        netlink::append(&mut bytes, netlink::TYPE_ERROR, 0, 6, &(-16_i32).to_ne_bytes(), &[]);
        assert_eq!(parse(&bytes), Received::Answer { sequence: 6, error: 16 });
    }

    proptest! {
        #[test]
        fn any_change_of_a_packet_message_is_harmless(at in 0_usize..89, value: u8, more: (usize, u8)) {
            let mut bytes = unhex(RECORDED);
            bytes[at] = value;
            bytes[more.0 % 89] = more.1;
            if let Received::Packet(queued) = parse(&bytes) {
                prop_assert!(queued.range.end <= bytes.len());
            }
        }
    }

    /// A UDP packet of 29 bytes that came over veth, as Linux 6.18 handed it out.
    const RECORDED: &str = "59000000 0003 0000 00000000 00000000 02004e00 \
        0b000100 00000001 0800 0000 08000500 00000002 10000900 0006 0000 2aa3a7082d0e 0000 \
        21000a00 4500001d 3e604000 4011e76d 0a000001 0a000102 d71713c4 0009fffd 00";

    fn check(bytes: &[u8], expected: &str) {
        assert_eq!(bytes, unhex(expected));
    }

    fn unhex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(pair).collect()
    }
}
