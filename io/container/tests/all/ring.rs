// SPDX-License-Identifier: Apache-2.0
//! Packets through a real container and back.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::common::{Guest, LIMITS, Node, can_run, wait_for};
use netserv_container::{Answer, Returned, RingError};
use netserv_model::effect::ModuleSlot;

const PACKETS: u64 = 20_000;

#[test]
fn packets_go_through_the_container_and_back() {
    if !can_run("packets_go_through_the_container_and_back") {
        return;
    }
    let node = Node::start();
    let mut guest = node.launch(&LIMITS);
    guest.ready();
    let (mut next, mut waiting) = (0, BTreeSet::new());
    let until = Instant::now() + Duration::from_secs(60);
    while next < PACKETS || !waiting.is_empty() {
        while next < PACKETS {
            match guest.ring.push(&packet(next), 1, next) {
                Ok(()) => waiting.insert(next),
                Err(RingError::Full) => break,
                Err(error) => panic!("{error}"),
            };
            next += 1;
        }
        guest.ring.wake();
        while let Some(returned) = guest.ring.pop().unwrap() {
            let Returned::Answer { cookie, answer, bytes, module, .. } = returned else { panic!("{returned:?}") };
            let mut expected = packet(cookie);
            *expected.last_mut().unwrap() ^= 0xff;
            assert_eq!((answer, bytes, module), (Answer::Modified, &expected[..], Some(ModuleSlot(2))));
            assert!(waiting.remove(&cookie));
        }
        if guest.ring.outstanding() > 0 && guest.ring.prepare_sleep() {
            wait_for(&guest.ring, until);
        }
        guest.ring.awake();
    }
    assert_eq!(guest.ring.outstanding(), 0);
    assert!(guest.ring.activity().1.steps >= 2 * PACKETS);
}

#[test]
fn injected_packets_arrive_and_their_slots_come_back() {
    if !can_run("injected_packets_arrive_and_their_slots_come_back") {
        return;
    }
    let node = Node::start();
    let mut guest = node.launch(&LIMITS);
    guest.ready();
    let (mut answers, mut injected) = (0, 0);
    for number in 0..2000 {
        guest.ring.push(&packet(number), 1 << 63, number).unwrap();
        guest.ring.wake();
        let until = Instant::now() + Duration::from_secs(60);
        while answers + injected < 2 * (number + 1) {
            match guest.ring.pop().unwrap() {
                Some(Returned::Answer { .. }) => answers += 1,
                Some(Returned::Injected { bytes, module }) => {
                    injected += 1;
                    assert_eq!((bytes.len(), module), (packet(number).len(), Some(ModuleSlot(2))));
                }
                None => {
                    if guest.ring.prepare_sleep() {
                        wait_for(&guest.ring, until);
                        guest.ring.awake();
                    }
                }
            }
        }
    }
    assert_eq!((answers, injected), (2000, 2000));
}

#[test]
fn a_container_that_dies_gives_its_packets_back() {
    if !can_run("a_container_that_dies_gives_its_packets_back") {
        return;
    }
    let node = Node::start();
    let mut guest = node.launch(&LIMITS);
    guest.ready();
    guest.start_attempt("hang", &[]);
    std::thread::sleep(Duration::from_millis(20));
    for number in 0..50 {
        guest.ring.push(&packet(number), 0b101, number).unwrap();
    }
    guest.ring.wake();
    guest.process.kill();
    guest.process.wait(Duration::from_secs(60)).unwrap();
    let mut answered = 0;
    while guest.ring.pop().unwrap().is_some() {
        answered += 1;
    }
    let outstanding = guest.ring.take_outstanding();
    assert_eq!(outstanding.len() + answered, 50);
    assert!(outstanding.len() > 40 && outstanding.iter().all(|packet| packet.modules == 0b101));
}

#[test]
fn a_scribbling_worker_gives_errors_only() {
    if !can_run("a_scribbling_worker_gives_errors_only") {
        return;
    }
    let node = Node::start();
    let mut guest = node.launch(&LIMITS);
    guest.ready();
    for number in 0..500 {
        guest.ring.push(&packet(number), 1, number).unwrap();
    }
    guest.start_attempt("scribble", &[]);
    let until = Instant::now() + Duration::from_secs(60);
    let error = loop {
        assert!(Instant::now() < until, "no error came");
        match guest.ring.pop() {
            Ok(_) => {
                guest.ring.wake();
            }
            Err(error) => break error,
        }
    };
    assert!(error.is_fatal(), "{error}");
    assert_eq!(guest.ring.push(&packet(0), 1, 0), Err(error), "the ring stays closed");
    guest.ring.wake();
    guest.ring.prepare_sleep();
    guest.ring.awake();
    assert!(guest.ring.take_outstanding().len() <= 500);
    guest.process.kill();
    assert!(guest.process.wait(Duration::from_secs(60)).is_some());
}

#[test]
fn a_flooding_worker_blocks_itself_only() {
    if !can_run("a_flooding_worker_blocks_itself_only") {
        return;
    }
    let node = Node::start();
    let Guest { control, mut process, .. } = node.launch(&LIMITS);
    let mut guest = node.launch(&LIMITS);
    guest.ready();
    let mut flooder = Guest { control, ring: guest.ring, process };
    flooder.ready();
    flooder.start_attempt("flood", &[]);
    for _ in 0..1000 {
        assert!(flooder.receive().is_some());
    }
    process = flooder.process;
    process.kill();
    assert!(process.wait(Duration::from_secs(60)).is_some());
}

fn packet(number: u64) -> Vec<u8> {
    let length = 20 + usize::try_from(number % 1400).unwrap();
    (0..length).map(|at| (number.to_le_bytes()[at % 8]).wrapping_add(u8::try_from(at % 251).unwrap())).collect()
}
