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
mod mount;
mod template;

use std::io;
use std::path::Path;

use netserv_model::limits::AUTHORITIES_BYTES_MAX;

use crate::protocol::{JvmSetup, Setup};
use crate::sandbox::paths::{AUTHORITIES, WORKER};
use libraries::libraries;
use mount::{READ_ONLY, bind, copy, inside};
use template::write_resolver_files;

pub(crate) use mount::{data, isolate, writable_file};
pub(crate) use template::Template;

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
    Template::build(path, &[("size", "48m"), ("nr_inodes", "4096"), ("mode", "755")], || java::fill(path, setup))
}
