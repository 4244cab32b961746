// SPDX-License-Identifier: Apache-2.0
//! What ties a worker to its node: the descriptors that it is born with, the control socket, and the packet rings.

pub mod birth;
pub mod control;
pub mod lanes;
pub mod ring_memory;

/// The packet ABI that workers speak: the node is told of it, and each module says for which one it was built.
pub const ABI: u32 = 1;
