// SPDX-License-Identifier: Apache-2.0
//! Code that was compiled from WebAssembly, kept by what it was made from and by whom, for several nodes of one machine.
//!
//! A node runs what is in there as it is, so the directory is its user's alone. Code ends with a sum of what lies before,
//! since damaged code would run, or be taken for the fault of its module. Wasmtime heeds nothing after the code.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

/// Returns what tells one build of a worker from another, by its size and time of change: code is good for one build only.
///
/// # Errors
/// There is no such program.
pub fn engine_name(worker: &Path) -> io::Result<String> {
    let metadata = worker.metadata()?;
    let changed = metadata.modified()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Ok(format!("{:x}-{:x}", metadata.len(), changed.as_nanos()))
}

/// Adds its sum to code that was compiled.
///
/// # Errors
/// The file cannot be read or written.
pub fn seal(code: &Path) -> io::Result<()> {
    let mut file = File::options().read(true).append(true).open(code)?;
    let mut digest = Sha256::new();
    io::copy(&mut file, &mut digest)?;
    file.write_all(&digest.finalize())?;
    file.sync_all()
}

/// Returns whether there is such code, and all of it is as it was compiled.
pub fn is_whole(code: &Path) -> bool {
    let check = || -> io::Result<bool> {
        let file = File::open(code)?;
        let Some(bytes) = file.metadata()?.len().checked_sub(SUM_BYTES) else { return Ok(false) };
        let (mut digest, mut sum) = (Sha256::new(), Vec::new());
        let mut before = file.take(bytes);
        io::copy(&mut before, &mut digest)?;
        before.into_inner().take(SUM_BYTES).read_to_end(&mut sum)?;
        Ok(digest.finalize()[..] == sum[..])
    };
    check().unwrap_or(false)
}

/// Bytes of the sum at the end of code.
const SUM_BYTES: u64 = 32;

/// A directory of compiled code.
#[derive(Debug)]
pub struct Compiled {
    directory: PathBuf,
    bytes_max: u64,
}

impl Compiled {
    /// Opens a directory, which is made if it is not there; code beyond `bytes_max` goes, what was used longest ago first.
    ///
    /// # Errors
    /// It cannot be made, or others than this process's user can write to it.
    pub fn open(directory: &Path, bytes_max: u64) -> io::Result<Compiled> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let (metadata, user) = (fs::symlink_metadata(directory)?, fs::metadata("/proc/self")?.uid());
        let own = metadata.is_dir() && metadata.uid() == user && metadata.mode() & 0o022 == 0;
        if !own {
            let text = format!("{} is to be a directory that this user alone can write to", directory.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        Ok(Compiled { directory: directory.to_owned(), bytes_max })
    }

    /// Puts the code that `engine` made of a file to `code`. Returns whether there is any that is whole.
    ///
    /// # Errors
    /// The file cannot be read, or the code not be written.
    pub fn take(&self, wasm: &Path, engine: &str, code: &Path) -> io::Result<bool> {
        let Some(kept) = self.find(wasm, engine)? else { return Ok(false) };
        match link_or_copy(&kept, code) {
            Ok(()) => Ok(true),
            // It went meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns where the code is that `engine` made of a file, if there is any that is whole. It goes when it has not been
    /// used for long.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn find(&self, wasm: &Path, engine: &str) -> io::Result<Option<PathBuf>> {
        let kept = self.path(wasm, engine)?;
        Ok(use_now(&kept).then_some(kept))
    }

    /// Returns the code that `engine` makes of a file, which is made by `compile` if it is not there.
    ///
    /// # Errors
    /// As [`Compiled::keep`], or what `compile` says.
    pub fn find_or_make<E: From<io::Error>>(
        &self,
        wasm: &Path,
        engine: &str,
        compile: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        let wanted = self.path(wasm, engine)?;
        if use_now(&wanted) {
            return Ok(wanted);
        }
        let made = self.directory.join(format!("{}.made", std::process::id()));
        let kept = compile(&made).and_then(|()| Ok(seal(&made).and_then(|()| self.keep_as(&wanted, &made))?));
        let removed = fs::remove_file(&made);
        kept?;
        removed?;
        // Somebody may have written it while it was compiled, and nobody knows which of both was.
        if self.path(wasm, engine)? != wanted {
            fs::remove_file(&wanted)?;
            return Err(io::Error::other("the file changed while it was compiled").into());
        }
        Ok(wanted)
    }

    /// Keeps code that `engine` made of a file, with its sum.
    ///
    /// # Errors
    /// The file cannot be read, or the code not be written.
    pub fn keep(&self, wasm: &Path, engine: &str, code: &Path) -> io::Result<()> {
        self.keep_as(&self.path(wasm, engine)?, code)
    }

    fn keep_as(&self, kept: &Path, code: &Path) -> io::Result<()> {
        // Under a name of its own at first: another node may keep the same.
        let new = kept.with_extension(format!("{}.new", std::process::id()));
        let _ = fs::remove_file(&new);
        link_or_copy(code, &new)?;
        fs::rename(&new, kept)?;
        self.prune()
    }

    fn path(&self, wasm: &Path, engine: &str) -> io::Result<PathBuf> {
        let mut digest = Sha256::new();
        io::copy(&mut File::open(wasm)?, &mut digest)?;
        Ok(self.directory.join(format!("{:x}.{engine}.cwasm", digest.finalize())))
    }

    fn prune(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            // What others keep here is theirs.
            let path = entry.path();
            if !path.extension().is_some_and(|end| ["cwasm", "new", "made"].iter().any(|own| end == *own)) {
                continue;
            }
            // Another node may take it away meanwhile.
            if let Ok(metadata) = entry.metadata() {
                files.push((metadata.modified()?, metadata.len(), path));
            }
        }
        files.sort_by_key(|(used, _, _)| std::cmp::Reverse(*used));
        let mut bytes = 0_u64;
        for (_, length, path) in files {
            bytes = bytes.saturating_add(length);
            if bytes > self.bytes_max {
                match fs::remove_file(path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    Ok(()) | Err(_) => {}
                }
            }
        }
        Ok(())
    }
}

/// Returns whether there is such code that is whole, which is then used now.
fn use_now(kept: &Path) -> bool {
    // If its use cannot be noted, it goes earlier.
    let _ = File::open(kept).and_then(|file| file.set_modified(SystemTime::now()));
    is_whole(kept)
}

fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => fs::copy(from, to).map(drop),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn code_is_found_by_what_it_was_made_from_and_by_whom() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let compiled = Compiled::open(&path("kept"), 1000).unwrap();
        fs::write(path("a.wasm"), "a").unwrap();
        fs::write(path("b.wasm"), "b").unwrap();
        fs::write(path("code"), "code of a").unwrap();
        seal(&path("code")).unwrap();
        assert!(!compiled.take(&path("a.wasm"), "one", &path("out")).unwrap());
        compiled.keep(&path("a.wasm"), "one", &path("code")).unwrap();
        compiled.keep(&path("a.wasm"), "one", &path("code")).unwrap();
        assert!(!compiled.take(&path("a.wasm"), "two", &path("out")).unwrap());
        assert!(!compiled.take(&path("b.wasm"), "one", &path("out")).unwrap());
        assert!(compiled.take(&path("a.wasm"), "one", &path("out")).unwrap());
        assert_eq!(fs::read(path("out")).unwrap(), fs::read(path("code")).unwrap());
        assert!(compiled.take(&path("no.wasm"), "one", &path("other")).is_err());
    }

    #[test]
    fn what_is_not_there_is_made_once_and_a_failure_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (wasm, kept) = (dir.path().join("a.wasm"), dir.path().join("kept"));
        let compiled = Compiled::open(&kept, 1000).unwrap();
        fs::write(&wasm, "a").unwrap();
        let fails = |path: &Path| fs::write(path, "half").and(Err(io::Error::other("no code")));
        assert_eq!(compiled.find_or_make(&wasm, "one", fails).unwrap_err().to_string(), "no code");
        assert_eq!(fs::read_dir(&kept).unwrap().count(), 0);
        let path = compiled.find_or_make(&wasm, "one", |path| fs::write(path, "code")).unwrap();
        assert_eq!(compiled.find_or_make(&wasm, "one", fails).unwrap(), path);
        assert!(fs::read(path).unwrap().starts_with(b"code"));
        assert_eq!(fs::read_dir(&kept).unwrap().count(), 1);
    }

    /// Goal: what a disk damages is compiled again, and neither runs nor counts as the module's fault. Method: code that is empty, cut off at
    /// each length, longer, or has one other bit anywhere.
    #[test]
    fn damaged_code_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let (wasm, out) = (dir.path().join("a.wasm"), dir.path().join("out"));
        let compiled = Compiled::open(&dir.path().join("kept"), 1000).unwrap();
        fs::write(&wasm, "a").unwrap();
        let make = |path: &Path| fs::write(path, "the code of a");
        let kept = compiled.find_or_make(&wasm, "one", make).unwrap();
        let whole = fs::read(&kept).unwrap();
        let shorter = (0..whole.len()).map(|length| whole[..length].to_vec());
        let other =
            (0..whole.len()).map(|at| whole.iter().enumerate().map(|(n, byte)| byte ^ u8::from(n == at)).collect());
        for damaged in shorter.chain(other).chain([[&whole[..], b"!"].concat()]) {
            fs::write(&kept, &damaged).unwrap();
            assert!(!is_whole(&kept), "{damaged:?}");
            assert!(!compiled.take(&wasm, "one", &out).unwrap() && !out.exists());
            assert_eq!(compiled.find_or_make(&wasm, "one", make).unwrap(), kept);
            assert_eq!(fs::read(&kept).unwrap(), whole);
        }
        assert!(compiled.take(&wasm, "one", &out).unwrap() && is_whole(&out));
    }

    #[test]
    fn code_of_a_file_that_changes_meanwhile_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (wasm, kept) = (dir.path().join("a.wasm"), dir.path().join("kept"));
        let compiled = Compiled::open(&kept, 1000).unwrap();
        fs::write(&wasm, "a").unwrap();
        let changes = |path: &Path| fs::write(path, "code of a").and_then(|()| fs::write(&wasm, "b"));
        assert!(compiled.find_or_make(&wasm, "one", changes).unwrap_err().to_string().contains("changed"));
        assert_eq!((fs::read_dir(&kept).unwrap().count(), compiled.find(&wasm, "one").unwrap()), (0, None));
    }

    #[test]
    fn what_others_keep_there_stays() {
        let dir = tempfile::tempdir().unwrap();
        let compiled = Compiled::open(dir.path(), 1).unwrap();
        fs::write(dir.path().join("node.db"), "not ours").unwrap();
        fs::create_dir(dir.path().join("packages")).unwrap();
        fs::write(dir.path().join("a"), "a").unwrap();
        seal(&dir.path().join("a")).unwrap();
        compiled.keep(&dir.path().join("a"), "one", &dir.path().join("a")).unwrap();
        assert!(compiled.find(&dir.path().join("a"), "one").unwrap().is_none_or(|path| path.exists()));
        assert!(dir.path().join("node.db").exists() && dir.path().join("packages").exists());
    }

    #[test]
    fn what_was_used_longest_ago_goes_beyond_bytes_max() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let compiled = Compiled::open(&path("kept"), 2 * (10 + SUM_BYTES)).unwrap();
        let keep = |name: &str| {
            fs::write(path(name), name).unwrap();
            fs::write(path("code"), "ten bytes.").unwrap();
            seal(&path("code")).unwrap();
            compiled.keep(&path(name), "engine", &path("code")).unwrap();
            fs::remove_file(path("code")).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(10));
        };
        let takes = |name: &str| {
            let taken = compiled.take(&path(name), "engine", &path("out")).unwrap();
            let _ = fs::remove_file(path("out"));
            taken
        };
        keep("a");
        keep("b");
        assert!(takes("a"));
        std::thread::sleep(std::time::Duration::from_millis(10));
        keep("c");
        assert!(takes("a") && !takes("b") && takes("c"));
    }

    #[test]
    fn a_directory_of_others_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Compiled::open(dir.path(), 1).is_err());
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(Compiled::open(dir.path(), 1).is_ok());
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(Compiled::open(&file, 1).is_err());
    }
}
