// SPDX-License-Identifier: Apache-2.0
//! Building blocks that only compute: bytes in, a value out. Packet modules and server modules have the same ones.
//!
//! Every call is bounded in work and in memory by [`crate::limits`], whatever the bytes are.

pub mod compress;
pub mod crypto;
pub mod hash;
pub mod search;
pub mod sip;

mod budget;

pub use budget::{Budget, Reserved};

/// What one packet module has of these blocks: its patterns, and room that is used again in each call.
#[derive(Debug, Default)]
pub struct Workplace {
    /// Its sets of patterns.
    pub patterns: search::PatternSets,
    /// Where bytes of packets are copied to.
    pub scratch: Vec<u8>,
    /// The headers of the last SIP message.
    pub headers: Vec<netserv_wire::sip::Header>,
    /// What goes back to the module.
    pub out: Vec<u8>,
}
