// SPDX-License-Identifier: Apache-2.0
//! A SIP server that says its load in Vias (RFC 7339, RFC 7415), and sip-edge that asks for it in its clients' place.

use std::path::Path;
use std::time::Duration;

use crate::common::Driver;
use netserv_lab::netns::{is_root, wait_until};
use netserv_lab::node::workspace;
use netserv_lab::provider::SipProvider;
use netserv_lab::topology::Kind;
use netserv_lab::voip::bracketed;
use netserv_skips::skipped;

over_one_driver! {
    afxdp: []
    nfqueue: [each_client_is_kept_to_what_the_server_says_to_it]
}

const SECONDS: u64 = 5;
/// How long what the server says counts, and a little.
const VALIDITY: Duration = Duration::from_millis(3100);
/// Calls that each client begins in a second.
const OFFERED: u32 = 40;

/// Goal: clients that know nothing of RFC 7339 are kept to the rate, or the loss, that the server says to them, over both versions of IP.
/// Method: sipp is the server, which fails calls in which it is not asked; callers that do not slow down.
fn each_client_is_kept_to_what_the_server_says_to_it(driver: Driver) {
    let test = "each_client_is_kept_to_what_the_server_says_to_it";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    if !Path::new("/usr/bin/sipp").exists() {
        return skipped(test, "needs sipp");
    }
    let mut provider = SipProvider::up(Some(driver.name()), Kind::Router).unwrap();
    provider.install_edge(&["oc=on"]).unwrap();
    for v6 in [false, true] {
        for (limit, least, most) in
            [("oc=8;oc-algo=\"rate\";oc-validity=3000", 35, 60), ("oc=75;oc-algo=\"loss\";oc-validity=3000", 20, 90)]
        {
            // Nothing of what was said before counts any more.
            std::thread::sleep(VALIDITY);
            start_server(&mut provider, v6, limit);
            let told = provider.callers(&[(v6, OFFERED)], SECONDS).unwrap().remove(0);
            let (began, answered): (u32, u32) = (told.began.iter().sum(), told.answered.iter().sum());
            assert_eq!((told.lost, answered + told.rejected), (0, began), "{limit}: {told:?}");
            assert!((least..=most).contains(&answered), "IPv6: {v6}, {limit}: {answered} of {told:?}");
            provider.lab.stop("sender", "oc").unwrap();
        }
    }
}

fn start_server(provider: &mut SipProvider, v6: bool, limit: &str) {
    let scenario = std::fs::read_to_string(workspace().join("lab/voip/oc.xml")).unwrap();
    let file = provider.path("oc.xml");
    std::fs::write(&file, scenario.replace("LIMIT", limit)).unwrap();
    let own = bracketed(provider.server(v6).ip());
    let mut command = provider.lab.command("sender", "sipp");
    command.arg("-sf").arg(file).args(["-i", &own, "-p", "5060", "-nostdin"]).current_dir(provider.lab.dir());
    provider.lab.start("sender", "oc", &mut command).unwrap();
    let is_up = wait_until(Duration::from_secs(10), || provider.lab.sockets_at("sender", "udp", 5060) >= 1);
    assert!(is_up, "{}", provider.lab.log("sender", "oc"));
}
