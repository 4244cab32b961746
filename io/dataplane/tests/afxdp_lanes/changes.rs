// SPDX-License-Identifier: Apache-2.0
//! Devices and filters that come and go while several lanes work.

use std::time::{Duration, Instant};

use netserv_model::Filter;
use netserv_model::effect::FilterId;
use netserv_patience::grown;
use netserv_plane::{Batch, Change, Counters, Driver};
use netserv_plane_afxdp::{Afxdp, limits};

use crate::common::Chain;
use crate::common::load::{LaneThread, Load, flows};
use crate::{FLOWS, LANES, ON_THEIR_WAY_MAX, ROUTER, anew, check_frames, open, passing, wide_link};

#[test]
fn devices_that_come_and_go_under_load_disturb_no_others() {
    let Some(chain) = Chain::new(3) else { return };
    let entered = chain.enter(ROUTER);
    let lanes = open("churn", &["udp port 5060"]).lanes;
    let sockets: Vec<usize> = lanes.iter().map(Afxdp::sockets).collect();
    let lanes = passing(lanes);
    drop(entered);
    let load = Load::start(&chain, &flows(FLOWS, 5060), ON_THEIR_WAY_MAX);
    for round in 0..8 {
        let queues = [LANES, 1, 2, LANES][round % 4];
        wide_link(&chain, (ROUTER, "spare"), (ROUTER, "spare2"), queues);
        std::thread::sleep(Duration::from_millis(if round % 2 == 0 { 60 } else { 5 }));
        chain.run(ROUTER, &["ip", "link", "del", "spare"]);
    }
    std::thread::sleep(Duration::from_millis(50));
    load.stop().check("devices come and go");
    let lanes: Vec<Afxdp> = lanes.into_iter().map(LaneThread::end).collect();
    let counters: Counters = lanes.iter().map(Driver::counters).sum();
    assert_eq!((counters.lost, counters.send_failed, counters.unseen), (0, 0, 0), "{counters:?}");
    assert_eq!(lanes.iter().map(Afxdp::sockets).collect::<Vec<_>>(), sockets);
    lanes.iter().for_each(check_frames);
}

/// A lane whose queue disappears goes on with those of other devices, and comes back to work when it has one again.
#[test]
fn a_device_comes_again_with_fewer_queues_and_with_more() {
    let Some(chain) = Chain::new(3) else { return };
    let mut running = None;
    for queues in [LANES, 2, 1, 3, LANES] {
        anew(&chain, queues);
        let entered = chain.enter(ROUTER);
        let lanes = running.take().unwrap_or_else(|| passing(open("again", &["udp port 5060"]).lanes));
        std::thread::sleep(Duration::from_millis(100));
        let load = Load::start(&chain, &flows(FLOWS, 5060), ON_THEIR_WAY_MAX);
        std::thread::sleep(Duration::from_millis(100));
        load.stop().check(&format!("{queues} queues"));
        let lanes: Vec<Afxdp> = lanes.into_iter().map(LaneThread::end).collect();
        // Those of the other device, too.
        let sockets: Vec<usize> = lanes.iter().map(Afxdp::sockets).collect();
        let expected: Vec<usize> = (0..LANES).map(|lane| 1 + usize::from(lane < queues)).collect();
        assert_eq!(sockets, expected);
        lanes.iter().for_each(check_frames);
        running = Some(passing(lanes));
        drop(entered);
    }
    running.into_iter().flatten().for_each(|lane| drop(lane.end()));
}

#[test]
fn devices_per_turn_max_devices_are_begun_with_in_one_turn() {
    let Some(chain) = Chain::new(2) else { return };
    let _entered = chain.enter(0);
    let mut lanes = open("turns", &[]).lanes;
    let new = limits::DEVICES_PER_TURN_MAX + 2;
    for number in 0..new / 2 {
        wide_link(&chain, (0, &format!("a{number}")), (0, &format!("b{number}")), LANES);
    }
    let mut turn = |lane: usize| {
        std::thread::sleep(Duration::from_millis(2));
        lanes[lane].receive(&mut Batch::new(), Some(Duration::ZERO)).unwrap();
        lanes[lane].sockets()
    };
    let turns = [turn(0), turn(1), turn(1), turn(1), turn(2)];
    assert_eq!(turns, [1 + new, 1 + new - 2, 1 + new, 1 + new, 1 + new - 2]);
}

/// Ten thousand filters, of which a thousand in a second are changed, and the one that wants the packets exchanged for
/// others, while all lanes are under load: each packet is seen, in order, and arrives.
#[test]
fn a_thousand_changes_a_second_among_ten_thousand_filters_lose_nothing() {
    let Some(chain) = Chain::new(3) else { return };
    let entered = chain.enter(ROUTER);
    let lanes = open("filters", &["udp port 5060"]).lanes;
    let table = lanes[0].filters();
    let filter = |text: String| text.parse::<Filter>().unwrap();
    let crowd = |number: u64| filter(format!("udp dst 172.16.{}.{} port 9", number >> 8 & 255, number & 255));
    let crowd: Vec<Filter> = (0..10_000).map(crowd).collect();
    let changes: Vec<Change<'_>> =
        (10_000..).zip(&crowd).map(|(id, filter)| Change::Install(FilterId(id), filter)).collect();
    table.change(&changes).unwrap();
    let wanted: Vec<Filter> = (8..24).map(|bits| filter(format!("udp src 10.0.0.0/{bits} port 5060"))).collect();
    let lanes = passing(lanes);
    drop(entered);
    let load = Load::start(&chain, &flows(FLOWS, 5060), ON_THEIR_WAY_MAX);
    let start = Instant::now();
    for round in 0..500_u64 {
        let (one, crowded) = (usize::try_from(round).unwrap(), FilterId(10_000 + round));
        table
            .change(&[Change::Remove(crowded), Change::Install(FilterId(round + 1), &wanted[one % wanted.len()])])
            .unwrap();
        table.change(&[Change::Install(crowded, &crowd[one]), Change::Remove(FilterId(round))]).unwrap();
        std::thread::sleep((start + Duration::from_millis(2 * round)).saturating_duration_since(Instant::now()));
    }
    let took = start.elapsed();
    let account = load.stop();
    account.check("beside changed filters");
    let counters: Counters = lanes.into_iter().map(|lane| lane.end().counters()).sum();
    assert_eq!((counters.received, counters.lost, counters.unseen), (account.sent, 0, 0), "{counters:?}");
    assert!(took < grown(Duration::from_millis(1500)), "{took:?} for a thousand changes");
}
