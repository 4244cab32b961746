// SPDX-License-Identifier: Apache-2.0
//! AMnet's figures 3 and 4 (2003): a service that walks over every byte, one to four times, for packets of many sizes.

use anyhow::{Context, Result};

use super::net::{Installed, Net, Sink};
use super::papers::{AMNET_FIGURE_3, AMNET_FIGURE_4};
use super::pin::Placement;
use super::plot::{Plot, Series};
use super::programs::Programs;
use super::search::{ONE, PDR, search};
use super::summary::{Figure, Row};
use super::trial::{self, SeenBy, Traffic};
use super::{Measured, Plan, progress};
use crate::node::LabUser;

/// AMnet's packets.
const LARGE: u16 = 1460;
const FIRST_PORT: u16 = 9100;
const LOOPS: [u16; 5] = [0, 1, 2, 3, 4];

/// Measures all loops at the large size, and at the smaller ones as far as the plan goes. No loop is kernel forwarding.
///
/// # Errors
/// The node refuses a module, or packets do not pass.
pub fn measure(plan: &Plan, programs: &Programs) -> Result<Measured> {
    let (kernel, net) = (Net::up()?, node()?);
    kernel.prepare(Placement::Split, Sink::Inside)?;
    net.prepare(Placement::Split, Sink::Outside)?;
    let mut found: Vec<(u16, u16, f64)> = Vec::new();
    for bytes in plan.loop_sizes.iter().copied().chain([LARGE]) {
        for loops in LOOPS {
            let (net, seen_by) = if loops == 0 { (&kernel, SeenBy::Nobody) } else { (&net, SeenBy::Modules(1)) };
            let traffic = Traffic { seen_by, ..Traffic::new(bytes, FIRST_PORT + loops) };
            let rate = search(plan.search, &ONE, None, &mut |load| trial::run(net, programs, &traffic, load))
                .with_context(|| format!("{loops} loops, {bytes} bytes"))?
                .rate(PDR);
            let megabits = rate * f64::from(bytes) * 8.0 / 1e6;
            progress(&format!("{loops} loops, {bytes} bytes: {megabits:.0} Mbit/s"));
            found.push((bytes, loops, megabits));
        }
    }
    Ok(Measured { figures: vec![figure(&found)], plots: plots(&found) })
}

/// A node with four users, whose byte-loop walks once to four times.
fn node() -> Result<Net> {
    let mut net = Net::up()?;
    let first = net.lab.user("l1", &[&net.destination()])?;
    let users: Vec<LabUser> = (1..=4).map(|n| LabUser { name: format!("l{n}"), ..first.clone() }).collect();
    net.start_netservd("afxdp", "", &users)?;
    let package = net.lab.package("byte-loop", &first)?;
    for (loops, user) in (1..).zip(&users) {
        let property = format!("loops={loops}");
        net.install(&Installed { user, package: &package, port: FIRST_PORT + loops, properties: &[&property] })?;
    }
    Ok(net)
}

fn figure(found: &[(u16, u16, f64)]) -> Figure {
    let rows = found
        .iter()
        .map(|(bytes, loops, megabits)| {
            let row = Row::new(format!("{bytes} bytes, {}", name(*loops)), "Mbit/s", &[*megabits]);
            match AMNET_FIGURE_3.get(usize::from(*loops)) {
                Some(paper) if *bytes == LARGE => row.note(format!("AMnet 2003: {paper:.0} Mbit/s of 100")),
                Some(_) | None => row,
            }
        })
        .collect();
    let how = "A node with the driver afxdp and the module byte-loop, which takes one dependent step for each byte of the IP \
               packet and loop; PDR of 0.1 % as above, lost or unseen, in bits of IP packets. Without a loop: kernel \
               forwarding, as AMnet's node without its service. AMnet had an 800 MHz Pentium and Fast Ethernet.";
    Figure { name: "A loop for each byte (AMnet's figures 3 and 4)", how: how.to_owned(), rows }
}

fn plots(found: &[(u16, u16, f64)]) -> Vec<Plot> {
    let mut third = Plot::bars(
        "amnet-3".to_owned(),
        "Loops over each byte of 1460-byte packets: throughput of what none gives".to_owned(),
        "% of forwarding without a loop",
        ["this machine", "AMnet 2003, figure 3 (from its text)"],
    );
    let at = |loops: u16| found.iter().find(|case| case.0 == LARGE && case.1 == loops).map(|case| case.2);
    for loops in LOOPS {
        let ours = at(loops).zip(at(0)).map(|(value, whole)| [100.0 * value / whole; 3]);
        let paper = AMNET_FIGURE_3.get(usize::from(loops)).map(|value| 100.0 * value / AMNET_FIGURE_3[0]);
        third.bar(&name(loops), ours, paper);
    }
    let line = |loops: u16| Series {
        name: name(loops),
        points: found.iter().filter(|case| case.1 == loops).map(|case| (f64::from(case.0), case.2)).collect(),
        is_paper: false,
    };
    let mut series: Vec<Series> = LOOPS.into_iter().map(line).collect();
    series.push(Series { name: "AMnet 2003 (700 B)".to_owned(), points: vec![AMNET_FIGURE_4], is_paper: true });
    let title = "Loops over each byte: throughput by size of packets".to_owned();
    vec![third, Plot::lines("amnet-4", title, "bytes", "Mbit/s", false, series)]
}

fn name(loops: u16) -> String {
    match loops {
        0 => "kernel".to_owned(),
        1 => "1 loop".to_owned(),
        more => format!("{more} loops"),
    }
}
