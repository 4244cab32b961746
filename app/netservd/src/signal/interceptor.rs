// SPDX-License-Identifier: Apache-2.0
//! Queries that pass on their way to somebody else.

use std::os::fd::OwnedFd;

use anyhow::Result;
use netserv_node::gist::Disposition;
use netserv_plane::PacketId;
use netserv_signal::{Intercepted, Interceptor, InterceptorCounters};
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

use crate::event::Event;
use crate::readable::readable;

/// Intercepted messages taken at a time, before other events have their turn.
const INTERCEPTED_BATCH: usize = 64;

/// What takes passing Queries out of the packet stream; nothing where they are not intercepted.
pub struct Passing {
    interceptor: Option<Interceptor>,
    events: mpsc::Sender<Event>,
}

impl Passing {
    /// Starts to say when something was intercepted.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn start(interceptor: Option<Interceptor>, events: mpsc::Sender<Event>) -> Result<Passing> {
        if let Some(interceptor) = &interceptor {
            let fd = readable(interceptor)?;
            tokio::spawn(watch(fd, events.clone()));
        }
        Ok(Passing { interceptor, events })
    }

    /// Takes what was intercepted since the last call, in order of arrival.
    pub fn take(&mut self) -> Vec<Intercepted> {
        let mut packets = Vec::new();
        let Some(interceptor) = &mut self.interceptor else { return packets };
        loop {
            match interceptor.receive(&mut packets) {
                Ok(0) => return packets,
                Ok(_) if packets.len() >= INTERCEPTED_BATCH => {
                    // There may be more; where there is no room, the loop comes by anyway.
                    let _ = self.events.try_send(Event::Intercepted);
                    return packets;
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "the interceptor failed; Queries pass unseen");
                    return packets;
                }
            }
        }
    }

    /// Does with an intercepted datagram what the engine says.
    pub fn release(&mut self, packet: PacketId, disposition: Disposition) {
        let Some(interceptor) = &mut self.interceptor else { return };
        let result = match disposition {
            Disposition::Consumed => interceptor.drop(packet),
            // The node says what becomes of it later, by the same call.
            Disposition::Held(_) => return,
            Disposition::Forward { payload: None } => interceptor.accept(packet),
            Disposition::Forward { payload: Some(payload) } => interceptor.accept_modified(packet, &payload),
        };
        if let Err(error) = result {
            tracing::debug!(%error, "an intercepted datagram could not be released");
        }
    }

    /// Returns what was intercepted and lost so far.
    pub fn counters(&self) -> InterceptorCounters {
        self.interceptor.as_ref().map_or_else(InterceptorCounters::default, Interceptor::counters)
    }

    /// Takes the interception rule away.
    pub fn stop(&mut self) {
        self.interceptor = None;
    }
}

async fn watch(fd: AsyncFd<OwnedFd>, events: mpsc::Sender<Event>) {
    loop {
        let Ok(mut ready) = fd.readable().await else { return };
        ready.clear_ready();
        if events.send(Event::Intercepted).await.is_err() {
            return;
        }
    }
}
