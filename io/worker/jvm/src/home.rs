// SPDX-License-Identifier: Apache-2.0
//! Where the JVM and the Java part of NetServ are.

use std::io;
use std::path::{Path, PathBuf};

/// An installed JDK or Java runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JavaHome {
    /// Its directory.
    pub path: PathBuf,
    /// Its feature release, such as 17.
    pub version: u32,
}

/// Why there is no JVM to be had.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// No Java was named, and none is found.
    #[error("no Java found: name one by --java-home or JAVA_HOME")]
    NotFound,
    /// The directory holds no JVM.
    #[error("{0} holds no lib/server/libjvm.so")]
    NoJvm(PathBuf),
    /// Its file `release` does not say which version it is.
    #[error("{0}/release names no JAVA_VERSION")]
    NoVersion(PathBuf),
    /// It is older than what bundles are built for.
    #[error("{path} is Java {version}, {needed} is the oldest that runs bundles")]
    TooOld {
        /// Its directory.
        path: PathBuf,
        /// Its feature release.
        version: u32,
        /// The oldest that does.
        needed: u32,
    },
}

/// The oldest Java that runs `java/host`.
pub const JAVA_VERSION_MIN: u32 = 17;

impl JavaHome {
    /// Looks at the Java in `path`.
    ///
    /// # Errors
    /// [`HomeError`] if it holds no JVM that runs bundles.
    pub fn open(path: &Path) -> Result<JavaHome, HomeError> {
        let path = path.to_owned();
        if !path.join("lib/server/libjvm.so").is_file() {
            return Err(HomeError::NoJvm(path));
        }
        let release = std::fs::read_to_string(path.join("release")).unwrap_or_default();
        match feature_release(&release) {
            Some(version) if version >= JAVA_VERSION_MIN => Ok(JavaHome { path, version }),
            Some(version) => Err(HomeError::TooOld { path, version, needed: JAVA_VERSION_MIN }),
            None => Err(HomeError::NoVersion(path)),
        }
    }

    /// Finds the Java that `JAVA_HOME` or the search path names.
    ///
    /// # Errors
    /// [`HomeError`] if there is none, or it holds no JVM that runs bundles.
    pub fn find() -> Result<JavaHome, HomeError> {
        if let Some(home) = std::env::var_os("JAVA_HOME").filter(|home| !home.is_empty()) {
            return JavaHome::open(Path::new(&home));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let launcher = std::env::split_paths(&path).find_map(|folder| folder.join("java").canonicalize().ok());
        let home = launcher.as_deref().and_then(Path::parent).and_then(Path::parent).ok_or(HomeError::NotFound)?;
        JavaHome::open(home)
    }

    /// Returns the JVM's library.
    pub fn libjvm(&self) -> PathBuf {
        self.path.join("lib/server/libjvm.so")
    }
}

/// The directories of the Java part, inside a container unless they are given.
#[derive(Clone, Debug, clap::Args)]
pub struct Places {
    /// The directory of the host's jar files.
    #[arg(long, hide = true, default_value = "/java/host")]
    pub host: PathBuf,
    /// The directory of the building blocks' bundles.
    #[arg(long, hide = true, default_value = "/java/blocks")]
    pub blocks: PathBuf,
    /// A directory to write to.
    #[arg(long, hide = true, default_value = "/data")]
    pub data: PathBuf,
}

/// Returns the jar files of a directory, sorted.
///
/// # Errors
/// The directory cannot be read.
pub fn jars(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut jars = paths.collect::<io::Result<Vec<PathBuf>>>()?;
    jars.retain(|path| path.extension().is_some_and(|extension| extension == "jar"));
    jars.sort();
    Ok(jars)
}

/// Returns the jar files of a directory, sorted and separated by colons.
///
/// # Errors
/// The directory cannot be read, or holds none.
pub fn class_path(host: &Path) -> io::Result<String> {
    let jars: Vec<_> = jars(host)?.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    if jars.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "no jar files"));
    }
    Ok(jars.join(":"))
}

fn feature_release(release: &str) -> Option<u32> {
    let version = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    let digits: String = version.trim_matches('"').chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_feature_release_is_read() {
        assert_eq!(feature_release("IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"17.0.15\"\n"), Some(17));
        assert_eq!(feature_release("JAVA_VERSION=\"25\""), Some(25));
        assert_eq!(feature_release("JAVA_VERSION=\"1.8.0_402\""), Some(1));
        assert_eq!(feature_release("JAVA_VERSION=\"\""), None);
        assert_eq!(feature_release(""), None);
    }

    #[test]
    fn what_is_no_java_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        assert!(matches!(JavaHome::open(home), Err(HomeError::NoJvm(_))));
        std::fs::create_dir_all(home.join("lib/server")).unwrap();
        std::fs::write(home.join("lib/server/libjvm.so"), "").unwrap();
        assert!(matches!(JavaHome::open(home), Err(HomeError::NoVersion(_))));
        std::fs::write(home.join("release"), "JAVA_VERSION=\"11.0.2\"").unwrap();
        assert!(matches!(JavaHome::open(home), Err(HomeError::TooOld { version: 11, .. })));
        std::fs::write(home.join("release"), "JAVA_VERSION=\"21.0.2\"").unwrap();
        assert_eq!(JavaHome::open(home).unwrap(), JavaHome { path: home.to_owned(), version: 21 });
    }

    #[test]
    fn the_class_path_is_sorted_and_not_empty() {
        let folder = tempfile::tempdir().unwrap();
        assert!(class_path(folder.path()).is_err());
        for name in ["b.jar", "a.jar", "c.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let at = folder.path().display();
        assert_eq!(class_path(folder.path()).unwrap(), format!("{at}/a.jar:{at}/b.jar"));
    }
}
