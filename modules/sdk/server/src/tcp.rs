// SPDX-License-Identifier: Apache-2.0
//! Modules that handle TCP connections, their own or intercepted ones.
//!
//! One that answers in place of the server whose connections it took over, has clients wait that send faster than they read, and leaves
//! its connections to the next version:
//!
//! ```no_run
//! use std::collections::BTreeMap;
//!
//! use netserv_server_sdk::tcp::{self, Action, Connection, Decision, Error, Flow, Side, TcpModule};
//! use netserv_server_sdk::tcp_module;
//!
//! #[derive(Default)]
//! struct Echo {
//!     /// What waits for room.
//!     waiting: BTreeMap<Connection, Vec<u8>>,
//! }
//!
//! impl TcpModule for Echo {
//!     fn connect(&mut self, _: Connection, _: &Flow) -> Decision {
//!         Decision::Serve
//!     }
//!
//!     fn data(&mut self, id: Connection, _: Side, bytes: &[u8]) -> Action {
//!         // What did not fit goes first: one more call may come after `pause`.
//!         if self.waiting.contains_key(&id) || tcp::send(id, Side::Client, bytes) == Err(Error::WouldBlock) {
//!             self.waiting.entry(id).or_default().extend_from_slice(bytes);
//!             let _ = tcp::pause(id, Side::Client);
//!         }
//!         Action::Pass
//!     }
//!
//!     fn room(&mut self, id: Connection, _: Side) {
//!         let Some(bytes) = self.waiting.remove(&id) else { return };
//!         self.data(id, Side::Client, &bytes);
//!         if !self.waiting.contains_key(&id) {
//!             let _ = tcp::resume(id, Side::Client);
//!         }
//!     }
//!
//!     fn closed(&mut self, id: Connection) {
//!         self.waiting.remove(&id);
//!     }
//!
//!     fn export(&mut self, id: Connection) -> Option<Vec<u8>> {
//!         Some(self.waiting.remove(&id).unwrap_or_default())
//!     }
//!
//!     fn import(&mut self, id: Connection, _: Option<&Flow>, waiting: &[u8]) -> bool {
//!         if !waiting.is_empty() {
//!             // `room` comes for it here.
//!             self.waiting.insert(id, waiting.to_vec());
//!         }
//!         true
//!     }
//! }
//!
//! tcp_module!(Echo);
//! ```
//!
//! One that has a connection of its own, to whom the user's `connect` allows:
//!
//! ```no_run
//! use netserv_server_sdk::tcp::{self, Action, Address, Connection, Decision, Flow, Side, TcpModule};
//! use netserv_server_sdk::tcp_module;
//!
//! #[derive(Default)]
//! struct Reporter {
//!     collector: Option<Connection>,
//! }
//!
//! impl TcpModule for Reporter {
//!     fn connect(&mut self, _: Connection, flow: &Flow) -> Decision {
//!         if self.collector.is_none() {
//!             self.collector = tcp::open(&Address { ip: "192.0.2.1".to_owned(), port: 514 }).ok();
//!         }
//!         // What is sent before `opened` goes when the connection is there.
//!         let line = format!("{} asks {}\n", flow.client.ip, flow.server.ip);
//!         let _ = self.collector.map(|id| tcp::send(id, Side::Server, line.as_bytes()));
//!         Decision::Splice
//!     }
//!
//!     fn data(&mut self, _: Connection, _: Side, _: &[u8]) -> Action {
//!         Action::Pass
//!     }
//!
//!     fn closed(&mut self, id: Connection) {
//!         self.collector = self.collector.filter(|collector| *collector != id);
//!     }
//! }
//!
//! tcp_module!(Reporter);
//! ```

use std::cell::RefCell;

pub use crate::bindings::imports::netserv::tcp1_1_0::control::{
    Error, cancel_timer, close, open, pause, queued, resume, send, set_timer, shutdown, unwatch, watch,
};
pub use crate::bindings::imports::netserv::tcp1_1_0::types::{Action, Address, Connection, Decision, Flow, Side};

/// A module that handles TCP connections. One value of it has all connections; calls never overlap.
pub trait TcpModule: Default {
    /// A connection came in.
    fn connect(&mut self, id: Connection, flow: &Flow) -> Decision;

    /// A connection that [`open`] asked for is there; `closed` comes instead if it cannot be.
    fn opened(&mut self, _id: Connection) {}

    /// Bytes came from one side.
    fn data(&mut self, id: Connection, source: Side, bytes: &[u8]) -> Action;

    /// A side sends no more.
    fn end(&mut self, _id: Connection, _source: Side) {}

    /// There is room for what [`send`] said [`Error::WouldBlock`] to.
    fn room(&mut self, _id: Connection, _to: Side) {}

    /// A connection is gone.
    fn closed(&mut self, _id: Connection) {}

    /// Returns what the next version of the module has to know of a connection, at most 64 KiB; nothing if the connection is to
    /// end with this version. It goes on with this one if the next does not take it.
    fn export(&mut self, _id: Connection) -> Option<Vec<u8>> {
        None
    }

    /// Takes a connection of the version before, under its old number, with what that said of it; there is no flow for one that
    /// [`open`] asked for. Returns whether it does.
    fn import(&mut self, _id: Connection, _flow: Option<&Flow>, _state: &[u8]) -> bool {
        false
    }

    /// Returns what the module has to know on another node, beyond kv, which goes along by itself; an empty
    /// list is nothing. Write numbers in one byte order. It is called between two events.
    ///
    /// # Errors
    /// It cannot be said now: why, in a line for the user. The module goes on.
    fn export_state(&mut self) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }

    /// Takes what the module said on another node, before the first connection.
    /// Its kv entries are there already.
    ///
    /// # Errors
    /// The module is not installed: why, in a line for the user.
    fn import_state(&mut self, _state: &[u8]) -> Result<(), String> {
        Err("the module takes no state".to_owned())
    }

    /// A timer is due.
    fn timer(&mut self, _id: u32) {}

    /// What was watched with this token is ready: `watch(messages::subscribe(), 1)` tells when messages wait,
    /// `watch(stream.subscribe(), 2)` when a cached body or a media job has more. While a call blocks in place of that, no
    /// other connection's event is handled.
    fn ready(&mut self, _token: u32) {}
}

/// Where the one value of a module is; what [`tcp_module!`](crate::tcp_module) makes.
#[doc(hidden)]
pub struct Place<M>(RefCell<Option<M>>);

impl<M: TcpModule> Place<M> {
    #[doc(hidden)]
    pub const fn new() -> Place<M> {
        Place(RefCell::new(None))
    }

    #[doc(hidden)]
    pub fn with<T>(&self, run: impl FnOnce(&mut M) -> T) -> T {
        run(self.0.borrow_mut().get_or_insert_with(M::default))
    }
}

/// Makes a type that is a [`TcpModule`](crate::tcp::TcpModule) the module of its crate.
#[macro_export]
macro_rules! tcp_module {
    ($module:ty) => {
        // On other targets the code is only compiled, for tests of its parts.
        #[cfg(not(target_arch = "wasm32"))]
        const _: fn() -> $module = <$module as Default>::default;

        #[cfg(target_arch = "wasm32")]
        const _: () = {
            use $crate::tcp::{Action, Connection, Decision, Flow, Place, Side};

            thread_local! {
                static PLACE: Place<$module> = const { Place::new() };
            }

            struct Exported;

            impl $crate::bindings::tcp::exports::netserv::tcp1_1_0::handler::Guest for Exported {
                fn connect(id: Connection, flow: Flow) -> Decision {
                    PLACE.with(|place| place.with(|module| module.connect(id, &flow)))
                }

                fn opened(id: Connection) {
                    PLACE.with(|place| place.with(|module| module.opened(id)));
                }

                fn data(id: Connection, source: Side, bytes: Vec<u8>) -> Action {
                    PLACE.with(|place| place.with(|module| module.data(id, source, &bytes)))
                }

                fn end(id: Connection, source: Side) {
                    PLACE.with(|place| place.with(|module| module.end(id, source)));
                }

                fn room(id: Connection, to: Side) {
                    PLACE.with(|place| place.with(|module| module.room(id, to)));
                }

                fn closed(id: Connection) {
                    PLACE.with(|place| place.with(|module| module.closed(id)));
                }

                fn timer(id: u32) {
                    PLACE.with(|place| place.with(|module| module.timer(id)));
                }

                fn ready(token: u32) {
                    PLACE.with(|place| place.with(|module| module.ready(token)));
                }
            }

            impl $crate::bindings::tcp::exports::netserv::tcp1_1_0::hand_over::Guest for Exported {
                fn export_connection(id: Connection) -> Option<Vec<u8>> {
                    PLACE.with(|place| place.with(|module| module.export(id)))
                }

                fn import_connection(id: Connection, flow: Option<Flow>, state: Vec<u8>) -> bool {
                    PLACE.with(|place| place.with(|module| module.import(id, flow.as_ref(), &state)))
                }
            }

            impl $crate::bindings::state::exports::netserv::state::carrier::Guest for Exported {
                fn export_state() -> Result<Vec<u8>, String> {
                    PLACE.with(|place| place.with(|module| module.export_state()))
                }

                fn import_state(state: Vec<u8>) -> Result<(), String> {
                    PLACE.with(|place| place.with(|module| module.import_state(&state)))
                }
            }

    $crate::bindings::state::export_state!(Exported with_types_in $crate::bindings::state);
    $crate::bindings::tcp::export_tcp!(Exported with_types_in $crate::bindings::tcp);
        };
    };
}
