// SPDX-License-Identifier: Apache-2.0
//! Where compiled code stays between runs, so that a module which has not changed is compiled once.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

use netserv_repository::Compiled;

/// Bytes that stay; what was used longest ago goes first.
const BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Returns the directory, if the user has a place for such things: `netserv/code` in `XDG_CACHE_HOME` or `~/.cache`.
pub fn path() -> Option<PathBuf> {
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
    Compiled::open(&path, BYTES_MAX).is_ok().then_some(path)
}

/// Returns the file with what a worker makes of a component. Nothing without a place for it, or if it makes nothing: the worker
/// says why when it is given the component itself.
pub fn compiled(worker: &Path, component: &Path) -> Option<PathBuf> {
    let compiled = Compiled::open(&path()?, BYTES_MAX).ok()?;
    let metadata = worker.metadata().ok()?;
    // Code is good for one build of the worker only.
    let changed = metadata.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let engine = format!("{:x}-{changed:x}", metadata.size());
    let compile = |out: &Path| -> std::io::Result<()> {
        let mut command = Command::new(worker);
        command.arg("compile").args([component, out]).stdin(Stdio::null()).stderr(Stdio::null());
        if command.status()?.success() { Ok(()) } else { Err(std::io::Error::other("the worker refuses it")) }
    };
    compiled.find_or_make(component, &engine, compile).ok()
}
