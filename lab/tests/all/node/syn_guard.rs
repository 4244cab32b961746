// SPDX-License-Identifier: Apache-2.0
//! A flood of SYNs is kept away at the edge by the operator's service, with the configuration of docs/apps/syn-guard.md.

use std::net::IpAddr;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Driver, eventually};
use netserv_api::{ModuleList, NodeInfo};
use netserv_lab::flood::{Flood, Kind};
use netserv_lab::netns::{Lab, host_port, is_root};
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::node::{LabPackage, workspace};
use netserv_lab::patience::grown;
use netserv_lab::topology::{Kind as Machine, Topology};
use netserv_skips::skipped;

over_one_driver! {
    afxdp: [a_flood_of_syns_is_kept_away_and_clients_are_not]
    nfqueue: []
}

/// SYNs that come in a second; the bound of the condition, and those of unknown clients that may pass, as the page says.
const RATE: u32 = 5_000;
const BOUND: u32 = 1_000;
const LIMIT: u64 = 100;
const FLOOD_TIME: Duration = Duration::from_secs(8);
/// How long it may take until the flood is kept away, on a machine that does other things too.
const IN_FORCE_MAX: Duration = Duration::from_secs(4);
/// How often a client asks.
const ASKED_EACH: Duration = Duration::from_millis(100);

/// Goal: soon after a flood begins no more of it comes to its server than may, nearly all requests of real clients are answered all the time,
/// and when it is over the module goes. Method: the server counts the SYNs that it cannot answer, since it has no way to who sent them; curl asks
/// nginx, each time by a new connection.
fn a_flood_of_syns_is_kept_away_and_clients_are_not(driver: Driver) {
    if !is_root() {
        return skipped("a_flood_of_syns_is_kept_away_and_clients_are_not", "not root, so no namespaces");
    }
    let chain = [("sender", Machine::Host), ("n1", Machine::Node), ("receiver", Machine::Host)];
    let mut lab = Lab::up(Topology::chain(&chain)).unwrap();
    lab.use_driver(driver.name());
    let vendor = lab.user("vendor", &[]).unwrap();
    let package = lab.package("syn-guard", &vendor).unwrap();
    ["sender", "receiver"].iter().for_each(|machine| lab.serve_http(machine).unwrap());
    let url = lab.publish("sender", &package).unwrap();
    std::fs::write(lab.dir().join("www/page.txt"), "a page\n").unwrap();
    let service = service_of_the_page(&lab, &package, &url, &vendor.public.to_string());
    lab.start_netservd("n1", "node", &[], &format!("{FILES_ALLOWED}{service}")).unwrap();
    eventually("its package is there", || info(&lab).services.iter().all(|service| service.ready && !service.wanted));
    for (network, to) in [("10.77.0.0", IpAddr::from(lab.v4("receiver"))), ("fd77::", IpAddr::from(lab.v6("receiver")))]
    {
        let network: IpAddr = network.parse().unwrap();
        let kind = Kind::Syns { network, bits: if network.is_ipv4() { 16 } else { 64 }, port: 80 };
        let flood = Flood { kind, to, destination: to, rate: RATE, time: FLOOD_TIME };
        let before = answered(ask(&lab, to, FLOOD_TIME));
        let during = std::thread::scope(|threads| {
            let begun = Instant::now();
            let flooding = threads.spawn(|| flood.send(&lab, "sender", "n1").unwrap());
            let asking = threads.spawn(|| ask(&lab, to, FLOOD_TIME));
            let seen = watch(&lab, begun);
            let in_force = in_force(&seen);
            let left = seen.last().unwrap().1 - seen.iter().find(|(at, _)| *at >= in_force).unwrap().1;
            let time = FLOOD_TIME - in_force;
            println!(
                "{}, {to}: in force after {} ms; {left} SYNs in {} ms after that",
                driver.name(),
                in_force.as_millis(),
                time.as_millis()
            );
            assert!(in_force <= grown(IN_FORCE_MAX), "{in_force:?}");
            // What may pass at once, and in each second; with a fifth more for a clock that is another one.
            assert!(
                left <= (LIMIT + LIMIT * u64::try_from(time.as_millis()).unwrap() / 1000) * 6 / 5,
                "{left} in {time:?}"
            );
            let sent = flooding.join().unwrap();
            assert!(sent > f64::from(BOUND), "the machine is too busy to flood: {sent}");
            answered(asking.join().unwrap())
        });
        println!("{}, {to}: {during} of {before} requests are answered", driver.name());
        assert!(before > 75 && during * 100 >= before * 95, "{during} of {before}");
        let counters = modules(&lab).modules.first().map(|module| module.counters.clone()).unwrap_or_default();
        println!("{counters:?}");
        eventually("the service has stopped", || modules(&lab).modules.is_empty());
        assert_eq!(answered(ask(&lab, to, ASKED_EACH)), 1);
    }
}

/// Returns the table of docs/apps/syn-guard.md, with the lab's server and package, and a shorter time to hold it.
fn service_of_the_page(lab: &Lab, package: &LabPackage, url: &str, signer: &str) -> String {
    let page = std::fs::read_to_string(workspace().join("docs/apps/syn-guard.md")).unwrap();
    let (_, rest) = page.split_once("```toml\n[[service]]").unwrap();
    let (block, _) = rest.split_once("```").unwrap();
    let mut text = format!("[[service]]{block}");
    let digest = package.digest.to_string();
    let (v4, v6) = (lab.v4("receiver").to_string(), lab.v6("receiver").to_string());
    for (of_the_page, of_the_lab) in [
        ("192.0.2.7", &*v4),
        ("2001:db8::7", &v6),
        ("https://example.org/syn-guard.nsm", url),
        ("sha256:…", &digest),
        ("ed25519:…", signer),
        ("hold-s = 30", "hold-s = 1"),
    ] {
        assert!(text.contains(of_the_page), "the page lacks {of_the_page}");
        text = text.replace(of_the_page, of_the_lab);
    }
    text
}

/// Has a client ask for a page again and again, each time by a new connection.
fn ask(lab: &Lab, server: IpAddr, time: Duration) -> Vec<Child> {
    let url = format!("http://{}/page.txt", host_port(server, 80));
    let (begun, mut asked) = (Instant::now(), Vec::new());
    for turn in 0..u32::try_from(time.as_millis() / ASKED_EACH.as_millis()).unwrap() {
        std::thread::sleep((ASKED_EACH * turn).saturating_sub(begun.elapsed()));
        let mut curl = lab.command("sender", "curl");
        curl.args(["-s", "-f", "-g", "-m", "5", "-o", "/dev/null", &url]).stdout(Stdio::null());
        asked.push(curl.spawn().unwrap());
    }
    asked
}

fn answered(asked: Vec<Child>) -> usize {
    asked.into_iter().filter_map(|mut child| child.wait().ok()).filter(std::process::ExitStatus::success).count()
}

/// Returns how many of the flood's SYNs had come to the server at times since it began, until its end.
fn watch(lab: &Lab, begun: Instant) -> Vec<(Duration, u64)> {
    let pid = lab.pid("receiver", "nginx").unwrap();
    let (first, mut seen) = (unanswered(pid), Vec::new());
    while begun.elapsed() < FLOOD_TIME {
        seen.push((begun.elapsed(), unanswered(pid) - first));
        std::thread::sleep(Duration::from_millis(20));
    }
    seen
}

/// Returns from when on a tenth of the flood at most comes to the server.
fn in_force(seen: &[(Duration, u64)]) -> Duration {
    let step = Duration::from_millis(100);
    let comes = seen.iter().rev().find(|(at, count)| {
        let before = seen.iter().rev().find(|(earlier, _)| *earlier + step <= *at);
        let (earlier, before) = before.copied().unwrap_or_default();
        // A machine that does other things looks later than it should.
        u128::from(count - before) * 10_000 > u128::from(RATE) * (*at - earlier).as_millis()
    });
    comes.map_or(Duration::ZERO, |(at, _)| *at)
}

/// Returns how many SYNs nobody was answered to in the namespace of a process.
fn unanswered(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/net/netstat")).unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt: ")).map(|line| line.split(' '));
    let (mut names, mut values) = (lines.next().unwrap(), lines.next().unwrap());
    let place = names.position(|name| name == "ListenDrops").unwrap();
    values.nth(place).unwrap().parse().unwrap()
}

fn info(lab: &Lab) -> NodeInfo {
    lab.info("n1").unwrap()
}

fn modules(lab: &Lab) -> ModuleList {
    lab.modules("n1").unwrap()
}
