// SPDX-License-Identifier: Apache-2.0
//! How much of the log one container may fill. Its worker keeps modules to less; a worker that was taken over does not.

use std::cmp::Ordering;
use std::time::{Duration, Instant};

use netserv_model::effect::ModuleSlot;
use netserv_model::{Refusal, WorkerId};
use netserv_wire::container::frames::LogLevel;

use crate::limits::LOG_LINES_PER_CONTAINER_MAX;

/// A line that a worker wrote for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The worker.
    pub worker: WorkerId,
    /// The module that wrote it; nothing if the worker did.
    pub slot: Option<ModuleSlot>,
    /// How important it is.
    pub level: LogLevel,
    /// The text.
    pub text: String,
}

impl LogEntry {
    /// Returns the line that says why a module failed.
    pub fn of_failure(worker: &WorkerId, slot: ModuleSlot, refusal: &Refusal) -> LogEntry {
        let text = format!("failed: {}", refusal.in_full());
        LogEntry { worker: worker.clone(), slot: Some(slot), level: LogLevel::Error, text }
    }
}

/// The lines of one container in the second that goes on.
#[derive(Default)]
pub struct LogBudget {
    since: Option<Instant>,
    lines: u32,
}

impl LogBudget {
    /// Returns the line if the container may write it; the first one too many becomes a line that says so.
    pub fn spend(&mut self, now: Instant, entry: LogEntry) -> Option<LogEntry> {
        if self.since.is_none_or(|since| now.duration_since(since) >= Duration::from_secs(1)) {
            (self.since, self.lines) = (Some(now), 0);
        }
        self.lines = self.lines.saturating_add(1);
        match self.lines.cmp(&(LOG_LINES_PER_CONTAINER_MAX + 1)) {
            Ordering::Less => Some(entry),
            Ordering::Equal => {
                let text = "writes too many lines; the rest of this second is left out".to_owned();
                Some(LogEntry { slot: None, level: LogLevel::Warn, text, ..entry })
            }
            Ordering::Greater => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_writes_log_lines_per_container_max_lines_a_second() {
        let (mut budget, start) = (LogBudget::default(), Instant::now());
        let worker = WorkerId::new("janedoe".parse().unwrap(), netserv_model::Flavour::Wasm);
        let entry = LogEntry { worker, slot: None, level: LogLevel::Info, text: "x".to_owned() };
        for _ in 0..LOG_LINES_PER_CONTAINER_MAX {
            assert_eq!(budget.spend(start, entry.clone()), Some(entry.clone()));
        }
        assert!(budget.spend(start, entry.clone()).unwrap().text.contains("too many"));
        assert_eq!(budget.spend(start + Duration::from_millis(999), entry.clone()), None);
        assert_eq!(budget.spend(start + Duration::from_secs(1), entry.clone()), Some(entry));
    }
}
