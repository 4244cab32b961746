// SPDX-License-Identifier: Apache-2.0
//! Goal: the XDP program decides as the plain reference does, on every frame and while filters come and go.
//! Method: the real program in the kernel, run without traffic on random frames, damaged ones and captured ones. The seed
//! is printed; `NETSERV_SEED` gives it back, `NETSERV_FRAMES` makes the search longer.

use std::collections::BTreeMap;
use std::path::Path;

use netserv_model::Filter;
use netserv_model::effect::FilterId;
use netserv_plane::{Change, Driver};
use netserv_skips::not_run;
use netserv_wire::gist::MAGIC;

use crate::classify::device;
use crate::common::Chain;
use crate::random::Random;
use crate::reference::{Node, is_message, is_wanted, may_be_taken};
use crate::{Afxdp, ROUTER, open, settle};

/// Frames of a test.
const FRAMES: usize = 20_000;
/// Frames between two changes of the filters.
const FRAMES_PER_CHANGE: usize = 200;
/// The VLAN that is an interface of the node; others are not.
const VLAN: u16 = 5;
/// `docs/design/0004-afxdp-egress.md`: longer frames are not taken.
const FRAME_BYTES_MAX: usize = 1792;
/// The kernel runs programs on no shorter and no longer frames without traffic.
const TEST_BYTES: std::ops::Range<usize> = 14..3400;

#[test]
fn the_program_agrees_with_the_reference_while_filters_change() {
    let Some(mut bench) = Bench::new("agrees") else { return };
    let mut installed = BTreeMap::new();
    let mut seen = [0; 2];
    for _ in 0..frames() / FRAMES_PER_CHANGE {
        bench.change(&mut installed);
        let filters: Vec<Filter> = installed.values().cloned().collect();
        for _ in 0..FRAMES_PER_CHANGE {
            let frame = bench.frame();
            let wanted = is_wanted(&bench.node, &filters, &frame, bench.device);
            let got = bench.driver.classify(&frame, bench.device).unwrap();
            assert_eq!(got, wanted, "seed {}: {frame:02x?} under {:?}", bench.seed, texts(&filters));
            seen[usize::from(got)] += 1;
        }
    }
    assert!(seen.iter().all(|count| *count > frames() / 20), "no and yes: {seen:?}");
}

/// Frames are random, and half of them Queries with something changed.
#[test]
fn the_program_agrees_with_the_reference_on_queries() {
    let Some(mut bench) = Bench::new("queries") else { return };
    let _passage = bench.driver.intercept().unwrap();
    let mut seen = [0; 2];
    for _ in 0..frames() {
        let mut frame = bench.frame();
        if bench.random.below(2) == 0 {
            bench.make_query(&mut frame);
        }
        let expected = is_message(&bench.node, &frame, bench.device);
        let got = bench.driver.classify(&frame, bench.device).unwrap();
        assert_eq!(got, expected, "seed {}: {frame:02x?}", bench.seed);
        seen[usize::from(got)] += 1;
    }
    assert!(seen.iter().all(|count| *count > frames() / 50), "no and yes: {seen:?}");
}

/// With more masks than there are tuples the program may want more, but nothing that the kernel keeps.
#[test]
fn a_coarse_program_never_misses_and_never_takes_what_the_kernel_keeps() {
    let Some(mut bench) = Bench::new("coarse") else { return };
    let filters: Vec<Filter> = (0..400).map(|_| bench.random.fine_filter()).collect();
    for (id, filter) in (0..).zip(&filters) {
        bench.driver.install(FilterId(id), filter).unwrap();
    }
    let mut more = 0;
    for _ in 0..frames() {
        let frame = bench.frame();
        let wanted = is_wanted(&bench.node, &filters, &frame, bench.device);
        let got = bench.driver.classify(&frame, bench.device).unwrap();
        assert!(got || !wanted, "seed {}: missed {frame:02x?}", bench.seed);
        let free = may_be_taken(&bench.node, &frame, bench.device).is_some();
        assert!(free || !got, "seed {}: taken from the kernel {frame:02x?}", bench.seed);
        more += usize::from(got && !wanted);
    }
    assert!(more > 0, "nothing was made coarser, so nothing was tested");
}

struct Bench {
    // The driver goes before the namespaces do.
    driver: Afxdp,
    _entered: crate::common::Entered,
    _chain: Chain,
    node: Node,
    device: u32,
    random: Random,
    seed: u64,
    captured: Vec<Vec<u8>>,
    next_filter: u64,
}

impl Bench {
    /// Returns a driver without filters, or nothing without the rights.
    fn new(instance: &str) -> Option<Bench> {
        let chain = Chain::new(3)?;
        let has_vlan = add_vlan(&chain);
        let (device, station) = device(&chain);
        let addresses = chain.run(ROUTER, &["ip", "-o", "addr", "show"]);
        let own = addresses.lines().filter_map(|line| line.split_whitespace().nth(3)?.split('/').next()?.parse().ok());
        let mut interfaces = BTreeMap::from([((device, 0), station)]);
        if has_vlan {
            interfaces.insert((device, VLAN), [2, 0, 0, 0, 0, 5]);
        }
        let node = Node { own: own.collect(), interfaces, is_virtual: true, frame_bytes_max: FRAME_BYTES_MAX };
        assert!(node.own.contains(&"10.0.0.2".parse().unwrap()), "{:?}", node.own);
        let entered = chain.enter(ROUTER);
        let driver = open(instance, &[]);
        let seed = std::env::var("NETSERV_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
        eprintln!("NETSERV_SEED={seed}");
        let captured = captured();
        let random = Random::new(seed);
        Some(Bench { driver, _entered: entered, _chain: chain, node, device, random, seed, captured, next_filter: 0 })
    }

    /// Makes a message of the packet of a frame, if it is a plain one, and cuts some short.
    fn make_query(&mut self, frame: &mut [u8]) {
        let head = if frame.get(12..14) == Some(&[0x81, 0]) { 18 } else { 14 };
        let upper = match frame.get(head) {
            Some(0x45) => head + 20,
            Some(first) if first >> 4 == 6 => head + 40,
            Some(_) | None => return,
        };
        let message = [&[2, 0, 1, 14, 0, 12, 0, 0][..], &MAGIC.to_be_bytes()].concat();
        let message = &message[..message.len() - usize::from(self.random.below(8) == 0)];
        let Some(place) = frame.get_mut(upper..upper + message.len()) else { return };
        place.copy_from_slice(message);
        frame[if upper == head + 20 { head + 9 } else { head + 6 }] = 17;
        if self.random.below(8) == 0 {
            let changed = usize::try_from(self.random.below(11)).unwrap();
            frame[upper + changed] ^= 1;
        }
    }

    /// Takes some filters away and adds others, in one step.
    fn change(&mut self, installed: &mut BTreeMap<FilterId, Filter>) {
        let gone: Vec<FilterId> = installed.keys().copied().filter(|_| self.random.below(3) == 0).collect();
        let mut new = BTreeMap::new();
        for _ in 0..self.random.below(6) {
            self.next_filter += 1;
            new.insert(FilterId(self.next_filter), self.random.filter().parse::<Filter>().unwrap());
        }
        let changes: Vec<Change<'_>> = gone.iter().map(|id| Change::Remove(*id)).collect();
        let changes = changes.into_iter().chain(new.iter().map(|(id, filter)| Change::Install(*id, filter)));
        self.driver.filters().change(&changes.collect::<Vec<_>>()).unwrap();
        settle(&self.driver);
        installed.retain(|id, _| !gone.contains(id));
        installed.extend(new);
    }

    /// Returns a frame: a good one, a good one in another link header or with other addresses, or a damaged one.
    fn frame(&mut self) -> Vec<u8> {
        let station = self.node.interfaces[&(self.device, 0)];
        let mut frame = match self.random.below(8) {
            0 => {
                let at = self.random.index(self.captured.len());
                [&station[..], &self.captured[at][6..]].concat()
            }
            _ => self.random.frame(station),
        };
        match self.random.below(16) {
            0 => self.tag(&mut frame),
            1 => self.make_own(&mut frame),
            2 => self.damage(&mut frame, 1),
            3 => self.damage(&mut frame, 4),
            4 => frame.truncate(self.random.index(frame.len())),
            5 => {
                let at = self.random.index(6);
                frame[at] ^= 1 << self.random.below(8);
            }
            6 => self.lengthen(&mut frame),
            _ => {}
        }
        frame.resize(frame.len().clamp(TEST_BYTES.start, TEST_BYTES.end), 0);
        frame
    }

    /// Puts one or two VLAN tags into a frame.
    fn tag(&mut self, frame: &mut Vec<u8>) {
        for _ in 0..1 + self.random.below(5) / 4 {
            let kind = self.random.pick(&[[0x81, 0], [0x81, 0], [0x81, 0], [0x88, 0xa8], [0x91, 0]]);
            let vlan = self.random.pick(&[0, VLAN, VLAN, VLAN + 1]).to_be_bytes();
            let priority = self.random.byte() & 0xf0;
            frame.splice(12..12, [kind[0], kind[1], vlan[0] | priority, vlan[1]]);
            if let Some(station) = self.node.interfaces.get(&(self.device, u16::from_be_bytes(vlan))) {
                frame[..6].copy_from_slice(station);
            }
        }
    }

    /// Puts an address of the node in the place of the source or the destination.
    fn make_own(&mut self, frame: &mut [u8]) {
        let own: Vec<_> = self.node.own.iter().copied().collect();
        let address = own[self.random.index(own.len())];
        let second = self.random.index(2);
        let (start, octets) = match address {
            std::net::IpAddr::V4(v4) => (14 + 12 + 4 * second, v4.octets().to_vec()),
            std::net::IpAddr::V6(v6) => (14 + 8 + 16 * second, v6.octets().to_vec()),
        };
        if let Some(place) = frame.get_mut(start..start + octets.len()) {
            place.copy_from_slice(&octets);
        }
    }

    fn damage(&mut self, frame: &mut [u8], bytes: usize) {
        for _ in 0..bytes {
            // Most of all in the headers.
            let bound = if self.random.below(4) == 0 { frame.len() } else { frame.len().min(80) };
            let at = self.random.index(bound);
            frame[at] = match self.random.below(3) {
                0 => self.random.byte(),
                1 => self.random.pick(&[0, 1, 0x7f, 0x80, 0xfe, 0xff]),
                _ => frame[at] ^ 1 << self.random.below(8),
            };
        }
    }

    /// Makes a frame about as long as frames may be, with an IP length that fits.
    fn lengthen(&mut self, frame: &mut Vec<u8>) {
        let length = FRAME_BYTES_MAX - 4 + self.random.index(9);
        frame.resize(length, 0);
        let (at, ip_bytes) = match frame[12..14] {
            [8, 0] => (16, length - 14),
            _ => (18, length - 54),
        };
        frame[at..at + 2].copy_from_slice(&u16::try_from(ip_bytes).unwrap().to_be_bytes());
    }
}

/// Makes the VLAN an interface of the node; false, said loudly, if the kernel knows none.
fn add_vlan(chain: &Chain) -> bool {
    let (name, id) = (format!("left.{VLAN}"), VLAN.to_string());
    if !chain.try_run(ROUTER, &["ip", "link", "add", "link", "left", "name", &name, "type", "vlan", "id", &id]) {
        not_run("frames of a VLAN that is an interface", "this kernel has no VLANs");
        return false;
    }
    chain.run(ROUTER, &["ip", "link", "set", &name, "address", "02:00:00:00:00:05", "up"]);
    true
}

/// Returns the frames of the captures in `vectors/`, in which real implementations talk.
fn captured() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/gist");
    let mut frames = Vec::new();
    for name in ["gist-dmode-v4.pcap", "gist-dmode-v6.pcap", "gist-tcp-v4.pcap"] {
        let capture = std::fs::read(folder.join(name)).unwrap();
        let mut rest = &capture[24..];
        while let Some(head) = rest.first_chunk::<16>() {
            let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
            let (frame, after) = rest[16..].split_at(usize::try_from(length).unwrap());
            frames.push(frame.to_vec());
            rest = after;
        }
    }
    assert!(frames.len() > 20, "only {} captured frames", frames.len());
    frames
}

fn texts(filters: &[Filter]) -> Vec<String> {
    filters.iter().map(ToString::to_string).collect()
}

fn frames() -> usize {
    std::env::var("NETSERV_FRAMES").ok().and_then(|count| count.parse().ok()).unwrap_or(FRAMES)
}
