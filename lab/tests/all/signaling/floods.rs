// SPDX-License-Identifier: Apache-2.0
//! Floods of forged signaling: who asks honestly is answered in time meanwhile, and the node's memory stays what it is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::common::{Driver, net};
use netserv_lab::crowding::{Crowding, Speech};
use netserv_lab::flood::{Flood, Kind};
use netserv_lab::netns::{Lab, is_root};
use netserv_lab::node::workspace;
use netserv_lab::patience::Load;
use netserv_lab::topology::{Kind as Machine, Topology};
use netserv_skips::skipped;

/// Within what time an honest request is to be answered, and how many of 100 at least.
const ANSWER_TIME: Duration = Duration::from_secs(2);
const IN_TIME_PERCENT_MIN: usize = 99;
/// Who asks at the same time.
const ASKERS: usize = 2;
/// What a node may take more during a flood: its tables and queues are bounded.
const GROWTH_BYTES_MAX: u64 = 64 << 20;
/// What it may take more in the second half of a flood.
const GROWTH_LATE_BYTES_MAX: u64 = 8 << 20;
/// How long a flood is, in full and in short.
const FULL: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_secs(4);
/// Networks behind the router: one that loses what is for it, and one whose every address is the router's.
const LOST: [(IpAddr, u32); 2] = [v4_net([172, 16], 12), v6_net(0xff00, 32)];
const FOREIGN: [(IpAddr, u32); 2] = [v4_net([198, 18], 16), v6_net(0xee00, 32)];
/// The network of the flooded node's link.
const LINK: [(IpAddr, u32); 2] = [v4_net([10, 2], 24), (IpAddr::V6(Ipv6Addr::new(0xfd00, 2, 0, 0, 0, 0, 0, 0)), 64)];
/// Where nodes listen for connections, without TLS and with it.
const PLAIN_PORT: u16 = 27001;
const TLS_PORT: u16 = 27002;
/// Connections in a second, and how many are held.
const CONNECTIONS: u32 = 1000;
/// What a node counts of those whose first bytes are no TLS, and of those who show a certificate that is not good.
const NOT_TLS: &str = "netserv_signaling_tls_handshakes_total{outcome=\"not-tls\"}";
const BAD_CERTIFICATE: &str = "netserv_signaling_tls_handshakes_total{outcome=\"bad-certificate\"}";

const fn v4_net([first, second]: [u8; 2], bits: u32) -> (IpAddr, u32) {
    (IpAddr::V4(Ipv4Addr::new(first, second, 0, 0)), bits)
}

const fn v6_net(second: u16, bits: u32) -> (IpAddr, u32) {
    (IpAddr::V6(Ipv6Addr::new(0xfd00, second, 0, 0, 0, 0, 0, 0)), bits)
}

/// One flood at a time: they are measured.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What floods a node, and how much of it in a second.
fn datagrams(version: usize) -> [(&'static str, Kind, u32); 3] {
    let queries = |(network, bits)| Kind::Queries { network, bits };
    [
        ("Queries of made up senders", queries(LOST[version]), 20_000),
        ("Queries of dead neighbours", queries(LINK[version]), 1_000),
        ("forged ICMP errors", Kind::Refusals, 5_000),
    ]
}

/// The rates are a tenth, since programs that are built for tests are slow.
#[test]
fn floods_keep_nobody_from_being_served() {
    flood_with_datagrams("floods_keep_nobody_from_being_served", Driver::Nfqueue, 10, SHORT);
}

#[test]
fn connections_that_say_little_keep_nobody_from_being_served() {
    crowd_with_connections("connections_that_say_little_keep_nobody_from_being_served", 10, SHORT);
}

#[test]
fn bad_tls_keeps_nobody_from_being_served() {
    crowd_with_tls("bad_tls_keeps_nobody_from_being_served", 10, SHORT);
}

#[test]
#[ignore = "takes minutes and wants optimised programs; `./dev floods` runs it"]
fn floods_of_thirty_seconds_keep_nobody_from_being_served() {
    for driver in [Driver::Afxdp, Driver::Nfqueue] {
        flood_with_datagrams("floods_of_thirty_seconds_keep_nobody_from_being_served", driver, 1, FULL);
    }
}

#[test]
#[ignore = "takes minutes and wants optimised programs; `./dev floods` runs it"]
fn thousands_of_connections_that_say_little_keep_nobody_from_being_served() {
    crowd_with_connections("thousands_of_connections_that_say_little_keep_nobody_from_being_served", 1, FULL);
}

#[test]
#[ignore = "takes minutes and wants optimised programs; `./dev floods` runs it"]
fn thirty_seconds_of_bad_tls_keep_nobody_from_being_served() {
    crowd_with_tls("thirty_seconds_of_bad_tls_keep_nobody_from_being_served", 1, FULL);
}

fn flood_with_datagrams(test: &str, driver: Driver, part: u32, time: Duration) {
    let _turn = turn();
    let Some(net) = net(test, driver) else { return };
    ready(&net.lab);
    for version in [0, 1] {
        let (to, destination) = ends(&net.lab, version);
        for (what, kind, rate) in datagrams(version) {
            let (rate, seen) = (rate / part, seen_of(kind));
            let flood = Flood { kind, to, destination, rate, time };
            let attack = || (flood.send(&net.lab, "r", "n1").unwrap(), String::new());
            withstand(&net.lab, version, time, &format!("{}: {what}", driver.name()), (rate, seen), attack);
        }
    }
}

fn crowd_with_connections(test: &str, part: u32, time: Duration) {
    let _turn = turn();
    let Some(net) = net(test, Driver::Nfqueue) else { return };
    ready(&net.lab);
    for (what, speech) in [("idle connections", Speech::Silence), ("trickling connections", Speech::Trickle)] {
        for version in [0, 1] {
            crowd(&net.lab, version, (what, speech), PLAIN_PORT, CONNECTIONS / part, time);
        }
    }
}

fn crowd_with_tls(test: &str, part: u32, time: Duration) {
    let _turn = turn();
    let Some(lab) = secure_lab(test) else { return };
    ready(&lab);
    for version in [0, 1] {
        for (what, speech) in
            [("rubbish on the port of TLS", Speech::Rubbish), ("ClientHellos that are none", Speech::FalseHello)]
        {
            crowd(&lab, version, (what, speech), TLS_PORT, CONNECTIONS / part, time);
        }
        for certificate in ["expired", "foreign"] {
            let attack = || show_certificates(&lab, version, certificate, time);
            withstand(&lab, version, time, &format!("{certificate} certificates"), (1, BAD_CERTIFICATE), attack);
        }
    }
}

/// Opens connections from a network of strangers, whose every address is the router's.
fn crowd(lab: &Lab, version: usize, (what, speech): (&str, Speech), port: u16, rate: u32, time: Duration) {
    let (network, bits) = FOREIGN[version];
    let held_max = usize::try_from(CONNECTIONS).unwrap();
    let to = SocketAddr::new(ends(lab, version).0, port);
    let crowding = Crowding { speech, to, network, bits, rate, held_max, time };
    let seen = if port == TLS_PORT { NOT_TLS } else { "netserv_gist_events_total{event=\"associations_accepted\"}" };
    let attack = || {
        let (sent, held) = crowding.open(lab, "r").unwrap();
        (sent, format!("{held} held; "))
    };
    withstand(lab, version, time, what, (rate, seen), attack);
}

/// Speaks TLS with the node with a certificate that is not good, as often as one client can.
fn show_certificates(lab: &Lab, version: usize, certificate: &str, time: Duration) -> (f64, String) {
    let file = |end: &str| workspace().join(format!("vectors/certificates/{certificate}.{end}")).display().to_string();
    let (to, seconds) = (SocketAddr::new(ends(lab, version).0, TLS_PORT).to_string(), time.as_secs().to_string());
    let (cert, key) = (file("pem"), file("key"));
    let args = ["s_time", "-connect", &to, "-cert", &cert, "-key", &key, "-new", "-time", &seconds];
    let begun = Instant::now();
    let told = String::from_utf8(lab.run("r", "openssl", &args).unwrap().stdout).unwrap();
    let line = told.lines().find(|line| line.contains("real seconds")).unwrap_or_else(|| panic!("{told}"));
    let count: f64 = line.split_whitespace().next().unwrap().parse().unwrap();
    (count / begun.elapsed().as_secs_f64(), String::new())
}

/// Has the networks of strangers lie behind the router.
fn ready(lab: &Lab) {
    for version in [0, 1] {
        let via = if version == 0 { lab.v4("r").to_string() } else { lab.v6("r").to_string() };
        for ((network, bits), kind) in [(LOST[version], "blackhole"), (FOREIGN[version], "local")] {
            let (prefix, family) = (format!("{network}/{bits}"), if version == 0 { "-4" } else { "-6" });
            lab.run("n1", "ip", &[family, "route", "add", &prefix, "via", &via]).unwrap();
            let device: &[&str] = if kind == "local" { &["dev", "lo"] } else { &[] };
            lab.run("r", "ip", &[&[family, "route", "add", kind, &prefix], device].concat()).unwrap();
        }
        assert!(ask(lab, version).is_some());
    }
}

/// Returns the flooded node's address toward the router, and the destination of flows.
fn ends(lab: &Lab, version: usize) -> (IpAddr, IpAddr) {
    let link = &lab.topology().interfaces_of("n1")[1];
    match version {
        0 => (link.v4.into(), lab.v4("receiver").into()),
        _ => (link.v6.into(), lab.v6("receiver").into()),
    }
}

/// Attacks `n1` from the router and asks for the whole path meanwhile, again and again. The attack says its rate, which is to be
/// that which is wanted, and what else there is to tell; the node counts what it sees of it.
fn withstand(
    lab: &Lab,
    version: usize,
    time: Duration,
    what: &str,
    (rate, counted): (u32, &str),
    attack: impl FnOnce() -> (f64, String) + Send,
) {
    let what = format!("{what}, IPv{}", [4, 6][version]);
    // The long floods have the machine to themselves; beside other tests there is less of it for sender and node.
    let load = Some(Load::now()).filter(|_| time < FULL);
    let answer_time = load.map_or(ANSWER_TIME, |load| load.grown(ANSWER_TIME));
    let (is_over, times) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let asked = AtomicUsize::new(0);
    let (before, seen_before) = (resident_bytes(lab), seen(lab, counted));
    let ((sent, more), middle) = std::thread::scope(|scope| {
        let attacking = scope.spawn(attack);
        for _ in 0..ASKERS {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    times.lock().unwrap().extend(ask(lab, version));
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(time / 2);
        let middle = resident_bytes(lab);
        let sent = attacking.join();
        is_over.store(true, Ordering::Relaxed);
        (sent.unwrap(), middle)
    });
    let (after, seen) = (resident_bytes(lab), seen(lab, counted) - seen_before);
    let (mut times, asked) = (times.into_inner().unwrap(), asked.into_inner());
    times.sort_unstable();
    let in_time = times.iter().filter(|took| **took <= answer_time).count();
    let mega = |bytes: u64| bytes >> 20;
    println!(
        "{what}: {sent:.0} per second of {rate} for {time:?}, {seen} seen; {more}{in_time} of {asked} requests within \
         {answer_time:?}, half within {} ms, the slowest {} ms; {} MiB before, {} MiB in the middle, {} MiB at the end",
        times.get(times.len() / 2).map_or(0, Duration::as_millis),
        times.last().map_or(0, Duration::as_millis),
        mega(before),
        mega(middle),
        mega(after)
    );
    let share = load.map_or(1.0, |load| load.per_core().clamp(1.0, 4.0));
    assert!(sent >= 0.95 * f64::from(rate) / share, "{what}: only {sent:.0} of {rate} per second");
    assert!(seen > 0, "{what}: the node has seen nothing of it");
    assert!(
        100 * in_time >= IN_TIME_PERCENT_MIN * asked,
        "{what}: {in_time} of {asked} requests were answered in time"
    );
    assert!(asked >= 2, "{what}: {asked} requests");
    assert!(after <= before + GROWTH_BYTES_MAX, "{what}: the node took {} MiB more", mega(after - before));
    assert!(after <= middle + GROWTH_LATE_BYTES_MAX, "{what}: the node grows: {} MiB more", mega(after - middle));
}

/// Asks for the path from the sender; returns how long it took, if the whole path answered.
fn ask(lab: &Lab, version: usize) -> Option<Duration> {
    let begun = Instant::now();
    let receiver = ends(lab, version).1.to_string();
    let result = lab.request("sender", &["path", &receiver, "--timeout", "20s"]).ok()?;
    let names: Vec<&str> = result.nodes.iter().map(|node| node.node.as_str()).collect();
    (names == ["sender", "n1", "n2"] && result.incomplete.is_none()).then(|| begun.elapsed())
}

/// Returns by what metric the flooded node tells how much of a kind it has seen.
fn seen_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Queries { .. } => "netserv_gist_events_total{event=\"datagrams_received\"}",
        Kind::Syns { .. } | Kind::KeepAlives { .. } | Kind::Media { .. } => {
            unreachable!("signaling alone is flooded here")
        }
        Kind::Refusals => "netserv_gist_events_total{event=\"icmp_unmatched\"}",
    }
}

/// Returns a metric of the flooded node's daemon.
fn seen(lab: &Lab, metric: &str) -> u64 {
    let text = lab.metrics("n1").unwrap();
    let line = text.lines().find(|line| line.starts_with(metric)).unwrap_or_else(|| panic!("no {metric}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Returns what the flooded node's daemon has in memory.
fn resident_bytes(lab: &Lab) -> u64 {
    let pid = lab.pid("n1", "netservd").unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// `sender – n1 – r – n2 – receiver`, whose daemons have certificates and require TLS, or says that the test is skipped.
fn secure_lab(test: &str) -> Option<Lab> {
    if !is_root() {
        skipped(test, "not root, so no namespaces");
        return None;
    }
    let chain = [
        ("sender", Machine::Host),
        ("n1", Machine::Node),
        ("r", Machine::Router),
        ("n2", Machine::Node),
        ("receiver", Machine::Host),
    ];
    let mut lab = Lab::up(Topology::chain(&chain)).unwrap();
    lab.use_driver(Driver::Nfqueue.name());
    for (machine, role) in [("n1", "node"), ("n2", "node"), ("sender", "host")] {
        let file = |from: &str, end: &str| {
            let to = lab.dir().join(format!("{machine}-{from}.{end}"));
            std::fs::copy(workspace().join(format!("vectors/certificates/{from}.{end}")), &to).unwrap();
            std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o600)).unwrap();
            to.display().to_string()
        };
        let tls = format!(
            "[signaling.tls]\ncertificate = {:?}\nkey = {:?}\nauthorities = {:?}\nrequire = true\n",
            file(machine, "pem"),
            file(machine, "key"),
            file("authority", "pem")
        );
        lab.start_netservd(machine, role, &[], &tls).unwrap();
    }
    Some(lab)
}
