// SPDX-License-Identifier: Apache-2.0
//! Latency through a router at half load: the microbenchmark of the 2011 paper.

use anyhow::{Context, Result, ensure};

use super::goals::Goal;
use super::ladder::Ladder;
use super::net::Sink;
use super::papers::NETSERV_2011_DELAY_US;
use super::pin::Placement;
use super::plot::Plot;
use super::programs::Programs;
use super::summary::{Figure, Row, Summary};
use super::trial::{self, Latency, Outcome, Pace};
use super::ways::{Nets, Way};
use super::{Measured, Plan, progress};

/// A percentile's name, and where it stands.
type Percentile = (&'static str, fn(&Latency) -> f64);

/// The ways that are compared.
pub const WAYS: [Way; 5] = [Way::Kernel, Way::AfxdpUnmatched, Way::AfxdpNull, Way::AfxdpMonitor, Way::AfxdpRealTime];
/// The share of packets that may be lost; a trial with more is repeated.
const LOSS_MAX: f64 = 0.01;
/// How often.
const REPEATS: usize = 3;
/// Size of the IPv4 packets, one of the ladder's.
pub const BYTES: u16 = 64;

/// Measures at a tenth and at half of the lowest of the ways' rates, so that all have the same load.
///
/// # Errors
/// The ladder has no rate of these packets, or a trial fails.
pub fn measure(plan: &Plan, programs: &Programs, nets: &Nets, ladder: &Ladder) -> Result<Measured> {
    let rates = WAYS.into_iter().filter_map(|way| ladder.rate(BYTES, way));
    let rate = rates.fold(f64::INFINITY, f64::min);
    ensure!(rate.is_finite(), "the ladder has no rate for latencies; measure it with --sizes {BYTES}");
    let light = at_load(plan, programs, nets, rate / 10.0)?;
    let half = at_load(plan, programs, nets, rate / 2.0)?;
    let mut plot = Plot::bars(
        "latency".to_owned(),
        format!("Median latency at half load ({:.0} kpps)", rate / 2000.0),
        "µs",
        ["this machine", "NetServ 2011: what keep-alive added"],
    );
    for (way, outcomes) in WAYS.iter().zip(&half) {
        let median: Vec<f64> = outcomes.iter().map(|outcome| outcome.latency_us.p50).collect();
        let spread = Summary::of(&median).map(|summary| [summary.median, summary.min, summary.max]);
        plot.bar(way.name(), spread, (*way == Way::AfxdpMonitor).then_some(NETSERV_2011_DELAY_US));
    }
    let figures = vec![
        figure(plan, "Latency at a tenth of the load", rate / 10.0, &light, None),
        figure(plan, "Latency at half load", rate / 2.0, &half, Some(Goal::AddedLatency)),
    ];
    Ok(Measured { figures, plots: vec![plot] })
}

/// What one load gave, for each way.
type Found = [Vec<Outcome>; WAYS.len()];

fn at_load(plan: &Plan, programs: &Programs, nets: &Nets, rate: f64) -> Result<Found> {
    let mut found = Found::default();
    for round in 0..plan.delay_rounds {
        for turn in 0..WAYS.len() {
            let way = WAYS[(turn + round) % WAYS.len()];
            let load = Pace { rate: Some(rate), seconds: plan.delay_seconds, timed: true, accounted: false };
            let net = nets.of(way).context("no such router")?;
            net.prepare(Placement::Split, Sink::Inside)?;
            let mut outcome = trial::run(net, programs, &way.traffic(BYTES, &nets.notify), &load)?;
            for _ in 0..REPEATS {
                if outcome.loss() < LOSS_MAX {
                    break;
                }
                outcome = trial::run(net, programs, &way.traffic(BYTES, &nets.notify), &load)?;
            }
            if outcome.loss() >= LOSS_MAX {
                progress(&format!("NOTE: {} lost {:.1} % at half load", way.name(), 100.0 * outcome.loss()));
            }
            found[(turn + round) % WAYS.len()].push(outcome);
        }
    }
    Ok(found)
}

fn added((module, kernel): (&Outcome, &Outcome)) -> f64 {
    module.latency_us.p50 - kernel.latency_us.p50
}

fn figure(plan: &Plan, name: &'static str, rate: f64, found: &Found, goal: Option<Goal>) -> Figure {
    let percentiles: [Percentile; 4] =
        [("50 %", |l| l.p50), ("90 %", |l| l.p90), ("99 %", |l| l.p99), ("99.9 %", |l| l.p999)];
    let mut rows = Vec::new();
    for (way, outcomes) in WAYS.iter().zip(found) {
        for (name, value) in percentiles {
            let values: Vec<f64> = outcomes.iter().map(|outcome| value(&outcome.latency_us)).collect();
            rows.push(Row::new(format!("{}, {name}", way.name()), "µs", &values));
        }
        let losses: Vec<f64> = outcomes.iter().map(|outcome| 100.0 * outcome.loss()).collect();
        rows.push(Row::new(format!("{}, lost or unseen", way.name()), "%", &losses));
    }
    let by = |place: usize| found[place].iter().zip(&found[0]).map(added).collect::<Vec<f64>>();
    let row = Row::new("added by net-monitor to the kernel, 50 %", "µs", &by(3));
    rows.push(row.note(format!("NetServ 2011: {NETSERV_2011_DELAY_US:.0} µs by keep-alive")));
    let row = Row::new("added by net-monitor in the real-time class, 50 %", "µs", &by(4));
    rows.push(Row { goal, ..row });
    let how = format!(
        "From the generator to where the sink's interface receives, {:.0} kpps (a share of the lowest PDR of 0.1 % \
         among these), single {BYTES}-byte packets at even distances, {} s each, in turn, {} rounds. Cores as above, but \
         that the sink counts where the packets leave. Steps of 0.1 µs.",
        rate / 1000.0,
        plan.delay_seconds,
        plan.delay_rounds
    );
    Figure { name, how, rows }
}
