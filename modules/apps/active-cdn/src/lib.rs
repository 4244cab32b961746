// SPDX-License-Identifier: Apache-2.0
//! A content provider's cache close to its viewers: what is asked of the module itself goes to the provider's `origin`, and
//! what is taken over on its way goes to whom it is for. `docs/apps/cdn.md` has its properties and limits.
//!
//! The crate `netserv-http-caching` decides. Of requests for the same at a time one goes to the origin, and the others get its
//! response as it comes. The node answers again by itself what is small and in memory.

mod answer;
mod entries;
mod fill;
mod forwarded;
mod found;
mod process;
mod purge;
mod site;
mod stall;
mod told;
mod usage;
mod warm;

use answer::{BOUNDS, sent};
use fill::{Outcome, count};
use found::{Filled, Found, Held, Place};
use netserv_http_caching::cache_status::Forwarded;
use netserv_http_caching::{CacheStatus, Decision, Head, Refresh, Route, Stored, Times, forward, key};
use netserv_server_sdk::cache::{self, Reader};
use netserv_server_sdk::http::{ErrorCode, HttpModule, Repeat, Request, Response};
use netserv_server_sdk::{http, http_module};
use site::{Site, now};
use usage::Counted;

struct ActiveCdn;

impl HttpModule for ActiveCdn {
    fn handle(request: Request) -> Response {
        told::obey();
        let Some(site) = Site::of(&request) else {
            return Response::text(404, "no origin is named for what is asked of this place itself\n");
        };
        if forward::is_loop(&site.request(), &site.policy) {
            return Response::text(508, "the origin leads back to this place\n");
        }
        if request.header("upgrade").is_some() {
            // What comes of it is no response: the node joins both connections if the origin agrees.
            return passed(&site, request, Forwarded::Bypass);
        }
        match Route::of(&site.request()) {
            Route::Cache => cached(site, request),
            Route::Pass => passed(&site, request, Forwarded::Bypass),
            Route::Unsafe => changed(&site, request),
        }
    }
}

fn cached(site: Site, request: Request) -> Response {
    let Some(base) = site.key().filter(|_| site.is_kept) else {
        return passed(&site, request, Forwarded::Bypass);
    };
    if let Some(Found::Stored(held)) = site.fetched_key().map(|key| found::find(key, &site.request()))
        && matches!(held.stored.decide(&site.request(), now()), Decision::Serve)
    {
        return with_stored(site, request, held);
    }
    match found::find(base, &site.request()) {
        Found::Stored(held) => with_stored(site, request, held),
        Found::Nothing(place) => missed(site, request, place),
        Found::Pass => passed(&site, request, Forwarded::Bypass),
    }
}

/// Answers a request that selects a stored response.
fn with_stored(site: Site, request: Request, held: Held) -> Response {
    let hit = |site: &Site| {
        usage::add(&site.label, Counted::Hits, 1);
        let status = CacheStatus { ttl: Some(held.stored.ttl_at(now())), ..CacheStatus::default() };
        answer(site, &held.reader, &held.stored, status)
    };
    match held.stored.decide(&site.request(), now()) {
        Decision::Serve if repeats(&site, &held.stored) => {
            usage::add(&site.label, Counted::Hits, 1);
            let response = answer(&site, &held.reader, &held.stored, CacheStatus::default());
            let unless: &[&str] = if held.stored.is_for_all { &[] } else { &["cookie", "authorization"] };
            let repeat = Repeat { counter: &Counted::Hits.of(&site.label), unless, ..Repeat::default() };
            // What it does not give again by itself comes here.
            let saved = Counted::SavedBytes.of(&site.label);
            let _ = response.repeat_and_count(&request, &held.reader, &repeat, &saved);
            response
        }
        Decision::Serve => hit(&site),
        Decision::ServeAndRefresh => {
            let response = hit(&site);
            response.then(move || refresh(&site, held))
        }
        Decision::Unavailable => unavailable(),
        Decision::Validate { by_request, or_stale } => {
            let reason = if by_request { Forwarded::Request } else { Forwarded::Stale };
            if request.method == "HEAD" {
                return head(&site, request, held);
            }
            if Route::is_no_store(&site.request()) {
                return passed(&site, request, reason);
            }
            if by_request && site.may_ask() {
                let outcome = fill::ask(&site, &held.place, None, Some(&held));
                return given(site, request, outcome, Some((held, or_stale)), reason);
            }
            filled(site, request, Sought::Stale(held, or_stale), reason)
        }
    }
}

/// Answers a request for which nothing is stored.
fn missed(site: Site, request: Request, place: Place) -> Response {
    let reason = place.miss();
    if Route::is_only_if_cached(&site.request()) {
        return unavailable();
    }
    if request.method == "HEAD" || Route::is_no_store(&site.request()) {
        return passed(&site, request, reason);
    }
    if site.plan.is_none() && request.header("range").is_some_and(is_part) {
        return passed(&site, request, Forwarded::Partial);
    }
    filled(site, request, Sought::Nothing(place), reason)
}

/// Returns whether a range is asked of the origin as it is, while nothing is stored: who wants the end of something long does not wait for
/// its begin, and who wants a few bytes does not cost the origin all of it.
fn is_part(range: &[u8]) -> bool {
    let Some(last) = range.trim_ascii().strip_prefix(b"bytes=0-") else { return true };
    let last = std::str::from_utf8(last).ok().and_then(|text| text.parse::<u64>().ok());
    last.is_some_and(|last| last < FILLED_RANGE_BYTES_MIN)
}

/// Bytes of a range from the begin for which all is asked of the origin and stored.
const FILLED_RANGE_BYTES_MIN: u64 = 1 << 20;

/// What is there for a request that cannot be answered by it.
enum Sought {
    /// Nothing.
    Nothing(Place),
    /// A stale response, and whether it is the answer if the origin fails.
    Stale(Held, bool),
}

/// Has one of all requests for the same ask the origin, and answers by what it gets.
fn filled(site: Site, request: Request, sought: Sought, reason: Forwarded) -> Response {
    let (place, held) = match sought {
        Sought::Nothing(place) => (place, None),
        Sought::Stale(held, or_stale) => (held.place.clone(), Some((held, or_stale))),
    };
    if !site.may_ask() {
        return stalled(&site, held);
    }
    if fill::is_unwell() {
        return passed(&site, request, reason);
    }
    match found::open(place, &site.request()) {
        (place, Filled::Writer(writer)) => {
            let outcome = fill::ask(&site, &place, Some(writer), held.as_ref().map(|(held, _)| held));
            given(site, request, outcome, held, reason)
        }
        (_, Filled::Held(joined)) => {
            usage::add(&site.label, Counted::Hits, 1);
            let status = CacheStatus { forwarded: Some(reason), collapsed: true, ..CacheStatus::default() };
            answer(&site, &joined.reader, &joined.stored, status)
        }
        (place, Filled::Alone) => {
            let outcome = fill::ask(&site, &place, None, held.as_ref().map(|(held, _)| held));
            given(site, request, outcome, held, reason)
        }
        // Each validates on its own then.
        (place, Filled::Pass) => match held {
            Some((held, or_stale)) => {
                let outcome = fill::ask(&site, &place, None, Some(&held));
                given(site, request, outcome, Some((held, or_stale)), reason)
            }
            None => passed(&site, request, reason),
        },
        (_, Filled::Stalled) => {
            stall::found(&site.label);
            stalled(&site, held)
        }
    }
}

/// Answers without the origin, which stands still.
fn stalled(site: &Site, held: Option<(Held, bool)>) -> Response {
    match held {
        Some((held, true)) => {
            usage::add(&site.label, Counted::Hits, 1);
            let status = CacheStatus { ttl: Some(held.stored.ttl_at(now())), ..CacheStatus::default() };
            answer(site, &held.reader, &held.stored, status)
        }
        Some((_, false)) | None => failed(&ErrorCode::ConnectionLimitReached),
    }
}

/// Answers by what came of asking the origin.
///
/// `held` is what is stored, and whether it is the answer if the origin fails.
fn given(site: Site, request: Request, outcome: Outcome, held: Option<(Held, bool)>, reason: Forwarded) -> Response {
    if let Outcome::Fetched(fetched, _) = &outcome
        && fetched.status == 200
        && site.plan.is_none()
        && request.header("range").is_some()
    {
        // All of it was asked for to store it, which is of no use: the part is the origin's to give.
        drop(outcome);
        return passed(&site, request, reason);
    }
    if let Outcome::Failed(ErrorCode::HttpProtocolError | ErrorCode::HttpResponseTransferCoding(_)) = &outcome
        && site.is_taken_over()
        && site.plan.is_none()
        && !matches!(held, Some((_, true)))
    {
        // What the origin says is not understood: what it says to the viewer's own question, the viewer may understand.
        return passed(&site, request, reason);
    }
    usage::add(&site.label, Counted::Misses, 1);
    let status = CacheStatus { forwarded: Some(reason), ..CacheStatus::default() };
    match (outcome, held) {
        (Outcome::Refreshed(stored), Some((held, _))) => {
            let status = CacheStatus { forwarded_status: Some(304), ttl: Some(stored.ttl_at(now())), ..status };
            answer(&site, &held.reader, &stored, status)
        }
        (Outcome::Filling(reader, stored, fill), _) => {
            let status = CacheStatus { stored: true, ttl: Some(stored.ttl_at(now())), ..status };
            let (mut response, fill) = match process::waits_for(&site, &reader, &stored) {
                None => (made(&site, &reader, &stored, status), fill),
                Some(most) => match fill.run_for(most) {
                    Some(fill) => (process::too_long(&site, &reader, &stored, status), fill),
                    None => return made(&site, &reader, &stored, status),
                },
            };
            // This one does not come from the cache: its age is what the origin says (RFC 9111 §5.1).
            response.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("age"));
            response.headers.extend(fill.age());
            let is_read = site.plan.is_none() && matches!(response.status, 200 | 206);
            response.then(move || if is_read { fill.run_for_readers() } else { _ = fill.run(|_| true) })
        }
        (Outcome::Fetched(fetched, _), Some((held, true))) if fetched.status >= 500 => {
            let status = CacheStatus { forwarded_status: Some(fetched.status), ..status };
            answer(&site, &held.reader, &held.stored, status)
        }
        (Outcome::Failed(_), Some((held, true))) => answer(&site, &held.reader, &held.stored, status),
        (Outcome::Fetched(fetched, times), _) => on(&site, fetched, times, status),
        (Outcome::Failed(error), _) => failed(&error),
        (Outcome::Refreshed(_), None) => failed(&ErrorCode::HttpProtocolError),
    }
}

/// Validates a response that was served stale, unless somebody does.
fn refresh(site: &Site, held: Held) {
    if !site.may_ask() {
        return;
    }
    let (place, opened) = found::open(held.place.clone(), &site.get());
    let Filled::Writer(writer) = opened else { return };
    usage::add(&site.label, Counted::Misses, 1);
    if let Outcome::Filling(_, _, fill) = fill::ask(site, &place, Some(writer), Some(&held)) {
        fill.run(|_| true);
    }
}

/// Sends a `HEAD` on, which says whether what is stored is the same.
fn head(site: &Site, request: Request, held: Held) -> Response {
    let requested = now();
    let size = held.reader.entry().size;
    let fetched = match send(site, request) {
        Ok(fetched) => fetched,
        Err(error) => return failed(&error),
    };
    let times = Times { requested, received: now() };
    let head = Head { status: fetched.status, headers: &fetched.headers };
    match held.stored.after_head(&site.policy, &site.request(), &head, &times, size) {
        Refresh::Kept(stored) => fill::store_head(&held, &stored),
        Refresh::Once(_) | Refresh::Gone => _ = cache::remove(&held.place.key),
        Refresh::Same => {}
    }
    on(site, fetched, times, CacheStatus { forwarded: Some(Forwarded::Stale), ..CacheStatus::default() })
}

/// Sends a request on that may change what is stored. If its answer is late, the instance may not see it, and nothing is served meanwhile of
/// which nobody knows whether it is right.
fn changed(site: &Site, request: Request) -> Response {
    let requested = now();
    let mut held_back = None;
    let answer = send_with(site, request, || held_back = purge::hold_back(site));
    if let Some(key) = held_back {
        cache::remove(&key);
    }
    let fetched = match answer {
        Ok(fetched) => fetched,
        Err(error) => return failed(&error),
    };
    let head = Head { status: fetched.status, headers: &fetched.headers };
    for key in key::invalidated(&site.request(), &head) {
        purge::one(&key);
    }
    let status = CacheStatus { forwarded: Some(Forwarded::Method), ..CacheStatus::default() };
    on(site, fetched, Times { requested, received: now() }, status)
}

/// Sends a request on whose response is not stored.
fn passed(site: &Site, request: Request, reason: Forwarded) -> Response {
    usage::add(&site.label, Counted::Misses, 1);
    let requested = now();
    match send(site, request) {
        Ok(fetched) => {
            let status = CacheStatus { forwarded: Some(reason), ..CacheStatus::default() };
            on(site, fetched, Times { requested, received: now() }, status)
        }
        Err(error) => failed(&error),
    }
}

fn send(site: &Site, request: Request) -> Result<http::Fetched, ErrorCode> {
    send_with(site, request, || {})
}

/// Sends a request on as it is. The node waits for as long as the origin takes, and `late` is called before the instance may have to end.
fn send_with(site: &Site, mut request: Request, late: impl FnOnce()) -> Result<http::Fetched, ErrorCode> {
    if !site.may_ask() {
        return Err(ErrorCode::ConnectionLimitReached);
    }
    request.authority.clone_from(&site.authority);
    site.request().path.clone_into(&mut request.path);
    let mut headers = forward::request(&site.request(), &site.policy);
    forwarded::tell(&mut headers);
    headers.extend(request.header("upgrade").map(|protocol| ("upgrade".to_owned(), protocol.to_vec())));
    let answer = http::forward_or_pass_with(&site.scheme, request, &headers, late);
    stall::asked(&site.label, &answer);
    answer
}

/// Answers with what the origin says.
fn on(site: &Site, fetched: http::Fetched, times: Times, status: CacheStatus) -> Response {
    if let Some(part) = process::stream_of(site)
        && fetched.status == 200
    {
        let mut response = process::instead(site, part, process::Reason::NotStored);
        response.headers.push(status.field(&site.policy.name));
        return response;
    }
    let mut headers = forward::response(&fetched.headers, &site.policy, times.received);
    headers.push(status.field(&site.policy.name));
    if site.plan.is_some() {
        headers.push(process::Reason::NotStored.field());
    }
    let counter = Counted::OriginBytes.of(&site.label);
    let mut response = Response::fetched_and_counted(fetched.status, fetched, BOUNDS, &counter);
    response.headers = headers;
    response
}

/// Answers with what is in the cache, or what another request has brought there, for which the origin sends nothing.
fn answer(site: &Site, reader: &Reader, stored: &Stored, status: CacheStatus) -> Response {
    let response = made(site, reader, stored, status);
    let length = response.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|(_, length)| std::str::from_utf8(length).ok()?.parse().ok());
    // What is on its way without a length is not counted.
    if let (Some(length), "GET") = (length, site.request().method) {
        usage::add(&site.label, Counted::SavedBytes, length);
    }
    response
}

/// Answers with what is in the cache, or on its way there, or with what is made of it.
fn made(site: &Site, reader: &Reader, stored: &Stored, status: CacheStatus) -> Response {
    match &site.plan {
        Some(plan) => process::answer(site, plan, reader, stored, status),
        None => sent(site, reader, stored, status),
    }
}

/// Returns whether the node may answer further requests by itself.
///
/// It may if nothing but the target selects the response, and its age began with the entry.
fn repeats(site: &Site, stored: &Stored) -> bool {
    let request = site.request();
    let lacks = |name: &str| !stored.headers.iter().any(|(key, _)| key.eq_ignore_ascii_case(name));
    let is_plain = !request.headers.iter().any(|(name, _)| {
        ["range", "if-none-match", "if-modified-since"].iter().any(|other| name.eq_ignore_ascii_case(other))
    });
    let is_whole = stored.status != 204 && is_plain && request.method == "GET";
    site.plan.is_none() && is_whole && stored.age.as_secs() == 0 && stored.vary().is_empty() && lacks("set-cookie")
}

fn unavailable() -> Response {
    Response::text(504, "nothing is stored that would be the answer\n")
}

fn failed(error: &ErrorCode) -> Response {
    count("errors");
    let is_late = matches!(
        error,
        ErrorCode::ConnectionTimeout | ErrorCode::ConnectionReadTimeout | ErrorCode::HttpResponseTimeout
    );
    if matches!(error, ErrorCode::ConnectionLimitReached) {
        return Response::text(503, "too many wait for the origin\n").with("retry-after", RETRY_SECONDS);
    }
    let status = if is_late { 504 } else { 502 };
    Response::text(status, format!("the origin does not answer: {error:?}\n"))
}

/// Seconds after which who was turned away may come again.
const RETRY_SECONDS: &str = "2";

http_module!(ActiveCdn);
