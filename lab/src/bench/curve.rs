// SPDX-License-Identifier: Apache-2.0
//! What is delivered of what is offered, up to three times of what a way takes: with all of the router on one core, where the
//! generator on the other one can do that, and with equal cores as far as the generator gets.

use anyhow::{Context, Result};

use super::goals::Goal;
use super::ladder::Case;
use super::ladder_table;
use super::pin::Placement;
use super::plot::{Plot, Series};
use super::programs::Programs;
use super::search::{ONE, PDR, search};
use super::summary::{Figure, Row, Summary};
use super::trial::{self, Outcome, Pace};
use super::ways::{Nets, Way};
use super::{Measured, Plan, kilo, progress};

const BYTES: u16 = 64;
/// The ways that are compared, with all of the router on one core and with equal cores.
const CASES: [(Placement, &[Way]); 2] = [
    (Placement::OneCore, &[Way::Kernel, Way::AfxdpUnmatched, Way::AfxdpMonitor, Way::NfqueueMonitor]),
    (Placement::Split, &[Way::Steered, Way::AfxdpNull, Way::AfxdpMonitor]),
];
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

/// What a way delivers.
struct Curve {
    placement: Placement,
    way: Way,
    /// One for each of [`OFFERED`].
    points: Vec<Point>,
}

/// Measures the curve of each way.
///
/// # Errors
/// A way does not work.
pub fn measure(plan: &Plan, programs: &Programs) -> Result<Measured> {
    let wanted = |way: &&Way| plan.ways.is_empty() || plan.ways.contains(way);
    let cases: Vec<(Placement, Way)> = CASES
        .iter()
        .flat_map(|(placement, ways)| ways.iter().filter(wanted).map(move |way| (*placement, *way)))
        .collect();
    let ways: Vec<Way> = cases.iter().map(|(_, way)| *way).collect();
    let nets = Nets::up(programs, &ways)?;
    let mut curves = Vec::new();
    for (placement, way) in cases {
        let (net, traffic) = (nets.of(way).context("no such router")?, way.traffic(BYTES, &nets.notify));
        net.prepare(placement, way.sink(placement))?;
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
                    name(placement, way),
                    kilo(outcome.rate),
                    kilo(outcome.delivered())
                ));
            }
        }
        curves.push(Curve { placement, way, points });
    }
    let plots = CASES.map(|(placement, _)| plot(placement, &curves)).into_iter().flatten().collect();
    Ok(Measured { figures: vec![figure(plan, &curves)], plots })
}

fn name(placement: Placement, way: Way) -> String {
    ladder_table::name(Case { bytes: BYTES, placement, way })
}

impl Point {
    fn add(&mut self, outcome: &Outcome) {
        self.offered.push(outcome.rate);
        self.delivered.push(outcome.delivered());
        self.arrived.push(outcome.arrived());
        self.account = outcome.account.as_ref().map(super::account::Account::line).unwrap_or_default();
    }
}

fn figure(plan: &Plan, curves: &[Curve]) -> Figure {
    let mut rows = Vec::new();
    for Curve { placement, way, points } in curves {
        for (factor, point) in OFFERED.iter().zip(points) {
            let values: Vec<f64> = point.delivered.iter().copied().map(kilo).collect();
            let note = format!(
                "{:.0} kpps offered, {:.0} arrived; {}",
                kilo(median(&point.offered)),
                kilo(median(&point.arrived)),
                point.account
            );
            rows.push(
                Row::new(format!("{}, {factor:.2} of its PDR asked for", name(*placement, *way)), "kpps", &values)
                    .note(note),
            );
        }
    }
    for Curve { placement, way, points } in curves {
        let row = Row::new(format!("{}, at 3 × / its best", name(*placement, *way)), "ratio", &overload(points));
        let is_goal = (*placement, *way) == (Placement::OneCore, Way::AfxdpMonitor);
        rows.push(if is_goal { row.goal(Goal::Overload) } else { row });
    }
    let how = format!(
        "Packets of {BYTES} bytes, {} s each, {} rounds: all of the router on one core, generator and sink on the other; and equal \
         cores, where a generator that also carries the receiving yields less than it is asked for. Delivered is what arrived \
         and was seen by the module that had to. The PDR of 0.1 % of each way is found first.",
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

fn plot(placement: Placement, curves: &[Curve]) -> Option<Plot> {
    let line = |curve: &Curve| Series {
        name: curve.way.name().to_owned(),
        points: curve
            .points
            .iter()
            .map(|point| (kilo(median(&point.offered)), kilo(median(&point.delivered))))
            .collect(),
        is_paper: false,
    };
    let (file, cores) = match placement {
        Placement::OneCore => ("overload", "all of the router on one core"),
        Placement::Split => ("overload-equal-cores", "equal cores"),
    };
    let lines: Vec<Series> = curves.iter().filter(|curve| curve.placement == placement).map(line).collect();
    let title = format!("Offered and delivered, {cores}");
    (!lines.is_empty()).then(|| Plot::lines(file, title, "kpps offered", "kpps delivered", false, lines))
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
