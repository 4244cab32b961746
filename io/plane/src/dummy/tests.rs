// SPDX-License-Identifier: Apache-2.0
//! What the dummy plane does with packets, in one lane and in several.

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::*;
use crate::Packet;
use crate::packet::testing;
use crate::wrap::{Fault, FaultPlan, Trace};

const LAN: InterfaceId = InterfaceId(3);

#[test]
fn only_matching_packets_are_received() {
    let (mut driver, plane) = driver(&["udp port 5060"]);
    let (wanted, other) = (testing::udp("10.0.0.1:9", "10.0.0.2:5060", b"x"), testing::udp("[::1]:9", "[::2]:9", b"x"));
    assert!(plane.push(LAN, &wanted));
    assert!(!plane.push(LAN, &other));
    assert!(!plane.push(LAN, b"no IP packet"));
    let mut batch = Batch::new();
    assert_eq!(driver.receive(&mut batch, Some(Duration::ZERO)).unwrap(), 1);
    assert_eq!(batch.get(0), Some(Packet { id: PacketId(1), interface: LAN, bytes: &wanted }));
    let unmatched = vec![Outcome::Unmatched(other), Outcome::Unmatched(b"no IP packet".to_vec())];
    assert_eq!(plane.outcomes(), unmatched);
}

#[test]
fn verdicts_show_on_the_wire_after_a_flush() {
    let (mut driver, plane) = driver(&["udp"]);
    let packet = testing::udp("10.0.0.1:9", "10.0.0.2:9", b"x");
    let changed = testing::udp("10.0.0.1:9", "10.0.0.2:9", b"changed");
    (0..4).for_each(|_| assert!(plane.push(LAN, &packet)));
    let mut batch = Batch::new();
    driver.receive(&mut batch, None).unwrap();
    driver.finish(PacketId(2), Final::Drop);
    driver.finish(PacketId(1), Final::Pass);
    driver.finish(PacketId(3), Final::Replace(&changed));
    driver.finish(PacketId(4), Final::Replace(&changed[1..]));
    driver.finish(PacketId(4), Final::Pass);
    driver.inject(&changed).unwrap();
    assert!(matches!(driver.inject(b""), Err(DriverError::BadPacket { .. })));
    assert_eq!(plane.outcomes(), []);
    driver.flush().unwrap();
    let expected = [
        Outcome::Dropped(packet.clone()),
        Outcome::Passed(packet.clone()),
        Outcome::Replaced(changed.clone()),
        Outcome::Dropped(packet),
        Outcome::Injected(changed),
    ];
    assert_eq!(plane.outcomes(), expected);
    let expected = Counters {
        received: 4,
        passed: 1,
        dropped: 1,
        replaced: 1,
        injected: 1,
        bad_verdict: 1,
        unknown: 1,
        ..Counters::default()
    };
    assert_eq!((driver.counters(), driver.owed()), (expected, 0));
}

#[test]
fn what_becomes_of_a_packet_is_told_beforehand() {
    let (mut driver, plane) = driver(&["udp"]);
    let packet = testing::udp("10.0.0.1:9", "10.0.0.2:9", b"x");
    assert!(plane.push(LAN, &packet));
    driver.receive(&mut Batch::new(), None).unwrap();
    let mut check = |id, verdict, refused| {
        assert_eq!(matches!(driver.explain(PacketId(id), verdict), Egress::Refused { .. }), refused, "{verdict:?}");
    };
    check(1, Final::Pass, false);
    check(1, Final::Drop, true);
    check(1, Final::Replace(&packet), false);
    check(1, Final::Replace(&packet[1..]), true);
    check(2, Final::Pass, true);
    assert_eq!((driver.owed(), driver.counters().unknown), (1, 0));
}

#[test]
fn packets_for_one_link_or_for_many_are_refused() {
    let (mut driver, plane) = driver(&["udp"]);
    let packet = testing::udp("10.0.0.1:9", "10.0.0.2:9", b"x");
    for destination in ["127.0.0.1:9", "169.254.169.254:9", "224.0.0.5:9"] {
        let turned = testing::udp("10.0.0.1:9", destination, b"x");
        assert!(matches!(driver.inject(&turned), Err(DriverError::NoMachine(_))), "{destination}");
        assert!(plane.push(LAN, &packet));
        driver.receive(&mut Batch::new(), None).unwrap();
        let id = PacketId(driver.counters().received);
        assert!(matches!(driver.explain(id, Final::Replace(&turned)), Egress::Refused { .. }), "{destination}");
        driver.finish(id, Final::Replace(&turned));
    }
    // In place, the plane goes on with it as it would have.
    let near = testing::udp("10.0.0.1:9", "224.0.0.5:9", b"x");
    assert!(plane.push(LAN, &near));
    driver.receive(&mut Batch::new(), None).unwrap();
    driver.finish(PacketId(4), Final::Replace(&near));
    driver.flush().unwrap();
    let dropped = std::iter::repeat_n(Outcome::Dropped(packet), 3);
    assert_eq!(plane.outcomes(), dropped.chain([Outcome::Replaced(near)]).collect::<Vec<_>>());
    assert_eq!((driver.counters().refused, driver.counters().injected), (3, 0));
}

#[test]
fn a_batch_takes_batch_packets_max_packets() {
    let (mut driver, plane) = driver(&["udp"]);
    let packet = testing::udp("10.0.0.1:9", "10.0.0.2:9", b"x");
    (0..limits::BATCH_PACKETS_MAX + 3).for_each(|_| assert!(plane.push(LAN, &packet)));
    let mut batch = Batch::new();
    assert_eq!(driver.receive(&mut batch, None).unwrap(), limits::BATCH_PACKETS_MAX);
    assert!(batch.is_full() && !batch.push(PacketId(99), LAN, &packet));
    assert_eq!(driver.receive(&mut batch, None).unwrap(), 3);
    assert!(!batch.push(PacketId(99), LAN, &vec![0; limits::SLOT_BYTES + 1]));
    assert!(batch.push(PacketId(99), LAN, &vec![0; limits::SLOT_BYTES]));
}

#[test]
fn the_wire_takes_dummy_waiting_max_packets() {
    let (_driver, plane) = driver(&["udp"]);
    let packet = testing::udp("10.0.0.1:9", "10.0.0.2:9", b"x");
    (0..limits::DUMMY_WAITING_MAX).for_each(|_| assert!(plane.push(LAN, &packet)));
    assert!(!plane.push(LAN, &packet));
}

#[test]
fn a_failed_change_changes_nothing() {
    let (mut driver, plane) = driver(&["udp"]);
    let filter: Filter = "tcp".parse().unwrap();
    let changes = [Change::Remove(FilterId(0)), Change::Install(FilterId(7), &filter), Change::Remove(FilterId(8))];
    assert!(driver.filters().change(&changes).is_err());
    assert_eq!(plane.installed(), BTreeMap::from([(FilterId(0), "udp".parse().unwrap())]));
    driver.filters().change(&changes[..2]).unwrap();
    assert_eq!(plane.installed(), BTreeMap::from([(FilterId(7), filter)]));
    driver.remove(FilterId(7)).unwrap();
    assert!(plane.installed().is_empty());
}

/// Goal: who waits for the driver's descriptor is woken as long as packets wait, in the lane where they are, and not otherwise.
#[test]
fn the_descriptor_is_readable_while_packets_wait() {
    let (mut lanes, plane) = Dummy::lanes(2);
    let is_readable = |lane: &Dummy| {
        let mut events = [PollFd::from_borrowed_fd(lane.poll_fd().unwrap(), PollFlags::IN)];
        poll(&mut events, Some(&Timespec::default())).unwrap() == 1
    };
    assert!(!is_readable(&lanes[0]));
    for _ in 0..=limits::BATCH_PACKETS_MAX {
        plane.push_unread(LAN, b"x");
    }
    assert_eq!([is_readable(&lanes[0]), is_readable(&lanes[1])], [true, false]);
    let mut batch = Batch::new();
    lanes[0].receive(&mut batch, Some(Duration::ZERO)).unwrap();
    assert!(is_readable(&lanes[0]), "one more than a batch takes");
    lanes[0].receive(&mut batch, Some(Duration::ZERO)).unwrap();
    assert!(!is_readable(&lanes[0]));
    plane.push_unread(LAN, b"x");
    assert!(is_readable(&lanes[0]));
}

#[test]
fn waiting_ends_with_a_packet_or_with_the_time() {
    let (mut driver, plane) = driver(&["udp"]);
    let mut batch = Batch::new();
    assert_eq!(driver.receive(&mut batch, Some(Duration::from_millis(5))).unwrap(), 0);
    let thread = std::thread::spawn(move || driver.receive(&mut batch, Some(Duration::from_secs(20))).unwrap());
    assert!(plane.push(LAN, &testing::udp("10.0.0.1:9", "10.0.0.2:9", b"x")));
    assert_eq!(thread.join().unwrap(), 1);
}

#[test]
fn a_flow_stays_in_its_lane_and_in_order() {
    let (mut lanes, plane) = Dummy::lanes(4);
    lanes[2].install(FilterId(1), &"udp".parse().unwrap()).unwrap();
    let packet = |flow: u8, number: u8| {
        testing::udp("10.0.0.1:9", &format!("10.0.0.2:{}", 5000 + i32::from(flow)), &[flow, number])
    };
    for (number, flow) in (0..8).flat_map(|number| (0..32).map(move |flow| (number, flow))) {
        assert!(plane.push(LAN, &packet(flow, number)));
    }
    let mut lane_of_flow = BTreeMap::new();
    let mut batch = Batch::new();
    for (number, lane) in lanes.iter_mut().enumerate() {
        let mut next = BTreeMap::<u8, u8>::new();
        while lane.receive(&mut batch, Some(Duration::ZERO)).unwrap() > 0 {
            for packet in batch.iter() {
                let [flow, count] = packet.bytes[28..] else { panic!("two bytes") };
                assert_eq!(*lane_of_flow.entry(flow).or_insert(number), number);
                assert_eq!(std::mem::replace(next.entry(flow).or_default(), count + 1), count);
                lane.finish(packet.id, Final::Pass);
            }
            lane.flush().unwrap();
        }
        assert!(!next.is_empty() && next.values().all(|count| *count == 8), "{next:?}");
    }
    assert_eq!((lane_of_flow.len(), plane.outcomes().len()), (32, 256));
    drop(lanes.swap_remove(0));
    lanes[0].filters().change(&[Change::Remove(FilterId(1))]).unwrap();
}

#[test]
fn there_are_one_to_lanes_max_lanes() {
    for (wanted, lanes) in [(0, 1), (1, 1), (limits::LANES_MAX, limits::LANES_MAX), (1000, limits::LANES_MAX)] {
        assert_eq!((Dummy::lanes(wanted).0.len(), Replay::lanes(&[], wanted, 1).0.len()), (lanes, lanes));
    }
}

#[test]
fn a_replay_never_ends_and_has_so_many_packets_in_flight() {
    let packets: Vec<Vec<u8>> =
        (0..100).map(|port| testing::udp("10.0.0.1:9", &format!("10.0.0.2:{port}"), b"x")).collect();
    let (mut lanes, _) = Replay::lanes(&packets, 2, 96);
    let mut batch = Batch::new();
    let mut seen = BTreeMap::<Vec<u8>, usize>::new();
    for lane in &mut lanes {
        assert_eq!(lane.receive(&mut batch, None).unwrap(), limits::BATCH_PACKETS_MAX);
        let first: Vec<_> = batch.iter().map(|packet| packet.id).collect();
        assert_eq!(lane.receive(&mut batch, None).unwrap(), 96 - limits::BATCH_PACKETS_MAX);
        assert_eq!(lane.receive(&mut batch, Some(Duration::ZERO)).unwrap(), 0);
        first.into_iter().for_each(|id| lane.finish(id, Final::Pass));
        for _ in 0..10 {
            lane.receive(&mut batch, None).unwrap();
            for packet in batch.iter() {
                *seen.entry(packet.bytes.to_vec()).or_default() += 1;
                lane.finish(packet.id, Final::Pass);
            }
        }
        assert_eq!(lane.counters().received - lane.counters().passed, 32);
    }
    assert_eq!(seen.len(), packets.len());
}

/// Goal: a plane can have its filters in one place, and its packets come and go by the driver of another, as with a switch.
///
/// Method: a filter is installed through wrappers. It is in the switch, and the port yields all that the switch sends.
#[test]
fn filters_of_one_plane_and_the_driver_of_another_make_a_plane() {
    let (port, wire) = driver(&["ip"]);
    let flows = Arc::<Flows>::default();
    let switch: Box<dyn Driver> = Box::new(Switch { port, flows: Arc::clone(&flows) });
    let (mut driver, mut batch) = (Trace::new(Fault::new(switch, FaultPlan::default()), 1), Batch::new());
    let filter = "udp port 5060".parse().unwrap();
    driver.install(FilterId(7), &filter).unwrap();
    assert!(matches!(driver.install(FilterId(7), &filter), Err(DriverError::FilterExists(FilterId(7)))));
    let packet = testing::udp("10.0.0.1:9", "10.0.0.2:5060", b"x");
    assert_eq!(flows.0.lock().unwrap().values().collect::<Vec<_>>(), [&filter]);
    assert!(wire.push(LAN, &packet));
    assert_eq!(driver.receive(&mut batch, Some(Duration::ZERO)).unwrap(), 1);
    driver.finish(PacketId(1), Final::Pass);
    driver.flush().unwrap();
    driver.remove(FilterId(7)).unwrap();
    assert!(flows.0.lock().unwrap().is_empty());
    assert_eq!((wire.outcomes(), driver.counters().passed), (vec![Outcome::Passed(packet)], 1));
}

/// What is installed elsewhere.
#[derive(Default)]
struct Flows(Mutex<BTreeMap<FilterId, Filter>>);

impl FilterTable for Flows {
    fn change(&self, changes: &[Change<'_>]) -> Result<(), DriverError> {
        let mut installed = self.0.lock().unwrap();
        let mut changed = installed.clone();
        filters::apply(&mut changed, changes)?;
        *installed = changed;
        Ok(())
    }
}

struct Switch {
    port: Dummy,
    flows: Arc<Flows>,
}

impl Driver for Switch {
    fn name(&self) -> &'static str {
        "switch"
    }

    fn filters(&self) -> Arc<dyn FilterTable> {
        Arc::<Flows>::clone(&self.flows)
    }

    fn receive(&mut self, batch: &mut Batch, timeout: Option<Duration>) -> Result<usize, DriverError> {
        self.port.receive(batch, timeout)
    }

    fn finish(&mut self, packet: PacketId, verdict: Final<'_>) {
        self.port.finish(packet, verdict);
    }

    fn inject(&mut self, packet: &[u8]) -> Result<(), DriverError> {
        self.port.inject(packet)
    }

    fn flush(&mut self) -> Result<(), DriverError> {
        self.port.flush()
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.port.poll_fd()
    }

    fn counters(&self) -> Counters {
        self.port.counters()
    }
}

fn driver(filters: &[&str]) -> (Dummy, Plane) {
    let (mut driver, plane) = Dummy::new();
    for (id, filter) in (0..).zip(filters) {
        driver.install(FilterId(id), &filter.parse().unwrap()).unwrap();
    }
    (driver, plane)
}
