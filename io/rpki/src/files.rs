// SPDX-License-Identifier: Apache-2.0
//! Reads files of the cache, and no others.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use bytes::Bytes;
use netserv_model::UnixTime;
use rpki::uri::Rsync;
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, openat2, statat};
use rustix::io::Errno;

use crate::error::Invalid;
use crate::limits::{FILE_BYTES_MAX, READ_BYTES_MAX};

/// The files below a directory, for one check.
pub(crate) struct Files {
    directory: OwnedFd,
    bytes_left: usize,
}

impl Files {
    /// Opens the directory, which may be a link.
    pub(crate) fn open(directory: &Path) -> Result<Files, Invalid> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(directory, flags, Mode::empty());
        let directory = opened.map_err(|error| Invalid::NoCache {
            directory: directory.to_owned(),
            reason: io::Error::from(error).to_string(),
        })?;
        Ok(Files { directory, bytes_left: READ_BYTES_MAX })
    }

    /// Returns when a file or folder with one of these paths below the directory was last changed.
    pub(crate) fn last_change<'a>(&self, paths: impl Iterator<Item = &'a str>) -> Option<UnixTime> {
        let changed = |path| statat(&self.directory, path, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| stat.st_mtime);
        paths.filter_map(changed).max().map(|seconds| UnixTime::from_secs(u64::try_from(seconds).unwrap_or(0)))
    }

    /// Reads the file that an rsync URI is of.
    pub(crate) fn read(&mut self, uri: &Rsync) -> Result<Bytes, Invalid> {
        self.read_path(path(uri))
    }

    /// Reads the file with this path below the directory.
    pub(crate) fn read_path(&mut self, path: &str) -> Result<Bytes, Invalid> {
        let unreadable = |error: io::Error| Invalid::Unreadable { file: path.to_owned(), reason: error.to_string() };
        // Without NONBLOCK, opening a FIFO waits for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let opened = openat2(&self.directory, path, flags, Mode::empty(), resolve).map_err(|error| match error {
            Errno::NOENT | Errno::NOTDIR => Invalid::Missing { file: path.to_owned() },
            Errno::LOOP | Errno::XDEV => Invalid::Outside { file: path.to_owned() },
            error => unreadable(error.into()),
        })?;
        let file = File::from(opened);
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(unreadable(io::Error::other("it is no regular file")));
        }
        let bytes_max = self.bytes_left.min(FILE_BYTES_MAX);
        let expected = usize::try_from(metadata.len()).unwrap_or(usize::MAX).min(bytes_max);
        let mut bytes = Vec::with_capacity(expected + 1);
        file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() > bytes_max {
            return Err(Invalid::TooMuch { file: path.to_owned() });
        }
        self.bytes_left -= bytes.len();
        Ok(bytes.into())
    }
}

/// Returns the path of a URI's file below the directory: `host/module/path`.
fn path(uri: &Rsync) -> &str {
    uri.as_str().get("rsync://".len()..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_check_reads_so_many_bytes_at_most() {
        let folder = tempfile::tempdir().unwrap();
        let make =
            |name: &str, bytes: usize| File::create(folder.path().join(name)).unwrap().set_len(bytes as u64).unwrap();
        make("large", FILE_BYTES_MAX);
        make("small", 1);
        let mut files = Files::open(folder.path()).unwrap();
        for _ in 0..READ_BYTES_MAX / FILE_BYTES_MAX {
            assert_eq!(files.read_path("large").unwrap().len(), FILE_BYTES_MAX);
        }
        assert_eq!(files.read_path("small"), Err(Invalid::TooMuch { file: "small".to_owned() }));
    }

    #[test]
    fn no_path_leads_out() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(folder.path().join("outside"), "").unwrap();
        let absolute = folder.path().join("outside");
        let mut files = Files::open(&inside).unwrap();
        for path in ["../outside", "a/../../outside", absolute.to_str().unwrap(), "/proc/self/root/etc/passwd"] {
            let said = files.read_path(path);
            let is_refused = matches!(said, Err(Invalid::Outside { .. } | Invalid::Missing { .. }));
            assert!(is_refused, "{path}: {said:?}");
        }
    }
}
