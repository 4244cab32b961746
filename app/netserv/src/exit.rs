// SPDX-License-Identifier: Apache-2.0
//! How a command ends: its exit code, and for a failure one line of cause and one line of fix.

use std::fmt;
use std::process::ExitCode;

/// What the exit codes mean, as shown by `--help` and in the manual pages.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done; every node that answered accepted, and the response stack is complete
  1  failed on this machine: a file, a key, a package or a build
  2  the command line is wrong
  3  no answer from netservd: no socket, not running, not allowed, or too slow
  4  netservd refused the call
  5  at least one node on the path refused
  6  no node answered or matched the request, the response stack is incomplete, or a watch ended with fewer events than requested
  7  a module's test failed";

/// The exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything that was asked is done.
    Done,
    /// Something on this machine failed.
    Failed,
    /// The command line is wrong.
    Usage,
    /// `netservd` did not answer.
    Unreachable,
    /// `netservd` answered with an error.
    ApiRefused,
    /// A node on the path refused.
    NodeRefused,
    /// The response stack is empty or incomplete, or less happened than was waited for.
    Incomplete,
    /// A test of a module failed.
    TestFailed,
}

impl Exit {
    /// Returns the number that the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Unreachable => 3,
            Exit::ApiRefused => 4,
            Exit::NodeRefused => 5,
            Exit::Incomplete => 6,
            Exit::TestFailed => 7,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// Why a command could not be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What is wrong, in one line.
    pub cause: String,
    /// What to do about it, in one line.
    pub fix: String,
}

impl Failure {
    /// Builds a failure of this machine; both texts become one line each.
    pub fn new(cause: impl AsRef<str>, fix: impl AsRef<str>) -> Failure {
        Failure { exit: Exit::Failed, cause: one_line(cause.as_ref()), fix: one_line(fix.as_ref()) }
    }

    /// Returns the same failure with another exit code.
    pub fn with_exit(self, exit: Exit) -> Failure {
        Failure { exit, ..self }
    }
}

/// Turns any error into a failure with a cause and a fix.
pub trait OrFail<T> {
    /// Puts `doing` in front of the error's text.
    fn or_fail(self, doing: impl fmt::Display, fix: impl AsRef<str>) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> OrFail<T> for Result<T, E> {
    fn or_fail(self, doing: impl fmt::Display, fix: impl AsRef<str>) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(format!("{doing}: {error}"), fix))
    }
}

/// Returns the text as [`netserv_model::text::one_line`] does, with one space between words.
pub fn one_line(text: &str) -> String {
    netserv_model::text::one_line(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_code_is_documented_and_distinct() {
        let all = [
            Exit::Done,
            Exit::Failed,
            Exit::Usage,
            Exit::Unreachable,
            Exit::ApiRefused,
            Exit::NodeRefused,
            Exit::Incomplete,
            Exit::TestFailed,
        ];
        for (number, exit) in all.into_iter().enumerate() {
            assert_eq!(usize::from(exit.code()), number);
            assert!(EXIT_CODES.contains(&format!("\n  {number}  ")), "{number}");
        }
        assert_eq!(EXIT_CODES.lines().count(), all.len() + 1);
    }

    #[test]
    fn foreign_text_stays_on_one_line_and_cannot_steer_the_terminal() {
        assert_eq!(one_line("a\r\n\n  b\u{1b}[31mc\u{9b}2J"), r"a b\u{1b}[31mc\u{9b}2J");
    }
}
