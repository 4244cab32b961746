// SPDX-License-Identifier: Apache-2.0
//! Package files: read, written, and told from other files.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use netserv_model::Refusal;
use netserv_model::limits::PACKAGE_BYTES_MAX;
use netserv_repository::package::{self, Package};

use crate::exit::{Failure, OrFail};
use crate::units::format_bytes;

/// Reads a package file.
///
/// # Errors
/// It cannot be read, or is no package.
pub fn read_package(path: &Path) -> Result<Package, Failure> {
    let bytes = read_file(path, "name a package that `netserv module build` made")?;
    package::read(&bytes).map_err(|refusal| not_a_package(path, &bytes, &refusal))
}

/// Says what a file is that should be a package.
pub fn not_a_package(path: &Path, bytes: &[u8], refusal: &Refusal) -> Failure {
    let build = "build the package with `netserv module build`, and name that";
    let is = if path.extension().is_some_and(|end| end == "toml") {
        "a project's file"
    } else if bytes.starts_with(b"\0asm") {
        "WebAssembly code"
    } else if bytes.starts_with(b"PK\x03\x04") {
        "an OSGi bundle or another zip file"
    } else {
        return refused(path, refusal);
    };
    Failure::new(format!("{} is {is}, and no package", path.display()), build)
}

/// Reads a file that is no larger than packages are.
///
/// # Errors
/// It cannot be read, or is larger.
pub fn read_file(path: &Path, fix: &str) -> Result<Vec<u8>, Failure> {
    let doing = format!("cannot read {}", path.display());
    if path.is_dir() {
        return Err(Failure::new(format!("{} is a folder", path.display()), fix));
    }
    let file = std::fs::File::open(path).or_fail(&doing, fix)?;
    let mut bytes = Vec::new();
    file.take(PACKAGE_BYTES_MAX + 1).read_to_end(&mut bytes).or_fail(doing, fix)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > PACKAGE_BYTES_MAX) {
        let cause = format!("{} is larger than {}", path.display(), format_bytes(PACKAGE_BYTES_MAX));
        return Err(Failure::new(cause, fix));
    }
    Ok(bytes)
}

/// Writes a package beside its place and moves it there, so that nobody reads half of it.
///
/// # Errors
/// It cannot be written.
pub fn write(path: &Path, package: &Package) -> Result<(), Failure> {
    let fix = "choose a folder with room that you may write to";
    let mut partial = path.as_os_str().to_owned();
    partial.push(".part");
    let partial = PathBuf::from(partial);
    let written = std::fs::File::create(&partial)
        .and_then(|mut file| file.write_all(&package.to_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&partial, path));
    if written.is_err() {
        // What could not be finished is of no use; if it cannot go either, the first error counts.
        let _ = std::fs::remove_file(&partial);
    }
    written.or_fail(format!("cannot write {}", path.display()), fix)
}

/// Says what is wrong with a file.
pub fn refused(path: &Path, refusal: &Refusal) -> Failure {
    Failure::new(format!("{}: {}", path.display(), refusal.detail), refusal.kind.fix())
}
