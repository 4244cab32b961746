// SPDX-License-Identifier: Apache-2.0
//! What a user's modules keep on the node's disk, as the node grants it and clears it away.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use netserv_model::UserId;

use crate::sandbox::storage::owner_of;

/// What a worker may keep on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage<'a> {
    /// A directory of the node's own with the files of all users; made if it is not there.
    pub directory: &'a Path,
    /// Bytes of the file for kv state; 0 for none.
    pub kv_bytes: u64,
    /// Bytes of the file for the cache; 0 for none.
    pub cache_bytes: u64,
}

/// Removes the files of users that are not among `users`. Returns how many files that were.
///
/// # Errors
/// The directory cannot be read, or a file not be removed.
pub fn retain_storage(directory: &Path, users: &BTreeSet<UserId>) -> io::Result<usize> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut removed = 0;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        // What is named otherwise is not ours.
        if owner_of(name.to_str().unwrap_or("")).is_some_and(|user| !users.contains(&user)) {
            fs::remove_file(entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Removes the files of one user.
///
/// # Errors
/// The directory cannot be read, or a file not be removed.
pub fn remove_storage(directory: &Path, user: &UserId) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_str().and_then(owner_of).is_some_and(|owner| owner == *user) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Returns how many bytes of the disk the files of each user take.
///
/// # Errors
/// The directory cannot be read.
pub fn stored_bytes(directory: &Path) -> io::Result<BTreeMap<UserId, u64>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        entries => entries?,
    };
    let mut stored = BTreeMap::new();
    for entry in entries {
        let entry = entry?;
        // One that is removed at this moment takes nothing.
        let bytes = entry.metadata().map_or(0, |metadata| metadata.blocks() * STAT_BLOCK_BYTES);
        if let Some(user) = entry.file_name().to_str().and_then(owner_of).filter(|_| bytes > 0) {
            *stored.entry(user).or_default() += bytes;
        }
    }
    Ok(stored)
}

/// The unit of `st_blocks`, whatever the file system's own.
const STAT_BLOCK_BYTES: u64 = 512;

#[cfg(test)]
mod tests {
    use netserv_model::Flavour;

    use super::*;
    use crate::sandbox::storage::{KV, file_name};

    #[test]
    fn files_take_what_is_written_of_them() {
        let directory = tempfile::tempdir().unwrap();
        let [jane, john]: [UserId; 2] = ["jane", "john"].map(|name| name.parse().unwrap());
        let path = |user, flavour| directory.path().join(file_name(user, flavour, KV));
        fs::write(path(&jane, Flavour::Wasm), vec![7; 100_000]).unwrap();
        fs::write(path(&jane, Flavour::Osgi), vec![7; 100_000]).unwrap();
        fs::File::create(path(&john, Flavour::Wasm)).unwrap().set_len(1 << 30).unwrap();
        fs::write(directory.path().join("other"), vec![7; 100_000]).unwrap();
        let stored = stored_bytes(directory.path()).unwrap();
        assert!(stored.keys().eq([&jane]) && (200_000..400_000).contains(&stored[&jane]), "{stored:?}");
        assert!(stored_bytes(&directory.path().join("none")).unwrap().is_empty());
    }

    #[test]
    fn files_go_with_their_users_and_with_nobody_else() {
        let directory = tempfile::tempdir().unwrap();
        let [jane, wasm, john]: [UserId; 3] = ["jane", "jane.wasm", "john"].map(|name| name.parse().unwrap());
        for user in [&jane, &wasm, &john] {
            for flavour in Flavour::ALL {
                let path = directory.path().join(file_name(user, flavour, KV));
                fs::write(path, "").unwrap();
            }
        }
        fs::write(directory.path().join("john.wasm.other"), "").unwrap();
        let users = BTreeSet::from([wasm.clone()]);
        assert_eq!(retain_storage(directory.path(), &users).unwrap(), 4);
        assert_eq!(retain_storage(directory.path(), &users).unwrap(), 0);
        assert!(directory.path().join("jane.wasm.wasm.kv").exists());
        assert!(directory.path().join("john.wasm.other").exists());
        assert_eq!(retain_storage(&directory.path().join("none"), &users).unwrap(), 0);
    }

    #[test]
    fn the_files_of_one_user_go_alone() {
        let directory = tempfile::tempdir().unwrap();
        let [jane, wasm]: [UserId; 2] = ["jane", "jane.wasm"].map(|name| name.parse().unwrap());
        let path = |user: &UserId, flavour| directory.path().join(file_name(user, flavour, KV));
        for user in [&jane, &wasm] {
            Flavour::ALL.into_iter().for_each(|flavour| fs::write(path(user, flavour), "").unwrap());
        }
        remove_storage(directory.path(), &jane).unwrap();
        assert!(
            Flavour::ALL.into_iter().all(|flavour| !path(&jane, flavour).exists() && path(&wasm, flavour).exists())
        );
        remove_storage(&directory.path().join("none"), &jane).unwrap();
    }
}
