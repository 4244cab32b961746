// SPDX-License-Identifier: Apache-2.0
//! What functions may take, and how that compares with what they take.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::callgrind::Counts;

/// What was counted, by section.
pub(crate) type Counted = BTreeMap<String, Counts>;

/// What is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Table {
    sections: BTreeMap<String, Section>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    /// How many per cent more than what is allowed are not worth a question.
    tolerance_percent: u64,
    /// Instructions of one operation.
    cases: Counts,
}

/// Per cent below what is allowed that call for a new number.
const CHEAPER_PERCENT: u64 = 10;
/// Tolerance of a section that is new.
const TOLERANCE_PERCENT: u64 = 3;
/// Instructions that nothing is worth, where a few per cent are less than that: the same source takes some more or fewer
/// in another directory.
const SLACK: u64 = 8;

const HEAD: &str = "\
# Instructions of one operation, as `./dev guards` counts them; `./dev guards --accept` writes them anew.
# Counted on x86_64 with the toolchain of rust-toolchain.toml and the valgrind of Debian 12.
# core is counted in an optimised program with an allocator of its own; the worker and the packet loop are in programs of tests, which are not optimised.

";

impl Table {
    /// Reads a table; one that is not there is empty.
    ///
    /// # Errors
    /// If it is not understood.
    pub(crate) fn read(path: &Path) -> Result<Table> {
        match std::fs::read_to_string(path) {
            Ok(text) => toml::from_str(&text).with_context(|| format!("reading {}", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Table::default()),
            Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
        }
    }

    /// Writes the table.
    ///
    /// # Errors
    /// If that fails.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = toml::to_string(self).context("a table as text")?;
        std::fs::write(path, format!("{HEAD}{text}")).with_context(|| format!("writing {}", path.display()))
    }

    /// Allows what was counted in the sections that were; tolerances stay.
    pub(crate) fn accept(&mut self, counted: Counted) {
        for (name, cases) in counted {
            let section = Section { tolerance_percent: TOLERANCE_PERCENT, cases: Counts::new() };
            self.sections.entry(name).or_insert(section).cases = cases;
        }
    }

    /// Compares what was counted with what is allowed, in the sections that were counted.
    pub(crate) fn compare(&self, counted: &Counted) -> Comparison {
        let mut rows = Vec::new();
        for (name, counts) in counted {
            let section = self.sections.get(name);
            let allowed = section.map(|section| &section.cases);
            let tolerance = section.map_or(TOLERANCE_PERCENT, |section| section.tolerance_percent);
            let mut cases: Vec<&String> = counts.keys().chain(allowed.into_iter().flat_map(Counts::keys)).collect();
            cases.sort();
            cases.dedup();
            rows.extend(cases.into_iter().map(|case| {
                let allowed = allowed.and_then(|cases| cases.get(case)).copied();
                Row::new(format!("{name} {case}"), allowed, counts.get(case).copied(), tolerance)
            }));
        }
        Comparison { rows }
    }
}

/// One line for each case.
pub(crate) struct Comparison {
    rows: Vec<Row>,
}

struct Row {
    case: String,
    allowed: Option<u64>,
    counted: Option<u64>,
    judgement: Judgement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    /// As allowed.
    Good,
    /// So much less than allowed that it should be held to that.
    Cheaper,
    /// More than allowed.
    Above,
    /// The table does not know the case.
    Unknown,
    /// Nothing was counted for a case of the table.
    Gone,
}

impl Row {
    fn new(case: String, allowed: Option<u64>, counted: Option<u64>, tolerance_percent: u64) -> Row {
        Row { case, allowed, counted, judgement: Judgement::of(allowed, counted, tolerance_percent) }
    }
}

impl Judgement {
    fn of(allowed: Option<u64>, counted: Option<u64>, tolerance_percent: u64) -> Judgement {
        let (Some(allowed), Some(counted)) = (allowed, counted) else {
            return if allowed.is_none() { Judgement::Unknown } else { Judgement::Gone };
        };
        if counted > allowed + (allowed * tolerance_percent / 100).max(SLACK) {
            Judgement::Above
        } else if counted + (allowed * CHEAPER_PERCENT / 100).max(SLACK) < allowed {
            Judgement::Cheaper
        } else {
            Judgement::Good
        }
    }

    fn fails(self) -> bool {
        match self {
            Judgement::Good | Judgement::Cheaper => false,
            Judgement::Above | Judgement::Unknown | Judgement::Gone => true,
        }
    }

    fn remark(self) -> &'static str {
        match self {
            Judgement::Good => "",
            Judgement::Cheaper => "cheaper: accept it, so that it stays so",
            Judgement::Above => "ABOVE what is allowed",
            Judgement::Unknown => "UNKNOWN to the table",
            Judgement::Gone => "GONE, but in the table",
        }
    }
}

impl Comparison {
    /// Returns whether nothing takes more than it may.
    pub(crate) fn holds(&self) -> bool {
        !self.rows.is_empty() && !self.rows.iter().any(|row| row.judgement.fails())
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(|row| row.case.len()).max().unwrap_or(0);
        writeln!(f, "{:width$} {:>9} {:>9} {:>9}", "instructions of one operation", "allowed", "counted", "differs")?;
        for Row { case, allowed, counted, judgement } in &self.rows {
            let number = |count: &Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
            let differs = allowed.zip(*counted).map_or("-".to_owned(), |(allowed, counted)| {
                let per_mille = 1000 * (i128::from(counted) - i128::from(allowed)) / i128::from(allowed.max(1));
                format!("{}{}.{} %", if per_mille < 0 { '-' } else { '+' }, per_mille.abs() / 10, per_mille.abs() % 10)
            });
            let line = format!("{case:width$} {:>9} {:>9} {differs:>9}", number(allowed), number(counted));
            writeln!(f, "{line} {}", judgement.remark())?;
        }
        if !self.holds() {
            writeln!(f, "\nIf that is as it should be: `./dev guards --accept`, and commit lab/guards/counts.toml")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_allowed_fails_and_less_is_told() {
        let check = |allowed, counted, expected| assert_eq!(Judgement::of(allowed, counted, 3), expected);
        check(Some(1000), Some(1030), Judgement::Good);
        check(Some(1000), Some(1031), Judgement::Above);
        check(Some(1000), Some(900), Judgement::Good);
        check(Some(1000), Some(899), Judgement::Cheaper);
        check(Some(20), Some(28), Judgement::Good);
        check(Some(20), Some(29), Judgement::Above);
        check(None, Some(1), Judgement::Unknown);
        check(Some(1), None, Judgement::Gone);
        let failing = [Judgement::Above, Judgement::Unknown, Judgement::Gone].map(Judgement::fails);
        assert_eq!((failing, Judgement::Good.fails(), Judgement::Cheaper.fails()), ([true; 3], false, false));
    }

    #[test]
    fn what_was_accepted_holds_until_a_case_takes_more() {
        let counted = |count| Counted::from([("core".to_owned(), Counts::from([("parse".to_owned(), count)]))]);
        let mut table = Table::default();
        assert!(!table.compare(&counted(100)).holds(), "the table knows nothing yet");
        table.accept(counted(100));
        assert!(table.compare(&counted(100)).holds());
        let comparison = table.compare(&counted(120));
        assert!(!comparison.holds());
        assert!(comparison.to_string().contains("core parse"), "{comparison}");
        assert!(comparison.to_string().contains("+20.0 % ABOVE"), "{comparison}");
        assert!(!table.compare(&Counted::new()).holds(), "nothing counted is nothing held");
    }

    #[test]
    fn tables_come_back_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts.toml");
        let mut table = Table::read(&path).unwrap();
        table.accept(Counted::from([("core".to_owned(), Counts::from([("ip/parse udp".to_owned(), 61)]))]));
        table.write(&path).unwrap();
        assert_eq!(Table::read(&path).unwrap(), table);
        std::fs::write(&path, "[core]\ntolerance_percent = 3\ncasses = {}\n").unwrap();
        assert!(Table::read(&path).is_err());
    }
}
