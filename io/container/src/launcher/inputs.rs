// SPDX-License-Identifier: Apache-2.0
//! What the launcher puts into a new container's `/data`.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;

use netserv_model::limits::BLOB_BYTES_MAX;
use netserv_wire::container::media::{MediaLayer, MediaTask};
use rustix::fs::{AtFlags, Mode, OFlags};

use crate::protocol::names::COMPILE_INPUT;

/// Returns the name of one of the files that a compiler reads.
pub(super) fn compile_input(number: usize) -> String {
    format!("{COMPILE_INPUT}{number}.wasm")
}

/// Copies a module into `/data`, for everybody to read.
pub(super) fn copy_in(wasm: OwnedFd, name: &str, data: &OwnedFd) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut input = File::from(wasm).take(BLOB_BYTES_MAX + 1);
    let mut copy = File::from(rustix::fs::openat(data, name, flags, Mode::from_raw_mode(0o444))?);
    rustix::fs::chmodat(data, name, Mode::from_raw_mode(0o444), AtFlags::empty())?;
    let bytes = io::copy(&mut input, &mut copy)?;
    if bytes > BLOB_BYTES_MAX {
        return Err(io::Error::other(format!("the module is over {BLOB_BYTES_MAX} bytes")));
    }
    Ok(())
}

/// Returns the text that a task lays over pictures.
pub(super) fn text_of(task: &MediaTask) -> Option<&str> {
    match task.layer()? {
        MediaLayer::Text(text) => Some(text),
        MediaLayer::Png | MediaLayer::Jpeg => None,
    }
}

/// Writes a file for everybody to read.
pub(super) fn write_in(data: &OwnedFd, name: &str, bytes: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::openat(data, name, flags, Mode::from_raw_mode(0o444))?;
    File::from(file).write_all(bytes)
}
