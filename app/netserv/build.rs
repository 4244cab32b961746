// SPDX-License-Identifier: Apache-2.0
//! Lists the files of the SDKs and of `wit/`, which `netserv module new` puts into new modules.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut code = String::new();
    for (name, what, dir) in [
        ("SDK_FILES", "the SDK for packet modules", "modules/sdk/packet"),
        ("SERVER_SDK_FILES", "the SDK for server modules", "modules/sdk/server"),
    ] {
        let sdk = root.join(dir);
        println!("cargo::rerun-if-changed={}", sdk.display());
        let mut files = Vec::new();
        list(&sdk, Path::new(""), &mut files);
        files.retain(|path| path.starts_with("src") || path.starts_with("third-party"));
        files.sort();
        writeln!(code, "/// Each file of {what} with its path.\npub(super) const {name}: &[(&str, &[u8])] = &[")
            .expect(WRITES);
        for file in files {
            writeln!(code, "    ({:?}, include_bytes!({:?})),", file, sdk.join(&file)).expect(WRITES);
        }
        code.push_str("];\n");
    }
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&out).join("sdk_files.rs"), code).expect("OUT_DIR is writable");
    std::fs::write(Path::new(&out).join("wit_files.rs"), wit_files(&root.join("wit"))).expect("OUT_DIR is writable");
}

const WRITES: &str = "writing to a String";

/// Lists the WIT files: what is known of interfaces, and what server modules are built with.
fn wit_files(wit: &Path) -> String {
    println!("cargo::rerun-if-changed={}", wit.display());
    let mut files = Vec::new();
    list(wit, Path::new(""), &mut files);
    files.retain(|path| path.extension().is_some_and(|extension| extension == "wit"));
    files.sort();
    let mut code = String::from("/// Each WIT file with its path.\npub const WIT_FILES: &[(&str, &str)] = &[\n");
    for file in files {
        writeln!(code, "    ({:?}, include_str!({:?})),", file, wit.join(&file)).expect(WRITES);
    }
    code.push_str("];\n");
    code
}

/// Finds files. The manifests of SDKs are not used but written anew, since they are part of another workspace.
fn list(sdk: &Path, below: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(sdk.join(below)) else { return };
    for entry in entries.flatten() {
        let path = below.join(entry.file_name());
        let kind = entry.file_type();
        if kind.is_ok_and(|kind| kind.is_dir()) {
            if !["target", "tests", "examples", "benches"].iter().any(|skipped| path.ends_with(skipped)) {
                list(sdk, &path, files);
            }
        } else {
            files.push(path);
        }
    }
}
