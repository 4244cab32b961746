// SPDX-License-Identifier: Apache-2.0
//! Beginnings and ends: of the driver, of its process, of links.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use netserv_dataplane::DriverKind;
use netserv_patience::grown;
use netserv_plane::{Batch, Driver};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::common::Chain;
use crate::{Afxdp, Flow, LANES, RECEIVER, ROUTER, config, failing_open, open, open_with, pass};

#[test]
fn packets_flow_on_when_the_process_is_killed() {
    let Some(chain) = Chain::new(3) else { return };
    let mut child = start_to_be_killed(&chain, ROUTER);
    let flow = Flow::new(&chain, false, 5060);
    flow.receiver.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    flow.send(b"taken");
    assert_eq!(flow.received(), None, "the driver has it and gives no verdict");
    child.kill().unwrap();
    child.wait().unwrap();
    (0..50_u8).for_each(|number| flow.send(&[number]));
    (0..50_u8).for_each(|number| assert_eq!(flow.received().unwrap(), [number]));
    let links = chain.run(ROUTER, &["ip", "-o", "link"]);
    assert!(!links.contains("xdp") && !links.contains("nsv-"), "{links}");
}

/// The kernel closes the sockets of a killed process in the background. That takes longer at times, so here the process
/// is killed ever later after the other began to open.
#[test]
fn a_driver_opens_while_another_is_dying() {
    std::thread::scope(|scope| {
        for first in 0..4 {
            scope.spawn(move || {
                let Some(chain) = Chain::new(2) else { return };
                (first..20).step_by(4 * LANES).for_each(|round| open_while_another_dies(&chain, round));
            });
        }
    });
}

fn open_while_another_dies(chain: &Chain, round: u32) {
    let mut child = start_to_be_killed(chain, 0);
    let killing = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20) * round);
        child.kill().unwrap();
        child.wait().unwrap();
    });
    let _entered = chain.enter(0);
    if round.is_multiple_of(3) {
        assert_eq!(DriverKind::Afxdp.probe().usable, Ok(()), "in round {round}");
    } else {
        Afxdp::open(&config("second")).unwrap_or_else(|error| panic!("in round {round}: {error}"));
    }
    killing.join().unwrap();
}

/// Starts a process that takes packets of a node, and waits until it does.
fn start_to_be_killed(chain: &Chain, node: usize) -> Child {
    let arguments = ["--exact", "life::a_process_to_be_killed", "--nocapture", "--test-threads=1"];
    let mut child = Command::new("ip")
        .args(["netns", "exec", &chain.names()[node]])
        .arg(std::env::current_exe().unwrap())
        .args(arguments)
        .env("NETSERV_TEST_KILLED", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("taking packets")));
    child
}

/// What [`start_to_be_killed`] starts; alone it does nothing.
#[test]
fn a_process_to_be_killed() {
    if std::env::var_os("NETSERV_TEST_KILLED").is_none() {
        return;
    }
    let mut driver = open_with(&failing_open("killed"), &["udp port 5060"]);
    let mut batch = Batch::new();
    println!("taking packets");
    for _ in 0..60 {
        driver.receive(&mut batch, Some(Duration::from_secs(1))).unwrap();
    }
}

#[test]
fn a_closed_driver_lets_go_of_what_it_holds() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("closed", &["udp port 5060"]);
    let flow = Flow::new(&chain, false, 5060);
    (0..10_u8).for_each(|number| flow.send(&[number]));
    let mut batch = Batch::new();
    driver.receive(&mut batch, Some(Duration::from_secs(1))).unwrap();
    (10..20_u8).for_each(|number| flow.send(&[number]));
    drop(driver);
    let mut received: Vec<u8> = (0..20).map(|_| flow.received().unwrap()[0]).collect();
    received.sort_unstable();
    assert_eq!(received, (0..20).collect::<Vec<u8>>());
}

/// Whoever waits for the descriptors, and not in `receive`, is left alone while there is nothing to do.
#[test]
fn a_driver_without_packets_wakes_nobody() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut lanes = DriverKind::Afxdp.open_lanes(&config("quiet"), LANES).unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    let mut quiet_looks = 0;
    // What comes by itself, as neighbours do, is over before long.
    while quiet_looks < 3 {
        assert!(Instant::now() < end, "it is woken again and again");
        for lane in &mut lanes {
            lane.receive(&mut Batch::new(), Some(Duration::ZERO)).unwrap();
        }
        let descriptors = lanes.iter().filter_map(|lane| lane.poll_fd());
        let mut waited: Vec<_> = descriptors.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        assert_eq!(waited.len(), lanes.len());
        let time = Timespec::try_from(Duration::from_millis(100)).unwrap();
        quiet_looks = if poll(&mut waited, Some(&time)) == Ok(0) { quiet_looks + 1 } else { 0 };
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn links_may_go_down_and_come_up() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("flapping", &["udp port 5060"]);
    let flow = Flow::new(&chain, false, 5060);
    let has = |text: &[u8]| std::iter::from_fn(|| flow.received()).any(|received| received == text);
    for (node, device) in [(ROUTER, "left"), (ROUTER, "right"), (RECEIVER, "left")] {
        flow.send(b"before");
        assert_eq!(pass(&mut driver, 1), 1);
        assert!(has(b"before"));
        chain.run(node, &["ip", "link", "set", device, "down"]);
        flow.send(b"lost");
        pass(&mut driver, 1);
        chain.run(node, &["ip", "link", "set", device, "up"]);
        if node == RECEIVER {
            // The way back is gone with the link that it led over; the kernel forgets such routes.
            chain.run(node, &["ip", "route", "add", "10.0.0.0/24", "via", "10.0.1.1"]);
        }
        std::thread::sleep(Duration::from_millis(100));
        flow.receiver.set_read_timeout(Some(grown(Duration::from_millis(1500)))).unwrap();
        let mut arrives = || {
            flow.send(b"after");
            pass(&mut driver, 1);
            has(b"after")
        };
        // What comes while the kernel asks for neighbours anew may be lost.
        assert!((0..3).any(|_| arrives()), "{device}");
    }
}

#[test]
fn a_link_that_vanishes_leaves_the_others_at_work() {
    let Some(chain) = Chain::new(3) else { return };
    chain.run(ROUTER, &["ip", "link", "add", "spare", "type", "veth", "peer", "name", "spare2"]);
    let _entered = chain.enter(ROUTER);
    let mut driver = open("vanishing", &["udp port 5060"]);
    assert_eq!(driver.modes().count(), 4);
    chain.run(ROUTER, &["ip", "link", "del", "spare"]);
    let flow = Flow::new(&chain, false, 5060);
    (0..10_u8).for_each(|number| flow.send(&[number]));
    assert_eq!(pass(&mut driver, 10), 10);
    (0..10_u8).for_each(|number| assert_eq!(flow.received().unwrap(), [number]));
    assert_eq!(driver.modes().count(), 2);
}

#[test]
fn one_driver_has_a_device() {
    let Some(chain) = Chain::new(2) else { return };
    let _entered = chain.enter(0);
    let first = Afxdp::open(&config("first")).unwrap();
    let begun = Instant::now();
    let second = Afxdp::open(&config("second")).map(|_| ()).unwrap_err().to_string();
    assert!(second.contains("busy"), "{second}");
    assert!(begun.elapsed() < grown(Duration::from_secs(8)), "it gives up after two seconds, on a busy machine later");
    drop(first);
    Afxdp::open(&config("second")).unwrap();
}

#[test]
fn probing_finds_the_driver_and_leaves_nothing() {
    let Some(chain) = Chain::new(2) else { return };
    let _entered = chain.enter(0);
    let before = chain.run(0, &["ip", "-o", "link"]);
    let probe = DriverKind::Afxdp.probe();
    assert_eq!(probe.usable, Ok(()));
    assert!(probe.devices.iter().any(|device| device.name == "right" && device.mode == "native"), "{probe:?}");
    assert_eq!(chain.run(0, &["ip", "-o", "link"]), before);
}
