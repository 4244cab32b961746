// SPDX-License-Identifier: Apache-2.0
//! Many containers in one node, as in figure 14 of the 2011 paper; many filters in one driver.

use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, Result};

use super::container::Memory;
use super::goals::Goal;
use super::net::{Installed, Net, Sink};
use super::papers::NETSERV_2011_CONTAINER_MB;
use super::pin::{Placement, workers};
use super::plot::{Plot, Series};
use super::programs::Programs;
use super::search::{ONE, PDR, search};
use super::summary::{Figure, Row, Summary};
use super::trial::{self, SeenBy, Traffic};
use super::{Measured, Plan, kilo, progress};
use crate::node::{LabPackage, LabUser};

const BYTES: u16 = 64;
/// Packets in a row for one container: half a batch, as of a flow that comes in bursts; and the worst case.
const BURSTS: [u16; 2] = [32, 1];
/// The port of the first container or filter; the others follow.
const FIRST_PORT: u16 = 10_000;
/// When memory is looked at: as long after packets as its goal says.
const AFTER_BURST: Duration = Duration::from_secs(10);
/// Filters in the driver that has many.
const FILTERS: u16 = 10_000;

/// One step of figure 14.
struct Step {
    containers: u16,
    /// With packets in runs for one container, and with single ones.
    rates: [Vec<f64>; 2],
    /// The account of the last round of each.
    accounts: [Option<String>; 2],
    memory: Vec<Memory>,
    daemon_mb: f64,
}

/// Measures with more and more containers, each of a user of its own.
///
/// # Errors
/// The node refuses a user, or packets do not pass.
pub fn containers(plan: &Plan, programs: &Programs) -> Result<Measured> {
    let mut net = Net::up()?;
    let most = plan.containers.iter().copied().max().unwrap_or(1);
    let first = net.lab.user("u0", &[&net.destination()])?;
    // One key and one package for all: what differs between users is their containers.
    let users: Vec<LabUser> = (0..most).map(|n| LabUser { name: format!("u{n}"), ..first.clone() }).collect();
    net.start_netservd("afxdp", "", &users)?;
    let package = net.lab.package("net-monitor", &first)?;
    let (mut steps, mut installed) = (Vec::new(), 0);
    for containers in plan.containers.iter().copied() {
        install(&net, &users, &package, installed..containers).with_context(|| format!("{containers} containers"))?;
        installed = containers;
        steps.push(step(plan, programs, &net, containers)?);
    }
    Ok(Measured { figures: vec![containers_figure(plan, &steps)], plots: containers_plots(&steps) })
}

fn install(net: &Net, users: &[LabUser], package: &LabPackage, which: Range<u16>) -> Result<()> {
    for number in which {
        let user = &users[usize::from(number)];
        net.install(&Installed { user, package, port: FIRST_PORT + number, properties: &[] })?;
    }
    Ok(())
}

fn step(plan: &Plan, programs: &Programs, net: &Net, containers: u16) -> Result<Step> {
    net.prepare(Placement::Split, Sink::Outside)?;
    let mut rates: [Vec<f64>; 2] = Default::default();
    let mut accounts: [Option<String>; 2] = Default::default();
    for _ in 0..plan.many_rounds {
        for ((rates, account), burst) in rates.iter_mut().zip(&mut accounts).zip(BURSTS) {
            let seen_by = SeenBy::Modules(1);
            let traffic = Traffic { ports: containers, burst, seen_by, ..Traffic::new(BYTES, FIRST_PORT) };
            let guess = rates.last().copied();
            let found = search(plan.search, &ONE, guess, &mut |load| trial::run(net, programs, &traffic, load));
            let found = found.with_context(|| format!("{containers} containers"))?;
            let rate = found.rate(PDR);
            progress(&format!("{containers} containers, {burst} packets in a row: {:.0} kpps", kilo(rate)));
            rates.push(rate);
            *account = found.worst_above(PDR);
        }
    }
    std::thread::sleep(AFTER_BURST);
    let daemon = net.lab.pid("n1", "netservd").context("netservd runs")?;
    let memory = workers(daemon)?.into_iter().map(Memory::of).collect::<Result<Vec<Memory>>>()?;
    Ok(Step { containers, rates, accounts, memory, daemon_mb: Memory::of(daemon)?.resident_mb })
}

fn containers_figure(plan: &Plan, steps: &[Step]) -> Figure {
    let mut rows = Vec::new();
    for (at, burst) in BURSTS.into_iter().enumerate() {
        let one =
            steps.first().and_then(|step| Summary::of(&step.rates[at])).map_or(f64::NAN, |summary| summary.median);
        for step in steps {
            let rates: Vec<f64> = step.rates[at].iter().copied().map(kilo).collect();
            let row = Row::new(format!("{} container(s), {burst} packets in a row", step.containers), "kpps", &rates);
            rows.push(row.note(step.accounts[at].clone().unwrap_or_default()));
        }
        for step in steps.iter().skip(1) {
            let ratio: Vec<f64> = step.rates[at].iter().map(|rate| rate / one).collect();
            let row = Row::new(format!("{} containers / one, {burst} in a row", step.containers), "ratio", &ratio);
            rows.push(if step.containers == 100 { row.goal(Goal::ManyContainers) } else { row });
        }
    }
    for step in steps {
        let of = |value: fn(&Memory) -> f64| step.memory.iter().map(value).collect::<Vec<f64>>();
        let what = |kind| format!("{} container(s), {kind} each", step.containers);
        let resident = Row::new(what("resident"), "MB", &of(|memory| memory.resident_mb));
        rows.push(resident.goal(Goal::ContainerMemory));
        let note = format!("netservd: {:.0} MB resident", step.daemon_mb);
        rows.push(Row::new(what("proportional"), "MB", &of(|memory| memory.proportional_mb)).note(note));
    }
    let how = format!(
        "One node, driver afxdp, each container of a user of its own with net-monitor and a filter of its own by port; \
         {BYTES}-byte packets to the ports in turn, in runs of {} for one container and singly, so that each packet of a batch is another \
         container's. PDR of 0.1 % as above, lost or unseen, {} round(s). Memory {} s after that; resident counts pages that all workers share in full.",
        BURSTS[0],
        plan.many_rounds,
        AFTER_BURST.as_secs()
    );
    Figure { name: "Many containers (figure 14 of 2011)", how, rows }
}

fn containers_plots(steps: &[Step]) -> Vec<Plot> {
    let line = |name: &str, is_paper, value: &dyn Fn(&Step) -> f64| Series {
        name: name.to_owned(),
        points: steps.iter().map(|step| (f64::from(step.containers), value(step))).collect(),
        is_paper,
    };
    let rate = |at: usize| move |step: &Step| Summary::of(&step.rates[at]).map_or(0.0, |summary| kilo(summary.median));
    let memory = |step: &Step| step.memory.iter().map(|memory| memory.proportional_mb).sum::<f64>() + step.daemon_mb;
    let rates = vec![
        line("runs of 32 packets for one container", false, &rate(0)),
        line("each packet for another container", false, &rate(1)),
    ];
    let paper = |step: &Step| f64::from(step.containers) * NETSERV_2011_CONTAINER_MB;
    let both = vec![
        line("this node: netservd and containers", false, &memory),
        line("NetServ 2011: 110 MB each (its text)", true, &paper),
    ];
    vec![
        Plot::lines("containers-rate", "Containers and rate".to_owned(), "containers", "kpps", true, rates),
        Plot::lines("containers-memory", "Containers and memory".to_owned(), "containers", "MB", true, both),
    ]
}

/// Measures one filter and 10,000 in the driver alone; a user may have fewer than that.
///
/// # Errors
/// The driver does not take them, or packets do not pass.
pub fn filters(plan: &Plan, programs: &Programs) -> Result<Measured> {
    let (mut few, mut many) = (Net::up()?, Net::up()?);
    few.start_null_driver("afxdp", FIRST_PORT, &[])?;
    many.start_null_driver("afxdp", FIRST_PORT, &["--filters", &FILTERS.to_string()])?;
    let cases = [(&few, 1), (&many, 1), (&many, FILTERS)];
    let mut rates: [Vec<f64>; 3] = Default::default();
    for round in 0..plan.many_rounds.max(3) {
        for turn in 0..cases.len() {
            let at = (turn + round) % cases.len();
            let (net, ports) = cases[at];
            net.prepare(Placement::Split, Sink::Outside)?;
            let traffic = Traffic { ports, seen_by: SeenBy::Driver, ..Traffic::new(BYTES, FIRST_PORT) };
            let guess = rates[at].last().copied();
            let found = search(plan.search, &ONE, guess, &mut |load| trial::run(net, programs, &traffic, load))?;
            progress(&format!("filters, case {at}: {:.0} kpps", kilo(found.rate(PDR))));
            rates[at].push(found.rate(PDR));
        }
    }
    let names = ["1 filter", "10,000 filters, all packets to one port", "10,000 filters, packets to all ports"];
    let shown = |rates: &[f64]| rates.iter().copied().map(kilo).collect::<Vec<f64>>();
    let mut rows: Vec<Row> =
        names.iter().zip(&rates).map(|(name, rates)| Row::new(*name, "kpps", &shown(rates))).collect();
    let ratio: Vec<f64> = rates[1].iter().zip(&rates[0]).map(|(many, few)| many / few).collect();
    rows.push(Row::new("10,000 filters / 1", "ratio", &ratio).goal(Goal::ManyFilters));
    let how = format!(
        "The driver afxdp alone with filters of one port each; {BYTES}-byte packets, PDR of 0.1 % as above, in \
         turn. In netservd one user has at most 1,024 filters (64 modules of 16)."
    );
    Ok(Measured { figures: vec![Figure { name: "Many filters", how, rows }], plots: Vec::new() })
}
