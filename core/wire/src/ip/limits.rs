// SPDX-License-Identifier: Apache-2.0
//! Bounds of IP packets.

/// Extension headers that are walked to find the upper-layer protocol of an IPv6 packet.
pub const EXTENSION_HEADERS_MAX: usize = 8;
/// Fragments that one packet is cut into: enough for the longest one over the smallest MTU that is usual, 576.
pub const FRAGMENTS_MAX: usize = 128;
/// Bytes of an IPv4 packet: its length field has 16 bits.
pub const IPV4_BYTES_MAX: usize = 0xFFFF;
/// Bytes after the fixed header of an IPv6 packet: its length field has 16 bits.
pub const IPV6_PAYLOAD_BYTES_MAX: usize = 0xFFFF;
