// SPDX-License-Identifier: Apache-2.0
//! Views of IPv4 and IPv6 packets: flow, fragments, extension headers, checksums.
//!
//! A packet starts with its IP header; there is no link header. Nothing here copies or allocates, but for the builders
//! in [`build`] and [`cut`].

pub mod build;
pub mod checksum;
mod edit;
mod error;
mod fragments;
pub mod limits;
mod options;
#[cfg(test)]
mod tests;
mod view;

pub use edit::{decrement_ttl, set_ttl};
pub use error::IpError;
pub use fragments::cut;
pub use view::{Fragment, IpVersion, IpView, UdpView, addresses};

/// Protocol numbers (IANA "Assigned Internet Protocol Numbers").
pub mod protocol {
    /// ICMP.
    pub const ICMP: u8 = 0x01;
    /// TCP.
    pub const TCP: u8 = 0x06;
    /// UDP.
    pub const UDP: u8 = 0x11;
    /// DCCP.
    pub const DCCP: u8 = 0x21;
    /// ICMP for IPv6.
    pub const ICMPV6: u8 = 0x3A;
    /// SCTP.
    pub const SCTP: u8 = 0x84;
    /// UDP-Lite.
    pub const UDP_LITE: u8 = 0x88;
}
