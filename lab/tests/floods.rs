// SPDX-License-Identifier: Apache-2.0
//! Floods of forged signaling: who asks honestly is answered in time meanwhile, and the node's memory stays what it is.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{Driver, Net, net};
use netserv_lab::flood::{Flood, Kind};
use netserv_lab::netns::Lab;

/// Within what time an honest request is to be answered, and how many of 100 at least.
const ANSWER_TIME: Duration = Duration::from_secs(2);
const IN_TIME_PERCENT_MIN: usize = 99;
/// Who asks at the same time.
const ASKERS: usize = 2;
/// What a node may take more during a flood: its tables and queues are bounded.
const GROWTH_BYTES_MAX: u64 = 64 << 20;
/// What it may take more in the second half of a flood.
const GROWTH_LATE_BYTES_MAX: u64 = 8 << 20;

/// What floods a node, and how much of it in a second.
const FLOODS: [(&str, Kind, u32); 3] = [
    ("Queries of made up senders", Kind::Queries { network: Ipv4Addr::new(172, 16, 0, 0), bits: 12 }, 20_000),
    ("Queries of dead neighbours", Kind::Queries { network: Ipv4Addr::new(10, 2, 0, 0), bits: 24 }, 1_000),
    ("forged ICMP errors", Kind::Refusals { destination: Ipv4Addr::new(10, 4, 0, 2) }, 5_000),
];

/// The rates are a tenth, since programs that are built for tests are slow.
#[test]
fn floods_keep_nobody_from_being_served() {
    let test = "floods_keep_nobody_from_being_served";
    let Some(net) = net(test, Driver::Nfqueue) else { return };
    ready(&net);
    for (what, kind, rate) in FLOODS {
        withstand(&net, what, kind, rate / 10, Duration::from_secs(4));
    }
}

#[test]
#[ignore = "takes minutes and wants optimised programs; `./dev floods` runs it"]
fn floods_of_thirty_seconds_keep_nobody_from_being_served() {
    let test = "floods_of_thirty_seconds_keep_nobody_from_being_served";
    for driver in [Driver::Afxdp, Driver::Nfqueue] {
        let Some(net) = net(test, driver) else { return };
        ready(&net);
        for (what, kind, rate) in FLOODS {
            withstand(&net, what, kind, rate, Duration::from_secs(30));
        }
    }
}

/// Has the made up senders' network lie behind the router, which loses what is for it.
fn ready(net: &Net) {
    let via = net.lab.v4("r").to_string();
    net.lab.run("n1", "ip", &["route", "add", "172.16.0.0/12", "via", &via]).unwrap();
    net.lab.run("r", "ip", &["route", "add", "blackhole", "172.16.0.0/12"]).unwrap();
    assert!(ask(&net.lab).is_some());
}

/// Floods `n1` from the router and asks for the whole path meanwhile, again and again.
fn withstand(net: &Net, what: &str, kind: Kind, rate: u32, time: Duration) {
    let flood = Flood { kind, to: net.lab.topology().interfaces_of("n1")[1].v4, rate, time };
    let (is_over, in_time, asked) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let (before, seen_before) = (resident_bytes(&net.lab), seen(&net.lab, kind));
    let (sent, middle) = std::thread::scope(|scope| {
        let flooding = scope.spawn(|| flood.send(&net.lab, "r", "n1").unwrap());
        for _ in 0..ASKERS {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let answered = ask(&net.lab).is_some_and(|took| took <= ANSWER_TIME);
                    in_time.fetch_add(usize::from(answered), Ordering::Relaxed);
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(time / 2);
        let middle = resident_bytes(&net.lab);
        let sent = flooding.join();
        is_over.store(true, Ordering::Relaxed);
        (sent.unwrap(), middle)
    });
    let (after, seen) = (resident_bytes(&net.lab), seen(&net.lab, kind) - seen_before);
    let (in_time, asked) = (in_time.into_inner(), asked.into_inner());
    let mega = |bytes: u64| bytes >> 20;
    println!(
        "{what}: {sent:.0} per second for {time:?}, {seen} seen; {in_time} of {asked} requests within {ANSWER_TIME:?}; \
         {} MiB before, {} MiB in the middle, {} MiB at the end",
        mega(before),
        mega(middle),
        mega(after)
    );
    assert!(sent >= 0.95 * f64::from(rate), "{what}: only {sent:.0} of {rate} packets per second were sent");
    assert!(
        100 * in_time >= IN_TIME_PERCENT_MIN * asked,
        "{what}: {in_time} of {asked} requests were answered in time"
    );
    assert!(asked >= 2, "{what}: {asked} requests");
    assert!(after <= before + GROWTH_BYTES_MAX, "{what}: the node took {} MiB more", mega(after - before));
    assert!(after <= middle + GROWTH_LATE_BYTES_MAX, "{what}: the node grows: {} MiB more", mega(after - middle));
}

/// Asks for the path from the sender; returns how long it took, if the whole path answered.
fn ask(lab: &Lab) -> Option<Duration> {
    let begun = Instant::now();
    let result = lab.request("sender", &["path", &lab.v4("receiver").to_string(), "--timeout", "20s"]).ok()?;
    let names: Vec<&str> = result.nodes.iter().map(|node| node.node.as_str()).collect();
    (names == ["sender", "n1", "n2"] && result.incomplete.is_none()).then(|| begun.elapsed())
}

/// Returns how much of a kind the flooded node's daemon has seen.
fn seen(lab: &Lab, kind: Kind) -> u64 {
    let event = match kind {
        Kind::Queries { .. } => "event=\"datagrams_received\"",
        Kind::Refusals { .. } => "event=\"icmp_unmatched\"",
    };
    let metrics = lab.metrics("n1").unwrap();
    let line = metrics.lines().find(|line| line.contains(event)).unwrap_or_else(|| panic!("no {event}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Returns what the flooded node's daemon has in memory.
fn resident_bytes(lab: &Lab) -> u64 {
    let pid = lab.pid("n1", "netservd").unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}
