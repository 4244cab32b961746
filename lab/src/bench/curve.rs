// SPDX-License-Identifier: Apache-2.0
//! What is delivered of what is offered, up to far beyond what a way takes: with all of the router on one core, where the
//! generator on the other one can do that, and with equal cores as far as the generator gets. The best of it says what a way
//! yields also on a machine whose pauses have every load lose some.

use anyhow::{Context, Result};

use super::goals::Goal;
use super::ladder::Case;
use super::ladder_table;
use super::pin::Placement;
use super::plot::{Plot, Series};
use super::programs::Programs;
use super::summary::{Figure, Row, Summary};
use super::trial::{self, Outcome, Pace};
use super::ways::{Nets, Way};
use super::{Measured, Plan, kilo, progress};

const BYTES: u16 = 64;
/// How many times its best has to be offered for an overload.
const OVERLOAD: f64 = 3.0;
/// What is compared: with all of the router on one core, and with equal cores, what is offered in packets per second, and the
/// ways. The first of each is the kernel's.
const CASES: [(Placement, [f64; 8], [Way; 6]); 2] = [
    (
        Placement::OneCore,
        [100e3, 200e3, 300e3, 400e3, 500e3, 700e3, 1000e3, 1500e3],
        [Way::Kernel, Way::NfqueueNull, Way::NfqueueMonitor, Way::AfxdpNull, Way::AfxdpMonitor, Way::AfxdpUnmatched],
    ),
    (
        Placement::Split,
        [200e3, 300e3, 400e3, 500e3, 600e3, 800e3, 1000e3, 1200e3],
        [Way::Steered, Way::NfqueueNull, Way::NfqueueMonitor, Way::AfxdpNull, Way::AfxdpMonitor, Way::AfxdpRealTime],
    ),
];

/// What a way delivered at one offered load, one value per round, in packets per second.
#[derive(Clone, Debug, Default)]
struct Point {
    asked: f64,
    offered: Vec<f64>,
    delivered: Vec<f64>,
    arrived: Vec<f64>,
    account: String,
}

/// What a way delivers.
struct Curve {
    placement: Placement,
    way: Way,
    /// One for each load that is offered.
    points: Vec<Point>,
}

/// Measures the curve of each way, the ways in turn.
///
/// # Errors
/// A way does not work.
pub fn measure(plan: &Plan, programs: &Programs) -> Result<Measured> {
    let mut curves = Vec::new();
    for (placement, loads, ways) in CASES {
        let points = loads.map(|asked| Point { asked, ..Point::default() });
        let wanted = ways.into_iter().filter(|way| plan.ways.is_empty() || plan.ways.contains(way));
        curves.extend(wanted.map(|way| Curve { placement, way, points: points.to_vec() }));
    }
    let ways: Vec<Way> = curves.iter().map(|curve| curve.way).collect();
    let nets = Nets::up(programs, &ways)?;
    for _ in 0..plan.curve_rounds {
        for Curve { placement, way, points } in &mut curves {
            let (net, traffic) = (nets.of(*way).context("no such router")?, way.traffic(BYTES, &nets.notify));
            net.prepare(*placement, way.sink(*placement))?;
            for point in points {
                let pace = Pace { rate: Some(point.asked), seconds: plan.curve_seconds, timed: false, accounted: true };
                let outcome = trial::run(net, programs, &traffic, &pace).with_context(|| way.name())?;
                point.add(&outcome);
                progress(&format!(
                    "{}: {:.0} kpps offered, {:.0} delivered",
                    name(*placement, *way),
                    kilo(outcome.rate),
                    kilo(outcome.delivered())
                ));
            }
        }
    }
    let plots = CASES.map(|(placement, ..)| plot(placement, &curves)).into_iter().flatten().collect();
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
        for point in points {
            let values: Vec<f64> = point.delivered.iter().copied().map(kilo).collect();
            let note = format!("{:.0} arrived; {}", kilo(median(&point.arrived)), point.account);
            let offered = kilo(median(&point.offered));
            rows.push(
                Row::new(format!("{}, {offered:.0} offered", name(*placement, *way)), "kpps", &values).note(note),
            );
        }
    }
    for Curve { placement, way, points } in curves {
        let best: Vec<f64> = best(points).into_iter().map(kilo).collect();
        rows.push(Row::new(format!("{}, best", name(*placement, *way)), "kpps", &best));
    }
    for (placement, _, ways) in CASES {
        let of = |way| curves.iter().find(|curve| curve.placement == placement && curve.way == way);
        let below = [(ways[0], &ways[1..]), (Way::NfqueueNull, &[Way::NfqueueMonitor])];
        for (base, ways) in below {
            for way in ways {
                let (Some(above), Some(below)) = (of(*way), of(base)) else { continue };
                let what = format!("{} / {}, best of each", name(placement, *way), base.name());
                rows.push(Row::new(what, "ratio", &ratios(&best(&above.points), &best(&below.points))));
            }
        }
    }
    for Curve { placement, way, points } in curves {
        let row = Row::new(format!("{}, at most / its best", name(*placement, *way)), "ratio", &overload(points));
        let offered = points.last().map_or(0.0, |point| median(&point.offered));
        let times = offered / median(&best(points)).max(1.0);
        let is_goal = (*placement, *way) == (Placement::OneCore, Way::AfxdpMonitor) && times >= OVERLOAD;
        let row = row.note(format!("{times:.1} times its best is offered"));
        rows.push(if is_goal { row.goal(Goal::Overload) } else { row });
    }
    let how = format!(
        "Packets of {BYTES} bytes, {} s each, {} rounds, the ways in turn: all of the router on one core, generator and sink on \
         the other; and equal cores, where a generator that also carries the receiving yields less than it is asked for. Delivered \
         is what arrived and was seen by the module that had to. Ratios are within a round.",
        plan.curve_seconds, plan.curve_rounds
    );
    Figure { name: "Offered and delivered", how, rows }
}

/// Returns the most that was delivered, in each round.
fn best(points: &[Point]) -> Vec<f64> {
    let rounds = points.first().map_or(0, |point| point.delivered.len());
    let best = |round| points.iter().filter_map(|point| point.delivered.get(round)).copied().fold(0.0, f64::max);
    (0..rounds).map(best).collect()
}

/// Returns what is delivered at the highest load as a share of the best, in each round.
fn overload(points: &[Point]) -> Vec<f64> {
    points.last().map_or_else(Vec::new, |last| ratios(&last.delivered, &best(points)))
}

fn ratios(above: &[f64], below: &[f64]) -> Vec<f64> {
    above.iter().zip(below).map(|(above, below)| above / below.max(1.0)).collect()
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
