// SPDX-License-Identifier: Apache-2.0
//! `./dev demo --app sip`: an unmodified Kamailio whose agent brings modules to the nodes before its phones: sip-edge, which answers
//! keep-alives and controls overload, media-relay, and net-monitor with its page. Nobody types SETUP.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use super::calls;
use super::telling::title;
use crate::callers::{Told as Calls, enough_from};
use crate::netns::NAT_MEMORY;
use crate::patience::{Load, grown, wait_for};
use crate::provider::{Phones, SipProvider, told};
use crate::topology::Kind;

const PHONES: Phones = Phones { count: 100, first: 0, every_ms: 500, seconds: 4, forms: "", tcp: false };
/// Calls a second of two sources.
const CALLS: [(bool, u32); 2] = [(false, 60), (false, 740)];
/// How long it may take until modules are compiled and there, or gone, on a machine that is not busy.
const INSTALL_WAIT: Duration = Duration::from_secs(90);
/// How long phones may take to register, on a machine that is not busy.
const REGISTER_WAIT: Duration = Duration::from_secs(20);
/// How long it may take until the server does what it can do, on a machine that is not busy, and for how many seconds it is to do that.
const STEADY_WAIT: Duration = Duration::from_secs(90);
const STEADY_SECONDS: u32 = 4;

/// Shows it.
///
/// # Errors
/// Something did not do what the demo shows.
pub fn run() -> Result<()> {
    let begun = Instant::now();
    keep_alives()?;
    calls::run()?;
    overload()?;
    println!("\n  the whole demo: {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

fn keep_alives() -> Result<()> {
    title("A SIP provider: Kamailio and netserv-agent on one machine, two nodes on the way to its phones");
    let mut provider = SipProvider::up(None, Kind::Nat)?;
    provider.start_server(false)?;
    provider.start_agent()?;
    println!(
        "  sender {} ── n1 ── r (plain router) ── n2 ── home (NAT) ── phones {}",
        provider.server(false),
        provider.lab.v4("receiver")
    );

    title("Phones come, and the agent brings the module to the nodes before them");
    let first = Instant::now();
    let phones = provider.keep_phones(false, Phones { forms: "notify,options", ..PHONES })?;
    has_edge(&provider, "notify")?;
    println!(
        "  from the first phone to the module on both nodes, compiled there: {:.1} s",
        first.elapsed().as_secs_f64()
    );
    told(phones)?;
    for deployment in provider.agent()?.deployments {
        let nodes: Vec<String> = deployment.nodes.iter().map(|node| node.node.to_string()).collect();
        println!("  netserv agent status: rule {} is {} at {}", deployment.rule, deployment.health, nodes.join(", "));
    }

    title("A hundred phones keep themselves reachable in five ways, each twice a second");
    for v6 in [false, true] {
        let before = provider.statistic("rcv_requests")?;
        let told = provider.phones(v6, PHONES)?;
        // Each phone registers once.
        let reached = provider.statistic("rcv_requests")? - before - PHONES.count as u64;
        let version = if v6 { "IPv6" } else { "IPv4" };
        println!(
            "  {version}: {} of {} keep-alives answered, 95 of 100 within {:.1} ms; {reached} reached Kamailio",
            told.answered,
            told.sent,
            Duration::from_micros(told.p95_us).as_secs_f64() * 1000.0
        );
        ensure!(told.registered == PHONES.count && reached == 0, "{told:?}, {reached} reached Kamailio");
        ensure!(told.answered + PHONES.count / 10 >= told.sent, "{told:?}");
    }
    println!("  counters at n2: {:?}", provider.counters("n2").unwrap_or_default());

    title("Its NAT forgets a phone that is silent for five seconds; a hundred that are not are called from outside");
    let kept = Phones { every_ms: 3000, ..PHONES };
    let before = provider.statistic("rcv_requests")?;
    let phones = provider.keep_phones(false, kept)?;
    let reached = || provider.statistic("rcv_requests").map(|now| now - before);
    let has_all = || reached().is_ok_and(|reached| reached >= kept.count as u64);
    let waited = wait_for("each phone to register", REGISTER_WAIT, has_all);
    waited.map_err(|gave_up| gave_up.seeing(format!("requests that reached Kamailio: {:?}", reached())))?;
    std::thread::sleep(NAT_MEMORY);
    let taken = provider.call_phones(false, kept, 50)?;
    told(phones)?;
    println!("  {taken} of {} take their call", kept.count);
    ensure!(taken == kept.count, "{taken} take their call");

    title("The switch: netserv agent off sip");
    let begun = Instant::now();
    provider.switch(false)?;
    let is_gone = || ["n1", "n2"].iter().all(|node| provider.counters(node).is_none());
    let waited = wait_for("both nodes to lose the module", INSTALL_WAIT, is_gone);
    waited.map_err(|gave_up| gave_up.seeing(provider.lab.log("sender", "agent")))?;
    println!("  no node has the module any more after {:.0} ms", begun.elapsed().as_secs_f64() * 1000.0);
    Ok(())
}

fn overload() -> Result<()> {
    title("A Kamailio whose only process takes 5 ms for each call: 180 a second; 60 and 740 are sent");
    let mut provider = SipProvider::up(None, Kind::Router)?;
    provider.start_server(true)?;
    let plain = provider.callers(&CALLS, 6)?;
    shown("without the module", &plain);
    provider.start_agent()?;
    let phones = provider.keep_phones(false, Phones { forms: "notify", ..PHONES })?;
    has_edge(&provider, "rejected")?;
    told(phones)?;
    let time = grown(STEADY_WAIT).as_secs();
    println!("  calls until the server does what it can, for up to {time} s ({})", Load::now());
    let edge = provider.callers_until(&CALLS, time, |edge| steady_from(edge).is_some())?;
    shown("with it, from the first second on", &edge);
    let Some((from, answered)) = steady_from(&edge) else {
        bail!("the server does less than it could for {time} s ({}): {edge:?}", Load::now());
    };
    let [little, much] = [0, 1].map(|source| answered[source] / STEADY_SECONDS);
    println!("  from second {} on, for {STEADY_SECONDS}: {little} of 60 and {much} of 740 a second", from + 1);
    println!("  503s by the nodes: {}; their ACKs ended there, too", edge[0].rejected + edge[1].rejected);
    Ok(())
}

/// Waits until both nodes have sip-edge, with a counter of its.
fn has_edge(provider: &SipProvider, counter: &str) -> Result<()> {
    let is_there = || ["n1", "n2"].iter().all(|node| provider.counter(node, counter).is_some());
    let waited = wait_for("both nodes to run the module", INSTALL_WAIT, is_there);
    Ok(waited.map_err(|gave_up| gave_up.seeing(provider.lab.log("sender", "agent")))?)
}

/// Returns the second from which on the server did for a while what it can do, and the source that asks for little had that. How long
/// that takes depends on what else the machine does.
fn steady_from(edge: &[Calls]) -> Option<(usize, Vec<u32>)> {
    let rate = |answered: u32| answered / STEADY_SECONDS;
    enough_from(edge, STEADY_SECONDS, |calls| rate(calls[0]) >= 54 && rate(calls[0] + calls[1]) >= 110)
}

fn shown(what: &str, told: &[Calls]) {
    println!("  answered in each second {what}:");
    for (calls, (_, rate)) in told.iter().zip(CALLS) {
        println!("    the source of {rate:>3}: {:?}; without any answer: {}", calls.answered, calls.lost);
    }
}
