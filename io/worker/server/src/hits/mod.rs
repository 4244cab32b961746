// SPDX-License-Identifier: Apache-2.0
//! What the node answers again without an instance: the table that `netserv:http/hits` fills, one for each version of a module.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::header::{self, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, SET_COOKIE, VARY};
use http::uri::{Authority, PathAndQuery};
use http::{Method, StatusCode};
use netserv_worker_base::compute::{Budget, Reserved};
use netserv_worker_base::storage::cache::Entry;

use crate::limits;

/// The answers of one version of a module.
pub struct Hits {
    /// Whether there may be any.
    is_open: AtomicBool,
    table: Mutex<Table>,
    count: AtomicUsize,
    /// What those of all modules of the container may take.
    memory: Budget,
}

#[derive(Default)]
struct Table {
    hits: BTreeMap<Arc<str>, (u64, Arc<Hit>)>,
    /// The targets, from the one that was put first.
    order: BTreeMap<u64, Arc<str>>,
    puts: u64,
}

/// What a request has to ask for.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Whom, in the letters of the request.
    pub authority: &'a str,
    /// For what.
    pub path_with_query: &'a str,
}

/// The kind of connection that it comes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// To whom it was on its way, if it was taken over: what one server says is not what another one does.
    pub taken_from: Option<SocketAddr>,
    /// Whether the client speaks TLS with the node.
    pub is_secure: bool,
}

/// What a module says of an answer.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Header lines.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Names of headers whose requests are the module's.
    pub unless: Vec<String>,
    /// After which time it is none any more; zero if it has none.
    pub time: Duration,
    /// The module's counter that counts it.
    pub counter: Option<usize>,
    /// The module's counter that counts the bytes of its body.
    pub bytes_counter: Option<usize>,
}

/// An answer that the node gives.
#[derive(Debug)]
pub struct Hit {
    /// The status.
    pub status: StatusCode,
    /// The headers, but for `age`.
    pub headers: HeaderMap,
    /// The module's counter that counts it.
    pub counter: Option<usize>,
    /// The module's counter that counts the bytes of its body.
    pub bytes_counter: Option<usize>,
    /// The entry's key.
    pub key: Arc<str>,
    /// How many control messages had come for the module.
    pub told: u64,
    number: u64,
    unless: Vec<HeaderName>,
    until: Option<Instant>,
    _memory: Reserved,
}

/// Why an answer is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HitError {
    /// Something of it is not as it has to be.
    Invalid,
    /// The body, or what is said of it, has too many bytes.
    TooLarge,
    /// There is no memory.
    Quota,
}

impl Hits {
    /// Returns an empty table that takes nothing before it is opened. `memory` is that of the container's tables.
    pub fn new(memory: &Budget) -> Hits {
        let (is_open, count) = (AtomicBool::new(false), AtomicUsize::new(0));
        Hits { is_open, table: Mutex::default(), count, memory: memory.clone() }
    }

    /// Lets answers be put.
    pub fn open(&self) {
        self.is_open.store(true, Ordering::Release);
    }

    /// Returns whether answers may be put.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Takes an answer with the body of an entry, in the place of an older one for the target. It ends with the first control message
    /// beyond `told`.
    ///
    /// # Errors
    /// [`HitError`]. Without memory, all others are forgotten.
    pub fn put(
        &self,
        target: Target<'_>,
        kind: Kind,
        answer: &Answer,
        entry: &Entry,
        told: u64,
    ) -> Result<(), HitError> {
        let size = usize::try_from(entry.size()).unwrap_or(usize::MAX);
        let said = answer.headers.iter().map(|(name, value)| name.len() + value.len());
        let said = said.chain(answer.unless.iter().map(String::len)).sum::<usize>();
        let bytes = said + target.authority.len() + target.path_with_query.len();
        if size > limits::HTTP_HIT_BODY_BYTES_MAX || bytes > limits::HTTP_HIT_HEAD_BYTES_MAX {
            return Err(HitError::TooLarge);
        }
        if !target.is_valid() {
            return Err(HitError::Invalid);
        }
        let (status, headers, unless) = answer.parse(size).ok_or(HitError::Invalid)?;
        let lines = headers.len() + unless.len();
        let cost = limits::HTTP_HIT_COST + limits::HTTP_HIT_LINE_COST * lines + bytes + entry.key().len();
        let mut table = self.lock();
        let memory = self.reserve(&mut table, cost).ok_or(HitError::Quota)?;
        let until = if answer.time.is_zero() { None } else { Some(Instant::now() + answer.time) };
        let (key, number) = (Arc::clone(entry.key()), entry.number());
        table.insert(
            &target.name(kind),
            Hit {
                status,
                headers,
                counter: answer.counter,
                bytes_counter: answer.bytes_counter,
                key,
                told,
                number,
                unless,
                until,
                _memory: memory,
            },
        );
        self.count.store(table.hits.len(), Ordering::Release);
        Ok(())
    }

    /// Returns the answer for a target, if there is one.
    pub fn find(&self, target: Target<'_>, kind: Kind) -> Option<Arc<Hit>> {
        self.lock().hits.get(&*target.name(kind)).map(|(_, hit)| Arc::clone(hit))
    }

    /// Forgets an answer, unless another one is in its place.
    pub fn forget(&self, target: Target<'_>, kind: Kind, hit: &Arc<Hit>) {
        let (mut table, name) = (self.lock(), target.name(kind));
        if table.hits.get(&*name).is_some_and(|(_, there)| Arc::ptr_eq(there, hit)) {
            table.remove(&name);
        }
        self.count.store(table.hits.len(), Ordering::Release);
    }

    /// Forgets what there is for a target, on connections of any kind. Returns whether there was something.
    pub fn remove(&self, target: Target<'_>) -> bool {
        let (mut table, prefix) = (self.lock(), target.prefix());
        let of_it =
            table.hits.range::<str, _>((Bound::Included(&*prefix), Bound::Unbounded)).map(|(name, _)| Arc::clone(name));
        let names: Vec<Arc<str>> = of_it.take_while(|name| name.starts_with(&prefix)).collect();
        names.iter().for_each(|name| _ = table.remove(name));
        self.count.store(table.hits.len(), Ordering::Release);
        !names.is_empty()
    }

    /// Returns memory, from those that were put first if need be.
    fn reserve(&self, table: &mut Table, cost: usize) -> Option<Reserved> {
        while table.hits.len() >= limits::HTTP_HITS_MAX && table.remove_first() {}
        loop {
            match self.memory.reserve(cost) {
                Ok(memory) => return Some(memory),
                Err(_) if table.remove_first() => {}
                Err(_) => {
                    self.count.store(0, Ordering::Release);
                    return None;
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Hits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Hits({})", self.count.load(Ordering::Relaxed))
    }
}

impl Table {
    fn insert(&mut self, name: &str, hit: Hit) {
        self.remove(name);
        let (name, number): (Arc<str>, u64) = (name.into(), self.puts);
        self.puts += 1;
        self.order.insert(number, Arc::clone(&name));
        self.hits.insert(name, (number, Arc::new(hit)));
    }

    fn remove(&mut self, name: &str) -> bool {
        let gone = self.hits.remove(name);
        gone.is_some_and(|(number, _)| self.order.remove(&number).is_some())
    }

    fn remove_first(&mut self) -> bool {
        let first = self.order.pop_first();
        first.is_some_and(|(_, name)| self.hits.remove(&name).is_some())
    }
}

impl Target<'_> {
    /// Returns whether requests can ask for it.
    fn is_valid(self) -> bool {
        let authority = Authority::try_from(self.authority);
        let path = PathAndQuery::try_from(self.path_with_query);
        authority.is_ok_and(|authority| authority.as_str() == self.authority)
            && self.path_with_query.starts_with('/')
            && path.is_ok_and(|path| path.as_str() == self.path_with_query)
    }

    /// Returns what it has in the table.
    fn name(self, kind: Kind) -> String {
        let (mut name, secure) = (self.prefix(), if kind.is_secure { 's' } else { 'c' });
        name.push(secure);
        if let Some(server) = kind.taken_from {
            name += &server.to_string();
        }
        name
    }

    /// Returns what the names of all its kinds begin with. An authority has no `/`, with which paths begin, and a path no end of a line.
    fn prefix(self) -> String {
        [self.authority, self.path_with_query, "\n"].concat()
    }
}

impl Answer {
    /// Returns what clients get with a body of so many bytes, and whose requests are the module's; nothing if it is none.
    fn parse(&self, size: usize) -> Option<(StatusCode, HeaderMap, Vec<HeaderName>)> {
        let status = StatusCode::from_u16(self.status).ok().filter(|_| may_be_given(self.status))?;
        // The node adds two.
        if self.headers.len() + 2 > limits::HEADERS_MAX {
            return None;
        }
        let unless = self.unless.iter().map(|name| HeaderName::try_from(name).ok());
        let mut unless = unless.collect::<Option<Vec<HeaderName>>>()?;
        let mut headers = HeaderMap::with_capacity(self.headers.len() + 2);
        for (name, value) in &self.headers {
            let (name, value) = (HeaderName::try_from(name).ok()?, HeaderValue::from_bytes(value).ok()?);
            if NOT_SAID.contains(&name) {
                return None;
            }
            if name == VARY {
                let names = value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
                for name in names.filter(|name| !name.is_empty()) {
                    let name = HeaderName::from_bytes(name).ok().filter(|name| name != "*")?;
                    unless.push(name);
                }
            }
            headers.append(name, value);
        }
        headers.insert(CONTENT_LENGTH, HeaderValue::from(size));
        (unless.len() <= limits::HTTP_HIT_UNLESS_MAX).then_some((status, headers, unless))
    }
}

impl Hit {
    /// Returns whether it is for a request with these headers.
    pub fn is_for(&self, headers: &HeaderMap) -> bool {
        !self.unless.iter().any(|name| headers.contains_key(name))
    }

    /// Returns whether its time is not over, and an entry is the one that it was put for and fresh, `now` seconds after 1970.
    pub fn is_of(&self, entry: &Entry, now: u64) -> bool {
        let is_in_time = self.until.is_none_or(|until| Instant::now() < until);
        is_in_time && entry.number() == self.number && entry.age(now) < entry.max_age()
    }
}

/// Returns whether a request asks for nothing that only a module knows: its method, and whether none of its headers says more.
pub fn is_plain(method: &Method, headers: &HeaderMap) -> bool {
    (method == Method::GET || method == Method::HEAD) && !headers.keys().any(|name| NOT_PLAIN.contains(name))
}

/// Returns whether an answer of this status may be given with a body that requests without `range` get.
fn may_be_given(status: u16) -> bool {
    (200..=599).contains(&status) && !matches!(status, 204..=206 | 304)
}

/// Headers of requests that are the module's.
const NOT_PLAIN: [HeaderName; 16] = [
    header::RANGE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
    header::IF_RANGE,
    header::CACHE_CONTROL,
    header::PRAGMA,
    header::AUTHORIZATION,
    header::PROXY_AUTHORIZATION,
    header::EXPECT,
    header::TE,
    header::UPGRADE,
    CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TRAILER,
];

/// Headers of answers that are one client's, one connection's, or the node's to say.
const NOT_SAID: [HeaderName; 10] = [
    SET_COOKIE,
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    CONTENT_LENGTH,
    header::AGE,
];

#[cfg(test)]
mod tests;
