// SPDX-License-Identifier: Apache-2.0
//! What every driver that forwards owes its caller, on real packets: a sender, a router with the driver, a receiver.
//!
//! The caller is in the router's namespace.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use ipnet::IpNet;
use netserv_model::effect::FilterId;
use netserv_plane::limits::COUNTED_PREFIXES_MAX;
use netserv_plane::{Batch, DestinationCount, Driver, DriverError, Egress, Final, PacketId};
use netserv_wire::ip::{IpView, build, checksum};

use super::{Chain, address, receive};

pub const SENDER: usize = 0;
pub const ROUTER: usize = 1;
pub const RECEIVER: usize = 2;

/// A sender's and a receiver's socket, and the way between them.
pub struct Flow {
    pub sender: UdpSocket,
    pub receiver: UdpSocket,
    pub to: SocketAddr,
}

impl Flow {
    pub fn new(chain: &Chain, v6: bool, port: u16) -> Flow {
        let to = SocketAddr::new(address(v6, 1, 2), port);
        let sender = chain.udp(SENDER, &SocketAddr::new(address(v6, 0, 1), 0).to_string());
        Flow { sender, receiver: chain.udp(RECEIVER, &to.to_string()), to }
    }

    pub fn send(&self, payload: &[u8]) {
        self.sender.send_to(payload, self.to).unwrap();
    }

    pub fn received(&self) -> Option<Vec<u8>> {
        receive(&self.receiver).map(|(payload, _)| payload)
    }
}

/// Installs filters, numbered from 0.
pub fn with_filters<D: Driver>(mut driver: D, filters: &[&str]) -> D {
    for (id, filter) in (0..).zip(filters) {
        driver.install(FilterId(id), &filter.parse().unwrap()).unwrap();
    }
    driver
}

/// Receives one batch, hands each packet on, and flushes.
pub fn for_each_packet<D: Driver>(driver: &mut D, mut each: impl FnMut(&mut D, PacketId, &[u8])) {
    let mut batch = Batch::new();
    driver.receive(&mut batch, Some(Duration::from_secs(2))).unwrap();
    for packet in batch.iter() {
        each(driver, packet.id, packet.bytes);
    }
    driver.flush().unwrap();
}

/// 200 packets to port 5060, which the driver's filter wants, are seen in order and arrive; those to port 5061 arrive
/// although nobody receives.
pub fn matching_packets_are_seen_and_the_others_pass_alone(chain: &Chain, driver: &mut impl Driver) {
    for v6 in [false, true] {
        let flow = Flow::new(chain, v6, 5060);
        let other = Flow::new(chain, v6, 5061);
        for number in 0..100_u8 {
            flow.send(&[number]);
        }
        other.send(b"other");
        assert_eq!(other.received().unwrap(), b"other");
        let mut seen = 0;
        while seen < 100 {
            for_each_packet(driver, |driver, id, bytes| {
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
    assert_eq!((driver.counters().received, driver.counters().passed), (200, 200));
}

/// Of the packets to port 5060 a third each is passed, dropped, and made longer; what arrives is in order.
pub fn packets_can_be_dropped_and_rewritten_and_stay_in_order(chain: &Chain, driver: &mut impl Driver) {
    for v6 in [false, true] {
        let flow = Flow::new(chain, v6, 5060);
        for number in 0..30_u8 {
            flow.send(&[number]);
        }
        let mut seen = 0;
        while seen < 30 {
            for_each_packet(driver, |driver, id, bytes| {
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

/// A module that answers in the packet path, each flow so many times: what comes to port 5060 goes back with source and
/// destination swapped, and nothing goes on.
pub fn a_packet_turned_around_reaches_its_sender(chain: &Chain, driver: &mut impl Driver, times: u64) {
    for v6 in [false, true] {
        let flow = Flow::new(chain, v6, 5060);
        for _ in 0..times {
            flow.send(b"echo");
            for_each_packet(driver, |driver, id, bytes| {
                let view = IpView::parse(bytes).unwrap();
                let udp = view.udp().unwrap();
                let (from, to) = ((view.destination(), udp.destination_port), (view.source(), udp.source_port));
                let turned = build::udp(from.into(), to.into(), 9, udp.payload).unwrap();
                driver.finish(id, Final::Replace(&turned));
            });
            let (answer, from) = receive(&flow.sender).expect("the packet comes back");
            assert_eq!((answer.as_slice(), from), (b"echo".as_slice(), flow.to));
        }
        flow.receiver.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        assert_eq!(flow.received(), None);
    }
    assert_eq!(driver.counters().redirected, 2 * times);
}

/// What a module turns to another address may be longer than the way there allows: it arrives whole, in fragments,
/// whether the first sender let it be cut or not. Method: the receiver's link carries 1,400 bytes, packets of 1,440 for
/// a machine that is not there come to port 5060, `times` of each kind, and the module turns them to the receiver.
pub fn a_packet_longer_than_its_new_way_arrives(chain: &Chain, driver: &mut impl Driver, times: u64) {
    chain.run(ROUTER, &["ip", "link", "set", "right", "mtu", "1400"]);
    let mut turned = 0;
    for (v6, must_not_be_cut) in [(false, true), (false, false), (true, true)] {
        let flow = Flow::new(chain, v6, 5060);
        let elsewhere = SocketAddr::new(address(v6, 1, 77), 5060);
        let payload: Vec<u8> = (0..=250).cycle().take(1440 - if v6 { 48 } else { 28 }).collect();
        for _ in 0..times {
            flow.sender.send_to(&payload, elsewhere).unwrap();
            for_each_packet(driver, |driver, id, bytes| {
                let view = IpView::parse(bytes).unwrap();
                let from = SocketAddr::new(view.source(), view.ports().unwrap().0);
                let mut packet = build::udp(from, flow.to, view.ttl(), view.udp().unwrap().payload).unwrap();
                if !v6 {
                    packet[6] = if must_not_be_cut { 0x40 } else { 0 };
                    checksum::fill(&mut packet).unwrap();
                }
                assert_eq!(packet.len(), 1440);
                driver.finish(id, Final::Replace(&packet));
            });
            assert!(flow.received().is_some_and(|got| got == payload), "IPv6 {v6}, DF {must_not_be_cut}");
            turned += 1;
        }
    }
    assert_eq!((driver.counters().redirected, driver.counters().send_failed), (turned, 0));
}

/// A packet to port 5060 that is turned around with a TTL of 1 goes nowhere.
pub fn a_packet_whose_ttl_runs_out_on_its_new_way_is_dropped(chain: &Chain, driver: &mut impl Driver) {
    let flow = Flow::new(chain, false, 5060);
    flow.send(b"x");
    for_each_packet(driver, |driver, id, _| {
        let turned = build::udp(flow.to, flow.sender.local_addr().unwrap(), 1, b"x").unwrap();
        driver.finish(id, Final::Replace(&turned));
    });
    assert_eq!((driver.counters().bad_verdict, driver.counters().redirected), (1, 0));
}

/// What a module makes must not reach services of the node itself past the rules for packets from outside: sent from a
/// raw socket, it would seem to come by the loopback interface. Method: new packets and packets to port 5060 that are
/// turned, to all that the kernel would not send to one other machine; some of it is younger than the driver.
pub fn packets_for_no_other_machine_are_neither_injected_nor_redirected(chain: &Chain, driver: &mut impl Driver) {
    chain.run(ROUTER, &["ip", "address", "add", "10.7.7.7/32", "dev", "lo"]);
    for route in [
        "local 10.8.0.0/16 dev lo",
        "blackhole 10.9.0.0/16",
        "unicast 10.10.0.0/16 dev lo",
        "local fd00:8::/64 dev lo",
        "unreachable fd00:9::/64",
    ] {
        chain.run(ROUTER, &[&["ip", "route", "add"], route.split(' ').collect::<Vec<_>>().as_slice()].concat());
    }
    let mut refused = 0;
    for destination in [
        "127.0.0.1",
        "127.9.9.9",
        "10.7.7.7",
        "10.0.0.2",
        "10.8.3.4",
        "10.9.3.4",
        "10.10.3.4",
        "10.0.1.255",
        "239.1.1.1",
        "192.0.2.1",
        "::1",
        "fd00::2",
        // The subnet-router anycast addresses of both links.
        "fd00::",
        "fd00:0:0:1::",
        "fd00:8::7",
        "fd00:9::7",
        "2001:db8::1",
    ] {
        assert_refused(chain, driver, destination, true);
        refused += 1;
        assert_eq!(driver.counters().refused, refused, "{destination}");
    }
    for (prefix, destination) in [("10.0.1.77/32", "10.0.1.77"), ("fd00:0:0:1::77/128", "fd00:0:0:1::77")] {
        assert_refused(chain, driver, destination, false);
        chain.run(ROUTER, &["ip", "route", "add", "local", prefix, "dev", "lo"]);
        assert_refused(chain, driver, destination, true);
        chain.run(ROUTER, &["ip", "route", "del", "local", prefix, "dev", "lo"]);
        assert_refused(chain, driver, destination, false);
    }
    let counters = driver.counters();
    assert_eq!((counters.refused, counters.bad_verdict), (refused + 2, 0));
}

/// Asserts whether a destination is refused, and that the router itself gets nothing either way.
fn assert_refused(chain: &Chain, driver: &mut impl Driver, destination: &str, refused: bool) {
    let destination: IpAddr = destination.parse().unwrap();
    let v6 = destination.is_ipv6();
    let listener = chain.udp(ROUTER, if v6 { "[::]:0" } else { "0.0.0.0:0" });
    listener.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let packet = build::udp(
        SocketAddr::new(address(v6, 0, 1), 9),
        SocketAddr::new(destination, listener.local_addr().unwrap().port()),
        64,
        b"x",
    );
    let packet = packet.unwrap();
    // Changes are looked for at most once in a millisecond.
    std::thread::sleep(Duration::from_millis(2));
    match driver.inject(&packet) {
        Ok(()) => assert!(!refused, "{destination} is taken"),
        Err(DriverError::NoMachine(named)) => assert!(refused && named == destination, "{destination} is refused"),
        Err(error) => panic!("{destination}: {error}"),
    }
    let flow = Flow::new(chain, v6, 5060);
    flow.send(b"turned");
    for_each_packet(driver, |driver, id, _| {
        let told = driver.explain(id, Final::Replace(&packet));
        assert_eq!(matches!(told, Egress::Refused { .. }), refused, "{destination}: {told:?}");
        driver.finish(id, Final::Replace(&packet));
    });
    assert_eq!(receive(&listener), None, "{destination} is no way to the node itself");
}

/// Large TCP sends over veth travel with an unfinished checksum; modules must see packets as on the wire. The driver's
/// filter wants port 8000 by TCP. Returns the length of the longest packet that was seen.
pub fn streams_arrive_as_they_were_sent_and_their_checksums_are_complete(
    chain: &Chain,
    driver: &mut impl Driver,
    v6: bool,
) -> usize {
    let to = SocketAddr::new(address(v6, 1, 2), 8000);
    let listener = {
        let _entered = chain.enter(RECEIVER);
        TcpListener::bind(to).unwrap()
    };
    let data: Vec<u8> = (0..400_000_u32).map(|number| (number % 251).to_le_bytes()[0]).collect();
    let expected = data.clone();
    let names = chain.names()[SENDER].clone();
    let sending = std::thread::spawn(move || {
        let namespace = std::fs::File::open(format!("/run/netns/{names}")).unwrap();
        let kind = Some(rustix::thread::LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&namespace), kind).unwrap();
        TcpStream::connect(to).unwrap().write_all(&data).unwrap();
    });
    let receiving = std::thread::spawn(move || {
        let mut received = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
        received
    });
    let mut longest = 0;
    while !receiving.is_finished() {
        for_each_packet(driver, |driver, id, bytes| {
            longest = longest.max(bytes.len());
            let view = IpView::parse(bytes).unwrap();
            assert_eq!(checksum::verify_transport(&view), checksum::TransportChecksum::Good);
            driver.finish(id, Final::Pass);
        });
    }
    sending.join().unwrap();
    assert!(receiving.join().unwrap() == expected, "the data arrives as it was sent");
    longest
}

/// Packets are counted by destination, whether a filter wants them or not, once for each prefix that they go to.
pub fn packets_are_counted_by_destination(chain: &Chain, driver: &mut impl Driver) {
    let counters = driver.destination_counters();
    let prefix = |text: &str| text.parse::<IpNet>().unwrap();
    for v6 in [false, true] {
        let flow = Flow::new(chain, v6, 5061);
        let host = IpNet::from(flow.to.ip());
        let (around, elsewhere) =
            if v6 { ("fd00:0:0:1::/64", "fd00:0:0:7::/64") } else { ("10.0.1.77/24", "10.0.7.0/24") };
        let everywhere = if v6 { "::/0" } else { "0.0.0.0/0" };
        let asked = [prefix(around), host, prefix(elsewhere), prefix(everywhere), host];
        counters.count(&asked).unwrap();
        // The kernels themselves send something everywhere now and then.
        assert_eq!(counters.read().unwrap()[..3], vec![DestinationCount::default(); 3]);
        (0..10).for_each(|number| flow.send(&[number]));
        (0..10).for_each(|number| assert_eq!(flow.received().unwrap(), [number]));
        let ten = DestinationCount { packets: 10, syns: 0 };
        let counted = counters.read().unwrap();
        assert_eq!(counted[..3], [ten, ten, DestinationCount::default()]);
        assert!(counted[3].packets >= 10 && counted[4] == ten, "{counted:?}");
        let listener = {
            let _entered = chain.enter(RECEIVER);
            TcpListener::bind(SocketAddr::new(flow.to.ip(), 8080)).unwrap()
        };
        for _ in 0..3 {
            let _entered = chain.enter(SENDER);
            drop(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        }
        let counted = counters.read().unwrap();
        assert_eq!((counted[0].syns, counted[1].syns, counted[2].syns, counted[3].syns), (3, 3, 0, 3), "{counted:?}");
        assert!(counted[1].packets >= 16, "{counted:?}");
    }
    let many = |count: usize| (0..count).map(|n| prefix(&format!("10.9.{n}.0/24"))).collect::<Vec<_>>();
    assert!(matches!(counters.count(&many(COUNTED_PREFIXES_MAX + 1)), Err(DriverError::PrefixesFull(_))));
    counters.count(&many(COUNTED_PREFIXES_MAX)).unwrap();
    assert_eq!(counters.read().unwrap(), vec![DestinationCount::default(); COUNTED_PREFIXES_MAX]);
    counters.count(&[]).unwrap();
    assert_eq!(counters.read().unwrap(), []);
}
