// SPDX-License-Identifier: Apache-2.0
//! The ladder: the highest loads that each way through a router takes, and what a packet costs there.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};

use super::pauses::Pauses;
use super::pin::Placement;
use super::programs::Programs;
use super::search::{ALL, Found, LossGoal, PDR, Search, search};
use super::summary::Summary;
use super::trial::{self, Pace};
use super::ways::{Nets, Way};
use super::{Measured, Plan, kilo, ladder_table, progress};

/// Sizes of the IPv4 packets, in bytes. The second is that of the NOTIFYs of the 2011 paper.
pub const SIZES: [u16; 3] = [64, 340, 1500];

/// What a JVM gets to do before it is measured: enough packets to find out what is to be compiled, and time for that.
const WARM_UP: [Pace; 3] = [
    Pace { rate: Some(20_000.0), seconds: 2.0, timed: false, accounted: false },
    Pace { rate: Some(100_000.0), seconds: 2.0, timed: false, accounted: false },
    Pace { rate: None, seconds: 1.0, timed: false, accounted: false },
];
/// For how long each core is looked at before and after a table.
const PAUSES_LOOK: Duration = Duration::from_millis(1500);

/// What is measured: a way, where its parts run, and the bytes of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// Bytes of the IPv4 packets.
    pub bytes: u16,
    /// Where the parts of the router run.
    pub placement: Placement,
    /// The way.
    pub way: Way,
}

/// All that was found, one per round.
pub struct Ladder {
    cells: BTreeMap<Case, Vec<Found>>,
    /// The machine's pauses around the tables, by size.
    pauses: BTreeMap<u16, Pauses>,
}

impl Ladder {
    /// Returns what each round found.
    pub fn rounds(&self, case: Case) -> &[Found] {
        self.cells.get(&case).map_or(&[], Vec::as_slice)
    }

    /// Returns the rates of a goal, in packets per second.
    pub fn rates(&self, case: Case, goal: LossGoal) -> Vec<f64> {
        self.rounds(case).iter().map(|found| found.rate(goal)).collect()
    }

    /// Returns the median of a way's rates at a size, in packets per second.
    pub fn rate(&self, bytes: u16, way: Way) -> Option<f64> {
        let case = Case { bytes, placement: Placement::Split, way };
        Summary::of(&self.rates(case, PDR)).map(|summary| summary.median)
    }

    /// Returns what the machine's pauses were around the table of a size.
    pub fn pauses(&self, bytes: u16) -> Pauses {
        self.pauses.get(&bytes).copied().unwrap_or_default()
    }
}

impl Plan {
    /// Fewer for the larger packets, which differ less.
    pub(super) fn rounds(&self, bytes: u16) -> usize {
        if bytes == SIZES[0] { self.ladder_rounds } else { self.ladder_rounds.div_ceil(2) }
    }
}

/// Searches all ways, in turn.
///
/// # Errors
/// A way does not work, or packets went another way than they were to.
pub fn measure(plan: &Plan, programs: &Programs, nets: &Nets) -> Result<(Ladder, Measured)> {
    let mut ladder = Ladder { cells: BTreeMap::new(), pauses: BTreeMap::new() };
    for bytes in plan.sizes.iter().copied() {
        let before = Pauses::look(PAUSES_LOOK);
        let cases = cases(plan, nets, bytes);
        for round in 0..plan.rounds(bytes) {
            for turn in 0..cases.len() {
                // Each way starts a round as often as any other.
                let case = cases[(turn + round) % cases.len()];
                let rounds = ladder.cells.entry(case).or_default();
                let guess = rounds.last().map(|found| found.rate(PDR)).filter(|rate| *rate > 0.0);
                let found = find(plan.search, programs, nets, case, guess);
                let found = found.with_context(|| format!("{}, {bytes} bytes", case.way.name()))?;
                progress(&format!("{}: {}", ladder_table::name(case), in_words(&found)));
                rounds.push(found);
            }
        }
        ladder.pauses.insert(bytes, before.and(Pauses::look(PAUSES_LOOK)));
    }
    let measured = Measured {
        figures: plan.sizes.iter().map(|bytes| ladder_table::figure(&ladder, plan, *bytes)).collect(),
        plots: plan.sizes.iter().map(|bytes| ladder_table::plot(&ladder, *bytes)).collect(),
    };
    Ok((ladder, measured))
}

fn cases(plan: &Plan, nets: &Nets, bytes: u16) -> Vec<Case> {
    let wanted = |way: &Way| plan.ways.is_empty() || plan.ways.contains(way);
    let has = |way: &Way| wanted(way) && nets.of(*way).is_some() && (!way.answers() || bytes == 340);
    let on = |placement, ways: &[Way]| -> Vec<Case> {
        ways.iter().copied().filter(has).map(|way| Case { bytes, placement, way }).collect()
    };
    [on(Placement::Split, &Way::ALL), on(Placement::OneCore, &Way::ON_ONE_CORE)].concat()
}

fn find(how: Search, programs: &Programs, nets: &Nets, case: Case, guess: Option<f64>) -> Result<Found> {
    let Case { bytes, placement, way } = case;
    let (net, traffic) = (nets.of(way).context("no such router")?, way.traffic(bytes, &nets.notify));
    net.prepare(placement, way.sink(placement))?;
    if way.is_java() && guess.is_none() {
        WARM_UP.iter().try_for_each(|load| trial::run(net, programs, &traffic, load).map(drop))?;
    }
    search(how, &ALL, guess, &mut |load: &Pace| trial::run(net, programs, &traffic, load))
}

fn in_words(found: &Found) -> String {
    let rates: Vec<String> =
        ALL.iter().map(|goal| format!("{} {:.0} kpps", goal.name, kilo(found.rate(*goal)))).collect();
    rates.join(", ")
}
