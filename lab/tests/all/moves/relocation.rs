// SPDX-License-Identifier: Apache-2.0
//! A running module moves between nodes by `netserv relocate`, while its packets come, and while whatever takes part is killed.

use std::net::{SocketAddr, UdpSocket};
use std::process::Child;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common::{Driver, eventually};
use netserv_lab::netns::is_root;
use netserv_lab::relocating::Relocating;
use netserv_model::limits::BUFFERING_TIME_MAX;
use netserv_model::request::ModuleState;
use netserv_skips::skipped;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

over_one_driver! {
    afxdp: []
    nfqueue: [counts_go_on_over_relocations]
}

/// Packets a second while it moves.
const RATE: u64 = 500;
/// The same in the measurement.
const RATE_MEASURED: u64 = 100_000;
/// For how long they come.
const SECONDS: u64 = 8;
/// Relocations of a test, and of a measurement, in each of which something is killed.
const KILLS: u32 = 4;
const KILLS_MEASURED: u32 = 100;
/// How long a module may be nowhere where code is optimised.
const STILL_MAX: Duration = Duration::from_millis(50);

/// Goal: what net-monitor counts goes on on the other node; each packet is counted once, whether it goes the way that the module does or
/// against it. Where it stands still for longer than packets wait, no more are missed than come meanwhile. Method:
/// `sender – n1 – r – n2 – receiver`, a steady stream of numbered datagrams from the receiver.
fn counts_go_on_over_relocations(driver: Driver) {
    let Some(mut moving) = up("counts_go_on_over_relocations", driver) else { return };
    count_over(&mut moving, 2);
}

/// Goal: as above, and it is nowhere for 50 ms at most.
#[test]
#[ignore = "a measurement"]
fn relocations_take_little_time() {
    let Some(mut moving) = up("relocations_take_little_time", Driver::Afxdp) else { return };
    let still = count_over(&mut moving, 6);
    assert!(still.iter().all(|still| *still <= STILL_MAX), "{still:?}, {STILL_MAX:?} is the goal");
}

/// Goal: as above, with 100,000 packets a second, of which many go by unseen where one machine has to be their sender and all nodes.
#[test]
#[ignore = "a measurement"]
fn a_hundred_thousand_packets_a_second() {
    let Some(mut moving) = up("a_hundred_thousand_packets_a_second", Driver::Afxdp) else { return };
    // Either node has the module, compiled.
    moving.relocate("n1", "n2").unwrap();
    moving.relocate("n2", "n1").unwrap();
    let stream = stream(&moving, RATE_MEASURED, SECONDS);
    std::thread::sleep(Duration::from_secs(1));
    let mut still = Vec::new();
    for (old, new) in [("n1", "n2"), ("n2", "n1"), ("n1", "n2"), ("n2", "n1")] {
        let told = moving.relocate(old, new).unwrap();
        println!("{told:?}");
        still.push(Duration::from_millis(told.state.unwrap().still_ms));
    }
    assert!(!stream.is_finished(), "packets have to come all the time");
    let sent = stream.join().unwrap();
    eventually("what was counted is told", || moving.counted("n1").unwrap() >= sent / 2);
    std::thread::sleep(Duration::from_secs(2));
    let counted = moving.counted("n1").unwrap();
    println!("{counted} of {sent} counted, nowhere for {still:?}");
    assert!(counted <= sent, "{counted} of {sent}: some twice");
    assert!(still.iter().all(|still| *still <= STILL_MAX), "{still:?}, {STILL_MAX:?} is the goal");
}

/// Has so many datagrams a second come for a while. Returns how many these were.
fn stream(moving: &Relocating, rate: u64, seconds: u64) -> JoinHandle<u64> {
    let sender = SocketAddr::new(moving.lab.v4("sender").into(), 7777);
    let socket = moving.lab.within("receiver", || UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    std::thread::spawn(move || {
        let begun = Instant::now();
        let (mut tried, mut sent) = (0, 0);
        while begun.elapsed() < Duration::from_secs(seconds) {
            let due = u64::try_from(begun.elapsed().as_micros()).unwrap() * rate / 1_000_000;
            sent += (tried..due).filter(|_| socket.send_to(b"x", sender).is_ok()).count() as u64;
            tried = due;
            std::thread::sleep(Duration::from_millis(1));
        }
        sent
    })
}

/// Goal: whatever of the command and the two nodes is killed at whatever time, the same command ends with the module on the node that it
/// is to be on, and nowhere else.
#[test]
fn there_is_one_owner_after_a_kill() {
    kill_some("there_is_one_owner_after_a_kill", KILLS, 1);
}

/// The same, a hundred times.
#[test]
#[ignore = "a soak"]
fn there_is_one_owner_after_each_of_many_kills() {
    kill_some("there_is_one_owner_after_each_of_many_kills", KILLS_MEASURED, 2);
}

fn kill_some(test: &str, kills: u32, seed: u64) {
    let Some(mut moving) = up(test, Driver::Nfqueue) else { return };
    let mut random = StdRng::seed_from_u64(seed);
    let begun = Instant::now();
    moving.relocate("n1", "n2").unwrap();
    let took = begun.elapsed();
    for number in 0..kills {
        let (old, new) = if number % 2 == 0 { ("n2", "n1") } else { ("n1", "n2") };
        let victim = ["netserv", old, new][random.random_range(0..3)];
        let begun = Instant::now();
        let mut command = moving.command(old, new).unwrap().spawn().unwrap();
        std::thread::sleep(took.mul_f64(random.random_range(0.0..1.2)));
        let at = begun.elapsed();
        if victim == "netserv" {
            let _ = command.kill();
        } else {
            moving.lab.kill(victim, "netservd").unwrap();
            moving.lab.restart_netservd(victim).unwrap();
        }
        let first = ended(command);
        let mut tries = 0;
        eventually("the same command ends", || {
            tries += 1;
            moving.command(old, new).unwrap().output().unwrap().status.success()
        });
        println!("{number}: {victim} killed after {at:?}, {first}, {tries} more");
        for node in [old, new] {
            eventually("it runs again", || {
                moving.states(node).unwrap().iter().all(|state| *state == ModuleState::Running)
            });
        }
        assert_eq!(
            (moving.states(old).unwrap().len(), moving.states(new).unwrap().len()),
            (0, 1),
            "{number}: {victim} at {at:?}"
        );
    }
}

fn ended(mut command: Child) -> String {
    let status = command.wait().unwrap();
    status.code().map_or("killed".to_owned(), |code| format!("ended with {code}"))
}

/// Returns the network, or says that the test is skipped.
fn up(test: &str, driver: Driver) -> Option<Relocating> {
    if !is_root() {
        skipped(test, "not root, so no namespaces");
        return None;
    }
    Some(Relocating::up(driver.name()).unwrap())
}

/// Moves the module so many times while packets come. Returns for how long it stood still at most each time.
fn count_over(moving: &mut Relocating, times: u32) -> Vec<Duration> {
    let mut stream = moving.stream(RATE, SECONDS).unwrap();
    let mut still = Vec::new();
    for number in 0..times {
        let (old, new) = if number.is_multiple_of(2) { ("n1", "n2") } else { ("n2", "n1") };
        let told = moving.relocate(old, new).unwrap();
        println!("{told:?}");
        assert_eq!((&*told.node, told.epoch, told.resumed), (new, u64::from(number) + 2, false));
        still.push(Duration::from_millis(told.state.unwrap().still_ms));
        assert_eq!((moving.states(old).unwrap().len(), moving.states(new).unwrap()), (0, vec![ModuleState::Running]));
    }
    assert!(stream.try_wait().unwrap().is_none(), "packets have to come all the time");
    assert!(stream.wait().unwrap().success());
    let owner = if times.is_multiple_of(2) { "n1" } else { "n2" };
    // Packets wait for longer than it stood still, since the new node has them wait first, and the old one until it is asked to let go.
    let missed = still.iter().filter(|still| **still > BUFFERING_TIME_MAX / 2).sum::<Duration>().as_millis();
    let least = RATE * SECONDS - u64::try_from(missed).unwrap() * RATE / 1000;
    eventually("what was counted is told", || moving.counted(owner).unwrap() >= least);
    let counted = moving.counted(owner).unwrap();
    println!("{counted} of {} counted, at least {least}, {still:?}", RATE * SECONDS);
    assert!(counted <= RATE * SECONDS, "{counted}: some twice");
    assert!(missed > 0 || counted == RATE * SECONDS, "{counted} of {}: some never", RATE * SECONDS);
    still
}
