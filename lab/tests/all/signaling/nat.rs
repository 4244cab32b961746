// SPDX-License-Identifier: Apache-2.0
//! NATs that know nothing of GIST: no stack across one is called whole that is not, and paths elsewhere stay as they are.
//! And one that knows it, which hides nobody.

use std::net::IpAddr;
use std::time::Duration;

use crate::common::Driver;
use netserv_lab::netns::{self, Lab, is_root, wait_until};
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::topology::{Impairment, Interface, Kind, Link, Machine, Topology};
use netserv_model::api::RequestResult;
use netserv_model::request::PathEnd;
use netserv_skips::{not_run, skipped};

over_one_driver! {
    afxdp: [a_nat_between_two_nodes_makes_the_stack_incomplete, a_nat_that_knows_gist_hides_nobody]
    nfqueue: [
        a_requester_behind_a_nat_is_told_that_there_may_be_nodes,
        the_path_to_an_address_of_a_nat_ends_there_or_is_incomplete,
    ]
}

/// How long a NAT of these tests remembers a flow of datagrams.
const MEMORY: Duration = Duration::from_secs(1);

/// Goal: the second node, which sees Queries from another address than they name, refuses them; the NAT lets that in, since it
/// comes from where the Query went, and the stack says so. Without the second node, the receiver proves the end through the NAT.
fn a_nat_between_two_nodes_makes_the_stack_incomplete(driver: Driver) {
    let test = "a_nat_between_two_nodes_makes_the_stack_incomplete";
    let Some(mut net) = Net::up(test, driver, ["n1", "nat", "n2"]) else { return };
    let refused = "n1 could not reach the next node, since a NAT that does not know GIST lies between";
    for six in net.versions(test) {
        net.assert_whole(&["n1", "n2"], six);

        net.translate("POSTROUTING -o to-n2 -j MASQUERADE", six);
        net.assert_incomplete(&["n1"], refused, six);
        net.stop_translating(six);
        net.assert_whole(&["n1", "n2"], six);

        // The same where the NAT changes ports, too.
        net.translate("POSTROUTING -o to-n2 -p udp -j MASQUERADE --to-ports 20000-30000", six);
        net.assert_incomplete(&["n1"], refused, six);
        net.stop_translating(six);

        // As on the Internet: nobody outside knows a way to the addresses inside.
        net.translate("POSTROUTING -o to-n2 -j MASQUERADE", six);
        let routes = net.hide_inside(six, "replace unreachable");
        assert!(routes >= 2, "{routes}");
        net.assert_incomplete(&["n1"], refused, six);
    }
    net.lab.stop("n2", "netservd").unwrap();
    for six in net.versions(test) {
        let answer = net.ask("sender", net.receiver(six));
        assert_eq!(answer, Answer::whole(&["n1"]), "the receiver's error comes back through the NAT");
    }
}

/// Goal: who asks from behind a NAT hears that the first node refuses each Query; who asks from outside does not notice.
fn a_requester_behind_a_nat_is_told_that_there_may_be_nodes(driver: Driver) {
    let test = "a_requester_behind_a_nat_is_told_that_there_may_be_nodes";
    let Some(net) = Net::up(test, driver, ["nat", "n1", "n2"]) else { return };
    let refused = "sender could not reach the next node, since a NAT that does not know GIST lies between";
    for six in net.versions(test) {
        net.assert_whole(&["n1", "n2"], six);
        net.translate("POSTROUTING -o to-n1 -j MASQUERADE", six);
        net.assert_incomplete(&[], refused, six);
        net.hide_inside(six, "replace unreachable");
        net.assert_incomplete(&[], refused, six);
        net.hide_inside(six, "del unreachable");
        net.stop_translating(six);
    }
}

/// Goal: the end of a flow to an address of the NAT is the NAT. Where it hands on only the user's port, the path to that address
/// ends before it; where it hands on everything, the node behind is in the stack, which is not called whole, since that node's
/// own Query goes back to the NAT.
fn the_path_to_an_address_of_a_nat_ends_there_or_is_incomplete(driver: Driver) {
    let test = "the_path_to_an_address_of_a_nat_ends_there_or_is_incomplete";
    let Some(net) = Net::up(test, driver, ["n1", "nat", "n2"]) else { return };
    for six in net.versions(test) {
        let Interface { v4, v6, .. } = net.lab.topology().interfaces_of("nat").remove(0);
        let outside: IpAddr = if six { v6.into() } else { v4.into() };
        let receiver = net.receiver(six);
        net.translate(&format!("PREROUTING -d {outside} -p udp --dport 5060 -j DNAT --to-destination {receiver}"), six);
        assert_eq!(net.ask("sender", outside), Answer::whole(&["n1"]));
        net.stop_translating(six);
        net.translate(&format!("PREROUTING -d {outside} -j DNAT --to-destination {receiver}"), six);
        let answer = net.ask("sender", outside);
        assert_eq!(answer.nodes, ["n1", "n2"], "{answer:?}");
        assert!(answer.says("nobody after n2 answered"), "{answer:?}");
        net.stop_translating(six);
    }
}

/// Goal: through a NAT that translates what Queries say, a requester inside gets the whole stack, again and again. Method: the
/// kernel translates packets and lets answers in, `netserv-lab gist-nat` translates Queries; without it, they are refused.
fn a_nat_that_knows_gist_hides_nobody(driver: Driver) {
    let test = "a_nat_that_knows_gist_hides_nobody";
    let Some(mut net) = Net::up(test, driver, ["nat", "n1", "n2"]) else { return };
    for (runs, six) in (1..).zip(net.versions(test)) {
        let interface = net.lab.topology().interfaces_of("nat").into_iter().find(|end| end.name == "to-n1").unwrap();
        let outside: IpAddr = if six { interface.v6.into() } else { interface.v4.into() };
        let inside: IpAddr = if six { net.lab.v6("sender").into() } else { net.lab.v4("sender").into() };
        let answers = format!("PREROUTING -i to-n1 -d {outside} -p udp --dport 270 -j DNAT --to-destination {inside}");
        net.translate("POSTROUTING -o to-n1 -j MASQUERADE", six);
        net.translate(&answers, six);
        net.hide_inside(six, "replace unreachable");
        let mut program = net.lab.command("nat", netns::program("netserv-lab").unwrap());
        program.args(["gist-nat", &format!("{inside}={outside}")]);
        net.lab.start("nat", "gist-nat", &mut program).unwrap();
        // What the program said at an earlier start is in the log, too.
        let started = || net.lab.log("nat", "gist-nat").matches("translating").count() == runs;
        assert!(wait_until(Duration::from_secs(10), started), "it does not say that it translates");
        for _ in 0..3 {
            net.assert_whole(&["n1", "n2"], six);
        }
        net.lab.stop("nat", "gist-nat").unwrap();
        net.assert_incomplete(&[], "sender could not reach the next node", six);
        net.hide_inside(six, "del unreachable");
        net.stop_translating(six);
    }
}

/// `sender – … – receiver` with two nodes and a NAT between, and a host `other` beside n2, which asks along paths without NAT.
struct Net {
    lab: Lab,
}

/// What `netserv path` says.
#[derive(Debug, PartialEq)]
struct Answer {
    /// Nodes but for the one who asks.
    nodes: Vec<String>,
    incomplete: Option<String>,
    end: Option<PathEnd>,
    exit_code: Option<i32>,
}

impl Answer {
    fn whole(nodes: &[&str]) -> Answer {
        let nodes = nodes.iter().map(|node| (*node).to_owned()).collect();
        Answer { nodes, incomplete: None, end: Some(PathEnd::Unreachable), exit_code: Some(0) }
    }

    /// Returns whether the stack is called incomplete, for a reason.
    fn says(&self, reason: &str) -> bool {
        let told = self.incomplete.as_deref().is_some_and(|detail| detail.contains(reason));
        told && self.end.is_none() && self.exit_code == Some(6)
    }
}

impl Net {
    fn up(test: &str, driver: Driver, between: [&str; 3]) -> Option<Net> {
        if !is_root() {
            skipped(test, "not root, so no namespaces");
            return None;
        }
        let mut chain = vec![("sender", Kind::Host)];
        chain.extend(between.map(|name| (name, if name == "nat" { Kind::Router } else { Kind::Node })));
        chain.push(("receiver", Kind::Host));
        let mut topology = Topology::chain(&chain);
        topology.machines.push(Machine { name: "other".to_owned(), kind: Kind::Host });
        topology.links.push(Link { a: "other".into(), b: "n2".into(), impairment: Impairment::default() });
        let mut lab = Lab::up(topology).unwrap();
        lab.use_driver(driver.name());
        let user = lab.user("janedoe", &[&format!("{}/32", lab.v4("sender"))]).unwrap();
        for node in ["n1", "n2"] {
            lab.start_netservd(node, "node", std::slice::from_ref(&user), FILES_ALLOWED).unwrap();
        }
        for host in ["sender", "other"] {
            lab.start_netservd(host, "host", &[], "").unwrap();
        }
        Some(Net { lab })
    }

    /// Returns whether to go over IPv6, for each version that the kernel translates.
    fn versions(&self, test: &str) -> Vec<bool> {
        let translates = |tables: &str| self.on_nat(&format!("{tables} -t nat -L"));
        assert!(translates("iptables"), "the kernel has no NAT");
        if translates("ip6tables") {
            return vec![false, true];
        }
        not_run(test, "the kernel translates no IPv6");
        vec![false]
    }

    /// Adds a rule to the NAT.
    fn translate(&self, rule: &str, six: bool) {
        // What the NAT remembers of a flow is settled by its first packet.
        let memory = MEMORY.as_secs();
        let timeout = "net.netfilter.nf_conntrack_udp_timeout";
        assert!(self.on_nat(&format!("sysctl -qw {timeout}={memory} {timeout}_stream={memory}")));
        assert!(self.on_nat(&format!("{} -t nat -A {rule}", tables(six))), "{rule}");
        std::thread::sleep(2 * MEMORY);
    }

    /// Takes all rules away and waits until no flow is translated.
    fn stop_translating(&self, six: bool) {
        assert!(self.on_nat(&format!("{} -t nat -F", tables(six))));
        std::thread::sleep(2 * MEMORY);
    }

    /// Changes the routes of all machines outside to links inside, by `ip route CHANGE PREFIX`, and returns how many there are.
    fn hide_inside(&self, six: bool, change: &str) -> usize {
        let topology = self.lab.topology();
        let links_inside = topology.links.iter().position(|link| link.a == "nat").unwrap();
        let ends = (0..links_inside).map(|index| topology.interfaces(index).0);
        let inside: Vec<IpAddr> = ends.map(|end| if six { end.v6.into() } else { end.v4.into() }).collect();
        let outside = topology.machines.iter().map(|machine| machine.name.as_str());
        let outside: Vec<&str> = outside.skip_while(|name| *name != "nat").skip(1).collect();
        let (ip, bits) = if six { ("ip -6", 64) } else { ("ip", 24) };
        for machine in &outside {
            for address in &inside {
                let prefix = network_of(*address, bits);
                self.lab.run(machine, "sh", &["-c", &format!("{ip} route {change} {prefix}")]).unwrap();
            }
        }
        outside.len() * inside.len()
    }

    fn receiver(&self, six: bool) -> IpAddr {
        if six { self.lab.v6("receiver").into() } else { self.lab.v4("receiver").into() }
    }

    fn on_nat(&self, command: &str) -> bool {
        self.lab.run("nat", "sh", &["-c", command]).is_ok()
    }

    fn assert_whole(&self, nodes: &[&str], six: bool) {
        assert_eq!(self.ask("sender", self.receiver(six)), Answer::whole(nodes));
        self.assert_other_is_whole(six);
    }

    fn assert_incomplete(&self, nodes: &[&str], reason: &str, six: bool) {
        // Again and again: what is remembered of an earlier request makes no later one look whole.
        for _ in 0..2 {
            let answer = self.ask("sender", self.receiver(six));
            assert_eq!(answer.nodes, nodes, "{answer:?}");
            assert!(answer.says(reason), "{answer:?} does not say {reason:?}");
            self.assert_other_is_whole(six);
        }
    }

    /// Checks that who asks along a path without NAT gets all of it.
    fn assert_other_is_whole(&self, six: bool) {
        assert_eq!(self.ask("other", self.receiver(six)), Answer::whole(&["n2"]));
    }

    fn ask(&self, from: &str, destination: IpAddr) -> Answer {
        let output = self.lab.try_netserv(from, &["-j", "path", &destination.to_string(), "--timeout", "20s"]).unwrap();
        let result: RequestResult = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        let names = result.nodes.into_iter().map(|node| node.node.to_string());
        Answer {
            nodes: names.filter(|name| name != from).collect(),
            incomplete: result.incomplete.map(|refusal| refusal.detail),
            end: result.end,
            exit_code: output.status.code(),
        }
    }
}

fn tables(six: bool) -> &'static str {
    if six { "ip6tables" } else { "iptables" }
}

/// Returns the prefix of a link, by the address of one of its ends, which ends in 1.
fn network_of(address: IpAddr, bits: u8) -> String {
    let text = address.to_string();
    let network = text.strip_suffix('1').unwrap();
    if address.is_ipv4() { format!("{network}0/{bits}") } else { format!("{network}/{bits}") }
}
