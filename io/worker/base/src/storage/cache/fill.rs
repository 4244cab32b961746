// SPDX-License-Identifier: Apache-2.0
//! An entry that is being written, as those see it who read it meanwhile.
//!
//! They read the start of the body and the last blocks from memory, and what is before these from the disk. Once the writer
//! gives up, all of them fail, whatever they have not read yet.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::block::PAYLOAD_BYTES;
use super::details::About;
use super::entry::Entry;
use super::error::CacheError;
use super::file::{BlockFile, Lent, rest_spot};
use super::scope::Scope;
use crate::storage::limits::{
    CACHE_JOINED_MAX, CACHE_READERS_FEW, CACHE_RECENT_BLOCKS, CACHE_WAKE_BYTES, CACHE_WAKE_TIME_MAX,
};

/// An entry that is being written.
pub(super) struct Fill {
    key: Arc<str>,
    /// The number of the rest of the body.
    number: u64,
    /// Whether others may read it meanwhile.
    is_joinable: bool,
    state: Mutex<State>,
    pub(super) changed: Notify,
}

#[derive(Default)]
struct State {
    /// What the writer said of the entry, once it did.
    about: Option<Arc<About>>,
    /// The start of the body, which is on the disk only in the end.
    inline: Vec<u8>,
    inline_max: usize,
    /// Blocks of the rest that are on the disk.
    blocks: Vec<u32>,
    /// How many of the full blocks are not in memory.
    forgotten: usize,
    recent: VecDeque<Lent>,
    /// What fills no block yet.
    tail: Vec<u8>,
    /// The start, and what fills no block, as readers have them.
    shared: [Option<Bytes>; 2],
    readers: usize,
    /// Bytes that readers were not woken for.
    untold: usize,
    /// Whether they will be woken for these.
    is_waking: bool,
    /// Where readers run, once there are some.
    runtime: Option<Handle>,
    is_purged: bool,
    end: Option<Result<Arc<Entry>, Failure>>,
}

/// Why an entry that was being written is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Abandoned,
    Stalled,
    TooLarge,
    Disk,
    Invalid,
}

/// What there is at a place of the body of an entry that is being written.
pub enum Piece {
    /// Bytes, up to the end of their block.
    Bytes(Lent),
    /// Bytes that are only on the disk.
    OnDisk,
    /// Nothing yet.
    Nothing,
    /// The entry is whole.
    Whole(Arc<Entry>),
}

impl Fill {
    pub(super) fn new(key: &str, number: u64, is_joinable: bool) -> Fill {
        Fill { key: key.into(), number, is_joinable, state: Mutex::default(), changed: Notify::new() }
    }

    pub(super) fn key(&self) -> &Arc<str> {
        &self.key
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns whether who wants this key may read it here.
    pub(super) fn is_for(&self, key: &str) -> bool {
        let state = self.lock();
        self.is_joinable && *self.key == *key && !state.is_purged && state.end.is_none()
    }

    /// Takes note of one more reader. Returns whether it may be.
    pub(super) fn join(&self) -> bool {
        let mut state = self.lock();
        let is_room = state.readers < CACHE_JOINED_MAX;
        state.readers += usize::from(is_room);
        if state.runtime.is_none() {
            state.runtime = Handle::try_current().ok();
        }
        is_room
    }

    /// Returns whether somebody reads it.
    pub(super) fn has_readers(&self) -> bool {
        self.lock().readers > 0
    }

    /// Takes note that a reader left.
    pub(super) fn leave(&self) {
        self.lock().readers -= 1;
    }

    /// Ends it if nobody reads it: who joins from then on finds that it was given up. Returns whether it did.
    pub(super) fn give_up(&self) -> bool {
        let mut state = self.lock();
        let is_unread = state.readers == 0 && state.end.is_none();
        if is_unread {
            state.end(Err(Failure::Abandoned));
        }
        is_unread
    }

    /// Returns what the writer said of the entry.
    pub(super) fn about(&self) -> Option<Arc<About>> {
        self.lock().about.clone()
    }

    /// Returns how many bytes of the body are before its rest.
    pub(super) fn before_rest(&self) -> u64 {
        self.lock().inline_max as u64
    }

    /// Returns a block of the rest that is on the disk.
    pub(super) fn block(&self, index: usize) -> Option<u32> {
        self.lock().blocks.get(index).copied()
    }

    /// Takes note of a purge: the entry is kept for its readers only if it is in the scope, or may be.
    pub(super) fn purge(&self, scope: &Scope) {
        let mut state = self.lock();
        let is_in = match scope {
            Scope::Prefix(prefix) => self.key.starts_with(prefix),
            Scope::Tag(tag) => state.about.as_ref().is_none_or(|about| about.details.tags.contains(tag)),
        };
        state.is_purged |= is_in;
    }

    /// Has the entry be read to its end by who joined, and not kept.
    pub(super) fn forget(&self) {
        self.lock().is_purged = true;
    }

    pub(super) fn is_purged(&self) -> bool {
        self.lock().is_purged
    }

    /// Says what the entry is, the first `inline_max` bytes of whose body are in its first part.
    pub(super) fn begin(&self, about: About, inline_max: usize) {
        let mut state = self.lock();
        (state.about, state.inline_max) = (Some(Arc::new(about)), inline_max);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Takes some bytes of the body. Returns how many, and the block that they made full, which is to be written then.
    pub(super) fn take(self: &Arc<Fill>, file: &BlockFile, bytes: &[u8]) -> (usize, Option<Lent>) {
        let mut state = self.lock();
        let State { inline, inline_max, tail, recent, shared, .. } = &mut *state;
        let (room, into) = if inline.len() < *inline_max {
            (*inline_max - inline.len(), inline)
        } else {
            (PAYLOAD_BYTES - tail.len(), &mut *tail)
        };
        let taken = bytes.len().min(room);
        into.extend_from_slice(&bytes[..taken]);
        let full = (tail.len() == PAYLOAD_BYTES).then(|| {
            shared[1] = None;
            file.lend(std::mem::take(tail))
        });
        recent.extend(full.clone());
        state.untold += taken;
        drop(state);
        self.tell();
        (taken, full)
    }

    /// Wakes the readers. Many of them are woken for some bytes together, and soon for fewer: to wake one takes as long as to copy
    /// thousands of bytes.
    fn tell(self: &Arc<Fill>) {
        let mut state = self.lock();
        let is_soon = state.readers > CACHE_READERS_FEW && state.untold < CACHE_WAKE_BYTES;
        match state.runtime.clone().filter(|_| is_soon) {
            None => {
                drop(state);
                self.wake();
            }
            Some(runtime) => {
                if !std::mem::replace(&mut state.is_waking, true) {
                    let fill = Arc::clone(self);
                    runtime.spawn(async move {
                        tokio::time::sleep(CACHE_WAKE_TIME_MAX).await;
                        fill.lock().is_waking = false;
                        fill.wake();
                    });
                }
            }
        }
    }

    fn wake(&self) {
        self.lock().untold = 0;
        self.changed.notify_waiters();
    }

    /// Takes note of where the last full block is on the disk.
    pub(super) fn wrote(&self, block: u32) {
        let mut state = self.lock();
        state.blocks.push(block);
        let most = if self.is_joinable { CACHE_RECENT_BLOCKS } else { 0 };
        while state.recent.len() > most {
            state.recent.pop_front();
            state.forgotten += 1;
        }
    }

    /// Returns the bytes that still fit before a block is full.
    pub(super) fn room(&self) -> usize {
        let state = self.lock();
        (state.inline_max - state.inline.len()) + (PAYLOAD_BYTES - state.tail.len())
    }

    /// Returns the start of the body, and what fills no block.
    pub(super) fn ends(&self) -> (Vec<u8>, Vec<u8>) {
        let state = self.lock();
        (state.inline.clone(), state.tail.clone())
    }

    /// Takes note of how it ended; of several times the first one counts.
    pub(super) fn end(&self, end: Result<Arc<Entry>, Failure>) {
        let mut state = self.lock();
        if state.end.is_none() {
            state.end(end);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Returns why it ended before it was whole.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.lock().end.as_ref().and_then(|end| end.as_ref().err().copied())
    }

    pub(super) fn piece(&self, file: &BlockFile, offset: u64, max: usize) -> Result<Piece, Failure> {
        let mut state = self.lock();
        match &state.end {
            Some(Ok(entry)) => return Ok(Piece::Whole(Arc::clone(entry))),
            Some(Err(failure)) => return Err(*failure),
            None => {}
        }
        let State { inline, inline_max, tail, recent, shared: [start, end], forgotten, blocks, .. } = &mut *state;
        let Ok(offset) = usize::try_from(offset) else { return Ok(Piece::Nothing) };
        let Some(at) = offset.checked_sub(*inline_max) else {
            return Ok(file.snapshot(inline, start, offset, max).map_or(Piece::Nothing, Piece::Bytes));
        };
        let (block, from) = (at / PAYLOAD_BYTES, at % PAYLOAD_BYTES);
        let Some(behind) = block.checked_sub(*forgotten) else {
            let spot = rest_spot(|index| blocks.get(index).copied(), self.number, at as u64, max);
            let found = spot.ok().and_then(|spot| file.find(spot));
            return Ok(found.map_or(Piece::OnDisk, Piece::Bytes));
        };
        Ok(match recent.get(behind) {
            Some(lent) => Piece::Bytes(lent.part(from..PAYLOAD_BYTES.min(from.saturating_add(max)))),
            None if behind == recent.len() => file.snapshot(tail, end, from, max).map_or(Piece::Nothing, Piece::Bytes),
            None => Piece::Nothing,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn end(&mut self, end: Result<Arc<Entry>, Failure>) {
        self.end = Some(end);
        (self.inline, self.tail, self.recent) = (vec![], vec![], VecDeque::new());
        self.shared = [None, None];
    }
}

impl From<Failure> for CacheError {
    fn from(failure: Failure) -> CacheError {
        match failure {
            Failure::Abandoned => CacheError::Abandoned,
            Failure::Stalled => CacheError::Stalled,
            Failure::TooLarge => CacheError::TooLarge,
            Failure::Disk => CacheError::Damaged,
            Failure::Invalid => CacheError::Invalid,
        }
    }
}
