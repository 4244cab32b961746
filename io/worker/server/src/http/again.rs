// SPDX-License-Identifier: Apache-2.0
//! Requests that the node answers without an instance, as `netserv:http/hits` had it: small entries of the cache that are in memory, and
//! larger ones as responses that were handed over.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{AGE, HeaderValue};
use http::uri::Authority;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use netserv_worker_base::clock;
use netserv_worker_base::storage::cache::{Entry, Share};
use wasmtime_wasi_http::Error;

use super::body::ResponseBody;
use super::connection::{Deadline, Underway};
use super::forwarding;
use super::held::{Held, HeldBody};
use crate::accepted::Flow;
use crate::blocks::cache;
use crate::hits::{Hit, Kind, Target, is_plain};
use crate::limits;
use crate::module::Module;

/// An answer that is there.
pub struct Again {
    status: StatusCode,
    headers: HeaderMap,
    given: Given,
}

/// The body of one.
enum Given {
    AtOnce(Vec<Bytes>),
    Held(Box<HeldBody>, Held),
}

/// Returns the answer for a request of a module's; nothing if the module has to answer.
pub fn find<B: Body>(module: &Arc<Module>, request: &Request<B>, authority: &Authority, flow: &Flow) -> Option<Again> {
    if module.hits.is_empty() || !is_plain(request.method(), request.headers()) || !request.body().is_end_stream() {
        return None;
    }
    let path = request.uri().path_and_query().filter(|_| request.version() <= Version::HTTP_2)?;
    let target = Target { authority: authority.as_str(), path_with_query: path.as_str() };
    let kind = Kind::from(*flow);
    let hit = module.hits.find(target, kind)?;
    if !hit.is_for(request.headers()) {
        return None;
    }
    let now = clock::wall_ns() / 1_000_000_000;
    let (share, entry) = match entry(module, &hit, now) {
        Some(found) => found,
        None => {
            module.hits.forget(target, kind, &hit);
            return None;
        }
    };
    if !module.control.is_quiet_since(hit.told) {
        return None;
    }
    let (given, bytes) = match request.method() == Method::HEAD {
        true => (Given::AtOnce(vec![]), 0),
        false => (given(module, share, &entry, &hit.headers)?, entry.size()),
    };
    let counted = [(hit.counter, 1), (hit.bytes_counter, bytes)];
    let mut counters = module.lock_counters();
    for (counter, amount) in counted.into_iter().filter_map(|(counter, amount)| Some((counter?, amount))) {
        // It was opened when the answer was put.
        let _ = counters.add(counter, amount);
    }
    drop(counters);
    let mut headers = hit.headers.clone();
    headers.insert(AGE, HeaderValue::from(entry.age(now)));
    Some(Again { status: hit.status, headers, given })
}

/// Returns the entry of an answer, if it is the one that it was put for. It counts as used.
fn entry<'a>(module: &'a Module, hit: &Hit, now: u64) -> Option<(&'a Arc<Share>, Arc<Entry>)> {
    let share = module.cache.known()?;
    let entry = share.find(&hit.key, true)?;
    hit.is_of(&entry, now).then_some((share, entry))
}

/// Returns the body of an entry; nothing of a small one that is not in memory, or if the node pumps as many as it may.
fn given(module: &Arc<Module>, share: &Arc<Share>, entry: &Arc<Entry>, headers: &HeaderMap) -> Option<Given> {
    if entry.size() <= limits::HTTP_HIT_AT_ONCE_BYTES_MAX as u64 {
        return pieces(share, entry).map(Given::AtOnce);
    }
    let place = module.reserve_held_place().ok()?;
    let body = cache::Body::whole(share, Arc::clone(entry));
    let is_private = Some(Arc::clone(body.is_private()));
    let (body, held) = HeldBody::new(Box::new(body), is_private, headers, forwarding::BOUNDS, module, place);
    Some(Given::Held(Box::new(body), held))
}

/// Returns the body of an entry, if all of it is in memory.
fn pieces(share: &Share, entry: &Entry) -> Option<Vec<Bytes>> {
    let (mut pieces, mut offset) = (Vec::new(), 0);
    while offset < entry.size() {
        let lent = share.find_bytes(entry, offset, limits::HTTP_HIT_AT_ONCE_BYTES_MAX)?;
        offset += lent.bytes.len() as u64;
        pieces.push(lent.bytes);
    }
    Some(pieces)
}

impl Again {
    /// Returns the response, whose end is that of its request. One that the node pumps puts off when its request ends.
    pub fn into_response(self, module: &Arc<Module>, underway: Underway, ends: Deadline) -> Response<ResponseBody> {
        let Again { status, headers, given } = self;
        let (body, underway) = match given {
            Given::AtOnce(pieces) => {
                let left = pieces.iter().map(|piece| piece.len() as u64).sum();
                (Pieces { pieces: pieces.into_iter(), left }.boxed_unsync(), Some(underway))
            }
            Given::Held(body, held) => {
                held.begin(Some(ends), Some(underway));
                (body.boxed_unsync(), None)
            }
        };
        let mut response = Response::new(ResponseBody::held(body, module, underway));
        (*response.status_mut(), *response.headers_mut()) = (status, headers);
        response
    }
}

/// A body that is there.
struct Pieces {
    pieces: std::vec::IntoIter<Bytes>,
    left: u64,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let piece = self.pieces.next();
        self.left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

impl From<Flow> for Kind {
    fn from(flow: Flow) -> Kind {
        Kind { taken_from: flow.is_intercepted.then_some(flow.server), is_secure: flow.is_secure }
    }
}

#[cfg(test)]
mod tests {
    use netserv_worker_base::storage::StoreFile;
    use netserv_worker_base::storage::cache::{Cache, Details, Writer};

    use super::*;
    use crate::blocks::testing::state;
    use crate::module::Shared;

    #[test]
    fn what_is_large_takes_one_of_the_places_for_what_the_node_pumps() {
        let module = state(Shared::for_tests).module;
        let cache = Cache::open(StoreFile::in_memory(4 << 20).unwrap()).unwrap();
        let share = Arc::new(cache.share(&"example.org/a".parse().unwrap()));
        let of = |bytes: usize| {
            let mut writer = Writer::alone(&share, "k", Details::default(), 1000).unwrap();
            writer.write(&vec![b'x'; bytes]).unwrap();
            writer.finish().unwrap();
            let (entry, mut read) = (share.get("k").unwrap(), 0);
            while read < entry.size() {
                read += share.read(&entry, read, bytes).unwrap().bytes.len() as u64;
            }
            given(&module, &share, &entry, &HeaderMap::new())
        };
        let large = of(limits::HTTP_HIT_AT_ONCE_BYTES_MAX + 1).unwrap();
        assert_eq!(module.held_places.left(), limits::HELD_RESPONSES_MAX - 1);
        let others = module.held_places.reserve(limits::HELD_RESPONSES_MAX - 1).unwrap();
        assert!(of(limits::HTTP_HIT_AT_ONCE_BYTES_MAX + 1).is_none(), "an instance answers");
        assert!(matches!(of(limits::HTTP_HIT_AT_ONCE_BYTES_MAX), Some(Given::AtOnce(_))), "it takes no place");
        drop((large, others));
        assert_eq!(module.held_places.left(), limits::HELD_RESPONSES_MAX);
    }
}
