// SPDX-License-Identifier: Apache-2.0
//! The `afxdp` driver in four lanes over veth with four queues: what is said of one lane, and what only several have.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod apart;
mod changes;
#[path = "../afxdp/classify.rs"]
mod classify;
#[path = "../common/mod.rs"]
mod common;
#[path = "../afxdp/filters.rs"]
mod filters;
#[path = "../afxdp/forward.rs"]
mod forward;
#[path = "../afxdp/hang.rs"]
mod hang;
#[path = "../afxdp/hotplug.rs"]
mod hotplug;
#[path = "../afxdp/life.rs"]
mod life;
mod outlet;
#[path = "../afxdp/paths.rs"]
mod paths;
mod queues;
#[path = "../afxdp/seen.rs"]
mod seen;
#[path = "../afxdp/signaling.rs"]
mod signaling;
#[path = "../afxdp/support.rs"]
mod support;

pub(crate) use support::*;

use common::Chain;
use common::load::LaneThread;
use netserv_plane_afxdp as afxdp;

/// Lanes of each driver, and queues of each veth.
pub(crate) const LANES: usize = 4;
/// Flows of a load: so many that each queue gets some.
pub(crate) const FLOWS: u16 = 64;
/// Packets of a load that are on their way at most: fewer than any ring has room for.
pub(crate) const ON_THEIR_WAY_MAX: u64 = 256;

/// Starts lanes that pass what comes.
pub(crate) fn passing(lanes: Vec<afxdp::Afxdp>) -> Vec<LaneThread<afxdp::Afxdp>> {
    lanes.into_iter().map(LaneThread::start).collect()
}

/// Asserts that a lane knows where all its memory is.
pub(crate) fn check_frames(lane: &afxdp::Afxdp) {
    let (all, known) = lane.frames();
    assert_eq!(known, all);
}

/// Adds a link between two nodes whose ends have so many queues.
pub(crate) fn wide_link(chain: &Chain, one: (usize, &str), other: (usize, &str), queues: usize) {
    let queues = queues.to_string();
    let queues = ["numrxqueues", &queues, "numtxqueues", &queues];
    let names = chain.names();
    let peer = ["type", "veth", "peer", "name", other.1, "netns", &names[other.0]];
    chain.run(one.0, &[&["ip", "link", "add", one.1], &queues[..], &peer, &queues].concat());
}

/// Makes the link between sender and router anew, with so many queues.
pub(crate) fn anew(chain: &Chain, queues: usize) {
    chain.run(ROUTER, &["ip", "link", "del", "left"]);
    wide_link(chain, (SENDER, "right"), (ROUTER, "left"), queues);
    for (node, device, address) in [(SENDER, "right", "10.0.0.1/24"), (ROUTER, "left", "10.0.0.2/24")] {
        chain.run(node, &["ip", "address", "add", address, "dev", device]);
        chain.run(node, &["ip", "link", "set", device, "up"]);
    }
    chain.run(SENDER, &["ip", "route", "add", "10.0.1.0/24", "via", "10.0.0.2"]);
}
