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
use netserv_packet_loop::Traced;
use netserv_packet_loop::feed::{Feed, TraceRefusal};
use rustix::net::{AddressFamily, SocketType, netdevice, socket};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::answer::{error, stopping};
use super::{Api, ask};
use crate::caller::Caller;
use crate::event::Call;
use crate::limits::{TRACE_LINES_WAITING_MAX, TRACE_TIME_MAX};

/// Starts a trace and answers with its lines.
pub async fn post(api: &Api, caller: Caller, body: Bytes) -> Response {
    let parsed = if body.is_empty() { Ok(TraceRequest::default()) } else { serde_json::from_slice(&body) };
    let request: TraceRequest = match parsed {
        Ok(request) => request,
        Err(cause) => {
            return error(StatusCode::BAD_REQUEST, &cause.to_string(), "see TraceRequest in /v1/openapi.json");
        }
    };
    let (count, timeout) = (request.count, time(request.timeout_ms));
    let (feed, driver) = match ask(api, caller, |reply| Call::Trace(Box::new(request), reply)).await {
        Some(Ok(started)) => started,
        Some(Err(refusal)) => return error(status(&refusal), &refusal.to_string(), refusal.fix()),
        None => return stopping(),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::oneshot;

    use super::*;
    use crate::limits::TRACED_WAITING_MAX;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(50);

    #[test]
    fn trace_time_max_is_the_longest_time() {
        assert_eq!((time(0), time(u64::MAX), time(20)), (TRACE_TIME_MAX, TRACE_TIME_MAX, Duration::from_millis(20)));
    }

    #[tokio::test]
    async fn a_trace_ends_after_as_many_packets_as_were_wanted() {
        let (feed, sink, closed) = open_feed();
        (0..3).for_each(|_| sink.try_send(traced()).unwrap());
        let (lines, mut body) = mpsc::channel(TRACE_LINES_WAITING_MAX);
        run(feed, "dummy: a test".to_owned(), 2, LONG, lines).await;
        assert!(closed.await.is_err(), "the feed is gone");
        let start = body.recv().await.unwrap();
        assert_eq!(
            start,
            "{\"event\":\"started\",\"filters\":[\"udp\"],\"driver\":\"dummy: a test\",\"timeout_ms\":60000}\n"
        );
        for _ in 0..2 {
            let TraceLine::Packet(packet) = parse(&body.recv().await.unwrap()) else { panic!("no packet") };
            assert_eq!((packet.bytes.as_str(), packet.length), ("45ff", 33));
            // The first interface of every namespace.
            assert_eq!(packet.origin, TraceOrigin::Network { interface: 1, name: Some("lo".to_owned()) });
        }
        let end = TraceEnd { reason: TraceEndReason::Count, traced: 2, lost: 0, skipped: 0 };
        assert_eq!(parse(&body.recv().await.unwrap()), TraceLine::Ended(end));
        assert_eq!(body.recv().await, None);
    }

    /// Goal: a client that does not read cannot keep a trace's filters beyond its time.
    #[tokio::test]
    async fn a_trace_ends_at_its_time_though_nobody_reads() {
        let (feed, sink, closed) = open_feed();
        // One line more than find room, and one that is not taken up.
        (0..TRACE_LINES_WAITING_MAX + 1).for_each(|_| sink.try_send(traced()).unwrap());
        let (lines, mut body) = mpsc::channel(TRACE_LINES_WAITING_MAX);
        let running = tokio::spawn(run(feed, String::new(), 0, SHORT, lines));
        assert!(closed.await.is_err(), "the feed is gone");
        assert!(!running.is_finished(), "the last line is still to be read");
        let mut last = None;
        while let Some(line) = body.recv().await {
            last = Some(parse(&line));
        }
        let Some(TraceLine::Ended(end)) = last else { panic!("the last line is not the end") };
        // On a machine that stood still, the time may have been up before.
        assert_eq!((end.reason, end.traced + end.lost), (TraceEndReason::Time, TRACE_LINES_WAITING_MAX as u64 + 1));
        assert!(end.lost >= 2, "{end:?}");
    }

    #[tokio::test]
    async fn a_trace_ends_with_its_client_and_with_the_packet_loop() {
        let (feed, _sink, closed) = open_feed();
        let (lines, body) = mpsc::channel(TRACE_LINES_WAITING_MAX);
        drop(body);
        run(feed, String::new(), 0, LONG, lines).await;
        assert!(closed.await.is_err());

        let (feed, sink, _closed) = open_feed();
        let (lines, mut body) = mpsc::channel(TRACE_LINES_WAITING_MAX);
        drop(sink);
        run(feed, String::new(), 0, LONG, lines).await;
        body.recv().await.unwrap();
        let end = TraceEnd { reason: TraceEndReason::Stopped, traced: 0, lost: 0, skipped: 0 };
        assert_eq!(parse(&body.recv().await.unwrap()), TraceLine::Ended(end));
    }

    /// Returns a feed without a packet loop, the packets' way into it, and what ends when it is dropped.
    fn open_feed() -> (Feed, mpsc::Sender<Traced>, oneshot::Receiver<Infallible>) {
        let (sink, packets) = mpsc::channel(TRACED_WAITING_MAX);
        let (open, closed) = oneshot::channel();
        let open = std::sync::Mutex::new(Some(open));
        let end = move || drop(open.lock().unwrap().take());
        let feed = Feed::new(packets, Arc::default(), vec!["udp".parse().unwrap()], end);
        (feed, sink, closed)
    }

    fn parse(line: &str) -> TraceLine {
        serde_json::from_str(line).unwrap()
    }

    fn traced() -> Traced {
        let packet = TracePacket::new(0, TraceOrigin::Network { interface: 1, name: None }, None, 33);
        Traced { packet, bytes: vec![0x45, 0xff], changed: Vec::new() }
    }
}
