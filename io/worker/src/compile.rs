// SPDX-License-Identifier: Apache-2.0
//! `netserv-worker compile`: WebAssembly in, code for `serve` out.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use netserv_model::{Refusal, RefusalKind};

use crate::engine::{Interruption, Runtime};
use crate::limits;

/// Compiles the file `wasm` into the file `out`, after checking that it is a packet module.
///
/// # Errors
/// [`RefusalKind::BadCode`], [`RefusalKind::AbiMismatch`] or [`RefusalKind::MemoryLimit`] if the module is at fault,
/// [`RefusalKind::NodeFailed`] if the machine is.
pub fn compile(wasm: &Path, out: &Path) -> Result<(), Refusal> {
    let wasm = read_wasm(wasm)?;
    let runtime = Runtime::new(Interruption::None).map_err(|error| node_failed(error.root_cause()))?;
    let code = runtime.precompile(&wasm)?;
    std::fs::write(out, code).map_err(|error| node_failed(&format!("cannot write {}: {error}", out.display())))
}

/// Reads a WebAssembly file.
///
/// # Errors
/// [`RefusalKind::NodeFailed`] if it cannot be read, [`RefusalKind::BadCode`] if it is longer than
/// [`limits::WASM_BYTES_MAX`].
pub fn read_wasm(path: &Path) -> Result<Vec<u8>, Refusal> {
    let mut wasm = Vec::new();
    File::open(path)
        .and_then(|file| file.take(limits::WASM_BYTES_MAX + 1).read_to_end(&mut wasm))
        .map_err(|error| node_failed(&format!("cannot read {}: {error}", path.display())))?;
    if wasm.len() as u64 > limits::WASM_BYTES_MAX {
        let detail = format!("the code is longer than {} bytes", limits::WASM_BYTES_MAX);
        return Err(Refusal::new(RefusalKind::BadCode, detail));
    }
    Ok(wasm)
}

fn node_failed(error: &(impl ToString + ?Sized)) -> Refusal {
    Refusal::new(RefusalKind::NodeFailed, error.to_string())
}
