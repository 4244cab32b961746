// SPDX-License-Identifier: Apache-2.0
//! Unix sockets of the agent.

use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Makes way for a socket: its folder is there, and no socket in its place. `may_go` says whether one that is there may go.
///
/// # Errors
/// Something else is there, it may not go, or the folder cannot be made.
pub fn make_way(path: &Path, may_go: impl FnOnce() -> Result<()>) -> Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    }
    if let Ok(found) = std::fs::symlink_metadata(path) {
        ensure!(found.file_type().is_socket(), "{} is there and is no socket", path.display());
        may_go()?;
        std::fs::remove_file(path)?;
    }
    Ok(())
}
