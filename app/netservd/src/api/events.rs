// SPDX-License-Identifier: Apache-2.0
//! `GET /v1/events`: news for requesters as lines of JSON.
//!
//! Each client that follows has a task that takes news out of the ring as fast as the client reads. One that falls behind is told
//! how many it missed, one that does not read at all is cut off.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use netserv_api::{EventLine, EventRecord};
use netserv_model::notify::NotifyEvent;
use netserv_model::{ModuleName, SessionId, UserId};
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;

use super::answer::error;
use crate::limits::{EVENT_FOLLOWERS_MAX, EVENT_READ_TIME_MAX};
use crate::newsfeed::{Batch, NewsFeed};

/// What a client wants of the news.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct EventQuery {
    /// Whether to go on with new ones.
    #[serde(default)]
    follow: bool,
    /// The first sequence number wanted.
    since: Option<u64>,
    /// Of this user only.
    user: Option<UserId>,
    /// Of this module only.
    module: Option<ModuleName>,
    /// Of this session only.
    session: Option<SessionId>,
    /// Words of events, with commas between.
    event: Option<String>,
}

/// Which news a client wants.
struct Filter {
    user: Option<UserId>,
    module: Option<ModuleName>,
    session: Option<SessionId>,
    events: Option<Vec<NotifyEvent>>,
}

/// A client that follows.
struct Reader {
    /// The way to it.
    lines: mpsc::Sender<String>,
    /// How long it may take to read.
    time_max: Duration,
}

/// Answers with news as they are kept, or as they come.
pub fn get(feed: NewsFeed, query: Result<Query<EventQuery>, QueryRejection>) -> Response {
    let parsed = query.map_err(|rejection| rejection.body_text());
    let parsed = parsed.and_then(|Query(query)| Ok((query.follow, query.since, Filter::parse(query)?)));
    let (follow, since, filter) = match parsed {
        Ok(parsed) => parsed,
        Err(cause) => return error(StatusCode::BAD_REQUEST, &cause, "see the parameters in /v1/openapi.json"),
    };
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    if !follow {
        return (kind, filter.all_lines(&feed, since.unwrap_or(0))).into_response();
    }
    let Some(place) = feed.follow() else {
        let cause = format!("{EVENT_FOLLOWERS_MAX} clients follow the news already");
        return error(StatusCode::SERVICE_UNAVAILABLE, &cause, "end one of them");
    };
    let from = since.unwrap_or_else(|| feed.next());
    let (lines, body) = mpsc::channel(1);
    tokio::spawn(run(feed, from, filter, Reader { lines, time_max: EVENT_READ_TIME_MAX }, place));
    let stream = futures_util::stream::unfold(body, |mut body: mpsc::Receiver<String>| async {
        let line = body.recv().await?;
        Some((Ok::<_, Infallible>(line), body))
    });
    (kind, Body::from_stream(stream)).into_response()
}

/// Tells news until the client is gone or reads too slowly.
async fn run(feed: NewsFeed, from: u64, filter: Filter, reader: Reader, place: OwnedSemaphorePermit) {
    let Reader { lines, time_max } = reader;
    let mut next = from;
    loop {
        let batch = tokio::select! {
            batch = feed.wait(next) => batch,
            () = lines.closed() => break,
        };
        next = batch.next;
        let text = filter.lines(&batch);
        if text.is_empty() {
            continue;
        }
        match timeout(time_max, lines.send(text)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => break,
            Err(_) => {
                tracing::debug!("a client reads the news too slowly and is cut off");
                break;
            }
        }
    }
    drop(place);
}

impl Filter {
    fn parse(query: EventQuery) -> Result<Filter, String> {
        let EventQuery { follow: _, since: _, user, module, session, event } = query;
        let word = |word: &str| {
            let all: Vec<&str> = NotifyEvent::ALL.into_iter().map(NotifyEvent::as_str).collect();
            NotifyEvent::from_word(word).ok_or_else(|| format!("`{word}` is no event; there are {}", all.join(", ")))
        };
        let events = event.map(|words| words.split(',').map(word).collect()).transpose()?;
        Ok(Filter { user, module, session, events })
    }

    fn wants(&self, EventRecord { notify, .. }: &EventRecord) -> bool {
        self.user.as_ref().is_none_or(|user| *user == notify.user)
            && self.module.as_ref().is_none_or(|module| *module == notify.module)
            && self.session.is_none_or(|session| session == notify.session)
            && self.events.as_ref().is_none_or(|events| events.contains(&notify.event))
    }

    fn lines(&self, batch: &Batch) -> String {
        let missed = batch.missed.map(EventLine::Missed);
        let wanted = batch.records.iter().filter(|record| self.wants(record));
        let news = wanted.map(|record| EventLine::News(Box::new(record.clone())));
        // Plain data always serialises.
        missed.into_iter().chain(news).filter_map(|line| serde_json::to_string(&line).ok()).fold(
            String::new(),
            |mut text, line| {
                text.push_str(&line);
                text.push('\n');
                text
            },
        )
    }

    fn all_lines(&self, feed: &NewsFeed, since: u64) -> String {
        let mut text = String::new();
        let mut next = since;
        loop {
            let batch = feed.from(next);
            text.push_str(&self.lines(&batch));
            if batch.records.is_empty() {
                return text;
            }
            next = batch.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::http::Uri;
    use futures_util::StreamExt as _;
    use netserv_model::UnixTime;

    use super::*;
    use crate::limits::EVENTS_KEPT_MAX;
    use crate::newsfeed::news;

    fn ask(feed: &NewsFeed, query: &str) -> Response {
        let uri: Uri = format!("/v1/events?{query}").parse().unwrap();
        get(feed.clone(), Query::try_from_uri(&uri))
    }

    async fn text(response: Response) -> String {
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    fn parse(text: &str) -> Vec<EventLine> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn feed_of(users: &[&str]) -> NewsFeed {
        let feed = NewsFeed::new(UnixTime(1000));
        for (user, event) in users.iter().zip(NotifyEvent::ALL) {
            feed.push(news(user, event));
        }
        feed
    }

    #[tokio::test]
    async fn a_client_gets_what_it_asks_for() {
        let feed = feed_of(&["jane", "john", "jane"]);
        let cases = [
            ("", 3),
            ("since=1001", 2),
            ("user=jane", 2),
            ("user=joan", 0),
            ("module=example.org/m", 3),
            ("module=example.org/n", 0),
            ("session=01010101010101010101010101010101&user=john", 1),
            ("session=02010101010101010101010101010101", 0),
            ("event=route-lost", 1),
            ("event=route-lost,lease-ended&user=jane", 1),
        ];
        for (query, lines) in cases {
            let response = ask(&feed, query);
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(parse(&text(response).await).len(), lines, "{query}");
        }
        for (query, cause) in
            [("event=rout-lost", "`rout-lost` is no event; there are route-moved,"), ("since=x", "since")]
        {
            let response = ask(&feed, query);
            assert_eq!(response.status(), StatusCode::BAD_REQUEST);
            let said = text(response).await;
            assert!(said.contains(cause), "{said}");
        }
    }

    /// Goal: who follows gets what comes, from the moment of its answer on, and what was missed is a line of its own.
    #[tokio::test]
    async fn who_follows_gets_what_comes_and_hears_what_it_missed() {
        let feed = feed_of(&["jane"]);
        let mut fresh = ask(&feed, "follow=true").into_body().into_data_stream();
        feed.push(news("john", NotifyEvent::LeaseEnded));
        let line = fresh.next().await.unwrap().unwrap();
        let lines = parse(std::str::from_utf8(&line).unwrap());
        let [EventLine::News(record)] = lines.as_slice() else { panic!("{lines:?}") };
        assert_eq!((record.sequence, record.notify.user.as_str()), (1001, "john"));
        for _ in 0..EVENTS_KEPT_MAX {
            feed.push(news("jane", NotifyEvent::RouteMoved));
        }
        let mut late = ask(&feed, "follow=true&since=1001&event=lease-ended").into_body().into_data_stream();
        let line = late.next().await.unwrap().unwrap();
        assert_eq!(std::str::from_utf8(&line).unwrap(), "{\"line\":\"missed\",\"count\":1,\"sequence\":1002}\n");
    }

    #[tokio::test]
    async fn event_followers_max_clients_follow_at_a_time() {
        let feed = feed_of(&["jane"]);
        let mut all: Vec<Response> = (0..EVENT_FOLLOWERS_MAX).map(|_| ask(&feed, "follow=true")).collect();
        assert_eq!(ask(&feed, "follow=true").status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(ask(&feed, "follow=false").status(), StatusCode::OK);
        all.pop();
        // Its task hears that it is gone.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert_eq!(ask(&feed, "follow=true").status(), StatusCode::OK);
    }

    /// Goal: a client that does not read does not keep its place. A batch that it did not ask for waits in its channel.
    #[tokio::test]
    async fn a_client_that_does_not_read_is_cut_off() {
        let feed = feed_of(&["jane"]);
        let (lines, mut body) = mpsc::channel(1);
        let reader = Reader { lines, time_max: Duration::from_millis(50) };
        let filter = Filter::parse(EventQuery::default()).unwrap();
        let running = tokio::spawn(run(feed.clone(), 0, filter, reader, feed.follow().unwrap()));
        while body.is_empty() {
            tokio::task::yield_now().await;
        }
        feed.push(news("jane", NotifyEvent::RouteLost));
        running.await.unwrap();
        assert_eq!(parse(&body.recv().await.unwrap()).len(), 1, "what was on its way is there");
        assert_eq!(body.recv().await, None);
    }
}
