// SPDX-License-Identifier: Apache-2.0
//! The server part: the sockets around [`media_relay::desk`].

#[cfg(target_os = "wasi")]
mod server;

#[cfg(target_os = "wasi")]
fn main() {
    server::run();
}

#[cfg(not(target_os = "wasi"))]
fn main() {}
