// SPDX-License-Identifier: Apache-2.0
//! A door that opens to who knocks at three ports in the right order, with a page that shows for whom it is open.
//!
//! Both parts share kv state: `open/ADDRESS` is when the door closes for an address, in milliseconds since 1970.

#[cfg(target_os = "wasi")]
mod page;
#[cfg(not(target_os = "wasi"))]
mod packets;
