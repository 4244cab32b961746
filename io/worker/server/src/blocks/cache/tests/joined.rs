// SPDX-License-Identifier: Apache-2.0
//! Modules of 1.1.0: one writes, others read meanwhile.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use netserv_worker_base::storage::limits::{CACHE_READERS_MAX, CACHE_STREAM_BYTES_MAX};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, StreamError};

use super::super::body::Reading;
use super::super::sink::Writing;
use super::super::wit::entries::{
    self as wit, Details, Error, Host as _, HostReader as _, HostWriter as _, Opened, Range, Scope,
};
use super::read;
use crate::blocks::testing::{another, run, state};
use crate::module::Shared;
use crate::state::ServerState;

#[test]
fn one_writes_and_the_others_read_what_is_there() {
    run(async {
        let mut first = state(Shared::for_tests);
        let mut second = another(&first);
        let body: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let writing = writer(&mut first).await;
        let stream = begin(&mut first, &writing, None);
        let all = join(&mut second).await;
        let part = body_of(&mut second, &all, Some(Range { start: 300_000, length: Some(50) }));
        let whole = body_of(&mut second, &all, None);
        let entry = second.entry(Resource::new_borrow(all.rep())).unwrap();
        assert_eq!((entry.size, &*entry.details.content_type, entry.details.meta.len()), (None, "text/plain", 3));
        let (mut whole, mut part) = (second.table.delete(whole).unwrap(), second.table.delete(part).unwrap());
        write(&mut first, &stream, &body[..1000]).await;
        whole.ready().await;
        assert_eq!(whole.read(usize::MAX).unwrap(), &body[..1000], "at once");
        assert!(whole.read(usize::MAX).unwrap().is_empty());
        assert!(tokio::time::timeout(Duration::from_millis(20), part.ready()).await.is_err(), "it is not there yet");
        write(&mut first, &stream, &body[1000..]).await;
        part.ready().await;
        assert_eq!(part.read(usize::MAX).unwrap(), &body[300_000..300_050]);
        assert!(matches!(part.read(usize::MAX), Err(StreamError::Closed)));
        first.table.delete(stream).unwrap();
        first.finish(writing).await.unwrap().unwrap();
        let whole = second.table.push(whole).unwrap();
        assert!(read(&mut second, whole).await.unwrap() == body[1000..]);
        assert!(second.failure(Resource::new_borrow(all.rep())).unwrap().is_none());
        let Ok(Opened::Reader(reading)) = second.open_or_join("k".into()).await.unwrap() else { panic!("it is there") };
        assert_eq!(second.entry(Resource::new_borrow(reading.rep())).unwrap().size, Some(400_000));
        let stream = body_of(&mut second, &reading, None);
        assert!(read(&mut second, stream).await.unwrap() == body);
    });
}

#[test]
fn readers_fail_with_the_writer_and_know_why() {
    for how in [Error::Abandoned, Error::TooLarge, Error::Invalid] {
        run(async move {
            let mut first = state(Shared::for_tests);
            let mut second = another(&first);
            let writing = writer(&mut first).await;
            let stream = begin(&mut first, &writing, (how == Error::Invalid).then_some(10));
            let reading = join(&mut second).await;
            let body = body_of(&mut second, &reading, None);
            write(&mut first, &stream, b"some").await;
            match how {
                // As when the instance traps.
                Error::Abandoned => drop(first),
                Error::TooLarge => {
                    let sink = first.table.get_mut(&stream).unwrap();
                    while sink.check_write().is_ok() {
                        sink.write(Bytes::from(vec![1; CACHE_STREAM_BYTES_MAX])).unwrap();
                        sink.ready().await;
                    }
                }
                Error::Invalid | Error::Unavailable | Error::Busy | Error::TooManyReaders | Error::Stalled => {
                    first.table.delete(stream).unwrap();
                    assert_eq!(
                        first.finish(writing).await.unwrap(),
                        Err(Error::Invalid),
                        "it is shorter than was promised"
                    );
                }
            }
            assert!(matches!(read(&mut second, body).await, Err(StreamError::LastOperationFailed(_))));
            assert_eq!(second.failure(Resource::new_borrow(reading.rep())).unwrap(), Some(how));
            assert!(second.stat("k".into()).await.unwrap().is_none());
            writer(&mut second).await;
        });
    }
}

#[test]
fn who_waits_for_a_writer_that_never_begins_is_told() {
    run(async {
        let mut first = state(Shared::for_tests);
        let mut second = another(&first);
        let writing = writer(&mut first).await;
        let joins = second.open_or_join("k".into());
        let gives_up = async {
            tokio::task::yield_now().await;
            wit::HostWriter::drop(&mut first, writing).unwrap();
        };
        let (joined, ()) = tokio::join!(joins, gives_up);
        assert!(matches!(joined.unwrap(), Err(Error::Abandoned)));
        writer(&mut second).await;
    });
}

#[test]
fn details_are_updated_listed_and_purged() {
    run(async {
        let mut state = state(Shared::for_tests);
        for key in ["a/1", "a/2", "b"] {
            let writing = state.put(key.into()).await.unwrap().unwrap();
            let stream = begin(&mut state, &writing, Some(4));
            write(&mut state, &stream, b"body").await;
            state.table.delete(stream).unwrap();
            state.finish(writing).await.unwrap().unwrap();
        }
        let other = Details { max_age: 7, meta: vec![1; 16_384], tags: vec!["t".into()], ..details() };
        assert_eq!(state.update("a/1".into(), other).await.unwrap(), Ok(true));
        assert_eq!(state.update("c".into(), details()).await.unwrap(), Ok(false));
        let long = Details { meta: vec![1; 16_385], ..details() };
        assert_eq!(state.update("a/1".into(), long).await.unwrap(), Err(Error::Invalid));
        let entry = state.stat("a/1".into()).await.unwrap().unwrap();
        assert_eq!((entry.size, entry.details.max_age, entry.details.meta), (Some(4), 7, vec![1; 16_384]));
        let listed = state.list("a/".into(), None, 10).await.unwrap().unwrap();
        assert_eq!(
            listed.iter().map(|entry| (&*entry.key, entry.max_age)).collect::<Vec<_>>(),
            [("a/1", 7), ("a/2", 60)]
        );
        assert_eq!(state.purge(Scope::Tag("t".into())).await.unwrap(), Ok(1));
        assert_eq!(state.purge(Scope::Prefix("a".into())).await.unwrap(), Ok(1));
        assert_eq!(state.purge(Scope::Tag(String::new())).await.unwrap(), Err(Error::Invalid));
        assert_eq!(state.list(String::new(), None, 10).await.unwrap().unwrap()[0].key, "b");
    });
}

#[test]
fn a_purge_goes_on_when_its_instance_ends() {
    run(async {
        let mut first = state(Shared::for_tests);
        let mut second = another(&first);
        let writing = first.put("k".into()).await.unwrap().unwrap();
        let stream = begin(&mut first, &writing, None);
        first.table.delete(stream).unwrap();
        first.finish(writing).await.unwrap().unwrap();
        let mut purge = Box::pin(first.purge(Scope::Prefix(String::new())));
        poll_fn(|context| {
            // On a busy machine it may be over by then.
            let _ = purge.as_mut().poll(context);
            Poll::Ready(())
        })
        .await;
        drop(purge);
        drop(first);
        while second.stat("k".into()).await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn an_instance_reads_only_so_many_bodies() {
    run(async {
        let mut first = state(Shared::for_tests);
        let mut second = another(&first);
        let writing = writer(&mut first).await;
        let _stream = begin(&mut first, &writing, None);
        let reading = join(&mut second).await;
        let streams: Vec<_> = (0..CACHE_READERS_MAX).map(|_| body_of(&mut second, &reading, None)).collect();
        let more = second.body(Resource::new_borrow(reading.rep()), None).unwrap();
        assert!(matches!(more, Err(Error::Busy)));
        second.table.delete(streams.into_iter().next().unwrap()).unwrap();
        assert!(second.body(Resource::new_borrow(reading.rep()), None).unwrap().is_ok());
    });
}

fn details() -> Details {
    Details { content_type: "text/plain".into(), etag: String::new(), max_age: 60, meta: vec![1, 2, 3], tags: vec![] }
}

async fn writer(state: &mut ServerState) -> Resource<Writing> {
    match state.open_or_join("k".into()).await.unwrap() {
        Ok(Opened::Writer(writing)) => writing,
        Ok(Opened::Reader(_)) => panic!("it is there"),
        Err(error) => panic!("{error}"),
    }
}

async fn join(state: &mut ServerState) -> Resource<Reading> {
    match state.open_or_join("k".into()).await.unwrap() {
        Ok(Opened::Reader(reading)) => reading,
        Ok(Opened::Writer(_)) => panic!("nobody writes it"),
        Err(error) => panic!("{error}"),
    }
}

fn begin(state: &mut ServerState, writing: &Resource<Writing>, size: Option<u64>) -> Resource<DynOutputStream> {
    state.begin(Resource::new_borrow(writing.rep()), details(), size).unwrap().unwrap()
}

fn body_of(state: &mut ServerState, reading: &Resource<Reading>, range: Option<Range>) -> Resource<DynInputStream> {
    state.body(Resource::new_borrow(reading.rep()), range).unwrap().unwrap()
}

async fn write(state: &mut ServerState, stream: &Resource<DynOutputStream>, bytes: &[u8]) {
    for piece in bytes.chunks(CACHE_STREAM_BYTES_MAX) {
        let sink = state.table.get_mut(stream).unwrap();
        sink.ready().await;
        sink.write(Bytes::copy_from_slice(piece)).unwrap();
        sink.ready().await;
    }
}
