// SPDX-License-Identifier: Apache-2.0
//! Where compiled code stays between runs, so that a module which has not changed is compiled once.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use netserv_repository::limits::CODE_DIR_BYTES_MAX;
use netserv_repository::{Compiled, engine_name};

/// Returns the directory, if the user has a place for such things: `netserv/code` in `XDG_CACHE_HOME` or `~/.cache`.
pub fn path() -> Option<PathBuf> {
    open().map(|(path, _)| path)
}

fn open() -> Option<(PathBuf, Compiled)> {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?));
    let (above, cache) = match named {
        Some(cache) => (cache.clone(), cache),
        None => (home()?, home()?.join(".cache")),
    };
    // Under `sudo` it may be another user's, who could put other code there.
    let owner = |path: &Path| std::fs::metadata(path).map(|metadata| metadata.uid()).ok();
    if owner(&above)? != owner(Path::new("/proc/self"))? {
        return None;
    }
    let path = cache.join("netserv/code");
    let compiled = Compiled::open(&path, CODE_DIR_BYTES_MAX).ok()?;
    Some((path, compiled))
}

/// What code is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Nodes, and tests of components, whose code is the same.
    Node,
    /// Tests of packet modules.
    PacketTests,
}

/// Returns the file with what a worker makes of WebAssembly code. Nothing without a place for it, or if it makes nothing: the
/// worker says why when it is given the code itself.
pub fn compiled(worker: &Path, wasm: &Path, purpose: Purpose) -> Option<PathBuf> {
    let ((_, compiled), engine) = (open()?, engine_name(worker).ok()?);
    let (engine, option) = match purpose {
        Purpose::Node => (engine, None),
        Purpose::PacketTests => (format!("{engine}-tests"), Some("--for-tests")),
    };
    let compile = |out: &Path| -> std::io::Result<()> {
        let mut command = Command::new(worker);
        command.arg("compile").args(option).args([wasm, out]).stdin(Stdio::null());
        if command.output()?.status.success() { Ok(()) } else { Err(std::io::Error::other("the worker refuses it")) }
    };
    compiled.find_or_make(wasm, &engine, compile).ok()
}
