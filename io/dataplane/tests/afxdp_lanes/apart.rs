// SPDX-License-Identifier: Apache-2.0
//! Lanes that stand still or end while the others go on.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use netserv_plane::{Batch, Counters, Driver, Final, limits};
use netserv_plane_afxdp::Afxdp;
use netserv_signal::Interceptor;

use crate::common::load::{LaneThread, Load, flows};
use crate::common::{Chain, receive};
use crate::{
    FLOWS, LANES, ON_THEIR_WAY_MAX, RECEIVER, ROUTER, SENDER, anew, check_frames, config, failing_open, open,
    open_with, passing,
};

/// Long enough to be taken for dead, with the grain of the kernel's coarse clock.
const HUNG: Duration = limits::HEARTBEAT_MAX.saturating_add(Duration::from_millis(50));

#[test]
fn a_lane_that_stands_still_lets_its_own_packets_pass_and_no_others() {
    let Some(chain) = Chain::new(3) else { return };
    let entered = chain.enter(ROUTER);
    let mut lanes = open_with(&failing_open("still"), &["udp port 5060"]).lanes;
    drop(entered);
    let receiver = chain.udp(RECEIVER, "10.0.1.2:5060");
    let by_lane = senders_by_lane(&chain, &mut lanes, &receiver);
    let threads = passing(lanes);
    for still in [LANES - 1, 0, 1] {
        threads[still].stand(true);
        std::thread::sleep(Duration::from_millis(30));
        for (lane, senders) in by_lane.iter().enumerate().filter(|(lane, _)| *lane != still) {
            send(&senders[0], b"at once");
            assert_eq!(receive(&receiver).unwrap().0, b"at once", "by lane {lane}, beside {still}");
        }
        std::thread::sleep(HUNG);
        for (lane, senders) in by_lane.iter().enumerate() {
            for number in 0..20_u8 {
                send(&senders[0], &[number]);
                assert_eq!(receive(&receiver).unwrap().0, [number], "by lane {lane}, beside {still}");
            }
        }
        threads[still].stand(false);
        std::thread::sleep(Duration::from_millis(50));
        send(&by_lane[still][0], b"again");
        assert_eq!(receive(&receiver).unwrap().0, b"again");
    }
    let lanes: Vec<Afxdp> = threads.into_iter().map(LaneThread::end).collect();
    let counters: Vec<_> = lanes.iter().map(Driver::counters).collect();
    assert_eq!(
        counters.iter().copied().sum::<Counters>().unseen,
        3 * 20,
        "only those of the lane that stood still: {counters:?}"
    );
    assert!(counters[1..].iter().all(|lane| lane.unseen == 0), "the plane's counts are told by the first lane alone");
}

/// A lane that does not hear of a device's end keeps its places in the program's map: no packet of another device goes there.
#[test]
fn a_device_comes_anew_while_a_lane_stands_still() {
    let Some(chain) = Chain::new(3) else { return };
    let entered = chain.enter(ROUTER);
    let lanes = passing(open_with(&failing_open("anew"), &["udp port 5060"]).lanes);
    lanes[1].stand(true);
    for round in 0..2 {
        std::thread::sleep(Duration::from_millis(50));
        anew(&chain, LANES);
        std::thread::sleep(Duration::from_millis(100));
        let load = Load::start(&chain, &flows(FLOWS, 5060), ON_THEIR_WAY_MAX);
        std::thread::sleep(Duration::from_millis(100));
        // What begins to pass by the kernel overtakes what a lane has not looked at yet.
        load.stop().check_arrived("beside a lane that stands still");
        if round == 0 {
            std::thread::sleep(HUNG);
        }
    }
    lanes[1].stand(false);
    std::thread::sleep(Duration::from_millis(100));
    let load = Load::start(&chain, &flows(FLOWS, 5060), ON_THEIR_WAY_MAX);
    std::thread::sleep(Duration::from_millis(100));
    load.stop().check("together again");
    let lanes: Vec<Afxdp> = lanes.into_iter().map(LaneThread::end).collect();
    assert!(lanes.iter().all(|lane| lane.sockets() == 2 && lane.counters().received > 0));
    assert!(lanes[0].counters().unseen > 0, "what would have been for the lane that stood still");
    lanes.iter().for_each(check_frames);
    drop(entered);
}

/// Messages of many flows come in all lanes, and none of them is a packet for modules.
#[test]
fn signaling_is_intercepted_in_every_lane() {
    const MESSAGE: &[u8] = b"\x4e\x04\xbd\xa5 a message of some length";
    let Some(chain) = Chain::new(3) else { return };
    let entered = chain.enter(ROUTER);
    let mut lanes = open("messages", &["udp"]).lanes;
    let passage = lanes[0].intercept().unwrap();
    let mut interceptor = Interceptor::open(&config("messages"), passage).unwrap();
    let lanes = passing(lanes);
    let receiver = chain.udp(RECEIVER, "10.0.1.2:270");
    for round in 0..2 {
        let mut messages = Vec::new();
        for _ in 0..FLOWS {
            let sender = chain.udp(SENDER, "10.0.0.1:0");
            sender.send_to(MESSAGE, "10.0.1.2:270").unwrap();
        }
        let end = Instant::now() + Duration::from_secs(60);
        while messages.len() < usize::from(FLOWS) && Instant::now() < end {
            interceptor.receive(&mut messages).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(messages.len(), usize::from(FLOWS), "in round {round}");
        for message in messages {
            interceptor.accept(message.id).unwrap();
            assert_eq!(receive(&receiver).unwrap().0, MESSAGE);
        }
    }
    drop(interceptor);
    let counters: Counters = lanes.into_iter().map(|lane| lane.end().counters()).sum();
    assert_eq!((counters.received, counters.unseen), (0, 0));
    drop(entered);
}

/// What a lane holds, and what waits for it, goes on when it ends; what comes later passes, or goes by the lanes that are
/// left.
#[test]
fn lanes_end_in_any_order_and_nothing_is_lost() {
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
        let Some(chain) = Chain::new(3) else { return };
        let entered = chain.enter(ROUTER);
        let mut lanes = open("ending", &["udp port 5060"]).lanes;
        let receiver = chain.udp(RECEIVER, "10.0.1.2:5060");
        let by_lane = senders_by_lane(&chain, &mut lanes, &receiver);
        let all = || by_lane.iter().flatten();
        let mut sent = 0;
        let mut send_all = || {
            all().for_each(|sender| send(sender, b"x"));
            sent += all().count();
        };
        send_all();
        let mut batches: Vec<Batch> = Vec::new();
        for lane in &mut lanes {
            let mut batch = Batch::new();
            lane.receive(&mut batch, Some(Duration::from_millis(200))).unwrap();
            batches.push(batch);
        }
        let mut lanes: Vec<Option<Afxdp>> = lanes.into_iter().map(Some).collect();
        for ending in order {
            send_all();
            let lane = lanes[ending].as_mut().unwrap();
            let first = batches[ending].get(0).map(|packet| packet.id);
            first.into_iter().for_each(|id| lane.finish(id, Final::Pass));
            lanes[ending] = None;
            send_all();
        }
        drop(entered);
        receiver.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let received = std::iter::from_fn(|| receive(&receiver)).count();
        assert_eq!(received, sent, "in the order {order:?}");
    }
}

/// The same under load, over lanes on threads of their own.
#[test]
fn lanes_that_end_under_load_lose_nothing() {
    let Some(chain) = Chain::new(3) else { return };
    let entered = chain.enter(ROUTER);
    let mut lanes = passing(open("ends", &["udp port 5060"]).lanes);
    drop(entered);
    let load = Load::start(&chain, &flows(FLOWS, 5060), ON_THEIR_WAY_MAX);
    for _ in 1..LANES {
        std::thread::sleep(Duration::from_millis(100));
        let lane = lanes.pop().unwrap().end();
        check_frames(&lane);
        drop(lane);
    }
    std::thread::sleep(Duration::from_millis(100));
    let account = load.stop();
    eprintln!("{account:?}");
    assert_eq!(account.received, account.sent);
    let counters = lanes.pop().unwrap().end().counters();
    assert_eq!((counters.lost, counters.send_failed), (0, 0));
    assert!(counters.unseen > 0, "what was for lanes that ended");
}

#[test]
fn lanes_max_lanes_are_opened_and_never_more_than_queues() {
    let Some(chain) = Chain::new(2) else { return };
    let _entered = chain.enter(0);
    let lanes = |wanted| Afxdp::open_lanes(&config("few"), wanted).unwrap().len();
    assert_eq!([lanes(0), lanes(1), lanes(3), lanes(5)], [1, 1, 3, LANES]);
    let queues = (limits::LANES_MAX + 4).to_string();
    let more = ["ip", "link", "add", "wide", "numrxqueues", &queues, "numtxqueues", &queues, "type", "veth", "peer"];
    chain.run(0, &[&more[..], &["name", "wide2", "numrxqueues", &queues, "numtxqueues", &queues]].concat());
    let opened = Afxdp::open_lanes(&config("many"), limits::LANES_MAX + 1).unwrap();
    assert_eq!(opened.len(), limits::LANES_MAX);
    let sockets: Vec<usize> = opened.iter().map(Afxdp::sockets).collect();
    assert_eq!(sockets, [5, 5, 5, 5, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2], "of `right`, `wide` and `wide2`");
    let frames = opened.iter().map(|lane| lane.frames().0).sum::<usize>();
    assert!(frames * 2048 <= config("many").receive_buffer_bytes, "{frames} frames");
}

/// Returns senders to port 5060, some for each lane: the kernel chooses the queue by the flow.
fn senders_by_lane(chain: &Chain, lanes: &mut [Afxdp], receiver: &UdpSocket) -> Vec<Vec<UdpSocket>> {
    let mut by_lane: Vec<Vec<UdpSocket>> = lanes.iter().map(|_| Vec::new()).collect();
    let end = Instant::now() + Duration::from_secs(60);
    while by_lane.iter().any(|senders| senders.len() < 3) {
        assert!(Instant::now() < end, "some lane gets no packets");
        let sender = chain.udp(SENDER, "10.0.0.1:0");
        send(&sender, b"which");
        let lane = loop {
            assert!(Instant::now() < end, "no lane gets the packet");
            if let Some(lane) = lanes.iter_mut().position(|lane| pass_at_once(lane) > 0) {
                break lane;
            }
        };
        assert_eq!(receive(receiver).unwrap().0, b"which");
        if by_lane[lane].len() < 3 {
            by_lane[lane].push(sender);
        }
    }
    by_lane
}

fn pass_at_once(lane: &mut Afxdp) -> usize {
    let mut batch = Batch::new();
    lane.receive(&mut batch, Some(Duration::ZERO)).unwrap();
    batch.iter().for_each(|packet| lane.finish(packet.id, Final::Pass));
    lane.flush().unwrap();
    batch.len()
}

fn send(sender: &UdpSocket, payload: &[u8]) {
    sender.send_to(payload, "10.0.1.2:5060").unwrap();
}
