// SPDX-License-Identifier: Apache-2.0
//! Chains of network namespaces for tests as root.
#![allow(dead_code, reason = "each test program uses its own part of this module")]

pub mod contract;
pub mod lanes;
pub mod load;
pub mod signaling;

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use netserv_netlink::message as netlink;
use netserv_patience::grown;
use netserv_skips::skipped;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Namespaces in a row: link `k` joins the `k`-th and the next one. They go when this is dropped.
///
/// On link `k` the left end has 10.0.k.1 and fd00:0:0:k::1, the right end 10.0.k.2 and fd00:0:0:k::2; the devices are
/// called `right` and `left` after where they lead. Every namespace knows the way to every link and forwards.
pub struct Chain {
    names: Vec<String>,
}

impl Chain {
    /// Builds a chain of `count` namespaces; `None`, said loudly, without the rights to do so.
    pub fn new(count: usize) -> Option<Chain> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            skipped(&test(), "network namespaces need root");
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |k| format!("ns-dataplane-{}-{number}-{k}", std::process::id());
        let chain = Chain { names: (0..count).map(name).collect() };
        ip(&["-batch", "-"], &chain.names.iter().map(|name| format!("netns add {name}\n")).collect::<String>());
        for k in 0..count {
            let _entered = chain.enter(k);
            // Without duplicate address detection addresses can be used at once.
            for (switch, value) in
                [("ipv4/ip_forward", "1"), ("ipv6/conf/all/forwarding", "1"), ("ipv6/conf/default/accept_dad", "0")]
            {
                std::fs::write(format!("/proc/sys/net/{switch}"), value).unwrap();
            }
        }
        for pair in chain.names.windows(2) {
            let queues = queues(crate::LANES);
            let (left, right) = (&pair[0], &pair[1]);
            let link =
                format!("link add right netns {left} {queues} type veth peer name left netns {right} {queues}\n");
            ip(&["-batch", "-"], &link);
        }
        for k in 0..count {
            ip(&["-n", &chain.names[k], "-batch", "-"], &configuration(k, count));
        }
        Some(chain)
    }

    /// Moves the calling thread into the `k`-th namespace until the guard is dropped.
    pub fn enter(&self, k: usize) -> Entered {
        let before = File::open("/proc/thread-self/ns/net").unwrap();
        let namespace = File::open(format!("/run/netns/{}", self.names[k])).unwrap();
        move_into_link_name_space(std::os::fd::AsFd::as_fd(&namespace), Some(LinkNameSpaceType::Network)).unwrap();
        Entered { before }
    }

    /// Opens a UDP socket in the `k`-th namespace, with a timeout for receiving.
    pub fn udp(&self, k: usize, address: &str) -> UdpSocket {
        let _entered = self.enter(k);
        let address: SocketAddr = address.parse().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let socket = loop {
            match UdpSocket::bind(address) {
                // A process that another test is just starting may have a socket that was closed here for a moment.
                Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < until => {
                    std::thread::yield_now();
                }
                socket => break socket.unwrap(),
            }
        };
        socket.set_read_timeout(Some(grown(Duration::from_secs(2)))).unwrap();
        socket
    }

    /// Runs a program in the `k`-th namespace and returns what it wrote.
    pub fn run(&self, k: usize, command: &[&str]) -> String {
        let output = Command::new("ip").args(["netns", "exec", &self.names[k]]).args(command).output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a program in the `k`-th namespace with some input.
    pub fn input(&self, k: usize, command: &[&str], text: &str) {
        let mut child = Command::new("ip")
            .args(["netns", "exec", &self.names[k]])
            .args(command)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{command:?}");
    }

    /// Runs a program in the `k`-th namespace and returns whether it succeeded.
    pub fn try_run(&self, k: usize, command: &[&str]) -> bool {
        let mut command_in = Command::new("ip");
        command_in.args(["netns", "exec", &self.names[k]]).args(command);
        command_in.stderr(Stdio::null()).status().unwrap().success()
    }

    /// Returns the namespaces' names.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        for name in &self.names {
            // A namespace that was never made cannot be removed.
            let _ = Command::new("ip").args(["netns", "del", name]).stderr(Stdio::null()).status();
        }
    }
}

/// The calling thread is in another namespace as long as this lives.
pub struct Entered {
    before: File,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = std::os::fd::AsFd::as_fd(&self.before);
        move_into_link_name_space(before, Some(LinkNameSpaceType::Network)).expect("the way back is open");
    }
}

/// Returns the address of one end of a link, in either version: the left end is 1, the right end 2.
pub fn address(v6: bool, link: usize, end: usize) -> IpAddr {
    let text = if v6 { format!("fd00:0:0:{link}::{end}") } else { format!("10.0.{link}.{end}") };
    text.parse().unwrap()
}

/// Receives one datagram, or `None` if none comes.
pub fn receive(socket: &UdpSocket) -> Option<(Vec<u8>, SocketAddr)> {
    let mut buffer = vec![0; 65_536];
    let (length, from) = socket.recv_from(&mut buffer).ok()?;
    buffer.truncate(length);
    Some((buffer, from))
}

/// Returns how many queues a veth that is added is to have, as `ip` has it: so many, and room for more where that is one.
pub fn queues(count: usize) -> String {
    if count == 1 { String::new() } else { format!("numrxqueues {count} numtxqueues {count}") }
}

fn configuration(k: usize, count: usize) -> String {
    let mut batch = String::from("link set lo up\n");
    for (present, device, link, end) in [(k > 0, "left", k.wrapping_sub(1), 2), (k + 1 < count, "right", k, 1)] {
        if present {
            batch += &format!("link set {device} up\n");
            batch += &format!("addr add {}/24 dev {device}\n", address(false, link, end));
            batch += &format!("addr add {}/64 dev {device} nodad\n", address(true, link, end));
        }
    }
    for link in 0..count - 1 {
        for v6 in [false, true] {
            let net = if v6 { format!("fd00:0:0:{link}::/64") } else { format!("10.0.{link}.0/24") };
            if link > k {
                batch += &format!("route add {net} via {}\n", address(v6, k, 2));
            } else if link + 1 < k {
                batch += &format!("route add {net} via {}\n", address(v6, k - 1, 1));
            }
        }
    }
    batch
}

fn ip(arguments: &[&str], input: &str) {
    let mut command = Command::new("ip");
    let mut child = command.args(arguments).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{input}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the name of the test that runs in this thread.
pub fn test() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}

/// Does what `nft add table inet fw; nft add chain inet fw forward { type filter hook forward priority 0; policy drop; }`
/// does, without that tool: one batch of `NFT_MSG_NEWTABLE` and `NFT_MSG_NEWCHAIN`.
pub fn add_inet_chain() {
    const BATCH: &str = "\
        140000001000010001000000000000000000000a\
        1c000000000a05040200000000000000010000000700010066770000\
        50000000030a05040300000000000000010000000700010066770000\
        0c000300666f7277617264001400048008000100000000020800020000000000\
        08000500000000000b00070066696c7465720000\
        140000001100010004000000000000000000000a";
    let digits: Vec<u8> = BATCH.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    send_batch(&digits.chunks(2).map(byte).collect::<Vec<_>>());
}

/// Does what `nft add table netdev fw; nft add chain netdev fw DEVICE { type filter hook ingress device DEVICE priority 0; }` does.
pub fn add_device_chain(device: &str) {
    const TABLE: u16 = 10 << 8;
    const CHAIN: u16 = 10 << 8 | 3;
    const CREATE: u16 = 0x401;
    let text = |text: &str| [text.as_bytes(), &[0]].concat();
    let nested = |list: &[(u16, &[u8])]| {
        let mut bytes = Vec::new();
        list.iter().for_each(|(kind, content)| netlink::append_attribute(&mut bytes, *kind, content));
        bytes
    };
    let netdev = [5, 0, 0, 0];
    let hook = nested(&[(1, &[0; 4]), (2, &[0; 4]), (3, &text(device))]);
    let mut batch = Vec::new();
    netlink::append(&mut batch, 16, 1, 0, &[0, 0, 0, 10], &[]);
    netlink::append(&mut batch, TABLE, CREATE, 1, &netdev, &[(1, &text("fw"))]);
    let list: [(u16, &[u8]); 4] = [(1, &text("fw")), (3, &text(device)), (4 | 0x8000, &hook), (7, &text("filter"))];
    netlink::append(&mut batch, CHAIN, CREATE, 2, &netdev, &list);
    netlink::append(&mut batch, 17, 1, 3, &[0, 0, 0, 10], &[]);
    send_batch(&batch);
}

fn send_batch(batch: &[u8]) {
    let netfilter = Some(rustix::net::netlink::NETFILTER);
    let (family, kind) = (rustix::net::AddressFamily::NETLINK, rustix::net::SocketType::RAW);
    let socket = rustix::net::socket_with(family, kind, rustix::net::SocketFlags::CLOEXEC, netfilter).unwrap();
    let kernel = rustix::net::netlink::SocketAddrNetlink::new(0, 0);
    let sent = rustix::net::sendto(&socket, batch, rustix::net::SendFlags::empty(), &kernel).unwrap();
    assert_eq!(sent, batch.len());
}
