// SPDX-License-Identifier: Apache-2.0
//! Modules of 1.0.0, and what is the same for those of 1.1.0.

mod joined;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use netserv_model::ModuleRef;
use netserv_worker_base::storage::cache::{CacheHandle, CacheSource};
use netserv_worker_base::storage::limits::{
    CACHE_BLOCK_BYTES, CACHE_MEMORY_BYTES_MAX, CACHE_READERS_MAX, CACHE_STREAM_BYTES_MAX, CACHE_STREAM_BYTES_MIN,
};
use netserv_worker_base::storage::testing::Memory;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::{DynInputStream, StreamError};
use wit::{Error, Host as _, HostWriter as _, Range};

use super::found::share;
use super::sink::Writing;
use super::wit::first::store as wit;
use crate::blocks::testing::{run, state};
use crate::limits::LOOKUP_THREADS_MAX;
use crate::module::Shared;
use crate::state::ServerState;

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
        let read = tokio::time::timeout(std::time::Duration::from_secs(60), all).await;
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
        let memory = share(&state.module).await.unwrap().memory().clone();
        let others = memory.reserve(CACHE_MEMORY_BYTES_MAX).unwrap();
        let stream = streams.pop().unwrap();
        let is_private = state.blocks.lending.find(stream.rep()).unwrap();
        let first = state.table.get_mut(&stream).unwrap();
        first.ready().await;
        assert_eq!(first.read(usize::MAX).unwrap().len(), CACHE_STREAM_BYTES_MIN);
        assert!(is_private.load(Ordering::Relaxed) && first.read(usize::MAX).unwrap().is_empty());
        drop(others);
        first.ready().await;
        let mut got = 0;
        while let Ok(bytes) = first.read(usize::MAX)
            && !bytes.is_empty()
        {
            got += bytes.len();
        }
        assert!(!is_private.load(Ordering::Relaxed) && got >= CACHE_STREAM_BYTES_MAX - CACHE_BLOCK_BYTES, "{got}");
        let read_ahead = CACHE_MEMORY_BYTES_MAX - memory.left();
        assert!(read_ahead <= CACHE_STREAM_BYTES_MAX + 2 * CACHE_BLOCK_BYTES, "{read_ahead}");
        state.table.delete(stream).unwrap();
        assert!(state.blocks.lending.find(streams.pop().unwrap().rep()).is_some());
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
        let mut got = 0;
        while let Ok(bytes) = body.read(usize::MAX) {
            assert!(!bytes.is_empty(), "all of it was read ahead");
            got += bytes.len() as u64;
        }
        assert_eq!(got, entry.size);
        assert!(meanwhile(&disk, state.remove("k".into())).await.unwrap());
        assert_eq!(source.failures(), 0);
    });
}

/// Runs a task with a disk that waits for another one.
async fn meanwhile<T>(disk: &Memory, task: impl Future<Output = T>) -> T {
    disk.hold(true);
    tokio::join!(task, async { disk.hold(false) }).0
}

type Got = Option<(wit::Entry, Resource<DynInputStream>)>;

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
