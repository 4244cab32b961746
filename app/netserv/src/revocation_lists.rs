// SPDX-License-Identifier: Apache-2.0
//! Files with an issuer's revocation list.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use netserv_authority::limits::REVOCATIONS_BYTES_MAX;
use netserv_authority::revocations::{Revocations, RevocationsError};

use crate::exit::{Failure, OrFail};

/// What to do if a file holds no good list.
pub const FIX: &str = "name a file that `netserv grant revoke` made";

/// Reads a list and checks its signature; nothing if there is no such file.
///
/// # Errors
/// The file cannot be read, or holds no list that somebody signed.
pub fn read(path: &Path) -> Result<Option<Revocations>, Failure> {
    let shown = path.display();
    let text = match text_of(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.or_fail(format!("cannot read the revocation list in {shown}"), FIX)?,
    };
    Revocations::verify(text.trim()).map(Some).or_fail(format!("{shown} holds no revocation list"), FIX)
}

/// Understands a file that may hold a list, without checking its signature; nothing if it holds something else, as a chain of grants.
///
/// # Errors
/// It is a list that is not understood.
pub fn find(path: &Path) -> Result<Option<Revocations>, Failure> {
    // What cannot be read is told by who reads it as something else.
    let Ok(text) = text_of(path) else { return Ok(None) };
    match Revocations::parse(text.trim()) {
        Err(RevocationsError::NotCompact | RevocationsError::Header | RevocationsError::TooLong) => Ok(None),
        list => list.map(Some).or_fail(format!("the revocation list in {}", path.display()), FIX),
    }
}

/// Keeps others from changing lists in a folder as long as it is held, so that no list is lost between.
///
/// # Errors
/// The folder cannot be opened or locked.
pub fn lock(path: &Path) -> Result<File, Failure> {
    let folder = folder_of(path);
    let locked = File::open(folder).and_then(|file| file.lock().map(|()| file));
    locked.or_fail(format!("cannot lock {}", folder.display()), "name a file in a folder that is there, with --list")
}

/// Puts a list in the place of an earlier one, so that whoever reads the file gets either whole.
///
/// # Errors
/// The file cannot be written. The earlier list is still there.
pub fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.new"));
    let fix = "make room on the disk, or name another file with --list";
    write(path, &new, text).map_err(|error| {
        // It may not be there.
        let _ = std::fs::remove_file(&new);
        Failure::new(format!("cannot write {}: {error}", path.display()), fix)
    })
}

fn write(path: &Path, new: &PathBuf, text: &str) -> std::io::Result<()> {
    // One that a crash left behind may be a link to elsewhere.
    let _ = std::fs::remove_file(new);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(new)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    std::fs::rename(new, path)?;
    File::open(folder_of(path))?.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn text_of(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let most = 2 * REVOCATIONS_BYTES_MAX as u64;
    File::open(path)?.take(most).read_to_string(&mut text)?;
    Ok(text)
}
