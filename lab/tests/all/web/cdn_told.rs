// SPDX-License-Identifier: Apache-2.0
//! `modules/apps/active-cdn` on two nodes, and what its user tells both.

use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::common::{eventually, processes_under, request_as};
use netserv_lab::netns::{Lab, is_root};
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::node::LabUser;
use netserv_lab::topology::{Kind, Topology};
use netserv_lab::website::noise;
use netserv_model::RefusalKind;
use netserv_model::request::{ModuleStatus, Outcome};
use netserv_skips::skipped;

const CDN: &str = "example.org/active-cdn";
/// Each node, and who asks its cache.
const NODES: [(&str, &str); 2] = [("n1", "sender"), ("n2", "receiver")];
/// From the request of a purge to the new page at all nodes.
const PURGE_TIME_MAX: Duration = Duration::from_secs(1);

/// Goal: what one TELL purges is gone at both nodes within a second, and what it warms is there before anybody asks; the user sees of
/// each node what its cache saved.
#[test]
fn one_message_purges_and_warms_both_nodes() {
    let Some(mut net) = Net::up("one_message_purges_and_warms_both_nodes") else { return };
    net.install();
    let key = |name: &str| format!("{}/{name}", net.lab.v4("sender"));
    for name in ["a.txt", "b.txt"] {
        net.write(name, format!("first of {name}\n"));
        for (node, machine) in NODES {
            eventually("it is in the cache", || net.ask(machine, node, name).contains("; hit"));
        }
    }
    let mut times = Vec::new();
    for (round, lines) in [key("a.txt"), format!("{}*", key("a.")), key("a.txt")].iter().enumerate() {
        let page = format!("page {round}\n");
        net.write("a.txt", &page);
        let begun = Instant::now();
        net.tell("purge", lines);
        for (node, machine) in NODES {
            let answer = net.ask(machine, node, "a.txt");
            assert!(answer.ends_with(&page), "{node}: {answer}");
        }
        times.push(begun.elapsed());
    }
    eprintln!("from the request to the new page at both nodes: {times:?}");
    assert!(times.iter().all(|time| *time <= netserv_lab::patience::grown(PURGE_TIME_MAX)), "{times:?}");
    // Others keep theirs.
    assert!(net.ask("receiver", "n2", "b.txt").contains("; hit"));

    net.write("c.txt", "warm\n");
    net.tell("warm", "/c.txt");
    for (node, machine) in NODES {
        eventually("it is warm", || net.counter(node, "warmed") == 1);
        assert!(net.ask(machine, node, "c.txt").contains("; hit"), "{node}");
        let [hits, saved, origin] = ["hits", "saved-bytes", "origin-bytes"].map(|name| net.counter(node, name));
        assert!(hits >= 2 && saved >= 15 && origin >= 30, "{node}: {hits} {saved} {origin}");
    }
    // Another user may tell the module of this one nothing.
    let args = ["tell", CDN, "--topic", "purge", &key("b.txt"), "--to", &net.to()];
    let result = request_as(&net.lab, &net.other, &args);
    for node in &result.nodes {
        let Outcome::Refused(refusal) = &node.outcome else { panic!("{node:?}") };
        assert_eq!(refusal.kind, RefusalKind::NotInstalled);
    }
    assert!(net.ask("receiver", "n2", "b.txt").contains("; hit"));
    a_killed_node_serves_nothing_damaged(&mut net);
}

/// Goal: of what was on its way when a node was killed, nothing is served by the next start, and what was whole is there. Method: the
/// origin stands still in the middle of a film.
fn a_killed_node_serves_nothing_damaged(net: &mut Net) {
    let film = noise(FILM_BYTES);
    net.write("film.bin", &film);
    let got = net.lab.dir().join("got.bin");
    let begin = |net: &Net| {
        let mut curl = net.lab.command("receiver", "curl");
        let url = format!("http://{}/film.bin", net.cache("n2"));
        curl.args(["-s", "-m", "20", "-D", "-", "-o"]).arg(&got).arg(&url).stdout(Stdio::piped()).spawn().unwrap()
    };
    let bytes = || std::fs::metadata(&got).map_or(0, |file| file.len());
    let origin = processes_under(net.lab.pid("sender", "nginx").unwrap());
    let signal = |name: &str| {
        let pids = origin.iter().map(u32::to_string);
        assert!(Command::new("kill").arg(name).args(pids).status().unwrap().success());
    };
    let mut cut = begin(net);
    while bytes() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    signal("-STOP");
    net.lab.kill("n2", "netservd").unwrap();
    cut.kill().unwrap();
    cut.wait().unwrap();
    assert!(bytes() < film.len() as u64, "all of it had come");
    net.lab.restart_netservd("n2").unwrap();
    let runs = |status: &ModuleStatus| status.module.name.as_str() == CDN && !status.addresses.is_empty();
    eventually("the module runs again", || net.lab.modules("n2").is_ok_and(|told| told.modules.iter().any(runs)));
    eventually("what was whole is there", || net.ask("receiver", "n2", "c.txt").contains("; hit"));
    signal("-CONT");
    for is_hit in [false, true] {
        let answer = begin(net).wait_with_output().unwrap();
        let head = String::from_utf8_lossy(&answer.stdout).to_lowercase();
        assert!(answer.status.success() && head.contains("; hit") == is_hit, "{head}");
        assert!(std::fs::read(&got).unwrap() == film, "{} bytes are others", bytes());
    }
}

/// Bytes of a film: more than is on its way at a time.
const FILM_BYTES: usize = 32 << 20;

/// `sender – n1 – n2 – receiver`, with the origin on the sender, and a cache on each node.
struct Net {
    lab: Lab,
    user: LabUser,
    other: LabUser,
}

impl Net {
    fn up(test: &str) -> Option<Net> {
        if !is_root() {
            skipped(test, "not root, so no namespaces");
            return None;
        }
        let chain = [("sender", Kind::Host), ("n1", Kind::Node), ("n2", Kind::Node), ("receiver", Kind::Host)];
        let mut lab = Lab::up(Topology::chain(&chain)).unwrap();
        let own = format!("{}/32", lab.v4("sender"));
        let permits = "listen = ['tcp port 80']\nconnect = ['tcp']\n".to_owned();
        let user = LabUser { extra: permits, ..lab.user("janedoe", &[&own]).unwrap() };
        let other = lab.user("john", &[&own]).unwrap();
        for (number, (node, _)) in NODES.iter().enumerate() {
            let extra = format!("{FILES_ALLOWED}\n[network]\nprefixes = ['10.98.{}.0/24']\n", 1 + number);
            lab.start_netservd(node, "node", &[user.clone(), other.clone()], &extra).unwrap();
        }
        lab.start_netservd("sender", "host", &[], "").unwrap();
        lab.serve_http("sender").unwrap();
        // The operators' part: each node's prefix is routed to it.
        let [first, between, last] = [0, 1, 2].map(|link| lab.topology().interfaces(link));
        let routes = [
            ("sender", "default", first.1.v4),
            ("n1", "10.98.2.0/24", between.1.v4),
            ("n2", "10.98.1.0/24", between.0.v4),
            ("receiver", "default", last.0.v4),
        ];
        for (machine, to, via) in routes {
            lab.run(machine, "ip", &["route", "add", to, "via", &via.to_string()]).unwrap();
        }
        Some(Net { lab, user, other })
    }

    fn install(&self) {
        let package = self.lab.package("active-cdn", &self.user).unwrap();
        let url = self.lab.publish("sender", &package).unwrap();
        let file = package.path.to_string_lossy().into_owned();
        let origin = format!("origin=http://{}", self.lab.v4("sender"));
        let filter = format!("tcp dst {}/32 port 80", self.lab.v4("sender"));
        // While it is being compiled, each request may time out.
        eventually("it is installed", || {
            let args = ["setup", &file, "--url", &url, "--filter", &filter, "--property", &origin, "--to", &self.to()];
            let result = request_as(&self.lab, &self.user, &args);
            result.nodes.iter().all(|node| {
                let is_late = node.outcome.is_refused_for(RefusalKind::Timeout);
                assert!(is_late || node.outcome.lease_s().is_some(), "{node:?}");
                !is_late
            })
        });
    }

    fn tell(&self, topic: &str, lines: &str) {
        let args = ["tell", CDN, "--topic", topic, lines, "--to", &self.to()];
        let result = request_as(&self.lab, &self.user, &args);
        let outcomes: Vec<&Outcome> = result.nodes.iter().map(|node| &node.outcome).collect();
        assert!(matches!(outcomes[..], [Outcome::Told, Outcome::Told]), "{result:?}");
    }

    /// Asks the cache of a node, and returns head and body in small letters.
    fn ask(&self, machine: &str, node: &str, name: &str) -> String {
        let url = format!("http://{}/{name}", self.cache(node));
        let output = self.lab.command(machine, "curl").args(["-s", "-i", "-m", "5", &url]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).to_lowercase()
    }

    fn cache(&self, node: &str) -> IpAddr {
        self.status(node).addresses.into_iter().find(IpAddr::is_ipv4).unwrap()
    }

    fn counter(&self, node: &str, name: &str) -> u64 {
        self.status(node).counters.get(name).copied().unwrap_or(0)
    }

    fn status(&self, node: &str) -> ModuleStatus {
        let modules = self.lab.modules(node).unwrap().modules;
        modules.into_iter().find(|status| status.module.name.as_str() == CDN).unwrap()
    }

    /// Writes a page that is fresh for a while, since it changed long ago.
    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.lab.dir().join("www").join(name);
        std::fs::write(&path, bytes).unwrap();
        let changed = SystemTime::now() - Duration::from_secs(20 * 24 * 60 * 60);
        std::fs::File::options().write(true).open(path).unwrap().set_modified(changed).unwrap();
    }

    fn to(&self) -> String {
        self.lab.v4("receiver").to_string()
    }
}
