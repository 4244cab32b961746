// SPDX-License-Identifier: Apache-2.0
//! A program beside the instances of an HTTP module: one, for as long as the module is there.
//!
//! It begins with the module, has the sockets of a program, and shares [`kv`](crate::kv), [`messages`](crate::messages) and
//! [`channel`](crate::channel) with the instances that answer requests. If it panics, the module has failed and is started again; if
//! it comes back, the others go on without it.

/// Makes a function the resident program of an HTTP module.
///
/// ```no_run
/// use netserv_server_sdk::{channel, resident};
///
/// fn tick() {
///     loop {
///         std::thread::sleep(std::time::Duration::from_secs(1));
///         let _ = channel::publish("page", b"event: tick\ndata:\n\n", None);
///     }
/// }
///
/// resident!(tick);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! resident {
    ($run:expr) => {
        // On other targets the code is only compiled, for tests of its parts.
        #[cfg(not(target_arch = "wasm32"))]
        const _: fn() = $run;

        #[cfg(target_arch = "wasm32")]
        const _: () = {
            struct Resident;

            impl $crate::bindings::run::exports::wasi::cli::run::Guest for Resident {
                fn run() -> Result<(), ()> {
                    $run();
                    Ok(())
                }
            }

    $crate::bindings::run::export_run!(Resident with_types_in $crate::bindings::run);
        };
    };
}
