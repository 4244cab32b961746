// SPDX-License-Identifier: Apache-2.0
//! Queues, rules and leftovers of instances, and which driver is chosen.

use std::time::{Duration, Instant};

use netserv_dataplane::{DriverKind, choose};
use netserv_model::Filter;
use netserv_model::effect::FilterId;
use netserv_plane::limits::INJECTED_WAITING_MAX;
use netserv_plane::{Change, Driver, DriverConfig, DriverError};
use netserv_plane_nfqueue::limits::QUEUE_NUMBERS_TRIED;
use netserv_wire::ip::build;

use crate::common::{Chain, add_inet_chain};
use crate::{Nfqueue, config, leads_to_queue, open, rules_of};

/// Goal: nothing that others do to the packet filter takes our rules away, and no filter of ours fails for it. Method: what
/// `iptables`, `ip6tables` and `nft` can do to all rules, then to our tables by name.
#[test]
fn nobody_takes_rules_away() {
    let Some(chain) = Chain::new(2) else { return };
    let _entered = chain.enter(0);
    let mut driver = open("kept", &["udp port 5060"]);
    let ours = rules_of(&chain, 0);
    assert_eq!(ours.lines().filter(|line| leads_to_queue(line)).count(), 2, "{ours}");
    for tool in ["iptables", "ip6tables"] {
        for table in ["raw", "mangle", "nat", "filter"] {
            for what in ["-F", "-X"] {
                chain.run(0, &[tool, "-t", table, what]);
            }
        }
        chain.input(0, &[&format!("{tool}-restore")], "*mangle\nCOMMIT\n");
    }
    chain.run(0, &["nft", "flush", "ruleset"]);
    for family in ["ip", "ip6"] {
        for what in ["flush", "delete"] {
            assert!(!chain.try_run(0, &["nft", what, "table", family, "netserv-p-kept"]), "{what} {family}");
        }
    }
    assert_eq!(rules_of(&chain, 0), ours);
    driver.remove(FilterId(0)).unwrap();
    assert!(!rules_of(&chain, 0).lines().any(leads_to_queue));
    drop(driver);
    assert_eq!(rules_of(&chain, 0), "");
}

/// Goal: what another process has of this name is not taken from it, and no change is done in part.
#[test]
fn refused_rules_leave_the_others_as_they_were() {
    let Some(chain) = Chain::new(2) else { return };
    let _entered = chain.enter(0);
    let driver = open("refused", &["udp port 5060"]);
    let before = rules_of(&chain, 0);
    assert!(Nfqueue::open(&config("refused")).is_err());
    let filter: Filter = "tcp".parse().unwrap();
    let changes = [Change::Install(FilterId(9), &filter), Change::Remove(FilterId(10))];
    assert!(matches!(driver.filters().change(&changes), Err(DriverError::FilterUnknown(FilterId(10)))));
    assert_eq!(rules_of(&chain, 0), before);
    // One that comes and goes at once leaves nothing.
    driver.filters().change(&[Change::Install(FilterId(9), &filter), Change::Remove(FilterId(9))]).unwrap();
    assert_eq!(rules_of(&chain, 0), before);
}

#[test]
fn two_instances_share_a_namespace() {
    let Some(chain) = Chain::new(2) else { return };
    let _entered = chain.enter(0);
    let (first, second) = (Nfqueue::open(&config("one")).unwrap(), Nfqueue::open(&config("two")).unwrap());
    let [open, closed] = first.lanes[0].queue_numbers();
    assert_eq!((closed, second.lanes[0].queue_numbers()), (open + 1, [open + 2, open + 3]));
    let taken = DriverConfig { queue: u16::MAX - 1, ..config("three") };
    let _third = Nfqueue::open(&taken).unwrap();
    let refused = Nfqueue::open(&DriverConfig { queue: u16::MAX, ..config("four") });
    assert!(matches!(refused, Err(DriverError::QueuesTaken { first: u16::MAX, last: u16::MAX })));
}

#[test]
fn queue_numbers_tried_queues_are_tried() {
    let Some(chain) = Chain::new(2) else { return };
    let _entered = chain.enter(0);
    let config = |number| DriverConfig { queue: 100, ..config(&format!("queue-{number}")) };
    let opened: Vec<_> = (0..QUEUE_NUMBERS_TRIED / 2).map(|number| Nfqueue::open(&config(number)).unwrap()).collect();
    let last = 99 + QUEUE_NUMBERS_TRIED;
    assert_eq!(opened.last().unwrap().lanes[0].queue_numbers(), [last - 1, last]);
    let refused = Nfqueue::open(&config(999));
    assert!(matches!(refused, Err(DriverError::QueuesTaken { first: 100, last: tried }) if tried == last));
}

#[test]
fn injected_waiting_max_packets_wait_for_a_flush() {
    let Some(chain) = Chain::new(2) else { return };
    let _entered = chain.enter(0);
    let mut driver = open("waiting", &[]);
    let packet = build::udp("10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap(), 64, b"x").unwrap();
    (0..INJECTED_WAITING_MAX + 3).for_each(|_| driver.inject(&packet).unwrap());
    driver.flush().unwrap();
    assert_eq!(driver.counters().send_failed, 3);
    assert_eq!(driver.counters().injected, u64::try_from(INJECTED_WAITING_MAX).unwrap());
}

#[test]
fn probing_finds_the_driver_and_leaves_nothing() {
    let Some(chain) = Chain::new(2) else { return };
    let _entered = chain.enter(0);
    let empty = rules_of(&chain, 0);
    assert_eq!(DriverKind::Nfqueue.probe().usable, Ok(()));
    assert_eq!(choose::choose("auto", &choose::survey()).unwrap().kind, DriverKind::Afxdp);
    // With rules for forwarded packets, only a driver that keeps to them is taken by itself.
    chain.run(0, &["iptables", "-A", "FORWARD", "-s", "192.0.2.1", "-j", "DROP"]);
    let choice = choose::choose("auto", &choose::survey()).unwrap();
    assert_eq!(choice.kind, DriverKind::Nfqueue);
    assert!(choice.why.contains("-A FORWARD -s 192.0.2.1/32 -j DROP"), "{}", choice.why);
    assert_eq!(choose::choose("afxdp", &[]).unwrap().kind, DriverKind::Afxdp);
    chain.run(0, &["iptables", "-D", "FORWARD", "-s", "192.0.2.1", "-j", "DROP"]);
    assert_eq!(rules_of(&chain, 0), empty);
}

#[test]
fn a_chain_that_iptables_does_not_show_keeps_afxdp_from_being_chosen() {
    let Some(chain) = Chain::new(2) else { return };
    let _entered = chain.enter(0);
    assert_eq!(choose::choose("auto", &choose::survey()).unwrap().kind, DriverKind::Afxdp);
    add_inet_chain();
    let choice = choose::choose("auto", &choose::survey()).unwrap();
    assert_eq!(choice.kind, DriverKind::Nfqueue);
    assert!(choice.why.contains("chain `forward` of nftables' table `inet fw`"), "{}", choice.why);
}

#[test]
fn installing_a_filter_is_quick() {
    let Some(chain) = Chain::new(2) else { return };
    let _entered = chain.enter(0);
    let mut driver = open("quick", &[]);
    let filter: Filter = "udp dst 10.0.0.0/24 port 5060".parse().unwrap();
    let mut times: Vec<Duration> = (0..10)
        .map(|id| {
            let start = Instant::now();
            driver.install(FilterId(id), &filter).unwrap();
            start.elapsed()
        })
        .collect();
    times.sort();
    let many: Vec<Change<'_>> = (100..116).map(|id| Change::Install(FilterId(id), &filter)).collect();
    let start = Instant::now();
    driver.filters().change(&many).unwrap();
    eprintln!("one filter: {:?} (median), {:?} (longest); sixteen: {:?}", times[5], times[9], start.elapsed());
    // The least is what it takes: the others are those of a machine with other things to do.
    assert!(times[0] < Duration::from_millis(50), "{times:?}");
}
