// SPDX-License-Identifier: Apache-2.0
//! A Kamailio that serves nobody, or says so, while its statistics can be read: sip-edge answers no pings for it.

use std::path::Path;
use std::time::{Duration, Instant};

use netserv_lab::netns::{is_root, wait_until};
use netserv_lab::provider::{Phones, SipProvider};
use netserv_lab::topology::Kind;
use netserv_lab::voip::rpc;
use netserv_skips::skipped;
use rustix::process::{Pid, Signal, kill_process};

use super::restarted::kill_server;
use super::sip_digest::{Client, register};
use crate::common::Driver;

over_one_driver! {
    afxdp: [no_ping_is_answered_for_a_server_that_does_not_serve]
    nfqueue: []
}

const LONG: Duration = Duration::from_secs(60);
const FEW: Phones = Phones { count: 20, first: 0, every_ms: 500, seconds: 3, forms: "notify", tcp: false };

/// Goal: who pings a server to know whether to go elsewhere learns it through the edge: that Kamailio's UDP processes hang, though the agent can
/// read its statistics, and that it answers pings with 503. Once it serves again, the edge answers for it. Method: the page's rule, with
/// `server-silence-s` of 3 s; two edges are on the path, so that it takes twice that time.
fn no_ping_is_answered_for_a_server_that_does_not_serve(driver: Driver) {
    let test = "no_ping_is_answered_for_a_server_that_does_not_serve";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    if !Path::new("/usr/sbin/kamailio").exists() {
        return skipped(test, "needs kamailio");
    }
    let mut provider = SipProvider::up(Some(driver.name()), Kind::Router).unwrap();
    provider.start_server(false).unwrap();
    provider.start_agent_with(", server-silence-s = \"3\"", 60).unwrap();
    provider.phones(false, FEW).unwrap();
    let is_there = |provider: &SipProvider| ["n1", "n2"].iter().all(|node| provider.counter(node, "options").is_some());
    assert!(wait_until(LONG, || is_there(&provider)), "{}", provider.lab.log("sender", "agent"));

    let mut client = Client::open(&provider, "receiver", false, false);
    let mut cseq = 0;
    let mut ping = || {
        cseq += 1;
        let ping = register("ping", 0, cseq, "5062", "").replace("REGISTER", "OPTIONS");
        client.asked(&ping).map_or_else(|| "nothing".to_owned(), |answer| answer.of())
    };
    let mut becomes = |wanted: &str| {
        let begun = Instant::now();
        let mut found = String::new();
        assert!(
            wait_until(LONG, || {
                found = ping();
                found == wanted
            }),
            "{found}, not {wanted}"
        );
        eprintln!("{wanted} after {:?}", begun.elapsed());
    };
    becomes("200 of the edge");
    let receivers = udp_receivers(&provider);
    assert!(receivers.len() >= 2, "{receivers:?}");
    let signal = |signal| receivers.iter().for_each(|pid| kill_process(*pid, signal).unwrap());
    signal(Signal::STOP);
    becomes("nothing");
    assert!(provider.statistic("rcv_requests").is_ok(), "its statistics can be read");
    assert_eq!(provider.agent().unwrap().rules[0].state, "on");
    signal(Signal::CONT);
    becomes("200 of the edge");

    kill_server(&mut provider);
    provider.start_server_with(&["DRAIN=1"]).unwrap();
    becomes("503 of Kamailio");
    kill_server(&mut provider);
    provider.start_server(false).unwrap();
    becomes("200 of the edge");
}

/// Returns the processes by which Kamailio takes datagrams.
fn udp_receivers(provider: &SipProvider) -> Vec<Pid> {
    let said = rpc(&provider.lab, "core.psx", "").unwrap();
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let all = said["result"].as_array().unwrap_or_else(|| panic!("{said}")).clone();
    let is_receiver =
        |process: &&serde_json::Value| process["DSC"].as_str().is_some_and(|what| what.contains("udp receiver"));
    let pids = all.iter().filter(is_receiver).filter_map(|process| process["PID"].as_i64());
    pids.filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?)).collect()
}
