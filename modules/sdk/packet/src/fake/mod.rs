// SPDX-License-Identifier: Apache-2.0
//! A node for unit tests of modules: the host calls without WebAssembly, one node per thread.
//!
//! It has no quotas; `netserv module test` runs a module with the real ones.

pub(crate) mod calls;
mod codes;
mod node;
mod sip;

use std::time::Duration;

pub use node::{Node, with};

use crate::{PACKET_BYTES_MAX, Packet, PacketModule, Verdict, control};

/// Puts a fresh node with these properties in the place of this thread's.
pub fn reset(properties: &[(&str, &str)]) {
    let properties = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    with(|node| *node = Node { properties, ..Node::default() });
}

/// Has a module look at one packet. Returns its verdict, and the packet as it goes on.
pub fn process(module: &mut impl PacketModule, packet: &[u8]) -> (Verdict, Vec<u8>) {
    let mut slot = [0; PACKET_BYTES_MAX];
    slot[..packet.len()].copy_from_slice(packet);
    let now = Duration::from_nanos(with(|node| node.now_ns));
    let mut shown = Packet::new(&mut slot, packet.len(), now, 1);
    let verdict = module.process(&mut shown);
    let left = match verdict {
        Verdict::Pass => packet.to_vec(),
        Verdict::Drop => Vec::new(),
        Verdict::Modified => shown.bytes().to_vec(),
    };
    (verdict, left)
}

/// Has a module take a message from its server part.
pub fn message(module: &mut impl PacketModule, message: &[u8]) {
    module.message(message);
}

/// Has a module take a control message of its user.
pub fn tell(module: &mut impl PacketModule, message: &control::Message<'_>) {
    module.control(message);
}

/// Moves the clocks on, and calls the timers that come due, in order.
pub fn advance(module: &mut impl PacketModule, by: Duration) {
    let until = with(|node| node.now_ns) + u64::try_from(by.as_nanos()).unwrap_or(u64::MAX / 2);
    while let Some(id) = with(|node| next_timer(node, until)) {
        module.timer(id);
    }
    with(|node| node.now_ns = until);
}

fn next_timer(node: &mut Node, until: u64) -> Option<u32> {
    let (id, (due, period)) = node.timers.iter().map(|(id, timer)| (*id, *timer)).min_by_key(|(_, timer)| timer.0)?;
    if due > until {
        return None;
    }
    node.now_ns = due;
    if period > 0 {
        node.timers.insert(id, (due + period, period))
    } else {
        node.timers.remove(&id)
    };
    Some(id)
}
