// SPDX-License-Identifier: Apache-2.0
//! Whether the operator drains the node: a file in the state directory, so that it stays so over restarts.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The file that is there while the node is drained.
#[derive(Clone, Debug)]
pub struct Mark(PathBuf);

impl Mark {
    /// Returns that of a state directory.
    pub fn of(state_dir: &Path) -> Mark {
        Mark(state_dir.join("maintenance"))
    }

    /// Returns whether the node is drained. One that cannot tell is.
    pub fn is_set(&self) -> bool {
        self.0.try_exists().unwrap_or(true)
    }

    /// Keeps on the disk whether it is.
    ///
    /// # Errors
    /// The file cannot be written or removed.
    pub fn set(&self, on: bool) -> io::Result<()> {
        if on {
            File::create(&self.0)?.sync_all()?;
        } else if let Err(error) = fs::remove_file(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        self.0.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stays_until_it_is_taken_away() {
        let dir = tempfile::tempdir().unwrap();
        let mark = || Mark::of(dir.path());
        assert!(!mark().is_set());
        for on in [true, true, false, false] {
            mark().set(on).unwrap();
            assert_eq!(mark().is_set(), on);
        }
        assert!(Mark::of(&dir.path().join("none")).set(true).is_err());
    }
}
