// SPDX-License-Identifier: Apache-2.0
//! What is delivered of what is offered, up to three times of what a way takes, with all of the router on one core: the
//! generator on the other one can do that.

use anyhow::{Context, Result};

use super::goals::Goal;
use super::pin::Placement;
use super::plot::{Plot, Series};
use super::programs::Programs;
use super::search::{ONE, PDR, search};
use super::summary::{Figure, Row, Summary};
use super::trial::{self, Outcome, Pace};
use super::ways::{Nets, Way};
use super::{Measured, Plan, kilo, progress};

const BYTES: u16 = 64;
/// The ways that are compared.
const WAYS: [Way; 4] = [Way::Kernel, Way::AfxdpUnmatched, Way::AfxdpMonitor, Way::NfqueueMonitor];
/// What is offered, in PDRs of the way.
const OFFERED: [f64; 8] = [0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0];

/// What a way delivered at one offered load, one value per round, in packets per second.
#[derive(Clone, Debug, Default)]
struct Point {
    offered: Vec<f64>,
    delivered: Vec<f64>,
    arrived: Vec<f64>,
    account: String,
}

/// Measures the curve of each way.
///
/// # Errors
/// A way does not work.
pub fn measure(plan: &Plan, programs: &Programs) -> Result<Measured> {
    let nets = Nets::up(programs, &WAYS)?;
    let mut curves = Vec::new();
    for way in WAYS {
        let (net, traffic) = (nets.of(way).context("no such router")?, way.traffic(BYTES, &nets.notify));
        net.prepare(Placement::OneCore, way.sink(Placement::OneCore))?;
        let mut run = |pace: &Pace| trial::run(net, programs, &traffic, pace);
        let found = search(plan.search, &ONE, None, &mut run).with_context(|| way.name())?;
        let base = found.rate(PDR);
        let mut points = vec![Point::default(); OFFERED.len()];
        for _ in 0..plan.curve_rounds {
            for (factor, point) in OFFERED.into_iter().zip(&mut points) {
                let pace =
                    Pace { rate: Some(base * factor), seconds: plan.curve_seconds, timed: false, accounted: true };
                let outcome = run(&pace)?;
                point.add(&outcome);
                progress(&format!(
                    "{}: {:.0} kpps offered, {:.0} delivered",
                    way.name(),
                    kilo(outcome.rate),
                    kilo(outcome.delivered())
                ));
            }
        }
        curves.push((way, base, points));
    }
    Ok(Measured { figures: vec![figure(plan, &curves)], plots: vec![plot(&curves)] })
}

impl Point {
    fn add(&mut self, outcome: &Outcome) {
        self.offered.push(outcome.rate);
        self.delivered.push(outcome.delivered());
        self.arrived.push(outcome.arrived());
        self.account = outcome.account.as_ref().map(super::account::Account::line).unwrap_or_default();
    }
}

fn figure(plan: &Plan, curves: &[(Way, f64, Vec<Point>)]) -> Figure {
    let mut rows = Vec::new();
    for (way, _, points) in curves {
        for (factor, point) in OFFERED.iter().zip(points) {
            let values: Vec<f64> = point.delivered.iter().copied().map(kilo).collect();
            let note = format!(
                "{:.0} kpps offered, {:.0} arrived; {}",
                kilo(median(&point.offered)),
                kilo(median(&point.arrived)),
                point.account
            );
            rows.push(Row::new(format!("{}, {factor:.2} of its PDR offered", way.name()), "kpps", &values).note(note));
        }
    }
    for (way, _, points) in curves {
        let row = Row::new(format!("{}, at 3 × / its best", way.name()), "ratio", &overload(points));
        rows.push(if *way == Way::AfxdpMonitor { row.goal(Goal::Overload) } else { row });
    }
    let how = format!(
        "Packets of {BYTES} bytes, all of the router on one core, generator and sink on the other, {} s each, {} rounds. \
         Delivered is what arrived and was seen by the module that had to. The PDR of 0.1 % of each way is found first.",
        plan.curve_seconds, plan.curve_rounds
    );
    Figure { name: "Offered and delivered", how, rows }
}

/// Returns what is delivered at the highest load as a share of the best, in each round.
fn overload(points: &[Point]) -> Vec<f64> {
    let Some(last) = points.last() else { return Vec::new() };
    let best = |round: usize| points.iter().filter_map(|point| point.delivered.get(round)).copied().fold(0.0, f64::max);
    last.delivered.iter().enumerate().map(|(round, delivered)| delivered / best(round).max(1.0)).collect()
}

fn plot(curves: &[(Way, f64, Vec<Point>)]) -> Plot {
    let line = |(way, _, points): &(Way, f64, Vec<Point>)| Series {
        name: way.name().to_owned(),
        points: points.iter().map(|point| (kilo(median(&point.offered)), kilo(median(&point.delivered)))).collect(),
        is_paper: false,
    };
    let title = "Offered and delivered, all of the router on one core".to_owned();
    Plot::lines("overload", title, "kpps offered", "kpps delivered", false, curves.iter().map(line).collect())
}

fn median(values: &[f64]) -> f64 {
    Summary::of(values).map_or(0.0, |summary| summary.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overload_is_compared_with_the_best_of_the_round() {
        let point = |delivered: &[f64]| Point { delivered: delivered.to_vec(), ..Point::default() };
        let points = [point(&[100.0, 90.0]), point(&[200.0, 180.0]), point(&[100.0, 171.0])];
        assert_eq!(overload(&points), [0.5, 0.95]);
        assert!(overload(&[]).is_empty());
    }
}
