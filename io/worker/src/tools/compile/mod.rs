// SPDX-License-Identifier: Apache-2.0
//! `netserv-worker compile`: WebAssembly in, code for `serve` out.

pub mod compose;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use netserv_model::{Refusal, RefusalKind};
use netserv_worker_packet::engine::{Interruption, Runtime};
use netserv_worker_server::component;
use netserv_worker_server::engine::ServerEngine;
use netserv_worker_wasm::limits;

use compose::{Part, compose};

/// Compiles the files `wasm` into the file `out`, after checking what it is: one packet module, one component, or
/// several components of which each hands HTTP requests on to the next. Components are always interrupted by epochs, packet
/// modules by `interruption`.
///
/// # Errors
/// [`RefusalKind::BadCode`], [`RefusalKind::AbiMismatch`] or [`RefusalKind::MemoryLimit`] if the module is at fault,
/// [`RefusalKind::NodeFailed`] if the machine is.
pub fn compile_all(wasm: &[PathBuf], out: &Path, interruption: Interruption) -> Result<(), Refusal> {
    let code = match wasm {
        [one] => precompile(&read_wasm(one)?, interruption)?,
        parts => {
            let numbered = parts.iter().zip(1..);
            let parts: Result<Vec<Part>, Refusal> = numbered.map(|(path, number)| part(path, number)).collect();
            precompile(&compose(parts?)?, interruption)?
        }
    };
    std::fs::write(out, code).map_err(|error| node_failed(&format!("cannot write {}: {error}", out.display())))
}

fn part(path: &Path, number: usize) -> Result<Part, Refusal> {
    Ok(Part { name: format!("part {number}"), wasm: read_wasm(path)? })
}

fn precompile(wasm: &[u8], interruption: Interruption) -> Result<Vec<u8>, Refusal> {
    if component::is_component(wasm) {
        let engine = ServerEngine::new().map_err(|error| node_failed(error.root_cause()))?;
        component::precompile(&engine, wasm)
    } else {
        let runtime = Runtime::new(interruption).map_err(|error| node_failed(error.root_cause()))?;
        runtime.precompile(wasm)
    }
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
