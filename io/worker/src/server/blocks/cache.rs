// SPDX-License-Identifier: Apache-2.0
//! `netserv:cache/store`.
//!
//! Bodies are read ahead on threads that may wait for the disk, and written as they come, into the kernel's memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::task::JoinHandle;
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, InputStream, OutputStream, Pollable, StreamError, StreamResult,
};

use crate::clock;
use crate::server::state::ServerState;
use crate::storage::cache::{CacheError, Entry, Meta, Share, Writer};
use crate::storage::limits::CACHE_STREAM_BYTES_MAX;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "package netserv:host-cache; world host { import netserv:cache/store@1.0.0; }",
        imports: { default: trappable },
        require_store_data_send: true,
        with: {
            "wasi:io": wasmtime_wasi::p2::bindings::io,
            "netserv:cache/store.writer": super::Writing,
        },
    });
}

use bindings::netserv::cache::store::{self as wit, Error, Range};

/// Adds the interface to a linker.
///
/// # Errors
/// It is there already.
pub fn add_to_linker(linker: &mut Linker<ServerState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<ServerState>>(linker, |state| state)
}

/// An entry that a component writes.
pub struct Writing {
    writer: Shared,
    has_body: bool,
}

type Shared = Arc<Mutex<Option<Writer>>>;
type Got = Option<(wit::Entry, Resource<DynInputStream>)>;

impl wit::Host for ServerState {
    fn stat(&mut self, key: String) -> wasmtime::Result<Option<wit::Entry>> {
        Ok(self.module.cache.share().and_then(|share| share.stat(&key)).map(|entry| describe(&entry)))
    }

    fn get(&mut self, key: String, range: Option<Range>) -> wasmtime::Result<Result<Got, Error>> {
        let Some((share, entry)) = self.module.cache.share().and_then(|share| Some((share, share.get(&key)?))) else {
            return Ok(Ok(None));
        };
        let described = describe(&entry);
        let body: DynInputStream = Box::new(Body::new(Arc::clone(share), entry, range));
        Ok(Ok(Some((described, self.table.push(body)?))))
    }

    fn put(
        &mut self,
        key: String,
        content_type: String,
        etag: String,
        max_age: u64,
    ) -> wasmtime::Result<Result<Resource<Writing>, Error>> {
        let Some(share) = self.module.cache.share() else { return Ok(Err(Error::Unavailable)) };
        match share.put(&key, Meta { content_type, etag, max_age }, seconds()) {
            Ok(writer) => {
                let writer = Arc::new(Mutex::new(Some(writer)));
                Ok(Ok(self.table.push(Writing { writer, has_body: false })?))
            }
            Err(error) => Ok(Err(error.into())),
        }
    }

    fn remove(&mut self, key: String) -> wasmtime::Result<bool> {
        Ok(self.module.cache.share().is_some_and(|share| share.remove(&key)))
    }
}

impl wit::HostWriter for ServerState {
    fn body(&mut self, writing: Resource<Writing>) -> wasmtime::Result<Result<Resource<DynOutputStream>, Error>> {
        let writing = self.table.get_mut(&writing)?;
        if std::mem::replace(&mut writing.has_body, true) {
            return Ok(Err(Error::Invalid));
        }
        let stream: DynOutputStream = Box::new(Sink(Arc::clone(&writing.writer)));
        Ok(Ok(self.table.push(stream)?))
    }

    fn finish(&mut self, writing: Resource<Writing>) -> wasmtime::Result<Result<(), Error>> {
        let writing = self.table.delete(writing)?;
        if Arc::strong_count(&writing.writer) > 1 {
            // The stream is still there.
            lock(&writing.writer).take();
            return Ok(Err(Error::Invalid));
        }
        let writer = lock(&writing.writer).take();
        Ok(writer.map_or(Err(Error::Unavailable), |writer| writer.finish().map_err(Error::from)))
    }

    fn drop(&mut self, writing: Resource<Writing>) -> wasmtime::Result<()> {
        let writing = self.table.delete(writing)?;
        // What the stream is sent from here on goes nowhere.
        lock(&writing.writer).take();
        Ok(())
    }
}

impl From<CacheError> for Error {
    fn from(error: CacheError) -> Error {
        match error {
            CacheError::TooLarge => Error::TooLarge,
            CacheError::Invalid => Error::Invalid,
            CacheError::Busy | CacheError::Disk(_) | CacheError::Damaged => Error::Unavailable,
        }
    }
}

fn describe(entry: &Entry) -> wit::Entry {
    wit::Entry {
        size: entry.size(),
        content_type: entry.content_type().to_owned(),
        etag: entry.etag().to_owned(),
        age: entry.age(seconds()),
        max_age: entry.max_age(),
    }
}

fn seconds() -> u64 {
    clock::wall_ns() / 1_000_000_000
}

fn lock(writer: &Shared) -> MutexGuard<'_, Option<Writer>> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(error: CacheError) -> StreamError {
    StreamError::LastOperationFailed(wasmtime::Error::new(error))
}

/// The body of an entry that is read.
struct Body {
    share: Arc<Share>,
    entry: Arc<Entry>,
    offset: u64,
    end: u64,
    ahead: Ahead,
}

enum Ahead {
    /// Bytes that were read, none at first.
    Bytes(Bytes),
    /// More is being read.
    Coming(JoinHandle<Result<Vec<u8>, CacheError>>),
    /// Reading failed.
    Failed(CacheError),
    /// It was said that reading failed.
    Closed,
}

impl Body {
    fn new(share: Arc<Share>, entry: Arc<Entry>, range: Option<Range>) -> Body {
        let size = entry.size();
        let (start, length) = range.map_or((0, None), |range| (range.start, range.length));
        let end = length.and_then(|length| start.checked_add(length)).map_or(size, |end| end.min(size));
        Body { share, entry, offset: start.min(end), end, ahead: Ahead::Bytes(Bytes::new()) }
    }

    /// Begins to read what comes next.
    fn begin(&mut self) {
        let (share, entry, offset) = (Arc::clone(&self.share), Arc::clone(&self.entry), self.offset);
        let left = usize::try_from(self.end - offset).unwrap_or(usize::MAX);
        let task = move || read_ahead(&share, &entry, offset, left.min(CACHE_STREAM_BYTES_MAX));
        self.ahead = Ahead::Coming(tokio::task::spawn_blocking(task));
    }
}

fn read_ahead(share: &Share, entry: &Entry, offset: u64, length: usize) -> Result<Vec<u8>, CacheError> {
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        bytes.extend(share.read(entry, offset + bytes.len() as u64, length - bytes.len())?);
    }
    Ok(bytes)
}

#[wasmtime_wasi::async_trait]
impl Pollable for Body {
    async fn ready(&mut self) {
        if matches!(&self.ahead, Ahead::Bytes(bytes) if bytes.is_empty()) && self.offset < self.end {
            self.begin();
        }
        let Ahead::Coming(task) = &mut self.ahead else { return };
        let read = task.await;
        self.ahead = match read {
            Ok(Ok(bytes)) => {
                self.offset += bytes.len() as u64;
                Ahead::Bytes(bytes.into())
            }
            Ok(Err(error)) => Ahead::Failed(error),
            Err(_) => Ahead::Failed(CacheError::Damaged),
        };
    }
}

#[wasmtime_wasi::async_trait]
impl InputStream for Body {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        match &mut self.ahead {
            Ahead::Bytes(bytes) if bytes.is_empty() && self.offset >= self.end => Err(StreamError::Closed),
            Ahead::Bytes(bytes) => Ok(bytes.split_to(size.min(bytes.len()))),
            Ahead::Coming(_) => Ok(Bytes::new()),
            Ahead::Failed(_) => match std::mem::replace(&mut self.ahead, Ahead::Closed) {
                Ahead::Failed(error) => Err(failed(error)),
                Ahead::Bytes(_) | Ahead::Coming(_) | Ahead::Closed => Err(StreamError::Closed),
            },
            Ahead::Closed => Err(StreamError::Closed),
        }
    }
}

/// Where the body of an entry goes that is written.
struct Sink(Shared);

#[wasmtime_wasi::async_trait]
impl Pollable for Sink {
    async fn ready(&mut self) {}
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Sink {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let mut writer = lock(&self.0);
        let written = writer.as_mut().ok_or(StreamError::Closed)?.write(&bytes);
        written.map_err(failed)
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        match &*lock(&self.0) {
            Some(writer) if !writer.has_failed() => Ok(CACHE_STREAM_BYTES_MAX),
            Some(_) | None => Err(StreamError::Closed),
        }
    }
}

#[cfg(test)]
mod tests {
    use wit::{Host as _, HostWriter as _};

    use super::*;
    use crate::server::blocks::testing::{run, state};
    use crate::server::module::Shared;

    #[test]
    fn a_body_is_written_and_read_as_streams() {
        run(async {
            let mut state = state(Shared::for_tests);
            let body: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
            assert!(state.get("k".into(), None).unwrap().unwrap().is_none());
            put(&mut state, "k", &body).unwrap();
            let (entry, stream) = state.get("k".into(), None).unwrap().unwrap().unwrap();
            assert_eq!((entry.size, &*entry.content_type, entry.max_age), (1_200_000, "text/plain", 60));
            assert!(entry.age < 60);
            assert_eq!(read(&mut state, stream).await.unwrap(), body);
            for (start, length, expected) in [
                (10, Some(5), &body[10..15]),
                (1_199_990, None, &body[1_199_990..]),
                (1_199_990, Some(u64::MAX), &body[1_199_990..]),
                (2_000_000, Some(5), &[]),
                (0, Some(0), &[]),
            ] {
                let range = Some(Range { start, length });
                let (_, stream) = state.get("k".into(), range).unwrap().unwrap().unwrap();
                assert_eq!(read(&mut state, stream).await.unwrap(), expected, "{start} {length:?}");
            }
            assert!(state.remove("k".into()).unwrap() && !state.remove("k".into()).unwrap());
            assert!(state.stat("k".into()).unwrap().is_none());
        });
    }

    #[test]
    fn an_entry_appears_only_when_all_of_it_is_there() {
        run(async {
            let mut state = state(Shared::for_tests);
            let writing = begin(&mut state, "k").unwrap();
            let rep = writing.rep();
            let stream = state.body(Resource::new_borrow(rep)).unwrap().unwrap();
            assert!(matches!(state.body(Resource::new_borrow(rep)).unwrap(), Err(Error::Invalid)));
            state.table.get_mut(&stream).unwrap().write(Bytes::from_static(b"half")).unwrap();
            assert!(matches!(state.finish(writing).unwrap(), Err(Error::Invalid)), "the stream is still there");
            assert!(state.table.get_mut(&stream).unwrap().check_write().is_err());
            let writing = begin(&mut state, "k").unwrap();
            wit::HostWriter::drop(&mut state, writing).unwrap();
            assert!(state.stat("k".into()).unwrap().is_none());
            assert!(matches!(begin(&mut state, ""), Err(Error::Invalid)));
        });
    }

    #[test]
    fn an_entry_over_the_share_closes_its_stream() {
        run(async {
            let mut state = state(Shared::for_tests);
            let writing = begin(&mut state, "k").unwrap();
            let stream = state.body(Resource::new_borrow(writing.rep())).unwrap().unwrap();
            let share = state.module.cache.share().unwrap().bytes();
            let sink = state.table.get_mut(&stream).unwrap();
            let piece = Bytes::from(vec![1; CACHE_STREAM_BYTES_MAX]);
            let mut written = 0;
            while sink.check_write().is_ok() && sink.write(piece.clone()).is_ok() {
                written += piece.len() as u64;
            }
            assert!(written < share && written > share / 2);
            assert!(sink.check_write().is_err());
            state.table.delete(stream).unwrap();
            assert!(matches!(state.finish(writing).unwrap(), Err(Error::TooLarge)));
        });
    }

    #[test]
    fn without_a_file_it_is_as_if_it_were_empty() {
        run(async {
            let mut state = state(|_| Shared::default());
            assert!(state.stat("k".into()).unwrap().is_none());
            assert!(state.get("k".into(), None).unwrap().unwrap().is_none());
            assert!(!state.remove("k".into()).unwrap());
            assert!(matches!(begin(&mut state, "k"), Err(Error::Unavailable)));
        });
    }

    fn begin(state: &mut ServerState, key: &str) -> Result<Resource<Writing>, Error> {
        state.put(key.into(), "text/plain".into(), "\"1\"".into(), 60).unwrap()
    }

    fn put(state: &mut ServerState, key: &str, body: &[u8]) -> Result<(), Error> {
        let writing = begin(state, key)?;
        let stream = state.body(Resource::new_borrow(writing.rep())).unwrap()?;
        for piece in body.chunks(CACHE_STREAM_BYTES_MAX) {
            let sink = state.table.get_mut(&stream).unwrap();
            assert!(sink.check_write().unwrap() >= piece.len());
            sink.write(Bytes::copy_from_slice(piece)).unwrap();
        }
        state.table.delete(stream).unwrap();
        state.finish(writing).unwrap()
    }

    async fn read(state: &mut ServerState, stream: Resource<DynInputStream>) -> Result<Vec<u8>, StreamError> {
        let mut body = state.table.delete(stream).unwrap();
        let mut bytes = vec![];
        loop {
            body.ready().await;
            match body.read(50_000) {
                Ok(piece) => bytes.extend(piece),
                Err(StreamError::Closed) => return Ok(bytes),
                Err(error) => return Err(error),
            }
        }
    }
}
