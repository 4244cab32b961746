// SPDX-License-Identifier: Apache-2.0
//! Containers with a JVM: how long a SETUP takes, and what they weigh.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use netserv_model::Flavour;

use super::container::{MB_PER_KIB, Memory};
use super::goals::Goal;
use super::net::{Installed, Net};
use super::papers::NETSERV_2011_CONTAINER_MB;
use super::pin::workers;
use super::setup;
use super::summary::{Figure, Row};
use super::{Plan, progress};
use crate::node::LabUser;

/// Containers that are held at a time.
const CONTAINERS: u16 = 100;
/// The first version of the packages for containers that run.
const WARM_FIRST: usize = 1000;
/// After what time a JVM has given back what its start took.
const SETTLE: Duration = Duration::from_secs(5);

/// Measures SETUP of bundles over two nodes, and the memory of many JVMs in one node.
///
/// # Errors
/// A node refuses, or does not answer.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    Ok(vec![setups(plan)?, memory()?])
}

fn setups(plan: &Plan) -> Result<Figure> {
    let net = setup::Net::up(&["n1", "n2"])?;
    let (mut cold, mut warm, mut cached) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..plan.setups_uncached {
        let package = net.package(number, Flavour::Osgi)?;
        cold.push(net.setup(&package)?.whole);
        net.remove(&package)?;
        // From the store this time, and a new JVM.
        cached.push(net.setup(&package)?.whole);
        net.remove(&package)?;
        let other = net.other(Flavour::Osgi)?;
        net.setup(&other)?;
        let package = net.package(WARM_FIRST + number, Flavour::Osgi)?;
        warm.push(net.setup(&package)?.whole);
        net.remove(&package)?;
        net.remove(&other)?;
    }
    let how = "sender (host) – n1 – plain router – n2 – receiver, all on one machine; a signed SETUP of net-monitor as a \
               bundle, until the whole response stack is back; its filters are in place then, so the next packet is its \
               first. Cold: a package that the nodes have not seen, fetched from the sender, and a container with a JVM \
               started in both at once, on two cores. Runs: keep-alive is there, so only the bundle is new.";
    let rows = vec![
        Row::new("SETUP, package and container new", "ms", &cold).goal(Goal::BundleSetup),
        Row::new("SETUP, container new", "ms", &cached),
        Row::new("SETUP, package new, container runs", "ms", &warm).goal(Goal::BundleSetupWarm),
    ];
    Ok(Figure { name: "SETUP of bundles over two nodes", how: how.to_owned(), rows })
}

fn memory() -> Result<Figure> {
    let mut net = Net::up()?;
    let first = net.lab.user("u0", &[&net.destination()])?;
    let users: Vec<LabUser> =
        (0..CONTAINERS).map(|number| LabUser { name: format!("u{number}"), ..first.clone() }).collect();
    net.start_netservd("afxdp", "", &users)?;
    let package = net.lab.package_in("net-monitor", &[Flavour::Osgi], &first)?;
    let daemon = net.lab.pid("n1", "netservd").context("netservd runs")?;
    let mut alone = Vec::new();
    let before = free_mb()?;
    for (number, user) in (0..CONTAINERS).zip(&users) {
        net.install(&Installed { user, package: &package, port: 10_000 + number, properties: &[] })?;
        if number == 0 {
            std::thread::sleep(SETTLE);
            alone = workers(daemon)?.into_iter().map(Memory::of).collect::<Result<Vec<Memory>>>()?;
        }
    }
    std::thread::sleep(SETTLE);
    let all = workers(daemon)?.into_iter().map(Memory::of).collect::<Result<Vec<Memory>>>()?;
    ensure!(all.len() == usize::from(CONTAINERS), "{} of {CONTAINERS} workers run", all.len());
    let taken = (before - free_mb()?) / f64::from(CONTAINERS);
    progress(&format!("{CONTAINERS} JVMs take {taken:.1} MB each of the machine"));
    let of = |memory: &[Memory], value: fn(&Memory) -> f64| memory.iter().map(value).collect::<Vec<f64>>();
    let rows = vec![
        Row::new("a container alone, resident", "MB", &of(&alone, |memory| memory.resident_mb))
            .goal(Goal::JvmMemory)
            .note(format!("NetServ 2011: {NETSERV_2011_CONTAINER_MB:.0} MB")),
        Row::new("each of 100, resident", "MB", &of(&all, |memory| memory.resident_mb)),
        Row::new("each of 100, proportional", "MB", &of(&all, |memory| memory.proportional_mb)),
        Row::new("each of 100, private", "MB", &of(&all, |memory| memory.private_mb)),
        Row::new("each of 100, of the machine's free memory", "MB", &[taken]).goal(Goal::ManyJvms),
    ];
    let how = format!(
        "One node, driver afxdp, {CONTAINERS} users each with a container, a JVM and net-monitor as a bundle, without \
         traffic, {} s after the last one came. The last row counts what the kernel keeps for them, too.",
        SETTLE.as_secs()
    );
    Ok(Figure { name: "Containers with a JVM", how, rows })
}

/// Returns the machine's free memory in MB.
fn free_mb() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:")).context("no MemAvailable")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * MB_PER_KIB)
}
