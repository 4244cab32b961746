// SPDX-License-Identifier: Apache-2.0
//! Control messages over real nodes: what a user tells running modules, and what they tell back.

use std::process::Command;
use std::time::Duration;

use crate::common::{eventually, request_as};
use netserv_lab::netns::{Lab, is_root, program};
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::node::{LabUser, module_bundle};
use netserv_lab::topology::{Kind, Topology};
use netserv_model::api::RequestResult;
use netserv_model::request::{ModuleState, Outcome, PathEnd};
use netserv_model::{Flavour, RefusalKind};
use netserv_skips::skipped;

const NODES: [&str; 3] = ["n1", "n2", "n3"];
const MONITOR: &str = "example.org/net-monitor";

/// Goal: a message reaches the module on each of three nodes, and what the modules say to it reaches the requester's host, over
/// IPv4 and IPv6; they know what each node's operator wrote of it. What came before, what is out of order, of others, for other nodes, or for modules without an inbox has its own
/// outcome on each node, and a TELL is no slower than a PROBE that asks nothing of modules, within a factor.
#[test]
fn three_nodes_are_told_and_tell_back() {
    told_and_tell_back("three_nodes_are_told_and_tell_back", Flavour::Wasm);
}

/// As the one above, with bundles.
#[test]
fn bundles_on_three_nodes_are_told_and_tell_back() {
    told_and_tell_back("bundles_on_three_nodes_are_told_and_tell_back", Flavour::Osgi);
}

fn told_and_tell_back(test: &str, flavour: Flavour) {
    let Some(mut net) = Net::up(test, flavour) else { return };
    let mut watch = Command::new(program("netserv").unwrap());
    watch.arg("--socket").arg(net.lab.socket("sender")).args(["watch", "--user", "janedoe"]).env("NO_COLOR", "1");
    net.lab.start("sender", "watch", &mut watch).unwrap();
    eventually("netserv watches", || net.lab.log("sender", "watch").contains("watching, ends with Ctrl-C"));
    for (six, sample) in [(false, "0"), (true, "7")] {
        net.six = six;
        net.install("net-monitor");
        check(&net.tell(&["--topic", "sample", sample]), |outcome| *outcome == Outcome::Told);
        for node in NODES {
            eventually("the module's answer is shown", || {
                let log = net.lab.log("sender", "watch");
                let words = ["module-message", node, "janedoe", MONITOR];
                let says = format!("sample: sample is {sample}");
                log.lines().any(|line| line.ends_with(&says) && words.iter().all(|word| line.contains(word)))
            });
        }
    }
    net.six = false;
    check(&net.tell(&["--topic", "where", ""]), |outcome| *outcome == Outcome::Told);
    for node in NODES {
        let says = format!("where: {node} in rack of {node}, uplink 10G");
        eventually("the module knows where it is", || net.lab.log("sender", "watch").contains(&says));
    }

    // Numbers from here on are the test's own.
    let most = u64::MAX.to_string();
    let other = net.tell(&["--topic", "sample", "1", "--seq", &most, "--node", "n2"]);
    let outcomes: Vec<&Outcome> = other.nodes.iter().map(|node| &node.outcome).collect();
    // What is for one node alone goes no further.
    assert!(matches!(outcomes[..], [Outcome::NotTargeted { .. }, Outcome::Told]), "{other:?}");
    assert_eq!(other.end, Some(PathEnd::Named), "{other:?}");
    for seq in [most.as_str(), "3"] {
        let again = net.tell(&["--topic", "sample", "1", "--seq", seq, "--node", "n2"]);
        assert_eq!(refused(&again, "n2"), Some(RefusalKind::OldSequence), "{again:?}");
    }
    let john = net.request_as(&net.other, &["tell", MONITOR, "--topic", "sample", "1"]);
    check(&john, |outcome| kind(outcome) == Some(RefusalKind::NotInstalled));
    net.install("keep-alive");
    let keep_alive = ["tell", "example.org/keep-alive", "--topic", "a", "b"];
    check(&net.request_as(&net.user, &keep_alive), |outcome| kind(outcome) == Some(RefusalKind::NoInbox));

    let times = |args: &[&str]| {
        let took = |_| {
            std::thread::sleep(Duration::from_millis(100));
            net.request_as(&net.user, args).took_us
        };
        let mut times: Vec<u64> = (0..15).map(took).collect();
        times.sort_unstable();
        times
    };
    let probes = times(&["probe"]);
    let tells = times(&["tell", MONITOR, "--topic", "sample", "1", "--node", "n1,n3"]);
    println!("us, sorted: PROBE {probes:?}, TELL {tells:?}");
    let (probe, tell) = (probes[7], tells[7]);
    assert!(tell <= 10_000.max(5 * probe), "a TELL takes {tell} us, a PROBE {probe} us");
}

/// Goal: the last message of a topic is what the module begins with on a node that was killed and started anew, and still counts
/// against messages from before.
#[test]
fn the_last_message_of_a_topic_outlives_its_node() {
    last_message_outlives_its_node("the_last_message_of_a_topic_outlives_its_node", Flavour::Wasm);
}

/// As the one above, with a bundle.
#[test]
fn the_last_message_to_a_bundle_outlives_its_node() {
    last_message_outlives_its_node("the_last_message_to_a_bundle_outlives_its_node", Flavour::Osgi);
}

fn last_message_outlives_its_node(test: &str, flavour: Flavour) {
    let Some(mut net) = Net::up(test, flavour) else { return };
    net.install("net-monitor");
    let told = |net: &Net| net.lab.log("n1", "netservd").matches("event=\"module-message\"").count();
    check(&net.tell(&["--topic", "sample", "5", "--seq", "10"]), |outcome| *outcome == Outcome::Told);
    check(&net.tell(&["--topic", "sample", "6", "--seq", "11"]), |outcome| *outcome == Outcome::Told);
    check(&net.tell(&["--topic", "other", "x", "--seq", "12"]), |outcome| *outcome == Outcome::Told);
    eventually("the module answered", || told(&net) == 3);
    net.lab.kill("n1", "netservd").unwrap();
    net.lab.restart_netservd("n1").unwrap();
    let runs = |net: &Net| {
        let modules = net.lab.modules("n1").unwrap().modules;
        modules.iter().any(|module| module.state == ModuleState::Running)
    };
    eventually("it runs again", || runs(&net));
    // One of each topic.
    eventually("the module was told again", || told(&net) % 3 == 2);
    let kept = |args: &[&str]| refused(&net.tell(args), "n1");
    // What was made in the second in which the node started is stale.
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(kept(&["--topic", "sample", "7", "--seq", "12"]), Some(RefusalKind::OldSequence));
    assert_eq!(kept(&["--topic", "sample", "7", "--seq", "13"]), None);
    let outcome = |net: &Net| net.request_as(&net.user, &["remove", MONITOR]);
    check(&outcome(&net), |outcome| *outcome == Outcome::Removed);
    check(&net.tell(&["--topic", "sample", "7"]), |outcome| kind(outcome) == Some(RefusalKind::NotInstalled));
}

/// `sender – n1 – n2 – n3 – receiver` with daemons.
struct Net {
    lab: Lab,
    user: LabUser,
    other: LabUser,
    six: bool,
    flavour: Flavour,
}

impl Net {
    fn up(test: &str, flavour: Flavour) -> Option<Net> {
        if !is_root() {
            skipped(test, "not root, so no namespaces");
            return None;
        }
        if flavour == Flavour::Osgi && module_bundle("net-monitor").is_err() {
            skipped(test, "the Java parts are not built; `./dev build` builds them");
            return None;
        }
        let mut chain = vec![("sender", Kind::Host)];
        chain.extend(NODES.map(|node| (node, Kind::Node)));
        chain.push(("receiver", Kind::Host));
        let mut lab = Lab::up(Topology::chain(&chain)).unwrap();
        let own = [format!("{}/32", lab.v4("sender")), format!("{}/128", lab.v6("sender"))];
        let user = lab.user("janedoe", &[&own[0], &own[1]]).unwrap();
        let other = lab.user("john", &["192.0.2.0/24"]).unwrap();
        for node in NODES {
            let about = format!("[about]\nplace = 'rack of {node}'\nfacts = {{ uplink = '10G' }}\n");
            let flavours = format!("flavours = ['{flavour}']\n");
            let config = format!("{flavours}{FILES_ALLOWED}\n{about}");
            lab.start_netservd(node, "node", &[user.clone(), other.clone()], &config).unwrap();
        }
        lab.start_netservd("sender", "host", &[], "").unwrap();
        lab.serve_http("sender").unwrap();
        Some(Net { lab, user, other, six: false, flavour })
    }

    fn install(&self, module: &str) {
        let package = self.lab.package_in(module, &[self.flavour], &self.user).unwrap();
        let url = self.lab.publish("sender", &package).unwrap();
        let file = package.path.to_string_lossy().into_owned();
        let filter = match self.six {
            false => format!("udp dst {}/32 port 5060", self.lab.v4("sender")),
            true => format!("udp dst {}/128 port 5060", self.lab.v6("sender")),
        };
        let result = self.request_as(&self.user, &["setup", &file, "--url", &url, "--filter", &filter]);
        check(&result, |outcome| outcome.lease_s().is_some());
    }

    fn tell(&self, args: &[&str]) -> RequestResult {
        self.request_as(&self.user, &[&["tell", MONITOR], args].concat())
    }

    fn request_as(&self, user: &LabUser, args: &[&str]) -> RequestResult {
        let to = if self.six { self.lab.v6("receiver").to_string() } else { self.lab.v4("receiver").to_string() };
        request_as(&self.lab, user, &[args, &["--to", &to]].concat())
    }
}

/// Asserts that all nodes answered, each with what is expected.
#[track_caller]
fn check(result: &RequestResult, expected: impl Fn(&Outcome) -> bool) {
    let names: Vec<&str> = result.nodes.iter().map(|node| node.node.as_str()).collect();
    assert_eq!((&names[..], &result.incomplete), (&NODES[..], &None));
    assert!(result.nodes.iter().all(|node| expected(&node.outcome)), "{result:?}");
}

fn refused(result: &RequestResult, node: &str) -> Option<RefusalKind> {
    result.nodes.iter().find(|report| report.node.as_str() == node).and_then(|report| kind(&report.outcome))
}

fn kind(outcome: &Outcome) -> Option<RefusalKind> {
    if let Outcome::Refused(refusal) = outcome { Some(refusal.kind) } else { None }
}
