// SPDX-License-Identifier: Apache-2.0
//! What people and programs see: standard output that survives a closed pipe, colours, progress.

use std::ffi::OsStr;
use std::fmt::Display;
use std::future::Future;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::time::{Duration, Instant};

use netserv_model::text::{is_hidden, one_line};
use serde::Serialize;

use crate::exit::{Failure, OrFail};

/// How long something runs before progress is shown.
const PROGRESS_AFTER: Duration = Duration::from_millis(400);
/// How often progress is drawn.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// Standard output and standard error of one run.
pub struct Output {
    json: bool,
    verbose: bool,
    colour: bool,
    progress: bool,
    stdout: Box<dyn Write>,
    state: State,
}

/// Whether standard output still takes text.
#[derive(Debug)]
enum State {
    Open,
    /// The reader has enough, as `head` does: no error.
    Closed,
    Failed(io::Error),
}

/// How a piece of text looks on a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// As it is.
    #[default]
    Plain,
    /// Headings.
    Bold,
    /// What matters less.
    Dim,
    /// Went well.
    Good,
    /// Worth a look.
    Warn,
    /// Went wrong.
    Bad,
}

impl Style {
    /// Returns how a log line's level looks, by its word.
    pub fn of_level(level: &str) -> Style {
        match level {
            "error" => Style::Bad,
            "warn" => Style::Warn,
            "debug" => Style::Dim,
            _ => Style::Plain,
        }
    }

    /// Returns what switches a terminal to this style.
    fn sequence(self) -> &'static str {
        match self {
            Style::Plain => "\x1b[0m",
            Style::Bold => "\x1b[1m",
            Style::Dim => "\x1b[2m",
            Style::Good => "\x1b[32m",
            Style::Warn => "\x1b[33m",
            Style::Bad => "\x1b[31m",
        }
    }
}

const STYLES: [Style; 6] = [Style::Plain, Style::Bold, Style::Dim, Style::Good, Style::Warn, Style::Bad];
const ESCAPE: char = '\x1b';

impl Output {
    /// Writes to the process's own standard output and error.
    pub fn stdio(json: bool, verbose: bool) -> Output {
        let colour = may_colour(std::env::var_os("NO_COLOR").as_deref(), std::env::var_os("TERM").as_deref());
        Output {
            json,
            verbose,
            colour: colour && !json && io::stdout().is_terminal(),
            progress: !json && io::stderr().is_terminal(),
            stdout: Box::new(io::stdout()),
            state: State::Open,
        }
    }

    /// Returns whether programs read the output.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Returns whether nobody reads the output any more.
    pub fn is_closed(&self) -> bool {
        !matches!(self.state, State::Open)
    }

    /// Writes a line, or several, to standard output. Only what [`paint`](Output::paint) made steers the terminal.
    pub fn line(&mut self, text: impl Display) {
        let text = text.to_string();
        let mut parts = text.split(ESCAPE);
        let mut shown = parts.next().map(lines_of).unwrap_or_default();
        for part in parts {
            let painted = self.colour && STYLES.iter().any(|style| part.starts_with(&style.sequence()[1..]));
            shown.push_str(if painted { "\x1b" } else { r"\u{1b}" });
            shown.push_str(&lines_of(part));
        }
        shown.push('\n');
        self.raw(shown.as_bytes());
    }

    /// Writes bytes to standard output as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        if self.is_closed() {
            return;
        }
        if let Err(error) = self.stdout.write_all(bytes).and_then(|()| self.stdout.flush()) {
            self.state = if error.kind() == ErrorKind::BrokenPipe { State::Closed } else { State::Failed(error) };
        }
    }

    /// Writes a value as indented JSON.
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).or_fail("cannot write JSON", "report this as a bug")?;
        self.raw(format!("{}\n", ascii_where_hidden(&text)).as_bytes());
        Ok(())
    }

    /// Writes a value as one line of JSON.
    pub fn json_line(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(value).or_fail("cannot write JSON", "report this as a bug")?;
        self.raw(format!("{}\n", ascii_where_hidden(&text)).as_bytes());
        Ok(())
    }

    /// Returns the text in a style, if standard output shows colours.
    pub fn paint(&self, style: Style, text: &str) -> String {
        if self.colour && style != Style::Plain {
            format!("{}{text}{}", style.sequence(), Style::Plain.sequence())
        } else {
            text.to_owned()
        }
    }

    /// Writes a remark for people to standard error; not in JSON mode.
    pub fn note(&self, text: impl Display) {
        if !self.json {
            to_stderr(&format!("{}\n", lines_of(&text.to_string())));
        }
    }

    /// Writes a detail to standard error if `-v` was given.
    pub fn detail(&self, text: impl Display) {
        if self.verbose {
            to_stderr(&format!("{}\n", lines_of(&text.to_string())));
        }
    }

    /// Waits for a future, and shows on a terminal that it waits.
    pub async fn waiting<T>(&self, what: &str, future: impl Future<Output = T>) -> T {
        if !self.progress {
            return future.await;
        }
        tokio::pin!(future);
        let started = Instant::now();
        if let Ok(value) = tokio::time::timeout(PROGRESS_AFTER, &mut future).await {
            return value;
        }
        let value = loop {
            to_stderr(&format!("\r{what} … {} s\x1b[K", started.elapsed().as_secs()));
            if let Ok(value) = tokio::time::timeout(PROGRESS_EVERY, &mut future).await {
                break value;
            }
        };
        to_stderr("\r\x1b[K");
        value
    }

    /// Ends the output.
    ///
    /// # Errors
    /// Something could not be written, and not because the reader went away.
    pub fn finish(self) -> Result<(), Failure> {
        match self.state {
            State::Open | State::Closed => Ok(()),
            State::Failed(error) => {
                Err(Failure::new(format!("cannot write the output: {error}"), "make room where the output goes"))
            }
        }
    }
}

/// Returns whether the environment lets colours be: <https://no-color.org>, and terminals that have none.
fn may_colour(no_color: Option<&OsStr>, term: Option<&OsStr>) -> bool {
    no_color.is_none_or(OsStr::is_empty) && term.is_none_or(|term| term != "dumb")
}

/// Returns the text with each of its lines made [`one_line`].
fn lines_of(text: &str) -> String {
    text.split('\n').map(one_line).collect::<Vec<_>>().join("\n")
}

/// Returns JSON of the same meaning without characters that are hidden, which only strings can have.
fn ascii_where_hidden(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && is_hidden(c) {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Writes to standard error, and does not mind if nobody reads it.
pub fn to_stderr(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
pub mod test_support {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// An output without colours whose text can be read afterwards.
    pub fn captured(json: bool, colour: bool) -> (Output, Captured) {
        let text = Captured::default();
        let output = Output {
            json,
            verbose: false,
            colour,
            progress: false,
            stdout: Box::new(text.clone()),
            state: State::Open,
        };
        (output, text)
    }

    #[derive(Clone, Default)]
    pub struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Captured {
        pub fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::test_support::captured;
    use super::*;

    struct Broken(ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn broken(kind: ErrorKind) -> Output {
        Output { stdout: Box::new(Broken(kind)), ..captured(false, false).0 }
    }

    #[test]
    fn a_reader_that_leaves_is_no_error_and_a_full_disk_is() {
        let mut output = broken(ErrorKind::BrokenPipe);
        output.line("x");
        assert!(output.is_closed());
        assert!(output.finish().is_ok());
        let mut output = broken(ErrorKind::StorageFull);
        output.line("x");
        assert!(output.finish().unwrap_err().cause.contains("cannot write"));
    }

    /// Goal: text of modules, packages and nodes, wherever a command shows it, neither steers the terminal nor turns the
    /// order of what is shown beside it.
    #[test]
    fn foreign_text_steers_no_terminal() {
        let foreign = "a\u{202e}b\u{1b}[2Jc\u{9b}d";
        for (colour, bad) in [(false, "x"), (true, "\x1b[31mx\x1b[0m")] {
            let (mut output, text) = captured(false, colour);
            let painted = output.paint(Style::Bad, "x");
            output.line(format!("{painted} {foreign}\ntwo"));
            assert_eq!(text.text(), format!("{bad} {}\ntwo\n", r"a\u{202e}b\u{1b}[2Jc\u{9b}d"));
        }
        for pretty in [true, false] {
            let (mut output, text) = captured(true, false);
            let value = vec![foreign, "\u{e0041}"];
            if pretty { output.json(&value) } else { output.json_line(&value) }.unwrap();
            assert!(text.text().chars().all(|c| c == '\n' || c == ' ' || c.is_ascii_graphic()), "{}", text.text());
            assert_eq!(serde_json::from_str::<Vec<String>>(&text.text()).unwrap(), value);
        }
    }

    #[test]
    fn the_environment_can_switch_colours_off() {
        let may =
            |no_color: Option<&str>, term: Option<&str>| may_colour(no_color.map(OsStr::new), term.map(OsStr::new));
        assert!(may(None, Some("xterm")));
        assert!(may(Some(""), None));
        assert!(!may(Some("1"), Some("xterm")));
        assert!(!may(None, Some("dumb")));
    }

    #[test]
    fn colours_only_where_they_are_on() {
        assert_eq!(captured(false, false).0.paint(Style::Bad, "x"), "x");
        assert_eq!(captured(false, true).0.paint(Style::Bad, "x"), "\x1b[31mx\x1b[0m");
        assert_eq!(captured(false, true).0.paint(Style::Plain, "x"), "x");
    }
}
