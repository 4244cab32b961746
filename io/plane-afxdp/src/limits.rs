// SPDX-License-Identifier: Apache-2.0
//! Named bounds of the driver. Each has a test that hits it.

use std::time::Duration;

pub use netserv_plane::limits::{BATCH_PACKETS_MAX, COUNTED_PREFIXES_MAX, FILTERS_MAX, HEARTBEAT_MAX, LANES_MAX};
pub use netserv_plane_nfqueue::limits::CHANGES_AT_A_TIME;

/// Devices without XDP whose packets `afxdp` has led to a netfilter queue.
pub const DEVICES_BESIDE_MAX: usize = 1024;
/// Combinations of masks that `afxdp` looks up for each packet; filters that need more are made coarser.
pub const TUPLES_MAX: usize = 104;
/// New combinations of masks that one filter may bring to `afxdp`; one that needs more is made coarser.
pub const NEW_TUPLES_PER_FILTER_MAX: usize = 4;
/// Patterns that one filter may become in `afxdp`; one that needs more is made coarser.
pub const PATTERNS_PER_FILTER_MAX: usize = 64;
/// Patterns without a filter that `afxdp` has yet to take out of the kernel's maps; a change that adds filters while
/// there are more waits for that.
pub const LEAVING_PATTERNS_MAX: usize = 16_384;
/// Patterns that `afxdp` takes out of the kernel's maps in one go, during which no filter can change.
pub const LEAVING_BATCH_PATTERNS: usize = 64;
/// Forwarding decisions that `afxdp` remembers; at one more it forgets them all and asks the kernel again.
pub const FORWARDING_MAX: usize = 65_536;
/// Receive queues of one device that `afxdp` serves; packets of further ones pass unseen.
pub const QUEUES_MAX: usize = 64;
/// AF_XDP sockets of `afxdp`: queues of all devices together; packets of further ones pass unseen.
pub const SOCKETS_MAX: usize = 4096;
/// Frames that wait in a lane of `afxdp` to be sent by one device of which it has no queue; more are counted as failed. Those
/// for all such devices never take more than half of the lane's frames.
pub const OUTLET_WAITING_MAX: usize = 2048;
/// The same for a device that had no room for what was to be sent before.
pub const OUTLET_STUCK_MAX: usize = 256;
/// How long they wait for room in the device, from the first try on; then they are counted as failed.
pub const OUTLET_WAIT_MAX: Duration = Duration::from_millis(100);
/// Devices that a lane of `afxdp`, other than the first, begins to serve in one turn; the others' turn comes later.
pub const DEVICES_PER_TURN_MAX: usize = 4;
/// Neighbours that `afxdp` has the kernel ask for in one round while its XDP program forwards; the others' turn comes later.
pub const NEIGHBOURS_ASKED_MAX: usize = 256;
/// Time between two looks of `afxdp` for what is in the way of forwarding in XDP, at least; after news of the packet filter,
/// queueing disciplines, links, IPsec or policy routing it leaves all to the kernel until then.
pub const OBSTACLES_LOOK_MIN: Duration = Duration::from_secs(1);
/// Time between two looks of `afxdp` for what is in the way of forwarding in XDP, at most: not all gives news.
pub const OBSTACLES_LOOK_MAX: Duration = Duration::from_secs(30);
/// The share of the machine's available memory that `afxdp` takes for packets is at most one of so many.
pub const PACKET_MEMORY_SHARE: usize = 128;
