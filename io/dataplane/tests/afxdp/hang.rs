// SPDX-License-Identifier: Apache-2.0
//! A node that hangs holds up nothing: packets pass unseen until it takes some again.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use netserv_patience::grown;
use netserv_plane::{Batch, Driver, DriverConfig, limits};
use netserv_wire::ip::build;
use rustix::process::{Pid, Signal, kill_process};

use crate::classify::device;
use crate::common::Chain;
use crate::{Flow, ROUTER, config, failing_open, idle, open_with, pass};

/// Long enough to be taken for dead, with the grain of the kernel's coarse clock.
const HUNG: Duration = limits::HEARTBEAT_MAX.saturating_add(Duration::from_millis(50));

#[test]
fn packets_pass_unseen_after_heartbeat_max_without_a_look() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open_with(&failing_open("unpolled"), &["udp port 5060"]);
    let flow = Flow::new(&chain, false, 5060);
    flow.send(b"seen");
    assert_eq!(pass(&mut driver, 1), 1);
    assert_eq!(flow.received().unwrap(), b"seen");
    let (index, station) = device(&chain);
    let packet = build::udp("10.0.0.1:1".parse().unwrap(), flow.to, 64, b"x").unwrap();
    let frame = [&station[..], &[2; 6], &[8, 0], &packet].concat();
    eprintln!("the program takes {:?} for a wanted packet", driver.time(&frame, index, 10_000).unwrap());
    // On a busy machine that takes so long that the driver is taken for dead meanwhile.
    let before = driver.counters().unseen;
    std::thread::sleep(HUNG);
    flow.send(b"unseen");
    assert_eq!(flow.received().unwrap(), b"unseen");
    let counters = driver.counters();
    assert_eq!((counters.received, counters.unseen - before), (1, 1));
    idle(&mut driver);
    flow.send(b"seen again");
    assert_eq!(pass(&mut driver, 1), 1);
    assert_eq!(flow.received().unwrap(), b"seen again");
}

#[test]
fn who_waits_for_packets_does_not_hang() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open_with(&failing_open("waiting"), &["udp port 5060"]);
    let flow = Flow::new(&chain, false, 5060);
    let waiting = std::thread::spawn(move || {
        let count = driver.receive(&mut Batch::new(), None).unwrap();
        (count, driver.counters().unseen)
    });
    std::thread::sleep(HUNG);
    flow.send(b"x");
    assert_eq!(waiting.join().unwrap(), (1, 0));
}

#[test]
fn who_polls_busily_gets_packets_and_keeps_to_the_time() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let busy_poll = Some(Duration::from_millis(10));
    let mut driver = open_with(&DriverConfig { busy_poll, ..failing_open("busy") }, &["udp port 5060"]);
    let flow = Flow::new(&chain, false, 5060);
    for number in 0..50_u8 {
        flow.send(&[number]);
        assert_eq!(pass(&mut driver, 1), 1);
        assert_eq!(flow.received().unwrap(), [number]);
    }
    for time in [Duration::ZERO, Duration::from_millis(3), Duration::from_millis(40)] {
        let start = Instant::now();
        assert_eq!(driver.receive(&mut Batch::new(), Some(time)).unwrap(), 0);
        assert!(start.elapsed() >= time);
    }
}

#[test]
fn who_fails_closed_lets_nothing_pass_unseen() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open_with(&config("closed-hang"), &["udp port 5060"]);
    let flow = Flow::new(&chain, false, 5060);
    let (index, station) = device(&chain);
    let packet = build::udp("10.0.0.1:1".parse().unwrap(), flow.to, 64, b"x").unwrap();
    let frame = [&station[..], &[2; 6], &[8, 0], &packet].concat();
    eprintln!("without looking at the clock {:?}", driver.time(&frame, index, 10_000).unwrap());
    std::thread::sleep(HUNG);
    flow.send(b"x");
    flow.receiver.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert_eq!(flow.received(), None);
    assert_eq!(pass(&mut driver, 1), 1);
}

#[test]
fn packets_flow_on_when_the_process_is_stopped() {
    let Some(chain) = Chain::new(3) else { return };
    let mut child = Command::new("ip")
        .args(["netns", "exec", &chain.names()[ROUTER]])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "life::a_process_to_be_killed", "--nocapture", "--test-threads=1"])
        .env("NETSERV_TEST_KILLED", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("taking packets")));
    let flow = Flow::new(&chain, false, 5060);
    flow.receiver.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let arrives = || {
        flow.send(b"x");
        flow.received().is_some()
    };
    assert!(!arrives(), "the driver has it and gives no verdict");
    let process = Pid::from_child(&child);
    kill_process(process, Signal::STOP).unwrap();
    let (stopped, end) = (Instant::now(), Instant::now() + grown(3 * limits::HEARTBEAT_MAX));
    while !arrives() {
        assert!(Instant::now() < end, "packets are held up");
    }
    eprintln!("packets pass {:?} after the process was stopped", stopped.elapsed());
    flow.receiver.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    (0..20).for_each(|_| assert!(arrives()));
    flow.receiver.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    kill_process(process, Signal::CONT).unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while arrives() {
        assert!(Instant::now() < end, "the process takes packets again");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
