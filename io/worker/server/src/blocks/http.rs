// SPDX-License-Identifier: Apache-2.0
//! `netserv:http/hand-over`, `counted-hand-over`, `hits`, `counted-hits` and `forwarding`.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::header::{CONTENT_LENGTH, EXPECT, HOST, HeaderValue, TRANSFER_ENCODING};
use http::uri::{Scheme, Uri};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Body;
use netserv_worker_base::error::HostError;
use netserv_worker_base::storage::cache::Entry;
use tokio::time::Instant;
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::DynInputStream;
use wasmtime_wasi_http::WasiHttpView as _;
use wasmtime_wasi_http::p2::bindings::http::types::{ErrorCode, Scheme as WasiScheme};
use wasmtime_wasi_http::p2::body::HyperOutgoingBody;
use wasmtime_wasi_http::p2::types::{
    HostFutureIncomingResponse, HostIncomingRequest, HostOutgoingRequest, HostOutgoingResponse, HostResponseOutparam,
};

use super::cache::Reading;
use crate::hits::{Answer, HitError, Kind, Target};
use crate::http::body::nothing;
use crate::http::connection::Deadline;
use crate::http::forwarding::{Full, SILENCE_MAX};
use crate::http::held::{Bounds, HeldBody};
use crate::http::interim::Wanted;
use crate::limits;
use crate::state::ServerState;

mod bindings {
    wasmtime::component::bindgen!({
        path: [
            "../../../wit/deps/wasi-io",
            "../../../wit/deps/wasi-clocks",
            "../../../wit/deps/wasi-filesystem",
            "../../../wit/deps/wasi-random",
            "../../../wit/deps/wasi-sockets",
            "../../../wit/deps/wasi-cli",
            "../../../wit/deps/wasi-http",
            "../../../wit/deps/netserv-http",
            "../../../wit/deps/netserv-http-1.4",
        ],
        inline: "package netserv:host-http; world host {
            import netserv:http/hand-over@1.0.0;
            import netserv:http/counted-hand-over@1.4.0;
        }",
        imports: { default: trappable },
        require_store_data_send: true,
        with: {
            "wasi:http": wasmtime_wasi_http::p2::bindings::http,
            "wasi:io": wasmtime_wasi::p2::bindings::io,
        },
    });
}

mod hits {
    wasmtime::component::bindgen!({
        path: [
            "../../../wit/deps/wasi-io",
            "../../../wit/deps/netserv-cache-1.1",
            "../../../wit/deps/netserv-http-1.1",
            "../../../wit/deps/netserv-http-1.2",
        ],
        inline: "package netserv:host-hits; world host {
            import netserv:http/hits@1.1.0;
            import netserv:http/counted-hits@1.2.0;
        }",
        imports: { default: trappable },
        require_store_data_send: true,
        with: {
            "wasi:io": wasmtime_wasi::p2::bindings::io,
            "netserv:cache/entries.reader": crate::blocks::cache::Reading,
        },
    });

    pub(super) use netserv::http1_1_0::hits as wit;
    pub(super) use netserv::http1_2_0::counted_hits as counted;
}

mod forwards {
    wasmtime::component::bindgen!({
        path: [
            "../../../wit/deps/wasi-io",
            "../../../wit/deps/wasi-clocks",
            "../../../wit/deps/wasi-filesystem",
            "../../../wit/deps/wasi-random",
            "../../../wit/deps/wasi-sockets",
            "../../../wit/deps/wasi-cli",
            "../../../wit/deps/wasi-http",
            "../../../wit/deps/netserv-http-1.3",
        ],
        inline: "package netserv:host-forwarding; world host { import netserv:http/forwarding@1.3.0; }",
        imports: { default: trappable },
        require_store_data_send: true,
        with: {
            "wasi:http": wasmtime_wasi_http::p2::bindings::http,
            "wasi:io": wasmtime_wasi::p2::bindings::io,
        },
    });

    pub(super) use netserv::http::forwarding as wit;
}

use bindings::netserv::http1_0_0::hand_over::{self as wit, Error};
use bindings::netserv::http1_4_0::counted_hand_over;

/// Adds the interfaces to a linker, and what says that a component is a chain.
///
/// # Errors
/// One is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)?;
    counted_hand_over::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)?;
    hits::wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)?;
    hits::counted::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)?;
    forwards::wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)?;
    linker.instance(CHAIN_INTERFACE).map(drop)
}

/// An interface of nothing, which components import that were composed of several.
pub const CHAIN_INTERFACE: &str = "netserv:http/chain@1.1.0";

impl wit::Host for ServerState {
    fn hand_over(
        &mut self,
        out: Resource<HostResponseOutparam>,
        head: Resource<HostOutgoingResponse>,
        source: Resource<DynInputStream>,
        bounds: wit::Bounds,
    ) -> wasmtime::Result<Result<(), Error>> {
        self.hand_over_counted(out, head, source, bounds, None)
    }
}

impl counted_hand_over::Host for ServerState {
    fn hand_over(
        &mut self,
        out: Resource<HostResponseOutparam>,
        head: Resource<HostOutgoingResponse>,
        source: Resource<DynInputStream>,
        bounds: wit::Bounds,
        counter: String,
    ) -> wasmtime::Result<Result<(), Error>> {
        let counter = self.module.lock_counters().open(counter.as_bytes(), self.module.limits.counters).ok();
        self.hand_over_counted(out, head, source, bounds, counter)
    }
}

impl ServerState {
    fn hand_over_counted(
        &mut self,
        out: Resource<HostResponseOutparam>,
        head: Resource<HostOutgoingResponse>,
        source: Resource<DynInputStream>,
        bounds: wit::Bounds,
        counter: Option<usize>,
    ) -> wasmtime::Result<Result<(), Error>> {
        let is_private = self.blocks.lending.find(source.rep());
        self.blocks.lending.forget(source.rep());
        self.blocks.coding.forget(source.rep());
        if let Some(is_handed_over) = self.blocks.media.find(source.rep()) {
            is_handed_over.store(true, Ordering::Release);
        }
        self.blocks.media.forget(source.rep());
        let source = self.table.delete(source)?;
        let mut head = self.table.delete(head)?;
        let out = self.table.delete(out)?;
        let refusal = match self.module.reserve_held_place() {
            Ok(_) if head.body.is_some() => (StatusCode::INTERNAL_SERVER_ERROR, Error::HasBody),
            Ok(place) => {
                let (body, held) = HeldBody::new(source, is_private, &head.headers, bounds.into(), &self.module, place);
                let body = body.counted_by(counter);
                head.body = Some(body.boxed_unsync());
                let mut response = Response::<HyperOutgoingBody>::try_from(head)?;
                response.extensions_mut().insert(held);
                (out.send)(Ok(response));
                return Ok(Ok(()));
            }
            Err(_) => (StatusCode::SERVICE_UNAVAILABLE, Error::Quota),
        };
        let mut response = Response::new(nothing());
        *response.status_mut() = refusal.0;
        (out.send)(Ok(response));
        Ok(Err(refusal.1))
    }
}

impl forwards::wit::Host for ServerState {
    fn forward(
        &mut self,
        request: Resource<HostIncomingRequest>,
        to: Resource<HostOutgoingRequest>,
    ) -> wasmtime::Result<Result<Resource<HostFutureIncomingResponse>, ErrorCode>> {
        let request = self.http().table.delete(request)?;
        let to = self.table.delete(to)?;
        let taken = |what: &str| Ok(Err(ErrorCode::InternalError(Some(format!("{what} was asked for before")))));
        let Some(forwarding) = self.forwarding.clone().filter(|_| request.body.is_some()) else {
            return taken("the request's body");
        };
        if to.body.is_some() {
            return taken("the body of what is sent");
        }
        let silent = Deadline::new(Instant::now() + SILENCE_MAX);
        let (mut body, upload) = match forwarding.take_body(&silent, &self.module.upload_memory) {
            Some(Ok(taken)) => taken,
            Some(Err(Full)) => return Ok(Err(ErrorCode::ConnectionLimitReached)),
            None => return taken("the request's body"),
        };
        let waits = to.headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        let wanted = (waits && !body.is_end_stream()).then(|| body.await_wanted());
        let request = match head(to).map(|head| with(head, wanted).body(body)) {
            Ok(Ok(request)) => with_length(request).map(BodyExt::boxed_unsync),
            Ok(Err(_)) => return Ok(Err(ErrorCode::HttpRequestUriInvalid)),
            Err(error) => return Ok(Err(error)),
        };
        forwarding.begin(self.egress.forward(request, upload));
        let long_waits = self.module.long_waits.clone();
        let answer = wasmtime_wasi::runtime::spawn(async move {
            let response = forwarding.answer_for_instance(&long_waits).await?;
            // The connection is driven by whoever has the body.
            Ok((response, wasmtime_wasi::runtime::spawn(async {})))
        });
        Ok(Ok(self.table.push(HostFutureIncomingResponse::Pending(answer))?))
    }
}

/// Returns the head of a request that an instance made.
fn head(to: HostOutgoingRequest) -> Result<http::request::Builder, ErrorCode> {
    let scheme = match to.scheme {
        Some(WasiScheme::Http) => Scheme::HTTP,
        Some(WasiScheme::Https) | None => Scheme::HTTPS,
        Some(WasiScheme::Other(_)) => return Err(ErrorCode::HttpProtocolError),
    };
    let authority = to.authority.ok_or(ErrorCode::HttpRequestUriInvalid)?;
    let method: Method = to.method.try_into().map_err(|_| ErrorCode::HttpRequestMethodInvalid)?;
    let uri =
        Uri::builder().scheme(scheme).authority(&*authority).path_and_query(to.path_with_query.unwrap_or_default());
    let uri = uri.build().map_err(|_| ErrorCode::HttpRequestUriInvalid)?;
    let mut builder = Request::builder().method(method).uri(uri).header(HOST, authority);
    for (name, value) in to.headers.iter().filter(|(name, _)| **name != CONTENT_LENGTH) {
        builder = builder.header(name, value);
    }
    Ok(builder)
}

fn with(head: http::request::Builder, wanted: Option<Wanted>) -> http::request::Builder {
    match wanted {
        Some(wanted) => head.extension(wanted),
        None => head,
    }
}

/// Has a request say how long its body is, or that it comes in chunks: of one that says nothing, chunks would be sent of none, or none of
/// those that there are.
fn with_length<B: Body>(mut request: Request<B>) -> Request<B> {
    let length = request.body().size_hint().exact();
    let may_say_nothing = matches!(*request.method(), Method::GET | Method::HEAD);
    if let Some(length) = length.filter(|length| *length > 0 || !may_say_nothing) {
        request.headers_mut().insert(CONTENT_LENGTH, length.into());
    } else if length.is_none() && !request.body().is_end_stream() {
        request.headers_mut().insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    request
}

impl hits::wit::Host for ServerState {
    fn put(
        &mut self,
        target: hits::wit::Target,
        answer: hits::wit::Answer,
        entry: Resource<Reading>,
    ) -> wasmtime::Result<Result<(), hits::wit::Error>> {
        self.put_hit_of(&target, answer, "", &entry)
    }

    fn remove(&mut self, target: hits::wit::Target) -> wasmtime::Result<bool> {
        Ok(self.module.hits.remove(Target::from(&target)))
    }
}

impl hits::counted::Host for ServerState {
    fn put(
        &mut self,
        target: hits::wit::Target,
        answer: hits::wit::Answer,
        bytes_counter: String,
        entry: Resource<Reading>,
    ) -> wasmtime::Result<Result<(), hits::wit::Error>> {
        self.put_hit_of(&target, answer, &bytes_counter, &entry)
    }
}

impl ServerState {
    fn put_hit_of(
        &mut self,
        target: &hits::wit::Target,
        answer: hits::wit::Answer,
        bytes_counter: &str,
        entry: &Resource<Reading>,
    ) -> wasmtime::Result<Result<(), hits::wit::Error>> {
        let Some(entry) = self.table.get(entry)?.whole().cloned() else {
            return Ok(Err(hits::wit::Error::NotWhole));
        };
        Ok(self.put_hit(target, answer, bytes_counter, &entry))
    }

    fn put_hit(
        &mut self,
        target: &hits::wit::Target,
        answer: hits::wit::Answer,
        bytes_counter: &str,
        entry: &Entry,
    ) -> Result<(), hits::wit::Error> {
        let module = &self.module;
        let Some(flow) = self.flow.filter(|_| module.hits.is_open()) else {
            return Err(hits::wit::Error::Unavailable);
        };
        let share = module.cache.known();
        let is_there = share.and_then(|share| share.find(entry.key(), false)).is_some_and(|there| {
            // What another one is, is not what the instance has read.
            there.number() == entry.number()
        });
        if !is_there || module.control.told() != self.blocks.told {
            return Err(hits::wit::Error::Outdated);
        }
        let hits::wit::Answer { status, headers, unless, for_ms, counter } = answer;
        let open = |name: &str| match name {
            "" => Ok(None),
            name => module.lock_counters().open(name.as_bytes(), module.limits.counters).map(Some),
        };
        let (counter, bytes_counter) = (open(&counter)?, open(bytes_counter)?);
        let time = Duration::from_millis(for_ms.into());
        let answer = Answer { status, headers, unless, time, counter, bytes_counter };
        Ok(module.hits.put(target.into(), Kind::from(flow), &answer, entry, self.blocks.told)?)
    }
}

impl<'a> From<&'a hits::wit::Target> for Target<'a> {
    fn from(target: &'a hits::wit::Target) -> Target<'a> {
        Target { authority: &target.authority, path_with_query: &target.path_with_query }
    }
}

impl From<HitError> for hits::wit::Error {
    fn from(error: HitError) -> hits::wit::Error {
        match error {
            HitError::Invalid => hits::wit::Error::Invalid,
            HitError::TooLarge => hits::wit::Error::TooLarge,
            HitError::Quota => hits::wit::Error::Quota,
        }
    }
}

impl From<HostError> for hits::wit::Error {
    fn from(error: HostError) -> hits::wit::Error {
        match error {
            HostError::Quota => hits::wit::Error::Quota,
            HostError::TooLarge | HostError::Invalid | HostError::NotFound | HostError::BadAddress => {
                hits::wit::Error::Invalid
            }
        }
    }
}

impl From<wit::Bounds> for Bounds {
    fn from(bounds: wit::Bounds) -> Bounds {
        let wit::Bounds { idle_ms, total_ms, least_rate } = bounds;
        let within = |ms: u32, most: Duration| match ms {
            0 => most,
            ms => Duration::from_millis(ms.into()).min(most),
        };
        Bounds {
            idle: within(idle_ms, limits::HELD_IDLE_TIME_MAX),
            total: within(total_ms, limits::HELD_TIME_MAX),
            least_rate: least_rate.max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_no_more_than_the_nodes_own() {
        let check = |idle_ms, total_ms, least_rate, expected: (Duration, Duration, u32)| {
            let Bounds { idle, total, least_rate } = wit::Bounds { idle_ms, total_ms, least_rate }.into();
            assert_eq!((idle, total, least_rate), expected);
        };
        let (idle, total) = (limits::HELD_IDLE_TIME_MAX, limits::HELD_TIME_MAX);
        check(0, 0, 0, (idle, total, 1));
        check(u32::MAX, u32::MAX, u32::MAX, (idle, total, u32::MAX));
        check(1, 2, 3, (Duration::from_millis(1), Duration::from_millis(2), 3));
    }
}
