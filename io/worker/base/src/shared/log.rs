// SPDX-License-Identifier: Apache-2.0
//! Log lines of one instance, bounded in rate so that a module cannot flood the node.

use std::time::Duration;

use netserv_model::Instant;
use netserv_wire::container::frames::LogLevel;

use crate::error::HostError;
use crate::limits;

/// Returns the level of the number that modules use.
pub fn level_from_number(number: i32) -> Option<LogLevel> {
    match number {
        0 => Some(LogLevel::Error),
        1 => Some(LogLevel::Warn),
        2 => Some(LogLevel::Info),
        3 => Some(LogLevel::Debug),
        _ => None,
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// How important.
    pub level: LogLevel,
    /// The text, without control characters.
    pub text: String,
}

/// Lines that wait to be sent, with a token bucket in front.
#[derive(Debug)]
pub struct LogBuffer {
    lines: Vec<Line>,
    tokens: u32,
    refilled: Instant,
    left_out: u64,
    /// The last line of level `error`, also if it was left out.
    error: Option<String>,
}

impl LogBuffer {
    /// Returns an empty buffer with a full bucket.
    pub fn new(now: Instant) -> LogBuffer {
        LogBuffer { lines: Vec::new(), tokens: limits::LOG_LINES_BURST, refilled: now, left_out: 0, error: None }
    }

    /// Takes a line, as one line of at most [`limits::LOG_LINE_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// The module writes too many lines; this one is counted and left out.
    #[inline]
    pub fn push(&mut self, now: Instant, level: LogLevel, bytes: &[u8]) -> Result<(), HostError> {
        if level == LogLevel::Error {
            self.error = Some(one_line(bytes));
        }
        self.refill(now);
        if self.tokens == 0 {
            self.left_out += 1;
            return Err(HostError::Quota);
        }
        self.tokens -= 1;
        self.note_left_out();
        self.lines.push(Line { level, text: one_line(bytes) });
        Ok(())
    }

    /// Returns the lines that wait, and forgets them.
    pub fn take(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.lines)
    }

    /// Returns whether lines wait.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns the last line of level `error`, also one that was left out; nothing if there is none.
    pub fn error(&self) -> &[String] {
        self.error.as_slice()
    }

    /// Forgets that line: what comes next has nothing to do with it.
    pub fn forget_error(&mut self) {
        self.error = None;
    }

    /// Says how many lines were left out, for the end of an instance.
    pub fn note_left_out(&mut self) {
        if self.left_out > 0 {
            let text = format!("{} lines left out: the module writes too many", self.left_out);
            self.lines.push(Line { level: LogLevel::Warn, text });
            self.left_out = 0;
        }
    }

    fn refill(&mut self, now: Instant) {
        let step = Duration::from_secs(1) / limits::LOG_LINES_PER_SECOND;
        let steps = now.since(self.refilled).as_nanos() / step.as_nanos();
        if steps == 0 {
            return;
        }
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        self.tokens = self.tokens.saturating_add(steps).min(limits::LOG_LINES_BURST);
        self.refilled = if self.tokens == limits::LOG_LINES_BURST { now } else { self.refilled + step * steps };
    }
}

fn one_line(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(limits::LOG_LINE_BYTES_MAX)];
    let mut text: String = String::from_utf8_lossy(cut).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    while text.len() > limits::LOG_LINE_BYTES_MAX {
        text.pop();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_told() {
        let mut log = LogBuffer::new(Instant::default());
        let flood = limits::LOG_LINES_BURST + 1000;
        let taken = (0..flood).filter(|_| log.push(Instant::default(), LogLevel::Info, b"x").is_ok()).count();
        assert_eq!(taken, limits::LOG_LINES_BURST as usize);
        assert_eq!(log.take().len(), taken);
        assert!(log.push(Instant::from_millis(9), LogLevel::Info, b"x").is_err());
        assert!(log.push(Instant::from_millis(10), LogLevel::Info, b"again").is_ok());
        let lines = log.take();
        assert_eq!(lines[0].text, "1001 lines left out: the module writes too many");
        assert_eq!(lines[1].text, "again");
        assert!(log.is_empty());
    }

    #[test]
    fn the_last_error_is_known_also_if_it_was_left_out() {
        let mut log = LogBuffer::new(Instant::default());
        while log.push(Instant::default(), LogLevel::Warn, b"x").is_ok() {}
        assert!(log.error().is_empty());
        assert!(log.push(Instant::default(), LogLevel::Error, b"no\nkey").is_err());
        assert_eq!(log.error(), ["no key"]);
        log.forget_error();
        assert!(log.error().is_empty());
    }

    #[test]
    fn the_long_run_rate_holds() {
        let mut log = LogBuffer::new(Instant::default());
        let taken = (0..10_000).filter(|ms| log.push(Instant::from_millis(*ms), LogLevel::Debug, b"x").is_ok()).count();
        assert_eq!(taken, (limits::LOG_LINES_BURST + 10 * limits::LOG_LINES_PER_SECOND) as usize - 1);
    }

    #[test]
    fn a_line_is_one_line_and_bounded() {
        assert_eq!(one_line(b"a\nb\x1b[31mc\0"), "a b [31mc ");
        assert_eq!(one_line(&[b'a'; 5000]).len(), limits::LOG_LINE_BYTES_MAX);
        assert!(one_line(&[0xff; 5000]).len() <= limits::LOG_LINE_BYTES_MAX);
    }
}
