// SPDX-License-Identifier: Apache-2.0
//! Calls whose media a node relays: an unmodified Kamailio asks for ports by its own module rtpengine, and phones hear each other.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Driver, ask_udp, eventually, processes_under, request_as};
use netserv_lab::bench::pin::OUTSIDE_CORE;
use netserv_lab::flood::{Flood, Kind};
use netserv_lab::netns::{Lab, host_port, is_root, program};
use netserv_lab::node::{LabUser, workspace};
use netserv_lab::rtp::{NODE_LOOKS, Told};
use netserv_lab::serving;
use netserv_lab::voip::bracketed;
use netserv_model::RefusalKind;
use netserv_model::request::Outcome;
use netserv_skips::skipped;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

over_one_driver! {
    afxdp: [calls_of_an_unmodified_kamailio_are_relayed, calls_go_on_in_a_flood_of_rtp_to_their_ports]
    nfqueue: [
        a_relay_without_ports_has_kamailio_ask_the_next,
        packets_of_many_calls_gather_and_those_of_few_do_not,
        requests_that_are_none_and_calls_without_end_cost_nobody_else,
    ]
}

/// Goal: phones whose call goes through Kamailio hear each other by way of the node, in both directions and over both versions of IP, and
/// not a packet is lost; the ports are gone with the call, and strangers get no answer. Method: sipp calls and sends sound for two
/// seconds, another one echoes it; the phones' machines count what goes and comes.
fn calls_of_an_unmodified_kamailio_are_relayed(driver: Driver) {
    let Some(mut net) = Net::up("calls_of_an_unmodified_kamailio_are_relayed", driver) else { return };
    for v6 in [false, true] {
        net.start_server(v6);
        net.start_callee(v6);
        net.count_media(v6);
        let before = net.counter("packets");
        net.call(v6);
        let [sent, heard] = ["OUTPUT", "INPUT"].map(|chain| net.counted("receiver", chain, v6));
        let [came, echoed] = ["INPUT", "OUTPUT"].map(|chain| net.counted("sender", chain, v6));
        eprintln!("IPv6: {v6}: {sent} packets sent, {came} came, {echoed} sent back, {heard} heard");
        assert!(sent >= 90 && [came, echoed, heard] == [sent; 3], "{sent} {came} {echoed} {heard}");
        eventually("they are counted", || net.counter("packets") - before == 2 * sent);
        eventually("the call is over", || net.counter("calls") == 0);
        net.lab.stop("sender", "kamailio").unwrap();
        net.lab.stop("sender", "callee").unwrap();
    }
    let ask = |machine: &str, text: &str| ask_udp(&net.lab, machine, net.relay(false), 2223, text);
    assert_eq!(ask("sender", "1_1 d7:command4:pinge").as_deref(), Some("1_1 d6:result4:ponge"));
    let list = ask("sender", "1_2 {\"command\":\"list\"}");
    assert_eq!(list.as_deref(), Some("1_2 {\"calls\":[],\"result\":\"ok\"}"));
    assert_eq!(ask("receiver", "1_1 d7:command4:pinge"), None);
    eventually("it is counted", || net.counter("refused") == 1);
    let dropped: Vec<(String, u64)> =
        net.counters().into_iter().filter(|(name, _)| name.starts_with("dropped")).collect();
    assert!(dropped.iter().all(|(_, count)| *count == 0), "{dropped:?}");
}

/// Goal: a call for which a relay has no ports goes by the next one that Kamailio knows. Method: a relay with the ports of one call, which has one, and
/// rtpengine, which Kamailio asks first once in a thousand.
fn a_relay_without_ports_has_kamailio_ask_the_next(driver: Driver) {
    let test = "a_relay_without_ports_has_kamailio_ask_the_next";
    if !Path::new("/usr/bin/rtpengine").exists() {
        return skipped(test, "needs rtpengine");
    }
    let few = ["--property", "ports=30000-30003", "--property", "calls=500"];
    let Some(mut net) = Net::up_for(test, driver, "", &few) else { return };
    let (own, node) = (net.relay(false), IpAddr::from(net.lab.topology().interfaces(0).1.v4));
    net.lab.start_rtpengine("node", node, 2224, 40_000..=40_999).unwrap();
    let ask = |net: &Net, at: IpAddr, port: u16, text: &str| ask_udp(&net.lab, "sender", at, port, text);
    eventually("rtpengine answers", || ask(&net, node, 2224, "1 d7:command4:pinge").is_some());
    let sdp = "v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n";
    let offer = format!("1_9 d7:call-id5:other7:command5:offer8:from-tag1:a3:sdp{}:{sdp}e", sdp.len());
    assert!(ask(&net, own, 2223, &offer).unwrap().contains("6:result2:ok"));
    net.start_server_with(false, &format!("udp:{own}:2223=1000 udp:{node}:2224=1"));
    net.start_callee(false);
    let before = net.counter("requests");
    net.call(false);
    eventually("the relay was asked for an offer", || net.counter("requests") > before);
    let log = net.lab.log("sender", "kamailio");
    assert!(log.contains("has reached its load limit") || !log.contains("no available proxies"), "{log}");
    let calls = ask(&net, node, 2224, "1_10 d7:command4:liste").unwrap();
    assert!(!calls.contains("5:callsle"), "rtpengine has no call: {calls}\n{log}");
    assert_eq!((net.counter("calls"), net.counter("failed")), (1, 0));
}

/// Goal: on a node on which packets gather, none of many calls is lost or overtaken by another, and those of few calls are not delayed.
/// Method: the longest time that packets may gather; 40 calls are 4,000 packets a second for the node, 4 calls are too few to gather.
fn packets_of_many_calls_gather_and_those_of_few_do_not(driver: Driver) {
    let test = "packets_of_many_calls_gather_and_those_of_few_do_not";
    let Some(mut net) = Net::up_with(test, driver, "dataplane.gather-us = 1000") else { return };
    net.start_echo();
    let relay = SocketAddr::new(net.relay(false), 2223);
    // Other work on the machine may delay either.
    let is_seen = (0..5).any(|_| {
        let [many, few] = [40, 4].map(|calls| net.calls(relay, calls, 3));
        eprintln!("40 calls: {many:?}\n4 calls: {few:?}");
        for told in [&many, &few] {
            assert_eq!((told.received, told.late), (told.sent, 0), "{told:?}");
        }
        few.p50_us < many.p50_us
    });
    assert!(is_seen, "few packets are delayed as many are");
}

/// Goal: calls go on, without a packet lost or given to a stranger, while RTP of made up senders comes to their ports, of both versions of IP.
/// Method: the callers of the lab, and a flood a second after they began, in which no call's synchronization source is.
fn calls_go_on_in_a_flood_of_rtp_to_their_ports(driver: Driver) {
    let Some(mut net) = Net::up("calls_go_on_in_a_flood_of_rtp_to_their_ports", driver) else { return };
    net.start_echo();
    let relay = SocketAddr::new(net.relay(false), 2223);
    // Over IPv6 nobody calls here: the flood of it comes to ports that are in use all the same.
    for v6 in [false, true] {
        let before = net.flooded();
        let (network, bits) = if v6 { ("fd00:ff00::", 32) } else { ("198.18.0.0", 16) };
        let kind = Kind::Media { network: network.parse().unwrap(), bits, first: 30_000, last: 30_031 };
        let (to, time) = (net.address("node", v6), Duration::from_secs(3));
        let flood = Flood { kind, to, destination: net.relay(v6), rate: FLOOD_RATE, time };
        let (told, rate) = std::thread::scope(|scope| {
            let flooding = scope.spawn(|| {
                std::thread::sleep(Duration::from_secs(1));
                net.lab.within("receiver", || flood.send(&net.lab, "receiver", "node").unwrap()).unwrap()
            });
            (net.calls(relay, 4, 5), flooding.join().unwrap())
        });
        let dropped = net.flooded() - before;
        eprintln!("IPv6: {v6}: {rate:.0} a second, {dropped} of them dropped by their source; {told:?}");
        assert_eq!((told.received, told.late), (told.sent, 0), "{told:?}");
        assert!(rate >= 0.9 * f64::from(FLOOD_RATE) && dropped >= u64::from(FLOOD_RATE) / 2, "{rate}, {dropped}");
    }
    let module = net.lab.modules("node").unwrap().modules.remove(0);
    assert_eq!((module.restarts, module.last_failure), (0, None));
}

/// Goal: datagrams that are no requests, and calls that nobody ends, take nothing from others for long: there are as many calls as there may
/// be, they run out, and the next ones are relayed. Method: a server that may ask sends rubbish, more streams than there may be, and offers
/// without end.
fn requests_that_are_none_and_calls_without_end_cost_nobody_else(driver: Driver) {
    let test = "requests_that_are_none_and_calls_without_end_cost_nobody_else";
    let bounds = ["calls=20", "timeout-s=2", "offer-timeout-s=2", "silent-timeout-s=2"];
    let more: Vec<&str> = bounds.iter().flat_map(|bound| ["--property", bound]).collect();
    let Some(mut net) = Net::up_for(test, driver, "", &more) else { return };
    net.start_echo();
    let relay = SocketAddr::new(net.relay(false), 2223);
    let ask = |datagrams: &[Vec<u8>]| {
        let asking = || {
            let socket = UdpSocket::bind((net.address("sender", false), 0)).unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            let mut answers = Vec::new();
            for (number, datagram) in datagrams.iter().enumerate() {
                socket.send_to(datagram, relay).unwrap();
                let mut room = [0; 65_536];
                // What is no request is not waited for.
                if number % 16 == 0 || datagram.starts_with(b"c_") {
                    answers.extend(
                        socket.recv(&mut room).map(|length| String::from_utf8_lossy(&room[..length]).into_owned()),
                    );
                }
            }
            answers
        };
        net.lab.within("sender", asking).unwrap()
    };
    let before = net.lab.modules("node").unwrap().modules.remove(0).counters;
    let mut random = StdRng::seed_from_u64(9);
    let sdp = "v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\n";
    let text = |text: &str| format!("{}:{text}", text.len());
    let offer = |number: usize, streams: usize| {
        let sdp = sdp.to_owned() + &"m=audio 4000 RTP/AVP 0\r\n".repeat(streams);
        let (id, sdp) = (text(&format!("flood-{number}")), text(&sdp));
        format!("c_{number} d7:call-id{id}7:command5:offer8:from-tag1:a3:sdp{sdp}e").into_bytes()
    };
    let rubbish: Vec<Vec<u8>> = (0..2000)
        .map(|number| match number % 8 {
            0 => (0..random.random_range(0..1400)).map(|_| random.random()).collect(),
            1 => format!("r_{number} {}", "d1:al".repeat(200)).into_bytes(),
            2 => format!("r_{number} d7:call-id999999999999999999999:x").into_bytes(),
            3 => format!("r_{number} {{\"command\":\"offer\",\"call-id\":[[[[{{}}").into_bytes(),
            4 => format!("r_{number} d7:command6:delete7:call-id8:of-nobodye").into_bytes(),
            5 => {
                let mut cut = offer(number, 2);
                cut.truncate(random.random_range(0..cut.len()));
                cut
            }
            6 => format!("{} d7:command4:pinge", "x".repeat(200)).into_bytes(),
            _ => format!("r_{number} d7:command{}e", text(&"y".repeat(1000))).into_bytes(),
        })
        .filter(|datagram: &Vec<u8>| !datagram.starts_with(b"c_"))
        .collect();
    ask(&rubbish);
    assert_eq!((net.counter("calls"), net.calls(relay, 2, 1).late), (0, 0));
    // Nodes tell counters from time to time.
    eventually("what is none is counted", || {
        let after = net.lab.modules("node").unwrap().modules.remove(0).counters;
        let grown = |name: &str| after[name] - before[name];
        // Most of them are more than a second may bring.
        grown("damaged") > 20 && grown("failed") > 20
    });

    let told = ask(&[offer(0, 17)]);
    assert!(told[0].contains("error-reason"), "{told:?}");
    // A request that comes again is the same one.
    let offers: Vec<Vec<u8>> = (0..40).map(|number| offer(100 + number, 2)).collect();
    let told: Vec<String> = [ask(&offers), ask(&offers[..1])].concat();
    let with = |word: &str| told.iter().filter(|answer| answer.contains(word)).count();
    assert_eq!((with("6:result2:ok"), with("Parallel session limit reached")), (21, 20), "{told:?}");
    eventually("calls that nobody answers run out", || net.counter("calls") == 0);
    assert_eq!(net.counter("expired"), 20);
    let told = net.calls(relay, 4, 2);
    assert_eq!(told.received, told.sent, "{told:?}");
    let module = net.lab.modules("node").unwrap().modules.remove(0);
    assert_eq!((module.restarts, module.last_failure), (0, None));
}

/// Packets a second of a flood, from programs that are built for tests.
const FLOOD_RATE: u32 = 2000;

/// Goal: 200 calls of G.711, 20,000 packets a second that come to the relay, take at most half of the processor time of rtpengine in user
/// space where packets gather, and lose none. In release: `./dev media`. Method: [`beside_rtpengine`].
#[test]
#[ignore = "a measurement"]
fn two_hundred_calls_take_half_of_the_processor_time_of_rtpengine() {
    let test = "two_hundred_calls_take_half_of_the_processor_time_of_rtpengine";
    let Some(mut rounds) = beside_rtpengine(test, GATHERING, None) else { return };
    assert_lost_at_the_ends(&rounds);
    rounds.sort_by_key(|[relay, peer]| relay.cpu_ms * 1000 / peer.cpu_ms.max(1));
    let [relay, peer] = &rounds[1];
    assert!(relay.cpu_ms * 2 <= peer.cpu_ms, "{} ms beside {} ms", relay.cpu_ms, peer.cpu_ms);
}

/// Goal: the same calls are delayed no more than by rtpengine in user space where the node has a core to look for packets on, however the
/// node beside rtpengine is set. In release: `./dev media`. Method: [`beside_rtpengine`], on a node that looks, beside which callers and
/// echo have the other core, and on one that sleeps.
#[test]
#[ignore = "a measurement"]
fn two_hundred_calls_are_delayed_no_more_than_by_rtpengine() {
    let test = "two_hundred_calls_are_delayed_no_more_than_by_rtpengine";
    let Some(looking) = beside_rtpengine(test, NODE_LOOKS, Some(OUTSIDE_CORE)) else { return };
    let Some(sleeping) = beside_rtpengine(test, "", None) else { return };
    let middle = |rounds: &[[Relayed; 2]], side: usize| {
        let mut all: Vec<u64> = rounds.iter().map(|sides| sides[side].told.p50_us).collect();
        all.sort_unstable();
        all[1]
    };
    let (own, beside, at_best) = (middle(&looking, 0), middle(&looking, 1), middle(&sleeping, 1));
    assert!(own <= beside.min(at_best), "{own} beside {beside} and {at_best} µs");
    assert_lost_at_the_ends(&looking);
    assert_lost_at_the_ends(&sleeping);
}

/// What the node is set to where packets are to take little processor time.
const GATHERING: &str = "dataplane.gather-us = 1000";

/// A relay's name, its processes, and where it takes requests.
type Side<'a> = (&'a str, &'a dyn Fn() -> Vec<u32>, SocketAddr);

/// What a relay took for its calls, and what became of these.
#[derive(Debug)]
struct Relayed {
    cpu_ms: u64,
    told: Told,
    /// Packets for which there was no room in the sockets of callers and echo.
    overflowed: u64,
}

/// Has 200 callers talk for ten seconds by media-relay and by rtpengine, on one node, in turns, three times. One process sends for all
/// callers, another one echoes, both on a core of their own if it is said which. Nothing without what it takes.
fn beside_rtpengine(test: &str, settings: &str, core: Option<usize>) -> Option<Vec<[Relayed; 2]>> {
    let mut net = Net::up_with(test, Driver::Afxdp, settings)?;
    net.core = core;
    let node = net.lab.topology().interfaces(0).1.v4;
    let peer = net.lab.start_rtpengine("node", node.into(), 2224, 40_000..=42_999).unwrap();
    eventually("rtpengine answers", || ask_udp(&net.lab, "sender", node.into(), 2224, "1 d7:command4:pinge").is_some());
    net.start_echo();
    let daemon = net.lab.pid("node", "netservd").unwrap();
    let ours = || processes_under(daemon).into_iter().chain([daemon]).collect::<Vec<u32>>();
    let sides: [Side<'_>; 2] = [
        ("media-relay", &ours, SocketAddr::new(net.relay(false), 2223)),
        ("rtpengine", &|| vec![peer], SocketAddr::new(node.into(), 2224)),
    ];
    let rounds = (0..3).map(|_| {
        sides.map(|(name, pids, relay)| {
            let (before, overflows) = (Used::of(&pids()), net.overflows());
            let told = net.calls(relay, 200, 10);
            let used = Used::of(&pids()).since(&before);
            let cpu_ms = used.cpu_ms();
            let each = cpu_ms as f64 * 1000.0 / (2 * told.sent) as f64;
            let overflowed = net.overflows() - overflows;
            eprintln!(
                "{name}: {cpu_ms} ms of processor time, {each:.1} µs for each packet; {told:?}, {overflowed} without room at the ends"
            );
            used.show(2 * told.sent);
            Relayed { cpu_ms, told, overflowed }
        })
    });
    Some(rounds.collect())
}

/// Checks that what is lost by media-relay did not find room in the sockets of callers and echo.
fn assert_lost_at_the_ends(rounds: &[[Relayed; 2]]) {
    for [Relayed { told, overflowed, .. }, _] in rounds {
        assert!(told.sent - told.received <= *overflowed, "{told:?}, of which {overflowed} had no room at the ends");
    }
}

/// What threads have used so far: by their numbers, names, nanoseconds on a processor and how often they slept.
struct Used(BTreeMap<u32, (String, u64, u64)>);

impl Used {
    fn of(pids: &[u32]) -> Used {
        let threads = pids.iter().filter_map(|pid| std::fs::read_dir(format!("/proc/{pid}/task")).ok()).flatten();
        let used = |path: &Path| {
            let read = |file: &str| std::fs::read_to_string(path.join(file)).ok();
            let nanos = read("schedstat")?.split(' ').next()?.parse().ok()?;
            let status = read("status")?;
            let sleeps =
                status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse().ok()?;
            Some((path.file_name()?.to_str()?.parse().ok()?, (read("comm")?.trim().to_owned(), nanos, sleeps)))
        };
        Used(threads.filter_map(|thread| used(&thread.ok()?.path())).collect())
    }

    fn since(self, before: &Used) -> Used {
        let since = |(number, (name, nanos, sleeps)): (u32, (String, u64, u64))| {
            let (nanos_before, sleeps_before) =
                before.0.get(&number).map_or((0, 0), |(_, nanos, sleeps)| (*nanos, *sleeps));
            (number, (name, nanos - nanos_before, sleeps - sleeps_before))
        };
        Used(self.0.into_iter().map(since).collect())
    }

    fn cpu_ms(&self) -> u64 {
        self.0.values().map(|(_, nanos, _)| nanos).sum::<u64>() / 1_000_000
    }

    /// Shows the threads that matter, by packet.
    fn show(&self, packets: u64) {
        for (name, nanos, sleeps) in self.0.values().filter(|(_, nanos, _)| nanos / packets >= 500) {
            let (us, sleeps) = (*nanos as f64 / 1000.0 / packets as f64, *sleeps as f64 / packets as f64);
            eprintln!("  {name}: {us:.1} µs and {sleeps:.2} sleeps for each packet");
        }
    }
}

/// `sender – node – receiver`: Kamailio and the callee at the one end, the caller at the other, the relay between.
pub(super) struct Net {
    pub(super) lab: Lab,
    user: LabUser,
    /// Where callers and echo run, if it is said.
    core: Option<usize>,
}

impl Net {
    pub(super) fn up(test: &str, driver: Driver) -> Option<Net> {
        Net::up_with(test, driver, "")
    }

    /// With further settings of the node's.
    fn up_with(test: &str, driver: Driver, settings: &str) -> Option<Net> {
        Net::up_for(test, driver, settings, &[])
    }

    /// The same with further arguments of the module's SETUP.
    pub(super) fn up_for(test: &str, driver: Driver, settings: &str, more: &[&str]) -> Option<Net> {
        if !is_root() {
            skipped(test, "not root, so no namespaces");
            return None;
        }
        if !Path::new("/usr/sbin/kamailio").exists() {
            skipped(test, "needs kamailio");
            return None;
        }
        let user = ("voip", "listen = ['udp port 2223']\n");
        let (lab, [user]) =
            serving::network_with(settings, Some(driver.name()), &["10.99.7.0/29", "fd99:7::/125"], [user]).unwrap();
        let net = Net { lab, user, core: None };
        net.install(more);
        Some(net)
    }

    /// Has the node relay for the sender.
    fn install(&self, more: &[&str]) {
        let package = self.lab.package("media-relay", &self.user).unwrap();
        let url = self.lab.publish("sender", &package).unwrap();
        let (file, to) = (package.path.to_string_lossy().into_owned(), self.lab.v4("receiver").to_string());
        let control = format!("control={} {}", self.lab.v4("sender"), self.lab.v6("sender"));
        let args = ["setup", &file, "--to", &to, "--url", &url, "--property", &control];
        // While it is being compiled, each request may time out.
        eventually("it is installed", || {
            let result = request_as(&self.lab, &self.user, &[&args[..], more].concat());
            let outcome = &result.nodes.iter().find(|node| node.node.as_str() == "node").unwrap().outcome;
            let is_late = outcome.is_refused_for(RefusalKind::Timeout);
            assert!(is_late || matches!(outcome, Outcome::Installed { .. } | Outcome::Refreshed { .. }), "{outcome:?}");
            !is_late
        });
        for v6 in [false, true] {
            let ping = "1 d7:command4:pinge";
            eventually("the relay answers", || ask_udp(&self.lab, "sender", self.relay(v6), 2223, ping).is_some());
        }
    }

    /// Returns an address of the relay's container.
    pub(super) fn relay(&self, v6: bool) -> IpAddr {
        let modules = self.lab.modules("node").unwrap().modules;
        modules[0].addresses.iter().copied().find(|address| address.is_ipv6() == v6).unwrap()
    }

    fn address(&self, machine: &str, v6: bool) -> IpAddr {
        if v6 { self.lab.v6(machine).into() } else { self.lab.v4(machine).into() }
    }

    fn counters(&self) -> Vec<(String, u64)> {
        self.lab.modules("node").unwrap().modules[0].counters.clone().into_iter().collect()
    }

    /// Returns how many packets came to ports from whom they are not of.
    fn flooded(&self) -> u64 {
        ["dropped-source", "dropped-ssrc", "dropped-no-call"].map(|name| self.counter(name)).iter().sum()
    }

    fn counter(&self, name: &str) -> u64 {
        self.counters().into_iter().find(|(known, _)| known == name).map_or(0, |(_, count)| count)
    }

    fn start_server(&mut self, v6: bool) {
        let relay = format!("udp{}:{}", if v6 { "6" } else { "" }, host_port(self.relay(v6), 2223));
        self.start_server_with(v6, &relay);
    }

    /// The same with these relays.
    fn start_server_with(&mut self, v6: bool, relay: &str) {
        let (own, callee) = (self.address("sender", v6), host_port(self.address("sender", v6), 5080));
        let mut command = self.lab.command("sender", "/usr/sbin/kamailio");
        command.arg("-f").arg(workspace().join("lab/voip/relay.cfg")).args(["-DD", "-E", "-m", "32", "-M", "4"]);
        command.args(["-A", &format!("RELAY=\"{relay}\""), "-A", &format!("CALLEE=\"sip:{callee}\"")]);
        command.args(["-l", &format!("udp:{}", host_port(own, 5060))]);
        command.arg("-Y").arg(self.lab.dir()).arg("-P").arg(self.lab.dir().join("kamailio.pid"));
        self.lab.start("sender", "kamailio", &mut command).unwrap();
        self.is_bound(5060);
    }

    fn start_callee(&mut self, v6: bool) {
        let own = bracketed(self.address("sender", v6));
        let mut command = self.lab.command("sender", "sipp");
        command.args(["-sn", "uas", "-i", &own, "-mi", &own, "-p", "5080", "-mp", "6000", "-rtp_echo", "-nostdin"]);
        command.current_dir(self.lab.dir());
        self.lab.start("sender", "callee", &mut command).unwrap();
        self.is_bound(5080);
    }

    fn is_bound(&self, port: u16) {
        let is_there = || self.lab.sockets_at("sender", "udp", port) > 0;
        eventually(&format!("port {port} is taken:\n{}", self.lab.log("sender", "kamailio")), is_there);
    }

    /// Has the phones' machines count media, from 0 on.
    fn count_media(&self, v6: bool) {
        let relay = self.relay(v6).to_string();
        for machine in ["sender", "receiver"] {
            let tables = tables(v6);
            self.lab.run(machine, tables, &["-F"]).unwrap();
            let rule = ["-p", "udp", "-s", &relay, "--sport", "30000:30999"];
            self.lab.run(machine, tables, &[&["-A", "INPUT"], &rule[..]].concat()).unwrap();
            let rule = ["-p", "udp", "-d", &relay, "--dport", "30000:30999"];
            self.lab.run(machine, tables, &[&["-A", "OUTPUT"], &rule[..]].concat()).unwrap();
        }
    }

    fn counted(&self, machine: &str, chain: &str, v6: bool) -> u64 {
        let shown = self.lab.run(machine, tables(v6), &["-nvxL", chain]).unwrap();
        let text = String::from_utf8(shown.stdout).unwrap();
        let line = text.lines().find(|line| line.contains("udp")).unwrap_or_else(|| panic!("{text}"));
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Calls, sends two seconds of sound, and hangs up.
    fn call(&self, v6: bool) {
        let sound = self.lab.dir().join("sound.ul");
        std::fs::write(&sound, vec![0xff; 16_000]).unwrap();
        let scenario = std::fs::read_to_string(workspace().join("lab/voip/caller.xml")).unwrap();
        let file = self.lab.dir().join("caller.xml");
        std::fs::write(&file, scenario.replace("SOUND,", &format!("{},", sound.display()))).unwrap();
        let (own, server) = (bracketed(self.address("receiver", v6)), host_port(self.address("sender", v6), 5060));
        let mut command = self.lab.command("receiver", "timeout");
        command.args(["20", "sipp", &server, "-sf", &file.to_string_lossy(), "-i", &own, "-mi", &own, "-p", "5061"]);
        command.args(["-s", "callee", "-m", "1", "-nostdin", "-trace_err"]).current_dir(self.lab.dir());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}\n{}", self.lab.log("sender", "kamailio"));
    }

    /// Has all callees be at the receiver.
    fn start_echo(&mut self) {
        let mut command = self.command("receiver");
        command.args(["rtp-echo", &self.echo().to_string()]);
        self.lab.start("receiver", "echo", &mut command).unwrap();
        eventually("there is an echo", || self.lab.log("receiver", "echo").contains("echoing"));
    }

    /// Returns how many datagrams had no room in sockets of callers and echo so far.
    fn overflows(&self) -> u64 {
        let of = |machine: &str| -> Option<u64> {
            let output = self.lab.run(machine, "cat", &["/proc/net/snmp"]).unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            let mut udp = text.lines().filter_map(|line| line.strip_prefix("Udp: ")).map(|line| line.split(' '));
            udp.next()?.zip(udp.next()?).find(|(name, _)| *name == "RcvbufErrors")?.1.parse().ok()
        };
        ["sender", "receiver"].map(|machine| of(machine).unwrap()).iter().sum()
    }

    fn command(&self, machine: &str) -> Command {
        let program = program("netserv-lab").unwrap();
        let Some(core) = self.core else { return self.lab.command(machine, program) };
        let mut command = self.lab.command(machine, "taskset");
        command.args(["-c", &core.to_string()]).arg(program);
        command
    }

    fn echo(&self) -> SocketAddr {
        SocketAddr::new(self.lab.v4("receiver").into(), 7000)
    }

    /// Has callers at the sender talk for some seconds.
    fn calls(&self, relay: SocketAddr, calls: u32, seconds: u64) -> Told {
        let local = SocketAddr::new(self.lab.v4("sender").into(), 7000);
        let mut command = self.command("sender");
        command.args([
            "rtp",
            "--ng",
            &relay.to_string(),
            "--local",
            &local.to_string(),
            "--echo",
            &self.echo().to_string(),
        ]);
        command.args(["--calls", &calls.to_string(), "--seconds", &seconds.to_string()]);
        let output = command.stdout(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        assert!(output.status.success(), "the calls failed");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn tables(v6: bool) -> &'static str {
    if v6 { "ip6tables" } else { "iptables" }
}
