// SPDX-License-Identifier: Apache-2.0
//! Devices that XDP does not reach: packets for modules come by them all the same.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use netserv_model::Filter;
use netserv_model::effect::FilterId;
use netserv_plane::{Batch, Change, Driver, Final};
use netserv_wire::ip::build;

use crate::common::{Chain, receive};
use crate::{Afxdp, Flow, RECEIVER, ROUTER, idle, open, pass};

/// Goal: what filters want of a tunnel is seen, and goes no further if a module drops it, whether the tunnel or the driver was there
/// first; so is what comes by an Ethernet beside it, and what no filter wants passes.
#[test]
fn packets_out_of_a_tunnel_are_seen() {
    for comes_later in [false, true] {
        let Some(chain) = Chain::new(3) else { return };
        let _entered = chain.enter(ROUTER);
        let before = (!comes_later).then(Tunnel::open);
        let mut driver = open("beside", &["udp port 5060"]);
        let mut tunnel = before.unwrap_or_else(Tunnel::open);
        until(&mut driver, |driver| mode(driver).is_some());
        assert_eq!(mode(&driver).unwrap(), "netfilter queue");
        for to in ["10.0.1.2:5060", "[fd00:0:0:1::2]:5060"] {
            let receiver = chain.udp(RECEIVER, to);
            let to: SocketAddr = to.parse().unwrap();
            tunnel.send(to, b"seen");
            assert_eq!(pass(&mut driver, 1), 1, "{to}");
            assert_eq!(receive(&receiver).unwrap().0, b"seen");
            let before = driver.counters().dropped;
            (0..10).for_each(|_| tunnel.send(to, b"dropped"));
            assert_eq!(drop_all(&mut driver, 10), 10, "{to}");
            assert_eq!(driver.counters().dropped, before + 10);
            let unwanted = SocketAddr::new(to.ip(), 5070);
            let other = chain.udp(RECEIVER, &unwanted.to_string());
            tunnel.send(unwanted, b"unwanted");
            assert_eq!(receive(&other).unwrap().0, b"unwanted");
            receiver.set_nonblocking(true).unwrap();
            assert_eq!(receive(&receiver), None, "{to}");
        }
        let flow = Flow::new(&chain, false, 5060);
        flow.send(b"by the Ethernet");
        assert_eq!(pass(&mut driver, 1), 1);
        assert_eq!(flow.received().unwrap(), b"by the Ethernet");
        drop(tunnel);
        until(&mut driver, |driver| mode(driver).is_none());
        let _again = Tunnel::open();
        until(&mut driver, |driver| mode(driver).is_some());
    }
}

/// Goal: filters that come and go hold for the tunnel at once, and changes that are refused change nothing there.
#[test]
fn filters_hold_for_a_tunnel_too() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let mut tunnel = Tunnel::open();
    let mut driver = open("filters", &[]);
    let (first, second): (Filter, Filter) = ("udp port 5060".parse().unwrap(), "udp port 5061".parse().unwrap());
    let filters = driver.filters();
    filters.change(&[Change::InstallClosed(FilterId(1), &first)]).unwrap();
    assert!(filters.change(&[Change::Install(FilterId(2), &second), Change::Remove(FilterId(9))]).is_err());
    let [one, two] = ["10.0.1.2:5060", "10.0.1.2:5061"].map(|to| (chain.udp(RECEIVER, to), to.parse().unwrap()));
    let mut check = |driver: &mut Afxdp, (receiver, to): &(UdpSocket, SocketAddr), is_seen: bool| {
        tunnel.send(*to, b"packet");
        assert_eq!(if is_seen { pass(driver, 1) } else { 0 }, usize::from(is_seen));
        assert_eq!(receive(receiver).unwrap().0, b"packet", "{to}");
        idle(driver);
    };
    check(&mut driver, &one, true);
    check(&mut driver, &two, false);
    filters.change(&[Change::Remove(FilterId(1)), Change::Install(FilterId(2), &second)]).unwrap();
    check(&mut driver, &one, false);
    check(&mut driver, &two, true);
}

/// A tunnel's end, as that of OpenVPN: what is written to it comes in by the device `tunnel` of this namespace.
struct Tunnel(Child);

impl Tunnel {
    fn open() -> Tunnel {
        let script = "
import fcntl, os, struct, sys
tun = os.open('/dev/net/tun', os.O_RDWR)
fcntl.ioctl(tun, 0x400454ca, struct.pack('16sH22x', b'tunnel', 0x1001))
os.system('ip address add 10.77.0.2/24 dev tunnel; ip address add fd77::2/64 dev tunnel nodad; ip link set tunnel up')
print(flush=True)
for line in sys.stdin:
    os.write(tun, bytes.fromhex(line))
";
        let mut command = Command::new("python3");
        let mut child = command
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is there");
        // Until it is up.
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        Tunnel(child)
    }

    /// Has a datagram come out of the tunnel.
    fn send(&mut self, to: SocketAddr, payload: &[u8]) {
        let from: IpAddr = if to.is_ipv4() { [10, 77, 0, 1].into() } else { "fd77::1".parse().unwrap() };
        let packet = build::udp((from, 9).into(), to, 64, payload).unwrap();
        let line: String = packet.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(self.0.stdin.as_mut().unwrap(), "{line}").unwrap();
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn mode(driver: &Afxdp) -> Option<String> {
    driver.devices().into_iter().find(|device| device.name == "tunnel").map(|device| device.mode)
}

fn drop_all(driver: &mut Afxdp, count: usize) -> usize {
    let (mut batch, mut dropped, end) = (Batch::new(), 0, Instant::now() + Duration::from_secs(60));
    while dropped < count && Instant::now() < end {
        driver.receive(&mut batch, Some(Duration::from_millis(100))).unwrap();
        batch.iter().for_each(|packet| driver.finish(packet.id, Final::Drop));
        dropped += batch.len();
        driver.flush().unwrap();
    }
    dropped
}

fn until(driver: &mut Afxdp, condition: impl Fn(&Afxdp) -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !condition(driver) {
        assert!(Instant::now() < end, "{:?}", driver.devices());
        idle(driver);
    }
}
