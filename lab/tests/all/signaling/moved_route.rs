// SPDX-License-Identifier: Apache-2.0
//! A module follows the path that it was installed along: real nodes, whose kernels' routes change.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Driver, Net, eventually, publish_bad, request_as};
use netserv_lab::moving::{address, lead_through, up};
use netserv_lab::netns::{Lab, is_root, program};
use netserv_lab::patience::grown;
use netserv_model::request::PathEnd;
use netserv_skips::skipped;

over_one_driver! {
    afxdp: [a_module_goes_where_its_path_leads_and_leaves_where_it_led]
    nfqueue: [watch_shows_at_the_requesters_host_what_happens_along_the_path]
}

/// Goal: within 2 s of a change of routes at the node where two paths part, the other node has the module; the one that the
/// path left has it no more, the requester's host is told, and it works the way back, too. Method: `n1` sends to the receiver
/// through `na`, then through `nb`, then through `na`; over IPv4 and over IPv6.
fn a_module_goes_where_its_path_leads_and_leaves_where_it_led(driver: Driver) {
    let test = "a_module_goes_where_its_path_leads_and_leaves_where_it_led";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    let (lab, user) = up(driver.name()).unwrap();
    let package = lab.package("net-monitor", &user).unwrap();
    let url = lab.publish("sender", &package).unwrap();
    let file = package.path.to_string_lossy().into_owned();
    let has = |lab: &Lab, node: &str| !lab.modules(node).unwrap().modules.is_empty();
    for six in [false, true] {
        let (from, to) = match six {
            false => (lab.v4("sender").to_string(), lab.v4("receiver").to_string()),
            true => (lab.v6("sender").to_string(), lab.v6("receiver").to_string()),
        };
        lead_through(&lab, "na", six).unwrap();
        let filter = format!("udp src {from}");
        let args = ["setup", &file, "--to", &to, "--url", &url, "--filter", &filter, "--ttl", "600"];
        let result = request_as(&lab, &user, &args);
        let names: Vec<&str> = result.nodes.iter().map(|node| node.node.as_str()).collect();
        assert_eq!((names, result.end), (vec!["n1", "na"], Some(PathEnd::Unreachable)), "{result:?}");
        for (way, left) in [("nb", "na"), ("na", "nb")] {
            let told = lab.log("sender", "netservd").matches("route-moved").count();
            let begun = Instant::now();
            lead_through(&lab, way, six).unwrap();
            eventually("the module is on the new path", || has(&lab, way));
            let took = begun.elapsed();
            assert!(took <= grown(Duration::from_secs(2)), "{way} has the module after {took:?}");
            eventually("the module is not where the path led", || !has(&lab, left));
            eventually("the requester's host is told", || {
                let log = lab.log("sender", "netservd");
                let last = log.lines().rfind(|line| line.contains("route-moved")).map(str::to_owned);
                log.matches("route-moved").count() > told
                    && last.is_some_and(|line| line.contains(&format!("nodes=\"{way}\"")))
            });
            println!("six {six}: {way} after {took:?}");
        }
        let name = package.module.split('@').next().unwrap();
        request_as(&lab, &user, &["remove", name, "--to", &to]);
        // Nothing brings back what its user removed.
        lead_through(&lab, "nb", six).unwrap();
        std::thread::sleep(Duration::from_secs(3));
        for node in ["n1", "na", "nb"] {
            assert!(!has(&lab, node), "{node} has what was removed");
        }
    }
}

/// Goal: `netserv watch` on the requester's host shows that the path moved, that a module was put into quarantine, that the
/// operator of a node further on took the user away, and that a node is about to stop; over IPv4 and over IPv6. What the
/// operator took away does not come back, and a watch whose own daemon stops says how to go on.
fn watch_shows_at_the_requesters_host_what_happens_along_the_path(driver: Driver) {
    let test = "watch_shows_at_the_requesters_host_what_happens_along_the_path";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    for six in [false, true] {
        let (lab, user) = up(driver.name()).unwrap();
        let mut net = Net { lab, user, others: Vec::new() };
        let mut watch = Command::new(program("netserv").unwrap());
        watch.arg("--socket").arg(net.lab.socket("sender")).args(["watch", "--user", "janedoe"]).env("NO_COLOR", "1");
        net.lab.start("sender", "watch", &mut watch).unwrap();
        eventually("netserv watches", || net.lab.log("sender", "watch").contains("watching, ends with Ctrl-C"));
        let shows = |net: &Net, event: &str, node: &str, module: &str| {
            let words = [event, node, "janedoe", module];
            let has = |line: &&str| words.iter().all(|word| line.split("  ").any(|part| part.trim() == *word));
            net.lab.log("sender", "watch").lines().find(has).map(str::to_owned)
        };
        let to = address(&net.lab, "receiver", six);
        let filter = format!("udp src {} port 9", address(&net.lab, "sender", six));
        let bad_filter = format!("udp src {} port 4000", address(&net.lab, "sender", six));
        lead_through(&net.lab, "na", six).unwrap();
        let (package, url) = net.publish("net-monitor");
        let (bad, bad_url) = publish_bad(&net, "trap-on-packet");
        for (package, url, filter) in [(&package, &url, &filter), (&bad, &bad_url, &bad_filter)] {
            let file = package.path.to_string_lossy().into_owned();
            let result = net.request(&["setup", &file, "--to", &to, "--url", url, "--filter", filter, "--ttl", "600"]);
            assert_eq!(result.nodes.iter().filter(|node| node.outcome.is_ok()).count(), 2, "{result:?}");
        }
        lead_through(&net.lab, "nb", six).unwrap();
        eventually("the move is shown", || shows(&net, "route-moved", "n1", "example.org/net-monitor").is_some());
        let line = shows(&net, "route-moved", "n1", "example.org/net-monitor").unwrap();
        assert!(line.ends_with("nb comes after n1 now; further on: nb"), "{line}");

        eventually("the module that traps is in quarantine, and that is shown", || {
            let send = format!("printf x | timeout 0.2 nc -u -w 1 {to} 4000");
            drop(net.lab.command("sender", "sh").args(["-c", &send]).output().unwrap());
            shows(&net, "module-failed", "n1", "example.org/trap-on-packet").is_some()
        });
        let line = shows(&net, "module-failed", "n1", "example.org/trap-on-packet").unwrap();
        assert!(line.contains("failed too often, kept out for 600 s: trapped: "), "{line}");

        let file = net.lab.dir().join("nb.toml");
        let config = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, config.split("[[user]]").next().unwrap()).unwrap();
        net.lab.netserv("nb", &["node", "reload"]).unwrap();
        eventually("the end is shown", || shows(&net, "lease-ended", "nb", "example.org/net-monitor").is_some());
        let line = shows(&net, "lease-ended", "nb", "example.org/net-monitor").unwrap();
        assert!(line.ends_with("unknown-user: no user `janedoe` here"), "{line}");
        // The path is looked at again, twice.
        lead_through(&net.lab, "na", six).unwrap();
        eventually("na has it again", || !net.lab.modules("na").unwrap().modules.is_empty());
        lead_through(&net.lab, "nb", six).unwrap();
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(net.lab.modules("nb").unwrap().modules, [], "what the operator took away came back");

        net.lab.stop("n1", "netservd").unwrap();
        eventually("the stop is shown", || shows(&net, "node-draining", "n1", "example.org/net-monitor").is_some());
        net.lab.stop("sender", "netservd").unwrap();
        eventually("the watch ends with its daemon", || net.lab.has_ended("sender", "watch"));
        let log = net.lab.log("sender", "watch");
        assert!(log.contains("error: netservd went away: ") && log.contains("`netserv watch --since "), "{log}");
    }
}
