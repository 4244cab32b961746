// SPDX-License-Identifier: Apache-2.0
//! Write packet modules for NetServ nodes in Rust.
//!
//! ```
//! use netserv_sdk::{Counter, Packet, PacketModule, StartError, Verdict, netserv_module};
//!
//! struct CountAll {
//!     packets: Counter,
//! }
//!
//! impl PacketModule for CountAll {
//!     fn start() -> Result<CountAll, StartError> {
//!         Ok(CountAll { packets: Counter::open("packets")? })
//!     }
//!
//!     fn process(&mut self, _: &mut Packet<'_>) -> Verdict {
//!         self.packets.add(1);
//!         Verdict::Pass
//!     }
//! }
//!
//! netserv_module!(CountAll);
//! ```
//!
//! What it cannot do without, `netserv.toml` says, and a node that has less refuses it by name: blocks in `dependencies`, amounts in
//! `[needs]`.
//!
//! ```toml
//! dependencies = ["packet>=1", "kv>=1"]
//!
//! [needs]
//! kv-bytes = 1048576
//! ```
//!
//! Build it as a `cdylib` for `wasm32-unknown-unknown`. On every other target the same code runs on a [`fake`] node, so
//! that a module's own unit tests need nothing else.

pub mod channel;
pub mod clock;
pub mod control;
mod counter;
mod error;
#[cfg(not(target_arch = "wasm32"))]
pub mod fake;
pub mod hash;
mod host;
pub mod ip;
pub mod kv;
pub mod log;
pub mod messages;
pub mod node;
mod packet;
pub mod property;
pub mod random;
#[doc(hidden)]
pub mod runtime;
pub mod search;
pub mod sip;
mod sys;
pub mod text;
pub mod timer;

pub use counter::Counter;
pub use error::{Error, StartError};
pub use packet::{Packet, Verdict};

/// The packet ABI that modules are built for.
pub const ABI: i32 = 1;
/// Bytes that a packet may have.
pub const PACKET_BYTES_MAX: usize = 1984;

/// A packet module.
///
/// One that has more than [`kv`] to carry to another node (`netserv relocate`, `netserv state export`) says it:
///
/// ```
/// use netserv_sdk::{Packet, PacketModule, StartError, Verdict, netserv_module};
///
/// struct Counting {
///     seen: u64,
/// }
///
/// impl PacketModule for Counting {
///     fn start() -> Result<Counting, StartError> {
///         Ok(Counting { seen: 0 })
///     }
///
///     fn process(&mut self, _: &mut Packet<'_>) -> Verdict {
///         self.seen += 1;
///         Verdict::Pass
///     }
///
///     fn export_state(&mut self) -> Result<Vec<u8>, StartError> {
///         Ok(self.seen.to_be_bytes().to_vec())
///     }
///
///     fn import_state(&mut self, state: &[u8]) -> Result<(), StartError> {
///         self.seen = u64::from_be_bytes(state.try_into().map_err(|_| "eight bytes")?);
///         Ok(())
///     }
/// }
///
/// netserv_module!(Counting, state);
/// # let mut there = Counting { seen: 0 };
/// # there.import_state(&Counting { seen: 7 }.export_state().unwrap()).unwrap();
/// # assert_eq!(there.seen, 7);
/// ```
pub trait PacketModule: Sized {
    /// Gets ready. No packet comes before.
    ///
    /// # Errors
    /// The module will not run; the reason is logged, and the node refuses the module.
    fn start() -> Result<Self, StartError>;

    /// Looks at one packet and says what becomes of it.
    fn process(&mut self, packet: &mut Packet<'_>) -> Verdict;

    /// Is called when a [`timer`] of the module is due.
    fn timer(&mut self, _id: u32) {}

    /// Is called for each message from the module's server part, in order. [`messages::send`] answers.
    fn message(&mut self, _message: &[u8]) {}

    /// Is called for each [`control`] message of the module's user, in order, if the module says
    /// `netserv_module!(MyModule, control)`: first for the last one of each topic from before.
    fn control(&mut self, _message: &control::Message<'_>) {}

    /// Returns what the module has to know on another node, beyond kv, which goes along by itself and is
    /// read after this. A module that says so is asked: `netserv_module!(MyModule, state)`. Write numbers in one byte order: the
    /// module there may be a bundle.
    ///
    /// # Errors
    /// It cannot be said now; the reason is logged and told the user, and the module goes on.
    fn export_state(&mut self) -> Result<Vec<u8>, StartError> {
        Ok(Vec::new())
    }

    /// Takes what the module said on another node, after `start` and before the first packet.
    /// Its kv entries are there already. It is not called if the module said nothing.
    ///
    /// # Errors
    /// The module is not installed; the reason is logged and told the user.
    fn import_state(&mut self, _state: &[u8]) -> Result<(), StartError> {
        Err("the module takes no state".into())
    }

    /// Is called before the module is unloaded, but not after it trapped.
    fn stop(&mut self) {}
}

/// Sends a new IP packet. It goes out when the module comes back from the call.
///
/// # Errors
/// [`Error::Invalid`] or [`Error::TooLarge`] for a length that no packet has, [`Error::Quota`] after 64 packets in one
/// call.
pub fn inject(packet: &[u8]) -> Result<(), Error> {
    host::inject(packet)
}

/// Makes a type that is a [`PacketModule`] the module of its crate.
/// With `control` behind it, it takes [`control`] messages; with `state`, its state moves with it to another node.
#[macro_export]
macro_rules! netserv_module {
    (@more $runtime:ident control) => {
        #[unsafe(no_mangle)]
        extern "C" fn netserv_control() {
            $runtime.control();
        }
    };
    (@more $runtime:ident state) => {
        #[unsafe(no_mangle)]
        extern "C" fn netserv_export() -> i32 {
            $runtime.export()
        }

        #[unsafe(no_mangle)]
        extern "C" fn netserv_import(length: u32) -> i32 {
            $runtime.import(length)
        }
    };
    ($module:ty $(, $more:ident)*) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            use $crate::runtime::Runtime;

            static RUNTIME: Runtime<$module> = Runtime::idle();

            #[unsafe(no_mangle)]
            extern "C" fn netserv_abi() -> i32 {
                $crate::ABI
            }

            #[unsafe(no_mangle)]
            extern "C" fn netserv_area(slots: u32, slot_bytes: u32) -> u32 {
                RUNTIME.area(slots, slot_bytes)
            }

            #[unsafe(no_mangle)]
            extern "C" fn netserv_start() -> i32 {
                RUNTIME.start()
            }

            #[unsafe(no_mangle)]
            extern "C" fn netserv_process(count: u32) {
                RUNTIME.process(count);
            }

            #[unsafe(no_mangle)]
            extern "C" fn netserv_timer(id: u32) {
                RUNTIME.timer(id);
            }

            #[unsafe(no_mangle)]
            extern "C" fn netserv_message() {
                RUNTIME.message();
            }

            #[unsafe(no_mangle)]
            extern "C" fn netserv_stop() {
                RUNTIME.stop();
            }

            $($crate::netserv_module!(@more RUNTIME $more);)*
        };
    };
}
