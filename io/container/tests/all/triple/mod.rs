// SPDX-License-Identifier: Apache-2.0
//! A client, a router and a server, with real sockets.
#![allow(dead_code, reason = "each test program uses another part")]

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use netserv_container::network::{ContainerNetwork, HostIntercepts, NetworkSpec};
use netserv_model::Filter;
use netserv_model::container_link::container_link;
use netserv_skips::skipped;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// How long to wait for what must not come, and for what must.
pub const SHORT: Duration = Duration::from_millis(200);
pub const LONG: Duration = Duration::from_secs(60);
/// Client and server of each version of IP.
pub const ENDS: [(&str, &str); 2] = [("10.72.1.2", "10.72.2.2"), ("fd72:1::2", "fd72:2::2")];

/// Sends bytes over a connection and sees them arrive.
pub fn pass(from: &mut TcpStream, to: &mut TcpStream, bytes: &[u8]) {
    let mut writer = from.try_clone().unwrap();
    to.set_read_timeout(Some(LONG)).unwrap();
    let mut received = vec![0; bytes.len()];
    std::thread::scope(|scope| {
        scope.spawn(move || writer.write_all(bytes).unwrap());
        to.read_exact(&mut received).unwrap();
    });
    assert_eq!(received, bytes);
}

/// Takes a connection that must come.
pub fn accept(listener: &TcpListener) -> TcpStream {
    let came = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&LONG.try_into().unwrap())).unwrap();
    assert_eq!(came, 1, "no connection within {LONG:?}");
    listener.accept().unwrap().0
}

/// Waits for a connection for a while, and returns whether none came.
pub fn is_idle(listener: &TcpListener) -> bool {
    poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&SHORT.try_into().unwrap())).unwrap() == 0
}

/// A client and a server with a router between them; the test's thread is the router.
pub struct Lab {
    pub router: String,
    pub client: String,
    pub server: String,
    pub host: Arc<HostIntercepts>,
}

impl Lab {
    pub fn start(test: &str) -> Option<Lab> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            skipped(test, "networks need root");
            return None;
        }
        let number = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let [router, client, server] = ["r", "c", "s"].map(|letter| format!("ns-intercept-{letter}{number}"));
        [&router, &client, &server].iter().for_each(|name| run(&format!("ip netns add {name}")));
        run(&format!("ip -n {router} link set lo up"));
        for (place, name) in [(1, &client), (2, &server)] {
            for command in [
                format!("ip -n {router} link add eth{place} type veth peer name eth{place} netns {name}"),
                format!("ip -n {name} link set lo up"),
                format!("ip -n {router} address add 10.72.{place}.1/24 dev eth{place}"),
                format!("ip -n {name} address add 10.72.{place}.2/24 dev eth{place}"),
                format!("ip -n {router} address add fd72:{place}::1/64 dev eth{place} nodad"),
                format!("ip -n {name} address add fd72:{place}::2/64 dev eth{place} nodad"),
                format!("ip -n {router} address add fe80::1/64 dev eth{place} nodad"),
                format!("ip -n {name} address add fe80::2/64 dev eth{place} nodad"),
                format!("ip -n {router} link set eth{place} up addrgenmode none"),
                format!("ip -n {name} link set eth{place} up addrgenmode none"),
                format!("ip -n {name} route add default via 10.72.{place}.1"),
                format!("ip -n {name} route add default via fd72:{place}::1"),
            ] {
                run(&command);
            }
        }
        enter(File::open(format!("/run/netns/{router}")).unwrap().as_fd());
        fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").unwrap();
        let host = Arc::new(HostIntercepts::open(&router).unwrap());
        Some(Lab { router, client, server, host })
    }

    pub fn instance(&self) -> String {
        self.router.clone()
    }

    pub fn container(&self, number: u32, addresses: &[&str]) -> ContainerNetwork {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        let name = container_link(&self.instance(), number);
        ContainerNetwork::create(&NetworkSpec {
            name,
            addresses,
            listen: vec![],
            connect: vec![],
            rate: Default::default(),
        })
        .unwrap()
    }

    pub fn client<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        inside(File::open(format!("/run/netns/{}", self.client)).unwrap().as_fd(), act)
    }

    pub fn server<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        inside(File::open(format!("/run/netns/{}", self.server)).unwrap().as_fd(), act)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in [&self.router, &self.client, &self.server] {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

/// Acts in a namespace, on a thread that ends with it. Sockets that are made there stay there.
pub fn inside<T: Send>(namespace: BorrowedFd<'_>, act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let entered = scope.spawn(|| {
            enter(namespace);
            act()
        });
        entered.join().unwrap()
    })
}

pub fn enter(namespace: BorrowedFd<'_>) {
    move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network)).unwrap();
}

pub fn run(command: &str) {
    let mut words = command.split(' ');
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

pub fn filters(texts: &[&str]) -> Vec<Filter> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

pub fn at(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().unwrap(), port)
}
