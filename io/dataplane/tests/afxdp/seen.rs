// SPDX-License-Identifier: Apache-2.0
//! Which packets are seen, and what becomes of them.

use netserv_plane::Driver;
use netserv_plane_afxdp::AttachMode;

use crate::common::{Chain, contract};
use crate::{ROUTER, open};

#[test]
fn matching_packets_are_seen_and_the_others_pass_alone() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("seen", &["udp port 5060"]);
    assert!(driver.modes().all(|(_, mode)| mode == AttachMode::Native), "veth has XDP of its own");
    contract::matching_packets_are_seen_and_the_others_pass_alone(&chain, &mut driver);
    let counters = driver.counters();
    assert_eq!((counters.send_failed, counters.lost), (0, 0));
}

#[test]
fn packets_can_be_dropped_and_rewritten_and_stay_in_order() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("rewrite", &["udp port 5060"]);
    contract::packets_can_be_dropped_and_rewritten_and_stay_in_order(&chain, &mut driver);
}
