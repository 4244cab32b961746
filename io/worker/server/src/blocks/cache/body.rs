// SPDX-License-Identifier: Apache-2.0
//! Bodies that components read. What may wait for the disk is done on threads for that.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use netserv_worker_base::compute::Reserved;
use netserv_worker_base::storage::cache::{About, CacheError, Entry, Joined, Lent, Piece, Share};
use netserv_worker_base::storage::limits::{CACHE_BLOCK_BYTES, CACHE_STREAM_BYTES_MAX};
use tokio::task::JoinHandle;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::{DynInputStream, InputStream, Pollable, StreamError, StreamResult};

use super::found::failed;
use crate::disk::spawn_blocking;
use crate::state::ServerState;

/// An entry that a component reads.
pub struct Reading {
    /// Where its body comes from.
    pub(super) source: Source,
    /// What was known of it when it was opened.
    pub(super) about: Arc<About>,
}

impl Reading {
    /// Returns the entry, if it was whole when it was opened.
    pub fn whole(&self) -> Option<&Arc<Entry>> {
        match &self.source {
            Source::Entry(_, entry) => Some(entry),
            Source::Joined(_) => None,
        }
    }
}

/// Where a body comes from.
#[derive(Clone)]
pub(super) enum Source {
    /// An entry.
    Entry(Arc<Share>, Arc<Entry>),
    /// One that is being written.
    Joined(Arc<Joined>),
}

/// A part of a body.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    pub(super) start: u64,
    pub(super) length: Option<u64>,
}

/// The body of an entry that is read.
pub struct Body {
    source: Source,
    /// Where what was not read yet begins.
    offset: u64,
    end: u64,
    ahead: Ahead,
    /// Whether what was given last is a copy that nobody counts.
    is_private: Arc<AtomicBool>,
    /// One of those that an instance may read at a time, if one reads it.
    _place: Option<Reserved>,
}

enum Ahead {
    /// What was read, nothing at first.
    Pieces(VecDeque<Lent>),
    /// More is being read.
    Coming(JoinHandle<Result<VecDeque<Lent>, CacheError>>),
    /// Reading failed.
    Failed(CacheError),
    /// It was said that reading failed.
    Closed,
}

impl Body {
    /// Returns the whole body of an entry, which no instance reads.
    pub fn whole(share: &Arc<Share>, entry: Arc<Entry>) -> Body {
        Body::of(Source::Entry(Arc::clone(share), entry), Part::default(), None)
    }

    pub(super) fn new(source: Source, part: Part, place: Reserved) -> Body {
        Body::of(source, part, Some(place))
    }

    fn of(source: Source, part: Part, place: Option<Reserved>) -> Body {
        let end = part.length.and_then(|length| part.start.checked_add(length)).unwrap_or(u64::MAX);
        let ahead = Ahead::Pieces(VecDeque::new());
        let mut body = Body { source, offset: part.start, end, ahead, is_private: Arc::default(), _place: place };
        if let Source::Entry(_, entry) = &body.source {
            body.end_at(entry.size());
        }
        body
    }

    /// Returns what says whether the bytes that were read last are a copy that nobody counts.
    pub fn is_private(&self) -> &Arc<AtomicBool> {
        &self.is_private
    }

    fn end_at(&mut self, size: u64) {
        self.end = self.end.min(size);
        self.offset = self.offset.min(self.end);
    }

    /// Returns how many bytes may be read next, of `most`.
    fn length(&self, most: usize) -> usize {
        usize::try_from(self.end - self.offset).unwrap_or(usize::MAX).min(most)
    }

    /// Returns whether there is nothing to give, and more to read.
    fn is_empty(&self) -> bool {
        matches!(&self.ahead, Ahead::Pieces(pieces) if pieces.is_empty()) && self.offset < self.end
    }

    /// Takes what comes next, if that is in memory.
    fn find(&mut self) {
        let length = self.length(CACHE_BLOCK_BYTES);
        let found = match &self.source {
            Source::Entry(share, entry) => share.find_bytes(entry, self.offset, length),
            Source::Joined(joined) => match joined.piece(self.offset, length) {
                Ok(Piece::Bytes(lent)) => Some(lent),
                Ok(Piece::OnDisk | Piece::Nothing | Piece::Whole(_)) => None,
                Err(error) => return self.ahead = Ahead::Failed(error),
            },
        };
        self.take(found.into_iter().collect());
    }

    fn take(&mut self, pieces: VecDeque<Lent>) {
        self.offset += pieces.iter().map(|lent| lent.bytes.len() as u64).sum::<u64>();
        self.ahead = Ahead::Pieces(pieces);
    }

    /// Begins to read what comes next from the disk.
    fn begin(&mut self) {
        let (length, offset) = (self.length(CACHE_STREAM_BYTES_MAX), self.offset);
        self.ahead = Ahead::Coming(match &self.source {
            Source::Entry(share, entry) => {
                let (share, entry) = (Arc::clone(share), Arc::clone(entry));
                spawn_blocking(move || read_ahead(offset, length, |at, most| share.read(&entry, at, most)))
            }
            Source::Joined(joined) => {
                let joined = Arc::clone(joined);
                spawn_blocking(move || Ok([joined.read(offset, length)?].into()))
            }
        });
    }

    /// Gets what comes next, or begins to read it.
    async fn advance(&mut self) {
        if let Source::Joined(joined) = &self.source {
            let joined = Arc::clone(joined);
            match joined.next(self.offset, self.length(CACHE_BLOCK_BYTES)).await {
                Ok(Piece::Bytes(lent)) => return self.take([lent].into()),
                Ok(Piece::OnDisk | Piece::Nothing) => {}
                Ok(Piece::Whole(entry)) => {
                    self.end_at(entry.size());
                    self.source = Source::Entry(Arc::clone(joined.share()), entry);
                }
                Err(error) => return self.ahead = Ahead::Failed(error),
            }
            self.find();
        }
        if self.is_empty() {
            self.begin();
        }
    }
}

impl ServerState {
    /// Returns a body as what the component reads.
    pub(super) fn lend(&mut self, body: Body) -> wasmtime::Result<Resource<DynInputStream>> {
        let is_private = Arc::clone(body.is_private());
        let body: DynInputStream = Box::new(body);
        let stream = self.table.push(body)?;
        self.blocks.lending.note(stream.rep(), &is_private);
        Ok(stream)
    }
}

/// Reads bytes as far as there is memory for them that is counted, and one piece in any case.
fn read_ahead(
    offset: u64,
    length: usize,
    read: impl Fn(u64, usize) -> Result<Lent, CacheError>,
) -> Result<VecDeque<Lent>, CacheError> {
    let (mut pieces, mut got) = (VecDeque::new(), 0);
    while got < length {
        let lent = read(offset + got as u64, length - got)?;
        if !lent.is_shared && !pieces.is_empty() {
            break;
        }
        got += lent.bytes.len();
        let is_shared = lent.is_shared;
        pieces.push_back(lent);
        if !is_shared {
            break;
        }
    }
    Ok(pieces)
}

#[wasmtime_wasi::async_trait]
impl Pollable for Body {
    async fn ready(&mut self) {
        if self.is_empty() {
            self.find();
        }
        if self.is_empty() {
            self.advance().await;
        }
        let Ahead::Coming(task) = &mut self.ahead else { return };
        let read = task.await;
        match read {
            Ok(Ok(pieces)) => self.take(pieces),
            Ok(Err(error)) => self.ahead = Ahead::Failed(error),
            Err(_) => self.ahead = Ahead::Failed(CacheError::Damaged),
        }
    }
}

#[wasmtime_wasi::async_trait]
impl InputStream for Body {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if self.is_empty() {
            self.find();
        }
        match &mut self.ahead {
            Ahead::Pieces(pieces) => match pieces.front_mut() {
                Some(lent) => {
                    self.is_private.store(!lent.is_shared, Ordering::Relaxed);
                    let bytes = lent.bytes.split_to(size.min(lent.bytes.len()));
                    if lent.bytes.is_empty() {
                        pieces.pop_front();
                    }
                    Ok(bytes)
                }
                None if self.offset >= self.end => Err(StreamError::Closed),
                None => Ok(Bytes::new()),
            },
            Ahead::Coming(_) => Ok(Bytes::new()),
            Ahead::Failed(_) => match mem::replace(&mut self.ahead, Ahead::Closed) {
                Ahead::Failed(error) => Err(failed(error)),
                Ahead::Pieces(_) | Ahead::Coming(_) | Ahead::Closed => Err(StreamError::Closed),
            },
            Ahead::Closed => Err(StreamError::Closed),
        }
    }
}
