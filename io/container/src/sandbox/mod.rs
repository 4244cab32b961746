// SPDX-License-Identifier: Apache-2.0
//! The walls around a process: what it may use, see and call. Knows neither the node nor the launcher.

pub(crate) mod cgroup;
pub(crate) mod landlock;
pub(crate) mod paths;
pub(crate) mod rlimits;
pub(crate) mod rootfs;
pub(crate) mod seccomp;
pub(crate) mod storage;
pub(crate) mod user;
