// SPDX-License-Identifier: Apache-2.0
//! What [`netserv_module!`](crate::netserv_module) calls: from the packet ABI to a
//! [`PacketModule`](crate::PacketModule).

#[cfg(target_arch = "wasm32")]
pub use self::wasm::Runtime;

#[cfg(target_arch = "wasm32")]
mod wasm {
    use std::cell::{Cell, RefCell};
    use std::time::Duration;

    use crate::control;
    use crate::messages::{self, MESSAGE_BYTES_MAX};
    use crate::packet::{Packet, Verdict};
    use crate::sys::{OneThread, PAGE_BYTES, allocate_pages, area_bytes};
    use crate::{PacketModule, StartError, host, log};

    const TABLE_BYTES: usize = 65_536;
    const DESCRIPTOR_BYTES: usize = 32;

    /// A module and its packet area.
    pub struct Runtime<M>(OneThread<State<M>>);

    struct State<M> {
        module: RefCell<Option<M>>,
        area: Cell<usize>,
    }

    impl<M: PacketModule> Runtime<M> {
        /// Builds a runtime whose module has not started.
        pub const fn idle() -> Runtime<M> {
            Runtime(OneThread(State { module: RefCell::new(None), area: Cell::new(0) }))
        }

        /// Sets the packet area aside.
        pub fn area(&self, slots: u32, slot_bytes: u32) -> u32 {
            let slots = (slots as usize).saturating_mul(slot_bytes as usize);
            let address = allocate_pages(TABLE_BYTES.saturating_add(slots).div_ceil(PAGE_BYTES));
            self.0.0.area.set(address);
            u32::try_from(address).unwrap_or(0)
        }

        /// Starts the module.
        pub fn start(&self) -> i32 {
            std::panic::set_hook(Box::new(|info| log::error(&info.to_string())));
            match M::start() {
                Ok(module) => {
                    *self.0.0.module.borrow_mut() = Some(module);
                    0
                }
                Err(error) => {
                    log::error(&error.to_string());
                    1
                }
            }
        }

        /// Has the module look at a batch.
        pub fn process(&self, count: u32) {
            let mut module = self.0.0.module.borrow_mut();
            let Some(module) = module.as_mut() else { return };
            let area = self.0.0.area.get();
            for index in 0..count as usize {
                process_one(module, area_bytes(area + index * DESCRIPTOR_BYTES, DESCRIPTOR_BYTES));
            }
        }

        /// Passes a timer on.
        pub fn timer(&self, id: u32) {
            if let Some(module) = self.0.0.module.borrow_mut().as_mut() {
                module.timer(id);
            }
        }

        /// Passes messages on until there is none left.
        pub fn message(&self) {
            if let Some(module) = self.0.0.module.borrow_mut().as_mut() {
                let mut bytes = [0; MESSAGE_BYTES_MAX];
                while let Some(message) = messages::receive(&mut bytes) {
                    module.message(message);
                }
            }
        }

        /// Passes control messages on until there is none left.
        pub fn control(&self) {
            if let Some(module) = self.0.0.module.borrow_mut().as_mut() {
                let mut bytes = [0; control::MESSAGE_BYTES_MAX];
                while let Some(message) = control::receive(&mut bytes) {
                    module.control(&message);
                }
            }
        }

        /// Has the module say its state.
        pub fn export(&self) -> i32 {
            let mut module = self.0.0.module.borrow_mut();
            let Some(module) = module.as_mut() else { return 1 };
            let state = module.export_state();
            said(state.and_then(|state| Ok(host::state_write(&state)?)))
        }

        /// Has the module take a state of so many bytes.
        pub fn import(&self, length: u32) -> i32 {
            let mut module = self.0.0.module.borrow_mut();
            let Some(module) = module.as_mut() else { return 1 };
            let mut state = vec![0; length as usize];
            let read = host::state_read(&mut state);
            said(read.map_err(StartError::from).and_then(|read| {
                state.truncate(read);
                module.import_state(&state)
            }))
        }

        /// Stops the module.
        pub fn stop(&self) {
            if let Some(mut module) = self.0.0.module.borrow_mut().take() {
                module.stop();
            }
        }
    }

    fn said(done: Result<(), StartError>) -> i32 {
        done.map_or_else(
            |error| {
                log::error(&error.to_string());
                1
            },
            |()| 0,
        )
    }

    fn process_one<M: PacketModule>(module: &mut M, descriptor: &mut [u8]) {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| descriptor[at + byte]));
        let (address, length, capacity) = (word(0) as usize, word(4) as usize, word(8) as usize);
        let time = u64::from(word(16)) | u64::from(word(20)) << 32;
        let mut packet = Packet::new(area_bytes(address, capacity), length, Duration::from_nanos(time), word(24));
        let verdict: u32 = match module.process(&mut packet) {
            Verdict::Pass => 0,
            Verdict::Drop => 1,
            Verdict::Modified => 2,
        };
        let length = u32::try_from(packet.len()).unwrap_or(0);
        descriptor[4..8].copy_from_slice(&length.to_le_bytes());
        descriptor[12..16].copy_from_slice(&verdict.to_le_bytes());
    }
}
