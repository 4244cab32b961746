// SPDX-License-Identifier: Apache-2.0
//! What changes a way's rate and latency: one condition at a time, each against the same ordinary one.

use anyhow::{Context, Result, ensure};
use netserv_model::Flavour;

use super::links::Links;
use super::net::Net;
use super::pin::{NODE_CORE, Placement, keep};
use super::programs::Programs;
use super::search::{ONE, PDR, search};
use super::summary::{Figure, Row};
use super::trial::{self, Outcome, Pace, SeenBy, Traffic};
use super::ways::real_time_settings;
use super::{Measured, Plan, goals::Goal, kilo, net::Sink, progress};

const BYTES: u16 = 64;
const PORT: u16 = 9000;
/// A port that no module wants.
const OTHER_PORT: u16 = 9009;
/// Packets per second that the hog is to take next to nothing of.
const HOGGED_RATE: f64 = 200_000.0;

/// The name of what is measured with a program beside the node.
const HOG: &str = "A hog on the node's core";

/// What is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Ordinary,
    Socket,
    Flows(u32),
    Mix,
    V6,
    BothWays,
    Outputs(u8),
}

const CONDITIONS: [Condition; 9] = [
    Condition::Ordinary,
    Condition::Socket,
    Condition::Flows(1_000),
    Condition::Flows(10_000),
    Condition::Flows(1_000_000),
    Condition::Mix,
    Condition::V6,
    Condition::BothWays,
    Condition::Outputs(4),
];

impl Condition {
    fn name(self) -> String {
        match self {
            Condition::Ordinary => "ordinary: IPv4, 64 bytes, one flow, frames as from a card".to_owned(),
            Condition::Socket => "from a program's socket (skb)".to_owned(),
            Condition::Flows(flows) => format!("{flows} flows"),
            Condition::Mix => "IMIX (64, 570, 1500 bytes: 7, 4, 1)".to_owned(),
            Condition::V6 => "IPv6, 80 bytes".to_owned(),
            Condition::BothWays => "both directions, every second packet each".to_owned(),
            Condition::Outputs(outputs) => format!("{outputs} outputs, a packet for each in turn"),
        }
    }

    fn links(self) -> Links {
        match self {
            Condition::Ordinary | Condition::Socket | Condition::Flows(_) | Condition::Mix | Condition::V6 => {
                Links::Row
            }
            Condition::BothWays => Links::BothWays,
            Condition::Outputs(outputs) => Links::Outputs(outputs),
        }
    }

    fn traffic(self, way: Way) -> Traffic<'static> {
        let is_seen = matches!(way, Way::Monitor | Way::RealTime);
        let seen_by = if is_seen { SeenBy::Modules(1) } else { SeenBy::Nobody };
        let port = if way == Way::Unmatched { OTHER_PORT } else { PORT };
        let ordinary = Traffic { seen_by, ..Traffic::new(BYTES, port) };
        match self {
            Condition::Ordinary | Condition::BothWays | Condition::Outputs(_) => ordinary,
            Condition::Socket => Traffic { socket: true, ..ordinary },
            Condition::Flows(flows) => Traffic { flows, ..ordinary },
            Condition::Mix => Traffic { mix: true, bytes: 1500, ..ordinary },
            Condition::V6 => Traffic { v6: true, bytes: 80, ..ordinary },
        }
    }
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Kernel,
    Unmatched,
    Monitor,
    /// The same with the real-time class.
    RealTime,
}

const WAYS: [Way; 3] = [Way::Kernel, Way::Unmatched, Way::Monitor];

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Kernel => "kernel, steered to the node's core",
            Way::Unmatched => "afxdp, unmatched",
            Way::Monitor => "afxdp, net-monitor",
            Way::RealTime => "afxdp, net-monitor, real-time",
        }
    }
}

/// Measures the conditions.
///
/// # Errors
/// A way does not work under one of them.
pub fn measure(plan: &Plan, programs: &Programs) -> Result<Measured> {
    let mut nets = Nets::up(Links::Row)?;
    let mut rows = Vec::new();
    for condition in CONDITIONS.into_iter().filter(|condition| is_wanted(plan, &condition.name())) {
        if nets.kernel.links != condition.links() {
            nets = Nets::up(condition.links())?;
        }
        let mut rates: [Vec<f64>; WAYS.len()] = Default::default();
        for _ in 0..plan.condition_rounds {
            for (way, rates) in WAYS.into_iter().zip(&mut rates) {
                let sink = if way == Way::Unmatched { Sink::Inside } else { Sink::Outside };
                let net = if way == Way::Kernel { &nets.kernel } else { &nets.node };
                net.prepare(Placement::Split, sink)?;
                let traffic = condition.traffic(way);
                let found = search(plan.search, &ONE, rates.last().copied(), &mut |pace| {
                    trial::run(net, programs, &traffic, pace)
                });
                let found = found.with_context(|| format!("{}, {}", condition.name(), way.name()))?;
                progress(&format!("{}, {}: {:.0} kpps", condition.name(), way.name(), kilo(found.rate(PDR))));
                rates.push(found.rate(PDR));
            }
        }
        for (way, rates) in WAYS.into_iter().zip(&rates) {
            let shown: Vec<f64> = rates.iter().copied().map(kilo).collect();
            rows.push(Row::new(format!("{}: {}", condition.name(), way.name()), "kpps", &shown));
        }
        let ratio: Vec<f64> = rates[2].iter().zip(&rates[0]).map(|(above, below)| above / below).collect();
        rows.push(Row::new(format!("{}: net-monitor / kernel", condition.name()), "ratio", &ratio));
    }
    let how = format!(
        "PDR of 0.1 %, lost or unseen, of the kernel steered to the node's core, of what no module wants, and of net-monitor, \
         one condition changed at a time, {} round(s); cores as above.",
        plan.condition_rounds
    );
    let mut figures = vec![Figure { name: "Conditions", how, rows }];
    figures.retain(|figure| !figure.rows.is_empty());
    if is_wanted(plan, HOG) {
        figures.push(hog(plan, programs)?);
    }
    ensure!(!figures.is_empty(), "no condition has one of these words: {}", plan.conditions.join(", "));
    Ok(Measured::from(figures))
}

fn is_wanted(plan: &Plan, name: &str) -> bool {
    plan.conditions.is_empty() || plan.conditions.iter().any(|word| name.contains(word.as_str()))
}

/// The kernel and a node over the same links.
struct Nets {
    kernel: Net,
    node: Net,
}

impl Nets {
    fn up(links: Links) -> Result<Nets> {
        Ok(Nets { kernel: steered(links)?, node: node(Way::Monitor, links)? })
    }
}

fn steered(links: Links) -> Result<Net> {
    let net = Net::with(links)?;
    for interface in links.entries() {
        super::pin::steer(&net.lab, "n1", interface, Some(NODE_CORE))?;
    }
    Ok(net)
}

/// A node with net-monitor for packets of either version.
fn node(way: Way, links: Links) -> Result<Net> {
    let mut net = Net::with(links)?;
    let [v4, back, v6] = [net.destination(), net.origin(), net.v6_destination()];
    let [user, other] = [net.lab.user("alice", &[&v4, &back])?, net.lab.user("bob", &[&v6])?];
    let more = if way == Way::RealTime { real_time_settings() } else { String::new() };
    net.start_netservd("afxdp", &more, &[user.clone(), other.clone()])?;
    let package = net.lab.package_in("net-monitor", &[Flavour::Wasm], &user)?;
    let filters = [&v4, &back].map(|prefix| format!("udp dst {prefix} port {PORT}"));
    let filters: Vec<&str> = filters.iter().map(String::as_str).take(links.entries().len()).collect();
    net.install_for(&user, &package, &filters, &[])?;
    let package = net.lab.package_in("net-monitor", &[Flavour::Wasm], &other)?;
    net.install_for(&other, &package, &[&format!("udp dst {v6} port {PORT}")], &[])?;
    Ok(net)
}

/// Measures a program on the node's core that wants all of it, with priorities as they are by default.
fn hog(plan: &Plan, programs: &Programs) -> Result<Figure> {
    let mut rows = Vec::new();
    for hogged in [false, true] {
        for way in [Way::Kernel, Way::Monitor, Way::RealTime] {
            let mut net = if way == Way::Kernel { steered(Links::Row)? } else { node(way, Links::Row)? };
            for pid in net.pids() {
                keep(pid)?;
            }
            net.receive_as(Placement::Split, Sink::Outside)?;
            if hogged {
                net.start_hog()?;
            }
            let mut outcomes: Vec<Outcome> = Vec::new();
            for _ in 0..plan.delay_rounds {
                let pace = Pace { rate: Some(HOGGED_RATE), seconds: plan.delay_seconds, timed: true, accounted: true };
                outcomes.push(trial::run(&net, programs, &Condition::Ordinary.traffic(way), &pace)?);
            }
            let of = |value: fn(&Outcome) -> f64| outcomes.iter().map(value).collect::<Vec<f64>>();
            let name = format!("{}{}", way.name(), if hogged { ", with a hog" } else { "" });
            let account = outcomes.last().and_then(|outcome| outcome.account.as_ref());
            let loss = Row::new(format!("{name}: lost or unseen"), "%", &of(|outcome| 100.0 * outcome.loss()))
                .note(account.map(super::account::Account::line).unwrap_or_default());
            let is_goal = hogged && way == Way::RealTime;
            rows.push(if is_goal { loss.goal(Goal::Hog) } else { loss });
            rows.push(Row::new(format!("{name}: 50 %"), "µs", &of(|outcome| outcome.latency_us.p50)));
            rows.push(Row::new(format!("{name}: 99 %"), "µs", &of(|outcome| outcome.latency_us.p99)));
            rows.push(Row::new(format!("{name}: 99.9 %"), "µs", &of(|outcome| outcome.latency_us.p999)));
            if hogged {
                net.lab.kill("n1", "hog")?;
            }
        }
    }
    let how = format!(
        "{:.0} kpps, single {BYTES}-byte packets at even distances, {} s each, {} rounds, without and with a program on the \
         node's core that never sleeps; node and program have the priority that programs have by default (nice 0), which \
         netservd has not in the other tables.",
        kilo(HOGGED_RATE),
        plan.delay_seconds,
        plan.delay_rounds
    );
    Ok(Figure { name: HOG, how, rows })
}
