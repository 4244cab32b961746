// SPDX-License-Identifier: Apache-2.0
//! docs/promises.md: the list at its end is made from the `Goal:` headings of tests.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::tidy::{extension, root, tracked};

/// The heading of the list. Everything above it is written by hand.
pub(super) const LIST: &str = "## From the headings of tests\n";

/// Goal: docs/promises.md has the goal of every test that names one.
#[test]
fn the_page_of_promises_has_the_goal_of_every_test() {
    let file = root().join("docs/promises.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (by_hand, there) = page.split_once(LIST).expect("docs/promises.md has the heading of the list");
    let wanted = list();
    assert!(wanted.lines().count() > 500, "only {} lines are made", wanted.lines().count());
    if std::env::var_os("NETSERV_REWRITE").is_some_and(|value| !value.is_empty()) {
        std::fs::write(&file, format!("{by_hand}{LIST}{wanted}")).unwrap();
    } else {
        let first = wanted.lines().zip(there.lines()).find(|(wanted, there)| wanted != there);
        assert!(there == wanted, "docs/promises.md is out of date; run this test with NETSERV_REWRITE=1: {first:#?}");
    }
}

/// Returns the goals of all tests by their folders.
fn list() -> String {
    let mut folders: BTreeMap<PathBuf, String> = BTreeMap::new();
    for path in tracked().into_iter().filter(|path| extension(path) == "rs") {
        let source = std::fs::read_to_string(root().join(&path)).unwrap_or_default();
        let file = path.file_name().unwrap().to_string_lossy();
        for (test, goal) in goals(&source) {
            let folder = folders.entry(path.parent().unwrap().to_owned()).or_default();
            writeln!(folder, "- {goal} `{file}{test}`").unwrap();
        }
    }
    folders.iter().map(|(folder, goals)| format!("\n### {}\n\n{goals}", folder.display())).collect()
}

/// Returns the goals of a source, each with `::` and the test's name, or with nothing if it is the whole file's.
fn goals(source: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let mut goals = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let of_test = line.strip_prefix("///").and_then(begin);
        let of_file = line.strip_prefix("//!").and_then(begin);
        let Some(first) = of_test.or(of_file) else { continue };
        let mark = &line[..3];
        let after = &lines[number + 1..];
        let more = after.iter().map_while(|line| line.strip_prefix(mark)).take_while(|line| !line.is_empty());
        let text = more.fold(first.to_owned(), |text, line| format!("{text} {}", line.trim()));
        let goal = text.split(" Method: ").next().unwrap_or_default().trim();
        let declared = after.iter().find_map(|line| line.split_once("fn ")?.1.split('(').next());
        let test = of_test.and(declared).map(|name| format!("::{name}")).unwrap_or_default();
        goals.push((test, capital(goal)));
    }
    goals
}

/// Returns the goal that begins in this line of a comment, behind `Goal:` or, for instance, `Goal (case 18):`.
fn begin(comment: &str) -> Option<&str> {
    let rest = comment.strip_prefix(" Goal")?;
    let rest = match rest.strip_prefix(" (") {
        Some(case) => case.split_once(')')?.1,
        None => rest,
    };
    rest.strip_prefix(": ")
}

fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map(|first| first.to_uppercase().collect::<String>() + rest.as_str()).unwrap_or_default()
}

#[test]
fn goals_are_read_with_their_tests() {
    let source = [
        "//! Goal: all of it.",
        "",
        "    /// Goal (case 1): one",
        "    /// and two. Method: three.",
        "    ///",
        "    /// More.",
        "    #[test]",
        "    fn name(a: u8) {",
    ];
    let wanted = [("", "All of it."), ("::name", "One and two.")];
    assert_eq!(goals(&source.join("\n")), wanted.map(|(test, goal)| (test.to_owned(), goal.to_owned())));
}
