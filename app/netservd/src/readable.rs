// SPDX-License-Identifier: Apache-2.0
//! Descriptors that the runtime waits for.

use std::io::Result;
use std::os::fd::{AsFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Returns a descriptor of its own for the same thing, registered with the runtime for reading.
///
/// # Errors
/// There is no descriptor left, or it cannot be waited for.
pub fn readable(fd: impl AsFd) -> Result<AsyncFd<OwnedFd>> {
    let own = fd.as_fd().try_clone_to_owned()?;
    // The successor is unsafe because a type may close its descriptor while it is registered; an OwnedFd does not.
    #[allow(deprecated, reason = "the replacement needs `unsafe`, and an OwnedFd keeps its descriptor open")]
    AsyncFd::with_interest(own, Interest::READABLE)
}
