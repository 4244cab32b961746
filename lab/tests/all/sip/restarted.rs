// SPDX-License-Identifier: Apache-2.0
//! A Kamailio that is killed and started again, and has lost its registrations: sip-edge confirms none of them.

use std::path::Path;
use std::time::{Duration, Instant};

use netserv_lab::netns::{is_root, wait_until};
use netserv_lab::provider::{Phones, SipProvider};
use netserv_lab::topology::Kind;
use netserv_lab::voip::rpc;
use netserv_skips::skipped;
use rustix::process::{Pid, Signal, kill_process};

use super::sip_digest::{Client, register};
use crate::common::{Driver, processes_under};

over_one_driver! {
    afxdp: []
    nfqueue: [a_server_that_has_begun_anew_is_asked_for_each_registration]
}

const LONG: Duration = Duration::from_secs(60);
/// Two readings of the metric and a TELL, on a busy machine.
const FORGOTTEN_MAX: Duration = Duration::from_secs(10);
const FEW: Phones = Phones { count: 20, first: 0, every_ms: 500, seconds: 3, forms: "notify", tcp: false };

/// Goal: a phone that Kamailio has lost by a restart is registered again at its next REGISTER, and can be called, though the edge confirmed it until
/// then and stays where it is; so is one whose registrations another phone has ended, however that one spells the address. Method: Kamailio, killed and started again between two readings of the agent's, which therefore does not take it for gone.
fn a_server_that_has_begun_anew_is_asked_for_each_registration(driver: Driver) {
    let test = "a_server_that_has_begun_anew_is_asked_for_each_registration";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    if !Path::new("/usr/sbin/kamailio").exists() {
        return skipped(test, "needs kamailio");
    }
    let mut provider = SipProvider::up(Some(driver.name()), Kind::Router).unwrap();
    provider.start_server(false).unwrap();
    provider.start_agent_by(&[("every-s = 0.25\nrate", "every-s = 2\nrate")]).unwrap();
    provider.phones(false, FEW).unwrap();
    let is_there =
        |provider: &SipProvider| ["n1", "n2"].iter().all(|node| provider.counter(node, "register").is_some());
    assert!(wait_until(LONG, || is_there(&provider)), "{}", provider.lab.log("sender", "agent"));

    for (number, v6) in [false, true].into_iter().enumerate() {
        let mut phone = Client::open(&provider, "receiver", v6, false);
        let mut cseq = 0;
        let mut refresh = |phone: &mut Client| {
            cseq += 1;
            phone.ask(&register("alice", number, cseq, "5062", "")).of()
        };
        assert_eq!([(); 3].map(|()| refresh(&mut phone)), ["200 of Kamailio", "200 of the edge", "200 of the edge"]);
        let is_known = |provider: &SipProvider| {
            rpc(&provider.lab, "ul.lookup", "\"location\", \"alice\"").is_ok_and(|said| said.contains("sip:alice@"))
        };
        assert!(is_known(&provider));
        // Kamailio tells users apart by their names alone: who ends alice's registrations by another address of hers ends them here, too.
        for (cseq, to) in
            [(1, "sip:alice@SERVER"), (2, "sip:alice@other.example"), (3, "tel:alice"), (4, "sip:%61lice:x@a;b=%40c")]
        {
            let ended = register("alice", 10 + number, cseq, "5062", "")
                .replace("Contact: <sip:alice@198.51.100.9:5062>", "Contact: *")
                .replace("Expires: 600", "Expires: 0")
                .replace("To: <sip:alice@example.org>", &format!("To: <{to}>"));
            let mut other = Client::open(&provider, "receiver", v6, false);
            assert_eq!(other.ask(&ended).of(), "200 of Kamailio", "{to}");
            assert!(!is_known(&provider), "{to}");
            assert_eq!([(); 2].map(|()| refresh(&mut phone)), ["200 of Kamailio", "200 of the edge"], "{to}");
            assert!(is_known(&provider), "{to}");
        }
        let kept = provider.counter("n2", "register").unwrap();

        kill_server(&mut provider);
        provider.start_server(false).unwrap();
        assert!(!is_known(&provider), "its registrations are in memory");
        let begun = Instant::now();
        let is_asked = || refresh(&mut phone) == "200 of Kamailio";
        assert!(wait_until(FORGOTTEN_MAX, is_asked), "{}", provider.lab.log("sender", "agent"));
        eprintln!("IPv6: {v6}: the server is asked after {:?}", begun.elapsed());
        assert!(is_known(&provider));
        assert_eq!(refresh(&mut phone), "200 of the edge", "as before");
        assert!(provider.counter("n2", "register").unwrap() > kept, "the module is the same one");
        assert_eq!(provider.agent().unwrap().rules[0].state, "on");
    }
}

/// Kills all processes of Kamailio's, as systemd does.
pub(super) fn kill_server(provider: &mut SipProvider) {
    let children = processes_under(provider.lab.pid("sender", "kamailio").unwrap());
    provider.lab.kill("sender", "kamailio").unwrap();
    for pid in children {
        // Some end with the first one.
        let _ = kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL);
    }
    assert!(wait_until(LONG, || provider.lab.sockets_at("sender", "udp", 5060) == 0));
}
