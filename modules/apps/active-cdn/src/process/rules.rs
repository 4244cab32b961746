// SPDX-License-Identifier: Apache-2.0
//! The provider's rules: what is made of which paths.

use netserv_server_sdk::properties;

use super::limits::{PATTERN_BYTES_MAX, RULES_MAX, WIDTH_MAX, WIDTH_MIN, WIDTHS_MAX};
use super::part::Part;

/// Returns whether there are rules.
pub fn is_wanted() -> bool {
    properties::get("process").is_some_and(|rules| !rules.trim().is_empty())
}

/// Returns what is made for a request, and the target of what it is made of.
pub fn plan(method: &str, target: &str) -> Option<(String, Plan)> {
    if !matches!(method, "GET" | "HEAD") || !is_wanted() {
        return None;
    }
    rules().ok()?.plan(target)
}

/// Checks the properties `process` and `widths`.
///
/// # Errors
/// What is wrong, and with which rule.
pub fn check() -> Result<(), String> {
    rules().map(drop)
}

/// What is to be made of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What it is made into.
    pub task: Task,
    /// Whether a text is laid over it.
    pub overlay: bool,
}

/// What a response is made into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// The same, but for what is laid over it.
    Same,
    /// A picture of this width.
    Width(u32),
    /// A part of a stream in two qualities.
    Hls(Part),
}

/// The rules of a provider.
#[derive(Debug, PartialEq, Eq)]
pub struct Rules {
    rules: Vec<Rule>,
    widths: Vec<u32>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Rule {
    pattern: String,
    overlay: bool,
    resize: bool,
    hls: bool,
}

impl Rules {
    /// Reads rules, such as `/videos/*.mp4 overlay hls; /images/* resize`, and widths with blanks between them.
    ///
    /// # Errors
    /// What is wrong, and with which rule.
    pub fn read(process: &str, widths: &str) -> Result<Rules, String> {
        let texts = process.split([';', '\n']).map(str::trim).filter(|text| !text.is_empty());
        let rules = texts.map(Rule::read).collect::<Result<Vec<_>, _>>()?;
        if rules.len() > RULES_MAX {
            return Err(format!("`process` has {} rules, over {RULES_MAX}", rules.len()));
        }
        let width = |text: &str| {
            let width = text.parse().ok().filter(|width| (WIDTH_MIN..=WIDTH_MAX).contains(width));
            width.ok_or_else(|| format!("`widths`: `{text}` is no number from {WIDTH_MIN} to {WIDTH_MAX}"))
        };
        let widths = widths.split_whitespace().map(width).collect::<Result<Vec<u32>, _>>()?;
        if widths.len() > WIDTHS_MAX {
            return Err(format!("`widths` has {} numbers, over {WIDTHS_MAX}", widths.len()));
        }
        if widths.is_empty() && rules.iter().any(|rule| rule.resize) {
            return Err("`widths` has none for `resize`".to_owned());
        }
        Ok(Rules { rules, widths })
    }

    /// Returns what is made for a target, and the target of what it is made of.
    pub fn plan(&self, target: &str) -> Option<(String, Plan)> {
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        if query.is_none()
            && let Some((clip, name)) = path.rsplit_once('/')
            && let Some(part) = Part::read(name)
            && let Some(rule) = self.rule(clip).filter(|rule| rule.hls)
        {
            return Some((clip.to_owned(), Plan { task: Task::Hls(part), overlay: rule.overlay }));
        }
        let rule = self.rule(path)?;
        if rule.resize
            && let Some((width, rest)) = query.and_then(wanted_width)
        {
            let source = if rest.is_empty() { path.to_owned() } else { format!("{path}?{rest}") };
            return Some((source, Plan { task: Task::Width(self.width(width)?), overlay: rule.overlay }));
        }
        rule.overlay.then(|| (target.to_owned(), Plan { task: Task::Same, overlay: true }))
    }

    /// Returns the first rule for a path.
    fn rule(&self, path: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| fits(&rule.pattern, path))
    }

    /// Returns the least width that is not below a wanted one, or the largest.
    fn width(&self, wanted: u32) -> Option<u32> {
        let all = || self.widths.iter().copied();
        all().filter(|width| *width >= wanted).min().or_else(|| all().max())
    }
}

impl Rule {
    fn read(text: &str) -> Result<Rule, String> {
        let mut words = text.split_whitespace();
        let pattern = words.next().unwrap_or_default();
        if !pattern.starts_with(['/', '*']) || pattern.len() > PATTERN_BYTES_MAX {
            return Err(format!("`process`: `{text}` does not begin with a path of at most {PATTERN_BYTES_MAX} bytes"));
        }
        let mut rule = Rule { pattern: pattern.to_owned(), ..Rule::default() };
        for word in words {
            match word {
                "overlay" => rule.overlay = true,
                "resize" => rule.resize = true,
                "hls" => rule.hls = true,
                _ => return Err(format!("`process`: `{text}`: `{word}` is none of `overlay`, `resize` and `hls`")),
            }
        }
        if !(rule.overlay || rule.resize || rule.hls) {
            return Err(format!("`process`: `{text}` does not say what is made: `overlay`, `resize` or `hls`"));
        }
        Ok(rule)
    }
}

fn rules() -> Result<Rules, String> {
    let property = |name: &str| properties::get(name).unwrap_or_default();
    Rules::read(&property("process"), &property("widths"))
}

/// Returns whether a path fits a pattern, in which `*` is any text.
fn fits(pattern: &str, path: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = path.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    true
}

/// Returns the width that a query asks for, and the rest of the query.
fn wanted_width(query: &str) -> Option<(u32, String)> {
    let (widths, rest): (Vec<&str>, Vec<&str>) = query.split('&').partition(|pair| pair.starts_with("w="));
    let [width] = widths[..] else { return None };
    let digits = width.strip_prefix("w=").filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    let width = if digits.len() > 9 { u32::MAX } else { digits.parse().ok()? };
    Some((width, rest.join("&")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(process: &str) -> Rules {
        Rules::read(process, "320 160 640 320").unwrap()
    }

    fn plan(task: Task, overlay: bool) -> Plan {
        Plan { task, overlay }
    }

    #[test]
    fn the_first_rule_that_fits_says_what_is_made() {
        let rules = rules("/videos/*.mp4 overlay hls; /images/raw/* hls\n/images/* resize");
        let check = |target: &str, expected: Option<(&str, Plan)>| {
            assert_eq!(rules.plan(target), expected.map(|(source, plan)| (source.to_owned(), plan)), "{target}");
        };
        check("/videos/a.mp4", Some(("/videos/a.mp4", plan(Task::Same, true))));
        check("/videos/a.mp4?t=1", Some(("/videos/a.mp4?t=1", plan(Task::Same, true))));
        check("/videos/a.mp4/hls.m3u8", Some(("/videos/a.mp4", plan(Task::Hls(Part::Master), true))));
        check("/videos/a.mp4/hls.m3u8?x", None);
        check("/videos/a.mp4/other", None);
        check("/images/a.jpg", None);
        check("/images/raw/a.jpg?w=1", None);
        for (query, source, width) in [
            ("w=160", "", 160),
            ("w=161", "", 320),
            ("w=0", "", 160),
            ("w=99999999999999999999", "", 640),
            ("a=1&w=640&b", "?a=1&b", 640),
        ] {
            let source = format!("/images/a.jpg{source}");
            check(&format!("/images/a.jpg?{query}"), Some((&source, plan(Task::Width(width), false))));
        }
        for query in ["", "w", "w=", "w=x", "w=-1", "w=1&w=2", "W=1", "ww=1"] {
            check(&format!("/images/a.jpg?{query}"), None);
        }
    }

    #[test]
    fn patterns_fit_whole_paths() {
        for (pattern, path, expected) in [
            ("/a", "/a", true),
            ("/a", "/ab", false),
            ("/a*", "/ab/c", true),
            ("*", "/", true),
            ("*.jpg", "/a/b.jpg", true),
            ("*.jpg", "/a.jpg/b", false),
            ("/a*b*c", "/axbxbxc", true),
            ("/a*b*c", "/axc", false),
            ("/a*a", "/a", false),
            ("/**b", "/b", true),
        ] {
            assert_eq!(fits(pattern, path), expected, "{pattern} {path}");
        }
        // No pattern takes longer than its length times the path's.
        let (pattern, path) = (format!("/{}b", "*a".repeat(100)), format!("/{}", "a".repeat(1000)));
        assert!(!fits(&pattern, &path));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let long = format!("/{} hls", "x".repeat(PATTERN_BYTES_MAX));
        let many = "/a hls;".repeat(RULES_MAX + 1);
        let widths: Vec<String> = (0..=WIDTHS_MAX).map(|at| (100 + at).to_string()).collect();
        for (process, widths, named) in [
            ("/a hls; /b blur", "1000", "`/b blur`: `blur` is none of"),
            ("/b", "1000", "`/b` does not say"),
            ("images/* resize", "1000", "`images/* resize` does not begin"),
            (&long, "1000", "does not begin"),
            (&many, "1000", "17 rules"),
            ("/a resize", "", "has none"),
            ("", "16 15", "`15` is no number"),
            ("", "3841", "`3841`"),
            ("", "wide", "`wide`"),
            ("", &widths.join(" "), "9 numbers"),
        ] {
            let why = Rules::read(process, widths).unwrap_err();
            assert!(why.contains(named), "{why}");
        }
        assert_eq!(Rules::read(" ;\n; ", ""), Ok(Rules { rules: vec![], widths: vec![] }));
    }
}
