// SPDX-License-Identifier: Apache-2.0
//! The Java that runs OSGi modules: which one there is, what it is called, and the archive that lets it start faster.

use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, UNIX_EPOCH};

use netserv_container::{ARCHIVE_FILE, BuildLimits, JvmFiles};

use super::keeper::Keeper;
use crate::config::{Config, Osgi};

/// What OSGi modules run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jvm {
    /// What the launcher works with.
    pub files: JvmFiles,
    /// The version of Java by which modules may depend on it: 17.
    pub java: u32,
    /// All of it for people: `Felix 7.0.5 (OSGi Core 8) on OpenJDK 17.0.15`.
    pub engine: String,
}

/// Why there is nothing to run OSGi modules on, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// What is missing.
    pub what: String,
    /// What to do.
    pub fix: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; fix: {}", self.what, self.fix)
    }
}

/// The oldest Java that runs modules.
pub const JAVA_VERSION_MIN: u32 = 17;
/// The version of OSGi Core by which modules may depend on it.
pub const OSGI_VERSION: u32 = 8;

impl Jvm {
    /// Looks for all that OSGi modules need, where the configuration says or where it usually is.
    ///
    /// # Errors
    /// The first thing that is missing.
    pub fn find(config: &Config) -> Result<Jvm, Missing> {
        let Osgi { java_home, host, worker, .. } = &config.osgi;
        let beside = |name: &str| std::env::current_exe().unwrap_or_default().with_file_name(name);
        let or = |path: &Path, name| if path.as_os_str().is_empty() { beside(name) } else { path.to_owned() };
        let (worker, host) = (or(worker, "netserv-jvm"), or(host, "netserv-java"));
        let fix = |key, name: &str| format!("install {name} beside netservd, or set osgi.{key} to where it is");
        if !worker.is_file() {
            return Err(missing(format!("{} is not there", worker.display()), fix("worker", "netserv-jvm")));
        }
        let framework = host.join("host").join(FRAMEWORK);
        let Some(felix) = framework_version(&framework) else {
            let what = format!("{} is not there, or is no bundle", framework.display());
            return Err(missing(what, fix("host", "netserv-java")));
        };
        let (home, release) = Release::find(java_home)?;
        let engine = format!("Felix {felix} (OSGi Core {OSGI_VERSION}) on OpenJDK {}", release.version);
        let archives = match config.osgi.archive.as_os_str().is_empty() {
            true => config.state_dir.join(ARCHIVES),
            false => config.osgi.archive.clone(),
        };
        let archive = archives.join(fingerprint(&home, &worker, &host));
        let name_servers = config.name_servers().to_vec();
        let files = JvmFiles { worker, java_home: home, host, archive, name_servers };
        Ok(Jvm { files, java: release.feature, engine })
    }

    /// Makes the archive of classes, on a thread of its own, unless there is one for just these files. Workers start
    /// without it too, but in twice the time. Of the archives in the state directory this one is left.
    pub fn make_archive(&self, state_dir: &Path, keeper: Arc<Keeper>) {
        let directory = self.files.archive.clone();
        if directory.parent() == Some(&state_dir.join(ARCHIVES)) {
            sweep(&directory);
        }
        let out = directory.join(ARCHIVE_FILE);
        if out.exists() {
            return;
        }
        let make = move || {
            let begun = Instant::now();
            let made = keeper.launcher().and_then(|launcher| launcher.archive(&out, &BuildLimits::ARCHIVE));
            match made {
                Ok(()) => tracing::info!(took = ?begun.elapsed(), "Java's classes are archived for quicker starts"),
                Err(refusal) => tracing::warn!(%refusal, "Java starts without an archive of its classes"),
            }
        };
        if let Err(error) = std::thread::Builder::new().name("java-archive".into()).spawn(make) {
            tracing::warn!(%error, "Java starts without an archive of its classes");
        }
    }
}

/// Where archives are in the state directory unless the operator says otherwise, each in a directory named after what it
/// was made of.
const ARCHIVES: &str = "jvm";
/// The jar of the OSGi framework among those of the host.
const FRAMEWORK: &str = "org.apache.felix.framework.jar";
/// Where distributions put their Java installations.
const INSTALLATIONS: &str = "/usr/lib/jvm";
/// Bytes of a `release` file or a framework that are read at most.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What a Java installation says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Release {
    /// The number before the first dot.
    feature: u32,
    /// `17.0.15`.
    version: String,
}

impl Release {
    /// Takes the installation that is configured, else the one of `JAVA_HOME`, else the newest of the machine.
    fn find(configured: &Path) -> Result<(PathBuf, Release), Missing> {
        if !configured.as_os_str().is_empty() {
            let found = Release::read(configured);
            return found.map_err(|what| missing(what, "set osgi.java-home to a Java that is there".to_owned()));
        }
        let named = std::env::var_os("JAVA_HOME").filter(|home| !home.is_empty());
        if let Some(found) = named.and_then(|home| Release::read(Path::new(&home)).ok()) {
            return Ok(found);
        }
        Release::newest(Path::new(INSTALLATIONS)).ok_or_else(|| {
            let what = format!("there is no Java {JAVA_VERSION_MIN} or later in {INSTALLATIONS}");
            missing(what, "install openjdk-17-jre-headless (Debian), or set osgi.java-home".to_owned())
        })
    }

    fn newest(directory: &Path) -> Option<(PathBuf, Release)> {
        let entries = fs::read_dir(directory).ok()?.flatten();
        let found = entries.filter_map(|entry| Release::read(&entry.path()).ok());
        found.max_by(|(one, a), (other, b)| (a.numbers(), one).cmp(&(b.numbers(), other)))
    }

    /// Reads the installation at `home`, and returns its real path with it.
    fn read(home: &Path) -> Result<(PathBuf, Release), String> {
        let path = fs::canonicalize(home).map_err(|error| format!("{}: {error}", home.display()))?;
        for file in ["lib/server/libjvm.so", "lib/modules"] {
            if !path.join(file).is_file() {
                return Err(format!("{} has no {file}", path.display()));
            }
        }
        let text = read_bounded(&path.join("release")).unwrap_or_default();
        let release = Release::parse(&String::from_utf8_lossy(&text));
        let release = release.ok_or_else(|| format!("{} has no file `release` with a version", path.display()))?;
        if release.feature < JAVA_VERSION_MIN {
            let Release { version, .. } = release;
            return Err(format!("{} is Java {version}, older than {JAVA_VERSION_MIN}", path.display()));
        }
        Ok((path, release))
    }

    fn parse(text: &str) -> Option<Release> {
        let version = text.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?.trim().trim_matches('"');
        let printable = version.bytes().all(|byte| byte.is_ascii_graphic());
        let feature = version.split(['.', '-', '+', '_']).next()?.parse().ok()?;
        (printable && version.len() <= 32).then(|| Release { feature, version: version.to_owned() })
    }

    /// Returns the version as numbers, to be compared.
    fn numbers(&self) -> Vec<u32> {
        self.version.split(['.', '-', '+', '_']).map_while(|part| part.parse().ok()).collect()
    }
}

/// Returns the version that the framework's jar names.
fn framework_version(jar: &Path) -> Option<String> {
    let headers = netserv_repository::bundle::headers(&read_bounded(jar)?).ok()?;
    let version = headers.get("bundle-version")?.trim();
    let printable = version.bytes().all(|byte| byte.is_ascii_graphic());
    (printable && version.len() <= 32).then(|| version.to_owned())
}

fn read_bounded(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = vec![];
    let read = fs::File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    (u64::try_from(read).ok()? < FILE_BYTES_MAX).then_some(bytes)
}

/// Returns a name for an archive: another one whenever Java would refuse it for what has changed.
fn fingerprint(home: &Path, worker: &Path, host: &Path) -> String {
    let jars = fs::read_dir(host.join("host")).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = jars.collect();
    files.sort();
    files.extend([home.join("lib/modules"), home.join("lib/server/libjvm.so"), worker.to_owned()]);
    let described = files.iter().map(|file| {
        let metadata = fs::metadata(file).ok();
        let changed = metadata.as_ref().and_then(|one| one.modified().ok()?.duration_since(UNIX_EPOCH).ok());
        format!("{} {:?} {changed:?}\n", file.display(), metadata.map(|one| one.len()))
    });
    // FNV-1a: a name, not a secret.
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = described.flat_map(String::into_bytes).fold(0xcbf2_9ce4_8422_2325, step);
    format!("{hash:016x}")
}

/// Removes archives of what was there before.
fn sweep(in_use: &Path) {
    let others = in_use.parent().and_then(|directory| fs::read_dir(directory).ok()).into_iter().flatten().flatten();
    for other in others.map(|entry| entry.path()).filter(|path| path != in_use) {
        // One that stays takes space, and no more.
        let _ = fs::remove_dir_all(other);
    }
}

fn missing(what: String, fix: String) -> Missing {
    Missing { what, fix }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_java_writes_them() {
        check_version("JAVA_VERSION=\"17.0.15\"", Some((17, &[17, 0, 15])));
        check_version("IMPLEMENTOR=\"Debian\"\nJAVA_VERSION=\"25\"\n", Some((25, &[25])));
        check_version("JAVA_VERSION=\"1.8.0_402\"", Some((1, &[1, 8, 0, 402])));
        check_version("JAVA_VERSION=\"26-ea\"", Some((26, &[26])));
        check_version("JAVA_VERSION=\"seventeen\"", None);
        check_version("JAVA_VERSION=\"17.\u{1b}[2J\"", None);
        check_version(&format!("JAVA_VERSION=\"17.{}\"", "0".repeat(40)), None);
        check_version("", None);
    }

    #[test]
    fn the_newest_installation_that_is_new_enough_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        for (name, version) in [("a", "17.0.9"), ("b", "17.0.15"), ("c", "1.8.0_402"), ("d", "11.0.2")] {
            install(&directory.path().join(name), version);
        }
        fs::create_dir(directory.path().join("openjdk-17")).unwrap();
        std::os::unix::fs::symlink("b", directory.path().join("zz-default")).unwrap();
        let (home, release) = Release::newest(directory.path()).unwrap();
        assert_eq!((home.file_name().unwrap().to_str(), release.version.as_str()), (Some("b"), "17.0.15"));
        assert!(Release::newest(&directory.path().join("openjdk-17")).is_none());
        let old = Release::find(&directory.path().join("d")).unwrap_err();
        assert!(old.what.contains("11.0.2") && old.fix.contains("osgi.java-home"), "{old}");
        for file in ["lib/modules", "lib/server/libjvm.so"] {
            fs::remove_file(directory.path().join("a").join(file)).unwrap();
            let broken = Release::find(&directory.path().join("a")).unwrap_err();
            assert!(broken.what.ends_with(file), "{broken}");
        }
    }

    #[test]
    fn what_is_missing_is_named_with_its_remedy() {
        let directory = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.osgi.worker = directory.path().join("netserv-jvm");
        config.osgi.host = directory.path().to_owned();
        let missing = Jvm::find(&config).unwrap_err();
        assert!(missing.what.contains("netserv-jvm") && missing.fix.contains("osgi.worker"), "{missing}");
        fs::write(&config.osgi.worker, "").unwrap();
        let missing = Jvm::find(&config).unwrap_err();
        assert!(missing.what.contains(FRAMEWORK) && missing.fix.contains("osgi.host"), "{missing}");
    }

    #[test]
    fn an_archive_belongs_to_just_these_files() {
        let directory = tempfile::tempdir().unwrap();
        let (home, host) = (directory.path().join("java"), directory.path().join("host"));
        install(&home, "17.0.15");
        fs::create_dir_all(host.join("host")).unwrap();
        let name = || fingerprint(&home, &directory.path().join("worker"), &host);
        let before = name();
        assert_eq!(name(), before);
        fs::write(host.join("host/a.jar"), "x").unwrap();
        let with_jar = name();
        assert_ne!(with_jar, before);
        fs::write(home.join("lib/server/libjvm.so"), "another").unwrap();
        assert_ne!(name(), with_jar);

        let archives = directory.path().join(ARCHIVES);
        for name in [&before, &with_jar] {
            fs::create_dir_all(archives.join(name)).unwrap();
        }
        sweep(&archives.join(&with_jar));
        assert_eq!(fs::read_dir(&archives).unwrap().count(), 1);
        assert!(archives.join(&with_jar).exists());
    }

    fn install(home: &Path, version: &str) {
        fs::create_dir_all(home.join("lib/server")).unwrap();
        for file in ["lib/server/libjvm.so", "lib/modules"] {
            fs::write(home.join(file), "").unwrap();
        }
        fs::write(home.join("release"), format!("JAVA_VERSION=\"{version}\"\n")).unwrap();
    }

    fn check_version(text: &str, expected: Option<(u32, &[u32])>) {
        let found = Release::parse(text).map(|release| (release.feature, release.numbers()));
        assert_eq!(found, expected.map(|(feature, numbers)| (feature, numbers.to_vec())), "{text}");
    }
}
