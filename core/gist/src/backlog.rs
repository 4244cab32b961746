// SPDX-License-Identifier: Apache-2.0
//! What a connection has not taken yet (RFC 5971 §4.1.2): a peer that reads slowly holds back whoever sends to it, and nobody
//! else. What the shell has taken and not written is counted; over a bound, NSLP messages wait in their rows.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use netserv_model::Instant;

use crate::api::{AssociationId, RouteId};
use crate::association::AssociationTable;
use crate::engine::Engine;
use crate::limits;

/// One connection's bytes that are not written, and the rows whose messages wait for that.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
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
    pub(crate) fn has_room(&self) -> bool {
        self.unwritten < limits::STREAM_BYTES_MAX
    }

    /// Returns whether another message may be, which is short and waits for nothing.
    pub(crate) fn has_room_for_short(&self) -> bool {
        self.unwritten < 2 * limits::STREAM_BYTES_MAX
    }

    /// Returns whether there are bytes that whoever writes has certainly not written.
    pub(crate) fn is_behind(&self) -> bool {
        self.unwritten >= limits::STREAM_REPORT_BYTES
    }

    /// Returns whether so many bytes more may wait for room.
    pub(crate) fn may_wait(&self, bytes: usize) -> bool {
        self.has_room() || self.waiting + bytes <= limits::STREAM_WAITING_BYTES_MAX
    }

    pub(crate) fn add(&mut self, bytes: usize) {
        self.unwritten += bytes;
    }

    fn wait(&mut self, row: RouteId, priority: u8, bytes: usize) {
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

    pub(crate) fn leave(&mut self, row: RouteId) -> Option<Turn> {
        let (turn, bytes) = self.rows.remove(&row)?;
        self.turns.remove(&turn);
        self.waiting -= bytes;
        Some(turn)
    }

    fn next(&mut self) -> Option<RouteId> {
        let (_, row) = self.turns.first_key_value().filter(|_| self.has_room())?;
        let row = *row;
        self.leave(row);
        Some(row)
    }
}

impl AssociationTable {
    /// Returns whether an NSLP message may be added to what the association's connection has not taken yet.
    pub(crate) fn has_room(&self, id: AssociationId) -> bool {
        self.get(id).is_some_and(|association| association.backlog.has_room())
    }
}

impl Engine {
    /// Takes that a connection has taken so many bytes more of what [`Transmit::Stream`](crate::Transmit::Stream) has. Whoever
    /// writes says so after [`limits::STREAM_REPORT_BYTES`] at the latest, and need not for fewer.
    pub fn handle_written(&mut self, now: Instant, id: AssociationId, bytes: usize) {
        let Some(association) = self.associations.get_mut(id) else { return };
        let backlog = &mut association.backlog;
        backlog.unwritten = backlog.unwritten.saturating_sub(bytes);
        if backlog.unwritten <= limits::STREAM_BYTES_MAX / 2 {
            while let Some(row) = self.associations.get_mut(id).and_then(|association| association.backlog.next()) {
                self.flush(now, row);
                self.arm_route(row);
            }
        }
        self.close_overrun(now);
    }

    /// Notes whether messages of a row wait for room on its connection; to be called after any went or came.
    pub(crate) fn note_backlog(&mut self, id: RouteId) {
        let Some(route) = self.routes.get(id) else { return };
        let Some(association) = route.association.and_then(|id| self.associations.get_mut(id)) else { return };
        match route.pending.front() {
            Some(first) if !association.backlog.has_room() => {
                let bytes = route.pending.iter().map(|message| message.data.len()).sum();
                association.backlog.wait(id, first.priority, bytes);
            }
            Some(_) | None => drop(association.backlog.leave(id)),
        }
    }
}
