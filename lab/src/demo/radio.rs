// SPDX-License-Identifier: Apache-2.0
//! `./dev demo --app radio`: a radio station whose agent brings AMnet's reflector before its listeners. Nobody types SETUP.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use netserv_model::request::ModuleState;

use super::telling::title;
use crate::listeners::Told;
use crate::patience::wait_for;
use crate::radio::{self, Listening, PORT};
use crate::website::Website;

/// How long it may take until modules are compiled and there, on a machine that is not busy.
const INSTALL_WAIT: Duration = Duration::from_secs(90);
/// Listeners once the module is there, and for how long they listen at least.
const LISTENERS: usize = 50;
const SECONDS: u64 = 14;
/// How long the source is away.
const OUTAGE: Duration = Duration::from_secs(4);

/// Shows it.
///
/// # Errors
/// Something did not do what the demo shows.
pub fn run() -> Result<()> {
    let begun = Instant::now();
    title(
        "A radio station: icecast2, its source ffmpeg, and netserv-agent on one machine; two nodes on the way to its listeners",
    );
    let mut site = Website::up(None, 0)?;
    route(&site)?;
    site.start_by_flows("stream-reflector", PORT)?;
    radio::start_server(&mut site.lab, "sender")?;
    radio::start_source(&mut site.lab, "sender")?;
    println!("  sender {} ── n1 ── r (plain router) ── n2 ── receiver", site.lab.v4("sender"));
    println!("  http://{}:{PORT}/live.mp3 is MP3 of 128 kbit/s", site.lab.v4("sender"));

    title("Three listeners come; the agent sees their connections to Icecast, and brings the module");
    let (folder, first) = (site.path("first"), Instant::now());
    let early = Listening { listeners: 3, titles: 1, seconds: 10, every_ms: 300, v6: false };
    let early = radio::keep_listening(&site.lab, ("receiver", "sender"), early, &folder)?;
    let is_there =
        || ["n1", "n2"].iter().all(|node| site.module(node).is_some_and(|module| module.state == ModuleState::Running));
    let waited = wait_for("both nodes to run the module", INSTALL_WAIT, is_there);
    waited.map_err(|gave_up| gave_up.seeing(site.lab.log("sender", "agent")))?;
    println!(
        "  on both nodes {:.1} s after the first one; Icecast has {} connections",
        first.elapsed().as_secs_f64(),
        radio::listeners(&site.lab, "sender")?
    );
    shown(&radio::heard(early)?);

    title("Fifty come; Icecast has one of them");
    let folder = site.path("fifty");
    let many = Listening { listeners: LISTENERS, titles: LISTENERS / 2, seconds: SECONDS, every_ms: 20, v6: false };
    let many = radio::keep_listening(&site.lab, ("receiver", "sender"), many, &folder)?;
    let has_one = |site: &Website| radio::listeners(&site.lab, "sender").is_ok_and(|count| count == 1);
    let listening = |site: &Website| site.module("n2")?.counters.get("listeners").copied();
    let has_all = || listening(&site) == Some(LISTENERS as u64) && has_one(&site);
    let waited = wait_for("all to listen by one connection to Icecast", INSTALL_WAIT, has_all);
    waited.map_err(|gave_up| gave_up.seeing(connections(&site, listening(&site))))?;
    println!("  Icecast has 1 connection");
    radio::stop_source(&mut site.lab, "sender")?;
    println!("  the source is away");
    std::thread::sleep(OUTAGE);
    radio::start_source(&mut site.lab, "sender")?;
    let waited = wait_for("the stream to be fetched again", INSTALL_WAIT, || has_one(&site));
    waited.map_err(|gave_up| gave_up.seeing(connections(&site, listening(&site))))?;
    println!("  it is back after {} s, and so is the stream", OUTAGE.as_secs());
    let told = radio::heard(many)?;
    shown(&told);
    ensure!(told.served == LISTENERS && told.cut == 0 && told.broken == 0, "not all were served");
    println!("  ffmpeg and mpg123 decode what {} of them heard without an error", radio::decode(&folder)?.len());
    for node in ["n1", "n2"] {
        println!("  counters at {node}: {:?}", site.module(node).map(|module| module.counters).unwrap_or_default());
    }
    println!("\n  the whole demo: {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Does the operators' part: the prefixes of the nodes' containers are routed to the nodes.
fn route(site: &Website) -> Result<()> {
    let lab = &site.lab;
    let (first, second, third) =
        (lab.topology().interfaces(0), lab.topology().interfaces(1), lab.topology().interfaces(2));
    for (machine, prefix, via) in [
        ("sender", "default", first.1.v4),
        ("n1", "10.99.2.0/29", second.1.v4),
        ("r", "10.99.1.0/29", second.0.v4),
        ("r", "10.99.2.0/29", third.1.v4),
        ("n2", "10.99.1.0/29", third.0.v4),
    ] {
        lab.run(machine, "ip", &["route", "add", prefix, "via", &via.to_string()])?;
    }
    Ok(())
}

/// Says who listens to whom.
fn connections(site: &Website, listening: Option<u64>) -> String {
    format!("{listening:?} listen at n2, and Icecast has {:?} connections", radio::listeners(&site.lab, "sender"))
}

fn shown(told: &Told) {
    println!(
        "  {} served, {} cut, {} told the title; each heard {:.1} s or more, and waited {:.1} s at most",
        told.served,
        told.cut,
        told.titled,
        seconds(told.heard_ms_least),
        seconds(told.silent_ms_most)
    );
}

#[allow(clippy::cast_precision_loss, reason = "shown with one decimal")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}
