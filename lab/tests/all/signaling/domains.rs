// SPDX-License-Identifier: Apache-2.0
//! Domains and nodes beside the path, by real nodes: who learns what at a border, and who gets a module by a hose.

use crate::common::request_as;
use netserv_lab::netns::{Lab, is_root};
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::topology::{Impairment, Kind, Link, Machine, Topology};
use netserv_model::RefusalKind;
use netserv_model::request::Outcome;
use netserv_skips::skipped;

/// Goal: a stranger outside learns of the first domain that there are two nodes, and all of the second, which has no border;
/// its SETUP stops at the border; a user inside sees everything, over IPv4 and IPv6; a reload opens the border. Method: `outside –
/// a1 – a2 – b1 – b2 – receiver` with `inside` behind `a2`.
#[test]
fn strangers_outside_learn_what_the_border_shows_and_users_inside_see_all() {
    let test = "strangers_outside_learn_what_the_border_shows_and_users_inside_see_all";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    let ends = [("outside", "a1"), ("a1", "a2"), ("a2", "b1"), ("b1", "b2"), ("b2", "receiver"), ("inside", "a1")];
    let mut lab = Lab::up(net(&["outside", "receiver", "inside"], &["a1", "a2", "b1", "b2"], &ends)).unwrap();
    let own = [format!("{}/32", lab.v4("inside")), format!("{}/128", lab.v6("inside"))];
    let user = lab.user("janedoe", &[&own[0], &own[1]]).unwrap();
    // Links are numbered from 1: those of a1 to a2 and to the host inside are the domain's.
    let border = |show: &str| {
        let inside = ["10.2.0.0/24", "fd00:2::/64", "10.6.0.0/24", "fd00:6::/64"];
        let rule =
            |prefix: &&str| format!("[[signaling.domain.neighbour]]\nside = \"inside\"\nprefix = \"{prefix}\"\n");
        let rules: String = inside.iter().map(rule).collect();
        format!("{FILES_ALLOWED}[signaling.domain]\nshow = \"{show}\"\ntake = {{ setup = [], remove = [] }}\n{rules}")
    };
    for node in ["a1", "a2", "b1", "b2"] {
        let extra = if node == "a1" { border("count") } else { FILES_ALLOWED.to_owned() };
        lab.start_netservd(node, "node", std::slice::from_ref(&user), &extra).unwrap();
    }
    for host in ["outside", "inside"] {
        lab.start_netservd(host, "host", &[], "").unwrap();
    }
    let names = |result: &netserv_model::api::RequestResult| -> Vec<String> {
        let nodes = result.nodes.iter().map(|node| node.node.to_string());
        nodes.filter(|name| name != "outside" && name != "inside").collect()
    };
    for to in [lab.v4("receiver").to_string(), lab.v6("receiver").to_string()] {
        let result = lab.request("outside", &["probe", "--to", &to]).unwrap();
        assert_eq!((names(&result), result.withheld.nodes, result.withheld.refused), (vec![], 4, 0), "{result:?}");
        assert!(result.end.is_some(), "its end is proven all the same");
        assert_eq!(lab.try_netserv("outside", &["probe", "--to", &to]).unwrap().status.code(), Some(6));
        let result = lab.request("inside", &["probe", "--to", &to]).unwrap();
        assert_eq!(
            (names(&result), result.withheld.nodes),
            (vec!["a1", "a2", "b1", "b2"].into_iter().map(str::to_owned).collect(), 0)
        );
    }
    let key = user.key.to_string_lossy().into_owned();
    let to = lab.v4("receiver").to_string();
    let remove = ["remove", "example.org/m", "--to", &to, "--user", &user.name, "--key", &key];
    let result = lab.request("outside", &remove).unwrap();
    assert_eq!((result.nodes.len(), result.withheld.nodes, result.withheld.refused), (0, 1, 1), "{result:?}");
    assert_eq!(result.incomplete.map(|refusal| refusal.kind), Some(RefusalKind::OutsideDomain));
    let file = lab.dir().join("a1.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("show = \"count\"", "show = \"border\"")).unwrap();
    let reloaded = String::from_utf8(lab.netserv("a1", &["node", "reload"]).unwrap().stdout).unwrap();
    assert!(reloaded.contains("signaling.domain.show"), "{reloaded}");
    let result = lab.request("outside", &["probe", "--to", &to]).unwrap();
    assert_eq!((names(&result), result.withheld.nodes), (vec!["a1".to_owned()], 3), "{result:?}");
}

/// Goal: a node beside the path has the module after a SETUP with `hose:1`, and loses it by a REMOVE, with the same shape over IPv4
/// and without one over IPv6; two hops away nothing comes. Method: `sender – n1 – n2 – receiver`, with `n1 – x – y` beside it.
#[test]
fn a_hose_brings_a_module_beside_the_path_and_takes_it_away() {
    let test = "a_hose_brings_a_module_beside_the_path_and_takes_it_away";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    let ends = [("sender", "n1"), ("n1", "n2"), ("n2", "receiver"), ("n1", "x"), ("x", "y")];
    let mut lab = Lab::up(net(&["sender", "receiver"], &["n1", "n2", "x", "y"], &ends)).unwrap();
    let own = [format!("{}/32", lab.v4("sender")), format!("{}/128", lab.v6("sender"))];
    let user = lab.user("janedoe", &[&own[0], &own[1]]).unwrap();
    for (node, next) in [("n1", Some("x")), ("n2", None), ("x", Some("y")), ("y", None)] {
        let list = next.map(|next| format!("\"{}\", \"{}\"", lab.v4(next), lab.v6(next))).unwrap_or_default();
        let extra = format!("{FILES_ALLOWED}[signaling]\nneighbours = [{list}]\n");
        lab.start_netservd(node, "node", std::slice::from_ref(&user), &extra).unwrap();
    }
    lab.start_netservd("sender", "host", &[], "").unwrap();
    lab.serve_http("sender").unwrap();
    let package = lab.package("net-monitor", &user).unwrap();
    let url = lab.publish("sender", &package).unwrap();
    let file = package.path.to_string_lossy().into_owned();
    let name = package.module.split('@').next().unwrap();
    let has = |lab: &Lab, node: &str| !lab.modules(node).unwrap().modules.is_empty();
    for (from, to) in [
        (lab.v4("sender").to_string(), lab.v4("receiver").to_string()),
        (lab.v6("sender").to_string(), lab.v6("receiver").to_string()),
    ] {
        let filter = format!("udp src {from}");
        let setup = ["setup", &file, "--to", &to, "--url", &url, "--filter", &filter, "--off-path", "hose:1"];
        let result = request_as(&lab, &user, &setup);
        crate::common::assert_nodes(&result, |outcome| matches!(outcome, Outcome::Installed { .. }));
        let beside: Vec<(&str, u8)> =
            result.beside.nodes.iter().map(|beside| (beside.report.node.as_str(), beside.hops)).collect();
        assert_eq!(beside, [("x", 1)], "{result:?}");
        assert!(has(&lab, "x") && !has(&lab, "y"));
        // A REMOVE follows its SETUP, whether it says so or not.
        let shape: &[&str] = if from == lab.v4("sender").to_string() { &["--off-path", "hose:1"] } else { &[] };
        let result = request_as(&lab, &user, &[&["remove", name, "--to", &to], shape].concat());
        assert!(result.beside.nodes.iter().any(|beside| beside.report.outcome == Outcome::Removed), "{result:?}");
        assert!(!has(&lab, "x") && !has(&lab, "n1"));
    }
}

fn net(hosts: &[&str], nodes: &[&str], ends: &[(&str, &str)]) -> Topology {
    let machine = |kind: Kind| move |name: &&str| Machine { name: (*name).to_owned(), kind };
    let link =
        |(a, b): &(&str, &str)| Link { a: (*a).to_owned(), b: (*b).to_owned(), impairment: Impairment::default() };
    let machines = hosts.iter().map(machine(Kind::Host)).chain(nodes.iter().map(machine(Kind::Node))).collect();
    Topology { machines, links: ends.iter().map(link).collect() }
}
