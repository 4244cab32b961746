// SPDX-License-Identifier: Apache-2.0
//! Where a phone is, in what it is told: the edge says what Kamailio says, and answers where the phone is.

use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use netserv_lab::netns::{is_root, wait_until};
use netserv_lab::provider::{Phones, SipProvider};
use netserv_lab::topology::Kind;
use netserv_lab::voip::bracketed;
use netserv_skips::skipped;

use super::sip_digest::{Client, register};
use crate::common::Driver;

over_one_driver! {
    afxdp: [phones_behind_one_nat_get_their_own_answers]
    nfqueue: [a_phone_on_a_connection_reads_one_port_of_its_own]
}

const LONG: Duration = Duration::from_secs(60);
const SILENCE: Duration = Duration::from_secs(1);
const FEW: Phones = Phones { count: 20, first: 0, every_ms: 500, seconds: 3, forms: "notify", tcp: false };

/// Goal: a phone reads the same port in `rport` of Kamailio's answers and of the edge's, though Kamailio sees another one than the edge does.
fn a_phone_on_a_connection_reads_one_port_of_its_own(driver: Driver) {
    let Some(provider) = up("a_phone_on_a_connection_reads_one_port_of_its_own", driver, Kind::Router) else { return };
    for (number, v6) in [false, true].into_iter().enumerate() {
        let mut phone = Client::open(&provider, "receiver", v6, true);
        let mut told = Vec::new();
        for cseq in 1..4 {
            let answer = phone.ask(&register("alice", number, cseq, "5062", ""));
            told.push((answer.of(), said(&answer.0)));
        }
        assert_eq!([&told[0].0, &told[1].0, &told[2].0], ["200 of Kamailio", "200 of the edge", "200 of the edge"]);
        assert!(told[0].1.is_some() && told.iter().all(|one| one.1 == told[0].1), "IPv6: {v6}: {told:?}");
    }
}

/// Goal: a phone without `rport` behind a NAT gets the answers to its own pings, and another one behind the same NAT, whose port is in the first one's
/// Via, gets none of them. Method: the second one has the port at the NAT that the first one says.
fn phones_behind_one_nat_get_their_own_answers(driver: Driver) {
    let Some(provider) = up("phones_behind_one_nat_get_their_own_answers", driver, Kind::Nat) else { return };
    for v6 in [false, true] {
        let own = if v6 { IpAddr::from(provider.lab.v6("receiver")) } else { provider.lab.v4("receiver").into() };
        let server = provider.server(v6);
        let phones = [15_060, 15_061].map(|port| {
            let socket = provider.lab.within("receiver", move || UdpSocket::bind((own, port)).unwrap()).unwrap();
            socket.connect(server).unwrap();
            socket.set_read_timeout(Some(SILENCE)).unwrap();
            socket
        });
        // Both say the first one's port, as phones do that all think they are at 5060.
        let mut room = [0; 2000];
        for (phone, other) in [(0, 1), (1, 0)] {
            let ping = format!(
                "OPTIONS sip:{host} SIP/2.0\r\nVia: SIP/2.0/UDP {own}:15060;branch=z9hG4bK{phone}\r\nFrom: <sip:a@b>;tag={phone}\r\n\
                 To: <sip:{host}>\r\nCall-ID: call{phone}\r\nCSeq: 1 OPTIONS\r\nUser-Agent: a phone with a name of some length\r\n\r\n",
                host = bracketed(server.ip()),
                own = bracketed(own),
            );
            phones[phone].send(ping.as_bytes()).unwrap();
            let length = phones[phone].recv(&mut room).unwrap();
            let answer = String::from_utf8_lossy(&room[..length]);
            assert!(answer.starts_with("SIP/2.0 200") && answer.contains(&format!("call{phone}")), "{answer}");
            assert!(
                phones[other].recv(&mut room).is_err(),
                "IPv6: {v6}: phone {other} got an answer of phone {phone}'s"
            );
        }
    }
    assert!(["n1", "n2"].iter().any(|node| provider.counter(node, "options").is_some_and(|count| count >= 4)));
}

/// Returns what an answer says to `rport`.
fn said(answer: &str) -> Option<String> {
    let via = answer.lines().find(|line| line.starts_with("Via:"))?;
    via.split(';').find_map(|part| part.trim().strip_prefix("rport=")).map(str::to_owned)
}

/// Starts nodes with sip-edge before Kamailio; nothing without what it takes.
fn up(test: &str, driver: Driver, home: Kind) -> Option<SipProvider> {
    if !is_root() {
        skipped(test, "not root, so no namespaces");
        return None;
    }
    if !Path::new("/usr/sbin/kamailio").exists() {
        skipped(test, "needs kamailio");
        return None;
    }
    let mut provider = SipProvider::up(Some(driver.name()), home).unwrap();
    provider.start_server(false).unwrap();
    provider.start_agent().unwrap();
    provider.phones(false, FEW).unwrap();
    let is_there = || ["n1", "n2"].iter().all(|node| provider.counter(node, "options").is_some());
    assert!(wait_until(LONG, is_there), "{}", provider.lab.log("sender", "agent"));
    Some(provider)
}
