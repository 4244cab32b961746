// SPDX-License-Identifier: Apache-2.0
//! Beside the kernel's own rules: what modules see meets them, whenever they come, and fragments stay together.

use std::time::Duration;

use crate::common::{Driver, Net, eventually, net};
use netserv_lab::netns::wait_until;
use netserv_model::request::{Outcome, PathEnd};

over_each_driver!(
    rules_that_come_later_hold_for_what_modules_see,
    large_datagrams_arrive_where_connections_are_tracked,
    a_node_that_hangs_is_missing_from_the_stack_and_not_from_the_path
);

const PORT: u16 = 7788;
/// How soon a rule that comes holds.
const HEARD: Duration = Duration::from_secs(3);

/// Goal (case 21): a rule of the packet filter that comes after the node started drops what it says, also of packets that a module sees,
/// and no more once it has gone; over IPv4 and IPv6.
fn rules_that_come_later_hold_for_what_modules_see(driver: Driver) {
    let Some(mut net) = net("rules_that_come_later_hold_for_what_modules_see", driver) else { return };
    watch_and_echo(&mut net);
    for (program, six) in [("iptables", false), ("ip6tables", true)] {
        let rule = ["FORWARD", "-p", "udp", "--dport", &PORT.to_string(), "-j", "DROP"];
        eventually("it arrives", || arrives(&net, six, 20));
        let seen = seen(&net);
        net.lab.run("n1", program, &[&["-A"], &rule[..]].concat()).unwrap();
        assert!(wait_until(HEARD, || !arrives(&net, six, 20)), "{program}: the rule does not hold");
        assert!((0..5).all(|_| !arrives(&net, six, 20)), "{program}: now it holds, now it does not");
        net.lab.run("n1", program, &[&["-D"], &rule[..]].concat()).unwrap();
        eventually("it arrives again", || arrives(&net, six, 20));
        assert!(self::seen(&net) > seen, "the module sees them");
    }
}

/// Goal (case 20): a datagram in two fragments arrives where a module wants its first one and the kernel puts fragments together to track
/// connections or to translate addresses, since it was started and later; over IPv4 and IPv6.
fn large_datagrams_arrive_where_connections_are_tracked(driver: Driver) {
    let Some(mut net) = net("large_datagrams_arrive_where_connections_are_tracked", driver) else { return };
    watch_and_echo(&mut net);
    for six in [false, true] {
        assert!(wait_until(HEARD, || arrives(&net, six, 2205)), "without rules, six {six}");
    }
    let tracked = ["-A", "FORWARD", "-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED", "-j", "ACCEPT"];
    let translated = ["-t", "nat", "-A", "POSTROUTING", "-j", "MASQUERADE"];
    for rule in [&tracked[..], &translated] {
        for program in ["iptables", "ip6tables"] {
            net.lab.run("n1", program, rule).unwrap();
        }
        for six in [false, true] {
            assert!(wait_until(HEARD, || arrives(&net, six, 2205)), "six {six}, {rule:?}");
            assert!((0..5).all(|_| arrives(&net, six, 2205)), "six {six}, {rule:?}: each of them");
        }
    }
}

/// Goal: a node that hangs does not pass for a path without it: a SETUP says that it is not whole, and is whole again once it goes on.
fn a_node_that_hangs_is_missing_from_the_stack_and_not_from_the_path(driver: Driver) {
    let test = "a_node_that_hangs_is_missing_from_the_stack_and_not_from_the_path";
    let Some(net) = net(test, driver) else { return };
    let (package, url) = net.publish("net-monitor");
    let filter = format!("udp dst {}/32 port {PORT}", net.lab.v4("sender"));
    let pid = net.lab.pid("n2", "netservd").unwrap().to_string();
    net.lab.run("n2", "kill", &["-STOP", &pid]).unwrap();
    // The driver's heart is silent by then.
    std::thread::sleep(Duration::from_secs(2));
    let result = net.setup(&package, &url, &filter);
    assert!(result.incomplete.is_some() && result.end.is_none(), "{result:?}");
    net.lab.run("n2", "kill", &["-CONT", &pid]).unwrap();
    eventually("it is whole again", || {
        let result = net.setup(&package, &url, &filter);
        let has_it = |name: &str| {
            result
                .nodes
                .iter()
                .any(|node| node.node.as_str() == name && matches!(node.outcome, Outcome::Refreshed { .. }))
        };
        result.end == Some(PathEnd::Unreachable) && has_it("n1") && has_it("n2")
    });
}

/// Has a module on both nodes see datagrams to a port of the sender's, where they are sent back.
fn watch_and_echo(net: &mut Net) {
    let (package, url) = net.publish("net-monitor");
    let filters = [
        format!("udp dst {}/32 port {PORT}", net.lab.v4("sender")),
        format!("udp dst {}/128 port {PORT}", net.lab.v6("sender")),
    ];
    let result = net.setup_with(&package, &url, &filters[0], &["--filter", &filters[1]]);
    assert!(result.nodes.iter().all(|node| matches!(node.outcome, Outcome::Installed { .. })), "{result:?}");
    let mut echo = net.lab.command("sender", "python3");
    net.lab.start("sender", "echo", echo.args(["-c", ECHO, &PORT.to_string()])).unwrap();
    eventually("it listens", || net.lab.sockets_at("sender", "udp", PORT) > 0);
}

/// Returns whether a datagram of so many bytes comes back.
fn arrives(net: &Net, six: bool, bytes: usize) -> bool {
    let to = if six { net.lab.v6("sender").to_string() } else { net.lab.v4("sender").to_string() };
    let args = ["-c", ASKS, &to, &PORT.to_string(), &bytes.to_string()];
    net.lab.command("receiver", "python3").args(args).status().unwrap().success()
}

fn seen(net: &Net) -> u64 {
    net.lab.modules("n1").unwrap().modules.iter().map(|module| module.packets.seen).sum()
}

const ECHO: &str = "
import socket, sys
end = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
end.bind(('::', int(sys.argv[1])))
while True:
    data, source = end.recvfrom(65536)
    end.sendto(data[:20], source)
";

const ASKS: &str = "
import socket, sys
kind = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
end = socket.socket(kind, socket.SOCK_DGRAM)
end.settimeout(0.5)
end.sendto(b'x' * int(sys.argv[3]), (sys.argv[1], int(sys.argv[2])))
try:
    end.recvfrom(100)
except OSError:
    sys.exit(1)
";
