// SPDX-License-Identifier: Apache-2.0
//! Packets with packets inside, whose checksums a sender on a link made of software leaves to a card that is not there:
//! the kernel has them, and they arrive.

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use netserv_patience::grown;
use netserv_plane::{Batch, Driver, DriverConfig, Final, XdpForward};
use netserv_skips::not_run;
use netserv_wire::ip::{build, checksum};

use crate::classify::device;
use crate::common::{Chain, receive, test};
use crate::{Afxdp, RECEIVER, ROUTER, SENDER, config, idle, open, open_with};

#[test]
fn what_travels_in_tunnels_arrives() {
    for kind in ["ipip", "gre", "vxlan"] {
        let Some(chain) = Chain::new(3) else { return };
        let Some(tunnel) = Tunnel::new(&chain, kind) else {
            not_run(&test(), &format!("this kernel has no tunnels of the kind {kind}"));
            continue;
        };
        tunnel.carries_all(|| 0, "by the kernel alone");
        let _entered = chain.enter(ROUTER);
        for (filter, forwards) in [("udp port 5060", true), ("dst 10.0.1.2", false), ("dst 10.0.1.2", true)] {
            let wish = if forwards { XdpForward::On } else { XdpForward::Off };
            let wishes = DriverConfig { xdp_forward: wish, ..config("tunnels") };
            let mut driver = open_with(&wishes, &[filter]);
            idle(&mut driver);
            let what = format!("{kind}, {filter}, forwarding in XDP: {forwards}");
            // What is seen must be none of it: the rest is neighbour discovery and the like.
            let seen = tunnel.carries_all(|| pass_at_once(&mut driver), &what);
            let counters = driver.counters();
            assert_eq!((seen, counters.forwarded), (0, 0), "{what}");
            let unseen_min = if filter == "dst 10.0.1.2" { PACKETS } else { 0 };
            assert!(counters.unseen >= unseen_min, "{what}: {counters:?}");
        }
    }
}

/// Each kind that may be unfinished inside, and one next to it that is not.
#[test]
fn what_may_not_be_finished_inside_is_left_to_the_kernel() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let driver = open("unfinished", &["ip"]);
    let (device, station) = device(&chain);
    let is_taken = |packet: &[u8]| {
        let kind: [u8; 2] = if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
        driver.classify(&[&station[..], &[2; 6], &kind, packet].concat(), device).unwrap()
    };
    let mut left = 0;
    for (from, to) in [("10.0.0.1", "10.0.1.2"), ("fd00::1", "fd00:0:0:1::2")] {
        let (from, to): (IpAddr, IpAddr) = (from.parse().unwrap(), to.parse().unwrap());
        for (port, expected) in [(4789, false), (8472, false), (6081, false), (4788, true), (4790, true), (8471, true)]
        {
            let packet = build::udp((from, 9).into(), (to, port).into(), 64, b"abc").unwrap();
            assert_eq!(is_taken(&packet), expected, "{to}, port {port}");
            left += u64::from(!expected);
        }
        for (protocol, expected) in [(4, false), (41, false), (47, false), (132, false), (50, true), (136, true)] {
            let mut packet = build::udp((from, 9).into(), (to, 4789).into(), 64, b"abc").unwrap();
            packet[if from.is_ipv4() { 9 } else { 6 }] = protocol;
            checksum::fill(&mut packet).unwrap();
            assert_eq!(is_taken(&packet), expected, "{to}, protocol {protocol}");
            left += u64::from(!expected);
        }
    }
    assert_eq!(driver.counters().unseen, left);
}

const PACKETS: u64 = 10;

/// A tunnel between the ends of a chain, and a flow in it.
struct Tunnel {
    sender: UdpSocket,
    receiver: UdpSocket,
}

impl Tunnel {
    /// Returns nothing if the kernel does not know this kind.
    fn new(chain: &Chain, kind: &str) -> Option<Tunnel> {
        let ends =
            [(SENDER, "10.0.0.1", "10.0.1.2", "10.77.0.1/24"), (RECEIVER, "10.0.1.2", "10.0.0.1", "10.77.0.2/24")];
        for (node, local, remote, address) in ends {
            let add = ["ip", "link", "add", "inside", "type", kind, "local", local, "remote", remote];
            let options: &[&str] = if kind == "vxlan" { &["id", "7", "dstport", "4789"] } else { &[] };
            if !chain.try_run(node, &[&add[..], options].concat()) {
                return None;
            }
            chain.run(node, &["ip", "address", "add", address, "dev", "inside"]);
            chain.run(node, &["ip", "link", "set", "inside", "up"]);
        }
        if !chain.try_run(RECEIVER, &["ethtool", "-K", "left", "gro", "on"]) {
            not_run("forwarding in XDP", "veth of this kernel has no NAPI of its own");
        }
        let receiver = chain.udp(RECEIVER, "10.77.0.2:5060");
        receiver.set_read_timeout(Some(grown(Duration::from_secs(2)))).unwrap();
        Some(Tunnel { sender: chain.udp(SENDER, "10.77.0.1:0"), receiver })
    }

    /// Sends packets one by one, with something to be done after each; all must arrive. Returns the sum of what was done.
    fn carries_all(&self, mut after_each: impl FnMut() -> usize, what: &str) -> usize {
        let mut done = 0;
        for number in 0..PACKETS {
            self.sender.send_to(&number.to_be_bytes(), "10.77.0.2:5060").unwrap();
            done += after_each();
            let received = receive(&self.receiver).map(|(payload, _)| payload);
            assert_eq!(received.as_deref(), Some(&number.to_be_bytes()[..]), "{what}");
        }
        done
    }
}

/// Passes what comes within a short time; returns how many there were.
fn pass_at_once(driver: &mut Afxdp) -> usize {
    let mut batch = Batch::new();
    driver.receive(&mut batch, Some(Duration::from_millis(20))).unwrap();
    batch.iter().for_each(|packet| driver.finish(packet.id, Final::Pass));
    driver.flush().unwrap();
    batch.len()
}
