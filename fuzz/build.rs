// SPDX-License-Identifier: Apache-2.0
//! Compiles the XDP programs for this machine, so that they can be fuzzed as functions.
//!
//! `bpf/` stays as it is for the kernel: a copy of it is written with other functions in the place of the kernel's, and
//! with room for this machine's addresses.

use std::path::{Path, PathBuf};

/// The kernel's helpers that `native/program.c` has.
const HELPERS: [&str; 4] = ["1", "51", "69", "160"];

fn main() {
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let (bpf, copy) = (manifest.join("../bpf"), PathBuf::from(variable("OUT_DIR")).join("native"));
    std::fs::create_dir_all(&copy).expect("the build has a folder");
    for name in ["common.h", "classify.h", "classify.c", "forward.c"] {
        let source = bpf.join(name);
        println!("cargo::rerun-if-changed={}", source.display());
        let text = std::fs::read_to_string(&source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
        std::fs::write(copy.join(name), native(name, &text)).expect("the build's folder can be written to");
    }
    let program = manifest.join("native/program.c");
    println!("cargo::rerun-if-changed={}", program.display());
    for (name, entry, forwards) in [("classify", "netserv_classify", false), ("forward", "netserv_forward", true)] {
        compile(&program, &copy, name, entry, forwards);
    }
}

fn compile(program: &Path, copy: &Path, name: &str, entry: &str, forwards: bool) {
    let mut build = cc::Build::new();
    build.file(program).include(copy).warnings(false).opt_level(1).define("ENTRY", entry);
    build.define("PROGRAM", format!("\"{name}.c\"").as_str());
    if forwards {
        build.define("FORWARDS", None);
    }
    build.compile(&format!("netserv_{name}"));
}

/// Returns a source of a program with our helpers, and without what only the kernel's loader needs.
fn native(name: &str, text: &str) -> String {
    let mut native = String::new();
    for line in text.lines() {
        let helper = line.strip_suffix(';').and_then(|line| line.rsplit_once("= (void *)"));
        let line = match helper.filter(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit())) {
            Some((head, number)) => {
                assert!(HELPERS.contains(&number), "native/program.c lacks helper {number} of {name}");
                format!("{head}= native_helper_{number};")
            }
            None => line.replace("SECTION(\"maps\")", "static").replace("SECTION(\"xdp\")", "static"),
        };
        // A context has 32 bits for addresses, which the kernel fills in as it reads them.
        let line = match line.trim() {
            "u32 data;" | "u32 data_end;" => line.replace("u32", "unsigned long"),
            _ => line,
        };
        native.push_str(&line);
        native.push('\n');
    }
    native
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
