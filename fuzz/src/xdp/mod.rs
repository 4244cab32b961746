// SPDX-License-Identifier: Apache-2.0
//! The XDP programs of `bpf/`, run as functions on maps that the driver's own table of filters fills, against the plain
//! reference of the driver's tests.

mod maps;
#[path = "../../../io/dataplane/tests/afxdp/reference.rs"]
mod reference;
mod sys;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use netserv_model::effect::FilterId;
use netserv_model::{Filter, Flow};
use netserv_plane::Change;
use netserv_plane_afxdp::fuzzing;
use netserv_wire::ip::{IpVersion, IpView, decrement_ttl};

use crate::filters::{filter, tuples_max};
use crate::input::Input;
use maps::{FilterMaps, Maps};
use reference::Node;
use sys::{Done, Program, Surroundings};

/// Lets the program without forwarding judge a frame under filters that came and went.
///
/// # Panics
/// If it does not decide as the reference, reads beyond the frame, changes it, or does not count what it lets pass.
pub fn xdp_classify(data: &[u8]) {
    let mut scene = Scene::read(&mut Input::new(data), 0);
    let wanted = reference::is_wanted(&scene.node, &scene.filters, &scene.frame, DEVICE);
    let done = scene.run(Program::Classify, &HERE);
    let taken = done.verdict == REDIRECT;
    assert!(taken || done.verdict == PASS, "{done:?}");
    assert_eq!(scene.after(), scene.frame, "the program changed the frame");
    scene.check_taken(taken, wanted);
    assert_eq!(scene.run(Program::Forward, &HERE).verdict, done.verdict, "forwarding is not wished for");
    // What would be taken passes and is counted when nobody takes it.
    let passes = |scene: &mut Scene, around: &Surroundings, counter: usize| {
        assert_eq!(scene.run(Program::Classify, around).verdict, PASS);
        let mut expected = [0; 8];
        expected[counter] = u64::from(taken);
        if scene.too_long() {
            expected[COUNTER_TOO_LONG] = scene.counted[COUNTER_TOO_LONG];
        }
        assert_eq!(scene.counted, expected);
    };
    passes(&mut scene, &Surroundings { queue: 1, ..HERE }, COUNTER_NO_SOCKET);
    passes(&mut scene, &Surroundings { now: BEAT + SILENCE_MAX + 1, ..HERE }, COUNTER_SILENT);
    // An interceptor changes nothing for what is no message for others.
    scene.flags = INTERCEPTS;
    let is_message = reference::is_message(&scene.node, &scene.frame, DEVICE);
    for program in [Program::Classify, Program::Forward] {
        assert_eq!(scene.run(program, &HERE).verdict == REDIRECT, taken || is_message);
    }
}

/// Lets the program with forwarding judge a frame.
///
/// # Panics
/// If it forwards what the driver would leave to the kernel, not as the driver would forward it, or not though it could.
pub fn xdp_forward(data: &[u8]) {
    let mut input = Input::new(data);
    let options = input.byte();
    let flags = u16::from(options & 0b1_1111);
    let mut scene = Scene::read(&mut input, flags);
    // The kernel's tables have no way out for packets to the node itself.
    let has_way = options & 0x20 == 0 && !scene.is_for_node();
    let way = has_way.then_some((if options & 0x40 == 0 { OUT } else { DEVICE }, [3; 6], [4; 6]));
    let around = Surroundings { way, ..HERE };
    let wanted = reference::is_wanted(&scene.node, &scene.filters, &scene.frame, DEVICE);
    let done = scene.run(Program::Forward, &around);
    if scene.after() == scene.frame {
        let taken = done.verdict == REDIRECT;
        return if taken { scene.check_taken(taken, wanted) } else { scene.check_left(wanted, flags, &around) };
    }
    assert_eq!((done.verdict, way.map(|way| way.0)), (REDIRECT, Some(OUT)));
    assert!(!wanted, "a wanted packet is forwarded unseen");
    let flow = scene.may_be_forwarded(flags).expect("what the kernel keeps is not forwarded");
    let mut packet = scene.frame[14..].to_vec();
    fuzzing::complete_checksum(&mut packet);
    assert!(flags & IS_VIRTUAL == 0 || packet == scene.frame[14..], "its checksum was to be completed");
    scene.check_asked(&done, &flow);
    packet = scene.frame[14..].to_vec();
    decrement_ttl(&mut packet).expect("a packet");
    let expected = [&[4; 6][..], &[3; 6], &scene.frame[12..14], &packet].concat();
    assert_eq!(scene.after(), expected);
    assert_eq!(scene.counted[COUNTER_FORWARDED], 1);
}

/// Filters, what the program knows of the node, and a frame.
struct Scene {
    maps: Arc<FilterMaps>,
    node: Node,
    filters: Vec<Filter>,
    /// The filters may have been made coarser.
    coarse: bool,
    flags: u16,
    frame: Vec<u8>,
    /// The frame after a run, with what is around it.
    buffer: Vec<u8>,
    /// The counters after a run.
    counted: [u64; 8],
}

impl Scene {
    fn read(input: &mut Input<'_>, flags: u16) -> Scene {
        let (maps, installed, coarse) = read_filters(input);
        let interfaces = BTreeMap::from([((DEVICE, 0), STATION), ((DEVICE, VLAN), VLAN_STATION)]);
        let is_virtual = flags & IS_VIRTUAL != 0;
        let node = Node { own: OWN.into_iter().collect(), interfaces, is_virtual, frame_bytes_max: FRAME_BYTES_MAX };
        let filters: Vec<Filter> = installed.into_values().collect();
        let frame = read_frame(input);
        // The program knows nothing of TCP's flags.
        let coarse = coarse || filters.iter().any(Filter::opens_only);
        Scene { maps, node, filters, coarse, flags, frame, buffer: Vec::new(), counted: [0; 8] }
    }

    /// Runs a program twice, with other bytes around the frame.
    fn run(&mut self, program: Program, around: &Surroundings) -> Done {
        let mut before = None;
        for poison in [0, 0xff] {
            self.buffer = vec![poison; self.range().end + AROUND];
            let range = self.range();
            self.buffer[range.clone()].copy_from_slice(&self.frame);
            let interface = |vlan, station| fuzzing::interface(DEVICE, vlan, station, self.flags, FRAME_LIMIT);
            let mut maps = Maps::new(&self.maps)
                .own(OWN)
                .interface(interface(None, STATION))
                .interface(interface(Some(VLAN), VLAN_STATION))
                .target(OUT)
                .target(DEVICE)
                .heart(BEAT, SILENCE_MAX);
            let done = sys::run(program, &mut maps, &mut self.buffer, range.clone(), around);
            self.counted = maps.counted();
            let outside = self.buffer[..range.start].iter().chain(&self.buffer[range.end..]);
            assert!(outside.clone().all(|byte| *byte == poison), "the program writes beyond the frame");
            let result = (done, self.after().to_vec(), self.counted);
            let first = before.get_or_insert_with(|| result.clone());
            assert_eq!(*first, result, "what is beyond the frame makes a difference");
        }
        before.expect("it ran").0
    }

    fn range(&self) -> Range<usize> {
        AROUND..AROUND + self.frame.len()
    }

    fn after(&self) -> &[u8] {
        &self.buffer[self.range()]
    }

    fn is_for_node(&self) -> bool {
        let view = self.frame.get(14..).map(IpView::parse);
        view.is_some_and(|view| view.is_ok_and(|view| OWN.contains(&view.destination())))
    }

    fn too_long(&self) -> bool {
        self.frame.len() > FRAME_BYTES_MAX
    }

    fn check_taken(&self, taken: bool, wanted: bool) {
        assert!(taken || !wanted, "missed {:02x?} under {:?}", self.frame, self.filters);
        let exact = !self.coarse || !taken;
        assert!(wanted || !taken || !exact, "unwanted {:02x?} under {:?}", self.frame, self.filters);
        let free = reference::may_be_taken(&self.node, &self.frame, DEVICE).is_some();
        assert!(free || !taken, "taken from the kernel {:02x?}", self.frame);
    }

    /// Checks a frame that was left to the kernel.
    fn check_left(&self, wanted: bool, flags: u16, around: &Surroundings) {
        assert!(!wanted, "missed {:02x?} under {:?}", self.frame, self.filters);
        let Some(flow) = self.may_be_forwarded(flags) else { return };
        // Checksums that only look as if they were to be completed are left to the kernel, too, and so is what coarse
        // filters may want but does not fit.
        let matched = self.filters.iter().any(|filter| filter.matches(&flow));
        if flags & IS_VIRTUAL != 0 || matched || (self.coarse && self.too_long()) {
            return;
        }
        let checks_source = flow.source.is_ipv4() && flags & CHECKS_SOURCE != 0;
        let expected = around.way.is_some_and(|(device, ..)| device != DEVICE) && !checks_source;
        assert!(!expected, "could be forwarded: {:02x?}", self.frame);
    }

    /// Returns the flow of a packet that the program with these flags may forward, if it finds a way.
    fn may_be_forwarded(&self, flags: u16) -> Option<Flow> {
        let node = Node { frame_bytes_max: usize::MAX, ..self.node.clone() };
        let flow = reference::may_be_taken(&node, &self.frame, DEVICE)?;
        let untagged = matches!(self.frame[12..14], [8, 0] | [0x86, 0xdd]);
        let view = IpView::parse(&self.frame[14..]).ok().filter(|_| untagged)?;
        let wished = match view.version() {
            IpVersion::V4 => FORWARDS_V4,
            IpVersion::V6 => FORWARDS_V6,
        };
        // All of 240.0.0.0/4 and ::/96 is left to the kernel, which knows better.
        let odd_source = match flow.source {
            IpAddr::V4(v4) => v4.octets()[0] >= 224,
            IpAddr::V6(v6) => v6.octets()[..12] == [0; 12],
        };
        (flags & wished != 0 && fuzzing::why_not_plain(&view).is_none() && !odd_source).then_some(flow)
    }

    /// Checks what was asked of the kernel's tables: `struct bpf_fib_lookup`.
    fn check_asked(&self, done: &Done, flow: &Flow) {
        let asked = done.asked.expect("the way out was asked for");
        let view = IpView::parse(&self.frame[14..]).expect("a packet was forwarded");
        let family = if flow.source.is_ipv4() { 2 } else { 10 };
        let port = |port: Option<u16>| port.unwrap_or(0).to_be_bytes();
        let bytes = u16::try_from(view.bytes().len()).expect("frames are short").to_ne_bytes();
        let (ports, device) = ([port(flow.source_port), port(flow.destination_port)].concat(), DEVICE.to_ne_bytes());
        assert_eq!(asked[..12], [&[family, flow.protocol][..], &ports, &bytes, &device].concat());
        assert_eq!(asked[16..48], [flow.source, flow.destination].map(fuzzing::own_key).concat());
    }
}

/// Installs and removes filters by the driver's table, alone and several in one step.
fn read_filters(input: &mut Input<'_>) -> (Arc<FilterMaps>, BTreeMap<FilterId, Filter>, bool) {
    let maps = Arc::new(FilterMaps::default());
    let table = fuzzing::table(Arc::clone(&maps));
    let mut installed = BTreeMap::new();
    let (mut most, mut is_broad) = (0, false);
    for number in 0..u64::from(input.byte() % 24) {
        let step = input.byte();
        let gone: Vec<FilterId> = match step % 4 {
            0 => installed.keys().copied().filter(|id: &FilterId| id.0 % 8 == u64::from(step / 4 % 8)).collect(),
            _ => Vec::new(),
        };
        let new = filter(input).map(|filter| (FilterId(number), filter));
        let removals = gone.iter().map(|id| Change::Remove(*id));
        let changes: Vec<_> = removals.chain(new.iter().map(|(id, filter)| Change::Install(*id, filter))).collect();
        table.change(&changes).expect("there are few filters, and none is there twice");
        is_broad |= new.iter().any(|(_, filter)| tuples_max(filter) > NEW_TUPLES_PER_FILTER_MAX);
        // While a change is made, there are the tuples of both what goes and what comes.
        most = most.max(installed.values().chain(new.iter().map(|(_, filter)| filter)).map(tuples_max).sum());
        installed.retain(|id, _| !gone.contains(id));
        installed.extend(new);
    }
    (maps, installed, is_broad || most > TUPLES_MAX)
}

/// Returns the rest as a frame, with the address of one of the node's stations in front if so wished.
fn read_frame(input: &mut Input<'_>) -> Vec<u8> {
    let how = input.byte();
    let rest = input.take(BYTES_MAX);
    let mut frame = match how % 4 {
        0 => rest.to_vec(),
        1 => [&VLAN_STATION[..], &[2; 6], rest].concat(),
        _ => [&STATION[..], &[2; 6], rest].concat(),
    };
    if how & 0x80 != 0 {
        // About as long as frames may be.
        frame.resize(FRAME_BYTES_MAX - 8 + usize::from(how / 4 % 16), 0);
    }
    frame
}

const DEVICE: u32 = 1;
const OUT: u32 = 2;
const STATION: [u8; 6] = [2, 0, 0, 0, 0, 1];
const VLAN: u16 = 5;
const VLAN_STATION: [u8; 6] = [2, 0, 0, 0, 0, 5];
const OWN: [IpAddr; 2] = [
    IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)),
    IpAddr::V6(std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1)),
];
const FRAME_BYTES_MAX: usize = 1792;
const FRAME_LIMIT: u32 = 1792;
/// Longer frames do not come.
const BYTES_MAX: usize = 4000;
/// Bytes around the frame that the program must not look at.
const AROUND: usize = 64;
const BEAT: u64 = 1000;
const SILENCE_MAX: u64 = 500;
const HERE: Surroundings = Surroundings { device: DEVICE, queue: 0, now: BEAT + SILENCE_MAX, way: None };
/// The tuples that are not kept for coarse masks.
const TUPLES_MAX: usize = 64;
/// `NEW_TUPLES_PER_FILTER_MAX`
const NEW_TUPLES_PER_FILTER_MAX: usize = 4;

/// `enum xdp_action`
const PASS: i32 = 2;
const REDIRECT: i32 = 4;
/// `enum interface_flag`
const FORWARDS_V4: u16 = 1;
const FORWARDS_V6: u16 = 2;
const IS_VIRTUAL: u16 = 4;
const INTERCEPTS: u16 = 32;
const CHECKS_SOURCE: u16 = 8;
/// `enum counter`
const COUNTER_TOO_LONG: usize = 0;
const COUNTER_SILENT: usize = 1;
const COUNTER_NO_SOCKET: usize = 2;
const COUNTER_FORWARDED: usize = 3;
