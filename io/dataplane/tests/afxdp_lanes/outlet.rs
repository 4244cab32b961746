// SPDX-License-Identifier: Apache-2.0
//! Lanes that send by devices of which they have no queue, and devices that have no room.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use netserv_plane::{Batch, Driver, Final};
use netserv_plane_afxdp::{Afxdp, limits};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::common::Chain;
use crate::queues::narrow;
use crate::{RECEIVER, ROUTER, SENDER, check_frames, open, wide_link};

#[test]
fn outlet_waiting_max_frames_wait_in_a_lane_without_a_queue() {
    let Some(chain) = Chain::new(3) else { return };
    narrow(&chain, 1);
    chain.run(ROUTER, &["ping", "-qc1", "10.0.1.2"]);
    let _entered = chain.enter(ROUTER);
    let mut lanes = open("outlet", &["udp port 5060"]).lanes;
    let receiver = chain.udp(RECEIVER, "10.0.1.2:5060");
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&receiver, 16 * 1024 * 1024).unwrap();
    let senders: Vec<_> = (0..32).map(|_| chain.udp(SENDER, "10.0.0.1:0")).collect();
    let (mut batch, mut finished, mut others) = (Batch::new(), 0, 0);
    while finished < limits::OUTLET_WAITING_MAX + 3 {
        for sender in &senders {
            sender.send_to(b"x", "10.0.1.2:5060").unwrap();
        }
        for (number, lane) in lanes.iter_mut().enumerate() {
            lane.receive(&mut batch, Some(Duration::ZERO)).unwrap();
            for packet in batch.iter() {
                lane.finish(packet.id, Final::Pass);
                *(if number == 1 { &mut finished } else { &mut others }) += 1;
            }
            if number != 1 {
                lane.flush().unwrap();
            }
        }
    }
    // What was finished is on its way before more comes in.
    assert_eq!(lanes[1].receive(&mut batch, Some(Duration::ZERO)).unwrap(), 0);
    let failed = finished - limits::OUTLET_WAITING_MAX;
    assert_eq!(lanes[1].counters().send_failed, u64::try_from(failed).unwrap());
    lanes[1].flush().unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let received = std::iter::from_fn(|| crate::common::receive(&receiver)).count();
    assert_eq!(received, others + limits::OUTLET_WAITING_MAX);
    lanes.iter().for_each(check_frames);
}

/// A device without carrier sends nothing. What waits for it is given up in time, and holds nobody up.
#[test]
fn frames_wait_for_a_device_without_carrier_for_outlet_wait_max() {
    let Some(chain) = Chain::new(3) else { return };
    narrow(&chain, 1);
    without_carrier(&chain);
    chain.run(ROUTER, &["ping", "-qc1", "10.0.1.2"]);
    let _entered = chain.enter(ROUTER);
    let mut lanes = open("stuck", &["udp port 5060"]).lanes;
    let receiver = chain.udp(RECEIVER, "10.0.1.2:5060");
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&receiver, 16 * 1024 * 1024).unwrap();
    let senders: Vec<_> = (0..32).map(|_| chain.udp(SENDER, "10.0.0.1:0")).collect();
    let begun = Instant::now();
    let (mut stuck, mut others) = (0, 0);
    while stuck <= limits::OUTLET_WAITING_MAX {
        let came = turn(&mut lanes, &senders);
        (stuck, others) = (stuck + came.0, others + came.1);
    }
    // Those after the first ones that find no room are few.
    let failed = |lanes: &[Afxdp]| lanes[1..].iter().map(|lane| lane.counters().send_failed).sum::<u64>();
    let waiting_most = (lanes.len() - 1) * (limits::OUTLET_STUCK_MAX + senders.len());
    assert!(failed(&lanes) >= u64::try_from(stuck - waiting_most).unwrap());
    // What waits has the lane look again soon, and gives up by itself.
    let pending = stuck - usize::try_from(failed(&lanes)).unwrap();
    let mut timer = [PollFd::from_borrowed_fd(lanes[1].poll_fd().unwrap(), PollFlags::IN)];
    let soon = Timespec::try_from(Duration::from_millis(50)).unwrap();
    assert!(pending == 0 || poll(&mut timer, Some(&soon)).unwrap() == 1, "{pending} wait");
    let until = Instant::now() + limits::OUTLET_WAIT_MAX + Duration::from_millis(100);
    let mut batch = Batch::new();
    while Instant::now() < until {
        for lane in &mut lanes {
            lane.receive(&mut batch, Some(Duration::from_millis(5))).unwrap();
        }
    }
    assert_eq!(failed(&lanes), u64::try_from(stuck).unwrap(), "after {:?}", begun.elapsed());
    receiver.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert_eq!(std::iter::from_fn(|| crate::common::receive(&receiver)).count(), others);
    lanes.iter().for_each(check_frames);
    // Nothing is left to wait for.
    let mut timer = [PollFd::from_borrowed_fd(lanes[1].poll_fd().unwrap(), PollFlags::IN)];
    assert_eq!(poll(&mut timer, Some(&soon)).unwrap(), 0);
}

/// Sends some packets to the device without carrier and to the receiver, and lets all pass that came; returns how many that
/// were of either, of the first without those of lane 0, which has the device's queue.
fn turn(lanes: &mut [Afxdp], senders: &[UdpSocket]) -> (usize, usize) {
    for sender in senders {
        sender.send_to(b"stuck", "10.0.9.2:5060").unwrap();
        sender.send_to(b"x", "10.0.1.2:5060").unwrap();
    }
    let (mut batch, mut stuck, mut others) = (Batch::new(), 0, 0);
    for (number, lane) in lanes.iter_mut().enumerate() {
        while lane.receive(&mut batch, Some(Duration::ZERO)).unwrap() > 0 {
            for packet in batch.iter() {
                let is_stuck = packet.bytes.ends_with(b"stuck");
                stuck += usize::from(is_stuck && number > 0);
                others += usize::from(!is_stuck);
                lane.finish(packet.id, Final::Pass);
            }
            lane.flush().unwrap();
        }
    }
    (stuck, others)
}

/// Adds a device to the router that is up, whose peer is not.
fn without_carrier(chain: &Chain) {
    wide_link(chain, (ROUTER, "dead"), (RECEIVER, "dead2"), 1);
    chain.run(ROUTER, &["ip", "address", "add", "10.0.9.1/24", "dev", "dead"]);
    chain.run(ROUTER, &["ip", "link", "set", "dead", "up"]);
    let neighbour = ["10.0.9.2", "lladdr", "02:00:00:00:09:02", "nud", "permanent", "dev", "dead"];
    chain.run(ROUTER, &[&["ip", "neigh", "replace"][..], &neighbour].concat());
    chain.run(SENDER, &["ip", "route", "add", "10.0.9.0/24", "via", "10.0.0.2"]);
}
