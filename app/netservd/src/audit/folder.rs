// SPDX-License-Identifier: Apache-2.0
//! The files of the audit log.

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use netserv_audit::{Chain, Check, Found, Reader, first_of_file, name_of_file};
use netserv_model::Digest;
use netserv_model::audit::{AuditEntry, AuditReport};

/// Where the files are, and how many of what size there may be.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    file_bytes_max: u64,
    files_max: usize,
}

impl Folder {
    /// Returns that of a state directory.
    pub fn of(state_dir: &Path, file_bytes_max: u64, files_max: usize) -> Folder {
        Folder { path: state_dir.join("audit"), file_bytes_max, files_max }
    }

    /// Opens all files for reading, the oldest first.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn read(&self) -> io::Result<Vec<File>> {
        let mut files = Vec::new();
        for first in self.files()? {
            match File::open(self.file(first)) {
                Ok(file) => files.push(file),
                // It was the oldest, and is deleted.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(files)
    }

    /// Says whether the log is whole, while it is written.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn verify(&self) -> io::Result<AuditReport> {
        let (mut reader, mut check) = (Reader::default(), Check::default());
        let mut files = self.read()?.into_iter().peekable();
        while let Some(mut file) = files.next() {
            reader.take_all(&mut file, &mut |found| check.take(&found))?;
            if files.peek().is_some() {
                reader.end_file(&mut |found| check.take(&found));
            }
        }
        reader.end(&mut |found| check.take(&found));
        Ok(check.end())
    }

    /// Returns the numbers of the files' first lines, in order.
    fn files(&self) -> io::Result<Vec<u64>> {
        let entries = match std::fs::read_dir(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut files = Vec::new();
        for entry in entries {
            files.extend(entry?.file_name().to_str().and_then(first_of_file));
        }
        files.sort_unstable();
        Ok(files)
    }

    fn make(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.path)
    }

    fn file(&self, first: u64) -> PathBuf {
        self.path.join(name_of_file(first))
    }

    fn append(&self, first: u64) -> io::Result<File> {
        File::options().create(true).append(true).mode(0o600).open(self.file(first))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

/// The end of the log, where lines are added.
#[derive(Debug)]
pub struct End {
    folder: Folder,
    file: File,
    /// The number of the file's first line.
    first: u64,
    /// Bytes of the file.
    bytes: u64,
    chain: Chain,
    /// What lies damaged after the last good line, until a line says so.
    pub damaged: Option<Digest>,
}

impl End {
    /// Finds the end of the log, and begins one if there is none.
    ///
    /// # Errors
    /// The files cannot be read or made.
    pub fn open(folder: Folder) -> io::Result<End> {
        folder.make()?;
        let files = folder.files()?;
        let newest = files.last().copied().unwrap_or(1);
        let (mut chain, mut damaged, mut is_unfinished) = (None, None, false);
        // The last good line may be in a file before the newest one.
        for from in (0..files.len()).rev() {
            (chain, damaged) = (None, None);
            let mut found = |found: Found<'_>| match found {
                Found::Line(line, text) => (chain, damaged) = (Some(Chain::after(line.line, text.as_bytes())), None),
                Found::Damaged(digest) => damaged = Some(digest),
            };
            let mut reader = Reader::default();
            for first in &files[from..] {
                reader.take_all(&mut File::open(folder.file(*first))?, &mut found)?;
                is_unfinished = reader.end_file(&mut found);
            }
            reader.end(&mut found);
            if chain.is_some() {
                break;
            }
        }
        let mut file = folder.append(newest)?;
        if is_unfinished {
            file.write_all(b"\n")?;
        }
        folder.sync()?;
        let (bytes, chain) = (file.metadata()?.len(), chain.unwrap_or(Chain::from(newest)));
        Ok(End { folder, file, first: newest, bytes, chain, damaged })
    }

    /// Goes on in a new file if the newest one is no longer what was written: it was moved, deleted, or cut short. Returns
    /// whether that is so.
    ///
    /// # Errors
    /// The files cannot be read or made.
    pub fn follow(&mut self) -> io::Result<bool> {
        let own = self.file.metadata()?;
        let is_there = match std::fs::metadata(self.folder.file(self.first)) {
            Ok(there) => (there.dev(), there.ino()) == (own.dev(), own.ino()),
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        if is_there && own.len() >= self.bytes {
            return Ok(false);
        }
        self.folder.make()?;
        self.begin_file(self.chain.line() + 1)?;
        Ok(true)
    }

    /// Adds a line. If it cannot be written, nothing of it stays.
    ///
    /// # Errors
    /// It cannot be written. If that is so of its removal too, the end has to be found again.
    pub fn add(&mut self, entry: AuditEntry) -> Result<(), (io::Error, Removed)> {
        let mut chain = self.chain;
        let line = chain.add(entry);
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        if self.bytes > 0 && self.bytes + length > self.folder.file_bytes_max {
            self.begin_file(chain.line()).map_err(|error| (error, Removed(true)))?;
        }
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            let removed = self.file.set_len(self.bytes).is_ok();
            return Err((error, Removed(removed)));
        }
        self.bytes += length;
        self.chain = chain;
        Ok(())
    }

    /// Waits until all lines are on the disk.
    ///
    /// # Errors
    /// The disk fails.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Goes on in a new file; the oldest make room for it.
    fn begin_file(&mut self, first: u64) -> io::Result<()> {
        self.sync()?;
        let files = self.folder.files()?;
        let too_many = (files.len() + 1).saturating_sub(self.folder.files_max);
        for oldest in &files[..too_many] {
            std::fs::remove_file(self.folder.file(*oldest))?;
        }
        let file = self.folder.append(first)?;
        (self.first, self.bytes, self.file) = (first, file.metadata()?.len(), file);
        self.folder.sync()
    }
}

/// Whether nothing is left of a line that could not be written.
#[derive(Clone, Copy, Debug)]
pub struct Removed(pub bool);
