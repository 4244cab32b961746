// SPDX-License-Identifier: Apache-2.0
//! What a connection has not taken yet (RFC 5971 §4.1.2): a peer that reads slowly holds back whoever sends to it, and nobody
//! else. What the shell has taken and not written is counted; over a bound, NSLP messages wait in their rows.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::api::RouteId;
use crate::limits;

/// One connection's bytes that are not written, and the rows whose messages wait for that.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    unwritten: usize,
    /// Greater priorities first, then the one that waits for longest.
    turns: BTreeMap<Turn, RouteId>,
    rows: BTreeMap<RouteId, (Turn, usize)>,
    /// Bytes of messages in those rows.
    waiting: usize,
    last: u64,
}

type Turn = (Reverse<u8>, u64);

impl Backlog {
    /// Returns whether an NSLP message may be added.
    pub(super) fn has_room(&self) -> bool {
        self.unwritten < limits::STREAM_BYTES_MAX
    }

    /// Returns whether another message may be, which is short and waits for nothing.
    pub(super) fn has_room_for_short(&self) -> bool {
        self.unwritten < 2 * limits::STREAM_BYTES_MAX
    }

    /// Returns whether there are bytes that whoever writes has certainly not written.
    pub(super) fn is_behind(&self) -> bool {
        self.unwritten >= limits::STREAM_REPORT_BYTES
    }

    /// Returns whether so many bytes more may wait for room.
    pub(super) fn may_wait(&self, bytes: usize) -> bool {
        self.has_room() || self.waiting + bytes <= limits::STREAM_WAITING_BYTES_MAX
    }

    /// Takes that so many bytes were written, and returns whether rows that wait may go on.
    pub(super) fn written(&mut self, bytes: usize) -> bool {
        self.unwritten = self.unwritten.saturating_sub(bytes);
        self.unwritten <= limits::STREAM_BYTES_MAX / 2
    }

    pub(super) fn add(&mut self, bytes: usize) {
        self.unwritten += bytes;
    }

    pub(super) fn wait(&mut self, row: RouteId, priority: u8, bytes: usize) {
        let turn = match self.leave(row) {
            Some(turn) if turn.0 == Reverse(priority) => turn,
            Some(_) | None => {
                self.last += 1;
                (Reverse(priority), self.last)
            }
        };
        self.turns.insert(turn, row);
        self.rows.insert(row, (turn, bytes));
        self.waiting += bytes;
    }

    pub(super) fn leave(&mut self, row: RouteId) -> Option<Turn> {
        let (turn, bytes) = self.rows.remove(&row)?;
        self.turns.remove(&turn);
        self.waiting -= bytes;
        Some(turn)
    }

    /// Takes out the row whose turn it is, if there is room.
    pub(super) fn next(&mut self) -> Option<RouteId> {
        let (_, row) = self.turns.first_key_value().filter(|_| self.has_room())?;
        let row = *row;
        self.leave(row);
        Some(row)
    }
}
