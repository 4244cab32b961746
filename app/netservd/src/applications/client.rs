// SPDX-License-Identifier: Apache-2.0
//! One program: a task reads its lines, another writes what it is told. Whatever ends one of them ends the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use netserv_model::application::{ApplicationCall, ApplicationError, ApplicationErrorKind as Kind, ApplicationEvent};
use netserv_node::ClientId;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf, UCred};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::budget::{Budget, cost};
use super::line_of;
use super::lines::{Line, Lines};
use crate::event::{ApplicationInput, ApplicationPort, Event};
use crate::limits::{
    APPLICATION_EVENTS_MAX, APPLICATION_LINE_BYTES_MAX, APPLICATION_MALFORMED_MAX, APPLICATION_REGISTER_WAIT,
    APPLICATION_WRITE_WAIT,
};
use crate::metrics::gauges::ApplicationCounts;

/// What serves one program.
#[derive(Clone)]
pub struct Client {
    /// The name of its connection.
    pub id: ClientId,
    /// The way to the node.
    pub control: mpsc::Sender<Event>,
    /// What is counted.
    pub counts: Arc<ApplicationCounts>,
    /// The node has taken its registration.
    pub registered: Arc<AtomicBool>,
}

impl Client {
    /// Serves the program until it or the node ends the connection.
    pub async fn serve(self, stream: UnixStream) {
        let who = stream.peer_cred().ok();
        let (events, told) = mpsc::channel(APPLICATION_EVENTS_MAX);
        let (cut, is_cut) = oneshot::channel();
        if !self.send(ApplicationInput::Opened(self.id, ApplicationPort { events, cut })).await {
            return;
        }
        let (read, write) = stream.into_split();
        // The reader waits until its own words are written.
        let (errors, words) = mpsc::channel(1);
        let reader = tokio::spawn(self.clone().read(Lines::new(read), errors));
        self.write(write, Words { told, is_cut, words }, who).await;
        reader.abort();
        // Whether it ended by itself or was ended, no call of it follows.
        let _ = reader.await;
        self.send(ApplicationInput::Gone(self.id)).await;
    }

    async fn send(&self, input: ApplicationInput) -> bool {
        self.control.send(Event::Application(input)).await.is_ok()
    }

    /// Reads lines and hands calls on, until there is none more.
    async fn read(self, mut lines: Lines<OwnedReadHalf>, errors: mpsc::Sender<ApplicationError>) {
        let begun = Instant::now();
        let (mut budget, mut bad, mut number) = (Budget::new(begun), 0_u32, 0);
        let registered = || self.registered.load(Ordering::Relaxed);
        loop {
            let line = match registered() {
                true => lines.next().await,
                false => match timeout_at(begun + APPLICATION_REGISTER_WAIT, lines.next()).await {
                    Ok(line) => line,
                    Err(_) if registered() => continue,
                    Err(_) => {
                        let cause = format!("the program did not register within {APPLICATION_REGISTER_WAIT:?}");
                        let _ = errors.send(ApplicationError::new(Kind::Silent, cause, None)).await;
                        return;
                    }
                },
            };
            let Ok(Some(line)) = line else { return };
            number += 1;
            let call = parse(&line);
            if budget.take(call.as_ref().map_or(1, cost)).await {
                ApplicationCounts::add(&self.counts.paused);
            }
            match call {
                Ok(call) => {
                    bad = bad.saturating_sub(1);
                    if !self.send(ApplicationInput::Call(self.id, number, Box::new(call))).await {
                        return;
                    }
                }
                Err(cause) => {
                    ApplicationCounts::add(&self.counts.malformed);
                    bad += 1;
                    let kind = if bad > APPLICATION_MALFORMED_MAX { Kind::TooManyErrors } else { Kind::Malformed };
                    if errors.send(ApplicationError::new(kind, cause, Some(number))).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Writes what the program is told, until an error ends the connection or nobody is there any more.
    async fn write(&self, mut stream: OwnedWriteHalf, mut from: Words, who: Option<UCred>) {
        let mut name = None;
        loop {
            let Some(event) = from.next().await else { break };
            match timeout(APPLICATION_WRITE_WAIT, stream.write_all(line_of(&event).as_bytes())).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => break,
                Err(_) => {
                    ApplicationCounts::add(&self.counts.cut);
                    tracing::warn!(nslp = name, "a program is cut that did not read for {APPLICATION_WRITE_WAIT:?}");
                    return;
                }
            }
            match event {
                ApplicationEvent::Registered(registered) => {
                    name = Some(registered.nslp_id);
                    self.registered.store(true, Ordering::Relaxed);
                    let (uid, pid) = (who.map(|who| who.uid()), who.and_then(|who| who.pid()));
                    tracing::info!(nslp = registered.nslp_id, uid, pid, "a program is an NSLP from here on");
                }
                ApplicationEvent::Error(error) if error.fatal => {
                    let ApplicationError { error, cause, .. } = error;
                    tracing::warn!(nslp = name, error = error.as_str(), cause, "a program's connection ends");
                    return;
                }
                ApplicationEvent::Error(_)
                | ApplicationEvent::RecvMessage(_)
                | ApplicationEvent::MessageStatus(_)
                | ApplicationEvent::NetworkNotification(_) => {}
            }
        }
        if let Some(nslp) = name {
            tracing::info!(nslp, "a program that was an NSLP is gone");
        }
    }
}

/// All that a program is told.
struct Words {
    /// By the node.
    told: mpsc::Receiver<ApplicationEvent>,
    /// The node has no room for more of that.
    is_cut: oneshot::Receiver<()>,
    /// By who reads its lines.
    words: mpsc::Receiver<ApplicationError>,
}

impl Words {
    /// Returns what to say next; nothing once the program has closed its end and all is said.
    async fn next(&mut self) -> Option<ApplicationEvent> {
        let stopping = || ApplicationError::new(Kind::Stopping, "the node stops", None);
        tokio::select! {
            biased;
            cut = &mut self.is_cut => {
                let cause = format!("the program left {APPLICATION_EVENTS_MAX} events unread");
                let error = cut.map_or_else(|_| stopping(), |()| ApplicationError::new(Kind::TooSlow, cause, None));
                Some(ApplicationEvent::Error(error))
            }
            event = self.told.recv() => Some(event.unwrap_or_else(|| ApplicationEvent::Error(stopping()))),
            error = self.words.recv() => error.map(ApplicationEvent::Error),
        }
    }
}

/// Reads a call; the error says what is wrong with it.
fn parse(line: &Line) -> Result<ApplicationCall, String> {
    match line {
        // Each line is the first of its own, and what is wrong with it may be all of it.
        Line::Whole(bytes) => serde_json::from_slice(bytes).map_err(|error| {
            let text = error.to_string().replace(" at line 1 column ", " at column ");
            text.chars().take(CAUSE_CHARS_MAX).collect()
        }),
        Line::TooLong => Err(format!("the line has more than {APPLICATION_LINE_BYTES_MAX} bytes")),
    }
}

/// Characters of what is said to be wrong with a line.
const CAUSE_CHARS_MAX: usize = 240;
