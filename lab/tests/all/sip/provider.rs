// SPDX-License-Identifier: Apache-2.0
//! The Kamailio of docs/apps/sip.md as a provider has it in service: who has no password gets no relay, calls that come to nothing leave none, and
//! descriptions of media are followed wherever they stand.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{Driver, eventually};
use netserv_lab::baresip::password;
use netserv_lab::homes::{CALLEE, CALLER, Homes};
use netserv_lab::netns::is_root;
use netserv_lab::node::workspace;
use netserv_lab::patience::grown;
use netserv_skips::skipped;

over_one_driver! {
    afxdp: []
    nfqueue: [the_providers_configuration_holds_in_service]
}

/// Another phone of the callee's, beside the first one.
const OTHER_PHONE: (&str, &str, u16) = (CALLEE.0, CALLEE.1, 5064);
const INSTALL_WAIT: Duration = Duration::from_secs(60);
const TALK: Duration = Duration::from_secs(2);
/// Packets that must be heard of these; 50 are sent in a second.
const HEARD_MIN: usize = 75;
/// More than a relay has ports for.
const STRANGERS: usize = 520;
/// How long a call of sipp may take, in seconds, on a machine that is not busy.
const CALL_S: u64 = 20;

/// Goal: the page's own configuration asks a relay only for calls of users with a password to phones that are there, and for nobody else's
/// requests in dialogs; a call that is busy, cancelled or unknown has no ports a moment later; what a reliable 180, PRACK, UPDATE, a 200
/// and an ACK say of media leads to the relay, also if another phone of the callee's has rejected the call. Method: baresips and sipps behind two NATs, all but strangers with digest authentication.
fn the_providers_configuration_holds_in_service(driver: Driver) {
    let test = "the_providers_configuration_holds_in_service";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    if !["/usr/sbin/kamailio", "/usr/bin/baresip", "/usr/bin/sipp"].iter().all(|program| Path::new(program).exists()) {
        return skipped(test, "needs kamailio, baresip and sipp");
    }
    let mut homes = Homes::up(Some(driver.name())).unwrap();
    homes.start_server().unwrap();
    homes.start_phones(false).unwrap();
    homes.start_agent().unwrap();
    homes.wait_for_relays(INSTALL_WAIT).unwrap();
    let heard = homes.call(0, false, TALK).unwrap();
    heard.iter().for_each(|heard| heard.check(HEARD_MIN).unwrap());
    eventually("the call of baresip is over", || calls(&homes) == 0);

    let before = requests(&homes);
    strangers(&homes);
    assert!(!sipp(&homes, CALLEE, "register", &[("PASSWORD", "wrong")]).wait().unwrap().success(), "a wrong password");
    let unknown = sipp(&homes, CALLER, "rejected-caller", &[("REJECTED", "404"), ("CALLED", "nobody")]).wait();
    assert!(unknown.unwrap().success(), "a call to nobody\n{}", homes.lab.log("sender", "kamailio"));
    // Nodes tell counters from time to time.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!((requests(&homes) - before, calls(&homes)), (0, 0), "the relay is asked for strangers or for nobody");

    assert!(sipp(&homes, CALLEE, "register", &[]).wait().unwrap().success(), "{}", homes.lab.log("sender", "kamailio"));
    for (callee, caller) in [
        ("late-callee", "late-caller"),
        ("busy-callee", "rejected-caller"),
        ("cancel-callee", "cancel-caller"),
        ("provider-callee", "provider-caller"),
    ] {
        let before = requests(&homes);
        let mut called = sipp(&homes, CALLEE, callee, &[]);
        let port_is_taken = |port| homes.lab.sockets_at(CALLEE.1, "udp", port) > 0;
        eventually("the callee is there", || port_is_taken(CALLEE.2));
        let other = (callee == "provider-callee").then(|| {
            assert!(sipp(&homes, OTHER_PHONE, "register", &[]).wait().unwrap().success());
            let other = sipp(&homes, OTHER_PHONE, "rejecting-callee", &[]);
            eventually("its other phone is there", || port_is_taken(OTHER_PHONE.2));
            other
        });
        let mut calling = sipp(&homes, CALLER, caller, &[("REJECTED", "486")]);
        eventually(&format!("{caller} has a relay"), || calls(&homes) == 1);
        let ended = [calling.wait().unwrap().success(), called.wait().unwrap().success()];
        assert_eq!(ended, [true, true], "{caller} and {callee}\n{}", homes.lab.log("sender", "kamailio"));
        assert!(other.is_none_or(|mut other| other.wait().unwrap().success()), "the other phone was not called");
        eventually(&format!("{caller} has no ports any more"), || calls(&homes) == 0);
        eprintln!("{caller}: {} requests to the relay", requests(&homes) - before);
    }
    let ended_by_time = homes.counters(0).unwrap()["expired"];
    assert_eq!(ended_by_time, 0, "calls that nobody deleted");
}

/// More INVITEs than there are ports for without credentials, and some that claim to be in a dialog.
fn strangers(homes: &Homes) {
    let server = homes.server(false);
    let invite = |number: usize, to_tag: &str, route: &str| {
        let sdp = "v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n";
        format!(
            "INVITE sip:bob@{server} SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.9:5060;branch=z9hG4bKs{number};rport\r\nMax-Forwards: 70\r\n\
             From: <sip:alice@{server}>;tag=s{number}\r\nTo: <sip:bob@{server}>{to_tag}\r\nCall-ID: stranger-{number}\r\nCSeq: 1 INVITE\r\n\
             Contact: <sip:alice@192.0.2.9>\r\n{route}Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{sdp}",
            sdp.len()
        )
    };
    let asking = || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.connect((server, 5060)).unwrap();
        socket.set_read_timeout(Some(grown(Duration::from_secs(2)))).unwrap();
        let ask = |text: &str| {
            socket.send(text.as_bytes()).unwrap();
            let mut bytes = [0; 4096];
            let length = socket.recv(&mut bytes).unwrap_or(0);
            String::from_utf8_lossy(&bytes[..length]).chars().take(11).collect::<String>()
        };
        for number in 0..STRANGERS {
            assert_eq!(ask(&invite(number, "", "")), "SIP/2.0 407");
        }
        for (number, of) in ["", ";mark=d41d8cd98f00b204e9800998ecf8427e", ";mark=", ";region=2"].iter().enumerate() {
            let route = format!("Route: <sip:{server};lr{of}>\r\n");
            assert_eq!(ask(&invite(1000 + number, ";tag=x", &route)), "SIP/2.0 403", "{of}");
            assert_eq!(ask(&invite(2000 + number, "", &route)), "SIP/2.0 407", "{of}");
        }
        assert_eq!(ask(&invite(3000, ";tag=x", "")), "SIP/2.0 404");
    };
    homes.lab.within("bob", asking).unwrap();
}

/// Runs a scenario as a user, on the machine and at the port of that user, with further words replaced.
fn sipp(homes: &Homes, (user, machine, port): (&str, &str, u16), scenario: &str, more: &[(&str, &str)]) -> Child {
    let text = std::fs::read_to_string(workspace().join(format!("lab/voip/{scenario}.xml"))).unwrap();
    let relay = homes.relay(0, false).to_string();
    let own = password(user);
    let words = [("USER", user), ("PASSWORD", &own), ("RELAY", &relay), ("PAUSE", "2000")];
    let called = more.iter().find(|(word, _)| *word == "CALLED").map_or(CALLEE.0, |(_, called)| called);
    let text = more.iter().copied().chain(words).fold(text, |text, (word, is)| text.replace(word, is));
    let file: PathBuf = homes.lab.dir().join(format!("{user}-{scenario}.xml"));
    std::fs::write(&file, text).unwrap();
    let local = homes.lab.v4(machine).to_string();
    let mut command: Command = homes.lab.command(machine, "timeout");
    command.args([&grown(Duration::from_secs(CALL_S)).as_secs().to_string(), "sipp", "-sf"]).arg(file);
    if scenario.ends_with("callee") {
        command.args(["-s", user]);
    } else {
        let called = if scenario == "register" { user } else { called };
        command.args([&format!("{}:5060", homes.server(false)), "-s", called]);
    }
    command.args(["-i", &local, "-p", &port.to_string(), "-m", "1", "-nostdin", "-default_behaviors", "none"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).current_dir(homes.lab.dir());
    command.spawn().unwrap()
}

fn calls(homes: &Homes) -> u64 {
    homes.counters(0).map_or(u64::MAX, |counters| counters["calls"])
}

fn requests(homes: &Homes) -> u64 {
    homes.counters(0).unwrap()["requests"]
}
