// SPDX-License-Identifier: Apache-2.0
//! What a user's modules keep on the node's disk: two files for each flavour, which outlive containers.
//!
//! They have their full length from the start and take room as they are written. A container sees them at [`STORE_KV`]
//! and [`STORE_CACHE`], each mounted by itself, so that nothing else can be made there. The kernel lets no process of
//! the container write beyond the length of the longer one, and what is over its length is cut at the next start: so
//! also a worker that was taken over has at most that much in each.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, fchown};
use std::path::Path;

use netserv_model::{Flavour, UserId};

use super::paths::{STORE_CACHE, STORE_KV};
use super::rootfs;

/// Opens a worker's files, and returns a mount of each with the place where it belongs. Files of no
/// bytes are left out; so are files that cannot be opened, which costs a module its memory and nothing else.
pub(crate) fn mounts(wanted: &Wanted<'_>, owner: u32) -> Vec<(&'static str, OwnedFd)> {
    let mut mounts = vec![];
    for (place, kind, bytes) in wanted.files() {
        let path = wanted.directory.join(file_name(wanted.user, wanted.flavour, kind));
        match open(&path, bytes, owner).and_then(|()| rootfs::writable_file(&path)) {
            Ok(mount) => mounts.push((place, mount)),
            Err(error) => eprintln!("netserv-launcher: {}: {error}; its user's modules go without", path.display()),
        }
    }
    mounts
}

/// The files that one worker gets.
pub(crate) struct Wanted<'a> {
    pub(crate) user: &'a UserId,
    pub(crate) flavour: Flavour,
    pub(crate) directory: &'a Path,
    pub(crate) kv_bytes: u64,
    pub(crate) cache_bytes: u64,
}

impl Wanted<'_> {
    fn files(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let files = [(STORE_KV, KV, self.kv_bytes), (STORE_CACHE, CACHE, self.cache_bytes)];
        files.into_iter().filter(|(_, _, bytes)| *bytes > 0)
    }
}

pub(crate) const KV: &str = "kv";
const CACHE: &str = "cache";

/// Makes sure that the file is there, has its length and belongs to the container.
fn open(path: &Path, bytes: u64, owner: u32) -> io::Result<()> {
    let directory = path.parent().map(Path::to_owned).unwrap_or_default();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut options = File::options();
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let file = file.open(path)?;
    if file.metadata()?.len() != bytes {
        file.set_len(bytes)?;
    }
    fchown(&file, Some(owner), Some(owner))
}

/// Returns the name of a user's file.
pub(crate) fn file_name(user: &UserId, flavour: Flavour, kind: &str) -> String {
    format!("{user}.{flavour}.{kind}")
}

/// Returns whose file it is, by its name; nothing for what is named otherwise.
pub(crate) fn owner_of(name: &str) -> Option<UserId> {
    let mut parts = name.rsplitn(3, '.');
    let (kind, flavour, user) = (parts.next()?, parts.next()?, parts.next()?);
    let ours = [KV, CACHE].contains(&kind) && flavour.parse::<Flavour>().is_ok();
    if ours { user.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_file_keeps_what_it_has_and_gets_the_length_that_is_granted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/jane.wasm.kv");
        let owner = rustix::process::geteuid().as_raw();
        open(&path, 1 << 20, owner).unwrap();
        File::options().write(true).open(&path).unwrap().write_all(b"kept").unwrap();
        for bytes in [1 << 20, 1 << 21, 1 << 16] {
            open(&path, bytes, owner).unwrap();
            let mut start = [0; 4];
            File::open(&path).unwrap().read_exact(&mut start).unwrap();
            assert_eq!((&start, fs::metadata(&path).unwrap().len()), (b"kept", bytes));
        }
        assert!(fs::metadata(&path).unwrap().blocks() < 64, "room is taken as it is written");
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_link_in_a_files_place_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (target, path) = (directory.path().join("target"), directory.path().join("jane.wasm.kv"));
        fs::write(&target, "as it was").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(open(&path, 0, rustix::process::geteuid().as_raw()).is_err());
        assert_eq!(fs::read(&target).unwrap(), b"as it was");
    }
}
