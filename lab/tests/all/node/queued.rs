// SPDX-License-Identifier: Apache-2.0
//! Packets that wait for their verdict while other users' modules come and go.

use std::time::Duration;

use crate::common::{Driver, Serving, eventually, shortened};
use netserv_lab::netns::wait_until;
use netserv_model::request::Outcome;

over_one_driver! {
    afxdp: []
    nfqueue: [modules_that_come_and_go_cost_nobody_else_a_packet]
}

/// Packets of each version of IP in a second.
const RATE: usize = 1000;
/// Changes of another user's network and of what is led to it; a twenty-fifth in CI.
const CHANGES: u64 = 1000;

/// Goal: of packets that are for a user's module, none is lost, and it sees all that its ring has room for, while another user's modules come and go, over IPv4 and IPv6. The
/// kernel drops all packets that wait for a verdict whenever a hook of nf_tables leaves the node's network namespace.
/// Method: a module that takes connections over is installed and removed, which makes a container's network, leads packets to
/// it, and ends both.
fn modules_that_come_and_go_cost_nobody_else_a_packet(driver: Driver) {
    let test = "modules_that_come_and_go_cost_nobody_else_a_packet";
    let Some(mut net) = Serving::start(test, driver, "connect = ['tcp']\n") else { return };
    let ends = [net.lab.v4("sender").to_string(), net.lab.v6("sender").to_string()];
    let seen = [format!("udp dst {}/32 port 7777", ends[0]), format!("udp dst {}/128 port 7777", ends[1])];
    net.install("net-monitor", &net.bob, &["--filter", &seen[0], "--filter", &seen[1]]);
    let mut counts = net.lab.command("sender", "python3");
    net.lab.start("sender", "counting", counts.args(["-c", COUNTS])).unwrap();
    let came = |net: &Serving| net.lab.log("sender", "counting").lines().last().unwrap_or_default().to_owned();
    // The kernel itself drops packets while a neighbour's address is unknown, and while nobody has the port.
    eventually("packets are counted", || came(&net) == "0 0");
    for end in &ends {
        eventually("the hosts reach each other", || {
            net.lab.run("receiver", "ping", &["-c", "1", "-W", "1", end]).is_ok()
        });
    }
    let mut sends = net.lab.command("receiver", "python3");
    sends.args(["-c", SENDS, &RATE.to_string(), &ends[0], &ends[1]]);
    net.lab.start("receiver", "sending", &mut sends).unwrap();

    let taken = [format!("tcp dst {}/32 port 7000", ends[0]), format!("tcp dst {}/128 port 7000", ends[1])];
    // A network, and what leads packets to it, come and go.
    for _ in 0..2 * shortened(shortened(CHANGES)) {
        net.install("redact", &net.alice, &["--filter", &taken[0], "--filter", &taken[1]]);
        assert_eq!(net.request(&net.alice, &["remove", "example.org/redact"]), Outcome::Removed);
    }

    net.lab.stop("receiver", "sending").unwrap();
    let sent = net.lab.log("receiver", "sending").trim().to_owned();
    assert!(sent.split(' ').all(|count| count.parse::<usize>().is_ok_and(|count| count >= RATE)), "{sent}");
    assert!(wait_until(Duration::from_secs(10), || came(&net) == sent), "{} of {sent} packets came", came(&net));
    let monitor = net.status(&net.bob, "net-monitor").unwrap();
    // On a busy machine the module's ring may be full: then packets pass, and are counted.
    let full = "netserv_unseen_packets_total{reason=\"ring-full\"} ";
    let metrics = net.lab.get("node", "/metrics").unwrap();
    let unseen = metrics.lines().find_map(|line| line.strip_prefix(full)?.parse::<u64>().ok()).unwrap_or(0);
    let all: usize = sent.split(' ').map(|count| count.parse::<usize>().unwrap()).sum();
    assert!(monitor.packets.seen + unseen >= all as u64, "the module saw all but {unseen}: {monitor:?}");
}

/// Says how many datagrams came of each version of IP, whenever none comes for a while.
const COUNTS: &str = "
import socket
end = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
end.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)
end.bind(('::', 7777))
end.settimeout(0.3)
counts = [0, 0]
while True:
    try:
        _, source = end.recvfrom(100)
        counts[not source[0].startswith('::ffff:')] += 1
    except TimeoutError:
        print(*counts, flush=True)
";

/// Sends a datagram by each version of IP, so many times a second; once it is asked to end, says how many it sent.
const SENDS: &str = "
import signal, socket, sys, time
is_over = []
signal.signal(signal.SIGTERM, lambda *_: is_over.append(True))
kinds = [(socket.AF_INET, sys.argv[2]), (socket.AF_INET6, sys.argv[3])]
ends = [(socket.socket(kind, socket.SOCK_DGRAM), (address, 7777)) for kind, address in kinds]
begun, count = time.monotonic(), 0
while not is_over:
    for end, to in ends: end.sendto(b'%d' % count, to)
    count += 1
    time.sleep(max(0, begun + count / int(sys.argv[1]) - time.monotonic()))
print(count, count, flush=True)
";
