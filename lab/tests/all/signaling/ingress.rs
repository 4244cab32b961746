// SPDX-License-Identifier: Apache-2.0
//! Flows come in only by the interface that the operator names for them (RFC 5971 §5.8.1.2).

use crate::common::Driver;
use netserv_lab::netns::{Lab, is_root};
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::topology::{Kind, Topology};
use netserv_model::api::RequestResult;
use netserv_skips::skipped;

over_each_driver!(a_flow_that_comes_in_where_it_does_not_belong_is_refused);

/// Goal: Queries about flows of other sources are refused and the requester is told, over IPv4 and IPv6; the others are answered.
/// Method: two nodes, each with a rule for the interface toward the sender; the second one's covers the sender, the first one's
/// does at first not.
fn a_flow_that_comes_in_where_it_does_not_belong_is_refused(driver: Driver) {
    let test = "a_flow_that_comes_in_where_it_does_not_belong_is_refused";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    for belongs in [false, true] {
        let chain = [("sender", Kind::Host), ("n1", Kind::Node), ("n2", Kind::Node), ("receiver", Kind::Host)];
        let mut lab = Lab::up(Topology::chain(&chain)).unwrap();
        lab.use_driver(driver.name());
        let (v4, v6) = (lab.v4("sender"), lab.v6("sender"));
        let user = lab.user("janedoe", &[&format!("{v4}/32")]).unwrap();
        let rule = |node: &str, belongs: bool| {
            let end = lab.topology().interfaces_of(node).remove(0);
            let prefixes = if belongs { format!("\"{v4}/24\", \"{v6}/64\"") } else { "\"192.0.2.0/24\"".to_owned() };
            format!("{FILES_ALLOWED}[signaling.ingress]\n{} = [{prefixes}]\n", end.name)
        };
        let rules = [("n1", rule("n1", belongs)), ("n2", rule("n2", true))];
        for (node, rule) in rules {
            lab.start_netservd(node, "node", std::slice::from_ref(&user), &rule).unwrap();
        }
        lab.start_netservd("sender", "host", &[], "").unwrap();
        for receiver in [lab.v4("receiver").to_string(), lab.v6("receiver").to_string()] {
            let output = lab.try_netserv("sender", &["-j", "path", &receiver, "--timeout", "20s"]).unwrap();
            let result: RequestResult = serde_json::from_slice(&output.stdout).unwrap();
            let nodes: Vec<String> = result.nodes.iter().map(|node| node.node.to_string()).collect();
            if belongs {
                assert_eq!(
                    (nodes, output.status.code()),
                    (["sender", "n1", "n2"].map(str::to_owned).to_vec(), Some(0))
                );
                continue;
            }
            let detail = result.incomplete.map(|refusal| refusal.detail).unwrap_or_default();
            assert_eq!((nodes, output.status.code()), (vec!["sender".to_owned()], Some(6)), "{detail}");
            assert!(detail.contains("GIST error 12/2"), "{detail}");
        }
    }
}
