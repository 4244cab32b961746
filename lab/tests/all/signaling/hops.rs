// SPDX-License-Identifier: Apache-2.0
//! What `netserv path` says of the ways between nodes, by real nodes.

use std::time::Duration;

use netserv_lab::netns::{Lab, is_root};
use netserv_lab::topology::{Impairment, Kind, Topology};
use netserv_model::Flavour;
use netserv_model::api::RequestResult;
use netserv_model::request::{HopProof, NodeReport, PathEnd};
use netserv_skips::skipped;

/// How long a packet is under way between `r` and `n2`.
const DELAY: Duration = Duration::from_millis(15);

/// Goal: each node of a path comes with the round trip from the node before it, the IP hops between the two, by what it is
/// proven, and what it offers; on the way back, too; over IPv4 and IPv6. Method: `sender – n1 – r – n2 – n3 – receiver`, where
/// `r` is a plain router and its link to `n2` is long; each path is asked for twice, since the second one finds connections.
#[test]
fn a_path_says_how_far_nodes_are_from_each_other_and_by_what_they_are_proven() {
    let test = "a_path_says_how_far_nodes_are_from_each_other_and_by_what_they_are_proven";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    let chain = [
        ("sender", Kind::Host),
        ("n1", Kind::Node),
        ("r", Kind::Router),
        ("n2", Kind::Node),
        ("n3", Kind::Node),
        ("receiver", Kind::Host),
    ];
    let mut topology = Topology::chain(&chain);
    let long = topology.links.iter_mut().find(|link| (&*link.a, &*link.b) == ("r", "n2")).unwrap();
    long.impairment = Impairment { delay: DELAY, ..Impairment::default() };
    let mut lab = Lab::up(topology).unwrap();
    for node in ["n1", "n2", "n3"] {
        lab.start_netservd(node, "node", &[], "").unwrap();
    }
    lab.start_netservd("sender", "host", &[], "").unwrap();
    for to in [lab.v4("receiver").to_string(), lab.v6("receiver").to_string()] {
        for _ in 0..2 {
            let result = lab.request("sender", &["path", &to, "--round-trip"]).unwrap();
            assert_eq!((&result.incomplete, result.end), (&None, Some(PathEnd::Unreachable)), "{result:?}");
            let there = [("sender", None), ("n1", Some(1)), ("n2", Some(2)), ("n3", Some(1))];
            check(&result, &result.nodes, &there, "n2");
            let back = result.returned.clone().unwrap();
            assert_eq!((&back.incomplete, back.end), (&None, Some(PathEnd::Destination)), "{result:?}");
            check(&result, &back.nodes, &[("n2", Some(1)), ("n1", Some(2)), ("sender", Some(1))], "n1");
        }
    }
    let to = lab.v4("receiver").to_string();
    let output = lab.try_netserv("sender", &["path", &to]).unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    println!("{shown}");
    let line = shown.lines().find(|line| line.contains(" n2 ")).unwrap();
    let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!((cells[0], cells[1], cells[4], cells[5]), ("3", "n2", "2", "association"), "{shown}");
    assert!(cells[6].starts_with("wasm"), "{shown}");
    assert!(shown.contains("blocks: ") && shown.contains("kv>=1"), "{shown}");
}

/// Checks which nodes there are and how many IP hops each is from the one before; the way to `far` is over the long link.
fn check(result: &RequestResult, nodes: &[NodeReport], expected: &[(&str, Option<u8>)], far: &str) {
    let hops: Vec<_> =
        nodes.iter().map(|node| (node.node.as_str(), node.hop.as_ref().and_then(|hop| hop.ip_hops))).collect();
    assert_eq!(hops, expected, "{result:?}");
    for node in nodes.iter().filter(|node| node.hop.is_some()) {
        let hop = node.hop.as_ref().unwrap();
        assert_eq!((hop.proof, &hop.tls_name), (Some(HopProof::Association), &None), "{node:?}");
        let rtt = Duration::from_micros(hop.rtt_us.unwrap());
        let least = if node.node.as_str() == far { DELAY * 2 } else { Duration::from_micros(1) };
        assert!(rtt >= least && rtt <= Duration::from_micros(result.took_us), "{rtt:?}: {result:?}");
    }
    for node in nodes.iter().filter(|node| node.node.as_str() != "sender") {
        assert!(node.environments.iter().any(|runs| runs.flavour == Flavour::Wasm), "{node:?}");
        assert!(node.blocks.iter().any(|block| block.to_string().starts_with("kv>=")), "{node:?}");
    }
}
