// SPDX-License-Identifier: Apache-2.0
//! `netserv:cache/store`.
//!
//! What may wait for the disk is done on threads for that: the first look through the file, reading ahead, each write.

use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, ready};

use bytes::Bytes;
use netserv_wire::container::frames::LogLevel;
use tokio::task::JoinHandle;
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, InputStream, OutputStream, Pollable, StreamError, StreamResult,
};

use crate::clock;
use crate::compute::{Budget, Reserved};
use crate::server::disk::spawn_blocking;
use crate::server::module::Module;
use crate::server::state::ServerState;
use crate::storage::cache::{CacheError, Entry, Meta, Share, Writer};
use crate::storage::limits::{CACHE_STREAM_BYTES_MAX, CACHE_STREAM_BYTES_MIN};

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "package netserv:host-cache; world host { import netserv:cache/store@1.0.0; }",
        imports: {
            "netserv:cache/store.stat": async | trappable,
            "netserv:cache/store.get": async | trappable,
            "netserv:cache/store.put": async | trappable,
            "netserv:cache/store.remove": async | trappable,
            "netserv:cache/store.[static]writer.finish": async | trappable,
            default: trappable,
        },
        require_store_data_send: true,
        with: {
            "wasi:io": wasmtime_wasi::p2::bindings::io,
            "netserv:cache/store.writer": crate::server::blocks::cache::Writing,
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
    place: Shared,
    has_body: bool,
}

/// Who has the writer of an entry.
enum Place {
    /// Nobody, while nothing is written, with what the stream was not told yet.
    Here(Box<Writer>, Option<CacheError>),
    /// A thread that writes.
    There(JoinHandle<(Box<Writer>, Result<(), CacheError>)>),
    /// The entry is finished, or given up.
    Gone,
}

type Shared = Arc<Mutex<Place>>;
type Got = Option<(wit::Entry, Resource<DynInputStream>)>;

impl wit::Host for ServerState {
    async fn stat(&mut self, key: String) -> wasmtime::Result<Option<wit::Entry>> {
        let share = share(&self.module).await;
        Ok(share.and_then(|share| share.stat(&key)).map(|entry| describe(&entry)))
    }

    async fn get(&mut self, key: String, range: Option<Range>) -> wasmtime::Result<Result<Got, Error>> {
        let Some(share) = share(&self.module).await else { return Ok(Ok(None)) };
        let Some(entry) = share.get(&key) else { return Ok(Ok(None)) };
        let described = describe(&entry);
        let Ok(place) = self.blocks.cache_readers.reserve(1) else { return Ok(Err(Error::Unavailable)) };
        let memory = self.module.cache_memory.clone();
        let body: DynInputStream = Box::new(Body::new(share, entry, range, memory, place));
        Ok(Ok(Some((described, self.table.push(body)?))))
    }

    async fn put(
        &mut self,
        key: String,
        content_type: String,
        etag: String,
        max_age: u64,
    ) -> wasmtime::Result<Result<Resource<Writing>, Error>> {
        let Some(share) = share(&self.module).await else { return Ok(Err(Error::Unavailable)) };
        match Writer::begin(&share, &key, Meta { content_type, etag, max_age }, seconds()) {
            Ok(writer) => {
                let place = Arc::new(Mutex::new(Place::Here(Box::new(writer), None)));
                Ok(Ok(self.table.push(Writing { place, has_body: false })?))
            }
            Err(error) => Ok(Err(error.into())),
        }
    }

    async fn remove(&mut self, key: String) -> wasmtime::Result<bool> {
        let Some(share) = share(&self.module).await else { return Ok(false) };
        Ok(spawn_blocking(move || share.remove(&key)).await?)
    }
}

impl wit::HostWriter for ServerState {
    fn body(&mut self, writing: Resource<Writing>) -> wasmtime::Result<Result<Resource<DynOutputStream>, Error>> {
        let writing = self.table.get_mut(&writing)?;
        if mem::replace(&mut writing.has_body, true) {
            return Ok(Err(Error::Invalid));
        }
        let stream: DynOutputStream = Box::new(Sink(Arc::clone(&writing.place)));
        Ok(Ok(self.table.push(stream)?))
    }

    async fn finish(&mut self, writing: Resource<Writing>) -> wasmtime::Result<Result<(), Error>> {
        let Writing { place, .. } = self.table.delete(writing)?;
        if Arc::strong_count(&place) > 1 {
            // The stream is still there.
            *lock(&place) = Place::Gone;
            return Ok(Err(Error::Invalid));
        }
        settle(&place).await;
        let place = mem::replace(&mut *lock(&place), Place::Gone);
        let Place::Here(writer, _) = place else { return Ok(Err(Error::Unavailable)) };
        Ok(spawn_blocking(move || writer.finish()).await?.map_err(Error::from))
    }

    fn drop(&mut self, writing: Resource<Writing>) -> wasmtime::Result<()> {
        let writing = self.table.delete(writing)?;
        // What the stream is sent from here on goes nowhere.
        *lock(&writing.place) = Place::Gone;
        Ok(())
    }
}

/// Returns the module's share; nothing where there is no file of use, as its log says then.
async fn share(module: &Module) -> Option<Arc<Share>> {
    let report = |error: &CacheError| {
        module.log(LogLevel::Warn, format!("there is no cache, which is as if it were empty: {error}").as_bytes());
    };
    module.cache.share(report).await.cloned()
}

/// Waits until no thread writes.
async fn settle(place: &Shared) {
    poll_fn(|context| {
        let mut place = lock(place);
        let Place::There(task) = &mut *place else { return Poll::Ready(()) };
        *place = match ready!(Pin::new(task).poll(context)) {
            Ok((writer, written)) => Place::Here(writer, written.err()),
            Err(_) => Place::Gone,
        };
        Poll::Ready(())
    })
    .await;
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

fn lock(place: &Shared) -> MutexGuard<'_, Place> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
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
    memory: Budget,
    /// The memory of what was read ahead last, if that was more than the least.
    reserved: Option<Reserved>,
    /// One of those that the instance may read at a time.
    _place: Reserved,
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
    fn new(share: Arc<Share>, entry: Arc<Entry>, range: Option<Range>, memory: Budget, place: Reserved) -> Body {
        let size = entry.size();
        let (start, length) = range.map_or((0, None), |range| (range.start, range.length));
        let end = length.and_then(|length| start.checked_add(length)).map_or(size, |end| end.min(size));
        let (offset, ahead) = (start.min(end), Ahead::Bytes(Bytes::new()));
        Body { share, entry, offset, end, ahead, memory, reserved: None, _place: place }
    }

    /// Begins to read what comes next.
    fn begin(&mut self) {
        let (share, entry, offset) = (Arc::clone(&self.share), Arc::clone(&self.entry), self.offset);
        let left = usize::try_from(self.end - offset).unwrap_or(usize::MAX);
        let wanted = left.min(CACHE_STREAM_BYTES_MAX);
        // What was read before is gone.
        self.reserved = None;
        self.reserved = self.memory.reserve(wanted).ok();
        let length = if self.reserved.is_some() { wanted } else { wanted.min(CACHE_STREAM_BYTES_MIN) };
        let task = move || read_ahead(&share, &entry, offset, length);
        self.ahead = Ahead::Coming(spawn_blocking(task));
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
            Ahead::Failed(_) => match mem::replace(&mut self.ahead, Ahead::Closed) {
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
    async fn ready(&mut self) {
        settle(&self.0).await;
    }
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Sink {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let mut place = lock(&self.0);
        match &*place {
            Place::Here(writer, None) if !writer.has_failed() => {}
            Place::There(_) => return Err(StreamError::trap("a stream was written to before it was ready")),
            Place::Here(..) | Place::Gone => return Err(StreamError::Closed),
        }
        let Place::Here(mut writer, _) = mem::replace(&mut *place, Place::Gone) else {
            return Err(StreamError::Closed);
        };
        if writer.has_room(bytes.len()) {
            let written = writer.write(&bytes);
            *place = Place::Here(writer, written.err());
            return Ok(());
        }
        let task = move || {
            let written = writer.write(&bytes);
            (writer, written)
        };
        *place = Place::There(spawn_blocking(task));
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        match &mut *lock(&self.0) {
            Place::Here(_, error @ Some(_)) => Err(error.take().map_or(StreamError::Closed, failed)),
            Place::Here(writer, None) if !writer.has_failed() => Ok(CACHE_STREAM_BYTES_MAX),
            Place::There(_) => Ok(0),
            Place::Here(..) | Place::Gone => Err(StreamError::Closed),
        }
    }
}

#[cfg(test)]
mod tests {
    use netserv_model::ModuleRef;
    use wit::{Host as _, HostWriter as _};

    use super::*;
    use crate::limits::LOOKUP_THREADS_MAX;
    use crate::server::blocks::testing::{run, state};
    use crate::server::module::Shared;
    use crate::storage::cache::{CacheHandle, CacheSource};
    use crate::storage::limits::CACHE_BLOCK_BYTES;
    use crate::storage::limits::{CACHE_AHEAD_BYTES_MAX, CACHE_READERS_MAX};
    use crate::storage::testing::Memory;

    #[test]
    fn a_body_is_written_and_read_as_streams() {
        run(async {
            let mut state = state(Shared::for_tests);
            let body: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
            assert!(get(&mut state, None).await.is_none());
            put(&mut state, "k", &body).await.unwrap();
            let (entry, stream) = get(&mut state, None).await.unwrap();
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
                let (_, stream) = get(&mut state, range).await.unwrap();
                assert_eq!(read(&mut state, stream).await.unwrap(), expected, "{start} {length:?}");
            }
            assert!(state.remove("k".into()).await.unwrap() && !state.remove("k".into()).await.unwrap());
            assert!(state.stat("k".into()).await.unwrap().is_none());
        });
    }

    #[test]
    fn an_entry_appears_only_when_all_of_it_is_there() {
        run(async {
            let mut state = state(Shared::for_tests);
            let writing = begin(&mut state, "k").await.unwrap();
            let rep = writing.rep();
            let stream = state.body(Resource::new_borrow(rep)).unwrap().unwrap();
            assert!(matches!(state.body(Resource::new_borrow(rep)).unwrap(), Err(Error::Invalid)));
            state.table.get_mut(&stream).unwrap().write(Bytes::from_static(b"half")).unwrap();
            assert!(matches!(state.finish(writing).await.unwrap(), Err(Error::Invalid)), "the stream is still there");
            assert!(state.table.get_mut(&stream).unwrap().check_write().is_err());
            let writing = begin(&mut state, "k").await.unwrap();
            wit::HostWriter::drop(&mut state, writing).unwrap();
            assert!(state.stat("k".into()).await.unwrap().is_none());
            assert!(matches!(begin(&mut state, "").await, Err(Error::Invalid)));
        });
    }

    #[test]
    fn an_entry_over_the_share_closes_its_stream() {
        run(async {
            let mut state = state(Shared::for_tests);
            let writing = begin(&mut state, "k").await.unwrap();
            let stream = state.body(Resource::new_borrow(writing.rep())).unwrap().unwrap();
            let share = share(&state.module).await.unwrap().bytes();
            let sink = state.table.get_mut(&stream).unwrap();
            let piece = Bytes::from(vec![1; CACHE_STREAM_BYTES_MAX]);
            let mut written = 0;
            let error = loop {
                sink.ready().await;
                match sink.check_write() {
                    Ok(_) => sink.write(piece.clone()).unwrap(),
                    Err(error) => break error,
                }
                written += piece.len() as u64;
            };
            assert!(matches!(error, StreamError::LastOperationFailed(_)));
            assert!(written > share / 2 && written <= share + piece.len() as u64, "{written} of {share}");
            assert!(sink.check_write().is_err());
            state.table.delete(stream).unwrap();
            assert!(matches!(state.finish(writing).await.unwrap(), Err(Error::TooLarge)));
        });
    }

    #[test]
    fn bodies_are_read_while_name_servers_do_not_answer() {
        run(async {
            let mut state = state(Shared::for_tests);
            let lookup = || {
                let (end, answer) = std::sync::mpsc::channel::<()>();
                tokio::task::spawn_blocking(move || answer.recv());
                end
            };
            let _lookups: Vec<_> = (0..LOOKUP_THREADS_MAX).map(|_| lookup()).collect();
            let all = async {
                put(&mut state, "k", b"body").await.unwrap();
                let (_, stream) = get(&mut state, None).await.unwrap();
                read(&mut state, stream).await.unwrap()
            };
            let read = tokio::time::timeout(std::time::Duration::from_secs(10), all).await;
            assert_eq!(read.expect("it waits for name servers"), b"body");
        });
    }

    #[test]
    fn what_is_read_ahead_is_bounded() {
        run(async {
            let mut state = state(Shared::for_tests);
            let body = vec![7; 3 * CACHE_STREAM_BYTES_MAX];
            put(&mut state, "k", &body).await.unwrap();
            let mut streams = Vec::new();
            for _ in 0..CACHE_READERS_MAX {
                streams.push(get(&mut state, None).await.unwrap().1);
            }
            assert!(matches!(state.get("k".into(), None).await.unwrap(), Err(Error::Unavailable)));
            // Who finds all memory taken reads less at a time.
            let others = state.module.cache_memory.reserve(CACHE_AHEAD_BYTES_MAX).unwrap();
            let stream = streams.pop().unwrap();
            let first = state.table.get_mut(&stream).unwrap();
            first.ready().await;
            assert_eq!(first.read(usize::MAX).unwrap().len(), CACHE_STREAM_BYTES_MIN);
            drop(others);
            first.ready().await;
            assert_eq!(first.read(usize::MAX).unwrap().len(), CACHE_STREAM_BYTES_MAX);
            assert!(state.module.cache_memory.reserve(CACHE_AHEAD_BYTES_MAX).is_err());
            state.table.delete(stream).unwrap();
            assert!(state.module.cache_memory.reserve(CACHE_AHEAD_BYTES_MAX).is_ok());
            let (_, stream) = get(&mut state, None).await.unwrap();
            assert_eq!(read(&mut state, stream).await.unwrap(), body);
        });
    }

    #[test]
    fn without_a_file_it_is_as_if_it_were_empty() {
        run(async {
            let mut state = state(|_| Shared::default());
            assert!(state.stat("k".into()).await.unwrap().is_none());
            assert!(get(&mut state, None).await.is_none());
            assert!(!state.remove("k".into()).await.unwrap());
            assert!(matches!(begin(&mut state, "k").await, Err(Error::Unavailable)));
            let lines = state.module.take_log();
            assert!(lines.len() == 1 && lines[0].text.contains("there is no cache"), "it is said once: {lines:?}");
        });
    }

    /// Goal: while one request waits for the disk, others go on. Method: a disk that answers only when another task of
    /// the same thread says so.
    #[test]
    fn nobody_else_waits_for_the_disk() {
        let disk = Memory::new(64 * CACHE_BLOCK_BYTES);
        let source = CacheSource::on(&disk);
        let shared =
            |name: &ModuleRef| Shared { cache: Arc::new(CacheHandle::new(&source, &name.name)), ..Shared::default() };
        let mut state = state(shared);
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
            assert!(meanwhile(&disk, state.stat("k".into())).await.unwrap().is_none());
            let writing = begin(&mut state, "k").await.unwrap();
            let stream = state.body(Resource::new_borrow(writing.rep())).unwrap().unwrap();
            let mut sink = state.table.delete(stream).unwrap();
            disk.hold(true);
            sink.write(vec![1; CACHE_BLOCK_BYTES].into()).unwrap();
            assert_eq!(sink.check_write().unwrap(), CACHE_STREAM_BYTES_MAX, "this is only kept");
            sink.write(vec![1; CACHE_STREAM_BYTES_MAX - CACHE_BLOCK_BYTES].into()).unwrap();
            assert_eq!(sink.check_write().unwrap(), 0);
            assert!(sink.write(Bytes::from_static(b"too soon")).is_err());
            meanwhile(&disk, sink.ready()).await;
            assert_eq!(sink.check_write().unwrap(), CACHE_STREAM_BYTES_MAX);
            drop(sink);
            meanwhile(&disk, state.finish(writing)).await.unwrap().unwrap();
            let (entry, mut body) = {
                let (entry, stream) = get(&mut state, None).await.unwrap();
                (entry, state.table.delete(stream).unwrap())
            };
            meanwhile(&disk, body.ready()).await;
            assert_eq!(body.read(usize::MAX).unwrap().len() as u64, entry.size);
            assert!(meanwhile(&disk, state.remove("k".into())).await.unwrap());
            assert_eq!(source.failures(), 0);
        });
    }

    /// Runs a task with a disk that waits for another one.
    async fn meanwhile<T>(disk: &Memory, task: impl Future<Output = T>) -> T {
        disk.hold(true);
        tokio::join!(task, async { disk.hold(false) }).0
    }

    async fn get(state: &mut ServerState, range: Option<Range>) -> Got {
        state.get("k".into(), range).await.unwrap().unwrap()
    }

    async fn begin(state: &mut ServerState, key: &str) -> Result<Resource<Writing>, Error> {
        state.put(key.into(), "text/plain".into(), "\"1\"".into(), 60).await.unwrap()
    }

    async fn put(state: &mut ServerState, key: &str, body: &[u8]) -> Result<(), Error> {
        let writing = begin(state, key).await?;
        let stream = state.body(Resource::new_borrow(writing.rep())).unwrap()?;
        for piece in body.chunks(CACHE_STREAM_BYTES_MAX) {
            let sink = state.table.get_mut(&stream).unwrap();
            sink.ready().await;
            assert!(sink.check_write().unwrap() >= piece.len());
            sink.write(Bytes::copy_from_slice(piece)).unwrap();
        }
        state.table.delete(stream).unwrap();
        state.finish(writing).await.unwrap()
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
