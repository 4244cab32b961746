// SPDX-License-Identifier: Apache-2.0
//! Writes the bindings of `wit/` that are checked in, so that a build of a server module does not build their generator.
//!
//! `./dev bindings` runs this. `lab/tests/all/house/tidy.rs` fails if the bindings are older than what they are made from.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};
use syn::Item;
use wit_bindgen_core::wit_parser::{Resolve, UnresolvedPackageGroup};
use wit_bindgen_core::{Files, WorldGenerator as _};
use wit_bindgen_rust::{Opts, WithOption};

/// One file of bindings.
struct World {
    /// The file below the repository.
    file: &'static str,
    /// The world, with its package.
    wit: &'static str,
    /// Interfaces whose bindings are those of [`IMPORTS`], with their paths there.
    shared: &'static [(&'static str, &'static str)],
    /// The macro that exports a module by these bindings, and where other crates find these.
    export: Option<(&'static str, &'static str)>,
}

const WORLDS: &[World] = &[
    World {
        file: "modules/sdk/server/src/bindings/imports.rs",
        wit: "package netserv:sdk-imports;
            world imports {
                include netserv:module/blocks@1.0.0;
                include wasi:cli/imports@0.2.12;
                include wasi:http/imports@0.2.12;
                import netserv:http/hand-over@1.0.0;
                import netserv:http/hits@1.1.0;
                import netserv:http/counted-hits@1.2.0;
                import netserv:http/forwarding@1.3.0;
                import netserv:http/counted-hand-over@1.4.0;
                import netserv:tcp/control@1.1.0;
                import netserv:udp/sockets@1.0.0;
            }",
        shared: &[],
        export: None,
    },
    World {
        file: "modules/sdk/server/src/bindings/http.rs",
        wit: "package netserv:sdk-http;
            world http { export wasi:http/incoming-handler@0.2.12; }",
        shared: HTTP,
        export: Some(("export_http", "netserv_server_sdk::bindings::http")),
    },
    World {
        file: "modules/sdk/server/src/bindings/run.rs",
        wit: "package netserv:sdk-run;
            world run { export wasi:cli/run@0.2.12; }",
        shared: &[],
        export: Some(("export_run", "netserv_server_sdk::bindings::run")),
    },
    World {
        file: "modules/sdk/server/src/bindings/tcp.rs",
        wit: "package netserv:sdk-tcp;
            world tcp { export netserv:tcp/handler@1.1.0; export netserv:tcp/hand-over@1.1.0; }",
        shared: &[("netserv:tcp/types@1.1.0", "netserv::tcp1_1_0::types")],
        export: Some(("export_tcp", "netserv_server_sdk::bindings::tcp")),
    },
    World {
        file: "modules/sdk/server/src/bindings/state.rs",
        wit: "package netserv:sdk-state;
            world state { export netserv:state/carrier@1.0.0; }",
        shared: &[],
        export: Some(("export_state", "netserv_server_sdk::bindings::state")),
    },
    World {
        file: "modules/sdk/server/src/bindings/middleware.rs",
        wit: "package netserv:sdk-middleware;
            world middleware { import wasi:http/incoming-handler@0.2.12; }",
        shared: HTTP,
        export: None,
    },
    World {
        file: "modules/fixtures/tcp-tests-first/src/bindings.rs",
        wit: "package netserv:tests-first;
            world first { import netserv:tcp/control@1.0.0; export netserv:tcp/handler@1.0.0; }",
        shared: &[],
        export: None,
    },
];
const HTTP: &[(&str, &str)] = &[
    ("wasi:http/types@0.2.12", "wasi::http::types"),
    ("wasi:io/error@0.2.12", "wasi::io::error"),
    ("wasi:io/poll@0.2.12", "wasi::io::poll"),
    ("wasi:io/streams@0.2.12", "wasi::io::streams"),
    ("wasi:clocks/monotonic-clock@0.2.12", "wasi::clocks::monotonic_clock"),
];
const HEAD: &str = "// SPDX-License-Identifier: Apache-2.0\n// Made from wit/ by `./dev bindings`.\n";
/// Bytes of a file that is large.
const FILE_BYTES: usize = 64 << 10;
/// Where shared bindings are, seen from those of a world.
const IMPORTS: &str = "super::imports";
/// The folder that has nothing but bindings.
const FOLDER: &str = "modules/sdk/server/src/bindings";
/// What bindings are made from, beside `wit/`.
const GENERATOR: [&str; 2] = ["modules/sdk/bindings/Cargo.toml", "modules/sdk/bindings/src/main.rs"];
/// What `lab/tests/all/house/tidy.rs` looks at.
const DIGESTS: &str = "modules/sdk/bindings/digests.txt";

fn main() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut code = Vec::new();
    for world in WORLDS {
        let text = generate(&root.join("wit"), world).with_context(|| world.file)?;
        split(Path::new(world.file), syn::parse_file(&text)?.items, &mut code);
    }
    // Packages that are no more have none.
    let _ = fs::remove_dir_all(root.join(FOLDER));
    for (file, text) in &code {
        let path = root.join(file);
        fs::create_dir_all(path.parent().context("a file in a folder")?)?;
        fs::write(&path, text).with_context(|| file.display().to_string())?;
    }
    let mut inputs = wit_files(&root, Path::new("wit"))?;
    inputs.extend(GENERATOR.map(PathBuf::from));
    let outputs = code.into_iter().map(|(file, _)| file).collect();
    let digests = format!("inputs {}\noutputs {}\n", digest(&root, inputs)?, digest(&root, outputs)?);
    fs::write(root.join(DIGESTS), digests)?;
    Ok(())
}

fn generate(wit: &Path, world: &World) -> anyhow::Result<String> {
    let mut resolve = Resolve::default();
    resolve.push_path(wit)?;
    let package = resolve.push_group(UnresolvedPackageGroup::parse("world.wit", world.wit)?)?;
    let id = resolve.select_world(&[package], None)?;
    let shared =
        |(interface, path): &(&str, &str)| ((*interface).to_owned(), WithOption::Path(format!("{IMPORTS}::{path}")));
    let options = Opts {
        with: world.shared.iter().map(shared).collect(),
        generate_all: world.export.is_none(),
        pub_export_macro: world.export.is_some(),
        export_macro_name: world.export.map(|(name, _)| name.to_owned()),
        default_bindings_module: world.export.map(|(_, module)| module.to_owned()),
        ..Opts::default()
    };
    let mut files = Files::default();
    options.build().generate(&mut resolve, id, &mut files)?;
    let (_, code) = files.iter().next().context("no code")?;
    Ok(String::from_utf8(code.to_vec())?)
}

/// Appends a file with code. Of a large one, namespaces and packages of WIT go to files of their own.
fn split(file: &Path, mut items: Vec<Item>, code: &mut Vec<(PathBuf, String)>) {
    let folder = file.with_extension("");
    let is_large = text(&items).len() > FILE_BYTES;
    for item in &mut items {
        if let Item::Mod(module) = item
            && let Some((_, content)) = module.content.take_if(|(_, content)| is_large && has_only_modules(content))
        {
            module.semi = Some(syn::token::Semi::default());
            split(&folder.join(format!("{}.rs", module.ident)), content, code);
        }
    }
    code.push((file.to_owned(), format!("{HEAD}\n{}", text(&items))));
}

fn has_only_modules(items: &[Item]) -> bool {
    items.iter().all(|item| matches!(item, Item::Mod(_)))
}

fn text(items: &[Item]) -> String {
    tabs(&prettyplease::unparse(&syn::File { shebang: None, attrs: Vec::new(), items: items.to_vec() }))
}

/// Returns code with a tab in place of four blanks at the beginning of lines, by which it is half as long.
fn tabs(code: &str) -> String {
    let mut text = String::with_capacity(code.len());
    for line in code.lines() {
        let rest = line.trim_start_matches(' ');
        let blanks = line.len() - rest.len();
        text.extend(std::iter::repeat_n('\t', blanks / 4));
        text.extend(std::iter::repeat_n(' ', blanks % 4));
        text.push_str(rest.trim_end());
        text.push('\n');
    }
    text
}

/// Finds the WIT of a folder and its folders.
fn wit_files(root: &Path, folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            found.extend(wit_files(root, &path)?);
        } else if path.extension().is_some_and(|extension| extension == "wit") {
            found.push(path);
        }
    }
    Ok(found)
}

/// Returns a digest of files, of their paths and of what is in them.
fn digest(root: &Path, mut files: Vec<PathBuf>) -> anyhow::Result<String> {
    files.sort();
    let mut list = String::new();
    for file in files {
        let bytes = fs::read(root.join(&file)).with_context(|| file.display().to_string())?;
        writeln!(list, "{:x} {}", Sha256::digest(bytes), file.display())?;
    }
    Ok(format!("{:x}", Sha256::digest(list)))
}
