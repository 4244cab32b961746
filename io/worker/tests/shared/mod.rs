// SPDX-License-Identifier: Apache-2.0
//! Files that many tests need and one of them makes: each test is a process of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::UNIX_EPOCH;

/// Returns a file of this name, which the first test that asks makes. `make` gets the path that it has to write.
///
/// The files are those of one build of the worker: a later build makes them again. What is made of another file has its [`stamp`] in
/// its name.
pub fn file(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let folder = folder();
    let path = folder.join(name);
    let lock = File::create(folder.join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    if !path.exists() {
        let part = folder.join(format!("{name}.part"));
        make(&part);
        std::fs::rename(part, &path).unwrap();
    }
    path
}

/// Returns the folder of the files. Tests may put files of their own there, under names that no other test takes.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let worker = stamp(Path::new(env!("CARGO_BIN_EXE_netserv-worker")));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("worker-{worker}"));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    })
}

/// Returns what tells versions of a file apart.
pub fn stamp(file: &Path) -> String {
    let about = std::fs::metadata(file).unwrap();
    let written = about.modified().unwrap().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    format!("{written}-{}", about.len())
}
