// SPDX-License-Identifier: Apache-2.0
//! The XDP program in the kernel, and its maps.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use netserv_plane::{DestinationCount, DriverError};

use super::layout;
use super::object::{MapDefinition, Object};
use super::sys::bpf::{self, AttachMode};
use super::sys::memory::Words;

/// A loaded program. It runs on the devices that it is attached to, each as long as its link is held.
pub(super) struct Program {
    descriptor: OwnedFd,
    maps: BTreeMap<String, Map>,
    /// `struct tuple_table`
    table: Words,
}

struct Map {
    descriptor: OwnedFd,
    definition: MapDefinition,
}

/// Keeps a program on a device; the kernel takes it off when this is dropped or the process ends in whatever way.
pub(super) struct Link {
    descriptor: OwnedFd,
    pub mode: AttachMode,
}

impl Link {
    /// Returns whether somebody took the program off the device.
    pub fn is_off(&self) -> bool {
        bpf::is_attached(&self.descriptor).is_ok_and(|is_attached| !is_attached)
    }
}

impl Program {
    /// Makes the maps and loads the program, the one that also forwards if so wished; it matches nothing yet.
    pub fn load(forwards: bool) -> Result<Program, DriverError> {
        let (object, license) = if forwards { (FORWARD, c"GPL") } else { (CLASSIFY, c"Apache-2.0") };
        let object = Object::parse(object).ok_or_else(|| DriverError::Unsupported {
            what: "the XDP program",
            why: "the object in this build is not understood".to_owned(),
        })?;
        let maps = create_maps(&object)?;
        let descriptor = |name: &str| maps.get(name).map(|map: &Map| map.descriptor.as_raw_fd());
        let instructions = object.link(descriptor).expect("every map that the object names was made");
        let descriptor = bpf::load(&instructions, c"netserv", license).map_err(|error| {
            match error.kind() == io::ErrorKind::PermissionDenied {
                true => DriverError::NotPermitted { what: "loading an XDP program" },
                false => DriverError::Unsupported { what: "the XDP program", why: error.to_string() },
            }
        })?;
        let table = Words::map(&maps["tuples"].descriptor, layout::TABLE_WORDS)
            .map_err(|error| DriverError::system("mapping a BPF map", error))?;
        Ok(Program { descriptor, maps, table })
    }

    /// Puts the program on a device, in its driver if that can, else in the common receive path.
    pub fn attach(&self, device: u32) -> Result<Link, DriverError> {
        let link = |mode| bpf::attach(&self.descriptor, device, mode).map(|descriptor| Link { descriptor, mode });
        match link(AttachMode::Native) {
            // Somebody else's program; in the other mode it would be no different.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Err(error),
            Err(error) => {
                tracing::debug!(device, %error, "no XDP in the driver, taking the generic one");
                link(AttachMode::Generic)
            }
            Ok(link) => Ok(link),
        }
        .map_err(|error| DriverError::system("attaching an XDP program", error))
    }

    /// Sets an entry of a map.
    pub fn update(&self, map: &'static str, key: &[u8], value: &[u8]) -> Result<(), DriverError> {
        let Map { descriptor, definition } = &self.maps[map];
        bpf::update(descriptor, definition, key, value)
            .map_err(|error| DriverError::system("setting a map entry", error))
    }

    /// Removes an entry of a map, if it is there.
    pub fn delete(&self, map: &'static str, key: &[u8]) -> Result<(), DriverError> {
        let Map { descriptor, definition } = &self.maps[map];
        bpf::delete(descriptor, definition, key).map_err(|error| DriverError::system("removing a map entry", error))
    }

    /// Sets a socket as the place where packets go.
    pub fn set_socket(&self, index: u32, socket: impl AsFd) -> Result<(), DriverError> {
        self.update("sockets", &index.to_ne_bytes(), &socket.as_fd().as_raw_fd().to_ne_bytes())
    }

    /// Has packets pass that would have gone to a place.
    pub fn clear_socket(&self, index: u32) -> Result<(), DriverError> {
        self.delete("sockets", &index.to_ne_bytes())
    }

    /// Says whether nothing is forwarded, for all packets from now on.
    pub fn withhold(&self, withheld: bool) {
        self.store(layout::WITHHELD_WORD, withheld.into());
    }

    /// Returns whether the program is one that forwards.
    pub fn forwards(&self) -> bool {
        self.maps.contains_key("targets")
    }

    /// Writes a word of the table of tuples, for all packets from now on.
    pub fn store(&self, word: usize, value: u64) {
        self.table.store(word, value);
    }

    /// Waits until no packet is in the program that saw the table as it was before.
    pub fn wait(&self) -> Result<(), DriverError> {
        // The kernel waits for all programs that run when a map in a map is exchanged, be it for itself.
        self.update("grace", &0_u32.to_ne_bytes(), &self.maps["inner"].descriptor.as_raw_fd().to_ne_bytes())
    }

    /// Returns the memory in which the program looks whether packets are taken.
    pub fn heart(&self) -> Result<Words, DriverError> {
        Words::map(&self.maps["heart"].descriptor, layout::HEART_WORDS)
            .map_err(|error| DriverError::system("mapping a BPF map", error))
    }

    /// Sets or forgets a device as one to which the program may forward; nothing where it does not forward.
    pub fn set_target(&self, device: u32, is_target: bool) -> Result<(), DriverError> {
        let device = device.to_ne_bytes();
        match (self.forwards(), is_target) {
            (false, _) => Ok(()),
            (true, true) => self.update("targets", &device, &device),
            (true, false) => self.delete("targets", &device),
        }
    }

    /// Returns how often the program counted something, on all processors together.
    pub fn counter(&self, counter: u32) -> u64 {
        let Map { descriptor, definition } = &self.maps["counters"];
        let copies = usize::try_from(bpf::possible_processors()).expect("32 bits fit in usize");
        let mut values = vec![0; 8 * copies];
        let found = bpf::lookup(descriptor, definition, &counter.to_ne_bytes(), &mut values);
        let (values, _) = values.as_chunks::<8>();
        if found.is_ok() { values.iter().map(|value| u64::from_ne_bytes(*value)).sum() } else { 0 }
    }

    /// Returns what the program counted for the prefix in a place, on all processors together.
    pub fn destination_count(&self, place: u32) -> Result<DestinationCount, DriverError> {
        let Map { descriptor, definition } = &self.maps["destination_counts"];
        let copies = usize::try_from(bpf::possible_processors()).expect("32 bits fit in usize");
        let mut values = vec![0; 16 * copies];
        bpf::lookup(descriptor, definition, &place.to_ne_bytes(), &mut values)
            .map_err(|error| DriverError::system("reading a map entry", error))?;
        let sum = |values: &[[u8; 8]]| values.iter().map(|value| u64::from_ne_bytes(*value)).fold(0, u64::wrapping_add);
        let (values, _) = values.as_chunks::<8>();
        let (packets, syns): (Vec<_>, Vec<_>) = values.chunks_exact(2).map(|pair| (pair[0], pair[1])).unzip();
        Ok(DestinationCount { packets: sum(&packets), syns: sum(&syns) })
    }

    /// Runs the program some times on a frame as if it had come in; returns whether a socket would get it, or another
    /// device, and the nanoseconds that one run took on average.
    pub fn run(&self, frame: &[u8], device: u32, times: u32) -> io::Result<(bool, u32)> {
        let (verdict, nanoseconds) = bpf::test_run(&self.descriptor, frame, (device, 0), times)?;
        Ok((verdict == VERDICT_REDIRECT, nanoseconds))
    }
}

const CLASSIFY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classify.o"));
const FORWARD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/forward.o"));
/// `XDP_REDIRECT`.
const VERDICT_REDIRECT: u32 = 4;
/// `BPF_MAP_TYPE_ARRAY_OF_MAPS`.
const KIND_ARRAY_OF_MAPS: u32 = 12;

fn create_maps(object: &Object) -> Result<BTreeMap<String, Map>, DriverError> {
    for (name, words) in [("tuples", layout::TABLE_WORDS), ("heart", layout::HEART_WORDS)] {
        let bytes = usize::try_from(object.maps[name].value_bytes);
        assert_eq!(bytes, Ok(8 * words), "bpf/common.h and the driver agree on `{name}`");
    }
    let mut maps = BTreeMap::new();
    for (name, definition) in &object.maps {
        let failed = |error: io::Error| match error.raw_os_error() {
            Some(libc::EPERM) => DriverError::NotPermitted { what: "making a BPF map" },
            _ => DriverError::Unsupported { what: "a BPF map", why: format!("{name}: {error}") },
        };
        let inner =
            (definition.kind == KIND_ARRAY_OF_MAPS).then(|| bpf::create_map(&object.maps["inner"], None, c"example"));
        let inner = inner.transpose().map_err(failed)?;
        let title = CString::new(name.as_str()).expect("names of symbols have no zero");
        let descriptor = bpf::create_map(definition, inner.as_ref(), &title).map_err(failed)?;
        maps.insert(name.clone(), Map { descriptor, definition: *definition });
    }
    Ok(maps)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel may have to look at before it takes a program; more than a million is refused, and each 100,000 cost a
    /// tenth of a second at every start of a node.
    const VERIFIED_MAX: u32 = 100_000;

    #[test]
    fn the_kernel_has_soon_verified_the_programs() {
        const TEST: &str = "the_kernel_has_soon_verified_the_programs";
        if !rustix::process::geteuid().is_root() {
            return netserv_skips::skipped(TEST, "not root, so no XDP");
        }
        for forwards in [false, true] {
            let program = Program::load(forwards).unwrap();
            let about = format!("/proc/self/fdinfo/{}", program.descriptor.as_raw_fd());
            let about = std::fs::read_to_string(about).unwrap();
            let Some(verified) = about.lines().find_map(|line| line.strip_prefix("verified_insns:\t")) else {
                return netserv_skips::not_run(TEST, "this kernel does not say what it verified (Linux 5.16 does)");
            };
            let verified: u32 = verified.parse().unwrap();
            assert!((100..VERIFIED_MAX).contains(&verified), "forwards: {forwards}, {verified} instructions");
        }
    }
}
