// SPDX-License-Identifier: Apache-2.0
//! `./dev demo --app compressor`: a web site whose agent brings AMnet's HTTP compressor before clients behind a slow link. Nobody types
//! SETUP.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use netserv_api::AgentStatus;

use super::telling::title;
use crate::patience::wait_for;
use crate::website::{Website, noise, page};

/// What the clients' link carries.
const KBIT_PER_S: u32 = 10_000;
/// How long it may take until modules are compiled and there, or gone, on a machine that is not busy.
const INSTALL_WAIT: Duration = Duration::from_secs(90);
const PAGES: [&str; 3] = ["page.html", "large.txt", "noise.png"];
/// How often each page is fetched.
const ROUNDS: usize = 5;

/// Shows it.
///
/// # Errors
/// Something did not do what the demo shows.
pub fn run() -> Result<()> {
    let begun = Instant::now();
    title(
        "A web site: nginx and netserv-agent on one machine, two nodes on the way to its clients, who have 10 Mbit/s",
    );
    let mut site = Website::up(None, KBIT_PER_S)?;
    site.start("http-compressor", "")?;
    for (name, bytes) in PAGES.into_iter().zip([page(60_000), page(2_000_000), noise(1_000_000)]) {
        std::fs::write(site.path("www").join(name), bytes)?;
    }
    println!("  sender {} ── n1 ── r (plain router) ── n2 ── 10 Mbit/s ── receiver", site.lab.v4("sender"));

    title("The first pages come as they are; the agent sees their client in nginx's log, and brings the module");
    let first = Instant::now();
    let before = fetch_all(&site, 1)?;
    fetch_all(&site, 1)?;
    let runs = |agent: AgentStatus| agent.deployments.iter().any(|one| one.health == "running" && one.nodes.len() == 2);
    let is_there = || {
        // Where nobody comes for long, the agent wants no module any more.
        let _ = site.fetch(PAGES[0]);
        site.agent().is_ok_and(runs)
    };
    let waited = wait_for("both nodes to run the module", INSTALL_WAIT, is_there);
    waited.map_err(|gave_up| gave_up.seeing(site.lab.log("sender", "agent")))?;
    println!("  on both nodes {:.1} s after the first page", first.elapsed().as_secs_f64());
    for deployment in site.agent()?.deployments {
        let nodes: Vec<String> = deployment.nodes.iter().map(|node| node.node.to_string()).collect();
        println!("  netserv agent status: rule {} is {} at {}", deployment.rule, deployment.health, nodes.join(", "));
    }

    title("The same pages, compressed on their way");
    let after = fetch_all(&site, ROUNDS)?;
    for ((name, before), after) in PAGES.iter().zip(before).zip(after) {
        println!("  {name:<10} {} before, {} since", shown(before), shown(after));
    }
    ensure!(after[0].1 * 2 < before[0].1 && after[1].1 * 2 < before[1].1, "the pages are not compressed");
    ensure!(after[2].1 == before[2].1, "what does not shrink was changed");
    for node in ["n1", "n2"] {
        println!("  counters at {node}: {:?}", site.module(node).map(|module| module.counters).unwrap_or_default());
    }

    title("The switch: netserv agent off site");
    let begun_off = Instant::now();
    site.switch(false)?;
    let is_gone = || ["n1", "n2"].iter().all(|node| site.module(node).is_none());
    let waited = wait_for("both nodes to lose the module", INSTALL_WAIT, is_gone);
    waited.map_err(|gave_up| gave_up.seeing(site.lab.log("sender", "agent")))?;
    println!("  no node has the module any more after {:.0} ms", begun_off.elapsed().as_secs_f64() * 1000.0);
    let plain = site.fetch(PAGES[0])?;
    ensure!(plain.1 == before[0].1, "the page is compressed still");
    println!("  {:<10} {}", PAGES[0], shown(plain));
    println!("\n  the whole demo: {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Fetches each page so often; returns the least time of each, and its bytes.
fn fetch_all(site: &Website, rounds: usize) -> Result<[(Duration, u64); 3]> {
    let mut best = [(Duration::MAX, 0); 3];
    for _ in 0..rounds {
        for (best, name) in best.iter_mut().zip(PAGES) {
            *best = (*best).min(site.fetch(name)?);
        }
    }
    Ok(best)
}

fn shown((took, bytes): (Duration, u64)) -> String {
    format!("{bytes:>7} bytes in {:>4.0} ms", took.as_secs_f64() * 1000.0)
}
