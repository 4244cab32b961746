// SPDX-License-Identifier: Apache-2.0
//! Bundles as files of the container's own, from which Java loads classes as long as they run.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use netserv_model::{Refusal, RefusalKind};

use crate::limits;

/// The directory of the bundles.
#[derive(Debug)]
pub struct Bundles {
    folder: PathBuf,
    next: u64,
}

impl Bundles {
    /// Makes the directory inside `data`, and one for temporary files beside it.
    ///
    /// # Errors
    /// They cannot be made.
    pub fn open(data: &Path) -> io::Result<Bundles> {
        let folder = data.join("bundles");
        fs::create_dir_all(&folder)?;
        fs::create_dir_all(data.join("tmp"))?;
        Ok(Bundles { folder, next: 0 })
    }

    /// Copies a bundle into a file of a new name, which Java takes away when the bundle is gone.
    ///
    /// # Errors
    /// [`RefusalKind::PackageTooLarge`] if it is longer than [`limits::BUNDLE_BYTES_MAX`] or `/data` has no room
    /// for it, [`RefusalKind::NodeFailed`] if it cannot be copied.
    pub fn add(&mut self, bundle: File) -> Result<PathBuf, Refusal> {
        let path = self.folder.join(format!("{}.jar", self.next));
        self.next += 1;
        copy(bundle, &path, limits::BUNDLE_BYTES_MAX).inspect_err(|_| remove(&path))?;
        Ok(path)
    }
}

/// Takes away a bundle that is of no use. It may be gone already.
pub fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}

fn copy(bundle: File, path: &Path, bytes_max: u64) -> Result<(), Refusal> {
    let failed = |error: io::Error| {
        if [io::ErrorKind::StorageFull, io::ErrorKind::FileTooLarge].contains(&error.kind()) {
            Refusal::new(RefusalKind::PackageTooLarge, "the container's directory has no room for the bundle")
        } else {
            Refusal::new(RefusalKind::NodeFailed, format!("cannot copy the bundle: {error}"))
        }
    };
    let mut file = File::create(path).map_err(failed)?;
    let copied = io::copy(&mut bundle.take(bytes_max + 1), &mut file).map_err(failed)?;
    if copied > bytes_max {
        let detail = format!("the bundle is longer than {bytes_max} bytes");
        return Err(Refusal::new(RefusalKind::PackageTooLarge, detail));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use super::*;

    fn file(length: usize) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; length]).unwrap();
        file.rewind().unwrap();
        file
    }

    #[test]
    fn each_bundle_has_its_own_file() {
        let data = tempfile::tempdir().unwrap();
        let mut bundles = Bundles::open(data.path()).unwrap();
        let (first, second) = (bundles.add(file(3)).unwrap(), bundles.add(file(4)).unwrap());
        assert_eq!((fs::read(&first).unwrap().len(), fs::read(second).unwrap().len()), (3, 4));
        remove(&first);
        remove(&first);
        assert!(!first.exists());
        assert!(data.path().join("tmp").is_dir());
    }

    #[test]
    fn a_bundle_too_long_is_refused_and_leaves_nothing() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join("x.jar");
        assert!(copy(file(100), &path, 100).is_ok());
        assert_eq!(copy(file(101), &path, 100).unwrap_err().kind, RefusalKind::PackageTooLarge);
        let mut bundles = Bundles::open(data.path()).unwrap();
        let sparse = tempfile::tempfile().unwrap();
        sparse.set_len(limits::BUNDLE_BYTES_MAX + 1).unwrap();
        assert_eq!(bundles.add(sparse).unwrap_err().kind, RefusalKind::PackageTooLarge);
        assert_eq!(fs::read_dir(data.path().join("bundles")).unwrap().count(), 0);
    }
}
