// SPDX-License-Identifier: Apache-2.0
//! The ladder: the highest rate without loss of each way through a router, and what a packet costs there.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

use super::goals::Goal;
use super::papers::netserv_2011;
use super::pin::{NODE_CORE, OUTSIDE_CORE};
use super::plot::Plot;
use super::programs::Programs;
use super::search::{Found, LOSS_MAX, Search, search};
use super::summary::{Figure, Row, Summary};
use super::trial::{self, Pace};
use super::ways::{Nets, Way};
use super::{Measured, Plan, kilo, progress};

/// Sizes of the IPv4 packets, in bytes. The second is that of the NOTIFYs of the 2011 paper.
pub const SIZES: [u16; 3] = [64, 340, 1500];

/// What a JVM gets to do before it is measured: enough packets to find out what is to be compiled, and time for that.
const WARM_UP: [Pace; 3] = [
    Pace { rate: Some(20_000.0), seconds: 2.0, timed: false },
    Pace { rate: Some(100_000.0), seconds: 2.0, timed: false },
    Pace { rate: None, seconds: 1.0, timed: false },
];

/// What was found for one way and size, one per round.
#[derive(Default)]
struct Cell {
    rates: Vec<f64>,
    cpu_ns: Vec<f64>,
    generator_bound: bool,
    reordered: u64,
    duplicates: u64,
}

/// All that was found.
pub struct Ladder {
    cells: BTreeMap<(u16, Way), Cell>,
}

impl Ladder {
    /// Returns the median of a way's rates at a size, in packets per second.
    pub fn rate(&self, bytes: u16, way: Way) -> Option<f64> {
        self.cells.get(&(bytes, way)).and_then(|cell| Summary::of(&cell.rates)).map(|summary| summary.median)
    }
}

impl Plan {
    /// Fewer for the larger packets, which differ less.
    fn rounds(&self, bytes: u16) -> usize {
        if bytes == SIZES[0] { self.ladder_rounds } else { self.ladder_rounds / 2 }
    }
}

/// Searches all ways, in turn.
///
/// # Errors
/// A way does not work, or packets went another way than they were to.
pub fn measure(plan: &Plan, programs: &Programs, nets: &Nets) -> Result<(Ladder, Measured)> {
    let mut cells: BTreeMap<(u16, Way), Cell> = BTreeMap::new();
    for bytes in plan.sizes.iter().copied() {
        let has = |way: &Way| nets.of(*way).is_some() && (!way.answers() || bytes == 340);
        let ways: Vec<Way> = Way::ALL.into_iter().filter(has).collect();
        for round in 0..plan.rounds(bytes) {
            for turn in 0..ways.len() {
                // Each way starts a round as often as any other.
                let way = ways[(turn + round) % ways.len()];
                let cell = cells.entry((bytes, way)).or_default();
                let guess = cell.rates.last().copied();
                let found = rate_of(plan.search, programs, nets, way, bytes, guess);
                let found = found.with_context(|| format!("{}, {bytes} bytes", way.name()))?;
                progress(&format!("{bytes} bytes, {}: {:.0} kpps", way.name(), kilo(found.rate)));
                cell.rates.push(found.rate);
                cell.cpu_ns.push(found.cpu_ns);
                cell.generator_bound = found.generator_bound;
                cell.reordered += found.outcome.reordered;
                cell.duplicates += found.outcome.duplicates;
            }
        }
    }
    let ladder = Ladder { cells };
    let measured = Measured {
        figures: plan.sizes.iter().map(|bytes| ladder.figure(plan, *bytes)).collect(),
        plots: plan.sizes.iter().map(|bytes| ladder.plot(*bytes)).collect(),
    };
    Ok((ladder, measured))
}

fn rate_of(how: Search, programs: &Programs, nets: &Nets, way: Way, bytes: u16, guess: Option<f64>) -> Result<Found> {
    let (net, traffic) = (nets.of(way).context("no such router")?, way.traffic(bytes, &nets.notify));
    net.prepare(way.sink())?;
    if way.is_java() && guess.is_none() {
        WARM_UP.iter().try_for_each(|load| trial::run(net, programs, &traffic, load).map(drop))?;
    }
    let mut arrived = 0;
    let before = if way.modules() > 0 { net.seen()? } else { 0 };
    let found = search(how, guess, &mut |load: &Pace| {
        let outcome = trial::run(net, programs, &traffic, load)?;
        arrived += outcome.received;
        Ok(outcome)
    })?;
    if way.modules() > 0 {
        // Warm-up and lost packets are seen and not counted, so the modules cannot have seen fewer.
        let seen = net.seen()? - before;
        let least = arrived.saturating_mul(way.modules()).saturating_mul(999) / 1000;
        ensure!(seen >= least, "{arrived} packets came, and their {} module(s) saw {seen}", way.modules());
    }
    Ok(found)
}

impl Ladder {
    fn figure(&self, plan: &Plan, bytes: u16) -> Figure {
        let mut rows = Vec::new();
        let cells = || self.cells.iter().filter(move |((size, _), _)| *size == bytes);
        for ((_, way), cell) in cells() {
            let rates: Vec<f64> = cell.rates.iter().copied().map(kilo).collect();
            let mut note = format!("{:.2} µs of processor time per packet", median(&cell.cpu_ns) / 1000.0);
            if cell.generator_bound {
                note += "; no loss at the highest rate that its core yields";
            }
            if cell.reordered + cell.duplicates > 0 {
                note += &format!("; {} out of order, {} twice", cell.reordered, cell.duplicates);
            }
            if let Some(rate) = netserv_2011(*way, bytes) {
                note += &format!("; NetServ 2011: {rate:.0} kpps");
            }
            rows.push(Row::new(way.name(), "kpps", &rates).note(note));
        }
        for (way, goal) in goals(bytes) {
            let ratio = self.ratio(bytes, way, Way::Kernel);
            if ratio.is_empty() {
                continue;
            }
            let row = Row::new(format!("{} / kernel", way.name()), "ratio", &ratio);
            rows.push(Row { goal, ..row });
        }
        if bytes == 64 {
            let name = |way: Way| format!("{} / null verdict in C", way.name());
            for (way, goal) in [(Way::NfqueueMonitor, Goal::MonitorNfqueue), (Way::NfqueueBundle, Goal::BundleNfqueue)]
            {
                let ratio = self.ratio(bytes, way, Way::NfqueueNull);
                rows.push(Row::new(name(way), "ratio", &ratio).goal(goal));
            }
        }
        if bytes == 340 {
            let ratio = self.ratio(bytes, Way::AfxdpKeepAliveBundle, Way::AfxdpKeepAlive);
            rows.push(Row::new("keep-alive in Java / in WebAssembly", "ratio", &ratio).goal(Goal::BundleKeepAlive));
        }
        Figure { name: figure_name(bytes), how: how(plan, bytes), rows }
    }

    /// Returns the ratios within each round.
    fn ratio(&self, bytes: u16, above: Way, below: Way) -> Vec<f64> {
        let rates = |way| self.cells.get(&(bytes, way)).map_or(&[][..], |cell| &cell.rates);
        rates(above).iter().zip(rates(below)).map(|(above, below)| above / below).collect()
    }

    fn plot(&self, bytes: u16) -> Plot {
        let title = format!("Highest rate without loss, {bytes}-byte packets");
        let mut plot = Plot::bars(format!("ladder-{bytes}"), title, "kpps", ["this machine", "NetServ 2011"]);
        for ((_, way), cell) in self.cells.iter().filter(|((size, _), _)| *size == bytes) {
            if let Some(summary) = Summary::of(&cell.rates) {
                let spread = [summary.median, summary.min, summary.max].map(kilo);
                plot.bar(way.name(), Some(spread), netserv_2011(*way, bytes));
            }
        }
        plot
    }
}

/// Returns the ways whose ratio to kernel forwarding is shown, and what it has to reach.
fn goals(bytes: u16) -> Vec<(Way, Option<Goal>)> {
    match bytes {
        64 => vec![
            (Way::AfxdpMonitor, Some(Goal::Monitor)),
            (Way::AfxdpBundle, Some(Goal::Bundle)),
            (Way::AfxdpUnmatched, Some(Goal::Unmatched)),
            (Way::XdpForward, Some(Goal::XdpForward)),
        ],
        340 => vec![(Way::AfxdpKeepAlive, Some(Goal::KeepAlive)), (Way::AfxdpMonitor, None), (Way::AfxdpBundle, None)],
        _ => vec![(Way::AfxdpMonitor, None)],
    }
}

fn figure_name(bytes: u16) -> &'static str {
    match bytes {
        64 => "The ladder, 64-byte packets",
        340 => "The ladder, 340-byte packets",
        _ => "The ladder, 1500-byte packets",
    }
}

fn how(plan: &Plan, bytes: u16) -> String {
    format!(
        "Highest rate at which at most {:.2} % of {bytes}-byte IPv4 packets are lost (RFC 2544 §26.1): trials of {} s, a \
         last one of {} s, {:.1} % apart; a trial with loss is repeated twice. The ways in turn, {} rounds; ratios are \
         within a round. A JVM runs for five seconds before. Generator (frames made in the kernel, 64 at a time) on \
         core {OUTSIDE_CORE}; veth delivers on the sender's core, so that there run also: all of kernel forwarding, \
         netfilter up to the queue, the XDP program with its copy to the driver, and forwarding in XDP. On core \
         {NODE_CORE}: driver, netservd, worker, null verdict, whatever they send, and steered forwarding. The sink \
         counts on core {OUTSIDE_CORE}, in the kernel. Processor time is that of generator, router and sink on both \
         cores.",
        LOSS_MAX * 100.0,
        plan.search.seconds,
        plan.search.confirm_seconds,
        plan.search.resolution * 100.0,
        plan.rounds(bytes),
    )
}

fn median(values: &[f64]) -> f64 {
    Summary::of(values).map_or(0.0, |summary| summary.median)
}
