// SPDX-License-Identifier: Apache-2.0
//! What a module that answers HTTP requests carries from one node to another.
//! One that handles TCP connections has the same calls among its [`TcpModule`](crate::tcp::TcpModule)'s. Kv goes along by
//! itself.

/// A module that has more than kv to carry. Each call is in a fresh instance.
///
/// ```no_run
/// use netserv_server_sdk::state::StateModule;
/// use netserv_server_sdk::{cache, channel, state_module};
///
/// struct Page;
///
/// impl StateModule for Page {
///     fn export_state() -> Result<Vec<u8>, String> {
///         let entries = cache::list("page/", None, 1024).map_err(|error| format!("no list: {error:?}"))?;
///         Ok(entries.into_iter().map(|entry| entry.key).collect::<Vec<_>>().join("\n").into_bytes())
///     }
///
///     fn import_state(state: &[u8]) -> Result<(), String> {
///         // What is fetched here after this is what was there.
///         channel::publish("to-fetch", state, None).map_err(|error| format!("not kept: {error:?}"))?;
///         Ok(())
///     }
/// }
///
/// state_module!(Page);
/// ```
pub trait StateModule {
    /// Returns what the module has to know elsewhere, with numbers in one byte order.
    /// Nothing is the same as an empty list.
    ///
    /// # Errors
    /// It cannot be said now: why, in a line for the user.
    fn export_state() -> Result<Vec<u8>, String>;

    /// Takes what the module said on another node, before its first request.
    /// Its kv entries are there already.
    ///
    /// # Errors
    /// The module is not installed: why, in a line for the user.
    fn import_state(state: &[u8]) -> Result<(), String>;
}

/// Has a type that is a [`StateModule`](crate::state::StateModule) carry the state of its crate's
/// module.
#[macro_export]
macro_rules! state_module {
    ($module:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            struct Carrier;

            impl $crate::bindings::state::exports::netserv::state::carrier::Guest for Carrier {
                fn export_state() -> Result<Vec<u8>, String> {
                    <$module as $crate::state::StateModule>::export_state()
                }

                fn import_state(state: Vec<u8>) -> Result<(), String> {
                    <$module as $crate::state::StateModule>::import_state(&state)
                }
            }

    $crate::bindings::state::export_state!(Carrier with_types_in $crate::bindings::state);
        };
    };
}
