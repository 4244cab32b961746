// SPDX-License-Identifier: Apache-2.0
//! A network's own routing moves a path, and the module along it follows while a phone stays registered.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::common::{Driver, eventually, request_as};
use netserv_lab::netns::{Lab, is_root, wait_until};
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::patience::grown;
use netserv_lab::topology::{Impairment, Kind, Link, Machine, Topology};
use netserv_model::request::{ModuleState, PathEnd};
use netserv_skips::skipped;

over_one_driver! {
    afxdp: [a_keep_alive_module_moves_with_the_routes_of_bird_and_the_phone_stays_registered]
    nfqueue: []
}

/// How long the module may take once the kernel's route has changed.
const MOVE_TIME_MAX: Duration = Duration::from_secs(2);
/// How long the node that the path left may have it: where the new path is not whole at first, it is looked at again.
const LEFT_TIME_MAX: Duration = Duration::from_secs(45);
/// How often the phone sends a keep-alive.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_millis(180);

/// Goal: a link fails and comes back, OSPF moves the routes, and within 2 s of that the node on the new path has the module
/// and answers keep-alives; the SIP server sees those of the gap at most, never loses the registration, and calls reach the
/// phone; the node on the old path lets the module go. Method: Kamailio's machine has a link to each of two nodes, which meet
/// again at the phone's router; bird runs on all four; over IPv4 and over IPv6.
fn a_keep_alive_module_moves_with_the_routes_of_bird_and_the_phone_stays_registered(driver: Driver) {
    let test = "a_keep_alive_module_moves_with_the_routes_of_bird_and_the_phone_stays_registered";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    let mut net = Net::up(driver);
    for six in [false, true] {
        net.six = six;
        net.lab.start_phone("receiver", net.name(), net.server()).unwrap();
        eventually("keep-alives reach the server", || net.reached() >= 3);
        net.install();
        net.assert_answered_by("na");
        net.assert_phone_is_called();

        net.moves("down", "na", "nb");
        net.moves("up", "nb", "na");

        let log = net.lab.log("sender", "kamailio");
        assert!(!log.contains(&format!("EXPIRED {}", net.name())) && !log.contains("UNKNOWN"), "{log}");
        let phone = net.lab.phone("receiver");
        assert!(phone.registrations >= 3, "{phone:?}");
        net.lab.stop_phone("receiver").unwrap();
        request_as(&net.lab, &net.user, &["remove", &net.module, "--to", &net.phone().to_string()]);
        assert!(!net.has("na") && !net.has("nb"));
    }
}

/// `sender – na – r – receiver` and `sender – nb – r`, the first way cheaper than the second.
struct Net {
    lab: Lab,
    user: netserv_lab::node::LabUser,
    module: String,
    six: bool,
}

impl Net {
    fn up(driver: Driver) -> Net {
        let mut lab = Lab::up(two_ways()).unwrap();
        lab.use_driver(driver.name());
        let own = [format!("{}/32", lab.v4("sender")), format!("{}/128", lab.v6("sender"))];
        let user = lab.user("janedoe", &[&own[0], &own[1]]).unwrap();
        // An interface that goes down keeps its addresses, as those of routers do.
        lab.run("r", "sysctl", &["-qw", "net.ipv6.conf.all.keep_addr_on_down=1"]).unwrap();
        lab.run("receiver", "sysctl", &["-qw", "net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0"]).unwrap();
        for (machine, neighbours) in [
            ("sender", [("na", 10), ("nb", 20)]),
            ("na", [("sender", 10), ("r", 10)]),
            ("nb", [("sender", 20), ("r", 20)]),
            ("r", [("na", 10), ("nb", 20)]),
        ] {
            lab.start_bird(machine, &neighbours).unwrap();
        }
        for node in ["na", "nb"] {
            lab.start_netservd(node, "node", std::slice::from_ref(&user), FILES_ALLOWED).unwrap();
        }
        lab.start_netservd("sender", "host", &[], "").unwrap();
        lab.serve_http("sender").unwrap();
        lab.start_registrar("sender").unwrap();
        let mut net = Net { lab, user, module: String::new(), six: false };
        for six in [true, false] {
            net.six = six;
            eventually("bird has found the ways", || net.leads_to("sender", net.phone(), "na"));
            eventually("bird has found the ways back", || net.leads_to("r", net.server(), "na"));
        }
        eventually("bird has found the other way", || net.leads_to("nb", net.server(), "sender"));
        net.have_had_it();
        net
    }

    /// Has both nodes keep the module's code, so that what is measured is not how long it takes to compile.
    fn have_had_it(&mut self) {
        let package = self.lab.package("keep-alive", &self.user).unwrap();
        let url = self.lab.publish("sender", &package).unwrap();
        let (file, key) = (package.path.to_string_lossy().into_owned(), self.user.key.to_string_lossy().into_owned());
        package.module.split('@').next().unwrap().clone_into(&mut self.module);
        let filter = format!("udp dst {} port 5060", self.lab.v4("sender"));
        for node in ["na", "nb"] {
            let by = ["--local", "--user", "janedoe", "--key", &key];
            let setup = ["setup", &file, "--url", &url, "--filter", &filter];
            self.lab.request(node, &[&setup[..], &by].concat()).unwrap();
            eventually("it runs", || self.runs(node));
            self.lab.request(node, &[&["remove", &self.module][..], &by].concat()).unwrap();
            assert!(!self.has(node));
        }
    }

    /// Sends the SETUP, which only the node on the cheaper way takes.
    fn install(&self) {
        let package = self.lab.package("keep-alive", &self.user).unwrap();
        let url = self.lab.publish("sender", &package).unwrap();
        let (file, to) = (package.path.to_string_lossy().into_owned(), self.phone().to_string());
        let filter = format!("udp dst {} port 5060", self.server());
        let args = ["setup", &file, "--to", &to, "--url", &url, "--filter", &filter, "--ttl", "600"];
        let result = request_as(&self.lab, &self.user, &args);
        let names: Vec<&str> = result.nodes.iter().map(|node| node.node.as_str()).collect();
        assert_eq!((names, result.end), (vec!["na"], Some(PathEnd::Unreachable)), "{result:?}");
    }

    /// Takes the link between `na` and the phone's router down or up, and checks what follows.
    fn moves(&self, change: &str, from: &str, to: &str) {
        let before = self.reached();
        self.lab.run("r", "ip", &["link", "set", "dev", "to-na", change]).unwrap();
        let moved = wait_until(Duration::from_secs(15), || self.leads_to("sender", self.phone(), to));
        let begun = Instant::now();
        assert!(moved, "{}", self.lab.birdc("sender", "show ospf neighbors").unwrap());
        eventually("the module runs on the new path", || self.runs(to));
        let runs = begun.elapsed();
        let most = grown(MOVE_TIME_MAX);
        assert!(runs <= most, "{to} runs the module after {runs:?}");
        eventually("the node answers", || self.answered_by(to) > 0);
        let answers = begun.elapsed();
        self.assert_answered_by(to);
        let gap = self.reached() - before;
        let longest = most.as_millis() / KEEP_ALIVE_INTERVAL.as_millis();
        assert!(gap <= usize::try_from(longest).unwrap(), "{gap} keep-alives reached the server meanwhile");
        let is_left = wait_until(LEFT_TIME_MAX, || !self.has(from));
        let left = begun.elapsed();
        assert!(is_left, "{from} has the module {left:?} after the path left it");
        self.assert_phone_is_called();
        let six = self.six;
        println!(
            "IPv6 {six}: {to} runs it after {runs:?}, has answered after {answers:?}; {gap} reached the server; {from} had it {left:?}"
        );
    }

    /// Checks that a node answers the phone, and that the server sees none of it.
    fn assert_answered_by(&self, node: &str) {
        eventually("the node answers", || self.answered_by(node) > 0);
        let (phone, by_node, reached) = (self.lab.phone("receiver"), self.answered_by(node), self.reached());
        eventually("the phone is answered", || self.lab.phone("receiver").answered >= phone.answered + 5);
        eventually("it is the node that answers", || self.answered_by(node) >= by_node + 5);
        assert_eq!(self.reached(), reached, "keep-alives still reach the server");
    }

    fn assert_phone_is_called(&self) {
        assert!(
            self.lab.call_phone("sender", self.name(), self.server()).unwrap(),
            "{}",
            self.lab.log("sender", "kamailio")
        );
    }

    fn answered_by(&self, node: &str) -> u64 {
        let modules = self.lab.modules(node).unwrap().modules;
        modules.first().and_then(|status| status.counters.get("notify").copied()).unwrap_or_default()
    }

    fn has(&self, node: &str) -> bool {
        !self.lab.modules(node).unwrap().modules.is_empty()
    }

    fn runs(&self, node: &str) -> bool {
        let modules = self.lab.modules(node).unwrap().modules;
        modules.first().is_some_and(|status| status.state == ModuleState::Running)
    }

    /// Returns how many keep-alives the server saw so far.
    fn reached(&self) -> usize {
        self.lab.reached_kamailio("sender").keep_alives
    }

    /// Returns whether the kernel of a machine sends what is for an address to a neighbour.
    fn leads_to(&self, machine: &str, address: IpAddr, neighbour: &str) -> bool {
        let route = self.lab.run(machine, "ip", &["route", "get", &address.to_string()]);
        route.is_ok_and(|shown| String::from_utf8_lossy(&shown.stdout).contains(&format!("dev to-{neighbour} ")))
    }

    /// Returns the phone's name.
    fn name(&self) -> &'static str {
        if self.six { "phone6" } else { "phone4" }
    }

    fn server(&self) -> IpAddr {
        if self.six { self.lab.v6("sender").into() } else { self.lab.v4("sender").into() }
    }

    fn phone(&self) -> IpAddr {
        if self.six { self.lab.v6("receiver").into() } else { self.lab.v4("receiver").into() }
    }
}

fn two_ways() -> Topology {
    let machine = |(name, kind): (&str, Kind)| Machine { name: name.to_owned(), kind };
    let machines =
        [("sender", Kind::Host), ("na", Kind::Node), ("nb", Kind::Node), ("r", Kind::Router), ("receiver", Kind::Host)];
    let ends = [("sender", "na"), ("sender", "nb"), ("na", "r"), ("nb", "r"), ("r", "receiver")];
    let link = |(a, b): (&str, &str)| Link { a: a.to_owned(), b: b.to_owned(), impairment: Impairment::default() };
    Topology { machines: machines.map(machine).into(), links: ends.map(link).into() }
}
