// SPDX-License-Identifier: Apache-2.0
//! Calls between phones behind NATs: media-relay and net-monitor with its page, brought by the agent. A part of `./dev demo --app sip`.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::telling::title;
use crate::homes::{Heard, Homes, PHONES, TOKEN};
use crate::patience::{grown, wait_for};

/// How long phones talk.
const TALK: Duration = Duration::from_secs(6);
/// Packets that must be heard of these; 50 are sent in a second.
const HEARD_MIN: usize = 250;
/// How long it may take until modules are compiled and there, or gone, on a machine that is not busy.
const INSTALL_WAIT: Duration = Duration::from_secs(90);
/// How long the page, and counters, may take to show what passed, on a machine that is not busy.
const PAGE_WAIT: Duration = Duration::from_secs(20);
/// How long the page's server is listened to, on a machine that is not busy.
const FETCH: Duration = Duration::from_secs(3);
/// One packet in so many may pass net-monitor unseen on a busy machine.
const UNSEEN_ONE_IN: u64 = 100;

/// Shows it.
///
/// # Errors
/// Something did not do what the demo shows.
pub fn run() -> Result<()> {
    title("A SIP provider whose phones are in two homes, each behind a NAT: Kamailio, and no relay");
    let mut homes = Homes::up(None)?;
    homes.start_server()?;
    homes.start_phones(false)?;
    println!("  sender {} ─┬ r ── n1 ── homea (NAT {}) ── alice", homes.server(false), homes.home(0));
    println!("                    └ r ── n2 ── homeb (NAT {}) ── bob", homes.home(1));
    let deaf = homes.call_without_relay(0, Duration::from_secs(2))?;
    shown(&deaf);
    ensure!(deaf.iter().all(|heard| heard.way.sent > 0 && heard.way.heard == 0), "they hear each other: {deaf:?}");

    title("The agent sees where its phones are, and brings a relay before each home, and a page");
    let begun = Instant::now();
    homes.start_agent()?;
    homes.wait_for_relays(INSTALL_WAIT)?;
    println!("  there after {:.1} s, compiled on the nodes", begun.elapsed().as_secs_f64());
    for deployment in homes.agent()?.deployments {
        let nodes: Vec<String> = deployment.nodes.iter().map(|node| node.node.to_string()).collect();
        println!("  netserv agent status: rule {} is {} at {}", deployment.rule, deployment.health, nodes.join(", "));
    }

    for caller in [0, 1] {
        let (name, other) = (PHONES[caller].0, PHONES[1 - caller].0);
        let node = ["n1", "n2"][caller];
        title(&format!("{name} calls {other}: the relay of {name}'s region, {} on {node}", homes.relay(caller, false)));
        let before = relayed(&homes, caller)?;
        let heard = homes.call(caller, false, TALK)?;
        shown(&heard);
        heard.iter().try_for_each(|heard| heard.check(HEARD_MIN))?;
        let sent = heard.iter().map(|heard| heard.way.sent as u64).sum::<u64>();
        let passed = || relayed(&homes, caller).map(|now| now - before);
        let has_all = || passed().is_ok_and(|passed| passed >= sent);
        let waited = wait_for(&format!("the relay on {node} to count all {sent} packets"), PAGE_WAIT, has_all);
        waited.map_err(|gave_up| gave_up.seeing(format!("counted: {:?}", passed())))?;
        println!("  packets by the relay on {node}, those of RTCP among them: {}", passed()?);
    }
    let calls = || [0, 1].map(|caller| counter(&homes, caller, "calls"));
    let waited = wait_for("the relays to end the calls that are over", PAGE_WAIT, || calls() == [0, 0]);
    waited.map_err(|gave_up| gave_up.seeing(format!("calls: {:?}", calls())))?;

    page(&homes)?;
    off(&homes)
}

/// Shows what the page of net-monitor says of the media that passed n1.
fn page(homes: &Homes) -> Result<()> {
    title(&format!("http://{}/, from alice's home: what passed n1, live", homes.page()?));
    let mut html = String::new();
    let waited = wait_for("the page to be there", PAGE_WAIT, || {
        html = fetch(homes, "/", &[]).unwrap_or_else(|error| error.to_string());
        html.contains("<title>Packets</title>")
    });
    waited.map_err(|gave_up| gave_up.seeing(html.as_str()))?;
    let relayed = relayed(homes, 0)?;
    let relay = homes.relay(0, false).to_string();
    let mut tables = Value::Null;
    let mut shown = 0_u64;
    // Counts are as old as a second. On a busy machine some packets pass a module unseen.
    let waited = wait_for("the page to show the packets of the relay", PAGE_WAIT, || {
        tables = events(homes).unwrap_or_default();
        let rows = tables["flows"]["rows"].as_array().into_iter().flatten();
        let of_relay = rows.filter(|row| row["source"] == *relay || row["destination"] == *relay);
        shown = of_relay.filter_map(|row| row["packets"].as_u64()).sum();
        shown <= relayed && (relayed - shown) * UNSEEN_ONE_IN <= relayed
    });
    waited.map_err(|gave_up| gave_up.seeing(format!("{shown} of {relayed} packets, in {tables}")))?;
    for row in tables["flows"]["rows"].as_array().into_iter().flatten() {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        println!(
            "  {:<10} → {:<10} TTL {:>2} {:>6} packets {:>8} bytes",
            text("source"),
            text("destination"),
            row["ttl"],
            row["packets"],
            row["bytes"]
        );
    }
    let number =
        |path: &str| tables.pointer(path).and_then(Value::as_u64).with_context(|| format!("no {path} in {tables}"));
    let (seen, counted) = (number("/seen")?, number("/counted/packets")?);
    println!(
        "  by the stream of its events: {counted} packets counted of {seen}, {shown} of media, of {relayed} by the relay"
    );
    ensure!(seen == counted, "not all packets are counted: {tables}");
    Ok(())
}

/// Shows that the plain way is back.
fn off(homes: &Homes) -> Result<()> {
    title("The switch: netserv agent off, for each rule");
    let begun = Instant::now();
    for rule in ["media-1", "media-2", "watch"] {
        crate::agent::switch(&homes.lab, rule, false)?;
    }
    let is_gone = || ["n1", "n2"].iter().all(|node| homes.lab.modules(node).is_ok_and(|list| list.modules.is_empty()));
    let waited = wait_for("both nodes to lose all modules", INSTALL_WAIT, is_gone);
    waited.map_err(|gave_up| gave_up.seeing(homes.lab.log("sender", "agent")))?;
    println!("  no node has a module any more after {:.0} ms", begun.elapsed().as_secs_f64() * 1000.0);
    Ok(())
}

fn shown(heard: &[Heard; 2]) {
    for Heard { way, hz, played_hz } in heard {
        println!(
            "  {played_hz:>4} Hz in {} packets: {} heard, {} lost between, {} before the other NAT was open, {} behind the end; {hz:.0} Hz heard",
            way.sent, way.heard, way.lost, way.early, way.late
        );
    }
}

/// Returns the packets that came to a relay's ports.
fn relayed(homes: &Homes, caller: usize) -> Result<u64> {
    let counters = homes.counters(caller).context("the relay is gone")?;
    let came = counters.iter().filter(|(name, _)| *name == "packets" || name.starts_with("dropped-"));
    Ok(came.map(|(_, count)| count).sum())
}

fn counter(homes: &Homes, caller: usize, name: &str) -> u64 {
    homes.counters(caller).and_then(|counters| counters.get(name).copied()).unwrap_or_default()
}

/// Returns what the last event of the page's tables says.
fn events(homes: &Homes) -> Option<Value> {
    let events = fetch(homes, "/events", &["-N"]).ok()?;
    let (_, tables) = events.rsplit_once("event: tables\ndata: ")?;
    serde_json::from_str(tables.lines().next()?).ok()
}

/// Returns what the page's server says in [`FETCH`]; a stream of events has no end.
fn fetch(homes: &Homes, path: &str, more: &[&str]) -> Result<String> {
    let mut curl = homes.lab.command("alice", "curl");
    curl.args(["-sS", "-m", &grown(FETCH).as_secs().to_string(), "-u", &format!("any:{TOKEN}")])
        .args(more)
        .arg(format!("http://{}{path}", homes.page()?));
    let output = curl.output()?;
    let said = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    Ok(String::from_utf8_lossy(&said).into_owned())
}
