// SPDX-License-Identifier: Apache-2.0
//! What can be seen of WebAssembly code without running it: its kind, what it wants and gives, and whether this netserv
//! knows the interfaces that it was built for.

use std::collections::{BTreeMap, BTreeSet};

use netserv_model::manifest::WASI_PACKAGES;
use serde::Serialize;
use wasmparser::{ComponentExternalKind, Operator, Parser, Payload, TypeRef};

use crate::exit::one_line;

include!(concat!(env!("OUT_DIR"), "/wit_files.rs"));

/// The page that says what packet modules import and export.
const PACKET_ABI: &str = include_str!("../../../../../../wit/packet-abi.md");
/// The packet ABI of that page.
pub const PACKET_ABI_VERSION: u32 = 1;
/// Names of imports or exports that are shown at most.
const NAMES_MAX: usize = 4096;

/// What some WebAssembly code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A core module of the packet ABI.
    Packet,
    /// A core module that exports nothing of the packet ABI.
    Core,
    /// A component that handles TCP connections.
    Tcp,
    /// A component that answers HTTP requests.
    Http,
    /// A component that runs as a program.
    Command,
    /// A component that exports nothing that a node calls.
    Component,
}

impl Kind {
    /// Returns what the code is, in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Packet => "packet module",
            Kind::Core => "core module without the packet ABI",
            Kind::Tcp => "component for TCP connections",
            Kind::Http => "component for HTTP",
            Kind::Command => "component with a program",
            Kind::Component => "component that no node calls",
        }
    }

    /// Returns whether the code is a component.
    pub fn is_component(self) -> bool {
        match self {
            Kind::Packet | Kind::Core => false,
            Kind::Tcp | Kind::Http | Kind::Command | Kind::Component => true,
        }
    }
}

/// What can be seen of some WebAssembly code.
#[derive(Clone, Debug, Serialize)]
pub struct Code {
    /// What it is.
    pub kind: Kind,
    /// Bytes of the file.
    pub bytes: usize,
    /// The packet ABI that it says it was built for, if that can be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abi: Option<u32>,
    /// Bytes of memory that it starts with; of a component, those of the largest of its modules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// What it imports: `netserv.kv_get` of a core module, interfaces of a component.
    pub imports: BTreeSet<String>,
    /// What it exports.
    pub exports: BTreeSet<String>,
    /// The building blocks that its imports belong to.
    pub blocks: BTreeSet<String>,
}

impl Code {
    /// Looks into WebAssembly code.
    ///
    /// # Errors
    /// It is none; the text says where it goes wrong.
    pub fn read(bytes: &[u8]) -> Result<Code, String> {
        let mut seen = Seen::default();
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload.map_err(|error| format!("is not WebAssembly in binary form: {}", error.message()))?;
            seen.take(&payload).map_err(|error| format!("is broken WebAssembly: {}", error.message()))?;
        }
        Ok(seen.finish(bytes.len()))
    }

    /// Returns what no node of this version can give or call, and which side has to be updated.
    pub fn skew(&self) -> Option<Skew> {
        match self.kind {
            Kind::Core => None,
            Kind::Packet => self.packet_skew(),
            Kind::Tcp | Kind::Http | Kind::Command | Kind::Component => {
                let lacks = |name: &String| has_no_interface(name);
                let of_version = |name: &String| interface_skew(name);
                self.imports
                    .iter()
                    .find_map(lacks)
                    .or_else(|| self.imports.iter().chain(&self.exports).find_map(of_version))
            }
        }
    }

    fn packet_skew(&self) -> Option<Skew> {
        if let Some(abi) = self.abi.filter(|abi| *abi != PACKET_ABI_VERSION) {
            let cause = format!("was built for packet ABI {abi}; nodes of this version speak {PACKET_ABI_VERSION}");
            let fix = if abi > PACKET_ABI_VERSION {
                "update netserv and the nodes, or build with the SDK of this netserv (`netserv module new` brings it)"
            } else {
                "update the module's SDK: `netserv module new` brings the one of this netserv"
            };
            return Some(Skew::new(cause, fix));
        }
        self.imports.iter().find_map(|import| {
            let (module, name) = import.split_once('.').unwrap_or((import, ""));
            if module == "netserv" {
                let unknown = !is_in_packet_abi(name);
                let cause = format!("imports {import}, which packet ABI {PACKET_ABI_VERSION} of this version lacks");
                return unknown.then(|| Skew::new(cause, "update netserv and the nodes, or leave the call out"));
            }
            let cause = format!("imports {import}; packet modules get nothing but the imports of module netserv");
            let fix = match module {
                "wasi_snapshot_preview1" => {
                    "build for a target without WASI (Rust: wasm32-unknown-unknown, C: --target=wasm32 -nostdlib), or \
                     have `netserv module adapt` put stubs in place of WASI"
                }
                _ => "leave out what needs the import; wit/packet-abi.md lists what there is",
            };
            Some(Skew::new(cause, fix))
        })
    }
}

/// What does not fit between code and nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skew {
    /// What is wrong, without the file's name in front.
    pub cause: String,
    /// Which side to update.
    pub fix: String,
}

impl Skew {
    fn new(cause: impl AsRef<str>, fix: impl AsRef<str>) -> Skew {
        Skew { cause: one_line(cause.as_ref()), fix: one_line(fix.as_ref()) }
    }
}

/// Returns that no version of nodes has an interface that a component imports.
fn has_no_interface(name: &str) -> Option<Skew> {
    let package = name.split_once('/').map_or(name, |(package, _)| package);
    if package.starts_with("netserv:") || WASI_PACKAGES.contains(&package) {
        return None;
    }
    let cause = format!("imports {name}, which no node has: of WASI they have {}", WASI_PACKAGES.join(", "));
    let fix = "leave out what needs it, or compose it in (`wac plug`); `kv` and `cache` of docs/blocks.md keep things";
    Some(Skew::new(cause, fix))
}

/// Returns what is wrong with an interface of a component, `NAMESPACE:PACKAGE/INTERFACE@VERSION`.
fn interface_skew(name: &str) -> Option<Skew> {
    let (path, version) = name.split_once('@')?;
    let (package, interface) = path.split_once('/')?;
    if package.starts_with("wasi:") {
        if version.starts_with("0.2.") {
            return None;
        }
        let cause = format!("uses {name}; nodes of this version have WASI 0.2");
        let fix = if version.starts_with("0.3") {
            "build for WASI 0.2 (Rust: target wasm32-wasip2; JavaScript: WIT 0.2.x), or update netserv and the nodes \
             to a version with WASI 0.3"
        } else {
            "build the module anew with current tools, for WASI 0.2 (Rust: target wasm32-wasip2)"
        };
        return Some(Skew::new(cause, fix));
    }
    if !package.starts_with("netserv:") {
        return None;
    }
    let Some(known) = known_packages().get(package).cloned() else {
        let cause = format!("imports {name}; there is no building block {package} in this version");
        return Some(Skew::new(cause, "update netserv and the nodes, or leave out what needs it"));
    };
    let (wanted, has) = (major(version), major(&known));
    let fix = if wanted > has {
        "update netserv and the nodes, or build with the SDK of this netserv (`netserv module new` brings it)"
    } else {
        "update the module's SDK: `netserv module new` brings the one of this netserv"
    };
    let cause = match wanted == has {
        false => format!("uses {name}; nodes of this version have {package}@{known}"),
        true if !has_interface(package, interface) => format!("uses {name}; {package}@{known} has no such interface"),
        true => return None,
    };
    Some(Skew::new(cause, fix))
}

/// Returns the packages of our WIT files, each with the newest of its versions.
fn known_packages() -> BTreeMap<String, String> {
    let declared = WIT_FILES.iter().filter_map(|(_, text)| {
        let line = text.lines().find(|line| line.starts_with("package "))?;
        let (name, version) = line.strip_prefix("package ")?.trim_end_matches(';').split_once('@')?;
        Some((name.to_owned(), version.to_owned()))
    });
    let mut declared: Vec<(String, String)> = declared.collect();
    declared.sort();
    declared.into_iter().collect()
}

fn has_interface(package: &str, interface: &str) -> bool {
    let declaration = format!("interface {interface} {{");
    let of_package = |text: &&str| text.lines().any(|line| line.starts_with(&format!("package {package}@")));
    let mut texts = WIT_FILES.iter().map(|(_, text)| *text).filter(of_package);
    texts.any(|text| text.lines().any(|line| line.trim_start().starts_with(&declaration)))
}

fn major(version: &str) -> u32 {
    version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0)
}

fn is_in_packet_abi(name: &str) -> bool {
    PACKET_ABI.contains(&format!("\n| `{name}` |"))
}

/// Beginnings of the names of functions that packet modules import, with their blocks.
const FUNCTIONS: [(&str, &str); 18] = [
    ("log", "log"),
    ("monotonic_", "clock"),
    ("wall_", "clock"),
    ("random", "random"),
    ("property_", "properties"),
    ("counter_", "counters"),
    ("kv_", "kv"),
    ("timer_", "timers"),
    ("inject", "inject"),
    ("message_", "messages"),
    ("channel_", "channel"),
    ("control_", "control"),
    ("state_", "state"),
    ("node_", "node"),
    ("find", "match"),
    ("patterns_", "match"),
    ("sip_", "sip"),
    ("hash", "hash"),
];
/// Packages of interfaces that components import, with their blocks.
const PACKAGES: [(&str, &str); 20] = [
    ("netserv:cache", "cache"),
    ("netserv:channel", "channel"),
    ("netserv:compress", "compress"),
    ("netserv:connection", "connection"),
    ("netserv:control", "control"),
    ("netserv:crypto", "crypto"),
    ("netserv:hash", "hash"),
    ("netserv:http", "http"),
    ("netserv:kv", "kv"),
    ("netserv:log", "log"),
    ("netserv:media", "media"),
    ("netserv:messages", "messages"),
    ("netserv:metrics", "metrics"),
    ("netserv:node", "node"),
    ("netserv:properties", "properties"),
    ("netserv:search", "match"),
    ("netserv:sip", "sip"),
    ("netserv:state", "state"),
    ("netserv:tcp", "tcp"),
    ("netserv:udp", "udp"),
];

/// Returns the building block that an import belongs to.
fn block_of(import: &str) -> Option<&'static str> {
    if let Some(name) = import.strip_prefix("netserv.") {
        return FUNCTIONS.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, block)| *block);
    }
    let (package, rest) = import.split_once('/')?;
    if package == "wasi:http" && rest.starts_with("outgoing-handler") {
        return Some("http-client");
    }
    PACKAGES.iter().find(|(name, _)| *name == package).map(|(_, block)| *block)
}

#[derive(Default)]
struct Seen {
    /// Components and modules around what is read.
    depth: usize,
    is_component: bool,
    imports: BTreeSet<String>,
    exports: BTreeSet<String>,
    memory_pages: Option<u64>,
    imported_functions: u32,
    /// The index of `netserv_abi` among the functions.
    abi_function: Option<u32>,
    defined: u32,
    abi: Option<u32>,
}

impl Seen {
    #[allow(clippy::wildcard_enum_match_arm, reason = "sections that say nothing here; the enum is the parser's")]
    fn take(&mut self, payload: &Payload<'_>) -> Result<(), wasmparser::BinaryReaderError> {
        match payload {
            Payload::Version { encoding, .. } => {
                self.is_component |= self.depth == 0 && *encoding == wasmparser::Encoding::Component;
                self.depth += 1;
            }
            Payload::End(_) => self.depth -= 1,
            Payload::MemorySection(section) => {
                for memory in section.clone() {
                    let pages = memory?.initial;
                    self.memory_pages = Some(self.memory_pages.map_or(pages, |most| most.max(pages)));
                }
            }
            // What else is inside a component's modules is its own business.
            _ if self.depth != 1 => {}
            Payload::ImportSection(section) => {
                for import in section.clone().into_imports() {
                    let import = import?;
                    self.imported_functions += u32::from(matches!(import.ty, TypeRef::Func(_)));
                    insert(&mut self.imports, &format!("{}.{}", import.module, import.name));
                }
            }
            Payload::ExportSection(section) => {
                for export in section.clone() {
                    let export = export?;
                    if export.name == "netserv_abi" {
                        self.abi_function = Some(export.index);
                    }
                    insert(&mut self.exports, export.name);
                }
            }
            Payload::CodeSectionEntry(body) => {
                if self.abi_function == Some(self.imported_functions + self.defined) {
                    let first = body.get_operators_reader()?.into_iter().next().transpose()?;
                    if let Some(Operator::I32Const { value }) = first {
                        self.abi = u32::try_from(value).ok();
                    }
                }
                self.defined += 1;
            }
            Payload::ComponentImportSection(section) => {
                for import in section.clone() {
                    insert(&mut self.imports, import?.name.name);
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section.clone() {
                    let export = export?;
                    if export.kind == ComponentExternalKind::Instance || export.kind == ComponentExternalKind::Func {
                        insert(&mut self.exports, export.name.name);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self, bytes: usize) -> Code {
        let blocks = self.imports.iter().filter_map(|import| block_of(import)).map(str::to_owned).collect();
        let exports = |path: &str| self.exports.iter().any(|name| name.split('@').next() == Some(path));
        let kind = match self.is_component {
            true if exports("netserv:tcp/handler") => Kind::Tcp,
            true if exports("wasi:http/incoming-handler") => Kind::Http,
            true if exports("wasi:cli/run") => Kind::Command,
            true => Kind::Component,
            false if self.exports.iter().any(|name| name.starts_with("netserv_")) => Kind::Packet,
            false => Kind::Core,
        };
        Code {
            kind,
            bytes,
            abi: self.abi,
            memory_bytes: self.memory_pages.map(|pages| pages.saturating_mul(65_536)),
            imports: self.imports,
            exports: self.exports,
            blocks,
        }
    }
}

/// Keeps a name that came out of a file, as one line.
fn insert(names: &mut BTreeSet<String>, name: &str) {
    if names.len() < NAMES_MAX {
        names.insert(one_line(name));
    }
}

#[cfg(test)]
mod tests;
