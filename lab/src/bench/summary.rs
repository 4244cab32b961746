// SPDX-License-Identifier: Apache-2.0
//! Figures as values: what was measured, its spread, and what it was to reach.

use std::fmt::Write as _;

use serde::Serialize;

use super::goals::{Bound, Goal};

/// Several measurements of one thing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How many measurements there are.
    pub count: usize,
    /// The middle one.
    pub median: f64,
    /// The lowest one.
    pub min: f64,
    /// A quarter is not above it.
    pub quartile_low: f64,
    /// A quarter is not below it.
    pub quartile_high: f64,
    /// The highest one.
    pub max: f64,
}

impl Summary {
    /// Summarises measurements; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Summary> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (first, last) = (*sorted.first()?, *sorted.last()?);
        Some(Summary {
            count: sorted.len(),
            median: quantile(&sorted, 2),
            min: first,
            quartile_low: quantile(&sorted, 1),
            quartile_high: quantile(&sorted, 3),
            max: last,
        })
    }
}

/// One line of a figure.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was measured.
    pub what: String,
    /// In what.
    pub unit: &'static str,
    /// The measurements.
    #[serde(flatten)]
    pub summary: Summary,
    /// What else is to be said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// More for programs: of a search the bounds of its goals, and where the packets of its trials went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
    /// What it was to reach, if something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
}

impl Row {
    /// Returns a row of measurements.
    ///
    /// # Panics
    /// If there are none: then the figure has failed already.
    pub fn new(what: impl Into<String>, unit: &'static str, values: &[f64]) -> Row {
        let summary = Summary::of(values).expect("a figure has measured something");
        Row { what: what.into(), unit, summary, note: String::new(), details: None, goal: None }
    }

    /// Adds what is to be reached.
    pub fn goal(mut self, goal: Goal) -> Row {
        self.goal = Some(goal);
        self
    }

    /// Adds a remark.
    pub fn note(mut self, note: impl Into<String>) -> Row {
        self.note = note.into();
        self
    }

    /// Returns whether the goal is reached; `None` without a goal.
    pub fn is_met(&self) -> Option<bool> {
        self.goal.map(|goal| goal.bound().is_met(self.summary.median))
    }
}

/// Something that was measured, with how.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// What it is about.
    pub name: &'static str,
    /// How it was measured, and what saturates.
    pub how: String,
    /// The measurements.
    pub rows: Vec<Row>,
}

impl Figure {
    /// Returns the figure as a table for people.
    pub fn table(&self) -> String {
        let mut text = format!("\n── {}\n", self.name);
        for line in wrap(&self.how, 110) {
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(text, "   {line}");
        }
        let width = self.rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0);
        let _ = writeln!(text, "   {:width$}  {:>9}  {:>21}  unit", "", "median", "(min .. max)");
        for row in &self.rows {
            let spread = format!("({} .. {})", short(row.summary.min), short(row.summary.max));
            let _ =
                write!(text, "   {:width$}  {:>9}  {spread:>21}  {}", row.what, short(row.summary.median), row.unit);
            let _ = writeln!(text, "{}", verdict(row));
            for line in row.note.lines() {
                let _ = writeln!(text, "      {line}");
            }
        }
        text
    }
}

fn verdict(row: &Row) -> String {
    let Some(goal) = row.goal else { return String::new() };
    let sign = match goal.bound() {
        Bound::AtLeast(bound) => format!("at least {}", short(bound)),
        Bound::AtMost(bound) => format!("at most {}", short(bound)),
    };
    format!("  goal {sign}: {}", if row.is_met() == Some(true) { "reached" } else { "NOT reached" })
}

/// Returns a number with about three digits that matter.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Returns the value below which so many quarters lie, between neighbours in proportion.
fn quantile(sorted: &[f64], quarters: usize) -> f64 {
    let scaled = (sorted.len() - 1) * quarters;
    let (at, rest) = (scaled / 4, scaled % 4);
    let next = sorted[(at + 1).min(sorted.len() - 1)];
    let share = [0.0, 0.25, 0.5, 0.75][rest];
    sorted[at] + (next - sorted[at]) * share
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_quartiles_lie_between_neighbours() {
        let check = |values: &[f64], expected: [f64; 5]| {
            let s = Summary::of(values).unwrap();
            assert_eq!([s.min, s.quartile_low, s.median, s.quartile_high, s.max], expected);
        };
        check(&[7.0], [7.0; 5]);
        check(&[4.0, 2.0], [2.0, 2.5, 3.0, 3.5, 4.0]);
        check(&[5.0, 1.0, 4.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn goals_are_of_the_median() {
        let row = |middle| Row::new("x", "ms", &[1.0, middle, 90.0]).goal(Goal::SetupCached);
        assert_eq!(row(10.0).is_met(), Some(true));
        assert_eq!(row(10.1).is_met(), Some(false));
        assert_eq!(Row::new("x", "ms", &[1.0]).is_met(), None);
        let figure = Figure { name: "f", how: "by hand".into(), rows: vec![row(10.1).note("odd")] };
        let table = figure.table();
        assert!(table.contains("NOT reached") && table.contains("odd") && table.contains("(1.00 .. 90.0)"), "{table}");
    }
}
