// SPDX-License-Identifier: Apache-2.0
//! Why bytes are not an IP packet.

/// Why bytes are not an IP packet that can be looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum IpError {
    /// Neither IPv4 nor IPv6, or no bytes at all.
    #[error("neither IPv4 nor IPv6")]
    Version,
    /// The bytes end before the packet does.
    #[error("the packet is cut short")]
    Truncated,
    /// The IPv4 header claims to be shorter than a header is.
    #[error("a header length that no header has")]
    HeaderLength,
    /// The IPv4 total length is shorter than the header.
    #[error("a total length shorter than the header")]
    TotalLength,
    /// More extension headers than [`EXTENSION_HEADERS_MAX`](super::limits::EXTENSION_HEADERS_MAX).
    #[error("too many extension headers")]
    ExtensionHeaders,
    /// The packet is not what the operation works on.
    #[error("not a whole UDP datagram")]
    NotUdp,
    /// A packet that [`cut`](super::cut) cannot cut into so short fragments.
    #[error("a packet that cannot be cut into fragments")]
    Indivisible,
    /// What is to be built is longer than a packet can be, or its addresses are of two IP versions.
    #[error("a packet that cannot be built")]
    Impossible,
}
