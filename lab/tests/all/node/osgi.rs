// SPDX-License-Identifier: Apache-2.0
//! OSGi bundles over the whole system: the same signaling, filters and containers as WebAssembly.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::common::{Driver, Net, assert_nodes, eventually, net_with};
use netserv_lab::netns::{Lab, wait_until};
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::node::LabPackage;
use netserv_model::Flavour;
use netserv_model::request::Outcome;

over_one_driver! {
    afxdp: [
        a_bundle_counts_packets_and_leaves,
        modules_of_both_flavours_see_a_packet,
        a_node_that_is_killed_brings_its_bundles_back,
    ]
    nfqueue: [keep_alives_are_answered_by_a_bundle, a_module_changes_its_flavour_and_no_packet_is_lost]
}

fn a_bundle_counts_packets_and_leaves(driver: Driver) {
    let Some(net) = net("a_bundle_counts_packets_and_leaves", driver) else { return };
    let (package, url) = publish(&net, "net-monitor", &[Flavour::Osgi]);
    let sender = net.lab.v4("sender");
    let filter = format!("udp dst {sender}/32 port 9");
    assert_nodes(&net.setup(&package, &url, &filter), installed);
    assert_eq!(net.ask_udp(sender.into(), 9, "counted"), None);
    let counter = format!("{} {sender} ", net.lab.v4("receiver"));
    for node in ["n1", "n2"] {
        eventually("the packet is counted", || {
            let status = net.status(node, &package).unwrap();
            let pairs = status.counters.iter().filter(|(name, count)| name.starts_with(&counter) && **count == 1);
            status.flavour == Some(Flavour::Osgi) && status.packets.seen == 1 && pairs.count() == 1
        });
    }
    assert_nodes(&net.setup(&package, &url, &filter), |outcome| matches!(outcome, Outcome::Refreshed { .. }));
    assert_nodes(&net.remove(&package), |outcome| *outcome == Outcome::Removed);
    assert_eq!(net.status("n1", &package), None);
}

fn keep_alives_are_answered_by_a_bundle(driver: Driver) {
    let Some(mut net) = net("keep_alives_are_answered_by_a_bundle", driver) else { return };
    net.lab.start_kamailio("sender").unwrap();
    let (package, url) = publish(&net, "keep-alive", &[Flavour::Osgi]);
    for server in [IpAddr::from(net.lab.v4("sender")), IpAddr::from(net.lab.v6("sender"))] {
        let bits = if server.is_ipv4() { 32 } else { 128 };
        let before = net.lab.reached_kamailio("sender");
        assert_nodes(&net.setup(&package, &url, &format!("udp dst {server}/{bits} port 5060")), installed);
        assert_eq!(net.lab.phones("receiver", server, 20).unwrap(), 20);
        let after = net.lab.reached_kamailio("sender");
        assert_eq!(after.keep_alives, before.keep_alives, "keep-alives reach the server");
        assert!(after.registers - before.registers >= 20, "what is no keep-alive must pass");
        assert_nodes(&net.remove(&package), |outcome| *outcome == Outcome::Removed);
    }
}

fn modules_of_both_flavours_see_a_packet(driver: Driver) {
    let Some(net) = net("modules_of_both_flavours_see_a_packet", driver) else { return };
    let (monitor, monitor_url) = publish(&net, "net-monitor", &[Flavour::Osgi]);
    let (dump, dump_url) = publish(&net, "header-dump", &[Flavour::Wasm]);
    let sender = net.lab.v4("sender");
    let filter = format!("udp dst {sender}/32 port 44444");
    assert_nodes(&net.setup(&monitor, &monitor_url, &filter), installed);
    assert_nodes(&net.setup(&dump, &dump_url, &filter), installed);
    // Nobody answers: both see it and let it pass.
    net.ask_udp(sender.into(), 44444, "both");
    let (first, second) = (net.status("n2", &dump).unwrap(), net.status("n2", &monitor).unwrap());
    assert_eq!((first.flavour, second.flavour), (Some(Flavour::Wasm), Some(Flavour::Osgi)));
    assert!(first.packets.seen >= 1, "{first:?}");
    assert_eq!(first.packets.seen, second.packets.seen);
}

/// Goal: a module of both flavours is replaced across them under traffic, and no packet is lost.
fn a_module_changes_its_flavour_and_no_packet_is_lost(driver: Driver) {
    let Some(mut net) = net("a_module_changes_its_flavour_and_no_packet_is_lost", driver) else { return };
    let sender = net.lab.v4("sender");
    let filter = format!("udp dst {sender}/32 port 7000");
    let (wasm, wasm_url) = publish(&net, "net-monitor", &[Flavour::Wasm]);
    assert_nodes(&net.setup(&wasm, &wasm_url, &filter), installed);
    let (osgi, osgi_url) = publish(&net, "net-monitor", &[Flavour::Osgi]);
    start_stream(&mut net.lab, "receiver", "sender", 7000);
    for (package, url, flavour) in [(&osgi, &osgi_url, Flavour::Osgi), (&wasm, &wasm_url, Flavour::Wasm)] {
        assert_nodes(&net.setup(package, url, &filter), |outcome| matches!(outcome, Outcome::Replaced { .. }));
        assert_eq!(net.status("n1", package).unwrap().flavour, Some(flavour));
    }
    let (sent, arrived) = end_stream(&mut net.lab, "receiver", "sender");
    assert!(sent > 0 && arrived == sent, "{arrived} of {sent} arrived");
}

fn a_node_that_is_killed_brings_its_bundles_back(driver: Driver) {
    let Some(mut net) = net("a_node_that_is_killed_brings_its_bundles_back", driver) else { return };
    let (package, url) = publish(&net, "net-monitor", &[Flavour::Osgi, Flavour::Wasm]);
    let sender = net.lab.v4("sender");
    assert_nodes(&net.setup(&package, &url, &format!("udp dst {sender}/32 port 9")), installed);
    assert_eq!(net.status("n1", &package).unwrap().flavour, Some(Flavour::Osgi));
    net.lab.kill("n1", "netservd").unwrap();
    net.lab.restart_netservd("n1").unwrap();
    eventually("the bundle sees packets again", || {
        net.ask_udp(sender.into(), 9, "again");
        net.status("n1", &package).is_some_and(|status| status.packets.seen >= 1)
    });
    assert_eq!(net.status("n1", &package).unwrap().flavour, Some(Flavour::Osgi));
}

/// A network whose nodes prefer bundles.
fn net(test: &str, driver: Driver) -> Option<Net> {
    net_with(test, driver, &format!("flavours = [\"osgi\", \"wasm\"]\n{FILES_ALLOWED}"), &[])
}

fn publish(net: &Net, module: &str, flavours: &[Flavour]) -> (LabPackage, String) {
    let package = net.lab.package_in(module, flavours, &net.user).unwrap();
    let url = net.lab.publish("sender", &package).unwrap();
    (package, url)
}

fn installed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Installed { .. })
}

/// Sends numbered datagrams from one machine to another, one a millisecond, where they are counted, until
/// [`end_stream`].
fn start_stream(lab: &mut Lab, from: &str, to: &str, port: u16) {
    let counter = format!(
        "use IO::Socket::INET; $s = IO::Socket::INET->new(LocalPort => {port}, Proto => 'udp') or die $!; $| = 1;\
         print \"ready\\n\"; while (1) {{ $s->recv($b, 9) // last; $seen{{$b}}++ or print ++$n, \"\\n\" }}"
    );
    let mut command = lab.command(to, "perl");
    command.args(["-e", &counter]);
    lab.start(to, "counter", &mut command).unwrap();
    eventually("the counter is ready", || lab.log(to, "counter").contains("ready"));
    let address = lab.v4(to);
    let source = format!(
        "use IO::Socket::INET; $s = IO::Socket::INET->new(PeerAddr => '{address}', PeerPort => {port}, Proto => 'udp') \
         or die $!; until (-e {:?}) {{ $s->send(++$n); select(undef, undef, undef, 0.001) }} print $n",
        end_of_stream(lab)
    );
    let mut command = lab.command(from, "perl");
    command.args(["-e", &source]);
    lab.start(from, "source", &mut command).unwrap();
}

/// Ends a stream, and returns how many datagrams were sent, and how many arrived.
fn end_stream(lab: &mut Lab, from: &str, to: &str) -> (u64, u64) {
    std::fs::write(end_of_stream(lab), "").unwrap();
    eventually("the source ends", || lab.has_ended(from, "source"));
    let last = |machine, name| lab.log(machine, name).lines().last().and_then(|line| line.parse().ok()).unwrap_or(0);
    let sent = last(from, "source");
    wait_until(Duration::from_secs(10), || last(to, "counter") == sent);
    (sent, last(to, "counter"))
}

/// The file that ends a stream by being there.
fn end_of_stream(lab: &Lab) -> PathBuf {
    lab.dir().join("end-of-stream")
}
