// SPDX-License-Identifier: Apache-2.0
//! Why a call into a module failed, in words for its author: what the module said last, and which function of its own it
//! was in.

use std::time::Instant;

use netserv_model::{Refusal, RefusalKind};

use crate::limits::{SAID_BYTES_MAX, SAID_LINE_SHOWN_CHARS_MAX, SAID_LINES_SHOWN_MAX, SAID_TIME_MAX};

/// Returns the refusal of a state for a part of a module that takes none.
pub fn no_carrier(part: &str) -> Refusal {
    let detail = format!("the state has what the module's {part} part said, and that part takes none here");
    Refusal::new(RefusalKind::StateRefused, detail)
}

/// Returns the refusal for a module that failed when it was asked for its state.
pub fn no_state(failure: &Refusal) -> Refusal {
    if failure.kind == RefusalKind::StateRefused {
        return failure.clone();
    }
    let detail = format!("the module failed when it was asked for its state: {}", failure.detail);
    Refusal::new(RefusalKind::StateRefused, detail).with_context(&failure.context)
}

/// Returns the refusal for a module that wants more memory than it may have.
pub fn memory_limit(wanted: u64, allowed: u64) -> Refusal {
    Refusal::new(RefusalKind::MemoryLimit, format!("the module wants {wanted} bytes of memory and may have {allowed}"))
}

/// What an instance wrote as an error of late: the end of it, as lines.
#[derive(Debug, Default)]
pub struct Said {
    text: Vec<u8>,
    at: Option<Instant>,
}

impl Said {
    /// Takes in what the instance wrote, which has line ends of its own. After a while of silence what it said before has
    /// nothing to do with it.
    pub fn add(&mut self, bytes: &[u8], now: Instant) {
        if !self.is_fresh(now) {
            self.text.clear();
        }
        self.at = Some(now);
        self.text.extend_from_slice(&bytes[bytes.len().saturating_sub(SAID_BYTES_MAX)..]);
        let surplus = self.text.len().saturating_sub(SAID_BYTES_MAX);
        self.text.drain(..surplus);
    }

    /// Takes in one whole line.
    pub fn add_line(&mut self, line: &[u8], now: Instant) {
        self.add(line, now);
        self.add(b"\n", now);
    }

    /// Forgets all of it.
    pub fn clear(&mut self) {
        self.text.clear();
    }

    /// Returns the last lines of what was said just before `now`, without those that say nothing.
    pub fn lines(&self, now: Instant) -> Vec<String> {
        if !self.is_fresh(now) {
            return Vec::new();
        }
        let text = String::from_utf8_lossy(&self.text);
        let lines = text.lines().map(str::trim_end).filter(|line| !line.trim().is_empty());
        let mut lines: Vec<String> = lines.filter(|line| !is_hint(line)).map(str::to_owned).collect();
        join_panic(&mut lines);
        let surplus = lines.len().saturating_sub(SAID_LINES_SHOWN_MAX);
        lines.drain(..surplus);
        lines
    }

    fn is_fresh(&self, now: Instant) -> bool {
        self.at.is_some_and(|at| now.saturating_duration_since(at) < SAID_TIME_MAX)
    }
}

/// Returns the refusal for a module that ended otherwise than by a trap, for instance by its own will.
pub fn with_words(kind: RefusalKind, cause: &str, said: &[String]) -> Refusal {
    let Some(words) = principal(said) else { return Refusal::new(kind, cause) };
    let words: String = words.chars().take(SAID_LINE_SHOWN_CHARS_MAX).collect();
    let refusal = Refusal::new(kind, format!("{words} ({cause})"));
    if said.len() > 1 { refusal.with_context(said) } else { refusal }
}

/// Returns the line that says most: where a program panicked, or the last one, as of exceptions in Python and JavaScript.
fn principal(said: &[String]) -> Option<&String> {
    let begins = ["panic: ", "fatal error: "];
    let panicked = |line: &&String| line.contains(PANICKED) || begins.iter().any(|begin| line.starts_with(begin));
    said.iter().find(panicked).or(said.last())
}

const PANICKED: &str = "panicked at ";

/// Rust writes where a program panicked, and in the next line why.
fn join_panic(lines: &mut Vec<String>) {
    let place = lines.iter().position(|line| line.contains(PANICKED) && line.ends_with(':'));
    if let Some(place) = place.filter(|place| place + 1 < lines.len()) {
        let why = lines.remove(place + 1);
        lines[place] = format!("{} {why}", lines[place]);
    }
}

fn is_hint(line: &str) -> bool {
    line.starts_with("note: run with `RUST_BACKTRACE=") || line.starts_with("note: Some details are omitted")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_line_that_says_most_stands_first() {
        for (text, words) in [
            (
                "\nthread 'main' panicked at src/main.rs:3:5:\nno key\nnote: run with `RUST_BACKTRACE=1`\n",
                "thread 'main' panicked at src/main.rs:3:5: no key",
            ),
            ("Traceback (most recent call last):\n  File \"app.py\", line 3\nValueError: no key", "ValueError: no key"),
            ("panic: no key\n\ngoroutine 1 [running]:\nmain.main()\n", "panic: no key"),
            ("one line", "one line"),
        ] {
            let now = Instant::now();
            let mut said = Said::default();
            said.add(text.as_bytes(), now);
            let refusal = with_words(RefusalKind::Trapped, "cause", &said.lines(now));
            assert_eq!(refusal.detail, format!("{words} (cause)"));
        }
        assert_eq!(with_words(RefusalKind::Trapped, "cause", &[]).detail, "cause");
    }

    #[test]
    fn what_was_said_is_bounded_and_has_its_time() {
        let start = Instant::now();
        let mut said = Said::default();
        for number in 0..100_000 {
            said.add_line(format!("line {number}").as_bytes(), start);
        }
        said.add(&[b'x'; 100_000], start);
        assert!(said.text.len() == SAID_BYTES_MAX && said.lines(start).len() == 1);
        assert!(said.lines(start + SAID_TIME_MAX).is_empty());
        said.add(b"news", start + SAID_TIME_MAX);
        assert_eq!(said.lines(start + SAID_TIME_MAX + Duration::from_millis(1)), ["news"]);
        (0..100).for_each(|number| said.add_line(number.to_string().as_bytes(), start + SAID_TIME_MAX));
        assert_eq!(said.lines(start + SAID_TIME_MAX).len(), SAID_LINES_SHOWN_MAX);
    }
}
