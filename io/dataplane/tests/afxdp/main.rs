// SPDX-License-Identifier: Apache-2.0
//! The `afxdp` driver on real packets: a sender, a router with the driver, a receiver, over veth.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod auto;
mod classify;
#[path = "../common/mod.rs"]
mod common;
mod cost;
mod differential;
mod filters;
mod forward;
mod hang;
mod hotplug;
mod life;
mod paths;
mod random;
mod reference;
mod signaling;
mod tunnels;

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

pub(crate) use common::contract::{Flow, RECEIVER, ROUTER, SENDER, for_each_packet};
use common::{Chain, contract};
use netserv_dataplane::afxdp::{Afxdp, AttachMode};
use netserv_dataplane::{Batch, Driver, DriverConfig, Final};
use netserv_wire::ip::IpView;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketType, sockopt};

#[test]
fn matching_packets_are_seen_and_the_others_pass_alone() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("seen", &["udp port 5060"]);
    assert!(driver.modes().all(|(_, mode)| mode == AttachMode::Native), "veth has XDP of its own");
    contract::matching_packets_are_seen_and_the_others_pass_alone(&chain, &mut driver);
    let counters = driver.counters();
    assert_eq!((counters.send_failed, counters.lost), (0, 0));
}

#[test]
fn packets_can_be_dropped_and_rewritten_and_stay_in_order() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("rewrite", &["udp port 5060"]);
    contract::packets_can_be_dropped_and_rewritten_and_stay_in_order(&chain, &mut driver);
}

pub(crate) fn config(instance: &str) -> DriverConfig {
    DriverConfig::new(instance)
}

pub(crate) fn open(instance: &str, filters: &[&str]) -> Afxdp {
    open_with(&config(instance), filters)
}

pub(crate) fn open_with(config: &DriverConfig, filters: &[&str]) -> Afxdp {
    contract::with_filters(Afxdp::open(config).unwrap(), filters)
}

/// Lets a driver that gets no packets hear of changes.
pub(crate) fn idle(driver: &mut Afxdp) {
    assert_eq!(driver.receive(&mut Batch::new(), Some(Duration::from_millis(20))).unwrap(), 0);
}

/// Waits until what filters left behind is out of the kernel's maps.
pub(crate) fn settle(driver: &Afxdp) {
    let start = Instant::now();
    while !driver.is_settled() {
        assert!(start.elapsed() < Duration::from_secs(2), "{} tuples are left", driver.tuples());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Passes packets until so many came, or none comes for a while; returns how many there were.
pub(crate) fn pass(driver: &mut Afxdp, count: usize) -> usize {
    let (mut batch, mut passed) = (Batch::new(), 0);
    while passed < count && driver.receive(&mut batch, Some(Duration::from_millis(500))).unwrap() > 0 {
        batch.iter().for_each(|packet| driver.finish(packet.id, Final::Pass));
        passed += batch.len();
        driver.flush().unwrap();
    }
    passed
}

/// Sees the packets that come to a namespace.
pub(crate) struct Tap(OwnedFd);

impl Tap {
    pub(crate) fn new(chain: &Chain, node: usize) -> Tap {
        let _entered = chain.enter(node);
        let all = Protocol::from_raw(u32::from(ETH_P_ALL.to_be()).try_into().unwrap());
        let socket = rustix::net::socket(AddressFamily::PACKET, SocketType::DGRAM, Some(all)).unwrap();
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(Duration::from_secs(2))).unwrap();
        Tap(socket)
    }

    /// Waits for a packet of which something can be said.
    pub(crate) fn find<T>(&self, mut say: impl FnMut(&IpView<'_>) -> Option<T>) -> T {
        let mut buffer = [0; 2048];
        loop {
            let (length, _) = rustix::net::recv(&self.0, &mut buffer, RecvFlags::empty()).expect("the packet comes");
            if let Some(said) = IpView::parse(&buffer[..length]).ok().and_then(|view| say(&view)) {
                return said;
            }
        }
    }
}

const ETH_P_ALL: u16 = 3;

/// Returns a counter of a namespace's protocols.
pub(crate) fn snmp(chain: &Chain, node: usize, protocol: &str, name: &str) -> u64 {
    let text = chain.run(node, &["cat", "/proc/net/snmp"]);
    let mut lines = text.lines().filter(|line| line.starts_with(&format!("{protocol}:")));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let at = names.split(' ').position(|one| one == name).unwrap();
    values.split(' ').nth(at).unwrap().parse().unwrap()
}

/// Returns a counter of a namespace's IPv6.
pub(crate) fn snmp6(chain: &Chain, node: usize, name: &str) -> u64 {
    let text = chain.run(node, &["cat", "/proc/net/snmp6"]);
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
