// SPDX-License-Identifier: Apache-2.0
//! The audit log: the control loop says what was decided, and a thread of its own writes it.

pub mod folder;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use netserv_audit::{Share, Shares};
use netserv_model::audit::AuditEntry;
use netserv_model::effect::Notice;
use netserv_model::request::Outcome;
use netserv_model::{NodeId, Now, SessionId, UserId};

use crate::caller::Caller;
use crate::clock::Clock;
use crate::config::Audit;
use crate::limits::{AUDIT_SESSIONS_MAX, AUDIT_WAITING_MAX};
use folder::Folder;
use writer::Writer;

/// What the control loop says to the audit log; nothing that it calls waits.
pub struct AuditLog {
    node: NodeId,
    /// Nothing if the operator wants no log.
    entries: Option<SyncSender<AuditEntry>>,
    counts: Arc<AuditCounts>,
    shares: Arc<Mutex<Shares>>,
    /// By what evidence sessions asked last.
    known: BTreeMap<(UserId, SessionId), Option<String>>,
}

/// What became of the log's lines.
#[derive(Debug, Default)]
pub struct AuditCounts {
    /// Lines that are written.
    pub written: AtomicU64,
    /// Lines that could not be written, or that found no room to wait for it.
    pub lost: AtomicU64,
    /// Lines that were left out, since there are too many about the same user.
    pub left_out: AtomicU64,
    /// Lost lines of which no line says so yet.
    unsaid: AtomicU64,
}

/// Starts the log of a state directory, and the thread that writes it; that ends when the log is dropped.
///
/// # Errors
/// The system gives no thread.
pub fn start(
    state_dir: &Path,
    node: &NodeId,
    wants: Audit,
    clock: Clock,
) -> Result<(AuditLog, Option<JoinHandle<()>>)> {
    let counts = Arc::new(AuditCounts::default());
    let shares = Arc::new(Mutex::new(Shares::default()));
    let mut log = AuditLog { node: node.clone(), entries: None, counts, shares, known: BTreeMap::new() };
    if !wants.enabled {
        return Ok((log, None));
    }
    let (entries, inbox) = sync_channel(AUDIT_WAITING_MAX);
    log.entries = Some(entries);
    let folder = Folder::of(state_dir, wants.file_bytes_max, wants.files_max);
    let writer = Writer::new(folder, node.clone(), clock, Arc::clone(&log.counts), Arc::clone(&log.shares));
    let thread = std::thread::Builder::new().name("audit".to_owned());
    let thread = thread.spawn(move || writer.run(&inbox)).context("thread for the audit log")?;
    Ok((log, Some(thread)))
}

impl AuditLog {
    /// Takes what people are told, of which some is a decision.
    pub fn take(&mut self, now: Now, notice: Notice) {
        match notice {
            Notice::Answered { outcome, asked, proven, .. } => {
                let signed = proven.as_ref().filter(|proven| proven.key.is_some());
                let user = asked.user.clone().filter(|_| signed.is_some());
                let is_stranger = signed.is_some_and(|proven| proven.is_stranger);
                let share = Share { user, is_stranger, refused: matches!(outcome, Outcome::Refused(_)) };
                let entry = AuditEntry::of_answer(now.wall, self.node.clone(), *asked, proven, &outcome);
                let Some(entry) = entry.filter(|entry| self.is_news(entry, &outcome)) else { return };
                self.push_within(now, share, entry);
            }
            Notice::Revoked { user, module, refusal, evidence, is_stranger } => {
                let entry = self.entry(now, "REVOKE", "revoked", &refusal.to_string());
                let entry = entry.of_end(user.clone(), Some(&module), evidence.as_deref());
                // Strangers may make grants that end at once, one after the other; the operator ends all others' rights.
                if is_stranger {
                    self.push_within(now, Share { user: Some(user), is_stranger, refused: false }, entry);
                } else {
                    self.push(entry);
                }
            }
            Notice::Expired { user, module, evidence, is_stranger } => {
                let share = Share { user: Some(user.clone()), is_stranger, refused: false };
                let entry = self.entry(now, "EXPIRE", "removed", "its lease ended");
                self.push_within(now, share, entry.of_end(user, Some(&module), evidence.as_deref()));
            }
            Notice::Resumed { user, module, evidence } => {
                let share = Share { user: Some(user.clone()), is_stranger: true, refused: false };
                let entry = self.entry(now, "RESUME", "installed", "its user has rights again");
                self.push_within(now, share, entry.of_end(user, Some(&module), evidence.as_deref()));
            }
            Notice::Forgotten { user, refusal, evidence } => {
                let share = Share { user: Some(user.clone()), is_stranger: true, refused: false };
                let entry = self.entry(now, "FORGET", "removed", &refusal.to_string());
                self.push_within(now, share, entry.of_end(user, None, Some(&evidence)));
            }
            Notice::Requested { .. }
            | Notice::Notified(_)
            | Notice::Dissolved { .. }
            | Notice::Listed { .. }
            | Notice::NotListed { .. }
            | Notice::GaveUp { .. }
            | Notice::NotStored { .. } => {}
        }
    }

    /// Takes what the operator asked for, by the API or a signal, and what came of it.
    pub fn take_operation(&self, now: Now, caller: Caller, verb: &str, result: Result<&str, &str>) {
        let (outcome, detail) = match result {
            Ok(detail) => ("done", detail),
            Err(why) => ("failed", why),
        };
        let entry = self.entry(now, verb, outcome, detail);
        self.push(AuditEntry { from: Some(caller.to_string()), ..entry });
    }

    /// Returns what became of lines.
    pub fn counts(&self) -> &AuditCounts {
        &self.counts
    }

    /// Returns whether an answer says more than that a lease goes on as before.
    fn is_news(&mut self, entry: &AuditEntry, outcome: &Outcome) -> bool {
        let (Some(user), Some(session), true) = (&entry.user, entry.session, outcome.is_ok()) else { return true };
        let key = (user.clone(), session);
        let is_as_before =
            matches!(outcome, Outcome::Refreshed { .. }) && self.known.get(&key) == Some(&entry.evidence);
        if self.known.len() >= AUDIT_SESSIONS_MAX && !self.known.contains_key(&key) {
            self.known.clear();
        }
        self.known.insert(key, entry.evidence.clone());
        !is_as_before
    }

    fn entry(&self, now: Now, verb: &str, outcome: &str, detail: &str) -> AuditEntry {
        AuditEntry::new(now.wall, self.node.clone(), verb, outcome, detail)
    }

    /// Writes a line if the share that it belongs to has room, and counts it otherwise.
    fn push_within(&self, now: Now, share: Share, entry: AuditEntry) {
        if lock(&self.shares).take(now.instant, share) {
            self.push(entry);
        } else {
            add(&self.counts.left_out, 1);
        }
    }

    fn push(&self, entry: AuditEntry) {
        let Some(entries) = &self.entries else { return };
        match entries.try_send(entry) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.counts.lose(1),
        }
    }
}

impl AuditCounts {
    fn lose(&self, lines: u64) {
        add(&self.lost, lines);
        add(&self.unsaid, lines);
    }
}

fn add(count: &AtomicU64, by: u64) {
    count.fetch_add(by, Ordering::Relaxed);
}

fn lock(shares: &Mutex<Shares>) -> std::sync::MutexGuard<'_, Shares> {
    shares.lock().unwrap_or_else(PoisonError::into_inner)
}
