// SPDX-License-Identifier: Apache-2.0
//! What a user's modules keep on the node's disk, as the node grants it and clears it away.

use std::collections::BTreeSet;
use std::fs;
use std::io;
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

#[cfg(test)]
mod tests {
    use netserv_model::Flavour;

    use super::*;
    use crate::sandbox::storage::{KV, file_name};

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
}
