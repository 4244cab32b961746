// SPDX-License-Identifier: Apache-2.0
//! The state directory: packages with private keys, compiled code, the database. It is its owner's alone.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Whatever this process makes from here on is its owner's alone, unless it is given another mode.
pub fn make_private_files() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
}

/// Makes the directory, and takes it from others if it is there and open to them.
///
/// # Errors
/// It cannot be made, or is somebody else's.
pub fn open(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    let mode = fs::metadata(path)?.permissions().mode() & 0o7777;
    if mode & OTHERS != 0 {
        fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS))?;
        tracing::warn!(directory = %path.display(), mode = format!("{mode:o}"), "others could read the state directory");
    }
    Ok(())
}

/// What the group and everybody else may do.
const OTHERS: u32 = 0o077;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_taken_from_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/state");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        open(&path).unwrap();
        assert_eq!(mode() & OTHERS, 0);
        fs::write(path.join("file"), "kept").unwrap();
        for (before, after) in [(0o755, 0o700), (0o770, 0o700), (0o701, 0o700), (0o2750, 0o2700), (0o700, 0o700)] {
            fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            open(&path).unwrap();
            assert_eq!(mode(), after, "{before:o}");
        }
        assert_eq!(fs::read(path.join("file")).unwrap(), b"kept");
    }
}
