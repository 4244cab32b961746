// SPDX-License-Identifier: Apache-2.0
//! Modules that handle TCP connections, their own or intercepted ones.

use std::cell::RefCell;

pub use crate::bindings::imports::netserv::tcp::control::{Error, cancel_timer, close, send, set_timer, shutdown};
pub use crate::bindings::imports::netserv::tcp::types::{Action, Address, Connection, Decision, Flow, Side};

/// A module that handles TCP connections. One value of it has all connections; calls never overlap.
pub trait TcpModule: Default {
    /// A connection was opened.
    fn connect(&mut self, id: Connection, flow: &Flow) -> Decision;

    /// Bytes came from one side.
    fn data(&mut self, id: Connection, source: Side, bytes: &[u8]) -> Action;

    /// A side sends no more.
    fn end(&mut self, _id: Connection, _source: Side) {}

    /// A connection is gone.
    fn closed(&mut self, _id: Connection) {}

    /// A timer is due.
    fn timer(&mut self, _id: u32) {}
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

            impl $crate::bindings::tcp::exports::netserv::tcp::handler::Guest for Exported {
                fn connect(id: Connection, flow: Flow) -> Decision {
                    PLACE.with(|place| place.with(|module| module.connect(id, &flow)))
                }

                fn data(id: Connection, source: Side, bytes: Vec<u8>) -> Action {
                    PLACE.with(|place| place.with(|module| module.data(id, source, &bytes)))
                }

                fn end(id: Connection, source: Side) {
                    PLACE.with(|place| place.with(|module| module.end(id, source)));
                }

                fn closed(id: Connection) {
                    PLACE.with(|place| place.with(|module| module.closed(id)));
                }

                fn timer(id: u32) {
                    PLACE.with(|place| place.with(|module| module.timer(id)));
                }
            }

    $crate::bindings::tcp::export_tcp!(Exported with_types_in $crate::bindings::tcp);
        };
    };
}
