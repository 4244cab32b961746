// SPDX-License-Identifier: Apache-2.0
//! Where compiled code is.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The directory of composed code. It holds nothing that a restarted node would use.
#[derive(Debug, Default)]
pub struct Compositions {
    directory: PathBuf,
    next: AtomicU64,
}

impl Compositions {
    /// Returns an empty directory for compositions.
    ///
    /// # Errors
    /// It cannot be emptied or made.
    pub fn open(directory: PathBuf) -> std::io::Result<Compositions> {
        match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => std::fs::create_dir_all(&directory)?,
        }
        Ok(Compositions { directory, next: AtomicU64::new(0) })
    }

    /// Returns where the next composition may be put.
    pub fn new_path(&self) -> PathBuf {
        self.directory.join(format!("{}.cwasm", self.next.fetch_add(1, Ordering::Relaxed)))
    }
}

/// Compiled code lies beside the module that it was made from, and leaves the store with it.
pub fn code_path(wasm: &Path, engine: &str) -> PathBuf {
    wasm.with_extension(format!("{engine}.cwasm"))
}
