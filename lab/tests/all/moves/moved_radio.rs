// SPDX-License-Identifier: Apache-2.0
//! A radio's listeners stay with the node that they came to while its reflector moves to another one, which feeds it.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use crate::common::radio::heard;
use crate::common::store::outcome_of;
use crate::common::{Driver, eventually};
use netserv_lab::netns::{Lab, is_root};
use netserv_lab::node::{LabPackage, LabUser};
use netserv_lab::radio::{self, Listening};
use netserv_lab::relocating::Relocated;
use netserv_lab::states::StateStore;
use netserv_lab::topology::Topology;
use netserv_model::request::{ModuleState, Outcome};
use netserv_skips::skipped;

over_one_driver! {
    afxdp: [listeners_stay_when_their_reflector_moves]
    nfqueue: []
}

/// How long the reflector may be on neither node where code is optimised.
const STILL_MAX_MS: u64 = 50;

/// Goal: listeners of a reflector that moves hear all of the stream, frame by frame, on the connections that they have, from the node
/// that they have them with, until they end; that node has it from the other one, where those are who come later. Icecast has one
/// connection. Method: `sender – n1 – r – n2 – receiver`, Icecast at the sender, from n2 to n1; over `afxdp` with IPv6.
fn listeners_stay_when_their_reflector_moves(driver: Driver) {
    let Some(net) = Net::up("listeners_stay_when_their_reflector_moves", driver) else { return };
    move_with(&net, 10, driver == Driver::Afxdp);
}

/// Goal: as above with 50 listeners, and the reflector is on neither node for 50 ms at most. In release: `./dev relocations`.
#[test]
#[ignore = "a measurement"]
fn fifty_listeners_stay() {
    let Some(net) = Net::up("fifty_listeners_stay", Driver::Afxdp) else { return };
    // The first time, a node has everything to fetch.
    move_with(&net, 1, false);
    net.relocate("n1", "n2");
    let still_ms = move_with(&net, 50, false);
    assert!(still_ms <= STILL_MAX_MS, "{still_ms} ms, {STILL_MAX_MS} is the goal");
}

/// Moves the reflector from n2 to n1 while some listen. Returns for how many milliseconds it was on neither node.
fn move_with(net: &Net, listeners: usize, v6: bool) -> u64 {
    let listening = Listening { listeners, titles: listeners / 2, seconds: 20, every_ms: 20, v6 };
    let first = net.start(listening, "first");
    eventually("all listen", || net.counter("n2", "listeners") == listeners as u64);
    assert_eq!(net.upstreams(), 1);
    std::thread::sleep(Duration::from_secs(6));
    let told = net.relocate("n2", "n1");
    println!("{told:?}");
    assert_eq!(net.states("n1"), [ModuleState::Running]);
    assert_eq!(net.states("n2"), [ModuleState::Draining], "listeners are left");
    eventually("n2 is fed by n1", || net.counter("n1", "listeners") == 1);
    assert_eq!(net.upstreams(), 1);
    let late = net.start(Listening { listeners: 4, titles: 2, seconds: 5, ..listening }, "late");
    eventually("those who come later are with n1", || net.counter("n1", "listeners") == 5);
    let late = heard(&net.lab, late, "late");
    assert_eq!((late.served, late.cut, late.broken, late.titled), (4, 0, 0, 2), "{late:?}");
    let first = heard(&net.lab, first, "first");
    assert_eq!((first.served, first.cut, first.broken), (listeners, 0, 0), "{first:?}");
    assert_eq!(first.titled, listeners / 2, "{first:?}");
    // They have all that sounds for as long as they listen, since what was kept bridges the way to the other node.
    assert!(first.lacks_ms_most <= 500, "{first:?}");
    eventually("nothing is left on n2", || net.states("n2").is_empty());
    eventually("the last one takes the connection along", || net.upstreams() == 0);
    assert_eq!(net.counter("n1", "listeners"), 0);
    told.state.unwrap().still_ms
}

struct Net {
    lab: Lab,
    user: LabUser,
    package: LabPackage,
    url: String,
    store: StateStore,
    moved: std::cell::Cell<u32>,
}

impl Net {
    fn up(test: &str, driver: Driver) -> Option<Net> {
        if !is_root() {
            skipped(test, "not root, so no namespaces");
            return None;
        }
        if !["icecast2", "mpg123"].iter().all(|name| Path::new("/usr/bin").join(name).exists()) {
            skipped(test, "needs icecast2 and mpg123");
            return None;
        }
        let mut lab = Lab::up(Topology::two_nodes()).unwrap();
        lab.use_driver(driver.name());
        let owned = [format!("{}/32", lab.v4("sender")), format!("{}/128", lab.v6("sender"))];
        let user = lab.user("radio", &[&owned[0], &owned[1]]).unwrap();
        let user = LabUser { extra: "connect = ['tcp']\n".to_owned(), ..user };
        let fetch = StateStore::config(&lab, "sender");
        for number in [1, 2] {
            let prefixes = format!("'10.98.{number}.0/29', 'fd98:{number}::/125'");
            let extra = format!("{fetch}[network]\nprefixes = [{prefixes}]\n");
            lab.start_netservd(&format!("n{number}"), "node", std::slice::from_ref(&user), &extra).unwrap();
        }
        lab.start_netservd("sender", "host", &[], "").unwrap();
        lab.serve_http("sender").unwrap();
        route(&lab);
        radio::start_server(&mut lab, "sender").unwrap();
        radio::start_source(&mut lab, "sender").unwrap();
        let store = StateStore::open(&mut lab, "sender").unwrap();
        let package = lab.package("stream-reflector", &user).unwrap();
        let url = lab.publish("sender", &package).unwrap();
        let net = Net { lab, user, package, url, store, moved: std::cell::Cell::new(0) };
        let outcome = net.setup();
        assert!(outcome.is_ok(), "{outcome:?}");
        Some(net)
    }

    /// What a command says of the module.
    fn module(&self) -> Vec<String> {
        let (v4, v6) = (self.lab.v4("sender"), self.lab.v6("sender"));
        let args = [
            self.package.path.to_str().unwrap(),
            "--url",
            &self.url,
            "--to",
            &self.lab.v4("receiver").to_string(),
            "--filter",
            &format!("tcp dst {v4}/32 port 8000"),
            "--filter",
            &format!("tcp dst {v6}/128 port 8000"),
            "--property",
            &format!("servers={v4}:8000 [{v6}]:8000"),
            "--user",
            &self.user.name,
            "--key",
            self.user.key.to_str().unwrap(),
        ];
        args.map(str::to_owned).to_vec()
    }

    fn setup(&self) -> Outcome {
        let module = self.module();
        let args: Vec<&str> = module.iter().map(String::as_str).collect();
        let all = [&["setup"][..], &args, &["--node", "n2", "--epoch", "1"]].concat();
        outcome_of(&self.lab.request("sender", &all).unwrap(), "n2")
    }

    fn relocate(&self, old: &str, new: &str) -> Relocated {
        self.moved.set(self.moved.get() + 1);
        let (module, store) = (self.module(), self.store.url(&format!("s{}", self.moved.get())));
        let args: Vec<&str> = module.iter().map(String::as_str).collect();
        let all = [&["-j", "relocate"][..], &args, &["--old-node", old, "--node", new, "--store", &store]].concat();
        let output = self.lab.try_netserv("sender", &all).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn start(&self, listening: Listening, name: &str) -> std::process::Child {
        let into = self.lab.dir().join(name);
        let _ = std::fs::remove_dir_all(&into);
        radio::start_listening(&self.lab, ("receiver", "sender"), listening, &into).unwrap()
    }

    fn upstreams(&self) -> u64 {
        radio::listeners(&self.lab, "sender").unwrap_or(0)
    }

    fn states(&self, node: &str) -> Vec<ModuleState> {
        self.lab.modules(node).unwrap().modules.iter().map(|status| status.state).collect()
    }

    fn counter(&self, node: &str, name: &str) -> u64 {
        let modules = self.lab.modules(node).unwrap().modules;
        modules.first().and_then(|status| status.counters.get(name).copied()).unwrap_or(0)
    }
}

/// The operator's part: the prefixes of containers are routed to their nodes.
fn route(lab: &Lab) {
    let links = lab.topology().links.len();
    let ends: Vec<_> = (0..links).map(|link| lab.topology().interfaces(link)).collect();
    let n1 = |from_left: bool| if from_left { &ends[0].1 } else { &ends[1].0 };
    let routes = [
        ("sender", 1, n1(true)),
        ("sender", 2, n1(true)),
        ("n1", 2, &ends[1].1),
        ("r", 1, n1(false)),
        ("r", 2, &ends[2].1),
        ("n2", 1, &ends[2].0),
    ];
    for (machine, number, via) in routes {
        let prefixes: [(String, IpAddr); 2] =
            [(format!("10.98.{number}.0/29"), via.v4.into()), (format!("fd98:{number}::/125"), via.v6.into())];
        for (prefix, via) in prefixes {
            lab.run(machine, "ip", &["route", "add", &prefix, "via", &via.to_string()]).unwrap();
        }
    }
}
