// SPDX-License-Identifier: Apache-2.0
//! End-to-end tests, one program for all: each test is a process of its own under `./dev test`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[macro_use]
mod common;
#[path = "../../../io/repository/tests/all/common/tar_file.rs"]
mod tar_file;

mod house;
mod moves;
mod node;
mod signaling;
mod sip;
mod streams;
mod web;
