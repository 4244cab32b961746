// SPDX-License-Identifier: Apache-2.0
//! One module at work: its memory, its packet area and the calls into it.

use netserv_model::limits::{BATCH_PACKETS_MAX, PACKET_BYTES_MAX};
use netserv_model::request::PacketCounts;
use netserv_model::{Refusal, RefusalKind, Verdict};
use netserv_wire::container::ring::{Ingress, PACKET_OFFSET, SLOT_BYTES};
use wasmtime::{Memory, Store, Trap, TypedFunc, WasmBacktrace};

use crate::engine::{ABI, Checked, Interruption, abi_mismatch, memory_limit, one_line};
use crate::host::Host;
use crate::limits;

/// Milliseconds between two steps of the epoch in an engine that is interrupted by epochs.
pub const EPOCH_MS: u64 = 10;
/// Alignment of a packet area, and where its slots start.
const AREA_ALIGNMENT: usize = 65_536;
const AREA_BYTES: usize = AREA_ALIGNMENT + BATCH_PACKETS_MAX * SLOT_BYTES;
const DESCRIPTOR_BYTES: usize = 32;
const BACKTRACE_FRAMES_MAX: usize = 6;

/// One instance of a module. After any call that fails, the instance is used up: drop it.
pub struct Instance {
    store: Store<Host>,
    memory: Memory,
    area: usize,
    process: TypedFunc<i32, ()>,
    timer: Option<TypedFunc<i32, ()>>,
    stop: Option<TypedFunc<(), ()>>,
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
            Err(error) => return Err(failure(&error, store.data(), memory_bytes)),
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
            process: instance.get_typed_func(&mut store, "netserv_process").map_err(missing)?,
            timer: instance.get_typed_func(&mut store, "netserv_timer").ok(),
            stop: instance.get_typed_func(&mut store, "netserv_stop").ok(),
            epochs,
            counts: PacketCounts::default(),
            store,
        };
        this.store.data_mut().has_timer = this.timer.is_some();
        this.check_abi(&abi)?;
        this.area = this.ask_for_area(&area)?;
        let ready = this.call(|store| start.call(store, ()))?;
        if ready != 0 {
            return Err(this.refuse(&format!("the module refused to start, with code {ready}")));
        }
        Ok(this)
    }

    /// Makes room for packet `index` of a batch, and returns where its `length` bytes go.
    pub fn place(&mut self, index: usize, length: usize, ingress: Ingress) -> &mut [u8] {
        debug_assert!(index < BATCH_PACKETS_MAX && length <= PACKET_BYTES_MAX);
        let offset = packet_offset(index);
        let address = self.area + offset;
        let area = self.area_mut();
        let descriptor = &mut area[index * DESCRIPTOR_BYTES..][..DESCRIPTOR_BYTES];
        descriptor[0..4].copy_from_slice(&word(address));
        descriptor[4..8].copy_from_slice(&word(length));
        descriptor[8..12].copy_from_slice(&word(PACKET_BYTES_MAX));
        descriptor[12..16].copy_from_slice(&[0; 4]);
        descriptor[16..24].copy_from_slice(&ingress.timestamp_ns.to_le_bytes());
        descriptor[24..28].copy_from_slice(&ingress.interface.to_le_bytes());
        descriptor[28..32].copy_from_slice(&[0; 4]);
        &mut area[offset..offset + length]
    }

    /// Has the module look at the first `count` packets that were placed. Returns what it left for each.
    ///
    /// # Errors
    /// It trapped, or left a verdict or a length that means nothing; none of its verdicts counts then.
    pub fn process(&mut self, count: usize, left: &mut Vec<Left>) -> Result<(), Refusal> {
        left.clear();
        let argument = i32::try_from(count).expect("a batch is short");
        let process = self.process.clone();
        self.call(|store| process.call(store, argument))?;
        let area = &self.memory.data(&self.store)[self.area..];
        for index in 0..count {
            let descriptor = &area[index * DESCRIPTOR_BYTES..][..DESCRIPTOR_BYTES];
            let (verdict, length) = (read_word(&descriptor[12..16]), read_word(&descriptor[4..8]));
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

    /// Returns the first `length` bytes of packet `index` as the module left them.
    pub fn packet(&self, index: usize, length: usize) -> &[u8] {
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

    /// Returns the node's side of the instance.
    pub fn host(&self) -> &Host {
        self.store.data()
    }

    /// Returns the node's side of the instance.
    pub fn host_mut(&mut self) -> &mut Host {
        self.store.data_mut()
    }

    /// Returns the module's whole memory.
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

    fn ask_for_area(&mut self, area: &TypedFunc<(u32, u32), u32>) -> Result<usize, Refusal> {
        let slots = u32::try_from(BATCH_PACKETS_MAX).expect("a batch is short");
        let slot_bytes = u32::try_from(SLOT_BYTES).expect("a slot is small");
        let address = self.call(|store| area.call(store, (slots, slot_bytes)))? as usize;
        let memory_bytes = self.memory.data_size(&self.store);
        let fits = address.checked_add(AREA_BYTES).is_some_and(|end| end <= memory_bytes);
        if address == 0 || !address.is_multiple_of(AREA_ALIGNMENT) || !fits {
            return Err(abi_mismatch(&format!("the module's packet area at {address} is none")));
        }
        Ok(address)
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut Store<Host>) -> wasmtime::Result<T>) -> Result<T, Refusal> {
        arm(&mut self.store, self.epochs);
        self.store.data_mut().cap.memory_denied = None;
        let allowed = self.store.data().limits.memory_bytes;
        call(&mut self.store).map_err(|error| failure(&error, self.store.data(), allowed))
    }

    /// Returns the refusal of a module that says itself that it fails, or that breaks the ABI.
    fn refuse(&self, detail: &str) -> Refusal {
        Refusal::new(RefusalKind::Trapped, detail)
    }

    fn area_mut(&mut self) -> &mut [u8] {
        &mut self.memory.data_mut(&mut self.store)[self.area..][..AREA_BYTES]
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

fn packet_offset(index: usize) -> usize {
    AREA_ALIGNMENT + index * SLOT_BYTES + PACKET_OFFSET
}

fn word(value: usize) -> [u8; 4] {
    u32::try_from(value).expect("an address inside a 32-bit memory").to_le_bytes()
}

fn read_word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
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
fn failure(error: &wasmtime::Error, host: &Host, memory_bytes: u64) -> Refusal {
    let trap = error.downcast_ref::<Trap>();
    if let Some(wanted) = host.cap.memory_denied {
        return memory_limit(wanted as u64, memory_bytes);
    }
    let kind = if trap == Some(&Trap::Interrupt) { RefusalKind::Stalled } else { RefusalKind::Trapped };
    let cause = trap.map_or_else(|| one_line(error), ToString::to_string);
    let names: Vec<&str> = error
        .downcast_ref::<WasmBacktrace>()
        .map(|trace| trace.frames().iter().filter_map(|frame| frame.func_name()).take(BACKTRACE_FRAMES_MAX).collect())
        .unwrap_or_default();
    if names.is_empty() {
        Refusal::new(kind, cause)
    } else {
        Refusal::new(kind, format!("{cause} in {}", names.join(" < ")))
    }
}
