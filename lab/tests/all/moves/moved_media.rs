// SPDX-License-Identifier: Apache-2.0
//! A call goes on while the relay of its media moves to another node, with its address.

use std::net::SocketAddr;
use std::process::Stdio;

use crate::common::store::outcome_of;
use crate::common::{Driver, ask_udp, eventually, request_as};
use netserv_lab::netns::{Lab, is_root, program};
use netserv_lab::node::LabUser;
use netserv_lab::rtp::Told;
use netserv_lab::states::StateStore;
use netserv_lab::topology::Topology;
use netserv_model::request::Outcome;
use netserv_skips::skipped;

const FLOATING: &str = "10.99.9.9";
const MODULE: &str = "example.org/media-relay";
/// A caller sends every 20 ms: what is longer is a gap.
const EACH_MS: u64 = 20;

/// Goal: a call whose relay moves from n1 to n2, with its address, goes on, and between two packets that a caller gets are less than 50 ms
/// more than otherwise. Method: `sender – n1 – r – n2 – receiver`, the caller at the sender, who knows the callee by n1 alone; routes of r
/// to the address change by hand when n2 has the state.
#[test]
fn a_call_goes_on_when_its_relay_moves() {
    let Some(mut net) = Net::up("a_call_goes_on_when_its_relay_moves") else { return };
    let store = StateStore::open(&mut net.lab, "sender").unwrap();
    assert!(matches!(net.setup("sender", "n1", "1", &[]), Outcome::Installed { .. }));
    net.route("n1");
    eventually("the relay answers", || net.pings());
    let echo = SocketAddr::new(net.lab.v4("receiver").into(), 7000);
    let mut command = net.lab.command("receiver", program("netserv-lab").unwrap());
    command.args(["rtp-echo", &echo.to_string()]);
    net.lab.start("receiver", "echo", &mut command).unwrap();
    eventually("there is an echo", || net.lab.log("receiver", "echo").contains("echoing"));
    let local = SocketAddr::new(net.lab.v4("sender").into(), 7000);
    let mut command = net.lab.command("sender", program("netserv-lab").unwrap());
    command.args(["rtp", "--ng", &format!("{FLOATING}:2223"), "--local", &local.to_string()]);
    command.args(["--echo", &echo.to_string(), "--calls", "4", "--seconds", "8"]);
    let calls = command.stdout(Stdio::piped()).spawn().unwrap();
    eventually("calls are relayed on n1", || net.relayed("n1") > 200);

    let to = net.lab.v4("receiver").to_string();
    let export = ["state", "export", MODULE, "--url", &store.url("s"), "--to", &to, "--node", "n1"];
    let exported = outcome_of(&request_as(&net.lab, &net.user, &export), "n1");
    let Outcome::Exported { digest, .. } = exported else { panic!("{exported:?}") };
    let state = ["--state", &store.url("s"), "--state-digest", &digest.to_string()];
    // From the other side, so that n1 does not see it.
    let moved = net.setup("receiver", "n2", "2", &state);
    assert!(matches!(moved, Outcome::Installed { .. }), "{moved:?}");
    net.route("n2");
    let removed = request_as(&net.lab, &net.user, &["remove", MODULE, "--to", &to, "--node", "n1", "--epoch", "2"]);
    assert_eq!(outcome_of(&removed, "n1"), Outcome::Removed);
    eventually("calls are relayed on n2", || net.relayed("n2") > 200);
    assert_eq!(net.calls("n2"), 4);

    let output = calls.wait_with_output().unwrap();
    assert!(output.status.success(), "the calls failed");
    let told: Told = serde_json::from_slice(&output.stdout).unwrap();
    eprintln!("{told:?}");
    assert!(told.gap_ms_max < EACH_MS + 50 && told.received + 20 >= told.sent, "{told:?}");
    eventually("they are deleted on n2", || net.calls("n2") == 0);
}

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
        let user = lab.user("voip", &["10.99.9.0/24"]).unwrap();
        let user = LabUser { extra: "listen = ['udp port 2223']\n".to_owned(), ..user };
        let fetch = StateStore::config(&lab, "sender");
        for (node, prefix) in [("n1", "10.98.1.0/24"), ("n2", "10.98.2.0/24")] {
            let extra = format!("{fetch}[network]\nprefixes = ['{prefix}']\n");
            lab.start_netservd(node, "node", std::slice::from_ref(&user), &extra).unwrap();
        }
        for host in ["sender", "receiver"] {
            lab.start_netservd(host, "host", &[], "").unwrap();
        }
        lab.serve_http("sender").unwrap();
        Some(Net { lab, user })
    }

    /// Installs the module on a node, asked for by a host.
    fn setup(&self, host: &str, node: &str, epoch: &str, more: &[&str]) -> Outcome {
        let package = self.lab.package("media-relay", &self.user).unwrap();
        let url = self.lab.publish("sender", &package).unwrap();
        let to = self.lab.v4(if host == "sender" { "receiver" } else { "r" }).to_string();
        let (file, key) = (package.path.to_string_lossy(), self.user.key.to_string_lossy().into_owned());
        let control = format!("control={}", self.lab.v4("sender"));
        let addresses = format!("addresses={FLOATING}");
        let args =
            ["setup", &file, "--to", &to, "--url", &url, "--node", node, "--epoch", epoch, "--floating", FLOATING];
        let properties = ["--property", &control, "--property", &addresses, "--user", &self.user.name, "--key", &key];
        outcome_of(&self.lab.request(host, &[&args[..], &properties, more].concat()).unwrap(), node)
    }

    /// Leads the address to a node, but on those that have it themselves.
    fn route(&self, node: &str) {
        let links = self.lab.topology().links.len();
        let interfaces: Vec<_> = (0..links).map(|link| self.lab.topology().interfaces(link)).collect();
        // Of each link, its left end and its right one.
        let toward = |machine: &str, via: std::net::Ipv4Addr| {
            let route = ["route", "replace", FLOATING, "via", &via.to_string(), "metric", "100"];
            self.lab.run(machine, "ip", &route).unwrap();
        };
        toward("sender", interfaces[0].1.v4);
        toward("receiver", interfaces[3].0.v4);
        toward("n1", interfaces[1].1.v4);
        toward("n2", interfaces[2].0.v4);
        toward("r", if node == "n1" { interfaces[1].0.v4 } else { interfaces[2].1.v4 });
    }

    fn pings(&self) -> bool {
        ask_udp(&self.lab, "sender", FLOATING.parse().unwrap(), 2223, "1 d7:command4:pinge").is_some()
    }

    fn relayed(&self, node: &str) -> u64 {
        self.counter(node, "packets")
    }

    fn calls(&self, node: &str) -> u64 {
        self.counter(node, "calls")
    }

    fn counter(&self, node: &str, name: &str) -> u64 {
        let modules = self.lab.modules(node).unwrap().modules;
        modules.first().and_then(|status| status.counters.get(name).copied()).unwrap_or(0)
    }
}
