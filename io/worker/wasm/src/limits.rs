// SPDX-License-Identifier: Apache-2.0
//! Named bounds of code in WebAssembly, of packet parts and of server parts.

/// Elements of one table of a module.
pub const TABLE_ELEMENTS_MAX: usize = 65_536;
/// Bytes of linear memory that `compile` accepts as a module's least; the module's own limit is checked when it is
/// loaded.
pub const MEMORY_BYTES_MAX: u64 = 1 << 30;
/// Bytes of a WebAssembly file that `compile` reads.
pub const WASM_BYTES_MAX: u64 = netserv_model::limits::BLOB_BYTES_MAX;
/// Bytes of compiled code that `serve` loads.
pub const CODE_BYTES_MAX: u64 = 8 * WASM_BYTES_MAX;
/// Bytes of stack that a module has.
pub const STACK_BYTES_MAX: usize = 512 * 1024;
