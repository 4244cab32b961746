// SPDX-License-Identifier: Apache-2.0
//! Which nodes a request is for, the way back, many paths at once, and nodes that come back, by real nodes.

use std::time::{Duration, Instant};

use crate::common::{eventually, request_as};
use netserv_lab::netns::{Lab, is_root};
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::node::{LabPackage, LabUser};
use netserv_lab::patience::grown;
use netserv_lab::topology::{Impairment, Kind, Link, Machine, Topology};
use netserv_model::api::RequestResult;
use netserv_model::request::{NodeReport, Outcome, PathEnd};
use netserv_skips::skipped;

/// Goal: `--round-trip` installs on each node of the way there and of the way back, which leads over another node, and REMOVE
/// with it removes there; over IPv4 and IPv6; `--return-only` does so on the way back alone. Method: `sender – n1 – na – r – n2 – receiver` there, `r – nb – n1` back; `r` is
/// a plain router that sends no ICMP.
#[test]
fn a_round_trip_installs_on_both_ways_where_they_differ() {
    let test = "a_round_trip_installs_on_both_ways_where_they_differ";
    let routers = ["r"];
    let ends =
        [("sender", "n1"), ("n1", "na"), ("n1", "nb"), ("na", "r"), ("nb", "r"), ("r", "n2"), ("n2", "receiver")];
    let Some((lab, user)) = up(test, &["n1", "na", "nb", "n2"], &routers, &ends) else { return };
    for (program, family) in [("iptables", "icmp"), ("ip6tables", "icmpv6")] {
        for error in ["destination-unreachable", "time-exceeded"] {
            let option = format!("--{family}-type");
            lab.run("r", program, &["-A", "OUTPUT", "-p", family, &option, error, "-j", "DROP"]).unwrap();
        }
    }
    // What is for the sender and for `n1` goes back over `nb`.
    lead(&lab, "r", ("nb", "r"), ("sender", "n1"));
    lead(&lab, "n1", ("n1", "na"), ("n2", "receiver"));
    let (package, url) = published(&lab, &user);
    let file = package.path.to_string_lossy().into_owned();
    let name = package.module.split('@').next().unwrap();
    for six in [false, true] {
        let (from, to) = (address(&lab, "sender", six), address(&lab, "receiver", six));
        let filter = format!("udp src {from}");
        let setup = ["setup", &file, "--to", &to, "--url", &url, "--filter", &filter, "--round-trip"];
        let result = request_as(&lab, &user, &setup);
        assert_eq!(names(&result.nodes), ["n1", "na", "n2"], "{result:?}");
        assert_eq!((&result.incomplete, result.end), (&None, Some(PathEnd::Unreachable)), "{result:?}");
        let back = result.returned.clone().unwrap();
        assert_eq!(names(&back.nodes), ["nb", "n1"], "{result:?}");
        assert_eq!((&back.incomplete, back.end), (&None, Some(PathEnd::Destination)), "{result:?}");
        let all: Vec<&NodeReport> = result.nodes.iter().chain(&back.nodes).collect();
        assert!(all.iter().all(|node| node.outcome.lease_s().is_some()), "{all:?}");
        for node in ["n1", "na", "n2", "nb"] {
            assert_eq!(lab.modules(node).unwrap().modules.len(), 1, "{node}");
        }
        request_as(&lab, &user, &["remove", name, "--to", &to, "--round-trip"]);
        for node in ["n1", "na", "n2", "nb"] {
            eventually("the module is gone on both ways", || lab.modules(node).unwrap().modules.is_empty());
        }
        let setup = ["setup", &file, "--to", &to, "--url", &url, "--filter", &filter, "--return-only"];
        let result = request_as(&lab, &user, &setup);
        assert_eq!(names(&result.nodes), ["n1", "na", "n2"], "{result:?}");
        assert!(result.nodes.iter().all(|node| node.outcome.is_not_targeted()), "{result:?}");
        let back = result.returned.clone().unwrap();
        assert_eq!((names(&back.nodes), &back.incomplete), (vec!["n2", "nb", "n1"], &None), "{result:?}");
        assert!(back.nodes.iter().all(|node| node.outcome.lease_s().is_some()), "{result:?}");
        for (node, count) in [("n1", 1), ("na", 0), ("n2", 1), ("nb", 1)] {
            assert_eq!(lab.modules(node).unwrap().modules.len(), count, "{node}");
        }
        request_as(&lab, &user, &["remove", name, "--to", &to, "--return-only"]);
        for node in ["n1", "n2", "nb"] {
            eventually("the module is gone on the way back", || lab.modules(node).unwrap().modules.is_empty());
        }
        let result = lab.request("sender", &["path", &to, "--round-trip"]).unwrap();
        let back = result.returned.unwrap();
        let shown = (names(&result.nodes), names(&back.nodes));
        assert_eq!(shown, (vec!["sender", "n1", "na", "n2"], vec!["nb", "n1", "sender"]));
    }
}

/// Goal: a request is for the places, names and conditions that it says, and the other nodes pass it on and have nothing; one
/// that is for nobody ends with code 6; over IPv4 and IPv6. Method: `sender – n1 – n2 – n3 – receiver`.
#[test]
fn a_request_is_for_the_places_names_and_conditions_that_it_says() {
    let test = "a_request_is_for_the_places_names_and_conditions_that_it_says";
    let nodes = ["n1", "n2", "n3"];
    let Some((lab, user)) = chain(test, &nodes) else { return };
    let (package, url) = published(&lab, &user);
    let file = package.path.to_string_lossy().into_owned();
    let name = package.module.split('@').next().unwrap();
    let cases: [(&[&str], &[&str]); 9] = [
        (&["--scope", "first"], &["n1"]),
        (&["--scope", "last"], &["n3"]),
        (&["--scope", "all"], &["n1", "n2", "n3"]),
        (&["--scope", "edge"], &["n1", "n3"]),
        (&["--node", "n2"], &["n2"]),
        (&["--node", "n1,n3", "--scope", "last"], &["n3"]),
        (&["--require", "flavour=wasm,memory>=1M"], &["n1", "n2", "n3"]),
        (&["--require", "memory>=4096G"], &[]),
        (&["--scope", "first", "--node", "n3"], &[]),
    ];
    for six in [false, true] {
        let (from, to) = (address(&lab, "sender", six), address(&lab, "receiver", six));
        let filter = format!("udp src {from}");
        for (args, expected) in cases {
            let setup = ["setup", &file, "--to", &to, "--url", &url, "--filter", &filter];
            let result = request_as(&lab, &user, &[&setup[..], args].concat());
            assert_eq!((names(&result.nodes), result.end), (nodes.to_vec(), Some(PathEnd::Unreachable)), "{args:?}");
            for node in &result.nodes {
                let is_meant = expected.contains(&node.node.as_str());
                let did = if is_meant { node.outcome.lease_s().is_some() } else { node.outcome.is_not_targeted() };
                assert!(did, "{args:?}: {node:?}");
                assert_eq!(
                    !lab.modules(node.node.as_str()).unwrap().modules.is_empty(),
                    is_meant,
                    "{args:?}: {node:?}"
                );
            }
            let key = user.key.to_string_lossy().into_owned();
            let probe = ["probe", "--to", &to, "--user", &user.name, "--key", &key];
            let code = lab.try_netserv("sender", &[&probe[..], args].concat()).unwrap().status.code();
            assert_eq!(code, Some(if expected.is_empty() { 6 } else { 0 }), "{args:?}");
            request_as(&lab, &user, &["remove", name, "--to", &to]);
            for node in nodes {
                eventually("the module is gone", || lab.modules(node).unwrap().modules.is_empty());
            }
        }
    }
}

/// Goal: a request for one node of a round trip, or of its way back alone, ends with code 0, and that node alone has the module; over
/// IPv4 and IPv6. Method: `sender – n1 – n2 – n3 – receiver`.
#[test]
fn a_round_trip_for_one_node_ends_well() {
    let test = "a_round_trip_for_one_node_ends_well";
    let nodes = ["n1", "n2", "n3"];
    let Some((lab, user)) = chain(test, &nodes) else { return };
    let (package, url) = published(&lab, &user);
    let (file, key) = (package.path.to_string_lossy().into_owned(), user.key.to_string_lossy().into_owned());
    let name = package.module.split('@').next().unwrap();
    for six in [false, true] {
        let (from, to) = (address(&lab, "sender", six), address(&lab, "receiver", six));
        let filter = format!("udp src {from}");
        for way in ["--round-trip", "--return-only"] {
            for node in nodes {
                let more = ["--to", &to, way, "--node", node, "--user", &user.name, "--key", &key];
                let setup = ["setup", &file, "--url", &url, "--filter", &filter];
                for request in [&setup[..], &["remove", name]] {
                    let output = lab.try_netserv("sender", &[request, &more].concat()).unwrap();
                    let said = String::from_utf8_lossy(&output.stdout);
                    assert_eq!(output.status.code(), Some(0), "six {six}: {request:?} {way} {node}: {said}");
                    let is_to_have = |at: &str| request[0] == "setup" && at == node;
                    eventually("that node alone has it", || nodes.iter().all(|at| has(&lab, at) == is_to_have(at)));
                }
            }
        }
    }
}

/// Goal: twenty paths asked for at once to one host with Linux's default limit of ICMP errors are all true: whole, or they say
/// why they are not; and at least three in four are whole, over IPv4 and IPv6. Method: `sender – n1 – n2 – receiver`.
#[test]
fn twenty_paths_at_once_to_one_host_are_whole_or_say_why_not() {
    let test = "twenty_paths_at_once_to_one_host_are_whole_or_say_why_not";
    let nodes = ["n1", "n2"];
    let Some((lab, _)) = chain(test, &nodes) else { return };
    // The default of Linux; labs have no limit otherwise.
    lab.run("receiver", "sysctl", &["-qw", "net.ipv4.icmp_ratelimit=1000", "net.ipv6.icmp.ratelimit=1000"]).unwrap();
    for six in [false, true] {
        let to = address(&lab, "receiver", six);
        let results: Vec<RequestResult> = std::thread::scope(|scope| {
            let asking: Vec<_> =
                (0..PATHS).map(|_| scope.spawn(|| lab.request("sender", &["path", &to]).unwrap())).collect();
            asking.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut whole = 0;
        for result in &results {
            let found: Vec<&str> = names(&result.nodes).into_iter().filter(|name| *name != "sender").collect();
            match (&result.incomplete, result.end) {
                (None, Some(_)) => {
                    assert_eq!(found, nodes, "{result:?}");
                    whole += 1;
                }
                (Some(why), None) => assert!(!why.detail.is_empty(), "{result:?}"),
                (_, _) => panic!("neither whole nor incomplete: {result:?}"),
            }
        }
        let slowest = results.iter().map(|result| result.took_us).max().unwrap();
        println!("six {six}: {whole} of {PATHS} whole, the slowest after {slowest} µs");
        assert!(whole * 4 >= PATHS * 3, "{whole} of {PATHS} are whole");
    }
}

/// How many paths are asked for at once.
const PATHS: usize = 20;

/// Goal: a node that stops and starts again is on later stacks again, at once; its module runs there again within one refresh of
/// GIST's routing state, and later requests refresh it; also after SIGKILL. Method: `sender – n1 – n2 – n3 – receiver`, where
/// `n2` goes and comes.
#[test]
fn a_node_that_comes_back_is_found_and_has_its_module_again() {
    let test = "a_node_that_comes_back_is_found_and_has_its_module_again";
    let nodes = ["n1", "n2", "n3"];
    let Some((mut lab, user)) = chain(test, &nodes) else { return };
    let (package, url) = published(&lab, &user);
    let file = package.path.to_string_lossy().into_owned();
    for six in [false, true] {
        let (from, to) = (address(&lab, "sender", six), address(&lab, "receiver", six));
        let filter = format!("udp src {from}");
        let setup = ["setup", &file, "--to", &to, "--url", &url, "--filter", &filter, "--ttl", "600"];
        let result = request_as(&lab, &user, &setup);
        assert_eq!((names(&result.nodes), result.end), (nodes.to_vec(), Some(PathEnd::Unreachable)), "{result:?}");
        for crash in [false, true] {
            if crash {
                lab.kill("n2", "netservd").unwrap();
            } else {
                lab.stop("n2", "netservd").unwrap();
            }
            // A path without it is not called one with it.
            let path = lab.request("sender", &["path", &to]).unwrap();
            assert!(!names(&path.nodes).contains(&"n2"), "{path:?}");
            lab.restart_netservd("n2").unwrap();
            let begun = Instant::now();
            let path = lab.request("sender", &["path", &to]).unwrap();
            assert_eq!((on_path(&path), path.end), (nodes.to_vec(), Some(PathEnd::Unreachable)), "{path:?}");
            while !has(&lab, "n2") {
                assert!(begun.elapsed() < grown(REFRESH), "n2 has no module {:?} after its start", begun.elapsed());
                std::thread::sleep(Duration::from_millis(50));
            }
            println!("six {six}, crash {crash}: the module is back after {:?}", begun.elapsed());
            // The same lease goes on, for all of them.
            let result = request_as(&lab, &user, &setup);
            let refreshed = |node: &NodeReport| matches!(node.outcome, Outcome::Refreshed { .. });
            assert_eq!((names(&result.nodes), result.end), (nodes.to_vec(), Some(PathEnd::Unreachable)), "{result:?}");
            assert!(result.nodes.iter().all(refreshed), "{result:?}");
        }
        let name = package.module.split('@').next().unwrap();
        request_as(&lab, &user, &["remove", name, "--to", &to]);
        for node in nodes {
            eventually("the module is gone", || !has(&lab, node));
        }
    }
}

/// The validity of GIST's routing state; it is refreshed before that is over.
const REFRESH: Duration = Duration::from_secs(30);

fn has(lab: &Lab, node: &str) -> bool {
    !lab.modules(node).unwrap().modules.is_empty()
}

fn names(nodes: &[NodeReport]) -> Vec<&str> {
    nodes.iter().map(|node| node.node.as_str()).collect()
}

/// Returns the names of a PROBE's answer without the requester's host.
fn on_path(result: &RequestResult) -> Vec<&str> {
    names(&result.nodes).into_iter().filter(|name| *name != "sender").collect()
}

fn address(lab: &Lab, machine: &str, six: bool) -> String {
    if six { lab.v6(machine).to_string() } else { lab.v4(machine).to_string() }
}

fn published(lab: &Lab, user: &LabUser) -> (LabPackage, String) {
    let package = lab.package("net-monitor", user).unwrap();
    let url = lab.publish("sender", &package).unwrap();
    (package, url)
}

/// Has a machine send what is for one link over another, to that one's far end.
fn lead(lab: &Lab, machine: &str, over: (&str, &str), to: (&str, &str)) {
    let topology = lab.topology();
    let number = |ends: (&str, &str)| topology.links.iter().position(|link| (&*link.a, &*link.b) == ends).unwrap();
    let (a, b) = topology.interfaces(number(over));
    let (via, last) = (if a.machine == machine { b } else { a }, number(to) + 1);
    lab.run(machine, "ip", &["-4", "route", "replace", &format!("10.{last}.0.0/24"), "via", &via.v4.to_string()])
        .unwrap();
    lab.run(machine, "ip", &["-6", "route", "replace", &format!("fd00:{last:x}::/64"), "via", &via.v6.to_string()])
        .unwrap();
}

/// Returns `sender – … – receiver` with nodes between.
fn chain(test: &str, nodes: &[&'static str]) -> Option<(Lab, LabUser)> {
    let machines: Vec<&str> = ["sender"].iter().chain(nodes).chain(&["receiver"]).copied().collect();
    let ends: Vec<(&str, &str)> = machines.windows(2).map(|pair| (pair[0], pair[1])).collect();
    up(test, nodes, &[], &ends)
}

/// Returns a network with a `sender` and a `receiver` and its daemons, and the user `janedoe`, who owns the sender's addresses.
fn up(test: &str, nodes: &[&str], routers: &[&str], ends: &[(&str, &str)]) -> Option<(Lab, LabUser)> {
    if !is_root() {
        skipped(test, "not root, so no namespaces");
        return None;
    }
    let machine = |kind: Kind| move |name: &&str| Machine { name: (*name).to_owned(), kind };
    let hosts = ["sender", "receiver"];
    let machines = hosts.iter().map(machine(Kind::Host)).chain(nodes.iter().map(machine(Kind::Node)));
    let machines = machines.chain(routers.iter().map(machine(Kind::Router))).collect();
    let link =
        |(a, b): &(&str, &str)| Link { a: (*a).to_owned(), b: (*b).to_owned(), impairment: Impairment::default() };
    let mut lab = Lab::up(Topology { machines, links: ends.iter().map(link).collect() }).unwrap();
    let own = [format!("{}/32", lab.v4("sender")), format!("{}/128", lab.v6("sender"))];
    let user = lab.user("janedoe", &[&own[0], &own[1]]).unwrap();
    for node in nodes {
        lab.start_netservd(node, "node", std::slice::from_ref(&user), FILES_ALLOWED).unwrap();
    }
    lab.start_netservd("sender", "host", &[], "").unwrap();
    lab.serve_http("sender").unwrap();
    Some((lab, user))
}
