// SPDX-License-Identifier: Apache-2.0
//! A root that containers share.

use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use super::libraries::library_path;
use super::mount::{READ_ONLY, bind, inside, tmpfs, write};
use crate::sandbox::paths::{DATA, STORE, STORE_CACHE, STORE_KV};
use crate::sys;

/// The root that every container of a node and flavour shows.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    /// Where it is mounted, in the launcher's mount namespace.
    pub(crate) path: PathBuf,
    /// Where the dynamic loader finds the libraries.
    pub(crate) library_path: String,
}

impl Template {
    /// Has `fill` put files into a new root, binds the libraries that it returns, and makes the root read-only.
    pub(super) fn build(
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

/// Writes what the C library reads to find the address of a name.
pub(super) fn write_resolver_files(root: &Path, name_servers: &[IpAddr]) -> io::Result<()> {
    let servers: String = name_servers.iter().map(|server| format!("nameserver {server}\n")).collect();
    let resolver = format!("{servers}{RESOLVER_OPTIONS}");
    let files = [
        ("/etc/hosts", "127.0.0.1 localhost container\n::1 localhost container\n"),
        ("/etc/nsswitch.conf", "passwd: files\nhosts: files dns\n"),
        ("/etc/resolv.conf", resolver.as_str()),
    ];
    files.into_iter().try_for_each(|(path, text)| write(&inside(root, Path::new(path)), text))
}

/// `single-request`: the C library would ask for IPv4 and IPv6 addresses by one `sendmmsg`, which Wasm workers may not make: it
/// sends descriptors, too, and they can copy the control socket's. One after the other, the questions go by `sendto`.
/// The times keep a server that is silent from taking all the time that a connection has: with one of two silent, two seconds.
const RESOLVER_OPTIONS: &str = "options single-request timeout:1 attempts:3\n";
