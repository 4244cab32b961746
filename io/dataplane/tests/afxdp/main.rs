// SPDX-License-Identifier: Apache-2.0
//! The `afxdp` driver on real packets: a sender, a router with the driver, a receiver, over veth.
#![allow(clippy::unwrap_used, reason = "a test program")]

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
mod tunnels;

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

use common::{Chain, address, receive};
use netserv_dataplane::afxdp::{Afxdp, AttachMode};
use netserv_dataplane::{Batch, Driver, DriverConfig, Final};
use netserv_model::command::FilterId;
use netserv_wire::ip::{IpView, build};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketType, sockopt};

pub(crate) const SENDER: usize = 0;
pub(crate) const ROUTER: usize = 1;
pub(crate) const RECEIVER: usize = 2;

#[test]
fn matching_packets_are_seen_and_the_others_pass_alone() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("seen", &["udp port 5060"]);
    assert!(driver.modes().all(|(_, mode)| mode == AttachMode::Native), "veth has XDP of its own");
    for v6 in [false, true] {
        let flow = Flow::new(&chain, v6, 5060);
        let other = Flow::new(&chain, v6, 5061);
        for number in 0..100_u8 {
            flow.send(&[number]);
        }
        other.send(b"other");
        assert_eq!(other.received().unwrap(), b"other");
        let mut seen = 0;
        while seen < 100 {
            for_each_packet(&mut driver, |driver, id, bytes| {
                let view = IpView::parse(bytes).unwrap();
                assert_eq!(view.udp().unwrap().payload, [seen]);
                assert_eq!(view.source(), address(v6, 0, 1));
                seen += 1;
                driver.finish(id, Final::Pass);
            });
        }
        for number in 0..100_u8 {
            assert_eq!(flow.received().unwrap(), [number]);
        }
    }
    let counters = driver.counters();
    assert_eq!((counters.received, counters.passed, counters.send_failed, counters.overruns), (200, 200, 0, 0));
}

#[test]
fn packets_can_be_dropped_and_rewritten_and_stay_in_order() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut driver = open("rewrite", &["udp port 5060"]);
    for v6 in [false, true] {
        let flow = Flow::new(&chain, v6, 5060);
        for number in 0..30_u8 {
            flow.send(&[number]);
        }
        let mut seen = 0;
        while seen < 30 {
            for_each_packet(&mut driver, |driver, id, bytes| {
                match seen % 3 {
                    0 => driver.finish(id, Final::Pass),
                    1 => driver.finish(id, Final::Drop),
                    _ => {
                        let longer = format!("{seen} with more to say than before");
                        let changed = build::replace_udp_payload(bytes, longer.as_bytes()).unwrap();
                        driver.finish(id, Final::Replace(&changed));
                    }
                }
                seen += 1;
            });
        }
        for number in (0..30_u8).filter(|number| number % 3 != 1) {
            let expected =
                if number % 3 == 0 { vec![number] } else { format!("{number} with more to say than before").into() };
            assert_eq!(flow.received().unwrap(), expected);
        }
    }
    let counters = driver.counters();
    assert_eq!((counters.passed, counters.dropped, counters.replaced), (20, 20, 20));
}

/// A sender's and a receiver's socket, and the way between them.
pub(crate) struct Flow {
    pub(crate) sender: UdpSocket,
    pub(crate) receiver: UdpSocket,
    pub(crate) to: SocketAddr,
}

impl Flow {
    pub(crate) fn new(chain: &Chain, v6: bool, port: u16) -> Flow {
        let to = SocketAddr::new(address(v6, 1, 2), port);
        let sender = chain.udp(SENDER, &SocketAddr::new(address(v6, 0, 1), 0).to_string());
        Flow { sender, receiver: chain.udp(RECEIVER, &to.to_string()), to }
    }

    pub(crate) fn send(&self, payload: &[u8]) {
        self.sender.send_to(payload, self.to).unwrap();
    }

    pub(crate) fn received(&self) -> Option<Vec<u8>> {
        receive(&self.receiver).map(|(payload, _)| payload)
    }
}

pub(crate) fn config(instance: &str) -> DriverConfig {
    DriverConfig::new(instance)
}

pub(crate) fn open(instance: &str, filters: &[&str]) -> Afxdp {
    open_with(&config(instance), filters)
}

pub(crate) fn open_with(config: &DriverConfig, filters: &[&str]) -> Afxdp {
    let mut driver = Afxdp::open(config).unwrap();
    for (id, filter) in (0..).zip(filters) {
        driver.install(FilterId(id), &filter.parse().unwrap()).unwrap();
    }
    driver
}

/// Lets a driver that gets no packets hear of changes.
pub(crate) fn idle(driver: &mut Afxdp) {
    assert_eq!(driver.receive(&mut Batch::new(), Some(Duration::from_millis(20))).unwrap(), 0);
}

/// Receives one batch, hands each packet on, and flushes.
pub(crate) fn for_each_packet(
    driver: &mut Afxdp,
    mut each: impl FnMut(&mut Afxdp, netserv_dataplane::PacketId, &[u8]),
) {
    let mut batch = Batch::new();
    driver.receive(&mut batch, Some(Duration::from_secs(2))).unwrap();
    for packet in batch.iter() {
        each(driver, packet.id, packet.bytes);
    }
    driver.flush().unwrap();
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
