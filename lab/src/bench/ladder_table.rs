// SPDX-License-Identifier: Apache-2.0
//! The ladder's tables: rates by goal, where the packets of a trial went, and the ratios to the kernel on three bases.

use serde_json::{Value, json};

use super::goals::Goal;
use super::ladder::{Case, Ladder};
use super::papers::netserv_2011;
use super::pin::{NODE_CORE, OUTSIDE_CORE, Placement};
use super::plot::Plot;
use super::search::{ALL, EXCEED, Found, Load, LossGoal, NDR, PDR, PDR_SMALL};
use super::summary::{Figure, Row, Summary};
use super::trial::Outcome;
use super::ways::Way;
use super::{Plan, kilo};

/// What a way is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// Kernel forwarding with all of the router on one core, and so the way.
    OneCore,
    /// Kernel forwarding steered to the node's core: both have two cores, of which one carries the generator, too.
    EqualCores,
    /// Kernel forwarding on the generator's core, where the way forwards as well.
    GeneratorsCore,
    /// The same by the processor time of the whole machine that a packet takes.
    ProcessorTime,
    /// The null verdict in C.
    NullVerdict,
    /// The same module in WebAssembly.
    Twin(Way),
}

/// Returns the name of a case in tables.
pub fn name(case: Case) -> String {
    match case.placement {
        Placement::Split => case.way.name().to_owned(),
        Placement::OneCore => format!("on one core: {}", case.way.name()),
    }
}

/// Returns the table of a size.
pub fn figure(ladder: &Ladder, plan: &Plan, bytes: u16) -> Figure {
    let mut rows = Vec::new();
    for (placement, ways) in [(Placement::Split, &Way::ALL[..]), (Placement::OneCore, &Way::ON_ONE_CORE[..])] {
        let cases = ways.iter().map(|way| Case { bytes, placement, way: *way });
        rows.extend(cases.filter_map(|case| row(ladder, case)));
    }
    for (way, base, goal) in ratios(bytes) {
        let values = ratio(ladder, bytes, way, base);
        if !values.is_empty() {
            let row = Row::new(format!("{} / {}", way.name(), base_name(base)), "ratio", &values);
            rows.push(Row { goal, ..row });
        }
    }
    let how = format!("{} Around this table {}.", how(plan, bytes), ladder.pauses(bytes).line());
    Figure { name: figure_name(bytes), how, rows }
}

/// Returns the plot of a size: what two cores yield.
pub fn plot(ladder: &Ladder, bytes: u16) -> Plot {
    let title = format!("PDR (0.1 % lost or unseen), {bytes}-byte packets");
    let mut plot = Plot::bars(format!("ladder-{bytes}"), title, "kpps", ["this machine", "NetServ 2011"]);
    for way in Way::ALL {
        let case = Case { bytes, placement: Placement::Split, way };
        if let Some(summary) = Summary::of(&ladder.rates(case, PDR)) {
            let spread = [summary.median, summary.min, summary.max].map(kilo);
            plot.bar(way.name(), Some(spread), netserv_2011(way, bytes));
        }
    }
    plot
}

fn row(ladder: &Ladder, case: Case) -> Option<Row> {
    let rounds = ladder.rounds(case);
    let last = rounds.last()?;
    let rates: Vec<f64> = ladder.rates(case, PDR).into_iter().map(kilo).collect();
    let mut note = String::new();
    for goal in [PDR_SMALL, NDR] {
        let rates: Vec<f64> = ladder.rates(case, goal).into_iter().map(kilo).collect();
        if let Some(Summary { median, min, max, .. }) = Summary::of(&rates) {
            note += &format!("{} {median:.0} ({min:.0} .. {max:.0}) kpps; ", goal.name);
        }
    }
    let steady: Vec<f64> = rounds.iter().map(|found| kilo(found.steady_rate(PDR))).collect();
    if let Some(Summary { median, min, max, .. }) = Summary::of(&steady) {
        note += &format!("no trial above 0.1 % up to {median:.0} ({min:.0} .. {max:.0}) kpps; ");
    }
    if let Some(summary) = Summary::of(&costs(rounds)) {
        note += &format!("{:.2} µs of processor time per packet", summary.median / 1000.0);
    }
    if last.generator_bound {
        note += "; no loss at the highest rate that the generator's core yields";
    }
    if let Some(rate) = netserv_2011(case.way, case.bytes).filter(|_| case.placement == Placement::Split) {
        note += &format!("; NetServ 2011: {rate:.0} kpps");
    }
    if let Some(outcome) = last.table.lower_bound(PDR).and_then(|load| load.trials().last()) {
        if outcome.reordered + outcome.duplicates > 0 {
            note += &format!("; {} out of order, {} twice", outcome.reordered, outcome.duplicates);
        }
        if let Some(account) = &outcome.account {
            note += &format!("\nlast trial at the PDR: {}", account.line());
        }
    }
    if let Some(line) = last.worst_above(PDR) {
        note += &format!("\n{line}");
    }
    let details = Value::Array(rounds.iter().map(details).collect());
    Some(Row { details: Some(details), ..Row::new(name(case), "kpps", &rates).note(note) })
}

/// Returns what a program wants to know of a search: the bounds of each goal, and the account of each trial that counts.
fn details(found: &Found) -> Value {
    let bounds = |goal: &LossGoal| {
        json!({
            "goal": goal.name,
            "lower": found.table.lower_bound(*goal).map(Load::rate),
            "upper": found.table.upper_bound(*goal),
        })
    };
    let trial = |outcome: &Outcome| {
        json!({
            "rate": outcome.rate, "loss": outcome.loss(), "cpu_ns": outcome.cpu_ns, "reordered": outcome.reordered,
            "duplicates": outcome.duplicates, "account": outcome.account,
        })
    };
    let load =
        |load: &Load| json!({ "load": load.rate(), "trials": load.trials().iter().map(trial).collect::<Vec<Value>>() });
    json!({
        "bounds": ALL.iter().map(bounds).collect::<Vec<Value>>(),
        "steady": found.steady_rate(PDR),
        "loads": found.table.loads().iter().map(load).collect::<Vec<Value>>(),
        "generator_bound": found.generator_bound,
    })
}

/// Returns the processor time of a packet at the PDR, in each round that has one.
fn costs(rounds: &[Found]) -> Vec<f64> {
    let cost = |found: &Found| Some(found.table.lower_bound(PDR)?.trials().last()?.cpu_ns);
    rounds.iter().filter_map(cost).collect()
}

/// Returns the ratios within each round.
fn ratio(ladder: &Ladder, bytes: u16, way: Way, base: Base) -> Vec<f64> {
    let split = |way| Case { bytes, placement: Placement::Split, way };
    let one = |way| Case { bytes, placement: Placement::OneCore, way };
    let rates = |case| ladder.rates(case, PDR);
    let (above, below) = match base {
        Base::OneCore => (rates(one(way)), rates(one(Way::Kernel))),
        Base::EqualCores => (rates(split(way)), rates(split(Way::Steered))),
        Base::GeneratorsCore => (rates(split(way)), rates(split(Way::Kernel))),
        // What costs less does more in the same time.
        Base::ProcessorTime => (costs(ladder.rounds(split(Way::Kernel))), costs(ladder.rounds(split(way)))),
        Base::NullVerdict => (rates(split(way)), rates(split(Way::NfqueueNull))),
        Base::Twin(twin) => (rates(split(way)), rates(split(twin))),
    };
    let ratios = above.iter().zip(&below).map(|(above, below)| above / below);
    ratios.filter(|ratio| ratio.is_finite()).collect()
}

fn base_name(base: Base) -> &'static str {
    match base {
        Base::OneCore => "kernel, each on one core",
        Base::EqualCores => "kernel, equal cores",
        Base::GeneratorsCore => "kernel, both on the generator's core",
        Base::ProcessorTime => "kernel, per second of processor time",
        Base::NullVerdict => "null verdict in C",
        Base::Twin(_) => "its twin in WebAssembly",
    }
}

/// Returns the ratios that are shown, and what they have to reach.
fn ratios(bytes: u16) -> Vec<(Way, Base, Option<Goal>)> {
    let three = |way, goals: [Option<Goal>; 3]| {
        let [one, equal, time] = goals;
        [(way, Base::OneCore, one), (way, Base::EqualCores, equal), (way, Base::ProcessorTime, time)]
    };
    let generators =
        |way, goal| [(way, Base::OneCore, None), (way, Base::GeneratorsCore, goal), (way, Base::ProcessorTime, None)];
    let monitor = match bytes {
        64 => [Some(Goal::MonitorOneCore), Some(Goal::Monitor), Some(Goal::MonitorProcessorTime)],
        _ => [None; 3],
    };
    let mut rows = three(Way::AfxdpMonitor, monitor).to_vec();
    rows.push((Way::AfxdpRealTime, Base::EqualCores, None));
    rows.extend(three(Way::AfxdpNull, [None; 3]));
    rows.extend(generators(Way::AfxdpUnmatched, (bytes == 64).then_some(Goal::Unmatched)));
    rows.extend(generators(Way::XdpForward, (bytes == 64).then_some(Goal::XdpForward)));
    if bytes == 340 {
        rows.extend(three(Way::AfxdpKeepAlive, [None, Some(Goal::KeepAlive), None]));
        let twin = Base::Twin(Way::AfxdpKeepAlive);
        rows.push((Way::AfxdpKeepAliveBundle, twin, Some(Goal::BundleKeepAlive)));
    }
    let of_64 = |goal| (bytes == 64).then_some(goal);
    rows.push((Way::AfxdpBundle, Base::EqualCores, of_64(Goal::Bundle)));
    rows.push((Way::NfqueueMonitor, Base::NullVerdict, of_64(Goal::MonitorNfqueue)));
    rows.push((Way::NfqueueBundle, Base::NullVerdict, of_64(Goal::BundleNfqueue)));
    rows
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
        "PDR of 0.1 %: the highest load at which at most 0.1 % of {bytes}-byte IPv4 packets were lost or not seen by a module \
         that had to (RFC 2544 §26.1 and draft-ietf-bmwg-mlrsearch: the relevant lower bound, goal exceed ratio {EXCEED}: most of a \
         load's trials decide, and beside it stands up to where none was bad); the PDR of 0.01 % and the NDR, 0 packets, whose \
         value is 0 where a tenth of the PDR loses some, likewise. Trials of {} s find the place, {} of {} s decide{}; bounds are {:.1}, {:.1} and {:.1} % apart. The ways in turn, {} rounds; ratios are within a round. A JVM runs \
         for five seconds before. Generator (frames made in the kernel, 64 at a time) on core {OUTSIDE_CORE}; veth delivers on \
         the sender's core, so that there run also: all of kernel forwarding, netfilter up to the queue, the XDP program with \
         its copy to the driver, and forwarding in XDP. On core {NODE_CORE}: driver, netservd, worker, null verdict, whatever \
         they send, and steered forwarding. On one core: a thread of the kernel on core {NODE_CORE} takes the packets from a \
         queue of 4,096 places, as a card's (a CPU map), so that all of the router is there. The sink counts on core {OUTSIDE_CORE}, in the kernel. Processor time is \
         that of generator, router and sink on both cores.",
        plan.search.seconds,
        plan.search.confirm_trials,
        plan.search.confirm_seconds,
        if plan.search.confirm_seconds < 1.0 { " (11 of 1 s in a full run)" } else { "" },
        plan.search.resolution * 100.0 * PDR.width,
        plan.search.resolution * 100.0 * PDR_SMALL.width,
        plan.search.resolution * 100.0 * NDR.width,
        plan.rounds(bytes),
    )
}
