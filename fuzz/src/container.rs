// SPDX-License-Identifier: Apache-2.0
//! Control frames between a node and its containers.

use netserv_wire::container::frames::{FromWorker, ToWorker};

/// Reads a control frame of both directions.
///
/// # Panics
/// If a frame that is understood cannot be written, or means something else then.
pub fn container_frames(data: &[u8]) {
    if let Ok(frame) = ToWorker::decode(data)
        && let Ok(bytes) = frame.encode()
    {
        assert_eq!(ToWorker::decode(&bytes).ok(), Some(frame));
    }
    if let Ok(frame) = FromWorker::decode(data)
        && let Ok(bytes) = frame.encode()
    {
        assert_eq!(FromWorker::decode(&bytes).ok(), Some(frame));
    }
}
