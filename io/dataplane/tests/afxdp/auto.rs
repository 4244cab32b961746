// SPDX-License-Identifier: Apache-2.0
//! Forwarding in XDP where nothing is in the way, and as long as nothing is.

use std::time::{Duration, Instant};

use netserv_plane::{Driver, DriverConfig, XdpForward};
use netserv_plane_afxdp::limits;
use netserv_skips::{not_run, skipped};

use crate::common::{Chain, add_device_chain, add_inet_chain, test};
use crate::forward::{chain, forwarding, warm_up};
use crate::{Afxdp, Flow, ROUTER, config, idle, open_with};

/// What may be in the way: a word of the reason, how it comes, how it goes.
const OBSTACLES: [(&str, &str, &str); 7] = [
    ("FORWARD", "iptables -A FORWARD -p udp --dport 9 -j DROP", "iptables -D FORWARD -p udp --dport 9 -j DROP"),
    ("DROP", "ip6tables -P FORWARD DROP", "ip6tables -P FORWARD ACCEPT"),
    ("policy routing", "ip rule add from 10.9.0.0/16 lookup 7", "ip rule del from 10.9.0.0/16 lookup 7"),
    ("policy routing", "ip -6 rule add iif lo lookup 7", "ip -6 rule del iif lo lookup 7"),
    ("take over", "ip rule add fwmark 7 lookup 7 proto 78", "ip rule del fwmark 7 lookup 7 proto 78"),
    ("tbf", "tc qdisc add dev right root tbf rate 1gbit burst 1mb latency 50ms", "tc qdisc del dev right root"),
    ("IPsec", "ip xfrm policy add src 10.9.0.0/24 dst 10.8.0.0/24 dir fwd", "ip xfrm policy deleteall"),
];

#[test]
fn packets_are_forwarded_in_xdp_while_nothing_is_in_the_way() {
    let Some(chain) = chain() else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open_with(&config("auto"), &[]);
    let flow = Flow::new(&chain, false, 5060);
    warm_up(&mut driver, &flow);
    assert!(is_forwarding(&driver));
    for (word, come, go) in OBSTACLES {
        if !run(&chain, come) {
            skipped(&test(), &format!("not possible here: {come}"));
            continue;
        }
        // News are there before the command is over, and heard of before long.
        std::thread::sleep(Duration::from_millis(20));
        let before = driver.counters().forwarded;
        until(&mut driver, &flow, come, |driver| reasons(driver).contains(word));
        assert_eq!(driver.counters().forwarded, before, "{come}");
        assert!(run(&chain, go), "{go}");
        until(&mut driver, &flow, go, |driver| driver.counters().forwarded > before && is_forwarding(driver));
    }
    // With the policy to drop, so that packets that come now go nowhere.
    add_inet_chain();
    let end = Instant::now() + Duration::from_secs(60);
    while !reasons(&driver).contains("nftables") {
        assert!(Instant::now() < end, "{}", reasons(&driver));
        idle(&mut driver);
    }
}

#[test]
fn what_is_wished_for_is_done() {
    let Some(chain) = chain() else { return };
    let _entered = chain.enter(ROUTER);
    let flow = Flow::new(&chain, false, 5060);
    assert!(run(&chain, "ip rule add from 10.9.0.0/16 lookup 7"));
    let mut driver = open_with(&forwarding("wished"), &[]);
    warm_up(&mut driver, &flow);
    // But modules get the connections that they take over.
    assert!(run(&chain, "ip rule add fwmark 7 lookup 7 proto 78"));
    until(&mut driver, &flow, "a module takes over connections", |driver| reasons(driver).contains("take over"));
    let before = driver.counters().forwarded;
    flow.send(b"x");
    assert_eq!((flow.received().unwrap(), driver.counters().forwarded), (b"x".to_vec(), before));
    drop(driver);
    let mut driver = open_with(&DriverConfig { xdp_forward: XdpForward::Off, ..config("wished") }, &[]);
    idle(&mut driver);
    assert!(reasons(&driver).contains("is off"));
}

/// A device in front of which packets wait is left to the kernel; others need not be.
#[test]
fn a_device_is_in_the_way_of_its_own_packets_only() {
    let Some(chain) = chain() else { return };
    let _entered = chain.enter(ROUTER);
    if !run(&chain, "tc qdisc add dev lo root tbf rate 1gbit burst 1mb latency 50ms") {
        return not_run(&test(), "this kernel does not shape");
    }
    let mut driver = open_with(&config("own"), &[]);
    warm_up(&mut driver, &Flow::new(&chain, false, 5060));
    assert!(is_forwarding(&driver));
}

/// As a container's link has one, which limits what the container sends.
#[test]
fn a_chain_of_a_device_is_in_the_way_of_its_own_packets_only() {
    let Some(chain) = chain() else { return };
    let _entered = chain.enter(ROUTER);
    add_device_chain("lo");
    let mut driver = open_with(&config("chain"), &[]);
    let flow = Flow::new(&chain, false, 5060);
    warm_up(&mut driver, &flow);
    assert!(is_forwarding(&driver));
    add_device_chain("left");
    until(&mut driver, &flow, "a chain of the device", |driver| {
        let left = driver.devices().into_iter().find(|device| device.name == "left").unwrap();
        left.left_to_kernel.is_some_and(|why| why.contains("netdev fw"))
    });
}

#[test]
fn obstacles_look_min_is_between_two_looks() {
    check_news("looks", "ip rule add from 10.9.0.0/16 lookup 7", "ip rule del from 10.9.0.0/16 lookup 7", true);
}

/// A device comes up with a queueing discipline, and nothing else tells of that.
#[test]
fn a_link_that_comes_is_news() {
    check_news("links", "ip link add spare type veth peer name spare2", "ip link del spare", true);
}

#[test]
fn a_link_to_a_container_is_no_news() {
    let (come, go) = ("ip link add ns0123abcdn1 type veth peer name ns0123abcdn2", "ip link del ns0123abcdn1");
    check_news("container", come, go, false);
}

/// Checks whether something that comes and goes keeps packets from being forwarded until the next look.
fn check_news(instance: &str, come: &str, go: &str, is_news: bool) {
    let Some(chain) = chain() else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open_with(&config(instance), &[]);
    let flow = Flow::new(&chain, false, 5060);
    warm_up(&mut driver, &flow);
    std::thread::sleep(limits::OBSTACLES_LOOK_MIN);
    let mut flip = || {
        let start = Instant::now();
        assert!(run(&chain, come) && run(&chain, go));
        std::thread::sleep(Duration::from_millis(20));
        let before = driver.counters().forwarded;
        until(&mut driver, &flow, "forwards again", |driver| driver.counters().forwarded > before);
        start.elapsed()
    };
    flip();
    let second = flip();
    assert_eq!(second > limits::OBSTACLES_LOOK_MIN / 2, is_news, "{second:?}");
}

/// The route leads to a bridge, of which the device that packets would leave by is a port: the kernel has them until it is
/// not. So it is with bonds, of which this kernel may know nothing.
#[test]
fn a_device_that_becomes_a_port_is_not_forwarded_to() {
    for kind in ["bridge", "bond"] {
        let Some(chain) = chain() else { return };
        let _entered = chain.enter(ROUTER);
        if !run(&chain, &format!("ip link add above type {kind}")) {
            not_run(&test(), &format!("this kernel has no {kind}"));
            continue;
        }
        let mut driver = open_with(&config("port"), &[]);
        let flow = Flow::new(&chain, false, 5060);
        warm_up(&mut driver, &flow);
        // A bond takes a device that is down.
        let port = "ip link set right down,ip link set right master above,ip address flush dev right,\
                    ip address add 10.0.1.1/24 dev above,ip link set above up,ip link set right up";
        assert!(port.split(',').all(|command| run(&chain, command)));
        // The kernel finds the neighbour.
        flow.send(b"first");
        let _ = flow.received();
        let before = driver.counters().forwarded;
        let end = Instant::now() + limits::OBSTACLES_LOOK_MIN * 3;
        until(&mut driver, &flow, "by the port's master", |_| Instant::now() > end);
        assert_eq!(driver.counters().forwarded, before, "{kind}");
        let free = "ip address flush dev above,ip link set right nomaster,ip address add 10.0.1.1/24 dev right,\
                    ip link set right up";
        assert!(free.split(',').all(|command| run(&chain, command)));
        flow.send(b"first");
        let _ = flow.received();
        until(&mut driver, &flow, "no port any more", |driver| driver.counters().forwarded > before);
    }
}

/// Returns why devices are left to the kernel.
fn reasons(driver: &Afxdp) -> String {
    driver.devices().into_iter().filter_map(|device| device.left_to_kernel).collect::<Vec<_>>().join("; ")
}

/// Returns whether what comes from the sender is not left to the kernel.
fn is_forwarding(driver: &Afxdp) -> bool {
    driver.devices().iter().any(|device| device.name == "left" && device.left_to_kernel.is_none())
}

/// Sends until something is so; no packet is lost meanwhile.
fn until(driver: &mut Afxdp, flow: &Flow, what: &str, is_so: impl Fn(&Afxdp) -> bool) {
    let start = Instant::now();
    while !is_so(driver) {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: {}", reasons(driver));
        flow.send(b"x");
        assert_eq!(flow.received().unwrap(), b"x", "{what}");
        idle(driver);
    }
}

fn run(chain: &Chain, command: &str) -> bool {
    chain.try_run(ROUTER, &command.split(' ').collect::<Vec<_>>())
}
