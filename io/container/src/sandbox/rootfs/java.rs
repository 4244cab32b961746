// SPDX-License-Identifier: Apache-2.0
//! The root of Java workers: the worker, the parts of a Java installation that run programs, our own jars, and the few
//! files of a system that Java looks for.
//!
//! The installation keeps its own path, sizes and times, so that an archive of classes fits that was made in another
//! container. Where it links to files elsewhere, as Debian's does to `/etc`, these are there under the names by which
//! the links know them.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};

use super::libraries::libraries;
use super::mount::{DEVICE, READ_ONLY, READ_ONLY_DATA, bind, inside, write};
use super::template::write_resolver_files;
use crate::limits::{COPIED_FILE_BYTES_MAX, JARS_BYTES_MAX, JAVA_ENTRIES_MAX};
use crate::protocol::JvmSetup;
use crate::sandbox::paths::WORKER;

/// Where the jars of the host are inside a container, and what in the configured directory they are.
const JARS: [(&str, &str); 2] = [("host", "/java/host"), ("blocks", "/java/blocks")];
/// Where the directory with the archive of classes is inside a container.
const ARCHIVE: &str = "/java/archive";

/// Fills the root at `root`. Returns the libraries that have to be bound beside.
pub(super) fn fill(root: &Path, setup: &JvmSetup) -> io::Result<Vec<PathBuf>> {
    let home = &setup.java_home;
    bind(&setup.worker, &inside(root, Path::new(WORKER)), READ_ONLY)?;
    for part in ["lib", "conf"] {
        let directory = home.join(part);
        bind(&directory, &inside(root, &directory), READ_ONLY)?;
    }
    copy(&home.join("release"), &inside(root, &home.join("release")))?;
    let found = Installation::read(home)?;
    for (path, target) in &found.outside {
        place(target, &inside(root, path))?;
    }
    for (name, path) in JARS {
        copy_jars(&setup.host.join(name), &inside(root, Path::new(path)))?;
    }
    bind(&setup.archive, &inside(root, Path::new(ARCHIVE)), READ_ONLY)?;
    for device in ["/dev/null", "/dev/random", "/dev/urandom"] {
        bind(Path::new(device), &inside(root, Path::new(device)), DEVICE)?;
    }
    write_system_files(root, &setup.name_servers)?;
    hide_programs(root, home)?;
    let needed = libraries(&setup.worker, &found.libraries, &[home.join("lib/server"), home.join("lib")])?;
    Ok(needed.into_iter().filter(|library| !library.starts_with(home)).collect())
}

/// What is of interest in a Java installation's directories.
#[derive(Debug, Default)]
struct Installation {
    libraries: Vec<PathBuf>,
    /// Files that lie elsewhere: the path that a link names, and the file that is there in the end.
    outside: Vec<(PathBuf, PathBuf)>,
}

impl Installation {
    fn read(home: &Path) -> io::Result<Installation> {
        let mut found = Installation::default();
        let mut left = vec![home.join("lib"), home.join("conf")];
        let mut entries = 0;
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(&directory).map_err(named(&directory))? {
                entries += 1;
                if entries > JAVA_ENTRIES_MAX {
                    let text = format!("{} has over {JAVA_ENTRIES_MAX} files", home.display());
                    return Err(io::Error::other(text));
                }
                let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
                if kind.is_dir() {
                    left.push(path);
                } else if kind.is_symlink() {
                    found.follow(&path, home, &mut left);
                } else if is_library(&path) {
                    found.libraries.push(path);
                }
            }
        }
        found.libraries.sort();
        Ok(found)
    }

    /// Takes note of where a link leads, if that is outside of what is shown anyway. A link to nowhere is none.
    fn follow(&mut self, link: &Path, home: &Path, left: &mut Vec<PathBuf>) {
        let Ok(target) = fs::canonicalize(link) else { return };
        let Ok(named) = fs::read_link(link) else { return };
        let shown = target.starts_with(home.join("lib")) || target.starts_with(home.join("conf"));
        if shown || needs_a_display(link) || link.extension() == Some(OsStr::new("zip")) {
            return;
        }
        let path = normal(&link.parent().expect("a link has a directory").join(named));
        if path.starts_with(home.join("lib")) || path.starts_with(home.join("conf")) {
            // A link to a link, which is found itself.
            return;
        }
        if target.is_dir() {
            left.push(target.clone());
        }
        self.outside.push((path, target));
    }
}

fn is_library(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("so")) && !needs_a_display(path)
}

/// Tells libraries that serve a screen, a loudspeaker or a debugger, of which a container has none. They would draw in
/// half of a desktop.
fn needs_a_display(path: &Path) -> bool {
    const NAMES: [&str; 6] =
        ["libawt_xawt.so", "libatk-wrapper.so", "libsplashscreen.so", "libjawt.so", "libjsound.so", "libsaproc.so"];
    path.file_name().and_then(OsStr::to_str).is_some_and(|name| NAMES.contains(&name))
}

/// Returns a path without `.` and `..`, as the kernel would go if no directory of it were a link.
fn normal(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

/// Puts a file or directory there: small files as copies, since every mount costs each container's start some time.
fn place(source: &Path, target: &Path) -> io::Result<()> {
    let metadata = fs::metadata(source).map_err(named(source))?;
    if metadata.is_file() && metadata.len() <= COPIED_FILE_BYTES_MAX {
        copy(source, target)
    } else {
        bind(source, target, READ_ONLY_DATA)
    }
}

fn copy(source: &Path, target: &Path) -> io::Result<()> {
    if target.exists() {
        return Ok(());
    }
    fs::create_dir_all(target.parent().expect("a file has a directory")).map_err(named(target))?;
    let mut from = File::open(source).map_err(named(source))?;
    io::copy(&mut from, &mut File::create(target).map_err(named(target))?).map_err(named(source))?;
    Ok(())
}

/// Copies jars, so that containers have those of one version, also while others take their place.
fn copy_jars(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to).map_err(named(to))?;
    if !from.is_dir() {
        return Ok(());
    }
    let mut left = JARS_BYTES_MAX;
    for entry in fs::read_dir(from).map_err(named(from))? {
        let path = entry.map_err(named(from))?.path();
        let metadata = fs::metadata(&path).map_err(named(&path))?;
        let Some(name) = path.file_name().filter(|_| metadata.is_file()) else { continue };
        let over = || io::Error::other(format!("{} has over {JARS_BYTES_MAX} bytes", from.display()));
        left = left.checked_sub(metadata.len()).ok_or_else(over)?;
        let target = to.join(name);
        copy(&path, &target)?;
        // An archive of classes goes by the jars' times.
        let copied = File::options().write(true).open(&target).map_err(named(&target))?;
        copied.set_modified(metadata.modified()?).map_err(named(&target))?;
    }
    Ok(())
}

/// Writes what the C library and Java read of a system.
fn write_system_files(root: &Path, name_servers: &[IpAddr]) -> io::Result<()> {
    const FILES: [(&str, &str); 2] = [
        ("/etc/passwd", "container:x:0:0::/data:\n"),
        // Without this file, Java 17 takes it that there is no IPv6.
        ("/proc/net/if_inet6", "00000000000000000000000000000001 01 80 10 80       lo\n"),
    ];
    write_resolver_files(root, name_servers)?;
    FILES.into_iter().try_for_each(|(path, text)| write(&inside(root, Path::new(path)), text))
}

/// Lays an empty file over each program among the libraries: nothing but the worker is there to be executed.
fn hide_programs(root: &Path, home: &Path) -> io::Result<()> {
    let empty = inside(root, Path::new("/java/nothing"));
    File::create(&empty)?;
    for program in ["lib/jexec", "lib/jspawnhelper"].map(|program| home.join(program)) {
        if program.exists() {
            bind(&empty, &inside(root, &program), READ_ONLY_DATA)?;
        }
    }
    Ok(())
}

fn named(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_to_the_outside_are_found_under_the_names_that_they_use() {
        let directory = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(directory.path()).unwrap();
        let (home, etc) = (base.join("jdk"), base.join("etc"));
        for path in [home.join("lib/server"), home.join("conf"), etc.join("more")] {
            fs::create_dir_all(path).unwrap();
        }
        for path in [etc.join("a"), etc.join("more/b"), home.join("lib/libx.so"), home.join("lib/libawt_xawt.so")] {
            fs::write(path, "x").unwrap();
        }
        symlink(etc.join("a"), etc.join("chain")).unwrap();
        symlink("../../etc/chain", home.join("conf/a")).unwrap();
        symlink(etc.join("more"), home.join("conf/more")).unwrap();
        symlink("/nowhere/at/all", home.join("conf/dangling")).unwrap();
        symlink("libx.so", home.join("lib/liby.so")).unwrap();
        let mut found = Installation::read(&home).unwrap();
        found.outside.sort();
        let expected = [(etc.join("chain"), etc.join("a")), (etc.join("more"), etc.join("more"))];
        assert_eq!(found.outside, expected);
        assert_eq!(found.libraries, [home.join("lib/libx.so")]);
    }

    #[test]
    fn name_servers_are_where_the_c_library_looks() {
        let root = tempfile::tempdir().unwrap();
        write_system_files(root.path(), &["192.0.2.53".parse().unwrap(), "2001:db8::53".parse().unwrap()]).unwrap();
        let text = fs::read_to_string(root.path().join("etc/resolv.conf")).unwrap();
        assert!(text.starts_with("nameserver 192.0.2.53\nnameserver 2001:db8::53\noptions single-request "), "{text}");
    }

    #[test]
    fn jars_are_copied_with_their_times_up_to_a_bound() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("directory")).unwrap();
        fs::write(from.path().join("a.jar"), "jar").unwrap();
        let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        File::options().write(true).open(from.path().join("a.jar")).unwrap().set_modified(long_ago).unwrap();
        copy_jars(from.path(), to.path()).unwrap();
        copy_jars(&from.path().join("none"), &to.path().join("empty")).unwrap();
        let copied = to.path().join("a.jar");
        assert_eq!(fs::metadata(&copied).unwrap().modified().unwrap(), long_ago);
        assert_eq!(
            (fs::read_to_string(copied).unwrap().as_str(), fs::read_dir(to.path()).unwrap().count()),
            ("jar", 2)
        );
        File::create(from.path().join("b.jar")).unwrap().set_len(JARS_BYTES_MAX).unwrap();
        assert!(copy_jars(from.path(), to.path()).unwrap_err().to_string().contains("over"));
    }

    #[test]
    fn the_number_of_files_is_bounded() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("conf")).unwrap();
        fs::create_dir(home.path().join("lib")).unwrap();
        for number in 0..JAVA_ENTRIES_MAX {
            File::create(home.path().join(format!("lib/{number}"))).unwrap();
        }
        assert!(Installation::read(home.path()).is_ok());
        File::create(home.path().join("conf/one-more")).unwrap();
        assert!(Installation::read(home.path()).is_err());
    }
}
