// SPDX-License-Identifier: Apache-2.0
//! Mapped memory: rings, and the packets themselves.

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::net::sockopt;
use rustix::net::xdp::{XdpUmemReg, XdpUmemRegFlags};

/// Memory that is unmapped in the end.
pub struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: memory belongs to no thread; those who make references into it answer for their use.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps a ring of an XDP socket.
    pub fn of_ring(socket: impl AsFd, at: u64, length: usize) -> io::Result<Mapping> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: a new mapping at a place that the kernel chooses touches no memory of ours.
        let start = unsafe { mmap(std::ptr::null_mut(), length, protection, flags, socket, at) }?;
        Mapping::adopt(start.cast(), length)
    }

    /// Takes memory for packets, in huge pages if there are any left.
    pub fn of_packets(length: usize) -> io::Result<Mapping> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let map = |flags| {
            // SAFETY: a new mapping at a place that the kernel chooses touches no memory of ours.
            unsafe { mmap_anonymous(std::ptr::null_mut(), length, protection, flags) }
        };
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        if length.is_multiple_of(HUGE_PAGE_BYTES) {
            match map(flags | MapFlags::HUGETLB) {
                Ok(start) => return Mapping::adopt(start.cast(), length),
                Err(error) => tracing::debug!(%error, length, "no huge pages for packets"),
            }
        }
        Mapping::adopt(map(flags)?.cast(), length)
    }

    /// Returns a word at an offset.
    pub fn word(&self, offset: usize) -> io::Result<NonNull<AtomicU32>> {
        if offset.checked_add(4).is_none_or(|end| end > self.length) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.array(offset)
    }

    /// Returns where an array at an offset starts; how far it goes is for the caller to know.
    pub fn array<T>(&self, offset: usize) -> io::Result<NonNull<T>> {
        if offset > self.length || !offset.is_multiple_of(align_of::<T>()) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // SAFETY: the offset lies in the mapping.
        Ok(unsafe { self.start.add(offset) }.cast())
    }

    fn adopt(start: *mut u8, length: usize) -> io::Result<Mapping> {
        Ok(Mapping { start: NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?, length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and with it go all that borrow from it. It cannot fail for a mapping that exists.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Words of a map that an XDP program reads while they are written.
pub struct Words {
    memory: Mapping,
    count: usize,
}

// SAFETY: the words are only used atomically.
unsafe impl Sync for Words {}

impl Words {
    /// Maps the first value of a map, which has so many words of 8 bytes.
    pub fn map(map: impl AsFd, count: usize) -> io::Result<Words> {
        Ok(Words { memory: Mapping::of_ring(map, 0, 8 * count)?, count })
    }

    /// Writes a word; who sees it sees what was written before, too.
    ///
    /// # Panics
    /// If there is no such word.
    pub fn store(&self, word: usize, value: u64) {
        assert!(word < self.count, "word {word} of {}", self.count);
        let word = self.memory.array::<AtomicU64>(8 * word).expect("the word lies in the mapping");
        // SAFETY: the word lies in the mapping, which lives as long as `self`, and is only used atomically.
        unsafe { word.as_ref() }.store(value, Ordering::Release);
    }
}

/// The right to use one frame of packet memory. There is one per frame, and whoever has it, be it we or the kernel
/// through a ring, may touch the frame's bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame(u32);

impl Frame {
    /// Returns the frame's number.
    pub fn index(&self) -> usize {
        usize::try_from(self.0).expect("32 bits fit in usize")
    }

    /// Gives the frame away: returns the address of a place in it, for a ring.
    pub fn into_address(self, offset: usize) -> u64 {
        u64::from(self.0) * FRAME_BYTES_U64 + u64::try_from(offset).expect("usize fits in 64 bits")
    }

    /// Takes a frame back from a ring, and with it the offset of the place in it.
    ///
    /// Only for an address that the kernel gave back, each time once.
    pub fn from_address(address: u64) -> (Frame, usize) {
        let index = u32::try_from(address / FRAME_BYTES_U64).expect("the memory has less than 2^32 frames");
        (Frame(index), usize::try_from(address % FRAME_BYTES_U64).expect("an offset is small"))
    }
}

/// The packet memory of a driver, cut into frames.
pub struct Umem {
    memory: Mapping,
    frames: u32,
}

impl Umem {
    /// Takes memory and returns it with all its frames.
    pub fn new(frames: u32) -> io::Result<(Umem, Vec<Frame>)> {
        let length = usize::try_from(frames).map_err(io::Error::other)? * FRAME_BYTES;
        let memory = Mapping::of_packets(length)?;
        Ok((Umem { memory, frames }, (0..frames).map(Frame).collect()))
    }

    /// Makes this the memory of a socket.
    pub fn register(&self, socket: impl AsFd) -> io::Result<()> {
        let registration = XdpUmemReg {
            addr: u64::try_from(self.memory.start.as_ptr().expose_provenance()).map_err(io::Error::other)?,
            len: u64::from(self.frames) * FRAME_BYTES_U64,
            chunk_size: u32::try_from(FRAME_BYTES).expect("a frame is small"),
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        Ok(sockopt::set_xdp_umem_reg(socket, registration)?)
    }

    /// Returns bytes of a frame; an empty slice for a range that is not in it.
    pub fn bytes(&self, frame: &Frame, range: Range<usize>) -> &[u8] {
        let Some(start) = self.place(frame, &range) else { return &[] };
        // SAFETY: the range lies in the frame, and the borrowed right to it keeps us and the kernel from writing there.
        unsafe { std::slice::from_raw_parts(start, range.len()) }
    }

    /// Returns bytes of a frame to be written; an empty slice for a range that is not in it.
    pub fn bytes_mut(&mut self, frame: &mut Frame, range: Range<usize>) -> &mut [u8] {
        let Some(start) = self.place(frame, &range) else { return &mut [] };
        // SAFETY: the range lies in the frame, and the right to it, of which there is one, is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(start, range.len()) }
    }

    /// Has the processor fetch what lies at an address, as in descriptors, and behind it, since that will be read soon: another
    /// one may have written it, and so it would be waited for.
    #[inline]
    pub fn prefetch(&self, address: u64) {
        let bytes = usize::try_from(address).unwrap_or(usize::MAX);
        if bytes < usize::try_from(self.frames).unwrap_or(0) * FRAME_BYTES {
            // SAFETY: the address lies in the memory.
            prefetch(unsafe { self.memory.start.as_ptr().add(bytes) });
        }
    }

    fn place(&self, frame: &Frame, range: &Range<usize>) -> Option<*mut u8> {
        (frame.0 < self.frames && range.start <= range.end && range.end <= FRAME_BYTES).then_some(())?;
        // SAFETY: the frame lies in the memory, and the start of the range in the frame.
        Some(unsafe { self.memory.start.as_ptr().add(frame.index() * FRAME_BYTES + range.start) })
    }
}

/// Has the processor fetch two lines of its cache, or does nothing.
#[inline]
fn prefetch(start: *const u8) {
    #[cfg(target_arch = "x86_64")]
    for line in [0, LINE_BYTES] {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every processor of this kind has it, and it reads nothing: an address that is not there does no harm.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(line).cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    for line in [0, LINE_BYTES] {
        // SAFETY: as above; it changes neither memory nor flags.
        unsafe {
            std::arch::asm!("prfm pldl1keep, [{}]", in(reg) start.wrapping_add(line), options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = start;
}

/// What the kernel leaves free in front of a received packet, and we in front of a new one.
pub const ROOM_BYTES: usize = 256;
/// Bytes of the longest frame that fits into a frame of memory behind the room.
pub const FRAME_BYTES_RECEIVED: u32 = 2048 - 256;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const LINE_BYTES: usize = 64;
/// Bytes of a frame; the kernel leaves 256 of them free in front of a packet.
pub const FRAME_BYTES: usize = 2048;
const FRAME_BYTES_U64: u64 = 2048;
const HUGE_PAGE_BYTES: usize = 2 * 1024 * 1024;
