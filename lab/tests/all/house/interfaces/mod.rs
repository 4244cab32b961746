// SPDX-License-Identifier: Apache-2.0
//! The interfaces that modules are built against stay what they are: a module of yesterday loads tomorrow.
//!
//! `vectors/interfaces/released.txt` has a line for each version of a WIT package, with the digest of its text, for each function
//! of the packet ABI and for each member of the API of bundles. Comments and blanks do not count.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::tidy::{extension, root, tracked};

const RELEASED: &str = "vectors/interfaces/released.txt";
const API: &str = "java/api/src/main/java/org/netserv";

/// Goal: nothing that is released changes or goes. New versions, functions and members come by lines of their own, which
/// `NETSERV_REWRITE=1` adds; it takes none away.
#[test]
fn released_interfaces_stay_what_they_are() {
    let released = std::fs::read_to_string(root().join(RELEASED)).unwrap_or_default();
    let released: BTreeSet<String> = released.lines().map(str::to_owned).collect();
    let current: BTreeSet<String> = wit_packages().into_iter().chain(packet_abi()).chain(bundle_api()).collect();
    // Of the versions that a package had, the last one is current.
    let gone: Vec<&String> = released.difference(&current).filter(|line| !line.starts_with("version ")).collect();
    assert!(
        gone.is_empty(),
        "modules are built against these, which changed or went: {gone:#?}\n\
         Put them back, and what is new beside them: in wit/deps a folder with the next version of the package, in \
         wit/packet-abi.md another function, in java/api another member or type and the next minor @Version of its package."
    );
    let new: Vec<&String> = current.difference(&released).collect();
    if new.is_empty() {
        return;
    }
    let stale = unraised(&released, &new);
    assert!(stale.is_empty(), "raise the minor number of @Version in package-info.java of {stale:?} for {new:#?}");
    assert!(
        std::env::var_os("NETSERV_REWRITE").is_some_and(|value| !value.is_empty()),
        "{RELEASED} lacks these; if they are as they are to stay, NETSERV_REWRITE=1 adds them: {new:#?}"
    );
    let all: String = released.union(&current).fold(String::new(), |mut all, line| {
        let _ = writeln!(all, "{line}");
        all
    });
    std::fs::write(root().join(RELEASED), all).unwrap();
}

/// Returns the packages of bundles that have new members, but no new version.
fn unraised(released: &BTreeSet<String>, new: &[&String]) -> BTreeSet<String> {
    let package = |line: &str, word: &str| Some(line.strip_prefix(word)?.split(' ').next()?.to_owned());
    let known: BTreeSet<String> = released.iter().filter_map(|line| package(line, "java ")).collect();
    let raised: BTreeSet<String> = new.iter().filter_map(|line| package(line, "version ")).collect();
    let grown: BTreeSet<String> = new.iter().filter_map(|line| package(line, "java ")).collect();
    grown.intersection(&known).filter(|package| !raised.contains(*package)).cloned().collect()
}

/// Returns each version of our WIT packages with the digest of its text.
fn wit_packages() -> Vec<String> {
    let files = tracked().into_iter().filter(|path| path.starts_with("wit/deps") && extension(path) == "wit");
    let texts = files.map(|path| std::fs::read_to_string(root().join(path)).unwrap());
    texts.filter_map(|text| wit_line(&text)).collect()
}

/// Returns the line for a package of ours.
fn wit_line(text: &str) -> Option<String> {
    let code = without_comments(text);
    let name = code.trim_start().strip_prefix("package ")?.split(';').next()?;
    let words: String = code.split_whitespace().collect();
    name.starts_with("netserv:").then(|| format!("wit {name} {:x}", Sha256::digest(words)))
}

/// Returns the functions of the packet ABI, as the tables of its page have them.
fn packet_abi() -> Vec<String> {
    let page = std::fs::read_to_string(root().join("wit/packet-abi.md")).unwrap();
    let version = page.split_once("# Packet ABI, version ").unwrap().1.lines().next().unwrap().to_owned();
    let mut lines = Vec::new();
    for (head, kind) in [("| export | type |", "export"), ("| import | type |", "import")] {
        let rows = page.split_once(head).unwrap().1.lines().skip(2).take_while(|line| line.starts_with('|'));
        for row in rows {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            lines.push(format!("abi {version} {kind} {} {}", cells[1].trim_matches('`'), cells[2].trim_matches('`')));
        }
    }
    assert!(lines.len() > 40, "{lines:#?}");
    lines
}

/// Returns the members that bundles can use, and the versions of their packages.
fn bundle_api() -> Vec<String> {
    let mut lines = Vec::new();
    for path in tracked().into_iter().filter(|path| path.starts_with(API) && extension(path) == "java") {
        let text = std::fs::read_to_string(root().join(&path)).unwrap();
        let folder = path.parent().unwrap();
        let information = std::fs::read_to_string(root().join(folder).join("package-info.java")).unwrap();
        let package = format!("org.netserv.{}", folder.file_name().unwrap().to_string_lossy());
        if path.ends_with("package-info.java") {
            let version = text.split_once("@Version(\"").and_then(|(_, rest)| rest.split('"').next());
            lines.extend(version.map(|version| format!("version {package} {version}")));
        } else if information.contains("@Export") {
            lines.extend(members(&text).into_iter().map(|member| format!("java {package} {member}")));
        }
    }
    assert!(lines.len() > 100, "{lines:#?}");
    lines
}

/// A type that is open while its source is read.
struct Type {
    name: String,
    /// Members are public without saying so.
    is_interface: bool,
    /// What comes up to the first semicolon are names.
    has_constants: bool,
    is_public: bool,
}

/// Returns what others can use of the types in a source: one line for each type, member and constant, without bodies.
fn members(source: &str) -> Vec<String> {
    let code = without_comments(source);
    let (mut types, mut lines, mut head) = (Vec::<Type>::new(), Vec::new(), String::new());
    let (mut parentheses, mut bodies) = (0_u32, 0_u32);
    for character in code.chars() {
        match character {
            '{' if bodies > 0 => bodies += 1,
            '}' if bodies > 1 => bodies -= 1,
            '}' if bodies == 1 => {
                bodies = 0;
                note(&types, &head, &mut lines);
                head.clear();
            }
            _ if bodies > 0 => {}
            '{' => match opened(&types, &head) {
                Some(new) => {
                    if new.is_public {
                        lines.push(format!("{} {}", path(&types), plain(&head)).trim_start().to_owned());
                    }
                    types.push(new);
                    head.clear();
                }
                None => bodies = 1,
            },
            ';' | '}' => {
                note(&types, &head, &mut lines);
                head.clear();
                if character == '}' {
                    types.pop();
                } else if let Some(last) = types.last_mut() {
                    last.has_constants = false;
                }
            }
            ',' if parentheses == 0 && types.last().is_some_and(|last| last.has_constants) => {
                note(&types, &head, &mut lines);
                head.clear();
            }
            _ => {
                parentheses = parentheses + u32::from(character == '(') - u32::from(character == ')');
                head.push(character);
            }
        }
    }
    lines
}

/// Returns the type that a head opens, if it is that of a type.
fn opened(types: &[Type], head: &str) -> Option<Type> {
    let head = plain(head);
    let words: Vec<&str> = head.split([' ', '(', '<']).collect();
    let place = words.iter().position(|word| ["class", "interface", "enum", "record"].contains(word))?;
    let outer = types.last();
    let is_public = outer.is_none_or(|outer| outer.is_public)
        && (words.contains(&"public") || outer.is_some_and(|outer| outer.is_interface));
    let [is_interface, has_constants] = ["interface", "enum"].map(|word| words[place] == word);
    Some(Type { name: words[place + 1].to_owned(), is_interface, has_constants, is_public })
}

/// Adds the line of a member, if it is one that others can use.
fn note(types: &[Type], head: &str, lines: &mut Vec<String>) {
    let (Some(last), head) = (types.last(), plain(head)) else { return };
    let is_open = if last.has_constants || last.is_interface {
        !head.starts_with("private ")
    } else {
        ["public ", "protected "].iter().any(|word| head.starts_with(word))
    };
    if last.is_public && is_open && !head.is_empty() {
        lines.push(format!("{} {head}", path(types)));
    }
}

fn path(types: &[Type]) -> String {
    types.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(".")
}

/// Returns a head in one line, without annotations that have no arguments.
fn plain(head: &str) -> String {
    let words = head.split_whitespace().filter(|word| !word.starts_with('@') || word.contains('('));
    words.collect::<Vec<_>>().join(" ").replace("( ", "(")
}

/// Takes `//` and `/* */` out, but not of texts in quotes; what begins and ends blocks is taken out of those.
fn without_comments(source: &str) -> String {
    let (mut code, mut rest) = (String::new(), source);
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            let is_quoted = ['"', '\''].contains(&first);
            let length = if is_quoted { quoted_bytes(rest, first) } else { first.len_utf8() };
            code.extend(rest[..length].chars().filter(|one| !(is_quoted && "{};".contains(*one))));
            length
        };
        rest = &rest[length..];
    }
    code
}

/// Returns how long the text in quotes at the start is.
fn quoted_bytes(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if character == quote && !is_escaped {
            return at + 1;
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    text.len()
}

#[test]
fn comments_and_blanks_of_an_interface_may_change() {
    let check = |other: &str, is_same: bool| {
        let first = "/// One.\npackage netserv:one@1.0.0;\ninterface a {\n  get: func(at: u32) -> string;\n}\n";
        assert_eq!(wit_line(first) == wit_line(other), is_same, "{other}");
    };
    check("package netserv:one@1.0.0;\n\n/* Two. */ interface a { // three\nget: func(at: u32) -> string; }", true);
    check("package netserv:one@1.0.0; interface a { get: func(at: u64) -> string; }", false);
    check("package netserv:one@1.0.1; interface a { get: func(at: u32) -> string; }", false);
    check("package netserv:one@1.0.0; interface a { get: func(at: u32) -> string; set: func(); }", false);
}

#[test]
fn members_are_what_bundles_can_use() {
    let source = r#"
        package org.netserv.block;
        import java.util.List;
        /** Says { nothing }. */
        @ProviderType
        public interface One {
            /** Most. */
            int MOST = 1 << 4; // ;
            enum Kind { /** A. */ A, B(1); Kind(int n) { this.n = n; } private final int n; public int n() { return n; } }
            record Pair(int a, String b) { public Pair { if (a > 0) { b = "}"; } } static int hidden() { return 0; } }
            @Override
            void close();
            default int two(String text,
                    int b) throws BlockException { return text.length() + b; }
            private static void three() { }
        }
        final class Hidden { public void none() { } }
    "#;
    let expected = [
        "public interface One",
        "One int MOST = 1 << 4",
        "One enum Kind",
        "One.Kind A",
        "One.Kind B(1)",
        "One.Kind public int n()",
        "One record Pair(int a, String b)",
        "One.Pair public Pair",
        "One void close()",
        "One default int two(String text, int b) throws BlockException",
    ];
    assert_eq!(members(source), expected);
    assert_eq!(members(&source.replace("Most.", "The most.")), expected);
    assert_ne!(members(&source.replace("void close", "int close")), expected);
}

#[test]
fn members_come_with_a_version() {
    let line = |text: &str| text.to_owned();
    let released = BTreeSet::from([line("java org.a One"), line("version org.a 1.0.0")]);
    let (more, version, other) =
        (line("java org.a One int more()"), line("version org.a 1.1.0"), line("java org.b Two"));
    assert_eq!(unraised(&released, &[&more]), BTreeSet::from([line("org.a")]));
    assert_eq!(unraised(&released, &[&more, &version]), BTreeSet::new());
    assert_eq!(unraised(&released, &[&other]), BTreeSet::new());
}
