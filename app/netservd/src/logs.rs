// SPDX-License-Identifier: Apache-2.0
//! The node's log as the API shows it: a bounded ring of lines, written by `tracing` and by modules.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use netserv_api::LogLine;
use netserv_model::UnixTime;
use netserv_model::text::one_line;
use tokio::sync::Notify;
use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::debug_fn;
use tracing_subscriber::layer::Context;

/// Lines kept; older ones are forgotten.
pub const LOG_LINES_MAX: usize = 4096;
/// Characters of one line; the rest is cut.
pub const LOG_LINE_CHARS_MAX: usize = 2048;

/// A handle to the log; clones share it.
#[derive(Clone, Default)]
pub struct Logs {
    inner: Arc<Mutex<Ring>>,
    grown: Arc<Notify>,
}

#[derive(Default)]
struct Ring {
    lines: VecDeque<LogLine>,
    next: u64,
}

impl Logs {
    /// Appends a line, and forgets the oldest one if there are too many.
    pub fn push(&self, level: &str, source: &str, text: &str) {
        let text = one_line(text).chars().take(LOG_LINE_CHARS_MAX).collect();
        let mut ring = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let sequence = ring.next;
        ring.next += 1;
        if ring.lines.len() == LOG_LINES_MAX {
            ring.lines.pop_front();
        }
        ring.lines.push_back(LogLine { sequence, time: wall(), level: level.into(), source: source.into(), text });
        drop(ring);
        self.grown.notify_waiters();
    }

    /// Returns the lines whose sequence number is `from` or higher.
    pub fn since(&self, from: u64) -> Vec<LogLine> {
        let ring = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        ring.lines.iter().filter(|line| line.sequence >= from).cloned().collect()
    }

    /// Waits until there is a line whose sequence number is `from` or higher, and returns all such lines.
    pub async fn wait(&self, from: u64) -> Vec<LogLine> {
        loop {
            let grown = self.grown.notified();
            tokio::pin!(grown);
            grown.as_mut().enable();
            let lines = self.since(from);
            if !lines.is_empty() {
                return lines;
            }
            grown.await;
        }
    }
}

impl<S: tracing::Subscriber> Layer<S> for Logs {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        let level = event.metadata().level().as_str().to_ascii_lowercase();
        self.push(&level, "netservd", &text.0);
    }
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let separator = if self.0.is_empty() { "" } else { " " };
        // Writing to a String cannot fail.
        let _ = if field.name() == "message" {
            write!(self.0, "{separator}{value:?}")
        } else {
            write!(self.0, "{separator}{}={value:?}", field.name())
        };
    }
}

/// Writes an event's fields for standard error, each as one line: some hold text of modules, packages and peers.
pub fn fields() -> impl for<'writer> FormatFields<'writer> + 'static {
    debug_fn(|writer, field, value| {
        let value = one_line(&format!("{value:?}"));
        if field.name() == "message" { write!(writer, "{value}") } else { write!(writer, "{}={value}", field.name()) }
    })
    .delimited(" ")
}

/// Returns the wall clock.
pub fn wall() -> UnixTime {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    UnixTime(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_keeps_the_newest_lines() {
        let logs = Logs::default();
        for number in 0..LOG_LINES_MAX + 3 {
            logs.push("info", "test", &format!("line {number}"));
        }
        let lines = logs.since(0);
        assert_eq!(lines.len(), LOG_LINES_MAX);
        assert_eq!(lines[0].text, "line 3");
        assert_eq!(logs.since(LOG_LINES_MAX as u64 + 2).len(), 1);
    }

    #[test]
    fn a_line_is_one_line_and_bounded() {
        let logs = Logs::default();
        logs.push("info", "test", &format!("a\nb{}", "x".repeat(3000)));
        let line = &logs.since(0)[0];
        assert!(line.text.starts_with("a b"));
        assert_eq!(line.text.chars().count(), LOG_LINE_CHARS_MAX);
    }

    /// Goal: no text of others turns or steers a log, be it the API's or that on standard error.
    #[test]
    fn text_of_others_is_escaped_in_both_logs() {
        use tracing_subscriber::layer::SubscriberExt as _;

        let (logs, path) = (Logs::default(), tempfile::NamedTempFile::new().unwrap());
        let terminal = tracing_subscriber::fmt::layer().with_writer(path.reopen().unwrap()).with_ansi(false);
        let both = tracing_subscriber::registry().with(terminal.fmt_fields(fields())).with(logs.clone());
        tracing::subscriber::with_default(both, || {
            let foreign = "a\u{202e}b\u{1b}[2Jc\nd";
            tracing::info!(%foreign, number = 7, "said {foreign}");
        });
        let escaped = r"a\u{202e}b\u{1b}[2Jc d";
        let line = format!("said {escaped} foreign={escaped} number=7");
        assert_eq!(logs.since(0)[0].text, line);
        let terminal = std::fs::read_to_string(path.path()).unwrap();
        assert!(terminal.ends_with(&format!("{line}\n")) && terminal.lines().count() == 1, "{terminal}");
    }

    #[tokio::test]
    async fn waiting_ends_with_the_next_line() {
        let logs = Logs::default();
        let waiting = tokio::spawn({
            let logs = logs.clone();
            async move { logs.wait(0).await }
        });
        tokio::task::yield_now().await;
        logs.push("info", "test", "here");
        assert_eq!(waiting.await.unwrap()[0].text, "here");
    }
}
