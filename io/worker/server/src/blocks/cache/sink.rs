// SPDX-License-Identifier: Apache-2.0
//! Entries that components write. What may wait for the disk is done on threads for that.

use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, ready};

use bytes::Bytes;
use netserv_worker_base::storage::cache::{CacheError, Details, Writer};
use netserv_worker_base::storage::limits::CACHE_STREAM_BYTES_MAX;
use tokio::task::JoinHandle;
use wasmtime_wasi::p2::{DynOutputStream, OutputStream, Pollable, StreamError, StreamResult};

use super::found::failed;
use crate::disk::spawn_blocking;

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

impl Writing {
    pub(super) fn new(writer: Box<Writer>) -> Writing {
        Writing { place: Arc::new(Mutex::new(Place::Here(writer, None))), has_body: false }
    }

    /// Says what the entry is, as of `now` seconds since 1970.
    pub(super) fn begin(&self, details: Details, size: Option<u64>, now: u64) -> Result<(), CacheError> {
        match &mut *lock(&self.place) {
            Place::Here(writer, _) => writer.begin(details, size, now),
            Place::There(_) | Place::Gone => Err(CacheError::Invalid),
        }
    }

    /// Returns the stream for the body; nothing if it was asked for before.
    pub(super) fn body(&mut self) -> Option<DynOutputStream> {
        let had_body = mem::replace(&mut self.has_body, true);
        (!had_body).then(|| Box::new(Sink(Arc::clone(&self.place))) as DynOutputStream)
    }

    /// Gives the entry up unless somebody reads it. Returns whether it did; not while a thread writes.
    pub(super) fn give_up(&self) -> bool {
        match &*lock(&self.place) {
            Place::Here(writer, _) => writer.give_up(),
            Place::There(_) | Place::Gone => false,
        }
    }

    /// Makes the entry visible.
    pub(super) async fn finish(self) -> wasmtime::Result<Result<(), CacheError>> {
        if Arc::strong_count(&self.place) > 1 {
            // The stream is still there.
            return Ok(Err(CacheError::Invalid));
        }
        settle(&self.place).await;
        let place = mem::replace(&mut *lock(&self.place), Place::Gone);
        let Place::Here(writer, _) = place else { return Ok(Err(CacheError::Abandoned)) };
        Ok(spawn_blocking(move || writer.finish()).await?)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        // What the stream is sent from here on goes nowhere.
        *lock(&self.place) = Place::Gone;
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

fn lock(place: &Shared) -> MutexGuard<'_, Place> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}
