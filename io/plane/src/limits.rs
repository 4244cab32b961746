// SPDX-License-Identifier: Apache-2.0
//! Named bounds that all planes have, and those of the plane in memory and of the wrappers. Each has a test that hits it.

use std::time::Duration;

pub use netserv_model::limits::{BATCH_PACKETS_MAX, LANES_MAX};

/// Filters of one node.
pub const FILTERS_MAX: usize = 16_384;
/// Bytes that one packet can take in a batch: the longest IP packet and the netlink headers around it. Not a multiple
/// of a page, so that the starts of the packets do not all fall into the same cache sets.
pub const SLOT_BYTES: usize = 65_536 + 1024 + 320;
/// Packets waiting in a lane of the dummy driver; more are refused.
pub const DUMMY_WAITING_MAX: usize = 65_536;
/// Packets that wait to be sent by a raw socket until the next flush; more are counted as failed.
pub const INJECTED_WAITING_MAX: usize = 1024;
/// Destinations of modules' packets whose routes are remembered; at one more all are forgotten and asked for again.
pub const DESTINATIONS_MAX: usize = 65_536;
/// Signaling messages that a plane took off and that the interceptor has not looked at; more are lost.
pub const PASSAGE_WAITING_MAX: usize = 1024;
/// Packets that the trace wrapper remembers at most.
pub const TRACE_PACKETS_MAX: usize = 65_536;
/// Bytes of each packet that the trace wrapper remembers.
pub const TRACE_BYTES_MAX: usize = 128;
/// Verdicts that the fault wrapper delays at the same time; further ones are not delayed.
pub const DELAYED_MAX: usize = 4096;
/// Packets that the pcap wrapper keeps until their verdict; further ones are written down without one.
pub const PCAP_WAITING_MAX: usize = 4096;
/// Prefixes of destinations whose packets a plane counts.
pub const COUNTED_PREFIXES_MAX: usize = 64;
/// How long a packet thread may take no packets from a plane that would drop them; after that they pass unseen, until it takes some again.
pub const HEARTBEAT_MAX: Duration = Duration::from_secs(1);
