// SPDX-License-Identifier: Apache-2.0
//! Datagrams in Q-mode that go on: the bytes that change, all others as they came.

use netserv_wire::gist::{HEADER_BYTES, MAGIC};

/// Takes one hop of a datagram's payload.
pub(super) fn one_hop_on(payload: &mut [u8]) {
    if let Some(hops) = payload.get_mut(HOPS_AT) {
        *hops = hops.saturating_sub(1);
    }
}

/// Returns the longest NSLP payload that a datagram may have in place of its own, to be as short as a datagram may be or as it
/// was.
pub(super) fn data_bytes_max(payload: &[u8], datagram_bytes_max: usize) -> usize {
    let message_bytes = |payload: &[u8]| payload.len() - size_of_val(&MAGIC);
    let rest = message_bytes(&without_data(payload)) + OBJECT_HEADER;
    let bytes = datagram_bytes_max.max(message_bytes(payload));
    bytes.saturating_sub(rest) / 4 * 4
}

/// Returns a datagram's payload with another NSLP payload at its end, and all other objects as they came.
pub(super) fn with_data(payload: &[u8], data: &[u8]) -> Vec<u8> {
    let mut out = without_data(payload);
    let words = u16::try_from(data.len().div_ceil(4)).expect("the caller has checked the size");
    out.extend_from_slice(&NSLP_DATA.to_be_bytes());
    out.extend_from_slice(&words.to_be_bytes());
    out.extend_from_slice(data);
    out.resize(out.len().next_multiple_of(4), 0);
    let length = u16::try_from((out.len() - size_of_val(&MAGIC) - HEADER_BYTES) / 4).expect("a datagram is short");
    out[LENGTH_AT..LENGTH_AT + 2].copy_from_slice(&length.to_be_bytes());
    out
}

/// Returns a datagram's payload without its NSLP payload; the length in its header stays.
fn without_data(payload: &[u8]) -> Vec<u8> {
    let (head, mut rest) = payload.split_at(payload.len().min(size_of_val(&MAGIC) + HEADER_BYTES));
    let mut out = head.to_vec();
    while let Some(([a, b, c, d], _)) = rest.split_first_chunk() {
        let words = usize::from(u16::from_be_bytes([*c, *d]) & FIELD);
        let (object, others) = rest.split_at(rest.len().min(OBJECT_HEADER + 4 * words));
        if u16::from_be_bytes([*a, *b]) & FIELD != NSLP_DATA {
            out.extend_from_slice(object);
        }
        rest = others;
    }
    out
}

/// Where a datagram with magic number has the number of hops and the length.
const HOPS_AT: usize = size_of_val(&MAGIC) + 1;
const LENGTH_AT: usize = size_of_val(&MAGIC) + 2;
/// Bytes of an object's type and length, and what is type and what is length of them (RFC 5971 A.2).
const OBJECT_HEADER: usize = 4;
const FIELD: u16 = 0x0fff;
/// The type of NSLP payloads (RFC 5971 A.3).
const NSLP_DATA: u16 = 8;
