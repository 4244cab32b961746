// SPDX-License-Identifier: Apache-2.0
//! What the sessions of this node's clients are made from that name none. It outlives the process, so that a REMOVE after a restart
//! is of the same session as the SETUP before it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result};

const NAME: &str = "session-secret";
/// That of runs which are recorded: a recording has its secret in it, and is sent to others.
const RECORDED: &str = "session-secret-recorded";
const OWNER_ONLY: u32 = 0o600;

/// Returns the secret in a state directory, of runs that are recorded or of all others; `new` makes one if none is there, or one that
/// is not whole.
///
/// # Errors
/// It can be neither read nor written, or `new` fails.
pub fn read_or_make(dir: &Path, is_recorded: bool, new: impl FnOnce() -> Result<[u8; 32]>) -> Result<[u8; 32]> {
    let path = dir.join(if is_recorded { RECORDED } else { NAME });
    let known = match fs::read(&path) {
        Ok(bytes) => <[u8; 32]>::try_from(bytes).ok(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    if let Some(secret) = known {
        return Ok(secret);
    }
    let secret = new()?;
    write(&path, &secret).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(secret)
}

fn write(path: &Path, secret: &[u8]) -> io::Result<()> {
    let part = path.with_extension("part");
    let mut file = File::options().create(true).write(true).truncate(true).mode(OWNER_ONLY).open(&part)?;
    file.write_all(secret)?;
    file.sync_all()?;
    fs::rename(part, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_is_made_once_and_for_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_or_make(dir.path(), false, || Ok([1; 32])).unwrap(), [1; 32]);
        assert_eq!(read_or_make(dir.path(), false, || Ok([2; 32])).unwrap(), [1; 32]);
        let path = dir.path().join(NAME);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, OWNER_ONLY);
        assert_eq!(read_or_make(dir.path(), true, || Ok([4; 32])).unwrap(), [4; 32]);
        // A full disk may leave a part.
        fs::write(&path, [1; 7]).unwrap();
        assert_eq!(read_or_make(dir.path(), false, || Ok([3; 32])).unwrap(), [3; 32]);
    }
}
