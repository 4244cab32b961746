// SPDX-License-Identifier: Apache-2.0
//! What a node and the workers inside its service containers say to each other.
//!
//! [`frames`] is the control channel: one JSON value per datagram of a `SOCK_SEQPACKET` socket. [`ring`] is the packet
//! path: a layout of shared memory and the two ends that work on it. [`media`] says what ffmpeg is asked to do.

pub mod frames;
pub mod media;
pub mod ring;

/// The control socket in a worker.
pub const CONTROL_FD: i32 = 3;
/// The memory of the packet ring of lane 0 in a worker: a memfd of [`ring::MAPPING_BYTES`] bytes.
pub const RING_FD: i32 = 4;
/// The eventfd that the worker waits on.
pub const WAKE_WORKER_FD: i32 = 5;
/// The eventfd by which the worker wakes lane 0 of the node.
pub const WAKE_HOST_FD: i32 = 6;

/// Returns the name of a worker's packet thread for a lane beyond the first, by which the node finds it.
pub fn lane_thread_name(lane: usize) -> String {
    format!("packets-{lane}")
}
