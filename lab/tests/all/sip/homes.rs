// SPDX-License-Identifier: Apache-2.0
//! Phones in two homes, each behind a NAT, talk by relays that the agent brought to the nodes before them, as docs/apps/sip.md has it.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{Driver, eventually};
use netserv_lab::agent;
use netserv_lab::homes::{Homes, PHONES};
use netserv_lab::netns::{is_root, wait_until};
use netserv_lab::patience::grown;
use netserv_lab::rtp::NODE_LOOKS;
use netserv_lab::voip::rpc;
use netserv_skips::skipped;

over_one_driver! {
    afxdp: [phones_behind_two_nats_hear_each_other]
    nfqueue: [calls_go_by_the_relay_that_the_agent_wrote_for_their_region]
}

const INSTALL_WAIT: Duration = Duration::from_secs(60);
/// A second is the goal; where nothing is optimised, and others are at work, it takes longer.
const OFF_MAX: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 1 });
/// Longer than Kamailio takes a relay for dead that did not answer.
const DISABLED: Duration = Duration::from_secs(3);
const TALK: Duration = Duration::from_secs(2);
/// How long phones talk where it is measured, and how many packets must be heard of that.
const LONG_TALK: Duration = Duration::from_secs(10);
const LONG_HEARD_MIN: usize = 475;
/// Packets that must be heard of these; 50 are sent in a second.
const HEARD_MIN: usize = 75;

/// Goal: baresips behind two NATs hear each other's tones by the relay of the caller's region, over IPv6, and where one knows IPv6 alone and the
/// other one IPv4 (kamailio#2490, sipwise/rtpengine#781). Between the first packet that is heard and the last one none is lost. Method: Kamailio
/// and the agent have the documentation's own configuration, but for addresses; nobody types SETUP; tcpdump says what phones sent and heard.
/// Without relays, phones hear nothing.
fn phones_behind_two_nats_hear_each_other(driver: Driver) {
    let test = "phones_behind_two_nats_hear_each_other";
    let Some(mut homes) = up(test, driver) else { return };
    homes.start_server().unwrap();
    homes.start_phones(false).unwrap();
    let deaf = homes.call_without_relay(0, Duration::from_secs(1)).unwrap();
    assert!(deaf.iter().all(|heard| heard.way.sent > 0 && heard.way.heard == 0), "{deaf:?}");

    homes.start_agent().unwrap();
    homes.wait_for_relays(INSTALL_WAIT).unwrap();
    for (callers, v6) in [(&[0, 1][..], [true, false]), (&[0], [true, true])] {
        homes.start_phones_over(v6).unwrap();
        for &caller in callers {
            let heard = homes.call_over(caller, v6, TALK).unwrap();
            eprintln!("caller {caller}, IPv6 {v6:?}: {heard:?}; {:?}", homes.counters(caller));
            heard.iter().for_each(|heard| heard.check(HEARD_MIN).unwrap());
            eventually("the call is over", || homes.counters(caller).is_some_and(|counters| counters["calls"] == 0));
        }
    }

    // Switched off, no node has a module, and calls are taken as they were without relays.
    let begun = Instant::now();
    ["media-1", "media-2", "watch"].iter().for_each(|rule| agent::switch(&homes.lab, rule, false).unwrap());
    let is_gone = || ["n1", "n2"].iter().all(|node| homes.lab.modules(node).unwrap().modules.is_empty());
    assert!(wait_until(INSTALL_WAIT, is_gone), "{}", homes.lab.log("sender", "agent"));
    let took = begun.elapsed();
    eprintln!("from the switches to no module: {took:?}");
    assert!(took <= grown(OFF_MAX), "{took:?}");
    homes.lab.call_for(PHONES[0].0, PHONES[1].0, homes.server(true), Duration::from_secs(1)).unwrap();
}

/// Goal: the set of relays that Kamailio takes for a call is that of the node before the caller, which nobody configured; it goes with the rule, and
/// the next relay is found as well; a relay that was silent for a while is used again. Method: one rule, two homes behind two nodes; tables that the agent writes, and an unmodified Kamailio that
/// reads them, with the documentation's own configuration.
fn calls_go_by_the_relay_that_the_agent_wrote_for_their_region(driver: Driver) {
    let test = "calls_go_by_the_relay_that_the_agent_wrote_for_their_region";
    let Some(mut homes) = up(test, driver) else { return };
    homes.start_agent_by_tables().unwrap();
    homes.start_server_by_tables().unwrap();
    // The first time the relays do not answer while Kamailio reads of them: it takes them for dead, and finds out later.
    let relays_are_silent = |homes: &Homes, how: &str| {
        for tables in ["iptables", "ip6tables"] {
            let rule = [how, "FORWARD", "-p", "udp", "--dport", "2223", "-j", "DROP"];
            homes.lab.run("r", tables, &rule).unwrap();
        }
    };
    relays_are_silent(&homes, "-A");
    homes.start_phones(false).unwrap();
    let sets = |homes: &Homes| {
        std::fs::read_to_string(homes.lab.dir().join("kamailio/rtpengine")).unwrap().lines().count() - 1
    };
    let talk = |homes: &Homes, is_again: bool| {
        assert!(wait_until(INSTALL_WAIT, || sets(homes) == 2), "{}", homes.lab.log("sender", "agent"));
        // Kamailio reads sets again ten seconds after the last time at the earliest, and groups after them.
        let relays = || ["n1", "n2"].map(|node| homes.lab.modules(node).unwrap().modules.remove(0).addresses);
        let known = || {
            // One that is reading the tables answers later.
            let said = |method, params| rpc(&homes.lab, method, params).unwrap_or_default();
            let (sets, groups) = (said("rtpengine.show", "\"all\""), said("permissions.subnetDump", ""));
            relays().iter().all(|own| own.iter().any(|address| sets.contains(&format!("udp:{address}:"))))
                && groups.matches("\"mask\"").count() == 2
        };
        assert!(wait_until(INSTALL_WAIT, known), "{}", homes.lab.log("sender", "agent"));
        if !is_again {
            relays_are_silent(homes, "-D");
            std::thread::sleep(DISABLED);
        }
        for (caller, node) in ["n1", "n2"].into_iter().enumerate() {
            let module = homes.lab.modules(node).unwrap().modules.remove(0);
            let relay = *module.addresses.iter().find(|address| address.is_ipv4()).unwrap();
            let relayed = |caller: usize| homes.counters(caller).unwrap()["packets"];
            let before = [relayed(0), relayed(1)];
            let heard = homes.call_at(caller, false, TALK, relay).unwrap();
            eprintln!("caller {caller} at {relay}: {heard:?}; {:?}", homes.counters(caller));
            heard.iter().for_each(|heard| heard.check(HEARD_MIN).unwrap());
            eventually("the call is over", || homes.counters(caller).is_some_and(|counters| counters["calls"] == 0));
            assert!(
                relayed(caller) > before[caller] && relayed(1 - caller) == before[1 - caller],
                "by the other relay"
            );
        }
    };
    talk(&homes, false);

    agent::switch(&homes.lab, "media", false).unwrap();
    let is_gone =
        || sets(&homes) == 0 && ["n1", "n2"].iter().all(|node| homes.lab.modules(node).unwrap().modules.is_empty());
    assert!(wait_until(INSTALL_WAIT, is_gone), "{}", homes.lab.log("sender", "agent"));
    let forgets = || rpc(&homes.lab, "permissions.subnetDump", "").is_ok_and(|groups| !groups.contains("\"mask\""));
    assert!(wait_until(INSTALL_WAIT, forgets), "Kamailio has groups still");
    let server = homes.server(false);
    homes.lab.call_for(PHONES[0].0, PHONES[1].0, server, Duration::from_secs(1)).unwrap();
    agent::switch(&homes.lab, "media", true).unwrap();
    // Phones that register again are observations.
    homes.start_phones(false).unwrap();
    talk(&homes, true);
}

/// Goal: baresips behind two NATs hear each other without a loss, and no later than by rtpengine in user space on the same node, however that
/// is set: the node has a core to look for packets on. In release: `./dev media`. Method: calls of one phone go by media-relay and those of
/// the other one by rtpengine, in turns, on a node that looks and on one that sleeps; from tcpdump at one phone to that at the other one,
/// both ways; the middle of five rounds.
#[test]
#[ignore = "a measurement"]
fn phones_hear_each_other_no_later_than_by_rtpengine() {
    for driver in [Driver::Nfqueue, Driver::Afxdp] {
        let Some([own, beside]) = delays(driver, NODE_LOOKS) else { return };
        let Some([_, at_best]) = delays(driver, "") else { return };
        assert!(own <= beside.min(at_best), "{own} us beside {beside} and {at_best}, over {driver:?}");
    }
}

/// Returns how long packets take by media-relay and by rtpengine, in microseconds, on a node with these settings.
fn delays(driver: Driver, settings: &str) -> Option<[u64; 2]> {
    let test = "phones_hear_each_other_no_later_than_by_rtpengine";
    if !Path::new("/usr/bin/rtpengine").exists() {
        skipped(test, "needs rtpengine");
        return None;
    }
    let mut homes = up_with(test, driver, settings)?;
    let peer = homes.start_server_beside_rtpengine().unwrap();
    homes.start_phones(false).unwrap();
    homes.start_agent().unwrap();
    homes.wait_for_relays(INSTALL_WAIT).unwrap();
    let mut rounds = [const { Vec::new() }; 2];
    for _ in 0..5 {
        for (caller, relay) in [(0, homes.relay(0, false)), (1, peer)] {
            let heard = homes.call_at(caller, false, LONG_TALK, relay).unwrap();
            heard.iter().for_each(|heard| heard.check(LONG_HEARD_MIN).unwrap());
            let both = [[0, 1], [1, 0]].map(|[from, to]| homes.lab.delays_us(PHONES[from].0, PHONES[to].0, relay));
            let mut all = both.concat();
            assert!(all.len() >= 2 * LONG_HEARD_MIN, "of {heard:?} {} were found at both ends", all.len());
            all.sort_unstable();
            let at = |percent: usize| all[(all.len() - 1) * percent / 100];
            eprintln!("{driver:?}, {settings:?}, by {relay}: {} packets, {} us, 95th {} us", all.len(), at(50), at(95));
            rounds[caller].push(at(50));
        }
    }
    Some(rounds.map(|mut all| {
        all.sort_unstable();
        all[2]
    }))
}

/// Builds the network; nothing without what it takes.
fn up(test: &str, driver: Driver) -> Option<Homes> {
    up_with(test, driver, "")
}

/// The same with further lines for the configuration of the node before the first phone.
fn up_with(test: &str, driver: Driver, settings: &str) -> Option<Homes> {
    if !is_root() {
        skipped(test, "not root, so no namespaces");
        return None;
    }
    if !Path::new("/usr/sbin/kamailio").exists() || !Path::new("/usr/bin/baresip").exists() {
        skipped(test, "needs kamailio and baresip");
        return None;
    }
    Some(Homes::up_with(Some(driver.name()), settings).unwrap())
}
