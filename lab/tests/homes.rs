// SPDX-License-Identifier: Apache-2.0
//! Phones in two homes, each behind a NAT, talk by relays that the agent brought to the nodes before them, as docs/apps/sip.md has it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::{Driver, eventually};
use netserv_lab::agent;
use netserv_lab::homes::{Homes, PHONES};
use netserv_lab::netns::{is_root, wait_until};
use netserv_skips::skipped;

over_each_driver!(phones_behind_two_nats_hear_each_other);

const INSTALL_WAIT: Duration = Duration::from_secs(60);
/// A second is the goal; where nothing is optimised, and others are at work, it takes longer.
const OFF_MAX: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 1 });
const TALK: Duration = Duration::from_secs(2);
/// Packets that must be heard of these; 50 are sent in a second.
const HEARD_MIN: usize = 75;

/// Goal: baresips behind two NATs hear each other's tones by the relay of the caller's region, over both versions of IP, and between the
/// first packet that is heard and the last one none is lost. Method: Kamailio and the agent have the documentation's own configuration, but
/// for addresses; nobody types SETUP; tcpdump says what phones sent and heard. Without relays, the same phones hear nothing.
fn phones_behind_two_nats_hear_each_other(driver: Driver) {
    let test = "phones_behind_two_nats_hear_each_other";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    if !Path::new("/usr/sbin/kamailio").exists() || !Path::new("/usr/bin/baresip").exists() {
        return skipped(test, "needs kamailio and baresip");
    }
    let mut homes = Homes::up(Some(driver.name())).unwrap();
    homes.start_server().unwrap();
    homes.start_phones(false).unwrap();
    let deaf = homes.call_without_relay(0, Duration::from_secs(1)).unwrap();
    assert!(deaf.iter().all(|heard| heard.way.sent > 0 && heard.way.heard == 0), "{deaf:?}");

    homes.start_agent().unwrap();
    homes.wait_for_relays(INSTALL_WAIT).unwrap();
    // Each driver has the callers that it was not seen with over the other version of IP.
    for (caller, v6) in [(0, driver == Driver::Afxdp), (1, driver == Driver::Nfqueue)] {
        homes.start_phones(v6).unwrap();
        let heard = homes.call(caller, v6, TALK).unwrap();
        eprintln!("caller {caller}, IPv6 {v6}: {heard:?}; {:?}", homes.counters(caller));
        heard.iter().for_each(|heard| heard.check(HEARD_MIN).unwrap());
        eventually("the call is over", || homes.counters(caller).is_some_and(|counters| counters["calls"] == 0));
    }

    // Switched off, no node has a module, and calls are taken as they were without relays.
    let begun = Instant::now();
    ["media-1", "media-2", "watch"].iter().for_each(|rule| agent::switch(&homes.lab, rule, false).unwrap());
    let is_gone = || ["n1", "n2"].iter().all(|node| homes.lab.modules(node).unwrap().modules.is_empty());
    assert!(wait_until(INSTALL_WAIT, is_gone), "{}", homes.lab.log("sender", "agent"));
    let took = begun.elapsed();
    eprintln!("from the switches to no module: {took:?}");
    assert!(took <= OFF_MAX, "{took:?}");
    let server = homes.server(driver == Driver::Nfqueue);
    homes.lab.call_for(PHONES[0].0, PHONES[1].0, server, Duration::from_secs(1)).unwrap();
}
