// SPDX-License-Identifier: Apache-2.0
//! Readers of an entry that is being written.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::details::About;
use super::error::CacheError;
use super::file::{Lent, rest_spot};
use super::fill::{Failure, Fill, Piece};
use super::shares::Share;
use crate::storage::limits::CACHE_STALL_TIME_MAX;

/// One who reads an entry that is being written.
pub struct Joined {
    share: Arc<Share>,
    fill: Arc<Fill>,
    /// How long the writer may do nothing.
    pub(super) stall_time_max: Duration,
}

impl Joined {
    /// Joins the readers of an entry.
    ///
    /// # Errors
    /// [`CacheError::Crowded`].
    pub(super) fn new(share: &Arc<Share>, fill: Arc<Fill>) -> Result<Joined, CacheError> {
        let is_in = fill.join();
        let stall_time_max = CACHE_STALL_TIME_MAX;
        is_in.then(|| Joined { share: Arc::clone(share), fill, stall_time_max }).ok_or(CacheError::Crowded)
    }

    /// Returns the module's share.
    pub fn share(&self) -> &Arc<Share> {
        &self.share
    }

    /// Waits until the writer said what the entry is.
    ///
    /// # Errors
    /// [`CacheError::Abandoned`] and the others with which writers end.
    pub async fn about(&self) -> Result<Arc<About>, CacheError> {
        loop {
            let mut changed = pin!(self.fill.changed.notified());
            changed.as_mut().enable();
            let (about, failure) = (self.fill.about(), self.fill.failure());
            match (about, failure) {
                (_, Some(failure)) => return Err(failure.into()),
                (Some(about), None) => return Ok(about),
                (None, None) => self.wait(changed).await,
            }
        }
    }

    /// Returns up to `max` bytes at `offset` without a look at the disk.
    ///
    /// # Errors
    /// The writer gave up.
    pub fn piece(&self, offset: u64, max: usize) -> Result<Piece, CacheError> {
        Ok(self.fill.piece(&self.share.cache.file, offset, max)?)
    }

    /// Waits until there is something at `offset`.
    ///
    /// # Errors
    /// The writer gave up, or did nothing for [`CACHE_STALL_TIME_MAX`].
    pub async fn next(&self, offset: u64, max: usize) -> Result<Piece, CacheError> {
        loop {
            let mut changed = pin!(self.fill.changed.notified());
            changed.as_mut().enable();
            match self.piece(offset, max)? {
                Piece::Nothing => self.wait(changed).await,
                piece @ (Piece::Bytes(_) | Piece::OnDisk | Piece::Whole(_)) => return Ok(piece),
            }
        }
    }

    async fn wait(&self, changed: impl Future) {
        if tokio::time::timeout(self.stall_time_max, changed).await.is_err() {
            self.fill.end(Err(Failure::Stalled));
        }
    }

    /// Reads up to `max` bytes at `offset` that [`Piece::OnDisk`] told of, at most to the end of a block.
    ///
    /// # Errors
    /// The disk failed, or the writer gave up.
    pub fn read(&self, offset: u64, max: usize) -> Result<Lent, CacheError> {
        let at = offset.checked_sub(self.fill.before_rest()).ok_or(CacheError::Damaged)?;
        let spot = rest_spot(|index| self.fill.block(index), self.fill.number(), at, max);
        let read = spot.and_then(|spot| self.share.cache.file.read(spot));
        // The blocks of a writer that gave up are others' by now.
        match self.fill.failure() {
            Some(failure) => Err(failure.into()),
            None => read.inspect_err(|_| self.share.cache.failed()),
        }
    }

    /// Returns why the writer gave up, if it did.
    pub fn failure(&self) -> Option<CacheError> {
        self.fill.failure().map(CacheError::from)
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.fill.leave();
    }
}
