// SPDX-License-Identifier: Apache-2.0
//! What is wrong with a project's file.

/// One fault of a project's file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{cause}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct ProjectError {
    /// The line, from 1, if it is known.
    pub line: Option<usize>,
    /// The cause, in one line.
    pub cause: String,
    /// The name that was meant by an unknown one, if one that is known is close to it.
    pub meant: Option<String>,
}

impl ProjectError {
    pub(crate) fn new(line: Option<usize>, cause: impl AsRef<str>) -> ProjectError {
        let cause = cause.as_ref().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        ProjectError { line, cause, meant: None }
    }

    pub(crate) fn of_toml(text: &str, error: &toml::de::Error) -> ProjectError {
        let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
        let meant = meant(error.message()).map(str::to_owned);
        ProjectError { meant, ..ProjectError::new(line, error.message()) }
    }
}

/// Returns the expected name that is closest to the unknown one of a message, if they differ by a third of it at most.
fn meant(message: &str) -> Option<&str> {
    if !message.starts_with("unknown field ") && !message.starts_with("unknown variant ") {
        return None;
    }
    let mut names = message.split('`').skip(1).step_by(2);
    let unknown = names.next()?;
    let changes_max = (unknown.chars().count() / 3).max(1);
    let close = names.map(|name| (changes(unknown, name), name)).filter(|(changes, _)| *changes <= changes_max);
    close.min().map(|(_, name)| name)
}

/// Counts the characters to insert, remove or replace that make one name of another (Levenshtein).
fn changes(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, have) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (at, want) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(have != *want);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_recognised() {
        for (message, expected) in [
            ("unknown field `filter`, expected one of `abi`, `filters`, `on-failure`, `parallel`", Some("filters")),
            ("unknown field `http_test`, expected one of `test`, `http-test`, `tcp-test`", Some("http-test")),
            ("unknown field `test`, expected one of `tests`, `text`, `rest`", Some("rest")),
            ("unknown field `dependency`, expected `dependencies`", Some("dependencies")),
            ("unknown field `port`, expected `listen` or `intercept`", None),
            ("unknown field `x`, expected `abi`", None),
            ("unknown variant `close`, expected `open` or `closed`", Some("closed")),
            ("unknown field `x`, there are no fields", None),
            ("unknown field ", None),
            ("missing field `name`", None),
        ] {
            assert_eq!(meant(message), expected, "{message}");
        }
    }

    #[test]
    fn changes_are_counted_by_character() {
        for (from, to, expected) in
            [("", "", 0), ("", "ab", 2), ("ab", "", 2), ("kitten", "sitting", 3), ("für", "fur", 1)]
        {
            assert_eq!(changes(from, to), expected, "{from} {to}");
        }
    }
}
