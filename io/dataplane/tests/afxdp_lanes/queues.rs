// SPDX-License-Identifier: Apache-2.0
//! Flows over all queues of devices, with a lane for each: order, loss, and memory.

use netserv_plane::{Counters, Driver};
use netserv_plane_afxdp::Afxdp;

use crate::common::Chain;
use crate::common::load::{Account, LaneThread, Load, flows};
use crate::common::signaling::wait_until;
use crate::{FLOWS, LANES, ON_THEIR_WAY_MAX, RECEIVER, ROUTER, check_frames, open, passing, wide_link};

/// How many packets pass at least.
const PACKETS: u64 = 20_000;

#[test]
fn flows_over_all_queues_stay_in_order_and_none_is_lost() {
    let Some(chain) = Chain::new(3) else { return };
    let (lanes, account) = load(&chain);
    account.check("as many queues as lanes");
    let counters: Vec<Counters> = lanes.iter().map(Driver::counters).collect();
    assert!(counters.iter().all(|lane| lane.received > 0), "{counters:?}");
    assert_eq!(counters.into_iter().sum::<Counters>().received, account.sent);
    let handed_over: u64 = lanes.iter().map(Afxdp::handed_over).sum();
    assert!(handed_over < account.sent / 10, "{handed_over} by the kernel, until neighbours were found");
}

/// The lanes without a queue on the device where packets leave have a way out of their own.
#[test]
fn packets_leave_by_devices_with_fewer_queues_than_lanes() {
    for queues in [1, 2] {
        let Some(chain) = Chain::new(3) else { return };
        narrow(&chain, queues);
        let (lanes, account) = load(&chain);
        account.check(&format!("{queues} queues for {LANES} lanes"));
        assert!(lanes.iter().all(|lane| lane.counters().received > 0));
        let handed_over: u64 = lanes.iter().map(Afxdp::handed_over).sum();
        assert!(handed_over < account.sent / 10, "{handed_over} by the kernel, until neighbours were found");
    }
}

/// Lets so many packets of all flows pass that those before neighbours were found are few; returns the lanes.
fn load(chain: &Chain) -> (Vec<Afxdp>, Account) {
    let entered = chain.enter(ROUTER);
    let lanes = passing(open("load", &["udp port 5060"]).lanes);
    drop(entered);
    let load = Load::start(chain, &flows(FLOWS, 5060), ON_THEIR_WAY_MAX);
    wait_until(|| load.received() >= PACKETS);
    let account = load.stop();
    let lanes: Vec<Afxdp> = lanes.into_iter().map(LaneThread::end).collect();
    let counters: Counters = lanes.iter().map(Driver::counters).sum();
    assert_eq!((counters.lost, counters.send_failed, counters.unseen), (0, 0, 0), "{account:?} {counters:?}");
    lanes.iter().for_each(check_frames);
    (lanes, account)
}

/// Makes the link between router and receiver anew, with so many queues.
pub(crate) fn narrow(chain: &Chain, queues: usize) {
    chain.run(ROUTER, &["ip", "link", "del", "right"]);
    wide_link(chain, (ROUTER, "right"), (RECEIVER, "left"), queues);
    for (node, device, address) in [(ROUTER, "right", "10.0.1.1/24"), (RECEIVER, "left", "10.0.1.2/24")] {
        chain.run(node, &["ip", "address", "add", address, "dev", device]);
        chain.run(node, &["ip", "link", "set", device, "up"]);
    }
    chain.run(RECEIVER, &["ip", "route", "add", "10.0.0.0/24", "via", "10.0.1.1"]);
}
