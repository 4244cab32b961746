// SPDX-License-Identifier: Apache-2.0
//! The Wasm engine, its settings, and the checks that a module passes before it runs.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;

use netserv_model::{Refusal, RefusalKind};
use netserv_worker_base::failure::memory_limit;
use netserv_worker_wasm::{limits, one_line};
use wasmtime::{Config, Engine, ExternType, FuncType, InstancePre, Linker, MemoryType, Module, ValType};

use super::host::Host;
use super::imports;
use crate::sys;

/// What runs the modules; compiled code fits no other.
pub const ENGINE_NAME: &str = "wasmtime 48.0.8";

/// How an engine is to treat endless loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// Not at all: the node's watchdog sees them from outside, and code runs at full speed.
    None,
    /// By epochs, for tests of modules, where nobody watches.
    Epochs,
}

/// An engine with all host calls.
pub struct Runtime {
    engine: Engine,
    linker: Linker<Host>,
    interruption: Interruption,
}

/// A module that has all that the packet ABI asks for.
pub struct Checked {
    pub(crate) pre: InstancePre<Host>,
    pub(crate) interruption: Interruption,
}

impl Runtime {
    /// Builds an engine that compiles modules and runs them.
    ///
    /// # Errors
    /// The processor or the kernel lacks what Wasmtime needs.
    pub fn new(interruption: Interruption) -> wasmtime::Result<Runtime> {
        Runtime::with(&config(interruption), interruption)
    }

    /// Builds an engine that runs compiled modules, which takes less memory.
    ///
    /// # Errors
    /// As [`Runtime::new`].
    pub fn without_compiler() -> wasmtime::Result<Runtime> {
        Runtime::with(config(Interruption::None).enable_compiler(false), Interruption::None)
    }

    fn with(config: &Config, interruption: Interruption) -> wasmtime::Result<Runtime> {
        let engine = Engine::new(config)?;
        let mut linker = Linker::new(&engine);
        imports::add_to_linker(&mut linker)?;
        Ok(Runtime { engine, linker, interruption })
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Compiles a WebAssembly file for this engine and checks it.
    ///
    /// # Errors
    /// [`RefusalKind::BadCode`], and those of [`Runtime::check`].
    pub fn compile(&self, wasm: &[u8]) -> Result<Checked, Refusal> {
        check_is_module(wasm)?;
        let module = Module::from_binary(&self.engine, wasm).map_err(|error| bad_code(&error))?;
        self.check(&module)
    }

    /// Compiles a WebAssembly file into code that [`Runtime::load`] takes, and checks it.
    ///
    /// # Errors
    /// [`RefusalKind::BadCode`], and those of [`Runtime::check`].
    pub fn precompile(&self, wasm: &[u8]) -> Result<Vec<u8>, Refusal> {
        check_is_module(wasm)?;
        let module = Module::from_binary(&self.engine, wasm).map_err(|error| bad_code(&error))?;
        self.check(&module)?;
        module.serialize().map_err(|error| bad_code(&error))
    }

    /// Loads compiled code and checks it.
    ///
    /// # Errors
    /// [`RefusalKind::BadCode`], and those of [`Runtime::check`].
    pub fn load(&self, code: File) -> Result<Checked, Refusal> {
        let mut bytes = Vec::new();
        let read = code.take(limits::CODE_BYTES_MAX).read_to_end(&mut bytes);
        read.map_err(|error| Refusal::new(RefusalKind::NodeFailed, format!("cannot read the code: {error}")))?;
        let module = sys::load_code(&self.engine, &bytes).map_err(|error| bad_code(&error))?;
        self.check(&module)
    }

    /// Checks that a module imports nothing but host calls and exports what the packet ABI asks for.
    ///
    /// # Errors
    /// [`RefusalKind::AbiMismatch`], or [`RefusalKind::MemoryLimit`] for a memory that no module gets.
    pub fn check(&self, module: &Module) -> Result<Checked, Refusal> {
        let memory = match module.get_export("memory") {
            Some(ExternType::Memory(memory)) => memory,
            Some(_) | None => return Err(abi_mismatch("the module exports no memory named `memory`")),
        };
        check_memory(&memory)?;
        for (name, parameters, results, required) in EXPORTS {
            check_function(module, name, *parameters, *results, *required)?;
        }
        let pre = self.linker.instantiate_pre(module).map_err(|error| abi_mismatch(&one_line(&error)))?;
        Ok(Checked { pre, interruption: self.interruption })
    }
}

impl Checked {
    /// Returns whether the module takes control messages: it imports what it takes them with.
    pub fn has_inbox(&self) -> bool {
        self.pre.module().imports().any(|import| import.name() == "control_receive")
    }

    /// Checks that the module may use the blocks that it imports from.
    ///
    /// # Errors
    /// [`RefusalKind::AbiMismatch`], which names the first import and its block.
    pub fn permit(self, blocks: &BTreeSet<String>) -> Result<Checked, Refusal> {
        for import in self.pre.module().imports() {
            let block = imports::block_of(import.name()).filter(|block| !blocks.contains(*block));
            if let Some(block) = block {
                let name = import.name();
                let detail =
                    format!("the module imports `{name}` of the block `{block}`, which the node does not offer");
                return Err(abi_mismatch(&detail));
            }
        }
        Ok(self)
    }
}

pub(crate) fn abi_mismatch(detail: &str) -> Refusal {
    Refusal::new(RefusalKind::AbiMismatch, detail)
}

/// Exported functions: name, parameters, results, and whether a module must have it. All values are `i32`.
const EXPORTS: &[(&str, usize, usize, bool)] = &[
    ("netserv_abi", 0, 1, true),
    ("netserv_area", 2, 1, true),
    ("netserv_start", 0, 1, true),
    ("netserv_process", 1, 0, true),
    ("netserv_timer", 1, 0, false),
    ("netserv_message", 0, 0, false),
    ("netserv_control", 0, 0, false),
    ("netserv_export", 0, 1, false),
    ("netserv_import", 1, 1, false),
    ("netserv_stop", 0, 0, false),
];

/// Settings that change the code: `compile` and `serve` must agree in them, or Wasmtime refuses the code.
fn config(interruption: Interruption) -> Config {
    let mut config = Config::new();
    // Address space is reserved, not memory used; with it, compiled code needs no bounds checks.
    config.memory_reservation(4 << 30).memory_guard_size(32 << 20).memory_may_move(false);
    // Copy-on-write images need memfd_create, and would leak pages once host memory is mapped over a slot.
    config.memory_init_cow(false);
    config.max_wasm_stack(limits::STACK_BYTES_MAX);
    config.wasm_relaxed_simd(false).wasm_memory64(false).wasm_multi_memory(false);
    config.epoch_interruption(match interruption {
        Interruption::None => false,
        Interruption::Epochs => true,
    });
    config
}

fn check_is_module(wasm: &[u8]) -> Result<(), Refusal> {
    let refuse = |detail| Err(Refusal::new(RefusalKind::BadCode, detail));
    match wasm.get(..8) {
        Some([0, b'a', b's', b'm', 1, 0, 0, 0]) => Ok(()),
        Some([0, b'a', b's', b'm', _, _, 1, 0]) => refuse("a WebAssembly component; packet modules are core modules"),
        Some(_) | None => refuse("not a WebAssembly module"),
    }
}

fn check_memory(memory: &MemoryType) -> Result<(), Refusal> {
    if memory.is_64() || memory.is_shared() || memory.page_size() != 65_536 {
        return Err(abi_mismatch("the module's memory is 64-bit, shared or of another page size"));
    }
    let bytes = memory.minimum() * 65_536;
    if bytes > limits::MEMORY_BYTES_MAX {
        return Err(memory_limit(bytes, limits::MEMORY_BYTES_MAX));
    }
    Ok(())
}

fn check_function(
    module: &Module,
    name: &str,
    parameters: usize,
    results: usize,
    required: bool,
) -> Result<(), Refusal> {
    let wrong = |what: &str| Err(abi_mismatch(&format!("the module's export `{name}` {what}")));
    match module.get_export(name) {
        Some(ExternType::Func(function)) if is_i32_function(&function, parameters, results) => Ok(()),
        Some(_) => wrong("has another type than packet ABI 1 says"),
        None if required => wrong("is missing"),
        None => Ok(()),
    }
}

fn is_i32_function(function: &FuncType, parameters: usize, results: usize) -> bool {
    let all_i32 = |mut types: Box<dyn Iterator<Item = ValType> + '_>| types.all(|of| ValType::eq(&of, &ValType::I32));
    function.params().len() == parameters
        && function.results().len() == results
        && all_i32(Box::new(function.params()))
        && all_i32(Box::new(function.results()))
}

fn bad_code(error: &wasmtime::Error) -> Refusal {
    Refusal::new(RefusalKind::BadCode, one_line(error))
}
