// SPDX-License-Identifier: Apache-2.0
//! Containers with real walls.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
mod intercept;
mod intercepting_worker;
mod java;
mod lifecycle;
mod measure;
mod media;
mod network;
mod ring;
mod sandbox;
mod server;
mod storage;
mod triple;
