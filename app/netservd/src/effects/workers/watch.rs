// SPDX-License-Identifier: Apache-2.0
//! Has a worker looked at when something of it changed, or when it is time.

use std::os::fd::OwnedFd;
use std::time::Instant;

use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

use crate::event::{ContainerEvent, WorkerEvent};

/// Says whenever a descriptor becomes readable, until its other end is closed.
pub async fn watch(fd: AsyncFd<OwnedFd>, event: ContainerEvent, events: mpsc::Sender<WorkerEvent>) {
    loop {
        let Ok(mut ready) = fd.readable().await else { return };
        // The runtime never clears this state, so waiting on would be no waiting.
        let closed = ready.ready().is_read_closed();
        ready.clear_ready();
        if events.send(WorkerEvent::Container(event.clone())).await.is_err() || closed {
            return;
        }
    }
}

/// Has a worker looked at when it is time.
pub async fn remind(at: Instant, event: ContainerEvent, events: mpsc::Sender<WorkerEvent>) {
    tokio::time::sleep_until(at.into()).await;
    // The control loop may have ended.
    let _ = events.send(WorkerEvent::Container(event)).await;
}
