// SPDX-License-Identifier: Apache-2.0
//! Bodies that components read. What may wait for the disk is done on threads for that.

use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use tokio::task::JoinHandle;
use wasmtime_wasi::p2::{InputStream, Pollable, StreamError, StreamResult};

use super::found::failed;
use crate::compute::{Budget, Reserved};
use crate::server::disk::spawn_blocking;
use crate::storage::cache::{About, CacheError, Entry, Joined, Piece, Share};
use crate::storage::limits::{CACHE_BLOCK_BYTES, CACHE_STREAM_BYTES_MAX, CACHE_STREAM_BYTES_MIN};

/// An entry that a component reads.
pub struct Reading {
    /// Where its body comes from.
    pub(super) source: Source,
    /// What was known of it when it was opened.
    pub(super) about: Arc<About>,
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
pub(super) struct Body {
    source: Source,
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
    pub(super) fn new(source: Source, part: Part, memory: Budget, place: Reserved) -> Body {
        let end = part.length.and_then(|length| part.start.checked_add(length)).unwrap_or(u64::MAX);
        let ahead = Ahead::Bytes(Bytes::new());
        let mut body = Body { source, offset: part.start, end, ahead, memory, reserved: None, _place: place };
        if let Source::Entry(_, entry) = &body.source {
            body.end_at(entry.size());
        }
        body
    }

    fn end_at(&mut self, size: u64) {
        self.end = self.end.min(size);
        self.offset = self.offset.min(self.end);
    }

    /// Returns how many bytes may be read next, of `most`.
    fn reserve(&mut self, most: usize) -> usize {
        let wanted = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX).min(most);
        // What was read before is gone.
        self.reserved = None;
        self.reserved = self.memory.reserve(wanted).ok();
        if self.reserved.is_some() { wanted } else { wanted.min(CACHE_STREAM_BYTES_MIN) }
    }

    /// Begins to read what comes next from the disk.
    fn begin(&mut self) {
        let (length, offset) = (self.reserve(CACHE_STREAM_BYTES_MAX), self.offset);
        self.ahead = Ahead::Coming(match &self.source {
            Source::Entry(share, entry) => {
                let (share, entry) = (Arc::clone(share), Arc::clone(entry));
                spawn_blocking(move || read_ahead(&share, &entry, offset, length))
            }
            Source::Joined(joined) => {
                let joined = Arc::clone(joined);
                spawn_blocking(move || joined.read(offset, length))
            }
        });
    }

    /// Gets what comes next, or begins to read it.
    async fn advance(&mut self) {
        if let Source::Joined(joined) = &self.source {
            let joined = Arc::clone(joined);
            let length = self.reserve(CACHE_BLOCK_BYTES);
            match joined.next(self.offset, length).await {
                Ok(Piece::Bytes(bytes)) => {
                    self.offset += bytes.len() as u64;
                    self.ahead = Ahead::Bytes(bytes);
                    return;
                }
                Ok(Piece::OnDisk | Piece::Nothing) => {}
                Ok(Piece::Whole(entry)) => {
                    self.end_at(entry.size());
                    self.source = Source::Entry(Arc::clone(joined.share()), entry);
                }
                Err(error) => {
                    self.ahead = Ahead::Failed(error);
                    return;
                }
            }
        }
        if self.offset < self.end {
            self.begin();
        }
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
            self.advance().await;
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
