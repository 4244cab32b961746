// SPDX-License-Identifier: Apache-2.0
//! The calls of `bpf(2)` that the driver needs.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::LazyLock;

use crate::object::{INSTRUCTION_BYTES, MapDefinition};

/// How a program is attached to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttachMode {
    /// In the device's driver.
    Native,
    /// In the kernel's common receive path, slower.
    Generic,
}

impl AttachMode {
    /// Returns the name used for people.
    pub fn as_str(self) -> &'static str {
        match self {
            AttachMode::Native => "native",
            AttachMode::Generic => "generic",
        }
    }
}

/// Makes a map; `inner` is an example of what a map of maps holds.
pub fn create_map(definition: &MapDefinition, inner: Option<&OwnedFd>, name: &CStr) -> io::Result<OwnedFd> {
    let mut attributes = Attributes::new();
    attributes.u32(0, definition.kind);
    attributes.u32(4, definition.key_bytes);
    attributes.u32(8, definition.value_bytes);
    attributes.u32(12, definition.entries_max);
    attributes.u32(16, definition.flags);
    if let Some(inner) = inner {
        attributes.fd(20, inner);
    }
    attributes.name(28, name);
    // SAFETY: this command reads nothing but the attributes.
    unsafe { attributes.call_for_fd(MAP_CREATE) }
}

/// Sets an entry. Key and value must have the map's sizes, as checked by the callers of this module's one caller.
pub fn update(map: impl AsFd, definition: &MapDefinition, key: &[u8], value: &[u8]) -> io::Result<()> {
    check_size(key, definition.key_bytes)?;
    check_size(value, definition.value_bytes)?;
    let mut attributes = Attributes::new();
    attributes.fd(0, map);
    attributes.pointer(8, key.as_ptr().addr());
    attributes.pointer(16, value.as_ptr().addr());
    expose(key);
    expose(value);
    // SAFETY: key and value are alive across the call, are only read, and are as long as the map's.
    unsafe { attributes.call(MAP_UPDATE) }.map(drop)
}

/// Removes an entry; it is no error if there is none.
pub fn delete(map: impl AsFd, definition: &MapDefinition, key: &[u8]) -> io::Result<()> {
    check_size(key, definition.key_bytes)?;
    let mut attributes = Attributes::new();
    attributes.fd(0, map);
    attributes.pointer(8, key.as_ptr().addr());
    expose(key);
    // SAFETY: the key is alive across the call, is only read, and is as long as the map's.
    match unsafe { attributes.call(MAP_DELETE) } {
        Err(error) if error.raw_os_error() != Some(libc::ENOENT) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Reads an entry into `value`, which must be as long as the map's, times the number of processors for such maps.
pub fn lookup(map: impl AsFd, definition: &MapDefinition, key: &[u8], value: &mut [u8]) -> io::Result<()> {
    check_size(key, definition.key_bytes)?;
    let copies = if definition.kind == MAP_PERCPU_ARRAY { possible_processors() } else { 1 };
    let bytes = definition.value_bytes.next_multiple_of(8) * copies;
    check_size(value, bytes)?;
    let mut attributes = Attributes::new();
    attributes.fd(0, map);
    attributes.pointer(8, key.as_ptr().addr());
    attributes.pointer(16, value.as_mut_ptr().expose_provenance());
    expose(key);
    // SAFETY: the key is as long as the map's and only read; `value` is ours alone and has room for all that is written.
    unsafe { attributes.call(MAP_LOOKUP) }.map(drop)
}

/// Loads an XDP program.
///
/// # Errors
/// What the verifier said is in the error's text.
pub fn load(instructions: &[u8], name: &CStr, license: &CStr) -> io::Result<OwnedFd> {
    let mut log = vec![0_u8; LOG_BYTES];
    let mut attributes = Attributes::new();
    attributes.u32(0, PROGRAM_XDP);
    attributes.u32(4, u32::try_from(instructions.len() / INSTRUCTION_BYTES).map_err(io::Error::other)?);
    attributes.pointer(8, instructions.as_ptr().addr());
    attributes.pointer(16, license.as_ptr().addr());
    attributes.name(48, name);
    attributes.u32(68, ATTACH_XDP);
    expose(instructions);
    expose(license.to_bytes());
    // A signal that comes meanwhile ends the verifier's work.
    let is_interrupted =
        |tried: &io::Result<OwnedFd>| tried.as_ref().err().and_then(io::Error::raw_os_error) == Some(libc::EAGAIN);
    let mut tries = (0..LOAD_TRIES_MAX).map(|_| {
        // SAFETY: instructions and license are alive across the call and only read; the former has as many as was said.
        unsafe { attributes.call_for_fd(PROGRAM_LOAD) }
    });
    let loaded = tries.find(|tried| !is_interrupted(tried));
    let first = match loaded.unwrap_or_else(|| Err(io::Error::from_raw_os_error(libc::EAGAIN))) {
        Err(error) if error.raw_os_error() != Some(libc::EPERM) => error,
        other => return other,
    };
    // Once more, to hear why.
    attributes.u32(24, 1);
    attributes.u32(28, u32::try_from(LOG_BYTES).expect("64 KiB fit"));
    attributes.pointer(32, log.as_mut_ptr().expose_provenance());
    // SAFETY: as before, and the log is ours alone and as long as was said.
    let second = unsafe { attributes.call_for_fd(PROGRAM_LOAD) };
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    let last: Vec<&str> = text.lines().rev().take(4).collect();
    second.map_err(|_| io::Error::new(first.kind(), format!("{first}: {}", last.join(" < "))))
}

/// How often a program is loaded while signals come.
const LOAD_TRIES_MAX: u32 = 5;

/// Attaches a program to a device until the descriptor is closed.
pub fn attach(program: impl AsFd, device: u32, mode: AttachMode) -> io::Result<OwnedFd> {
    let mut attributes = Attributes::new();
    attributes.fd(0, program);
    attributes.u32(4, device);
    attributes.u32(8, ATTACH_XDP);
    attributes.u32(
        12,
        match mode {
            AttachMode::Generic => FLAG_GENERIC,
            AttachMode::Native => FLAG_NATIVE,
        },
    );
    // SAFETY: this command reads nothing but the attributes.
    unsafe { attributes.call_for_fd(LINK_CREATE) }
}

/// Returns whether what [`attach`] attached is still on its device: others can detach it, and a device can go.
pub fn is_attached(link: impl AsFd) -> io::Result<bool> {
    let mut about = [0_u8; LINK_INFO_BYTES];
    let mut attributes = Attributes::new();
    attributes.fd(0, link);
    attributes.u32(4, u32::try_from(about.len()).expect("it is short"));
    attributes.pointer(8, about.as_mut_ptr().expose_provenance());
    // SAFETY: what is told is ours alone and as long as was said.
    unsafe { attributes.call(OBJECT_INFO) }?;
    Ok(about[LINK_INFO_DEVICE..] != [0; 4])
}

/// Runs a program some times on a frame as if it came in by a device's queue, and returns its verdict and the nanoseconds
/// that one run took on average.
pub fn test_run(program: impl AsFd, frame: &[u8], (device, queue): (u32, u32), times: u32) -> io::Result<(u32, u32)> {
    // `struct xdp_md`: data, its end, metadata, device, queue, device out.
    let mut context = [0_u32; 6];
    context[1] = u32::try_from(frame.len()).map_err(io::Error::other)?;
    (context[3], context[4]) = (device, queue);
    let context: Vec<u8> = context.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let mut attributes = Attributes::new();
    attributes.fd(0, program);
    attributes.u32(8, u32::try_from(frame.len()).map_err(io::Error::other)?);
    attributes.pointer(16, frame.as_ptr().addr());
    attributes.u32(32, times);
    attributes.u32(40, u32::try_from(context.len()).expect("24 fits"));
    attributes.pointer(48, context.as_ptr().addr());
    expose(frame);
    expose(&context);
    // SAFETY: frame and context are alive across the call, as long as was said, and only read: there is no room for
    // anything to be written.
    unsafe { attributes.call(PROGRAM_TEST_RUN) }?;
    Ok((attributes.read_u32(4), attributes.read_u32(36)))
}

/// Returns how many copies a map with one value per processor has. The system does not change that while it runs.
pub fn possible_processors() -> u32 {
    static PROCESSORS: LazyLock<u32> = LazyLock::new(read_possible_processors);
    *PROCESSORS
}

fn read_possible_processors() -> u32 {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = text.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<u32>().ok());
    last.unwrap_or(0) + 1
}

/// `union bpf_attr`: each command reads it in its own way.
struct Attributes([u64; ATTRIBUTES_BYTES / 8]);

impl Attributes {
    fn new() -> Attributes {
        Attributes([0; ATTRIBUTES_BYTES / 8])
    }

    fn u32(&mut self, at: usize, value: u32) {
        let mut bytes = self.0[at / 8].to_ne_bytes();
        bytes[at % 8..at % 8 + 4].copy_from_slice(&value.to_ne_bytes());
        self.0[at / 8] = u64::from_ne_bytes(bytes);
    }

    fn read_u32(&self, at: usize) -> u32 {
        let bytes = self.0[at / 8].to_ne_bytes();
        bytes[at % 8..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    }

    fn fd(&mut self, at: usize, fd: impl AsFd) {
        self.u32(at, fd.as_fd().as_raw_fd().cast_unsigned());
    }

    fn pointer(&mut self, at: usize, address: usize) {
        self.0[at / 8] = u64::try_from(address).expect("pointers have at most 64 bits");
    }

    fn name(&mut self, at: usize, name: &CStr) {
        for (offset, byte) in name.to_bytes().iter().take(NAME_BYTES_MAX).enumerate() {
            let (word, place) = ((at + offset) / 8, (at + offset) % 8);
            let mut bytes = self.0[word].to_ne_bytes();
            bytes[place] = *byte;
            self.0[word] = u64::from_ne_bytes(bytes);
        }
    }

    /// # Safety
    /// The pointers among the attributes must be good for what the command does with them.
    unsafe fn call(&mut self, command: libc::c_int) -> io::Result<i32> {
        // SAFETY: the attributes are as long as said and ours alone; for what they point to the caller answers.
        let result = unsafe { libc::syscall(libc::SYS_bpf, command, self.0.as_mut_ptr(), ATTRIBUTES_BYTES) };
        let result = i32::try_from(result).unwrap_or(-1);
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
    }

    /// # Safety
    /// As [`Attributes::call`], for a command that returns a new descriptor.
    unsafe fn call_for_fd(&mut self, command: libc::c_int) -> io::Result<OwnedFd> {
        // SAFETY: as the caller promised.
        let fd = unsafe { self.call(command) }?;
        // SAFETY: the kernel has just made this descriptor for us; these commands set close-on-exec by themselves.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

/// Addresses of these bytes are given to the kernel as numbers.
fn expose(bytes: &[u8]) {
    bytes.as_ptr().expose_provenance();
}

fn check_size(bytes: &[u8], wanted: u32) -> io::Result<()> {
    let right = u32::try_from(bytes.len()).is_ok_and(|length| length == wanted);
    if right { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EINVAL)) }
}

/// More than any kernel needs; what it does not know is zero.
const ATTRIBUTES_BYTES: usize = 144;
const NAME_BYTES_MAX: usize = 15;
const LOG_BYTES: usize = 64 * 1024;

const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP: libc::c_int = 1;
const MAP_UPDATE: libc::c_int = 2;
const MAP_DELETE: libc::c_int = 3;
const PROGRAM_LOAD: libc::c_int = 5;
const PROGRAM_TEST_RUN: libc::c_int = 10;
const OBJECT_INFO: libc::c_int = 15;
const LINK_CREATE: libc::c_int = 28;
/// `struct bpf_link_info` of XDP ends with the index of the device, which is 0 once the program is off it.
const LINK_INFO_BYTES: usize = 20;
const LINK_INFO_DEVICE: usize = 16;
const MAP_PERCPU_ARRAY: u32 = 6;
const PROGRAM_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// `XDP_FLAGS_SKB_MODE` and `XDP_FLAGS_DRV_MODE`.
const FLAG_GENERIC: u32 = 1 << 1;
const FLAG_NATIVE: u32 = 1 << 2;
