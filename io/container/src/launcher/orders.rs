// SPDX-License-Identifier: Apache-2.0
//! What a spare process is told.

use std::os::fd::RawFd;

use netserv_model::Flavour;
use serde::{Deserialize, Serialize};

use crate::sandbox::rootfs::media::Program;

/// What a spare process has to become. Beside it go the file system for `/data`, the standard error, the network
/// namespace if there is to be one, a mount for each of `stores`, and one descriptor for each of `numbers`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Orders {
    pub(super) flavour: Flavour,
    /// The program of a media job; nothing for a worker.
    pub(super) media: Option<Program>,
    /// The user and group to run as; nothing in a user namespace that has one user only.
    pub(super) uid: Option<u32>,
    /// Bytes of the longest file.
    pub(super) file_bytes: u64,
    /// Processor time, in seconds, after which it is ended; nothing for what runs as long as it is wanted.
    pub(super) cpu_seconds: Option<u64>,
    pub(super) network: bool,
    /// Where mounted files go.
    pub(super) stores: Vec<String>,
    pub(super) arguments: Vec<String>,
    /// The numbers that the descriptors get.
    pub(super) numbers: Vec<RawFd>,
}
