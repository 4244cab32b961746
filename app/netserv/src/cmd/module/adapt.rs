// SPDX-License-Identifier: Apache-2.0
//! `netserv module adapt`: a packet module out of code that a compiler made for WASI, such as Go's.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use wasm_encoder::reencode::{self, Reencode, RoundtripReencoder, utils};
use wasm_encoder::{
    CodeSection, EntityType, ExportKind, ExportSection, Function, FunctionSection, ImportSection, Instruction, MemArg,
    Module, TypeSection, ValType,
};
use wasmparser::{ExternalKind, Parser, Payload, TypeRef};

use super::files::read_file;
use crate::exit::{Exit, Failure, OrFail};
use crate::output::Output;

/// The import module of WASI before components.
const WASI: &str = "wasi_snapshot_preview1";
/// What `poll_oneoff` answers: there is nothing to wait for.
const NOT_SUPPORTED: i32 = 58;

/// Replace the WASI imports of a packet module by stubs
///
/// For compilers that always import WASI, such as Go's. Clocks and random bytes come from the node, and standard
/// error goes to the node's log. The module has no arguments, no environment and no files. The adapted module calls
/// its `_initialize` before anything else.
#[derive(Args)]
pub struct Adapt {
    /// The core module
    #[arg(value_name = "IN.wasm")]
    from: PathBuf,
    /// The file to write
    #[arg(value_name = "OUT.wasm")]
    to: PathBuf,
    /// Only list the imports that would be replaced
    #[arg(long)]
    dry_run: bool,
}

impl Adapt {
    /// Writes the adapted module.
    ///
    /// # Errors
    /// The file is no core module, or imports more of WASI than there are stubs for.
    pub fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let shown = self.from.display();
        let fix = "name a core module that Go made with GOOS=wasip1 and -buildmode=c-shared";
        let bytes = read_file(&self.from, fix)?;
        let plan = Plan::of(&bytes).map_err(|error| Failure::new(format!("{shown} {error}"), fix))?;
        let names: Vec<&str> = plan.stubs.iter().map(|(_, stub, _)| stub.name()).collect();
        if output.is_json() {
            output.json(&serde_json::json!({ "replaced": names, "file": self.to }))?;
        } else {
            names.iter().for_each(|name| output.line(format!("stub  {name}")));
        }
        if self.dry_run {
            return Ok(Exit::Done);
        }
        let adapted = plan.adapt(&bytes).map_err(|error| Failure::new(format!("{shown} {error}"), fix))?;
        let room = "choose a folder with room that you may write to";
        std::fs::write(&self.to, adapted).or_fail(format!("cannot write {}", self.to.display()), room)?;
        Ok(Exit::Done)
    }
}

/// What stands in for one function of WASI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stub {
    /// Does nothing and succeeds.
    Nothing(&'static str),
    /// Says that there are none: writes two zeroes.
    NoStrings(&'static str),
    /// Writes nanoseconds of one of the node's clocks.
    Clock,
    /// Fills with the node's random bytes.
    Random,
    /// Writes the first piece to the node's log.
    Log,
    /// Says that it cannot be done.
    Unsupported(&'static str),
    /// Traps.
    Exit,
}

impl Stub {
    fn of(name: &str) -> Option<Stub> {
        Some(match name {
            "sched_yield" => Stub::Nothing("sched_yield"),
            "args_get" => Stub::Nothing("args_get"),
            "environ_get" => Stub::Nothing("environ_get"),
            "args_sizes_get" => Stub::NoStrings("args_sizes_get"),
            "environ_sizes_get" => Stub::NoStrings("environ_sizes_get"),
            "clock_time_get" => Stub::Clock,
            "random_get" => Stub::Random,
            "fd_write" => Stub::Log,
            "poll_oneoff" => Stub::Unsupported("poll_oneoff"),
            "proc_exit" => Stub::Exit,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Stub::Nothing(name) | Stub::NoStrings(name) | Stub::Unsupported(name) => name,
            Stub::Clock => "clock_time_get",
            Stub::Random => "random_get",
            Stub::Log => "fd_write",
            Stub::Exit => "proc_exit",
        }
    }

    /// Returns the stub's code. `host` has the imports that stubs call.
    fn code(self, host: &BTreeMap<&'static str, u32>) -> Function {
        use Instruction as I;
        let word = MemArg { offset: 0, align: 2, memory_index: 0 };
        let store_zero = |at: u32| [I::LocalGet(at), I::I32Const(0), I::I32Store(word)];
        let call = |name: &str| I::Call(host.get(name).copied().unwrap_or_default());
        let mut code = Function::new([]);
        let mut emit = |instructions: &[I<'_>]| {
            for one in instructions {
                code.instruction(one);
            }
        };
        match self {
            Stub::Nothing(_) => emit(&[I::I32Const(0)]),
            Stub::NoStrings(_) => {
                emit(&store_zero(0));
                emit(&store_zero(1));
                emit(&[I::I32Const(0)]);
            }
            Stub::Clock => {
                // Clock 0 is that of the wall; every other one never steps.
                let long = MemArg { offset: 0, align: 3, memory_index: 0 };
                emit(&[I::LocalGet(2), call("monotonic_ns"), call("wall_ns"), I::LocalGet(0), I::Select]);
                // Go takes a clock at zero for a broken one, and clocks of tests begin there.
                emit(&[I::I64Const(1), I::I64Add, I::I64Store(long), I::I32Const(0)]);
            }
            Stub::Random => emit(&[I::LocalGet(0), I::LocalGet(1), call("random"), I::Drop, I::I32Const(0)]),
            Stub::Log => {
                let length = MemArg { offset: 4, align: 2, memory_index: 0 };
                emit(&[I::I32Const(1), I::LocalGet(1), I::I32Load(word), I::LocalGet(1), I::I32Load(length)]);
                emit(&[call("log"), I::Drop]);
                emit(&[I::LocalGet(3), I::LocalGet(1), I::I32Load(length), I::I32Store(word), I::I32Const(0)]);
            }
            Stub::Unsupported(_) => emit(&[I::I32Const(NOT_SUPPORTED)]),
            Stub::Exit => emit(&[I::Unreachable]),
        }
        code.instruction(&I::End);
        code
    }
}

/// The imports that stubs call, with their parameters and results.
const HOST: [(&str, &[ValType], &[ValType]); 4] = [
    ("monotonic_ns", &[], &[ValType::I64]),
    ("wall_ns", &[], &[ValType::I64]),
    ("random", &[ValType::I32, ValType::I32], &[ValType::I32]),
    ("log", &[ValType::I32, ValType::I32, ValType::I32], &[ValType::I32]),
];

/// What of a module is replaced by what.
struct Plan {
    /// The replaced imports: their place among the functions, what stands in, its type.
    stubs: Vec<(u32, Stub, u32)>,
    imported: u32,
    defined: u32,
    types: u32,
    initialize: Option<u32>,
    /// The function that the node calls first.
    abi: Option<u32>,
}

impl Plan {
    #[allow(clippy::wildcard_enum_match_arm, reason = "sections that say nothing here; the enum is the parser's")]
    fn of(bytes: &[u8]) -> Result<Plan, String> {
        let broken = |error: wasmparser::BinaryReaderError| format!("is no whole core module: {}", error.message());
        let mut plan = Plan { stubs: Vec::new(), imported: 0, defined: 0, types: 0, initialize: None, abi: None };
        for payload in Parser::new(0).parse_all(bytes) {
            match payload.map_err(broken)? {
                Payload::Version { encoding: wasmparser::Encoding::Component, .. } => {
                    return Err("is a component".to_owned());
                }
                Payload::TypeSection(section) => {
                    for group in section {
                        plan.types += u32::try_from(group.map_err(broken)?.types().len()).unwrap_or(u32::MAX);
                    }
                }
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let import = import.map_err(broken)?;
                        let TypeRef::Func(of) = import.ty else { continue };
                        if import.module == WASI {
                            let stub = Stub::of(import.name);
                            let stub =
                                stub.ok_or_else(|| format!("imports {WASI}.{}, which has no stub", import.name))?;
                            plan.stubs.push((plan.imported, stub, of));
                        }
                        plan.imported += 1;
                    }
                }
                Payload::FunctionSection(section) => plan.defined = section.count(),
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export.map_err(broken)?;
                        match export.name {
                            "_initialize" if export.kind == ExternalKind::Func => plan.initialize = Some(export.index),
                            "netserv_abi" if export.kind == ExternalKind::Func => plan.abi = Some(export.index),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(plan)
    }

    fn adapt(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let mut module = Module::new();
        let mut adapter = Adapter { plan: self };
        let adapted = adapter.parse_core_module(&mut module, Parser::new(0), bytes);
        adapted.map_err(|error| format!("cannot be adapted: {error}"))?;
        Ok(module.finish())
    }

    fn stub_count(&self) -> u32 {
        u32::try_from(self.stubs.len()).unwrap_or(u32::MAX)
    }

    /// Functions that stay imports, without those for stubs.
    fn kept(&self) -> u32 {
        self.imported - self.stub_count()
    }

    /// Returns the place of a function that initializes and then says the ABI, and the two that it calls.
    ///
    /// Not a start function: the node's calls work only once there is an instance.
    fn beginning(&self) -> Option<(u32, u32, u32)> {
        let added = u32::try_from(HOST.len()).unwrap_or(u32::MAX);
        let (initialize, abi) = (self.initialize?, self.abi?);
        Some((self.imported + added + self.defined, self.place(initialize), self.place(abi)))
    }

    /// Returns where a function is in the adapted module: kept imports, imports for stubs, the module's own, stubs.
    fn place(&self, function: u32) -> u32 {
        let before = self.stubs.iter().filter(|(place, _, _)| *place < function).count();
        let before = u32::try_from(before).unwrap_or(u32::MAX);
        let added = u32::try_from(HOST.len()).unwrap_or(u32::MAX);
        if self.stubs.iter().any(|(place, _, _)| *place == function) {
            return self.kept() + added + self.defined + before;
        }
        if function < self.imported { function - before } else { function - before + added }
    }
}

struct Adapter<'a> {
    plan: &'a Plan,
}

type Outcome = Result<(), reencode::Error<std::convert::Infallible>>;

impl Reencode for Adapter<'_> {
    type Error = std::convert::Infallible;

    fn function_index(&mut self, function: u32) -> Result<u32, reencode::Error<Self::Error>> {
        Ok(self.plan.place(function))
    }

    fn parse_type_section(&mut self, types: &mut TypeSection, section: wasmparser::TypeSectionReader<'_>) -> Outcome {
        utils::parse_type_section(self, types, section)?;
        for (_, parameters, results) in HOST {
            types.ty().function(parameters.iter().copied(), results.iter().copied());
        }
        types.ty().function([], [ValType::I32]);
        Ok(())
    }

    fn parse_import_section(
        &mut self,
        imports: &mut ImportSection,
        section: wasmparser::ImportSectionReader<'_>,
    ) -> Outcome {
        for import in section.into_imports() {
            let import = import?;
            if import.module != WASI {
                let of = RoundtripReencoder.entity_type(import.ty)?;
                imports.import(import.module, import.name, of);
            }
        }
        for (of, (name, _, _)) in (self.plan.types..).zip(HOST) {
            imports.import("netserv", name, EntityType::Function(of));
        }
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: wasmparser::FunctionSectionReader<'_>,
    ) -> Outcome {
        utils::parse_function_section(self, functions, section)?;
        for (_, _, of) in &self.plan.stubs {
            functions.function(*of);
        }
        if self.plan.beginning().is_some() {
            functions.function(self.plan.types + u32::try_from(HOST.len()).unwrap_or(u32::MAX));
        }
        Ok(())
    }

    fn parse_code_section(&mut self, code: &mut CodeSection, section: wasmparser::CodeSectionReader<'_>) -> Outcome {
        utils::parse_code_section(self, code, section)?;
        let host = HOST.iter().zip(self.plan.kept()..).map(|((name, _, _), place)| (*name, place)).collect();
        for (_, stub, _) in &self.plan.stubs {
            code.function(&stub.code(&host));
        }
        if let Some((_, initialize, abi)) = self.plan.beginning() {
            let mut beginning = Function::new([]);
            beginning.instruction(&Instruction::Call(initialize));
            beginning.instruction(&Instruction::Call(abi)).instruction(&Instruction::End);
            code.function(&beginning);
        }
        Ok(())
    }

    fn parse_export_section(
        &mut self,
        exports: &mut ExportSection,
        section: wasmparser::ExportSectionReader<'_>,
    ) -> Outcome {
        for export in section {
            let export = export?;
            match self.plan.beginning() {
                Some((place, _, _)) if export.name == "netserv_abi" => {
                    exports.export(export.name, ExportKind::Func, place);
                }
                Some(_) | None => utils::parse_export(self, exports, export)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::module::code::{Code, Kind};

    const FOR_WASI: &str = r#"(module
        (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
        (import "netserv" "counter_add" (func $add (param i32 i64) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "args_sizes_get" (func $args (param i32 i32) (result i32)))
        (memory (export "memory") 1)
        (table funcref (elem $exit $own))
        (func $own (drop (call $yield)))
        (func (export "netserv_abi") (result i32) i32.const 1)
        (func (export "_initialize") (drop (call $add (i32.const 0) (i64.const 1))) (call $own)
            (drop (call $random (i32.const 0) (i32.const 8)))))"#;

    #[test]
    #[allow(clippy::wildcard_enum_match_arm, reason = "one section is looked for")]
    fn wasi_is_replaced_and_what_is_left_is_whole() {
        let bytes = wat::parse_str(FOR_WASI).unwrap();
        let adapted = Plan::of(&bytes).unwrap().adapt(&bytes).unwrap();
        let code = Code::read(&adapted).unwrap();
        assert_eq!((code.kind, code.skew()), (Kind::Packet, None));
        let imports: Vec<&str> = code.imports.iter().map(String::as_str).collect();
        assert_eq!(
            imports,
            ["netserv.counter_add", "netserv.log", "netserv.monotonic_ns", "netserv.random", "netserv.wall_ns"]
        );
        let exports = Parser::new(0).parse_all(&adapted).filter_map(Result::ok).find_map(|payload| match payload {
            Payload::ExportSection(section) => Some(section.into_iter().map(Result::unwrap)),
            _ => None,
        });
        let abi = exports.unwrap().find(|export| export.name == "netserv_abi").unwrap().index;
        // counter_add, four imports for stubs, $own, netserv_abi, _initialize, six stubs, then what calls both.
        assert_eq!(abi, 1 + 4 + 3 + 6);
        // Nothing of WASI: nothing to do but the start.
        assert!(Plan::of(&adapted).unwrap().stubs.is_empty());
    }

    #[test]
    fn what_has_no_stub_is_named() {
        let files = FOR_WASI.replace("\"sched_yield\"", "\"path_open\"");
        let error = Plan::of(&wat::parse_str(files).unwrap()).err().unwrap();
        assert_eq!(error, "imports wasi_snapshot_preview1.path_open, which has no stub");
        assert_eq!(Plan::of(&wat::parse_str("(component)").unwrap()).err().unwrap(), "is a component");
        assert!(Plan::of(b"\0asm\x01\0\0").is_err());
    }
}
