// SPDX-License-Identifier: Apache-2.0
//! Calls whose media a node relays: an unmodified Kamailio asks for ports by its own module rtpengine, and phones hear each other.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Stdio;

use common::{Driver, ask_udp, eventually, processes_under, request_as};
use netserv_lab::netns::{Lab, host_port, is_root, program};
use netserv_lab::node::{LabUser, workspace};
use netserv_lab::rtp::Told;
use netserv_lab::serving;
use netserv_model::RefusalKind;
use netserv_model::request::Outcome;
use netserv_skips::skipped;

over_each_driver!(calls_of_an_unmodified_kamailio_are_relayed);

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

/// Goal: 200 calls of G.711, 20,000 packets a second that come to the relay, take at most half of the processor time of rtpengine in user
/// space, are delayed no more, and none is lost. In release: `./dev media`. Method: both on one node, in turns; one process sends for all
/// callers, another one echoes.
#[test]
#[ignore = "a measurement"]
fn two_hundred_calls_beside_rtpengine() {
    let Some(mut net) = Net::up("two_hundred_calls_beside_rtpengine", Driver::Afxdp) else { return };
    let node = net.lab.topology().interfaces(0).1.v4;
    let mut command = net.lab.command("node", "rtpengine");
    command.args([
        "--foreground",
        "--log-stderr",
        "--log-level=4",
        "--table=-1",
        "--port-min=40000",
        "--port-max=42999",
    ]);
    command.args([&format!("--interface={node}"), &format!("--listen-ng={node}:2224")]);
    let peer = net.lab.start("node", "rtpengine", &mut command).unwrap();
    eventually("rtpengine answers", || ask_udp(&net.lab, "sender", node.into(), 2224, "1 d7:command4:pinge").is_some());
    net.start_echo();
    let daemon = net.lab.pid("node", "netservd").unwrap();
    let ours = || -> u64 { processes_under(daemon).into_iter().chain([daemon]).map(cpu_ms).sum() };
    let mut runs = Vec::new();
    for _ in 0..3 {
        let before = ours();
        let relay = net.calls(SocketAddr::new(net.relay(false), 2223), 200, 10);
        let relay = (ours() - before, relay);
        let before = cpu_ms(peer);
        let other = net.calls(SocketAddr::new(node.into(), 2224), 200, 10);
        let other = (cpu_ms(peer) - before, other);
        eprintln!("relay: {} ms of processor time, {:?}\nrtpengine: {} ms, {:?}", relay.0, relay.1, other.0, other.1);
        runs.push((relay, other));
    }
    runs.sort_by_key(|(relay, other)| relay.0 * 1000 / other.0.max(1));
    let ((cpu, relay), (peer_cpu, peer)) = &runs[1];
    eprintln!(
        "the run in the middle: {cpu} ms beside {peer_cpu} ms, half of the packets there and back in {} beside {} µs",
        relay.p50_us, peer.p50_us
    );
    assert!(runs.iter().all(|((_, relay), _)| relay.received == relay.sent), "lost");
    assert!(cpu * 2 <= *peer_cpu, "{cpu} ms beside {peer_cpu} ms");
    assert!(relay.p50_us <= peer.p50_us, "{} beside {} µs", relay.p50_us, peer.p50_us);
}

/// Returns the processor time that a process has taken.
fn cpu_ms(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some((_, fields)) = stat.rsplit_once(") ") else { return 0 };
    // Behind the name: user and system time are the 12th and 13th, in hundredths of a second.
    fields.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * 10
}

/// `sender – node – receiver`: Kamailio and the callee at the one end, the caller at the other, the relay between.
struct Net {
    lab: Lab,
    user: LabUser,
}

impl Net {
    fn up(test: &str, driver: Driver) -> Option<Net> {
        if !is_root() {
            skipped(test, "not root, so no namespaces");
            return None;
        }
        if !Path::new("/usr/sbin/kamailio").exists() {
            skipped(test, "needs kamailio");
            return None;
        }
        let user = ("voip", "listen = ['udp port 2223']\n");
        let (lab, [user]) = serving::network(Some(driver.name()), &["10.99.7.0/29", "fd99:7::/125"], [user]).unwrap();
        let net = Net { lab, user };
        net.install(&[]);
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
            let is_late = matches!(outcome, Outcome::Refused(refusal) if refusal.kind == RefusalKind::Timeout);
            assert!(is_late || matches!(outcome, Outcome::Installed { .. } | Outcome::Refreshed { .. }), "{outcome:?}");
            !is_late
        });
        for v6 in [false, true] {
            let ping = "1 d7:command4:pinge";
            eventually("the relay answers", || ask_udp(&self.lab, "sender", self.relay(v6), 2223, ping).is_some());
        }
    }

    /// Returns an address of the relay's container.
    fn relay(&self, v6: bool) -> IpAddr {
        let modules = self.lab.modules("node").unwrap().modules;
        modules[0].addresses.iter().copied().find(|address| address.is_ipv6() == v6).unwrap()
    }

    fn address(&self, machine: &str, v6: bool) -> IpAddr {
        if v6 { self.lab.v6(machine).into() } else { self.lab.v4(machine).into() }
    }

    fn counters(&self) -> Vec<(String, u64)> {
        self.lab.modules("node").unwrap().modules[0].counters.clone().into_iter().collect()
    }

    fn counter(&self, name: &str) -> u64 {
        self.counters().into_iter().find(|(known, _)| known == name).map_or(0, |(_, count)| count)
    }

    fn start_server(&mut self, v6: bool) {
        let (own, callee) = (self.address("sender", v6), host_port(self.address("sender", v6), 5080));
        let relay = format!("udp{}:{}", if v6 { "6" } else { "" }, host_port(self.relay(v6), 2223));
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
        let is_there = || {
            let sockets = self.lab.run("sender", "ss", &["-Huln", "sport", "=", &port.to_string()]);
            sockets.is_ok_and(|output| !output.stdout.is_empty())
        };
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
        let mut command = self.lab.command("receiver", program("netserv-lab").unwrap());
        command.args(["rtp-echo", &self.echo().to_string()]);
        self.lab.start("receiver", "echo", &mut command).unwrap();
        eventually("there is an echo", || self.lab.log("receiver", "echo").contains("echoing"));
    }

    fn echo(&self) -> SocketAddr {
        SocketAddr::new(self.lab.v4("receiver").into(), 7000)
    }

    /// Has callers at the sender talk for some seconds.
    fn calls(&self, relay: SocketAddr, calls: u32, seconds: u64) -> Told {
        let local = SocketAddr::new(self.lab.v4("sender").into(), 7000);
        let mut command = self.lab.command("sender", program("netserv-lab").unwrap());
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

fn bracketed(address: IpAddr) -> String {
    if address.is_ipv6() { format!("[{address}]") } else { address.to_string() }
}
