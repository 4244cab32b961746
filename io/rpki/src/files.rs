// SPDX-License-Identifier: Apache-2.0
//! Reads files of the cache, and no others.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

use bytes::Bytes;
use netserv_model::UnixTime;
use rpki::uri::Rsync;
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, openat2, statat};
use rustix::io::Errno;

use crate::error::Invalid;
use crate::limits::{FILE_BYTES_MAX, READ_BYTES_MAX, SETTLED_AFTER};

/// The files below a directory, for one check.
pub(crate) struct Files {
    directory: OwnedFd,
    bytes_left: usize,
    opened: SystemTime,
    seen: Vec<Seen>,
}

/// A file as a check saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    path: String,
    /// Nothing if there was none.
    version: Option<Version>,
}

/// What differs between two versions of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    bytes: u64,
    /// When it was last changed, in any way: unlike that of the modification, nobody sets this time.
    changed: (i64, i64),
}

impl Seen {
    /// Returns whether it was last changed before a time.
    fn is_older_than(&self, time: SystemTime) -> bool {
        let time = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        self.version.as_ref().is_none_or(|version| version.changed.0 < seconds)
    }
}

impl From<&Metadata> for Version {
    fn from(of: &Metadata) -> Version {
        let changed = (of.ctime(), of.ctime_nsec());
        Version { device: of.dev(), inode: of.ino(), bytes: of.size(), changed }
    }
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
        Ok(Files { directory, bytes_left: READ_BYTES_MAX, opened: SystemTime::now(), seen: Vec::new() })
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
        let opened = self.open_path(path, flags);
        if opened.as_ref().is_err_and(is_missing) {
            self.seen.push(Seen { path: path.to_owned(), version: None });
        }
        let file = opened.map_err(|error| match error {
            error if is_missing(&error) => Invalid::Missing { file: path.to_owned() },
            Errno::LOOP | Errno::XDEV => Invalid::Outside { file: path.to_owned() },
            error => unreadable(error.into()),
        })?;
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
        self.seen.push(Seen { path: path.to_owned(), version: Some(Version::from(&metadata)) });
        Ok(bytes.into())
    }

    /// Returns the files that were read, or wanted and missing.
    pub(crate) fn seen(&self) -> &[Seen] {
        &self.seen
    }

    /// Takes note of files that are as another check saw them.
    pub(crate) fn saw(&mut self, seen: &[Seen]) {
        self.seen.extend_from_slice(seen);
    }

    /// Returns whether none of these files was changed so shortly before that a further change may have the same time.
    pub(crate) fn are_settled(&self, seen: &[Seen]) -> bool {
        let settled = self.opened - SETTLED_AFTER;
        seen.iter().all(|seen| seen.is_older_than(settled))
    }

    /// Returns the files that were read, or wanted and missing. Nothing if one may have changed since.
    pub(crate) fn into_seen(self) -> Option<Vec<Seen>> {
        self.are_settled(&self.seen).then_some(self.seen)
    }

    /// Returns whether a file is as another check saw it.
    pub(crate) fn is_as(&self, seen: &Seen) -> bool {
        match (self.open_path(&seen.path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC), &seen.version) {
            (Ok(file), Some(version)) => file.metadata().is_ok_and(|metadata| Version::from(&metadata) == *version),
            (Err(error), None) => is_missing(&error),
            (Ok(_), None) | (Err(_), Some(_)) => false,
        }
    }

    fn open_path(&self, path: &str, flags: OFlags) -> Result<File, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        openat2(&self.directory, path, flags, Mode::empty(), resolve).map(File::from)
    }
}

fn is_missing(error: &Errno) -> bool {
    matches!(*error, Errno::NOENT | Errno::NOTDIR)
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
