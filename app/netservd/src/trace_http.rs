// SPDX-License-Identifier: Apache-2.0
//! `POST /v1/trace`: a trace as lines of JSON.
//!
//! A task reads the trace's feed and ends it when its time is up, whether or not the client reads.

use std::convert::Infallible;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use netserv_model::trace::{TraceEnd, TraceEndReason, TraceLine, TraceOrigin, TracePacket, TraceRequest, TraceStart};
use rustix::net::{AddressFamily, SocketType, netdevice, socket};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::control_loop::Event;
use crate::http::{Call, error, stopping};
use crate::limits::{TRACE_LINES_WAITING_MAX, TRACE_TIME_MAX};
use crate::packet_loop::Traced;
use crate::trace::{Feed, TraceRefusal};

/// Starts a trace and answers with its lines.
pub async fn post(control: mpsc::Sender<Event>, body: Bytes) -> Response {
    let parsed = if body.is_empty() { Ok(TraceRequest::default()) } else { serde_json::from_slice(&body) };
    let request: TraceRequest = match parsed {
        Ok(request) => request,
        Err(cause) => {
            return error(StatusCode::BAD_REQUEST, &cause.to_string(), "see TraceRequest in /v1/openapi.json");
        }
    };
    let (count, timeout) = (request.count, time(request.timeout_ms));
    let (reply, answer) = oneshot::channel();
    if control.send(Event::Api(Call::Trace(Box::new(request), reply))).await.is_err() {
        return stopping();
    }
    let (feed, driver) = match answer.await {
        Ok(Ok(started)) => started,
        Ok(Err(refusal)) => return error(status(&refusal), &refusal.to_string(), refusal.fix()),
        Err(_) => return stopping(),
    };
    let (lines, body) = mpsc::channel(TRACE_LINES_WAITING_MAX);
    tokio::spawn(run(feed, driver, count, timeout, lines));
    let stream = futures_util::stream::unfold(body, |mut body: mpsc::Receiver<String>| async {
        let line = body.recv().await?;
        Some((Ok::<_, Infallible>(line), body))
    });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(stream)).into_response()
}

/// How long a trace runs for whom it was asked.
fn time(timeout_ms: u64) -> Duration {
    match timeout_ms {
        0 => TRACE_TIME_MAX,
        millis => Duration::from_millis(millis).min(TRACE_TIME_MAX),
    }
}

fn status(refusal: &TraceRefusal) -> StatusCode {
    match refusal {
        TraceRefusal::TooMany | TraceRefusal::Driver(_) | TraceRefusal::Ended => StatusCode::SERVICE_UNAVAILABLE,
        TraceRefusal::TooManyFilters | TraceRefusal::Host => StatusCode::BAD_REQUEST,
    }
}

/// Tells what the feed yields until the trace ends or the client is gone.
async fn run(mut feed: Feed, driver: String, count: u64, timeout: Duration, lines: mpsc::Sender<String>) {
    let deadline = Instant::now() + timeout;
    let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    let start = TraceStart { filters: feed.filters.clone(), driver, timeout_ms };
    if lines.send(json_line(&TraceLine::Started(start))).await.is_err() {
        return;
    }
    let names = Names::new();
    let mut traced = 0;
    let reason = loop {
        if count > 0 && traced >= count {
            break TraceEndReason::Count;
        }
        let record = tokio::select! {
            () = sleep_until(deadline) => break TraceEndReason::Time,
            () = lines.closed() => return,
            record = feed.packets.recv() => record,
        };
        let Some(record) = record else { break TraceEndReason::Stopped };
        let line = json_line(&TraceLine::Packet(Box::new(told(record, &feed, &names))));
        tokio::select! {
            () = sleep_until(deadline) => {
                feed.counts.lost.fetch_add(1, Ordering::Relaxed);
                break TraceEndReason::Time;
            }
            sent = lines.send(line) => match sent {
                Ok(()) => traced += 1,
                Err(_) => return,
            },
        }
    };
    let end = end_of(feed, reason, traced);
    // The client may be gone, and if it does not read, nothing else waits for it.
    let _ = lines.send(json_line(&TraceLine::Ended(end))).await;
}

/// Ends a trace and counts what was still to be told when its time was up.
fn end_of(mut feed: Feed, reason: TraceEndReason, traced: u64) -> TraceEnd {
    let mut lost = feed.counts.lost.load(Ordering::Relaxed);
    if reason == TraceEndReason::Time {
        while feed.packets.try_recv().is_ok() {
            lost += 1;
        }
    }
    TraceEnd { reason, traced, lost, skipped: feed.counts.skipped.load(Ordering::Relaxed) }
}

/// Completes a record with what the packet loop has no time for.
fn told(traced: Traced, feed: &Feed, names: &Names) -> TracePacket {
    let Traced { mut packet, bytes, changed } = traced;
    packet.bytes = hex::encode(bytes);
    if let Some(change) = &mut packet.changed {
        change.bytes = hex::encode(changed);
    }
    if let TraceOrigin::Network { interface, name } = &mut packet.origin {
        *name = names.of(*interface);
    }
    packet.lost = feed.counts.lost.load(Ordering::Relaxed);
    packet.skipped = feed.counts.skipped.load(Ordering::Relaxed);
    packet
}

/// Names of interfaces, asked of the kernel.
struct Names(Option<OwnedFd>);

impl Names {
    fn new() -> Names {
        Names(socket(AddressFamily::UNIX, SocketType::DGRAM, None).ok())
    }

    fn of(&self, interface: u32) -> Option<String> {
        netdevice::index_to_name(self.0.as_ref()?, interface).ok()
    }
}

fn json_line(line: &TraceLine) -> String {
    // Plain data always serialises.
    serde_json::to_string(line).unwrap_or_default() + "\n"
}
