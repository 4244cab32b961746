// SPDX-License-Identifier: Apache-2.0
//! One module at work: its memory, its packet area and the calls into it.
//!
//! Packets get into the area in one of two ways. Either each is copied into one of [`BATCH_PACKETS_MAX`] slots of the
//! module's own, or the ring's slots are mapped there, and only descriptors are written. A module that asks for no room
//! for all of the ring's slots is always copied to.

use std::io;

use netserv_model::limits::{BATCH_PACKETS_MAX, PACKET_BYTES_MAX};
use netserv_model::request::PacketCounts;
use netserv_model::{Refusal, RefusalKind, Verdict};
use netserv_wire::container::ring::{HOST_SLOTS, Ingress, PACKET_OFFSET, SLOT_BYTES, SLOTS, SLOTS_BYTES};
use netserv_worker_base::failure::{memory_limit, no_carrier, no_state, with_words};
use netserv_worker_base::link::ABI;
use netserv_worker_base::link::ring_memory::RingSlots;
use netserv_worker_base::{limits, sys};
use netserv_worker_wasm::refusal;
use wasmtime::{Memory, Store, Trap, TypedFunc};

use super::carried::Carried;
use super::engine::{Checked, Interruption, abi_mismatch};
use super::guest::MappedSlots;
use super::host::Host;

/// Milliseconds between two steps of the epoch in an engine that is interrupted by epochs.
pub const EPOCH_MS: u64 = 10;
/// Alignment of a packet area, and where its slots start.
const AREA_ALIGNMENT: usize = 65_536;
const TABLE_BYTES: usize = BATCH_PACKETS_MAX * DESCRIPTOR_BYTES;
const DESCRIPTOR_BYTES: usize = 32;

/// One instance of a module.
/// After any call that fails but [`Instance::export_state`], the instance is used up: drop it.
pub struct Instance {
    store: Store<Host>,
    memory: Memory,
    area: usize,
    /// Whether the area has room for the slots of the rings of all lanes.
    is_roomy: bool,
    process: TypedFunc<i32, ()>,
    timer: Option<TypedFunc<i32, ()>>,
    message: Option<TypedFunc<(), ()>>,
    control: Option<TypedFunc<(), ()>>,
    stop: Option<TypedFunc<(), ()>>,
    export: Option<TypedFunc<(), i32>>,
    import: Option<TypedFunc<i32, i32>>,
    /// Whether it trapped when it was asked for its state, so that nobody asks again.
    is_mute: bool,
    /// Epoch steps that one call may take.
    epochs: Option<u64>,
    /// What became of the packets that it saw.
    pub counts: PacketCounts,
}

/// What a module left for one packet of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// What it said.
    pub verdict: Verdict,
    /// How long the packet is, if it was modified.
    pub length: usize,
}

impl Instance {
    /// Instantiates a module and starts it.
    ///
    /// # Errors
    /// [`RefusalKind::MemoryLimit`], [`RefusalKind::AbiMismatch`], or [`RefusalKind::Trapped`] if it does not get
    /// ready.
    pub fn start(checked: &Checked, host: Host) -> Result<Instance, Refusal> {
        let memory_bytes = host.limits.memory_bytes;
        let epochs = match checked.interruption {
            Interruption::None => None,
            Interruption::Epochs => Some(u64::from(host.limits.call_ms).div_ceil(EPOCH_MS) + 1),
        };
        let mut store = Store::new(checked.pre.module().engine(), host);
        store.limiter(|host| &mut host.cap);
        arm(&mut store, epochs);
        let instance = match checked.pre.instantiate(&mut store) {
            Ok(instance) => instance,
            Err(error) => return Err(failed(&error, store.data(), memory_bytes)),
        };
        let missing = |_| abi_mismatch("the module's exports do not fit packet ABI 1");
        let memory = instance.get_memory(&mut store, "memory").ok_or_else(|| abi_mismatch("no memory"))?;
        store.data_mut().memory = Some(memory);
        let abi = instance.get_typed_func::<(), u32>(&mut store, "netserv_abi").map_err(missing)?;
        let area = instance.get_typed_func::<(u32, u32), u32>(&mut store, "netserv_area").map_err(missing)?;
        let start = instance.get_typed_func::<(), i32>(&mut store, "netserv_start").map_err(missing)?;
        let mut this = Instance {
            memory,
            area: 0,
            is_roomy: false,
            process: instance.get_typed_func(&mut store, "netserv_process").map_err(missing)?,
            timer: instance.get_typed_func(&mut store, "netserv_timer").ok(),
            message: instance.get_typed_func(&mut store, "netserv_message").ok(),
            control: instance.get_typed_func(&mut store, "netserv_control").ok(),
            stop: instance.get_typed_func(&mut store, "netserv_stop").ok(),
            export: instance.get_typed_func(&mut store, "netserv_export").ok(),
            import: instance.get_typed_func(&mut store, "netserv_import").ok(),
            is_mute: false,
            epochs,
            counts: PacketCounts::default(),
            store,
        };
        this.store.data_mut().has_timer = this.timer.is_some();
        this.check_abi(&abi)?;
        this.ask_for_area(&area)?;
        let ready = this.call(|store| start.call(store, ()))?;
        if ready != 0 {
            return Err(this.refuse(&format!("the module refused to start, with code {ready}")));
        }
        Ok(this)
    }

    /// Maps the slots of the rings of as many lanes as it is for into the module's memory, if it has room for them. Returns
    /// whether they are there.
    ///
    /// Everything in them is the module's to read and to write from then on, whenever it runs.
    ///
    /// # Errors
    /// The kernel does not map them; the instance goes on without.
    pub fn map(&mut self, slots: RingSlots<'_>) -> io::Result<bool> {
        if self.is_roomy && !self.is_mapped() && self.lanes() == slots.lanes() {
            slots.map_over(self.slots_mut())?;
            let start = self.area + AREA_ALIGNMENT;
            self.store.data_mut().slots = Some(MappedSlots { start, words: slots.words() });
        }
        Ok(self.is_mapped())
    }

    /// Takes the ring's slots out of the module's memory, and leaves zeroes there.
    ///
    /// # Errors
    /// The kernel does not; the instance is used up.
    pub fn unmap(&mut self) -> io::Result<()> {
        if self.store.data_mut().slots.take().is_some() {
            sys::map_empty(self.slots_mut())?;
        }
        Ok(())
    }

    /// Returns whether the ring's slots are mapped into the module's memory, so that packets are pointed to and not
    /// copied.
    pub fn is_mapped(&self) -> bool {
        self.store.data().slots.is_some()
    }

    /// Makes a batch of packets in the ring's slots, where the slots are mapped: slot, length and ingress of each.
    pub fn point(&mut self, packets: impl Iterator<Item = (usize, usize, Ingress)>) {
        debug_assert!(self.is_mapped());
        let (area, of_one) = (self.area, self.lanes() == 1);
        for (place, (slot, length, ingress)) in self.table_mut().iter_mut().zip(packets) {
            // An instance of one lane of several has the slots of that lane only.
            let slot = if of_one { slot % SLOTS } else { slot };
            debug_assert!(slot % SLOTS < HOST_SLOTS);
            *place = descriptor(area + packet_offset(slot), length, ingress);
        }
    }

    /// Makes room for packet `index` of a batch, and returns where its `length` bytes go. Not where slots are mapped.
    pub fn place(&mut self, index: usize, length: usize, ingress: Ingress) -> &mut [u8] {
        debug_assert!(!self.is_mapped());
        let start = self.area + packet_offset(index);
        self.table_mut()[index] = descriptor(start, length, ingress);
        &mut self.memory.data_mut(&mut self.store)[start..start + length]
    }

    /// Has the module look at the first `count` packets that were placed. Returns what it left for each.
    ///
    /// # Errors
    /// It trapped, or left a verdict or a length that means nothing; none of its verdicts counts then.
    pub fn process(&mut self, count: usize, left: &mut Vec<Left>) -> Result<(), Refusal> {
        left.clear();
        let argument = i32::try_from(count).expect("a batch is short");
        self.prepare_call();
        let called = self.process.call(&mut self.store, argument);
        called.map_err(|error| self.failure(&error))?;
        let table = &self.memory.data(&self.store)[self.area..][..TABLE_BYTES];
        for descriptor in table.as_chunks::<DESCRIPTOR_BYTES>().0.iter().take(count) {
            let (verdict, length) = (read_word(descriptor, 12), read_word(descriptor, 4));
            match read_verdict(verdict, length) {
                Some(one) => left.push(one),
                None => {
                    let detail = format!("the module left verdict {verdict} and length {length} for a packet");
                    return Err(self.refuse(&detail));
                }
            }
        }
        self.count(left);
        Ok(())
    }

    /// Returns the first `length` bytes of packet `index` as the module left them. Not where slots are mapped.
    pub fn packet(&self, index: usize, length: usize) -> &[u8] {
        debug_assert!(!self.is_mapped());
        &self.memory.data(&self.store)[self.area + packet_offset(index)..][..length]
    }

    /// Calls the module for one timer of its own.
    ///
    /// # Errors
    /// It trapped.
    pub fn handle_timer(&mut self, id: i32) -> Result<(), Refusal> {
        match self.timer.clone() {
            Some(timer) => self.call(|store| timer.call(store, id)),
            None => Ok(()),
        }
    }

    /// Tells the module that there are messages from its server part.
    ///
    /// # Errors
    /// It trapped.
    pub fn handle_message(&mut self) -> Result<(), Refusal> {
        match self.message.clone() {
            Some(message) => self.call(|store| message.call(store, ())),
            None => Ok(()),
        }
    }

    /// Tells the module that there are control messages.
    ///
    /// # Errors
    /// It trapped.
    pub fn handle_control(&mut self) -> Result<(), Refusal> {
        match self.control.clone() {
            Some(control) => self.call(|store| control.call(store, ())),
            None => Ok(()),
        }
    }

    /// Tells the module that it ends.
    ///
    /// # Errors
    /// It trapped.
    pub fn stop(&mut self) -> Result<(), Refusal> {
        match self.stop.take() {
            Some(stop) => self.call(|store| stop.call(store, ())),
            None => Ok(()),
        }
    }

    /// Returns whether the instance says something of its state, beyond kv.
    pub fn has_state(&self) -> bool {
        self.export.is_some()
    }

    /// Returns what the module says of its state; nothing if it says nothing.
    /// It goes on, whatever comes of this.
    ///
    /// # Errors
    /// [`RefusalKind::StateRefused`]: it does not say it, or traps, now or when it was asked before.
    pub fn export_state(&mut self) -> Result<Option<Vec<u8>>, Refusal> {
        let Some(export) = self.export.clone() else { return Ok(None) };
        if self.is_mute {
            let detail = "the module trapped when it was asked for its state before; load it anew, then ask again";
            return Err(Refusal::new(RefusalKind::StateRefused, detail));
        }
        self.store.data_mut().carried = Carried::Out(Vec::new());
        let said = self.call(|store| export.call(store, ()));
        let state = std::mem::take(&mut self.store.data_mut().carried);
        match (said, state) {
            (Ok(0), Carried::Out(state)) => Ok((!state.is_empty()).then_some(state)),
            (Ok(code), _) => Err(self.declined("did not say its state", code)),
            (Err(trap), _) => {
                self.is_mute = true;
                Err(no_state(&trap))
            }
        }
    }

    /// Has the module take the state that another instance said.
    ///
    /// # Errors
    /// It takes none, refuses, or traps.
    pub fn import_state(&mut self, state: Vec<u8>) -> Result<(), Refusal> {
        let Some(import) = self.import.clone() else { return Err(no_carrier("packet")) };
        let length = i32::try_from(state.len()).unwrap_or(i32::MAX);
        self.store.data_mut().carried = Carried::In(state, 0);
        let taken = self.call(|store| import.call(store, length));
        self.store.data_mut().carried = Carried::Nothing;
        match taken? {
            0 => Ok(()),
            code => Err(self.declined("did not take the state", code)),
        }
    }

    /// Returns the node's side of the instance.
    pub fn host(&self) -> &Host {
        self.store.data()
    }

    /// Returns the node's side of the instance.
    pub fn host_mut(&mut self) -> &mut Host {
        self.store.data_mut()
    }

    /// Returns the module's whole memory. While slots are mapped there, whoever has the ring may change them.
    pub fn memory_bytes(&self) -> &[u8] {
        self.memory.data(&self.store)
    }

    /// Ends the instance, and returns what is left of it on the node's side.
    pub fn into_host(self) -> Host {
        self.store.into_data()
    }

    fn check_abi(&mut self, abi: &TypedFunc<(), u32>) -> Result<(), Refusal> {
        let version = self.call(|store| abi.call(store, ()))?;
        if version == ABI {
            return Ok(());
        }
        Err(abi_mismatch(&format!("the module was built for packet ABI {version}, the node speaks {ABI}")))
    }

    fn ask_for_area(&mut self, area: &TypedFunc<(u32, u32), u32>) -> Result<(), Refusal> {
        let lanes = self.lanes();
        self.store.data_mut().cap.slots_bytes = lanes * SLOTS_BYTES - BATCH_PACKETS_MAX * SLOT_BYTES;
        self.area = self.answered_area(area, lanes * SLOTS)?;
        self.is_roomy = self.has_area(lanes * SLOTS);
        if self.is_roomy {
            return Ok(());
        }
        self.store.data_mut().cap.slots_bytes = 0;
        self.area = self.answered_area(area, BATCH_PACKETS_MAX)?;
        if self.has_area(BATCH_PACKETS_MAX) {
            return Ok(());
        }
        Err(abi_mismatch(&format!("the module's packet area at {} is none", self.area)))
    }

    fn answered_area(&mut self, area: &TypedFunc<(u32, u32), u32>, slots: usize) -> Result<usize, Refusal> {
        let slots = u32::try_from(slots).expect("slots are few");
        let slot_bytes = u32::try_from(SLOT_BYTES).expect("a slot is small");
        Ok(self.call(|store| area.call(store, (slots, slot_bytes)))? as usize)
    }

    fn has_area(&self, slots: usize) -> bool {
        let end = self.area.checked_add(AREA_ALIGNMENT + slots * SLOT_BYTES);
        let fits = end.is_some_and(|end| end <= self.memory.data_size(&self.store));
        self.area != 0 && self.area.is_multiple_of(AREA_ALIGNMENT) && fits
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut Store<Host>) -> wasmtime::Result<T>) -> Result<T, Refusal> {
        self.prepare_call();
        call(&mut self.store).map_err(|error| self.failure(&error))
    }

    fn prepare_call(&mut self) {
        arm(&mut self.store, self.epochs);
        let host = self.store.data_mut();
        host.cap.memory_denied = None;
        host.log.forget_error();
    }

    fn failure(&self, error: &wasmtime::Error) -> Refusal {
        failed(error, self.store.data(), self.store.data().limits.memory_bytes)
    }

    /// Returns the refusal of a module that says itself that it fails, or that breaks the ABI.
    fn refuse(&self, detail: &str) -> Refusal {
        with_words(RefusalKind::Trapped, detail, self.store.data().log.error())
    }

    fn declined(&self, what: &str, code: i32) -> Refusal {
        let detail = format!("the module {what}, with code {code}");
        with_words(RefusalKind::StateRefused, &detail, self.store.data().log.error())
    }

    fn table_mut(&mut self) -> &mut [[u8; DESCRIPTOR_BYTES]] {
        self.memory.data_mut(&mut self.store)[self.area..][..TABLE_BYTES].as_chunks_mut().0
    }

    /// Returns the memory where the rings' slots are mapped or can be.
    fn slots_mut(&mut self) -> &mut [u8] {
        let (start, length) = (self.area + AREA_ALIGNMENT, self.lanes() * SLOTS_BYTES);
        &mut self.memory.data_mut(&mut self.store)[start..start + length]
    }

    fn lanes(&self) -> usize {
        self.store.data().lanes
    }

    fn count(&mut self, left: &[Left]) {
        self.counts.seen += left.len() as u64;
        for one in left {
            match one.verdict {
                Verdict::Pass => self.counts.passed += 1,
                Verdict::Drop => self.counts.dropped += 1,
                Verdict::Modified => self.counts.modified += 1,
            }
        }
    }
}

fn descriptor(address: usize, length: usize, ingress: Ingress) -> [u8; DESCRIPTOR_BYTES] {
    debug_assert!(length <= PACKET_BYTES_MAX);
    let mut descriptor = [0; DESCRIPTOR_BYTES];
    descriptor[0..4].copy_from_slice(&word(address));
    descriptor[4..8].copy_from_slice(&word(length));
    descriptor[8..12].copy_from_slice(&word(PACKET_BYTES_MAX));
    descriptor[16..24].copy_from_slice(&ingress.timestamp_ns.to_le_bytes());
    descriptor[24..28].copy_from_slice(&ingress.interface.to_le_bytes());
    descriptor
}

fn packet_offset(index: usize) -> usize {
    AREA_ALIGNMENT + index * SLOT_BYTES + PACKET_OFFSET
}

fn word(value: usize) -> [u8; 4] {
    u32::try_from(value).expect("an address inside a 32-bit memory").to_le_bytes()
}

fn read_word(descriptor: &[u8; DESCRIPTOR_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([0, 1, 2, 3].map(|byte| descriptor[at + byte]))
}

fn read_verdict(verdict: u32, length: u32) -> Option<Left> {
    let length = length as usize;
    match verdict {
        0 => Some(Left { verdict: Verdict::Pass, length }),
        1 => Some(Left { verdict: Verdict::Drop, length }),
        2 => (limits::PACKET_BYTES_MIN..=PACKET_BYTES_MAX)
            .contains(&length)
            .then_some(Left { verdict: Verdict::Modified, length }),
        _ => None,
    }
}

fn arm(store: &mut Store<Host>, epochs: Option<u64>) {
    if let Some(epochs) = epochs {
        store.set_epoch_deadline(epochs);
    }
}

/// Says why a call failed: a stall, memory that was denied, or any other trap with the functions it happened in.
fn failed(error: &wasmtime::Error, host: &Host, memory_bytes: u64) -> Refusal {
    if let Some(wanted) = host.cap.memory_denied {
        return memory_limit(wanted as u64, memory_bytes);
    }
    let is_stall = error.downcast_ref::<Trap>() == Some(&Trap::Interrupt);
    let kind = if is_stall { RefusalKind::Stalled } else { RefusalKind::Trapped };
    refusal(kind, error, host.log.error())
}
