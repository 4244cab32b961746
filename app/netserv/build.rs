// SPDX-License-Identifier: Apache-2.0
//! Lists the files of the module SDK, which `netserv module new` puts into each new module.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules/sdk");
    println!("cargo::rerun-if-changed={}", sdk.display());
    let mut files = Vec::new();
    list(&sdk, Path::new(""), &mut files);
    files.sort();
    let mut code = String::from("/// Each file of the SDK with its path.\nconst SDK_FILES: &[(&str, &[u8])] = &[\n");
    for file in files {
        writeln!(code, "    ({:?}, include_bytes!({:?})),", file, sdk.join(&file)).expect("writing to a String");
    }
    code.push_str("];\n");
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&out).join("sdk_files.rs"), code).expect("OUT_DIR is writable");
}

/// Finds the SDK's sources. Its manifest is written anew, since it is part of another workspace.
fn list(sdk: &Path, below: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(sdk.join(below)) else { return };
    for entry in entries.flatten() {
        let path = below.join(entry.file_name());
        let kind = entry.file_type();
        if kind.is_ok_and(|kind| kind.is_dir()) {
            if !["target", "tests", "examples", "benches"].iter().any(|skipped| path.ends_with(skipped)) {
                list(sdk, &path, files);
            }
        } else if path.starts_with("src") && path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
