// SPDX-License-Identifier: Apache-2.0
//! `./dev demo --app cdn`: a video site whose agent brings its cache to where viewers are, sends them there, and takes it away when they have
//! gone. Nobody types SETUP.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::telling::{excuse, hold, picture_folder, title};
use crate::patience::{Load, grown, wait_for};
use crate::videosite::{self, FILM, REGIONS, Times, VideoSite};
use crate::watching::{self, Watched};

/// How many requests bring the cache.
const COUNT: u32 = 5;
/// Its lease, and the time without viewers after which it goes, on a machine that is not busy. Others would wait longer; the time without
/// viewers is over that in which they count.
const LEASE: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_secs(12);
/// How long it may take until a module is compiled and there, on a machine that is not busy.
const INSTALL_WAIT: Duration = Duration::from_secs(90);
/// How long it may take until a module is gone once nobody has used it for long enough, on a machine that is not busy.
const REMOVE_WAIT: Duration = Duration::from_secs(60);
/// What is promised from the request that was enough to the first viewer who is sent on, with a module that the node has not and has
/// compiled before.
const PROMISED: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(1)];
/// Pixels that are clearly others where two names of places are written.
const TEXT_PIXELS_MIN: usize = 100;
/// Seconds of the film, and where the browser seeks to.
const FILM_S: u32 = 20;
const SEEK_S: u32 = 15;

/// Shows it. Pictures of what viewers see go to `target/demo/cdn`.
///
/// # Errors
/// Something did not do what the demo shows.
pub fn run() -> Result<()> {
    let begun = Instant::now();
    title(
        "A video site: nginx and netserv-agent as in dist/examples/nginx; viewers of two regions, each behind a node",
    );
    let mut site = VideoSite::up(None)?;
    // The cache is not to go while a busy machine starts a browser.
    let times = Times { count: COUNT, lease_s: grown(LEASE).as_secs(), idle_s: grown(IDLE).as_secs() };
    // Each node lays its place over the film.
    site.start(times, ", process = \"/video/*.mp4 overlay\", overlay = \"{place}\"")?;
    videosite::write_film(&site.path("www"), FILM_S)?;
    println!("  sender {} ── r ── n1 (Rome) ── v1", site.lab.v4("sender"));
    println!("                       └── n2 (Oslo) ── v2");
    let pictures = picture_folder("cdn")?;
    let [rome, oslo] = REGIONS;

    title("Viewers come in Rome");
    arrive(&site, times, rome, PROMISED[0])?;
    ensure!(site.module(oslo.0).is_none(), "a node has the cache that nobody is near to");
    let first = watch(&site, rome, &pictures)?;
    hits(&site, rome.0);

    title("Demand moves: viewers come in Oslo, and none in Rome any more");
    let left = Instant::now();
    arrive(&site, times, oslo, PROMISED[0])?;
    let second = watch(&site, oslo, &pictures)?;
    let (above, below) = first.differs(&second)?;
    ensure!(above == 0 && below >= TEXT_PIXELS_MIN, "the films differ in {above} pixels above and {below} below");
    println!(
        "  both show the same second of the film; {below} pixels differ, where each node's place is written over it"
    );
    println!(
        "  pictures: {}",
        [rome.0, oslo.0].map(|node| picture(&pictures, node).display().to_string()).join(" and ")
    );
    println!("  the agent's page: {}", own_page(&site, &pictures)?.display());
    let is_gone = || {
        let _ = site.follow(oslo.1, FILM);
        site.module(rome.0).is_none()
    };
    let waited = wait_for("Rome to lose the cache", Duration::from_secs(times.idle_s) + REMOVE_WAIT, is_gone);
    waited.map_err(|gave_up| gave_up.seeing(site.lab.log("sender", "agent")))?;
    println!("  REMOVE: Rome lost it {:.1} s after its last viewer", left.elapsed().as_secs_f64());
    hits(&site, oslo.0);
    ensure!(site.module(oslo.0).is_some(), "Oslo lost the cache though viewers come");
    let setups = [rome, oslo].map(|(node, _, _)| site.setups(node));
    println!("  sessions of SETUPs so far at n1 and n2: {} and {}", setups[0], setups[1]);
    // Where compiling takes longer than a SETUP, the next one finds it done.
    let is_slow = excuse(cfg!(debug_assertions), Load::now()).is_some();
    ensure!(setups == [1, 1] || is_slow, "more than one SETUP for a region");

    title("Viewers come in Rome again, where the node has the module compiled still");
    arrive(&site, times, rome, PROMISED[1])?;

    title("The agent goes away: the site answers by itself");
    site.lab.kill("sender", "agent")?;
    let visit = site.ask(rome.1, FILM)?;
    ensure!(visit.code == 200, "without its agent the site says {visit:?}");
    println!("  {} bytes from the site itself", visit.bytes);
    println!("\n  the whole demo: {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Has enough viewers come, and shows how long it takes until they are sent to the node.
fn arrive(site: &VideoSite, times: Times, (node, viewer, place): (&str, &str, &str), promised: Duration) -> Result<()> {
    let (took, visit) = site.come(viewer, times, INSTALL_WAIT)?;
    ensure!(visit.node == node && visit.control == "no-store", "{viewer} is sent elsewhere: {visit:?}");
    println!("  {} requests from {place}, and the next viewer is sent to {}", times.count, visit.to);
    // Nothing is optimised in a debug build, above all not what compiles modules.
    hold("that", took, promised)?;
    for number in 1..=2 {
        let visit = site.follow(viewer, FILM)?;
        ensure!(visit.code == 200, "the node says {visit:?}");
        println!("  request {number} at the node: {} bytes, {}", visit.bytes, visit.cache);
    }
    Ok(())
}

/// Has a browser go to the site, which sends it to the node, play and seek. Keeps its picture.
fn watch(site: &VideoSite, (node, viewer, place): (&str, &str, &str), pictures: &Path) -> Result<Watched> {
    let watched = watching::watch(site, viewer, SEEK_S)?;
    let module = site.module(node).context("the node has no module")?;
    let is_own = module.addresses.iter().any(|address| watched.host == address.to_string());
    ensure!(is_own, "the browser is at {}, not at {node}", watched.host);
    println!("  a browser in {place} asks the site, is at {}, plays, and seeks to {SEEK_S} s", watched.host);
    std::fs::write(picture(pictures, node), &watched.picture)?;
    Ok(watched)
}

fn picture(pictures: &Path, node: &str) -> PathBuf {
    pictures.join(format!("{node}.png"))
}

/// Has the provider's browser open the agent's page. Returns where its picture is.
fn own_page(site: &VideoSite, pictures: &Path) -> Result<PathBuf> {
    let path = pictures.join("agent.png");
    std::fs::write(&path, watching::page(site)?)?;
    Ok(path)
}

fn hits(site: &VideoSite, node: &str) {
    let counters = site.module(node).map(|module| module.counters).unwrap_or_default();
    println!("  counters at {node}: {counters:?}");
}
