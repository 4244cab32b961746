// SPDX-License-Identifier: Apache-2.0
//! The switch of each application, which restores the plain way, and the lease that does so without its agent. That of sip-edge is in `sip.rs`,
//! that of media-relay in `homes.rs`.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::Driver;
use netserv_lab::netns::{is_root, wait_until};
use netserv_lab::patience::grown;
use netserv_lab::radio::{self, Listening, PORT};
use netserv_lab::website::{Website, page};
use netserv_skips::skipped;

const LONG: Duration = Duration::from_secs(60);
/// A second is the goal; here nothing is optimised, and others are at work.
const OFF_MAX: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 1 });
/// Of the rules.
const LEASE: Duration = Duration::from_secs(10);
/// What a node may take to end a module whose lease is over, on a busy machine.
const END_MAX: Duration = Duration::from_secs(5);
const PAGE_BYTES: u64 = 40_000;

/// Goal: pages come as the server sent them. Method: they are no longer compressed.
#[test]
fn pages_are_not_compressed_once_http_compressor_is_off() {
    let test = "pages_are_not_compressed_once_http_compressor_is_off";
    let Some(mut site) = up(test, Driver::Afxdp) else { return };
    site.start("http-compressor", "").unwrap();
    write_page(&site);
    check(&mut site, |site| site.fetch("page.html").unwrap().1 == PAGE_BYTES);
}

/// Goal: the server answers for each page. Method: answers say nothing of a cache.
#[test]
fn pages_are_the_servers_once_active_cdn_is_off() {
    let Some(mut site) = up("pages_are_the_servers_once_active_cdn_is_off", Driver::Nfqueue) else { return };
    site.start("active-cdn", "").unwrap();
    write_page(&site);
    check(&mut site, |site| {
        let url = format!("http://{}/page.html", site.lab.v4("sender"));
        let shown = site.lab.run("receiver", "curl", &["-s", "-i", "-m", "20", &url]).unwrap();
        let text = String::from_utf8_lossy(&shown.stdout).to_lowercase();
        assert!(text.starts_with("http/1.1 200"), "{text}");
        !text.contains("\ncache-status:")
    });
}

/// Goal: nobody looks at packets. Method: no node has the module, and pages come.
#[test]
fn packets_go_unseen_once_net_monitor_is_off() {
    let Some(mut site) = up("packets_go_unseen_once_net_monitor_is_off", Driver::Nfqueue) else { return };
    site.start_watching("net-monitor").unwrap();
    write_page(&site);
    check(&mut site, |site| {
        site.fetch("page.html").unwrap();
        ["n1", "n2"].iter().all(|node| site.module(node).is_none())
    });
}

/// Goal: each listener has a connection to Icecast of its own. Method: two who come have two.
#[test]
fn listeners_are_the_stations_once_stream_reflector_is_off() {
    let test = "listeners_are_the_stations_once_stream_reflector_is_off";
    if !Path::new("/usr/bin/icecast2").exists() {
        return skipped(test, "needs icecast2");
    }
    let Some(mut site) = up(test, Driver::Afxdp) else { return };
    radio::start_server(&mut site.lab, "sender").unwrap();
    radio::start_source(&mut site.lab, "sender").unwrap();
    site.start_by_flows("stream-reflector", PORT).unwrap();
    let mut round = 0;
    check(&mut site, |site| {
        round += 1;
        let into = site.lab.dir().join(format!("round-{round}"));
        let two = Listening { listeners: 2, titles: 0, seconds: 3, every_ms: 20, v6: false };
        let before = radio::listeners(&site.lab, "sender").unwrap();
        let listening = radio::start_listening(&site.lab, ("receiver", "sender"), two, &into).unwrap();
        let has_two = || radio::listeners(&site.lab, "sender").unwrap() >= before + 2;
        let are_two = wait_until(Duration::from_secs(1), has_two);
        let told = radio::heard(listening).unwrap();
        assert_eq!(told.cut, 0, "{told:?}");
        // Those of before have left.
        wait_until(LONG, || radio::listeners(&site.lab, "sender").unwrap() == 0);
        are_two && told.served == 2
    });
}

/// Has the rule's module come, switched off, come again, and end with its lease since its agent was killed. `is_plain` does what clients do, and
/// returns whether that went the plain way.
fn check(site: &mut Website, mut is_plain: impl FnMut(&Website) -> bool) {
    comes(site, &mut is_plain);
    let begun = Instant::now();
    site.switch(false).unwrap();
    assert!(wait_until(LONG, || is_without(site)), "{}", site.lab.log("sender", "agent"));
    let off = begun.elapsed();
    assert!(is_plain(site), "switched off, and not the plain way");
    site.switch(true).unwrap();
    comes(site, &mut is_plain);
    let begun = Instant::now();
    site.lab.kill("sender", "agent").unwrap();
    assert!(wait_until(LONG, || is_without(site)), "the modules stay without an agent");
    let ended = begun.elapsed();
    assert!(is_plain(site), "without an agent, and not the plain way");
    eprintln!("the plain way {off:?} after the switch, {ended:?} after the agent's end");
    assert!(off <= grown(OFF_MAX) && ended <= grown(LEASE + END_MAX), "{off:?}, {ended:?}");
}

/// Has clients come until the rule's module is in force on both nodes.
fn comes(site: &Website, is_plain: &mut impl FnMut(&Website) -> bool) {
    let is_in_force = || {
        let was_plain = is_plain(site);
        !was_plain && ["n1", "n2"].iter().all(|node| site.module(node).is_some())
    };
    assert!(wait_until(LONG, is_in_force), "{}", site.lab.log("sender", "agent"));
}

fn is_without(site: &Website) -> bool {
    ["n1", "n2"].iter().all(|node| site.module(node).is_none())
}

fn write_page(site: &Website) {
    std::fs::write(site.path("www/page.html"), page(usize::try_from(PAGE_BYTES).unwrap())).unwrap();
}

/// Builds the network; nothing without what it takes.
fn up(test: &str, driver: Driver) -> Option<Website> {
    if !is_root() {
        skipped(test, "not root, so no namespaces");
        return None;
    }
    Some(Website::up(Some(driver.name()), 0).unwrap())
}
