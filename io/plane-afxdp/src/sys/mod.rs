// SPDX-License-Identifier: Apache-2.0
//! System calls and memory shared with the kernel, for `afxdp`.
#![allow(unsafe_code, reason = "bpf(2), mapped rings and packet memory, device ioctls")]

pub(super) mod bpf;
pub(super) mod device;
pub(super) mod memory;
pub(super) mod ring;
