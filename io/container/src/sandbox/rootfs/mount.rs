// SPDX-License-Identifier: Apache-2.0
//! File systems, binds and files that a root is made of.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, mount_change, move_mount, open_tree,
};

use crate::limits::DATA_ENTRIES_MAX;
use crate::sys;

/// Returns a mount of one file that can be written, and nothing else be done with, not yet mounted anywhere.
pub(crate) fn writable_file(path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let copy = open_tree(CWD, path, flags)?;
    sys::add_mount_attributes(&copy, STORED)?;
    Ok(copy)
}

/// Keeps the mounts of this process's mount namespace, which is its own, from being seen elsewhere.
pub(crate) fn isolate() -> io::Result<()> {
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// Makes a file system in memory for one container's `/data`, not yet mounted anywhere.
pub(crate) fn data(bytes: u64, owner: u32) -> io::Result<OwnedFd> {
    let (size, entries, owner) = (bytes.to_string(), DATA_ENTRIES_MAX.to_string(), owner.to_string());
    tmpfs(&[("size", &size), ("nr_inodes", &entries), ("mode", "700"), ("uid", &owner), ("gid", &owner)])
}

/// Copies a file that is not longer than it may be.
pub(super) fn copy(from: &Path, to: &Path, bytes_max: u64) -> io::Result<()> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", from.display()));
    let mut text = String::new();
    let length = File::open(from).and_then(|file| file.take(bytes_max + 1).read_to_string(&mut text)).map_err(named)?;
    if length as u64 > bytes_max {
        return Err(named(io::Error::other(format!("it is over {bytes_max} bytes"))));
    }
    write(to, &text)
}

/// Writes a file, and makes its directory if it is not there.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::create_dir_all(path.parent().expect("a file has a directory"))?;
    fs::write(path, text)
}

pub(super) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
pub(super) const STORED: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC;
pub(super) const READ_ONLY_DATA: u64 = READ_ONLY | libc::MOUNT_ATTR_NOEXEC;
/// A device is as writable on a read-only mount as on any other.
pub(super) const DEVICE: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC;

pub(super) fn tmpfs(options: &[(&str, &str)]) -> io::Result<OwnedFd> {
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

/// Returns where the absolute `path` of a root at `root` is now.
pub(super) fn inside(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Shows a file or a directory, without what is mounted below it, at `target`, which is made if it is not there.
pub(super) fn bind(source: &Path, target: &Path, attributes: u64) -> io::Result<()> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", source.display()));
    if source.is_dir() {
        fs::create_dir_all(target).map_err(named)?;
    } else if !target.exists() {
        fs::create_dir_all(target.parent().expect("a file has a directory")).map_err(named)?;
        File::create(target).map_err(named)?;
    }
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let copy = open_tree(CWD, source, flags).map_err(|error| named(error.into()))?;
    sys::add_mount_attributes(&copy, attributes).map_err(named)?;
    move_mount(&copy, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    Ok(())
}
