// SPDX-License-Identifier: Apache-2.0
//! The XDP programs as functions of this process: `native/program.c`.
#![allow(unsafe_code, reason = "the programs are C")]

use std::ffi::{c_int, c_void};

/// `struct call`.
#[repr(C)]
struct Call {
    data: *mut u8,
    data_end: *mut u8,
    device: u32,
    queue: u32,
    find: extern "C" fn(*mut c_void, u32, *const u8) -> *mut c_void,
    maps: *mut c_void,
    now: u64,
    source_station: [u8; 6],
    destination_station: [u8; 6],
    out_device: u32,
    lookup_fails: c_int,
    lookups: u32,
    asked: [u8; 64],
}

unsafe extern "C" {
    fn netserv_classify(call: *mut Call) -> c_int;
    fn netserv_forward(call: *mut Call) -> c_int;
}

/// A map of the programs; `find` of [`Lookup`] is asked for its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Map {
    /// `struct tuple_table`, under 0.
    Tuples,
    Filters,
    Interfaces,
    Own,
    Sockets,
    Heart,
    Counters,
    Targets,
}

impl Map {
    const ALL: [Map; 8] =
        [Map::Tuples, Map::Filters, Map::Interfaces, Map::Own, Map::Sockets, Map::Heart, Map::Counters, Map::Targets];

    fn key_bytes(self) -> usize {
        match self {
            Map::Filters => 40,
            Map::Interfaces => 8,
            Map::Own => 16,
            Map::Tuples | Map::Sockets | Map::Heart | Map::Counters | Map::Targets => 4,
        }
    }
}

/// The maps as the programs see them.
pub(super) trait Lookup {
    /// Returns the place of a value, as long as the program's structure says, or nothing.
    fn find(&mut self, map: Map, key: &[u8]) -> Option<&mut [u8]>;
}

/// Which program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// `bpf/classify.c`
    Classify,
    /// `bpf/forward.c`
    Forward,
}

/// Where a frame came in, and what the kernel's tables say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings {
    pub(super) device: u32,
    pub(super) queue: u32,
    pub(super) now: u64,
    /// The device and the stations of the way out, if there is one.
    pub(super) way: Option<(u32, [u8; 6], [u8; 6])>,
}

/// What a program did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) verdict: i32,
    /// `struct bpf_fib_lookup` as it was first asked for, if it was.
    pub(super) asked: Option<[u8; 64]>,
}

/// Runs a program on the part of a buffer that is the frame.
pub(super) fn run<L: Lookup>(
    program: Program,
    maps: &mut L,
    buffer: &mut [u8],
    frame: std::ops::Range<usize>,
    around: &Surroundings,
) -> Done {
    let frame = buffer[frame].as_mut_ptr_range();
    let (out_device, source_station, destination_station) = around.way.unwrap_or_default();
    let mut call = Call {
        data: frame.start,
        data_end: frame.end,
        device: around.device,
        queue: around.queue,
        find: find::<L>,
        maps: std::ptr::from_mut(maps).cast(),
        now: around.now,
        source_station,
        destination_station,
        out_device,
        lookup_fails: c_int::from(around.way.is_none()),
        lookups: 0,
        asked: [0; 64],
    };
    // SAFETY: `call` and the frame live through the call, and `find` takes what `maps` points to for what it is. That the
    // program stays in the frame is what the kernel's verifier makes sure of before it loads it.
    let verdict = unsafe {
        match program {
            Program::Classify => netserv_classify(&mut call),
            Program::Forward => netserv_forward(&mut call),
        }
    };
    Done { verdict, asked: (call.lookups > 0).then_some(call.asked) }
}

extern "C" fn find<L: Lookup>(maps: *mut c_void, map: u32, key: *const u8) -> *mut c_void {
    let map = Map::ALL[usize::try_from(map).expect("32 bits fit in usize")];
    // SAFETY: `run` made the pointer from the only reference there is, which waits for the program's end. Values that were
    // given to the program before are not moved: no look-up changes a map.
    let maps = unsafe { &mut *maps.cast::<L>() };
    // SAFETY: the programs hand over a key of the map's type.
    let key = unsafe { std::slice::from_raw_parts(key, map.key_bytes()) };
    maps.find(map, key).map_or(std::ptr::null_mut(), |value| value.as_mut_ptr().cast())
}
