// SPDX-License-Identifier: Apache-2.0
//! The thread that writes kv state to its file, a little after it changed.
//!
//! A file that cannot be used costs modules nothing but what it should have kept: state goes on in memory, and the file
//! is tried again now and then.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use netserv_model::Instant;

use super::bell::Bell;
use super::kept::Kept;
use crate::limits::SMALL_STACK_BYTES;
use crate::storage::Disk;
use crate::storage::journal::{Journal, JournalError};
use crate::storage::limits::{KV_RETRY_DELAY, KV_WRITE_DELAY, REPORTS_MAX};

/// The node's end of the thread.
#[derive(Debug)]
pub struct Writer {
    bell: Arc<Bell>,
    health: Arc<Health>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Reads a file into `kept`, and starts to write what changes there from `now` on. Modules may keep `room` bytes, or
    /// as many as the file takes.
    pub fn start(disk: impl Disk + 'static, kept: Arc<Kept>, room: u64, now: Instant) -> Writer {
        let (bell, health) = (Arc::new(Bell::default()), Arc::new(Health::default()));
        let mut writer = Writer { bell: Arc::clone(&bell), health: Arc::clone(&health), thread: None };
        let (journal, found) = match Journal::open(disk) {
            Ok(opened) => opened,
            Err(error) => {
                health.failed(format!("kv state is not kept, since its file is of no use: {error}"));
                return writer;
            }
        };
        if let Some(damage) = found.damage {
            let count = found.states.len();
            health.failed(format!(
                "the file of kv state: {damage}; what modules remember is from before ({count} states)"
            ));
        }
        let left_out = kept.keep(found.states, journal.usable().min(room), &bell, now);
        if left_out > 0 {
            health.failed(format!(
                "the file of kv state holds more than modules may keep together: {left_out} states are forgotten"
            ));
        }
        let mut scribe = Scribe { journal, kept, health: Arc::clone(&health), is_behind: false };
        let thread = std::thread::Builder::new().name("kv".to_owned()).stack_size(SMALL_STACK_BYTES);
        match thread.spawn(move || scribe.run(&bell)) {
            Ok(thread) => writer.thread = Some(thread),
            Err(error) => health.failed(format!("kv state is not kept, since it gets no thread: {error}")),
        }
        writer
    }

    /// Has what changed written at once.
    pub fn hurry(&self) {
        self.bell.hurry();
    }

    /// Returns what there is to say since the last time.
    pub fn take_reports(&self) -> Vec<String> {
        if !self.health.has_reports.swap(false, Ordering::Relaxed) {
            return vec![];
        }
        self.health.lock().drain(..).collect()
    }

    /// Returns how many times the file could not be read or written.
    pub fn failures(&self) -> u64 {
        self.health.failures.load(Ordering::Relaxed)
    }

    /// Ends the thread when it has written what there is, and waits for that, at most so long.
    pub fn close(self, at_most: Duration) {
        let Some(thread) = self.thread else { return };
        if self.bell.stop(at_most) {
            // If it panicked, that is told on standard error.
            let _ = thread.join();
        }
    }
}

/// How the file is doing.
#[derive(Debug, Default)]
struct Health {
    failures: AtomicU64,
    has_reports: AtomicBool,
    reports: Mutex<VecDeque<String>>,
}

impl Health {
    fn failed(&self, text: String) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.say(text);
    }

    fn say(&self, text: String) {
        let mut reports = self.lock();
        if reports.len() < REPORTS_MAX {
            reports.push_back(text);
        }
        self.has_reports.store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread itself.
struct Scribe<D> {
    journal: Journal<D>,
    kept: Arc<Kept>,
    health: Arc<Health>,
    /// Whether changes were collected that are not in the file.
    is_behind: bool,
}

impl<D: Disk> Scribe<D> {
    fn run(&mut self, bell: &Bell) {
        let mut failing = false;
        loop {
            let is_last = bell.wait(if failing { KV_RETRY_DELAY } else { KV_WRITE_DELAY });
            match self.write() {
                Ok(()) if failing => {
                    failing = false;
                    self.health.say("kv state is written to its file again".to_owned());
                }
                Ok(()) => {}
                Err(error) => {
                    let text = format!("kv state could not be written to its file, and is in memory only: {error}");
                    if failing {
                        self.health.failures.fetch_add(1, Ordering::Relaxed);
                    } else {
                        self.health.failed(text);
                    }
                    failing = true;
                    bell.ring();
                }
            }
            if is_last {
                return bell.say_stopped();
            }
        }
    }

    fn write(&mut self) -> Result<(), JournalError> {
        if self.journal.is_begun() && !self.is_behind {
            let batch = self.kept.collect();
            if batch.is_empty() {
                return Ok(());
            }
            self.is_behind = true;
            match self.journal.append(&batch) {
                Err(JournalError::Full) => {}
                result => {
                    self.is_behind = result.is_err();
                    return result;
                }
            }
        }
        self.is_behind = true;
        self.journal.rewrite(self.kept.collect_all())?;
        self.is_behind = false;
        Ok(())
    }
}
