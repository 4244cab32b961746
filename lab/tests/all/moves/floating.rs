// SPDX-License-Identifier: Apache-2.0
//! Addresses that follow a module from node to node, which the network's own routing tells everybody of.

use std::net::IpAddr;
use std::time::Instant;

use crate::common::store::outcome_of;
use crate::common::{Driver, eventually, request_as};
use netserv_lab::netns::{Lab, is_root};
use netserv_lab::node::LabUser;
use netserv_lab::states::StateStore;
use netserv_lab::topology::Topology;
use netserv_model::api::RequestResult;
use netserv_model::floating::GivenUp;
use netserv_model::request::{ModuleState, ModuleStatus, Outcome};
use netserv_model::{Refusal, RefusalKind};
use netserv_skips::skipped;

const FLOATING: [&str; 2] = ["10.99.9.9", "fd99:9::9"];

/// Goal: a client reaches the module at its floating addresses on n1, and on n2 once its state and the next epoch are there,
/// over IPv4 and IPv6, by routes that bird alone tells of; n1 lets go when the SETUP passes it by; a node that is killed
/// leaves nothing, and leads the addresses to the module again once it runs; an HTTP module answers there, too. Method:
/// `sender – n1 – r – n2 – receiver` with bird on the three in the middle; the receiver pings, net-monitor counts.
#[test]
fn a_module_and_its_addresses_move_to_another_node() {
    let Some(mut net) = Net::up("a_module_and_its_addresses_move_to_another_node") else { return };
    let foreign = net.setup("n1", "1", &["--floating", "10.99.10.1"]);
    assert!(matches!(&foreign, Outcome::Refused(Refusal { kind: RefusalKind::PrefixNotAllowed, .. })), "{foreign:?}");
    let both = FLOATING.join(",");
    let first = net.setup("n1", "1", &["--floating", &both]);
    // Refreshed, if the requester asked once more while a busy node compiled.
    assert!(first.is_ok(), "{first:?}");
    net.assert_led_to("n1", "r", "n1");
    let second = net.setup_of("echo", "n1", "1", &["--floating", FLOATING[0]]);
    let Outcome::Refused(refusal) = outcome_of(&second, "n1") else { panic!("{second:?}") };
    assert!(refusal.kind == RefusalKind::AddressTaken && refusal.detail.contains("10.99.9.9 leads to"), "{refusal}");
    let before = net.status("n1").unwrap();
    assert_eq!(before.floating, addresses());

    let store = StateStore::open(&mut net.lab, "sender").unwrap();
    let to = net.lab.v4("receiver").to_string();
    let export = ["state", "export", MODULE, "--url", &store.url("s"), "--to", &to, "--node", "n1"];
    let exported = outcome_of(&request_as(&net.lab, &net.user, &export), "n1");
    let Outcome::Exported { digest, .. } = exported else { panic!("{exported:?}") };
    let state = ["--state", &store.url("s"), "--state-digest", &digest.to_string(), "--floating", &both];
    let counted = net.counted("n1");
    let begun = Instant::now();
    let moved = net.setup_all("n2", "2", &state);
    assert!(matches!(outcome_of(&moved, "n2"), Outcome::Installed { .. }), "{moved:?}");
    let Outcome::NotTargeted { reason } = outcome_of(&moved, "n1") else { panic!("{moved:?}") };
    assert!(reason.contains("this node gives up 10.99.9.9, which it had in epoch 1"), "{reason}");
    eventually("what was counted on n1 goes on", || net.counted("n2") >= counted);
    net.assert_led_to("n2", "r", "n2");
    println!("moved within {:?}", begun.elapsed());
    eventually("n2 sees what comes for the addresses", || net.counted("n2") > counted);
    let left = net.status("n1").unwrap();
    let lost: Vec<GivenUp> = addresses().into_iter().map(|address| GivenUp { address, epoch: 2 }).collect();
    assert_eq!((left.floating, left.given_up, left.state), (Vec::new(), lost, ModuleState::Running));
    assert!(
        net.lab.log("n1", "netservd").contains("floating addresses are given up"),
        "{}",
        net.lab.log("n1", "netservd")
    );
    assert_eq!(net.routes("n1"), [] as [String; 0]);
    let late = net.setup("n1", "2", &["--floating", &both]);
    assert!(matches!(&late, Outcome::Refused(Refusal { kind: RefusalKind::OldEpoch, .. })), "{late:?}");

    // The kernel takes the link away with the container, and bird what it told of it.
    net.lab.kill("n2", "netservd").unwrap();
    eventually("nothing leads to the dead container", || net.routes("n2").is_empty());
    net.lab.restart_netservd("n2").unwrap();
    eventually("it runs again", || net.status("n2").is_some_and(|status| status.state == ModuleState::Running));
    net.assert_led_to("n2", "r", "n2");
    assert_eq!(net.status("n2").unwrap().floating, addresses());
    let removed = request_as(&net.lab, &net.user, &["remove", MODULE, "--to", &to]);
    assert_eq!((outcome_of(&removed, "n1"), outcome_of(&removed, "n2")), (Outcome::Removed, Outcome::Removed));
    assert_eq!(net.routes("n2"), [] as [String; 0]);

    // Also in the version of IP of which the container has no address of its own.
    let serves = net.serve("hello-http", "n2", &both);
    assert!(matches!(outcome_of(&serves, "n2"), Outcome::Installed { .. }), "{serves:?}");
    for address in addresses() {
        eventually(&format!("HTTP is answered at {address}"), || net.asks("receiver", address));
    }
}

const MODULE: &str = "example.org/net-monitor";

struct Net {
    lab: Lab,
    user: LabUser,
}

impl Net {
    fn up(test: &str) -> Option<Net> {
        if !is_root() {
            skipped(test, "not root, so no namespaces");
            return None;
        }
        let mut lab = Lab::up(Topology::two_nodes()).unwrap();
        lab.use_driver(Driver::Nfqueue.name());
        for (machine, neighbours) in [("n1", &["r"][..]), ("r", &["n1", "n2"]), ("n2", &["r"])] {
            let neighbours: Vec<(&str, u16)> = neighbours.iter().map(|name| (*name, 10)).collect();
            lab.start_bird(machine, &neighbours).unwrap();
        }
        let user = lab.user("janedoe", &["10.99.9.0/24", "fd99:9::/64"]).unwrap();
        let user = LabUser { extra: "listen = ['icmp', 'tcp port 80']\n".to_owned(), ..user };
        let fetch = StateStore::config(&lab, "sender");
        // The second one has no IPv6 of its own.
        for (node, prefixes) in [("n1", "'10.98.1.0/24', 'fd98:1::/64'"), ("n2", "'10.98.2.0/24'")] {
            let extra = format!("{fetch}[network]\nprefixes = [{prefixes}]\n");
            lab.start_netservd(node, "node", std::slice::from_ref(&user), &extra).unwrap();
        }
        lab.start_netservd("sender", "host", &[], "").unwrap();
        lab.serve_http("sender").unwrap();
        let last = lab.topology().links.len() - 1;
        let via = lab.topology().interfaces(last).0;
        for via in [IpAddr::from(via.v4), via.v6.into()] {
            lab.run("receiver", "ip", &["route", "replace", "default", "via", &via.to_string()]).unwrap();
        }
        let net = Net { lab, user };
        for address in [IpAddr::from(net.lab.v4("receiver")), net.lab.v6("receiver").into()] {
            eventually("bird has found the ways", || net.pings("sender", address));
        }
        Some(net)
    }

    fn setup(&self, node: &str, epoch: &str, more: &[&str]) -> Outcome {
        outcome_of(&self.setup_all(node, epoch, more), node)
    }

    fn setup_all(&self, node: &str, epoch: &str, more: &[&str]) -> RequestResult {
        self.setup_of("net-monitor", node, epoch, more)
    }

    fn setup_of(&self, module: &str, node: &str, epoch: &str, more: &[&str]) -> RequestResult {
        self.send(module, &[&["--filter", "icmp dst self", "--node", node, "--epoch", epoch], more].concat())
    }

    fn serve(&self, module: &str, node: &str, floating: &str) -> RequestResult {
        self.send(module, &["--node", node, "--epoch", "1", "--floating", floating])
    }

    fn send(&self, module: &str, more: &[&str]) -> RequestResult {
        let package = self.lab.package(module, &self.user).unwrap();
        let url = self.lab.publish("sender", &package).unwrap();
        let (file, to) = (package.path.to_string_lossy().into_owned(), self.lab.v4("receiver").to_string());
        request_as(&self.lab, &self.user, &[&["setup", &file, "--to", &to, "--url", &url], more].concat())
    }

    fn status(&self, node: &str) -> Option<ModuleStatus> {
        self.lab.modules(node).unwrap().modules.into_iter().next()
    }

    /// Asserts that both addresses answer, by a route of the node's own and by those that bird made of it.
    fn assert_led_to(&self, node: &str, router: &str, next: &str) {
        eventually("the node has its routes", || self.routes(node).len() == FLOATING.len());
        for address in addresses() {
            eventually(&format!("{address} leads to {next}"), || self.leads_to(router, address, next));
            eventually(&format!("{address} answers on {node}"), || self.pings("receiver", address));
        }
    }

    fn pings(&self, machine: &str, address: IpAddr) -> bool {
        let mut ping = self.lab.command(machine, "ping");
        ping.args(["-c", "1", "-W", "1", &address.to_string()]).output().unwrap().status.success()
    }

    fn asks(&self, machine: &str, address: IpAddr) -> bool {
        let url = format!("http://{}/", std::net::SocketAddr::new(address, 80));
        let mut curl = self.lab.command(machine, "curl");
        curl.args(["-s", "-f", "-m", "2", &url]).output().unwrap().status.success()
    }

    fn leads_to(&self, machine: &str, address: IpAddr, neighbour: &str) -> bool {
        let route = self.lab.run(machine, "ip", &["route", "get", &address.to_string()]);
        route.is_ok_and(|shown| String::from_utf8_lossy(&shown.stdout).contains(&format!("dev to-{neighbour} ")))
    }

    /// Returns the routes of floating addresses on a node.
    fn routes(&self, node: &str) -> Vec<String> {
        let shown = |version: &str| {
            let output = self.lab.run(node, "ip", &[version, "route", "show", "proto", "79"]).unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        (shown("-4") + &shown("-6")).lines().map(str::to_owned).collect()
    }

    /// Returns how many packets for floating addresses the module counted on a node, or before it came there.
    fn counted(&self, node: &str) -> u64 {
        let counters = self.status(node).map(|status| status.counters).unwrap_or_default();
        let floats = |name: &str| FLOATING.iter().any(|address| name.contains(&format!(" {address} ")));
        counters.iter().filter(|(name, _)| floats(name)).map(|(_, count)| count).sum()
    }
}

fn addresses() -> Vec<IpAddr> {
    FLOATING.iter().map(|text| text.parse().unwrap()).collect()
}
