// SPDX-License-Identifier: Apache-2.0
//! What one instance of a module has on the node's side: the state behind its host calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use netserv_model::manifest::ModuleLimits;
use netserv_model::node_info::NodeInfo;
use netserv_model::{Instant, Now};
use netserv_worker_base::compute::Workplace;
use netserv_worker_base::error::HostError;
use netserv_worker_base::limits::{INJECTS_PER_CALL_MAX, PACKET_BYTES_MIN};
use netserv_worker_base::shared::channel::Channel;
use netserv_worker_base::shared::control::ControlPort;
use netserv_worker_base::shared::counters::Counters;
use netserv_worker_base::shared::kv::SharedKv;
use netserv_worker_base::shared::log::LogBuffer;
use netserv_worker_base::shared::messages::Exchange;
use netserv_worker_base::{clock, sys};
use netserv_worker_wasm::limits::TABLE_ELEMENTS_MAX;
use wasmtime::{Memory, ResourceLimiter};

use super::carried::Carried;
use super::guest::MappedSlots;
use super::timers::Timers;
use crate::limits;

/// The clocks that a module reads.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's.
    System,
    /// A test's own.
    Manual(ManualClock),
}

/// A clock that a test sets.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Mutex<Now>>);

impl ManualClock {
    /// Returns a clock that stands at `now`.
    pub fn new(now: Now) -> ManualClock {
        ManualClock(Arc::new(Mutex::new(now)))
    }

    /// Returns the time.
    pub fn get(&self) -> Now {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the time.
    pub fn set(&self, now: Now) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

impl Clock {
    /// Returns the monotonic clock.
    pub fn instant(&self) -> Instant {
        match self {
            Clock::System => clock::monotonic(),
            Clock::Manual(now) => now.get().instant,
        }
    }

    /// Returns nanoseconds since 1970-01-01T00:00:00Z.
    pub fn wall_ns(&self) -> u64 {
        match self {
            Clock::System => clock::wall_ns(),
            Clock::Manual(now) => now.get().wall.0.saturating_mul(1_000_000),
        }
    }
}

/// Where a module's random bytes come from.
#[derive(Clone, Debug)]
pub enum Entropy {
    /// The kernel.
    System,
    /// A test's seed.
    Seeded(u64),
}

impl Entropy {
    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        match self {
            Entropy::System => sys::random(bytes),
            Entropy::Seeded(state) => {
                for chunk in bytes.chunks_mut(8) {
                    chunk.copy_from_slice(&split_mix(state).to_le_bytes()[..chunk.len()]);
                }
            }
        }
    }
}

/// Packets that a module made in one call, one after the other.
#[derive(Debug, Default)]
pub struct Injected {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Injected {
    /// Takes a packet.
    ///
    /// # Errors
    /// A packet of a length that none has, or too many in one call.
    pub fn push(&mut self, packet: &[u8]) -> Result<(), HostError> {
        if packet.len() < PACKET_BYTES_MIN {
            return Err(HostError::Invalid);
        }
        if packet.len() > netserv_model::limits::PACKET_BYTES_MAX {
            return Err(HostError::TooLarge);
        }
        if self.ends.len() >= INJECTS_PER_CALL_MAX {
            return Err(HostError::Quota);
        }
        self.bytes.extend_from_slice(packet);
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// Hands each packet to `take`, and forgets them.
    pub fn drain(&mut self, mut take: impl FnMut(&[u8])) {
        let mut start = 0;
        for end in self.ends.drain(..) {
            take(&self.bytes[start..end]);
            start = end;
        }
        self.bytes.clear();
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// The node's side of one instance.
#[derive(Debug)]
pub struct Host {
    /// What the module can read.
    pub properties: BTreeMap<String, String>,
    /// What the module may use.
    pub limits: ModuleLimits,
    /// Its clocks.
    pub clock: Clock,
    /// Its random bytes.
    pub entropy: Entropy,
    /// Its kv state.
    pub kv: SharedKv,
    /// Its messages from and to its server part.
    pub messages: Arc<Exchange>,
    /// Where it publishes.
    pub channel: Arc<Channel>,
    /// What it is told, and tells the requester of its SETUP.
    pub control: Arc<ControlPort>,
    /// What it is told of its node.
    pub node: Arc<NodeInfo>,
    /// Its counters.
    pub counters: Counters,
    /// Its timers.
    pub timers: Timers,
    /// What the blocks that only compute keep for it.
    pub work: Workplace,
    /// Its log lines.
    pub log: LogBuffer,
    /// The packets it made.
    pub injected: Injected,
    /// The state that goes through it, while it is asked for it or told.
    pub carried: Carried,
    /// Whether it can be called for a timer.
    pub has_timer: bool,
    /// Its memory; nothing until it is instantiated.
    pub memory: Option<Memory>,
    /// How many lanes it is for, for whose rings' slots it is asked for room.
    pub lanes: usize,
    /// Where in its memory the rings' slots are mapped, if they are.
    pub slots: Option<MappedSlots>,
    /// The cap on its memory and tables.
    pub cap: Cap,
}

/// What an instance may grow to.
#[derive(Clone, Copy, Debug)]
pub struct Cap {
    memory_bytes: u64,
    /// Bytes on top for the rings' slots, which are the node's memory and not the module's.
    pub slots_bytes: usize,
    /// The bytes of memory that the module asked for in its last call and did not get.
    pub memory_denied: Option<usize>,
}

impl Host {
    /// Builds the node's side of an instance that has not done anything.
    pub fn new(
        properties: BTreeMap<String, String>,
        limits: ModuleLimits,
        kv: SharedKv,
        clock: Clock,
        entropy: Entropy,
    ) -> Host {
        let log = LogBuffer::new(clock.instant());
        Host {
            properties,
            limits,
            clock,
            entropy,
            kv,
            messages: Arc::default(),
            channel: Arc::default(),
            control: Arc::default(),
            node: Arc::default(),
            counters: Counters::default(),
            timers: Timers::default(),
            work: Workplace::default(),
            log,
            injected: Injected::default(),
            carried: Carried::default(),
            has_timer: false,
            memory: None,
            lanes: 1,
            slots: None,
            cap: Cap { memory_bytes: limits.memory_bytes, slots_bytes: 0, memory_denied: None },
        }
    }
}

impl ResourceLimiter for Cap {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let own = desired.saturating_sub(self.slots_bytes);
        let allowed = own as u64 <= self.memory_bytes;
        if !allowed {
            self.memory_denied = Some(own);
        }
        Ok(allowed)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS_MAX)
    }

    fn instances(&self) -> usize {
        1
    }

    fn memories(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        limits::TABLES_MAX
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
