// SPDX-License-Identifier: Apache-2.0
//! The whole system over real sockets, namespaces, sandboxes and netfilter, with real peers.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use crate::common::{Driver, ask_udp, assert_nodes, eventually, net, processes_under};
use netserv_api::NodeInfo;
use netserv_lab::netns::{Lab, is_root};
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::topology::{Impairment, Kind, Topology};
use netserv_model::request::Outcome;
use netserv_skips::skipped;

fn installed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Installed { .. })
}

over_each_driver!(
    setup_over_two_nodes_and_a_plain_router,
    echo_comes_back_from_the_router_over_ipv4_and_ipv6,
    signaling_travels_over_ipv6,
    keep_alives_are_answered_by_the_node,
    modules_of_a_user_see_a_packet_in_install_order,
    a_new_digest_replaces_and_a_lease_ends_by_itself,
    probe_and_dry_run_change_nothing,
    connections_are_seen_by_their_first_segment_alone,
    an_end_host_may_be_the_last_node_and_a_sender_alone_is_told,
    requests_arrive_over_links_that_lose_and_delay,
);

over_each_driver_in_four_lanes!(
    a_parallel_module_sees_the_packets_of_all_lanes_on_threads_of_theirs,
    modules_of_a_user_see_a_packet_in_install_order,
);

/// Goal: `tcp syn` shows a module one packet of each connection, over IPv4 and IPv6. Method: each carries 300 kB.
fn connections_are_seen_by_their_first_segment_alone(driver: Driver) {
    let Some(net) = net("connections_are_seen_by_their_first_segment_alone", driver) else { return };
    let (package, url) = net.publish("net-monitor");
    let (v4, v6) = (net.lab.v4("sender"), net.lab.v6("sender"));
    let more = ["--filter", &format!("tcp syn dst {v6}/128 port 80")];
    let result = net.setup_with(&package, &url, &format!("tcp syn dst {v4}/32 port 80"), &more);
    assert_nodes(&result, |outcome| matches!(outcome, Outcome::Installed { .. }));
    std::fs::write(net.lab.dir().join("www/large"), vec![0; 300_000]).unwrap();
    // A segment that waits for a neighbour to be found may be sent again.
    for address in [v4.to_string(), v6.to_string()] {
        eventually("the way is found", || net.lab.run("receiver", "ping", &["-c", "1", "-W", "1", &address]).is_ok());
    }
    for (count, host) in [(1, v4.to_string()), (2, v4.to_string()), (3, format!("[{v6}]"))] {
        let output = net.lab.run("receiver", "curl", &["--silent", "--fail", &format!("http://{host}/large")]).unwrap();
        assert_eq!(output.stdout.len(), 300_000);
        for node in ["n1", "n2"] {
            eventually("the segment is counted", || net.status(node, &package).unwrap().packets.seen >= count);
            assert_eq!(net.status(node, &package).unwrap().packets.seen, count, "{node}");
        }
    }
}

/// Goal: a signed SETUP installs the module on every node of the path, and its answer has one entry per node, nearest
/// first.
fn setup_over_two_nodes_and_a_plain_router(driver: Driver) {
    let Some(net) = net("setup_over_two_nodes_and_a_plain_router", driver) else { return };
    let (package, url) = net.publish("net-monitor");
    let sender = net.lab.v4("sender");
    let filter = format!("udp dst {sender}/32");
    let result = net.setup_with(&package, &url, &filter, &["--ttl", "100s"]);
    assert_nodes(&result, |outcome| matches!(outcome, Outcome::Installed { lease_s: 100 }));
    assert_eq!(result.nodes[0].address, IpAddr::from(net.lab.topology().interfaces(0).1.v4));

    // Packets are counted, and go on.
    assert_eq!(ask_udp(&net.lab, "receiver", sender.into(), 9, "counted"), None);
    eventually("both nodes count the packet", || {
        ["n1", "n2"].iter().all(|node| net.status(node, &package).unwrap().packets.seen >= 1)
    });

    // The same again refreshes, another lease too; REMOVE ends it, and a second REMOVE says so.
    assert_nodes(&net.setup(&package, &url, &filter), |outcome| matches!(outcome, Outcome::Refreshed { .. }));
    assert_nodes(&net.remove(&package), |outcome| *outcome == Outcome::Removed);
    assert_eq!(net.status("n1", &package), None);
    crate::common::assert_refused(&net.remove(&package), netserv_model::RefusalKind::NotInstalled);
}

fn echo_comes_back_from_the_router_over_ipv4_and_ipv6(driver: Driver) {
    let Some(net) = net("echo_comes_back_from_the_router_over_ipv4_and_ipv6", driver) else { return };
    let (package, url) = net.publish("echo");
    let (v4, v6): (IpAddr, IpAddr) = (net.lab.v4("sender").into(), net.lab.v6("sender").into());
    assert_eq!(net.ask_udp(v4, 44444, "anyone there?"), None);
    assert_nodes(&net.setup(&package, &url, &format!("udp dst {v4}/32 port 44444")), installed);
    assert_eq!(net.ask_udp(v4, 44444, "anyone there?").as_deref(), Some("anyone there?"));
    assert_eq!(net.ask_udp(v6, 44444, "anyone there?"), None);
    assert_nodes(&net.remove(&package), |outcome| *outcome == Outcome::Removed);

    assert_nodes(&net.setup(&package, &url, &format!("udp dst {v6}/128 port 44444")), installed);
    assert_eq!(net.ask_udp(v6, 44444, "anyone there?").as_deref(), Some("anyone there?"));
    assert_eq!(net.ask_udp(v4, 44444, "anyone there?"), None);
}

/// Goal: in the sandbox, a module that is parallel gets its threads, and each of many flows is answered.
fn a_parallel_module_sees_the_packets_of_all_lanes_on_threads_of_theirs(driver: Driver) {
    let test = "a_parallel_module_sees_the_packets_of_all_lanes_on_threads_of_theirs";
    let Some(net) = net(test, driver) else { return };
    for node in ["n1", "n2"] {
        let path = net.lab.dir().join(format!("{node}.toml"));
        let text = std::fs::read_to_string(&path).unwrap();
        // A processor for each lane.
        let text = text.replacen("[[user]]\n", "[[user]]\ncontainer = { cpu-permille = 4000 }\n", 1);
        std::fs::write(&path, text).unwrap();
        let output = net.lab.netserv(node, &["node", "reload", "-j"]).unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("cpu-permille"), "{output:?}");
    }
    let (package, url) = net.publish("echo");
    let sender: IpAddr = net.lab.v4("sender").into();
    assert_nodes(&net.setup(&package, &url, &format!("udp dst {sender}/32 port 44444")), installed);
    for flow in 0..64 {
        assert_eq!(net.ask_udp(sender, 44444, "anyone there?").as_deref(), Some("anyone there?"), "flow {flow}");
    }
    let status = net.status("n2", &package).unwrap();
    assert_eq!(status.packets.seen, 64, "{:?}", status.packets);
    let threads = processes_under(net.lab.pid("n2", "netservd").unwrap()).into_iter().flat_map(|pid| {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok()).collect::<Vec<_>>()
    });
    let lanes: BTreeSet<String> = threads.filter(|name| name.starts_with("packets-")).collect();
    // With AF_XDP there are no more lanes than a link has queues, which is one for each processor.
    let count = std::thread::available_parallelism().unwrap().get().clamp(1, 4);
    let count = if driver == Driver::Afxdp { count } else { 4 };
    let shown = net.lab.netserv("n2", &["-j", "node", "status"]).unwrap();
    let told = serde_json::from_slice::<NodeInfo>(&shown.stdout).unwrap().lanes;
    assert_eq!(told, u32::try_from(count).unwrap());
    assert!(lanes.iter().eq(&["packets-1\n", "packets-2\n", "packets-3\n"][..count - 1]), "{lanes:?}");
}

fn signaling_travels_over_ipv6(driver: Driver) {
    let Some(net) = net("signaling_travels_over_ipv6", driver) else { return };
    let (package, url) = net.publish("echo");
    let v6 = net.lab.v6("sender");
    let url = url.replacen(&net.lab.v4("sender").to_string(), &format!("[{v6}]"), 1);
    let file = package.path.to_string_lossy().into_owned();
    let receiver = net.lab.v6("receiver").to_string();
    let filter = format!("udp dst {v6}/128 port 44444");
    let result = net.request(&["setup", &file, "--to", &receiver, "--url", &url, "--filter", &filter]);
    assert_nodes(&result, installed);
    assert!(result.nodes.iter().all(|node| node.address.is_ipv6()), "{result:?}");
    assert_eq!(net.ask_udp(v6.into(), 44444, "over six").as_deref(), Some("over six"));
}

/// Goal: the node answers keep-alives, and the server sees none of them.
fn keep_alives_are_answered_by_the_node(driver: Driver) {
    let Some(mut net) = net("keep_alives_are_answered_by_the_node", driver) else { return };
    net.lab.start_kamailio("sender").unwrap();
    let (package, url) = net.publish("keep-alive");
    for server in [IpAddr::from(net.lab.v4("sender")), IpAddr::from(net.lab.v6("sender"))] {
        let before = net.lab.reached_kamailio("sender");
        assert_eq!(net.lab.phones("receiver", server, 20).unwrap(), 20);
        let seen = net.lab.reached_kamailio("sender");
        assert_eq!(seen.keep_alives - before.keep_alives, 20);

        let bits = if server.is_ipv4() { 32 } else { 128 };
        assert_nodes(&net.setup(&package, &url, &format!("udp dst {server}/{bits} port 5060")), installed);
        assert_eq!(net.lab.phones("receiver", server, 20).unwrap(), 20);
        let after = net.lab.reached_kamailio("sender");
        assert_eq!(after.keep_alives, seen.keep_alives, "keep-alives still reach the server");
        assert!(after.registers - seen.registers >= 20, "what is no keep-alive must pass");
        assert_nodes(&net.remove(&package), |outcome| *outcome == Outcome::Removed);
    }
}

/// Goal: modules of one user see a packet in the order in which they were installed. Method: echo turns a packet round, and
/// net-monitor counts by source and destination, so its counts say which of the two came first. Both orders are installed.
fn modules_of_a_user_see_a_packet_in_install_order(driver: Driver) {
    let Some(net) = net("modules_of_a_user_see_a_packet_in_install_order", driver) else { return };
    let (monitor, echo) = (net.publish("net-monitor"), net.publish("echo"));
    let (sender, receiver) = (net.lab.v4("sender"), net.lab.v4("receiver"));
    let filter = format!("udp dst {sender}/32 port 44444");
    let (there, back) = (format!("{receiver} {sender} "), format!("{sender} {receiver} "));
    let counted = |way: &str| {
        let counters = net.status("n2", &monitor.0).unwrap().counters;
        counters.iter().filter(|(name, _)| name.starts_with(way)).map(|(_, count)| *count).sum::<u64>()
    };
    for (order, seen) in [([&monitor, &echo], &there), ([&echo, &monitor], &back)] {
        for (package, url) in order {
            assert_nodes(&net.setup(package, url, &filter), installed);
        }
        // Counts outlive the module, so those of the order before are there, too.
        let before = [&there, &back].map(|way| counted(way));
        assert_eq!(net.ask_udp(sender.into(), 44444, "both").as_deref(), Some("both"));
        let status = |package| net.status("n2", package).unwrap().packets;
        let (monitor_seen, echo_seen) = (status(&monitor.0), status(&echo.0));
        assert_eq!((monitor_seen.seen, monitor_seen.passed), (echo_seen.seen, echo_seen.seen));
        assert!(echo_seen.modified >= 1);
        eventually("the packet is counted", || [&there, &back].map(|way| counted(way)) != before);
        let more = [(&there, before[0]), (&back, before[1])].map(|(way, before)| (way, counted(way) - before));
        for (way, more) in more {
            assert_eq!(more > 0, way == seen, "{more} packets more of `{way}`, and net-monitor is to see `{seen}`");
        }
        for (package, _) in order {
            assert_nodes(&net.remove(package), |outcome| *outcome == Outcome::Removed);
        }
    }
}

/// Goal: a SETUP with another digest replaces the module, and a lease ends by itself.
fn a_new_digest_replaces_and_a_lease_ends_by_itself(driver: Driver) {
    let Some(net) = net("a_new_digest_replaces_and_a_lease_ends_by_itself", driver) else { return };
    let (package, url) = net.publish("echo");
    let sender = net.lab.v4("sender");
    let filter = format!("udp dst {sender}/32 port 44444");
    assert_nodes(&net.setup(&package, &url, &filter), installed);

    let manifest =
        std::fs::read_to_string(netserv_lab::node::workspace().join("modules/samples/echo/netserv.toml")).unwrap();
    let version = package.module.rsplit('@').next().unwrap();
    let newer = net.lab.dir().join("newer.toml");
    std::fs::write(&newer, manifest.replace(&format!("\"{version}\""), "\"9.0.0\"")).unwrap();
    let wasm = netserv_lab::node::module_wasm("echo").unwrap();
    let newer = net.lab.package_from(&newer, &wasm, &net.lab.dir().join("newer.nsm"), &net.user).unwrap();
    let newer_url = net.lab.publish("sender", &newer).unwrap();
    let result = net.setup_with(&newer, &newer_url, &filter, &["--ttl", "2s"]);
    assert_nodes(&result, |outcome| matches!(outcome, Outcome::Replaced { lease_s: 2 }));
    assert_eq!(net.status("n1", &package), None);
    assert!(net.status("n1", &newer).is_some());
    assert_eq!(net.ask_udp(sender.into(), 44444, "new").as_deref(), Some("new"));
    eventually("the lease ends", || ["n1", "n2"].iter().all(|node| net.status(node, &newer).is_none()));
    assert_eq!(net.ask_udp(sender.into(), 44444, "gone"), None);
}

fn probe_and_dry_run_change_nothing(driver: Driver) {
    let Some(net) = net("probe_and_dry_run_change_nothing", driver) else { return };
    let (package, url) = net.publish("echo");
    let filter = format!("udp dst {}/32 port 44444", net.lab.v4("sender"));
    let result = net.setup_with(&package, &url, &filter, &["--dry-run"]);
    assert_nodes(&result, |outcome| matches!(outcome, Outcome::WouldDo { action } if action == "install"));
    assert_eq!(net.status("n1", &package), None);

    assert_nodes(&net.setup(&package, &url, &filter), installed);
    let receiver = net.lab.v4("receiver").to_string();
    let mut result = net.request(&["probe", "--to", &receiver, "--ask", "nodes,modules,blocks,load,policy"]);
    assert_nodes(&result, |outcome| *outcome == Outcome::Probed);
    assert_eq!(result.nodes.remove(0).node.as_str(), "sender");
    for node in &result.nodes {
        assert_eq!(node.modules.len(), 1);
        assert_eq!(node.modules[0].module.to_string(), package.module);
        assert!(node.blocks.iter().any(|block| block.block == "kv"));
        assert_eq!(node.load.unwrap().modules, 1);
        assert_eq!(node.policy.as_ref().unwrap().prefixes.len(), 2);
    }
}

fn an_end_host_may_be_the_last_node_and_a_sender_alone_is_told(driver: Driver) {
    let Some(mut net) = net("an_end_host_may_be_the_last_node_and_a_sender_alone_is_told", driver) else { return };
    net.lab.start_netservd("receiver", "host", &[], "").unwrap();
    let receiver = net.lab.v4("receiver").to_string();
    let result = net.lab.request("sender", &["path", &receiver]).unwrap();
    let names: Vec<&str> = result.nodes.iter().map(|node| node.node.as_str()).collect();
    assert_eq!(names.iter().rev().take(3).rev().copied().collect::<Vec<_>>(), ["n1", "n2", "receiver"], "{result:?}");
    let (package, url) = net.publish("echo");
    assert_nodes(&net.setup(&package, &url, &format!("udp dst {}/32", net.lab.v4("sender"))), installed);

    for node in ["n1", "n2", "receiver"] {
        net.lab.stop(node, "netservd").unwrap();
    }
    let output = net.lab.try_netserv("sender", &["path", &receiver, "--timeout", "5s"]).unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(text.contains("fix:"), "{text}");
}

fn requests_arrive_over_links_that_lose_and_delay(driver: Driver) {
    let test = "requests_arrive_over_links_that_lose_and_delay";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    let chain = [("sender", Kind::Host), ("n1", Kind::Node), ("n2", Kind::Node), ("receiver", Kind::Host)];
    let mut topology = Topology::chain(&chain);
    for (seed, link) in (1_u64..).zip(&mut topology.links) {
        let (delay, jitter) = (Duration::from_millis(5), Duration::from_millis(3));
        link.impairment = Impairment { delay, jitter, loss_per_10000: 500, kbit_per_s: 0, seed };
    }
    let mut lab = Lab::up(topology).unwrap();
    lab.use_driver(driver.name());
    let own = format!("{}/32", lab.v4("sender"));
    let user = lab.user("janedoe", &[&own]).unwrap();
    for node in ["n1", "n2"] {
        lab.start_netservd(node, "node", std::slice::from_ref(&user), FILES_ALLOWED).unwrap();
    }
    lab.start_netservd("sender", "host", &[], "").unwrap();
    let receiver = lab.v4("receiver").to_string();
    let mut whole = 0;
    for _ in 0..5 {
        let result = lab.request("sender", &["path", &receiver]).unwrap();
        let names: Vec<&str> =
            result.nodes.iter().map(|node| node.node.as_str()).filter(|name| *name != "sender").collect();
        // What was lost may hide nodes, and then the stack says so.
        assert!(names == ["n1", "n2"] || result.incomplete.is_some(), "{result:?}");
        whole += u32::from(names == ["n1", "n2"] && result.incomplete.is_none());
    }
    assert!(whole >= 3, "only {whole} of 5 stacks were whole at 5 % loss");
}
