// SPDX-License-Identifier: Apache-2.0
//! The socket of programs that are NSLPs on this node (`docs/nslp-api.md`). It only frames and bounds: what a call means the
//! node decides.

mod budget;
mod client;
mod lines;

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use netserv_model::application::{ApplicationError, ApplicationErrorKind, ApplicationEvent};
use netserv_node::ClientId;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};

use crate::event::Event;
use crate::limits::APPLICATION_CONNECTIONS_MAX;
use crate::metrics::gauges::ApplicationCounts;
use client::Client;

/// How long to wait before the next attempt if no connection can be taken, as without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves programs until the runtime ends.
pub async fn serve(listener: UnixListener, control: mpsc::Sender<Event>, counts: Arc<ApplicationCounts>) {
    let places = Arc::new(Semaphore::new(APPLICATION_CONNECTIONS_MAX));
    let mut last = 0;
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a program that wants to be an NSLP cannot connect");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        ApplicationCounts::add(&counts.connected);
        let Ok(place) = places.clone().try_acquire_owned() else {
            ApplicationCounts::add(&counts.turned_away);
            turn_away(stream);
            continue;
        };
        last += 1;
        let client =
            Client { id: ClientId(last), control: control.clone(), counts: counts.clone(), registered: Arc::default() };
        let counts = counts.clone();
        tokio::spawn(async move {
            counts.open.fetch_add(1, Ordering::Relaxed);
            client.serve(stream).await;
            counts.open.fetch_sub(1, Ordering::Relaxed);
            drop(place);
        });
    }
}

/// Tells a program that there is no place for it. Its socket is empty, so that the line fits or the program is gone.
fn turn_away(stream: UnixStream) {
    let cause = format!("{APPLICATION_CONNECTIONS_MAX} programs are connected");
    let error = ApplicationError::new(ApplicationErrorKind::TooManyPrograms, cause, None);
    if let Ok(mut stream) = stream.into_std() {
        let _ = stream.write_all(line_of(&ApplicationEvent::Error(error)).as_bytes());
    }
}

/// Returns an event as a line.
fn line_of(event: &ApplicationEvent) -> String {
    // Plain data always serialises.
    serde_json::to_string(event).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests;
