// SPDX-License-Identifier: Apache-2.0
//! A JVM with the host running in it.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use netserv_model::limits::PACKET_BYTES_MAX;
use netserv_wire::container::ring::{PACKET_OFFSET, SLOT_BYTES, SLOTS_BYTES};
use netserv_worker_base::error::ServeError;

use super::batch::BatchMemory;
use super::home::{JavaHome, Places, class_path};
use super::options::{Archive, Memory, Setup, options};
use super::outbox::Outbox;
use super::sys::{self, Bridge, Buffers, Handler, Thrown, compute, kv};

/// Words of the ring's first page.
pub const HEADER_WORDS: usize = 4096 / size_of::<u64>();

/// What a JVM is started for.
#[derive(Clone, Copy, Debug)]
pub struct Purpose<'a> {
    /// The Java that is used.
    pub home: &'a JavaHome,
    /// Where the Java part is.
    pub places: &'a Places,
    /// Bytes of memory that there are.
    pub memory_bytes: u64,
    /// What is done about archived classes.
    pub archive: Archive<'a>,
    /// Whether recorded tests are run.
    pub test: bool,
}

/// The parts of a ring that Java sees.
#[derive(Clone, Copy, Debug)]
pub struct RingParts {
    /// The slots.
    pub slots: &'static [AtomicU64],
    /// The first page.
    pub header: &'static [AtomicU64],
}

/// A host that runs, or is about to say so.
pub struct Host {
    /// The calls into it.
    pub bridge: Bridge,
    /// The batches that are shown to it.
    pub batch: BatchMemory,
    /// What it tells.
    pub outbox: &'static Outbox,
    /// The parts of the ring that it sees.
    pub ring: RingParts,
}

impl RingParts {
    /// Makes memory like a ring's, where there is no node.
    ///
    /// # Errors
    /// There is none left.
    pub fn new() -> Result<RingParts, ServeError> {
        Ok(RingParts { slots: words(SLOTS_BYTES / size_of::<u64>())?, header: words(HEADER_WORDS)? })
    }
}

impl Host {
    /// Starts a JVM in this process, and the host in it; once. What it tells is left in `outbox`; `handler` is told
    /// when the JVM ends by itself.
    ///
    /// # Errors
    /// There is no JVM to be had, or the host does not start in it.
    pub fn start(
        purpose: &Purpose<'_>,
        ring: RingParts,
        outbox: &'static Outbox,
        handler: Handler,
    ) -> Result<Host, ServeError> {
        let Purpose { home, places, memory_bytes, archive, test } = *purpose;
        let failed = |error: String| ServeError::Engine("the JVM", error);
        let class_path =
            class_path(&places.host).map_err(|error| failed(format!("{}: {error}", places.host.display())))?;
        let data = &places.data;
        let memory = Memory::of(memory_bytes);
        kv::set_room(memory.kv_bytes);
        compute::set_memory(memory.compute_bytes_allowed());
        let setup = Setup { version: home.version, class_path: &class_path, data, memory_bytes, archive, test };
        let bridge = Bridge::open(&home.libjvm(), &options(&setup), outbox, handler).map_err(failed)?;
        let batch = BatchMemory::new().map_err(|error| ServeError::Io("mmap", error))?;
        let buffers = Buffers { table: batch.table, slots: ring.slots, injects: batch.injects, header: ring.header };
        bridge.start(&buffers, &places.blocks, data).map_err(broken)?;
        Ok(Host { bridge, batch, outbox, ring })
    }
}

impl Host {
    /// Puts a packet into a slot of a ring without a node.
    pub fn put(&self, slot: usize, packet: &[u8]) {
        debug_assert!(packet.len() <= PACKET_BYTES_MAX);
        for (word, bytes) in self.packet_words(slot).iter().zip(packet.chunks(size_of::<u64>())) {
            let mut whole = [0; size_of::<u64>()];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(whole), Ordering::Relaxed);
        }
    }

    /// Returns the packet in a slot.
    pub fn get(&self, slot: usize, length: usize) -> Vec<u8> {
        let words = self.packet_words(slot).iter();
        words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).take(length).collect()
    }

    fn packet_words(&self, slot: usize) -> &[AtomicU64] {
        let start = (slot * SLOT_BYTES + PACKET_OFFSET) / size_of::<u64>();
        &self.ring.slots[start..start + PACKET_BYTES_MAX / size_of::<u64>()]
    }
}

/// Returns the Java in a directory.
///
/// # Errors
/// There is none that runs bundles.
pub fn java_home(path: &Path) -> Result<JavaHome, ServeError> {
    JavaHome::open(path).map_err(|error| ServeError::Engine("the JVM", error.to_string()))
}

/// Returns the end of a worker whose Java part threw what it should not.
#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
pub fn broken(thrown: Thrown) -> ServeError {
    ServeError::Broken(format!("the Java host failed: {thrown}"))
}

fn words(count: usize) -> Result<&'static [AtomicU64], ServeError> {
    sys::words(count).map_err(|error| ServeError::Io("mmap", error))
}
