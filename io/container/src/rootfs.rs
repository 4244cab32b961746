// SPDX-License-Identifier: Apache-2.0
//! What a container's file system shows: the worker, the libraries it is linked with, and `/data`.
//!
//! The launcher builds one read-only root in a mount namespace of its own; each container gets a copy of that namespace
//! and makes the root its own. Only the libraries that the dynamic loader names are there, each bound by itself, rather
//! than whole library directories: a worker needs about five files, and who takes it over finds no interpreter, no
//! shell and no tool. There is no `/proc`, `/sys` or `/dev`.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, mount_change, move_mount, open_tree,
};

use crate::limits::{DATA_ENTRIES_MAX, LIBRARIES_MAX};
use crate::sys;

/// The worker's path inside a container.
pub(crate) const WORKER: &str = "/worker";
/// The writable directory inside a container.
pub(crate) const DATA: &str = "/data";

/// The root that every container of a node shows.
#[derive(Debug)]
pub(crate) struct Template {
    /// Where it is mounted, in the launcher's mount namespace.
    pub(crate) path: PathBuf,
    /// Where the dynamic loader finds the libraries.
    pub(crate) library_path: String,
}

impl Template {
    /// Builds the root at `path`, an empty directory, in this process's mount namespace, which is its own.
    pub(crate) fn build(path: &Path, worker: &Path) -> io::Result<Template> {
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        let libraries = libraries(worker)?;
        let root = tmpfs(&[("size", "1m"), ("nr_inodes", "1024"), ("mode", "755")])?;
        move_mount(&root, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        fs::create_dir(path.join("data"))?;
        bind(worker, &path.join("worker"))?;
        for library in &libraries {
            bind(library, &path.join(library.strip_prefix("/").unwrap_or(library)))?;
        }
        let root = open_tree(CWD, path, OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
        sys::add_mount_attributes(&root, READ_ONLY)?;
        Ok(Template { path: path.to_owned(), library_path: library_path(&libraries) })
    }
}

/// Makes a file system in memory for one container's `/data`, not yet mounted anywhere.
pub(crate) fn data(bytes: u64, owner: u32) -> io::Result<OwnedFd> {
    let (size, entries, owner) = (bytes.to_string(), DATA_ENTRIES_MAX.to_string(), owner.to_string());
    tmpfs(&[("size", &size), ("nr_inodes", &entries), ("mode", "700"), ("uid", &owner), ("gid", &owner)])
}

const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

fn tmpfs(options: &[(&str, &str)]) -> io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(&context, *key, *value)?;
    }
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC
        | MountAttrFlags::MOUNT_ATTR_NOATIME;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

fn bind(source: &Path, target: &Path) -> io::Result<()> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", source.display()));
    fs::create_dir_all(target.parent().expect("a file has a directory")).map_err(named)?;
    File::create(target).map_err(named)?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let copy = open_tree(CWD, source, flags).map_err(|error| named(error.into()))?;
    sys::add_mount_attributes(&copy, READ_ONLY).map_err(named)?;
    move_mount(&copy, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    Ok(())
}

/// Returns the files that the dynamic loader would map for `program`, with the loader itself; none if the program is
/// linked statically.
pub(crate) fn libraries(program: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(loader) = interpreter(program)? else { return Ok(vec![]) };
    let output = Command::new(&loader).arg("--list").arg(program).env_clear().output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(format!("{} --list {}: {text}", loader.display(), program.display())));
    }
    let mut found = vec![loader];
    found.extend(parse_list(&String::from_utf8_lossy(&output.stdout)));
    found.sort();
    found.dedup();
    check_count(found)
}

fn check_count(libraries: Vec<PathBuf>) -> io::Result<Vec<PathBuf>> {
    match libraries.len() {
        0..=LIBRARIES_MAX => Ok(libraries),
        count => Err(io::Error::other(format!("the worker needs {count} libraries, over {LIBRARIES_MAX}"))),
    }
}

/// Reads lines such as `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x7f…)` and `/lib64/ld-linux… (0x7f…)`.
fn parse_list(text: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let line = line.trim();
        let target = line.split_once(" => ").map_or(line, |(_, target)| target);
        let path = target.rsplit_once(" (0x").map_or(target, |(path, _)| path);
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    text.lines().filter_map(path).collect()
}

fn library_path(libraries: &[PathBuf]) -> String {
    let mut directories: Vec<String> =
        libraries.iter().filter_map(|library| Some(library.parent()?.to_str()?.to_owned())).collect();
    directories.sort();
    directories.dedup();
    directories.join(":")
}

/// Returns the dynamic loader that a program names in its ELF header; nothing if it needs none.
fn interpreter(program: &Path) -> io::Result<Option<PathBuf>> {
    let mut head = vec![];
    let file = File::from(rustix::fs::open(program, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?);
    file.take(4096).read_to_end(&mut head)?;
    if head.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err(io::Error::other(format!("{} is no 64-bit little-endian ELF program", program.display())));
    }
    Ok(find_interpreter(&head))
}

fn find_interpreter(head: &[u8]) -> Option<PathBuf> {
    const PT_INTERP: usize = 3;
    let number = |at: usize, bytes: usize| -> Option<usize> {
        let raw = head.get(at..at.checked_add(bytes)?)?;
        let value = raw.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
        usize::try_from(value).ok()
    };
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let entry = (0..count).map_while(|index| table.checked_add(index * size));
    let entry = entry.take_while(|at| number(*at, 4).is_some()).find(|at| number(*at, 4) == Some(PT_INTERP))?;
    let (offset, length) = (number(entry + 8, 8)?, number(entry + 32, 8)?);
    let name = head.get(offset..offset.checked_add(length)?)?.split(|byte| *byte == 0).next()?;
    Some(PathBuf::from(std::str::from_utf8(name).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_list_is_read() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\
            \tlibgcc_s.so.1 => /lib/x86_64-linux-gnu/libgcc_s.so.1 (0x00007f3f)\n\
            \tlibgone.so => not found\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f40)\n\
            \t/lib/my dir/libx.so => /opt/my dir/libx.so (0x1)\n";
        let expected = ["/lib/x86_64-linux-gnu/libgcc_s.so.1", "/lib64/ld-linux-x86-64.so.2", "/opt/my dir/libx.so"];
        assert_eq!(parse_list(text), expected.map(PathBuf::from));
        assert_eq!(library_path(&expected.map(PathBuf::from)), "/lib/x86_64-linux-gnu:/lib64:/opt/my dir");
    }

    #[test]
    fn the_number_of_libraries_is_bounded() {
        assert!(check_count(vec![PathBuf::new(); LIBRARIES_MAX]).is_ok());
        assert!(check_count(vec![PathBuf::new(); LIBRARIES_MAX + 1]).is_err());
    }

    #[test]
    fn this_programs_own_loader_is_found() {
        let program = std::env::current_exe().unwrap();
        let loader = interpreter(&program).unwrap().expect("tests are linked dynamically");
        assert!(loader.is_absolute() && loader.exists(), "{}", loader.display());
        assert!(libraries(&program).unwrap().contains(&loader));
    }

    #[test]
    fn damaged_programs_are_errors_and_never_panic() {
        let program = std::env::current_exe().unwrap();
        let head = fs::read(program).unwrap()[..4096].to_vec();
        for at in 0..1024 {
            for byte in [0, 0x7f, 0xff] {
                let mut damaged = head.clone();
                damaged[at] = byte;
                find_interpreter(&damaged);
                find_interpreter(&damaged[..at]);
            }
        }
        let script = tempfile::NamedTempFile::new().unwrap();
        fs::write(script.path(), "#!/bin/sh\n").unwrap();
        assert!(libraries(script.path()).is_err());
    }
}
