// SPDX-License-Identifier: Apache-2.0
//! What became of the goals.

use std::fmt;

use super::Part;
use super::goals::{Bound, Goal};
use super::summary::{Figure, Row};

/// What became of a goal.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// All its measurements keep the bound; the one that is nearest to it.
    Met(f64),
    /// One does not; the one that is worst.
    Missed(f64),
    /// There is no measurement, although its part was measured.
    NotMeasured,
}

/// A goal, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The goal.
    pub goal: Goal,
    /// What became of it.
    pub outcome: Outcome,
}

impl Verdict {
    /// Returns whether the goal is met.
    pub fn is_met(&self) -> bool {
        matches!(self.outcome, Outcome::Met(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outcome {
            Outcome::Met(value) => write!(f, "met          {}: {value:.3}", self.goal.text()),
            Outcome::Missed(value) => write!(f, "NOT REACHED  {}: {value:.3}", self.goal.text()),
            Outcome::NotMeasured => write!(f, "NOT MEASURED {}", self.goal.text()),
        }
    }
}

/// Compares what was measured with the goals: those of the parts that were measured, and those that others measured too.
pub fn verdicts(parts: &[Part], figures: &[Figure]) -> Vec<Verdict> {
    let verdicts = Goal::ALL.into_iter().map(|goal| Verdict { goal, outcome: outcome(goal, figures) });
    verdicts.filter(|verdict| parts.contains(&verdict.goal.part()) || verdict.outcome != Outcome::NotMeasured).collect()
}

fn outcome(goal: Goal, figures: &[Figure]) -> Outcome {
    let rows = figures.iter().flat_map(|figure| &figure.rows).filter(|row: &&Row| row.goal == Some(goal));
    let mut medians: Vec<f64> = rows.map(|row| row.summary.median).collect();
    medians.sort_by(f64::total_cmp);
    let worst = match goal.bound() {
        Bound::AtLeast(_) => medians.first(),
        Bound::AtMost(_) => medians.last(),
    };
    match worst {
        None => Outcome::NotMeasured,
        Some(value) if medians.iter().all(|median| goal.bound().is_met(*median)) => Outcome::Met(*value),
        Some(value) => Outcome::Missed(*value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(rows: Vec<Row>) -> Figure {
        Figure { name: "by hand", how: String::new(), rows }
    }

    fn check(rows: Vec<Row>, goal: Goal, expected: &Outcome) {
        let verdicts = verdicts(&[goal.part()], &[figure(Vec::new()), figure(rows)]);
        let found = verdicts.iter().find(|verdict| verdict.goal == goal).unwrap();
        assert_eq!(found.outcome, *expected);
        assert_eq!(found.is_met(), matches!(expected, Outcome::Met(_)));
    }

    #[test]
    fn goals_are_met_missed_or_not_measured() {
        let row = |goal, values: &[f64]| Row::new("x", "ms", values).goal(goal);
        // The median counts: 10 is the bound.
        check(vec![row(Goal::SetupCached, &[1.0, 10.0, 90.0])], Goal::SetupCached, &Outcome::Met(10.0));
        check(vec![row(Goal::SetupCached, &[1.0, 10.1, 90.0])], Goal::SetupCached, &Outcome::Missed(10.1));
        check(vec![row(Goal::Handshakes, &[100_000.0])], Goal::Handshakes, &Outcome::Met(100_000.0));
        check(vec![row(Goal::Handshakes, &[99_999.0])], Goal::Handshakes, &Outcome::Missed(99_999.0));
        // What is no number keeps no bound.
        let none = row(Goal::Handshakes, &[f64::NAN]);
        check(vec![row(Goal::Handshakes, &[130_000.0]), none], Goal::Handshakes, &Outcome::Missed(130_000.0));
    }

    #[test]
    fn every_row_of_a_goal_counts() {
        let row = |value| Row::new("x", "ratio", &[value]).goal(Goal::InterceptedFlow);
        check(vec![row(0.9), row(0.7)], Goal::InterceptedFlow, &Outcome::Met(0.7));
        check(vec![row(0.9), row(0.69)], Goal::InterceptedFlow, &Outcome::Missed(0.69));
        let memory = |value| Row::new("x", "MB", &[value]).goal(Goal::ContainerMemory);
        check(vec![memory(5.0), memory(6.1)], Goal::ContainerMemory, &Outcome::Missed(6.1));
    }

    #[test]
    fn a_part_without_its_rows_is_told_and_other_parts_are_not_asked_for() {
        let other = Row::new("x", "ms", &[1.0]);
        check(vec![other.clone()], Goal::Recovery, &Outcome::NotMeasured);
        let told = verdicts(&[Part::Setup], &[figure(vec![other])]);
        let goals: Vec<Goal> = told.iter().map(|verdict| verdict.goal).collect();
        assert_eq!(goals, [Goal::SetupCached, Goal::SetupFetched]);
        assert!(told.iter().all(|verdict| !verdict.is_met()));
        // What another part measured of it counts.
        let elsewhere = Row::new("x", "MB", &[6.1]).goal(Goal::ContainerMemory);
        let told = verdicts(&[Part::Many], &[figure(vec![elsewhere])]);
        assert!(told.iter().any(|verdict| verdict.outcome == Outcome::Missed(6.1)), "{told:?}");
    }
}
