// SPDX-License-Identifier: Apache-2.0
//! Compiles the XDP programs with clang, which needs no other headers than our own.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Newer ones first would do as well; the first is what Debian 12 has, and what CI uses.
const COMPILERS: [&str; 2] = ["clang-14", "clang"];

fn main() {
    let sources = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../../bpf");
    let out = PathBuf::from(variable("OUT_DIR"));
    for file in ["common.h", "classify.h", "classify.c", "forward.c"] {
        println!("cargo::rerun-if-changed={}", sources.join(file).display());
    }
    println!("cargo::rerun-if-env-changed=CLANG");
    for name in ["classify", "forward"] {
        compile(&sources.join(name).with_extension("c"), &out.join(name).with_extension("o"));
    }
}

fn compile(source: &Path, object: &Path) {
    let configured = std::env::var("CLANG").ok();
    let compilers = configured.as_deref().map_or(COMPILERS.to_vec(), |compiler| vec![compiler]);
    for compiler in &compilers {
        let arguments = ["-O2", "-g0", "-Wall", "-Wextra", "-Werror", "-target", "bpf", "-mcpu=v3", "-c"];
        let output = Command::new(compiler).args(arguments).arg(source).arg("-o").arg(object).output();
        let Ok(output) = output else { continue };
        if output.status.success() {
            return;
        }
        let said = String::from_utf8_lossy(&output.stderr);
        fail(
            &format!("{compiler} does not compile {}:\n{said}", source.display()),
            "install clang-14 or newer, or set CLANG",
        );
    }
    let tried = compilers.join(", ");
    fail(
        &format!(
            "the XDP program of the driver `afxdp` needs a C compiler with the target bpf, and there is none of: {tried}"
        ),
        "`apt-get install clang-14`, or set CLANG to the path of another clang",
    );
}

fn fail(cause: &str, fix: &str) -> ! {
    println!("cargo::error={}", cause.replace('\n', " "));
    println!("cargo::error=fix: {fix}");
    eprintln!("{cause}\nfix: {fix}");
    std::process::exit(1);
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
