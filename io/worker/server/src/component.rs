// SPDX-License-Identifier: Apache-2.0
//! Components: what kind one is, and the checks that it passes before it runs.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::time::Instant;

use netserv_model::manifest::WASI_PACKAGES;
use netserv_model::{Refusal, RefusalKind};
use netserv_worker_base::failure::memory_limit;
use netserv_worker_wasm::limits::CODE_BYTES_MAX;
use netserv_worker_wasm::{one_line, refusal};
use tokio::time::error::Elapsed;
use wasmparser::{Parser, Payload};
use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime::{Engine, PoolConcurrencyLimitError};

use super::blocks;
use super::engine::ServerEngine;
use super::state::ServerState;
use crate::{limits, sys};

/// What a component does for its module, seen from what it exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComponentKind {
    /// It handles TCP connections as events: it exports `netserv:tcp/handler`.
    Tcp,
    /// It answers HTTP requests: it exports `wasi:http/incoming-handler`.
    Http,
    /// It is a program: it exports `wasi:cli/run`.
    Command,
}

impl ComponentKind {
    /// Returns the kind in a word.
    pub fn as_str(self) -> &'static str {
        match self {
            ComponentKind::Tcp => "tcp",
            ComponentKind::Http => "http",
            ComponentKind::Command => COMMAND,
        }
    }
}

/// The block of programs.
const COMMAND: &str = "command";

/// What components import that were composed of several, of which one hands requests on to the next.
pub const CHAIN: &str = "netserv:http/chain";

/// A component that has all that it needs here.
#[derive(Clone)]
pub struct CheckedComponent {
    /// What is needed to make instances.
    pub pre: InstancePre<ServerState>,
    /// What it does.
    pub kind: ComponentKind,
    /// Whether an instance of it is a program beside those that answer requests.
    pub has_resident: bool,
}

impl CheckedComponent {
    /// Returns whether the component imports an interface, `netserv:PACKAGE/NAME` without its version.
    pub fn imports(&self, wanted: &str) -> bool {
        let component = self.pre.component();
        let ty = component.component_type();
        ty.imports(component.engine()).any(|(name, _)| interface(name) == wanted)
    }
}

/// Returns whether a WebAssembly file is a component, and not a core module.
pub fn is_component(wasm: &[u8]) -> bool {
    matches!(wasm.get(..8), Some([0, b'a', b's', b'm', _, _, 1, 0]))
}

/// Compiles a component into code that [`load`] takes, and checks it against all that nodes can have.
///
/// # Errors
/// [`RefusalKind::BadCode`], or [`RefusalKind::AbiMismatch`] with the imports that no node has.
pub fn precompile(server: &ServerEngine, wasm: &[u8]) -> Result<Vec<u8>, Refusal> {
    look(wasm, &blocks::all())?;
    let component = Component::from_binary(server.engine(), wasm).map_err(|error| bad_code(&error))?;
    check(server, &component, &blocks::all())?;
    component.serialize().map_err(|error| bad_code(&error))
}

/// Loads compiled code and checks that it is and imports nothing but what `blocks` and WASI have.
///
/// # Errors
/// [`RefusalKind::BadCode`], [`RefusalKind::AbiMismatch`] with the imports that are missing, or
/// [`RefusalKind::MissingDependency`] if there are to be no servers of its kind.
pub fn load(server: &ServerEngine, code: File, blocks: &BTreeSet<String>) -> Result<CheckedComponent, Refusal> {
    let mut bytes = Vec::new();
    let read = code.take(CODE_BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(|error| Refusal::new(RefusalKind::NodeFailed, format!("cannot read the code: {error}")))?;
    let component = sys::load_component(server.engine(), &bytes).map_err(|error| bad_code(&error))?;
    let checked = check(server, &component, blocks)?;
    let kind = checked.kind.as_str();
    if !blocks.contains(kind) {
        let detail =
            format!("the component is a server of kind `{kind}`: the block `{kind}` is needed, the node has none");
        return Err(Refusal::new(RefusalKind::MissingDependency, detail));
    }
    Ok(checked)
}

/// Compiles a component to run it in this process.
///
/// # Errors
/// Those of [`precompile`].
pub fn compile(server: &ServerEngine, wasm: &[u8], blocks: &BTreeSet<String>) -> Result<CheckedComponent, Refusal> {
    look(wasm, blocks)?;
    let component = Component::from_binary(server.engine(), wasm).map_err(|error| bad_code(&error))?;
    check(server, &component, blocks)
}

/// Looks at what a component imports and exports, since compiling one that is of no use may take minutes. What is no
/// WebAssembly is the compiler's to say.
fn look(wasm: &[u8], blocks: &BTreeSet<String>) -> Result<(), Refusal> {
    let Some(names) = outer_names(wasm) else { return Ok(()) };
    kind(&names.exports)?;
    refuse_missing(names.imports, blocks)
}

/// Checks what a component imports and exports.
///
/// # Errors
/// [`RefusalKind::AbiMismatch`] with the imports that are missing, or if it exports nothing of use.
pub fn check(
    server: &ServerEngine,
    component: &Component,
    blocks: &BTreeSet<String>,
) -> Result<CheckedComponent, Refusal> {
    let (engine, ty) = (server.engine(), component.component_type());
    let exports: Vec<String> = ty.exports(engine).map(|(name, _)| name.to_owned()).collect();
    let kind = kind(&exports)?;
    let has_resident = kind == ComponentKind::Http && blocks.contains(COMMAND) && has(&exports, "wasi:cli/run");
    refuse_missing(ty.imports(engine).map(|(name, _)| name.to_owned()).collect(), blocks)?;
    let node_failed = |error: &wasmtime::Error| Refusal::new(RefusalKind::NodeFailed, one_line(error));
    let mut linker = server.linker(blocks).map_err(|error| node_failed(&error))?;
    end_chain(server.engine(), component, &mut linker).map_err(|error| node_failed(&error))?;
    let pre = linker.instantiate_pre(component);
    let pre = pre.map_err(|error| Refusal::new(RefusalKind::AbiMismatch, one_line(&error)))?;
    Ok(CheckedComponent { pre, kind, has_resident })
}

/// Returns the refusal for a call into an instance that did not come back as it should.
pub fn failed(error: &wasmtime::Error, state: &ServerState) -> Refusal {
    if let Some(denied) = state.cap.denied.filter(|denied| denied.explains_trap(Instant::now())) {
        return match denied.by_others {
            false => memory_limit(denied.wanted, denied.allowed),
            true => Refusal::new(RefusalKind::QuotaExceeded, "the container's servers have as much memory as they may"),
        };
    }
    if is_full(error) {
        let detail = format!("the container's modules have as many instances as they may: {}", one_line(error));
        return Refusal::new(RefusalKind::QuotaExceeded, detail);
    }
    refusal(RefusalKind::Trapped, error, &state.said.lines())
}

/// Returns what was made of a component in [`limits::START_TIME_MAX`].
///
/// # Errors
/// [`RefusalKind::Stalled`] if it took longer, or those of [`failed`].
pub fn started<T>(made: Result<wasmtime::Result<T>, Elapsed>, state: &ServerState) -> Result<T, Refusal> {
    match made {
        Ok(made) => made.map_err(|error| failed(&error, state)),
        Err(_) => Err(stalled()),
    }
}

/// Returns the refusal for a component of which there is no instance in time.
pub fn stalled() -> Refusal {
    Refusal::new(RefusalKind::Stalled, format!("there was no instance after {} s", limits::START_TIME_MAX.as_secs()))
}

/// Returns whether there was no room for another instance among those of the container.
pub fn is_full(error: &wasmtime::Error) -> bool {
    error.is::<PoolConcurrencyLimitError>()
}

/// Names of a component's imports and exports.
#[derive(Default)]
struct OuterNames {
    imports: Vec<String>,
    exports: Vec<String>,
}

/// Returns the names of what a component imports and exports itself; nothing if it is none.
#[allow(clippy::wildcard_enum_match_arm, reason = "sections that say nothing here; the enum is the parser's")]
fn outer_names(wasm: &[u8]) -> Option<OuterNames> {
    let (mut names, mut depth) = (OuterNames::default(), 0_usize);
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.ok()? {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth = depth.checked_sub(1)?,
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    names.imports.push(import.ok()?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    names.exports.push(export.ok()?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Some(names)
}

fn kind(exports: &[String]) -> Result<ComponentKind, Refusal> {
    let kinds = [
        ("netserv:tcp/handler", ComponentKind::Tcp),
        ("wasi:http/incoming-handler", ComponentKind::Http),
        ("wasi:cli/run", ComponentKind::Command),
    ];
    let found = kinds.into_iter().find(|(name, _)| has(exports, name));
    found.map(|(_, kind)| kind).ok_or_else(|| {
        let named = if exports.is_empty() { "nothing".to_owned() } else { exports.join(", ") };
        let detail = format!(
            "the component exports {named}; a server module exports wasi:http/incoming-handler, \
             netserv:tcp/handler or wasi:cli/run"
        );
        Refusal::new(RefusalKind::AbiMismatch, detail)
    })
}

fn has(exports: &[String], wanted: &str) -> bool {
    exports.iter().any(|export| interface(export) == wanted)
}

/// Lets a component run by itself that hands requests on, which only a service gives it a next one for: it traps when
/// it does so.
fn end_chain(engine: &Engine, component: &Component, linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    let ty = component.component_type();
    let Some((name, _)) = ty.imports(engine).find(|(name, _)| interface(name) == "wasi:http/incoming-handler") else {
        return Ok(());
    };
    let mut handler = linker.instance(name)?;
    handler.func_new("handle", |_, _, _, _| {
        Err(wasmtime::format_err!("there is no module behind this one; it is for the chain of a service"))
    })
}

/// Refuses a component that imports what the node does not have, or not for this module.
fn refuse_missing(imports: Vec<String>, blocks: &BTreeSet<String>) -> Result<(), Refusal> {
    let known = |name: &String| {
        let interface = interface(name);
        let package = interface.split('/').next().unwrap_or(interface);
        match package.strip_prefix("netserv:") {
            Some(block) => blocks::is_linked(block, blocks),
            // They are linked as a whole; what one of a newer version adds to them is found when linking.
            None => WASI_PACKAGES.contains(&package) && !is_preview_3(name),
        }
    };
    let missing: Vec<String> = imports.into_iter().filter(|name| !known(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let detail = format!("the component imports what it does not get here: {}", missing.join(", "));
    Err(Refusal::new(RefusalKind::AbiMismatch, detail))
}

fn is_preview_3(name: &str) -> bool {
    name.split_once('@').is_some_and(|(_, version)| version.starts_with("0.3"))
}

/// Returns an interface's name without its version.
fn interface(name: &str) -> &str {
    name.split_once('@').map_or(name, |(name, _)| name)
}

fn bad_code(error: &wasmtime::Error) -> Refusal {
    Refusal::new(RefusalKind::BadCode, one_line(error))
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use super::*;

    #[test]
    fn a_server_needs_the_block_of_its_kind() {
        let server = ServerEngine::new().unwrap();
        let exports = ["netserv:tcp/handler@1.0.0", "wasi:http/incoming-handler@0.2.0", "wasi:cli/run@0.2.0"];
        let kinds = [ComponentKind::Tcp, ComponentKind::Http, ComponentKind::Command];
        for (export, kind) in exports.into_iter().zip(kinds) {
            let code = precompile(&server, &wat::parse_str(component(export)).unwrap()).unwrap();
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&code).unwrap();
            let mut load = |blocks: &[&str]| {
                file.rewind().unwrap();
                let blocks = blocks.iter().map(ToString::to_string).collect();
                load(&server, file.try_clone().unwrap(), &blocks).map(|checked| checked.kind)
            };
            assert_eq!(load(&["kv", kind.as_str()]), Ok(kind));
            let others: Vec<&str> = kinds.iter().filter(|other| **other != kind).map(|other| other.as_str()).collect();
            assert_eq!(load(&others).unwrap_err().kind, RefusalKind::MissingDependency, "{export}");
        }
    }

    /// Method: their code would not compile, and nobody gets so far.
    #[test]
    fn components_of_no_use_are_refused_before_they_are_compiled() {
        let server = ServerEngine::new().unwrap();
        let refused = |import: &str, export: &str| {
            let code = "(core module (func (result i32)))";
            let text = format!("(component {import} {code} (instance $i) (export \"{export}\" (instance $i)))");
            precompile(&server, &wat::parse_str(text).unwrap()).unwrap_err()
        };
        let lacks = "(import \"wasi:keyvalue/store@0.2.0\" (instance))";
        for (import, export, kind, detail) in [
            (lacks, "wasi:cli/run@0.2.0", RefusalKind::AbiMismatch, "wasi:keyvalue/store@0.2.0"),
            ("", "acme:wallet/pay", RefusalKind::AbiMismatch, "exports acme:wallet/pay"),
            ("", "wasi:cli/run@0.2.0", RefusalKind::BadCode, ""),
        ] {
            let refusal = refused(import, export);
            assert_eq!(refusal.kind, kind, "{refusal}");
            assert!(refusal.detail.contains(detail), "{refusal}");
        }
        for length in 0..64 {
            // Whatever is cut off, nothing panics.
            let whole = wat::parse_str(component("wasi:cli/run@0.2.0")).unwrap();
            let _ = precompile(&server, &whole[..length.min(whole.len())]);
        }
    }

    #[test]
    fn what_a_tcp_module_calls_is_there_with_its_block_only() {
        let has = |names: &[&str]| blocks::is_linked("tcp", &names.iter().map(ToString::to_string).collect());
        assert!(has(&["tcp"]) && !has(&["http", "command"]));
    }

    #[test]
    fn a_program_runs_beside_requests_where_programs_may() {
        let server = ServerEngine::new().unwrap();
        let both = "(component (instance $nothing)
            (export \"wasi:http/incoming-handler@0.2.0\" (instance $nothing))
            (export \"wasi:cli/run@0.2.0\" (instance $nothing)))";
        for (text, blocks, expected) in [
            (both, &["http", "command"][..], true),
            (both, &["http"], false),
            (&component("wasi:http/incoming-handler@0.2.0"), &["http", "command"], false),
            (&component("wasi:cli/run@0.2.0"), &["http", "command"], false),
        ] {
            let blocks = blocks.iter().map(ToString::to_string).collect();
            let checked = compile(&server, &wat::parse_str(text).unwrap(), &blocks).unwrap();
            assert_eq!(checked.has_resident, expected, "{text} {blocks:?}");
        }
    }

    fn component(export: &str) -> String {
        format!("(component (instance $nothing) (export \"{export}\" (instance $nothing)))")
    }
}
