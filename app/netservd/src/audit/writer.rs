// SPDX-License-Identifier: Apache-2.0
//! The thread that writes the audit log.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};

use netserv_audit::{DAMAGED, LEFT_OUT, LOST, Shares, Whose};
use netserv_model::audit::AuditEntry;
use netserv_model::{Instant, NodeId};

use super::folder::{End, Folder, Removed};
use super::{AuditCounts, add, lock};
use crate::clock::Clock;
use crate::limits::{AUDIT_BATCH, AUDIT_LOOK};

/// Writes what the control loop decided.
pub struct Writer {
    folder: Folder,
    node: NodeId,
    clock: Clock,
    counts: Arc<AuditCounts>,
    shares: Arc<Mutex<Shares>>,
    /// Where lines are added, once it is found.
    end: Option<End>,
    /// Since when it cannot be written.
    fails_since: Option<Instant>,
}

impl Writer {
    /// Returns a thread's work.
    pub fn new(
        folder: Folder,
        node: NodeId,
        clock: Clock,
        counts: Arc<AuditCounts>,
        shares: Arc<Mutex<Shares>>,
    ) -> Writer {
        Writer { folder, node, clock, counts, shares, end: None, fails_since: None }
    }

    /// Writes entries until nobody can send any.
    pub fn run(mut self, inbox: &Receiver<AuditEntry>) {
        self.write(vec![self.entry("START", "done", concat!("netservd ", env!("CARGO_PKG_VERSION")))]);
        loop {
            let first = inbox.recv_timeout(AUDIT_LOOK);
            let is_last = first == Err(RecvTimeoutError::Disconnected);
            let mut entries: Vec<AuditEntry> =
                first.into_iter().chain(inbox.try_iter().take(AUDIT_BATCH - 1)).collect();
            let left_out = lock(&self.shares).left_out(self.clock.now().instant, is_last);
            entries.extend(left_out.into_iter().map(|(whose, count)| self.left_out(whose, count)));
            self.write(entries);
            if is_last {
                return;
            }
        }
    }

    /// Writes entries, and before them what they follow that is not written.
    pub fn write(&mut self, entries: Vec<AuditEntry>) {
        let lost = self.counts.unsaid.load(Ordering::Relaxed);
        if entries.is_empty() && lost == 0 {
            return;
        }
        let all = u64::try_from(entries.len()).unwrap_or(u64::MAX);
        let is_soon = |since: Instant| self.clock.now().instant.since(since) < AUDIT_LOOK;
        if self.fails_since.is_some_and(is_soon) {
            return self.counts.lose(all);
        }
        let mut written = 0;
        let result = self.write_all(lost, entries, &mut written);
        add(&self.counts.written, written);
        match result {
            Ok(()) => {
                if self.fails_since.take().is_some() {
                    tracing::info!(lost, "the audit log is written again");
                }
            }
            Err(error) => {
                self.counts.lose(all - written);
                if self.fails_since.is_none() {
                    tracing::error!(%error, "the audit log cannot be written; what is lost is counted");
                }
                self.fails_since = Some(self.clock.now().instant);
            }
        }
    }

    fn write_all(&mut self, lost: u64, entries: Vec<AuditEntry>, written: &mut u64) -> io::Result<()> {
        if self.end.is_none() {
            self.end = Some(End::open(self.folder.clone())?);
        }
        if self.end.as_mut().map_or(Ok(false), End::follow)? {
            tracing::warn!("the newest file of the audit log was moved, deleted or cut short; a new one is begun");
            let detail = "the newest file was moved, deleted or cut short; this line begins a new one";
            self.add(self.entry("AUDIT", DAMAGED, detail))?;
        }
        if let Some(damaged) = self.end.as_ref().and_then(|end| end.damaged) {
            let detail = "what lies before this line is no line, as after a crash";
            let entry = AuditEntry { damaged: Some(damaged), ..self.entry("AUDIT", DAMAGED, detail) };
            self.add(entry)?;
            self.end.iter_mut().for_each(|end| end.damaged = None);
        }
        if lost > 0 {
            let detail = "lines that could not be written";
            self.add(AuditEntry { count: Some(lost), ..self.entry("AUDIT", LOST, detail) })?;
            self.counts.unsaid.fetch_sub(lost, Ordering::Relaxed);
        }
        for entry in entries {
            self.add(entry)?;
            *written += 1;
        }
        self.end.as_ref().map_or(Ok(()), End::sync)
    }

    fn add(&mut self, entry: AuditEntry) -> io::Result<()> {
        let Some(end) = &mut self.end else { return Ok(()) };
        end.add(entry).map_err(|(error, Removed(removed))| {
            if !removed {
                self.end = None;
            }
            error
        })
    }

    fn left_out(&self, whose: Whose, count: u64) -> AuditEntry {
        let (user, detail) = match whose {
            Whose::User(user) => (Some(user), "decisions about the user beyond its share of the log"),
            Whose::Strangers => {
                (None, "decisions about users whom the configuration does not name, beyond their share of the log")
            }
            Whose::Nobody => {
                (None, "refusals of requests that are not proven to be of a user, beyond their share of the log")
            }
        };
        AuditEntry { user, count: Some(count), ..self.entry("AUDIT", LEFT_OUT, detail) }
    }

    fn entry(&self, verb: &str, outcome: &str, detail: &str) -> AuditEntry {
        AuditEntry::new(self.clock.now().wall, self.node.clone(), verb, outcome, detail)
    }
}
