// SPDX-License-Identifier: Apache-2.0
//! The modules of `modules/`, as cargo builds them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns a sample module as cargo builds it, for `wasm32-unknown-unknown` or `wasm32-wasip2`.
///
/// With `NETSERV_MODULES_BUILT` in the environment, as `./dev` has it, all are there already.
pub fn wasm(target: &str, name: &str) -> PathBuf {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules");
    if std::env::var_os("NETSERV_MODULES_BUILT").is_none() {
        build_module(&modules, target, name);
    }
    modules.join("target").join(target).join(profile()).join(format!("{name}.wasm"))
}

/// The profile of `modules/Cargo.toml` that is built; what is measured takes `dist`.
fn profile() -> String {
    std::env::var("NETSERV_MODULES_PROFILE").unwrap_or_else(|_| "release".to_owned())
}

fn build_module(modules: &Path, target: &str, name: &str) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // The programs among them are of a package with another name.
    let package = if name.starts_with("server-") { "server-tests".to_owned() } else { name.replace('_', "-") };
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--profile", &profile(), "--target", target, "-p", &package]);
    let built = build.current_dir(modules).env_remove("CARGO_TARGET_DIR").output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}
