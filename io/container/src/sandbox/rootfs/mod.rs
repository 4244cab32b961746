// SPDX-License-Identifier: Apache-2.0
//! What a container's file system shows: the worker, the libraries it is linked with, `/data`, and `/store`.
//!
//! The launcher builds one read-only root per flavour in a mount namespace of its own; each container gets a copy of
//! that namespace and makes one of the roots its own. Only the libraries that the dynamic loader names are there, each
//! bound by itself, rather than whole library directories: a Wasm worker needs about five files, and who takes it over
//! finds no interpreter, no shell and no tool. What it reads to look up names is in `/etc`. There is no `/proc`, `/sys` or `/dev`, of which a Java worker gets a few
//! files ([`java`]).

mod java;
mod libraries;
pub(crate) mod media;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use netserv_model::limits::AUTHORITIES_BYTES_MAX;
use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, mount_change, move_mount, open_tree,
};

use crate::limits::DATA_ENTRIES_MAX;
use crate::protocol::{JvmSetup, Setup};
use crate::sandbox::storage::{STORE_CACHE, STORE_KV};
use crate::sys;
use libraries::{libraries, library_path};

/// The worker's path inside a container.
pub(crate) const WORKER: &str = "/worker";
/// The writable directory inside a container.
pub(crate) const DATA: &str = "/data";
/// Where the files are that outlive a container ([`storage`](crate::sandbox::storage)).
const STORE: &str = "/store";
/// Where certificate authorities are that the operator added.
const AUTHORITIES: &str = "/etc/authorities.pem";
/// What a container may write to beside its directory, if it is there.
pub(crate) const NULL: &str = "/dev/null";

/// The root that every container of a node and flavour shows.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    /// Where it is mounted, in the launcher's mount namespace.
    pub(crate) path: PathBuf,
    /// Where the dynamic loader finds the libraries.
    pub(crate) library_path: String,
}

impl Template {
    /// Builds the root of Wasm workers in the empty directory that `setup` names, in this process's mount namespace,
    /// which is its own ([`isolate`]).
    pub(crate) fn wasm(setup: &Setup) -> io::Result<Template> {
        let Setup { root, worker, name_servers, authorities, .. } = setup;
        Template::build(root, &[("size", "1m"), ("nr_inodes", "1024"), ("mode", "755")], || {
            bind(worker, &inside(root, Path::new(WORKER)), READ_ONLY)?;
            write_resolver_files(root, name_servers)?;
            if let Some(authorities) = authorities {
                copy(authorities, &inside(root, Path::new(AUTHORITIES)), AUTHORITIES_BYTES_MAX)?;
            }
            libraries(worker, &[], &[])
        })
    }

    /// Builds the root of Java workers, likewise.
    pub(crate) fn osgi(path: &Path, setup: &JvmSetup) -> io::Result<Template> {
        Template::build(path, &[("size", "16m"), ("nr_inodes", "4096"), ("mode", "755")], || java::fill(path, setup))
    }

    /// Has `fill` put files into a new root, binds the libraries that it returns, and makes the root read-only.
    fn build(
        path: &Path,
        options: &[(&str, &str)],
        fill: impl FnOnce() -> io::Result<Vec<PathBuf>>,
    ) -> io::Result<Template> {
        let root = tmpfs(options)?;
        move_mount(&root, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        fs::create_dir(inside(path, Path::new(DATA)))?;
        fs::create_dir(inside(path, Path::new(STORE)))?;
        for place in [STORE_KV, STORE_CACHE] {
            File::create(inside(path, Path::new(place)))?;
        }
        let libraries = fill()?;
        for library in &libraries {
            bind(library, &inside(path, library), READ_ONLY)?;
        }
        let root = open_tree(CWD, path, OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
        sys::add_mount_attributes(&root, READ_ONLY)?;
        Ok(Template { path: path.to_owned(), library_path: library_path(&libraries) })
    }
}

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

/// Writes what the C library reads to find the address of a name.
fn write_resolver_files(root: &Path, name_servers: &[IpAddr]) -> io::Result<()> {
    let servers: String = name_servers.iter().map(|server| format!("nameserver {server}\n")).collect();
    let files = [
        ("/etc/hosts", "127.0.0.1 localhost container\n::1 localhost container\n"),
        ("/etc/nsswitch.conf", "passwd: files\nhosts: files dns\n"),
        ("/etc/resolv.conf", servers.as_str()),
    ];
    files.into_iter().try_for_each(|(path, text)| write(&inside(root, Path::new(path)), text))
}

/// Copies a file that is not longer than it may be.
fn copy(from: &Path, to: &Path, bytes_max: u64) -> io::Result<()> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", from.display()));
    let mut text = String::new();
    let length = File::open(from).and_then(|file| file.take(bytes_max + 1).read_to_string(&mut text)).map_err(named)?;
    if length as u64 > bytes_max {
        return Err(named(io::Error::other(format!("it is over {bytes_max} bytes"))));
    }
    write(to, &text)
}

/// Writes a file, and makes its directory if it is not there.
fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::create_dir_all(path.parent().expect("a file has a directory"))?;
    fs::write(path, text)
}

const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
const STORED: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC;
const READ_ONLY_DATA: u64 = READ_ONLY | libc::MOUNT_ATTR_NOEXEC;
/// A device is as writable on a read-only mount as on any other.
const DEVICE: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC;

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

/// Returns where the absolute `path` of a root at `root` is now.
fn inside(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Shows a file or a directory, without what is mounted below it, at `target`, which is made if it is not there.
fn bind(source: &Path, target: &Path, attributes: u64) -> io::Result<()> {
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
