// SPDX-License-Identifier: Apache-2.0
//! AMnet's reflector on the way between an Icecast and its listeners, which know nothing of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::path::PathBuf;
use std::time::Duration;

use common::{Driver, Serving, eventually, processes_under};
use netserv_lab::listeners::Told;
use netserv_lab::netns::program;
use netserv_lab::radio::{self, Listening};
use netserv_model::request::Outcome;
use netserv_skips::skipped;

over_each_driver!(one_connection_for_all_listeners);

const PERMITS: &str = "connect = ['tcp']\n";

/// Goal: Icecast has one listener, whoever comes and goes; each of ours hears whole frames that decode without an error, with titles if it
/// asked for them, also one that comes while the source is away; nobody is cut by that, nor by an upgrade. A server that nobody named is
/// known once it has answered (over IPv6 here).
fn one_connection_for_all_listeners(driver: Driver) {
    let Some(mut station) = Station::up("one_connection_for_all_listeners", driver) else { return };
    station.install(&[("servers", &format!("{}:8000", station.net.lab.v4("sender")))]);
    let first = station.start(Listening { seconds: 11, ..Station::listening(10) }, "first");
    eventually("all listen", || station.counter("listeners") == 10);
    assert_eq!(station.upstreams(), 1);
    // The next version, and then an outage.
    station.install(&[("servers", &format!("{}:8000", station.net.lab.v4("sender"))), ("burst-ms", "3000")]);
    eventually("the next version has all", || station.counter("imported") == 10);
    assert_eq!(station.upstreams(), 1);
    std::thread::sleep(Duration::from_millis(500));
    radio::stop_source(&mut station.net.lab, "sender").unwrap();
    let late = station.start(Listening { seconds: 6, listeners: 2, titles: 1, ..Station::listening(2) }, "late");
    std::thread::sleep(Duration::from_secs(2));
    radio::start_source(&mut station.net.lab, "sender").unwrap();
    eventually("it is back", || station.upstreams() == 1);
    let told = station.heard(late, "late");
    assert_eq!((told.served, told.cut, told.broken, told.titled), (2, 0, 0, 1), "{told:?}");
    let told = station.heard(first, "first");
    assert_eq!((told.served, told.cut, told.broken, told.titled), (10, 0, 0, 5), "{told:?}");
    assert!(told.heard_ms_least > 6000, "{told:?}");
    eventually("it is counted", || station.counter("outages") == 1);
    eventually("the last one takes the connection along", || station.upstreams() == 0);
    let six = |listeners, seconds| Listening { v6: true, listeners, titles: 0, seconds, ..Station::listening(0) };
    let alone = station.start(six(1, 1), "learning");
    // From Icecast itself, which begins anywhere.
    assert_eq!(radio::heard(alone).unwrap().served, 1);
    eventually("it has left", || station.upstreams() == 0);
    let learned = station.start(six(4, 4), "learned");
    let told = station.heard(learned, "learned");
    assert_eq!((told.served, told.cut, told.broken), (4, 0, 0), "{told:?}");
    eventually("it is counted", || station.counter("learned") == 1);
    // Since the source came back there was never more than one.
    assert_eq!(radio::listeners_most(&station.net.lab, "sender").unwrap(), 1);
}

/// Goal: 200 listeners of 128 kbit/s have one connection to Icecast, decode without an error, take at most 15 % of a core, and an outage of 5 s
/// loses nobody. In release: `./dev radio`, which also says what Icecast itself takes for as many.
#[test]
#[ignore = "a measurement"]
fn two_hundred_listeners() {
    let Some(mut station) = Station::up("two_hundred_listeners", Driver::Afxdp) else { return };
    let direct = station.start(Station::many(200, 25), "direct");
    let icecast = station.share(&[station.net.lab.pid("sender", "icecast").unwrap()]);
    assert_eq!(station.upstreams(), 200);
    let told = radio::heard(direct).unwrap();
    eprintln!("Icecast itself: {:.1} % of a core; {told:?}", icecast * 100.0);
    station.install(&[("servers", &format!("{}:8000", station.net.lab.v4("sender")))]);
    let reflected = station.start(Station::many(200, 40), "reflected");
    let share = station.share(&station.node());
    let upstreams = station.upstreams();
    radio::stop_source(&mut station.net.lab, "sender").unwrap();
    std::thread::sleep(Duration::from_secs(5));
    radio::start_source(&mut station.net.lab, "sender").unwrap();
    let told = station.heard(reflected, "reflected");
    eprintln!("the reflector: {:.1} % of a core, {upstreams} connection(s) to Icecast; {told:?}", share * 100.0);
    assert_eq!((upstreams, told.served, told.cut, told.broken, told.titled), (1, 200, 0, 0, 100));
    assert!(share <= 0.15, "{share}");
}

/// Goal: 1,000 listeners on one core.
#[test]
#[ignore = "a measurement"]
fn a_thousand_listeners_on_one_core() {
    let Some(mut station) = Station::up("a_thousand_listeners_on_one_core", Driver::Afxdp) else { return };
    station.install(&[("servers", &format!("{}:8000", station.net.lab.v4("sender")))]);
    let listeners = station.start(Station::many(1000, 30), "thousand");
    let share = station.share(&station.node());
    let upstreams = station.upstreams();
    let told = station.heard(listeners, "thousand");
    eprintln!("{:.1} % of a core, {upstreams} connection(s) to Icecast; {told:?}", share * 100.0);
    assert_eq!((upstreams, told.served, told.cut, told.broken, told.titled), (1, 1000, 0, 0, 500));
    assert!(share <= 1.0, "{share}");
    // All that is due comes: as much as the time that each has listened, less what a busy machine is late by.
    assert!(told.heard_ms_least > 20_000 && told.silent_ms_most < 3000, "{told:?}");
}

/// `sender – node – receiver`: Icecast and its source at the one end, listeners at the other.
struct Station {
    net: Serving,
    installed: usize,
}

impl Station {
    fn up(test: &str, driver: Driver) -> Option<Station> {
        if !["icecast2", "mpg123"].iter().all(|name| PathBuf::from("/usr/bin").join(name).exists()) {
            skipped(test, "needs icecast2 and mpg123");
            return None;
        }
        let mut net = Serving::start(test, driver, PERMITS)?;
        radio::start_server(&mut net.lab, "sender").unwrap();
        radio::start_source(&mut net.lab, "sender").unwrap();
        Some(Station { net, installed: 0 })
    }

    /// Half of them want titles.
    fn listening(listeners: usize) -> Listening {
        Listening { listeners, titles: listeners / 2, seconds: 5, every_ms: 20, v6: false }
    }

    fn many(listeners: usize, seconds: u64) -> Listening {
        Listening { seconds, every_ms: 5, ..Station::listening(listeners) }
    }

    /// Installs the module, or its next version.
    fn install(&mut self, properties: &[(&str, &str)]) {
        let filters = [
            format!("tcp dst {}/32 port 8000", self.net.lab.v4("sender")),
            format!("tcp dst {}/128 port 8000", self.net.lab.v6("sender")),
        ];
        let properties: Vec<String> = properties.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut args = vec!["--filter", &filters[0], "--filter", &filters[1]];
        properties.iter().for_each(|property| args.extend(["--property", property]));
        if self.installed == 0 {
            self.net.install("stream-reflector", &self.net.alice, &args);
        } else {
            let package = self.net.lab.package("stream-reflector", &self.net.alice).unwrap();
            let outcome = self.net.setup(&self.net.alice, &package, &args);
            assert!(matches!(outcome, Outcome::Replaced { .. }), "{outcome:?}");
        }
        self.installed += 1;
    }

    fn start(&self, listening: Listening, name: &str) -> std::process::Child {
        let into = self.net.lab.dir().join(name);
        radio::start_listening(&self.net.lab, ("receiver", "sender"), listening, &into).unwrap()
    }

    /// Waits for listeners, and decodes what they heard.
    fn heard(&self, listeners: std::process::Child, name: &str) -> Told {
        let told = radio::heard(listeners).unwrap();
        let decoded = radio::decode(&self.net.lab.dir().join(name)).unwrap();
        assert!(decoded >= told.served && program("netserv-lab").is_ok());
        told
    }

    fn upstreams(&self) -> u64 {
        radio::listeners(&self.net.lab, "sender").unwrap_or(0)
    }

    fn counter(&self, name: &str) -> u64 {
        let status = self.net.status(&self.net.alice, "stream-reflector");
        status.and_then(|status| status.counters.get(name).copied()).unwrap_or(0)
    }

    /// Returns the processes of the node.
    fn node(&self) -> Vec<u32> {
        let daemon = self.net.lab.pid("node", "netservd").unwrap();
        processes_under(daemon).into_iter().chain([daemon]).collect()
    }

    /// Returns how much of a core processes take, for ten seconds, once all listen.
    fn share(&self, processes: &[u32]) -> f64 {
        std::thread::sleep(Duration::from_secs(8));
        let cpu = || processes.iter().map(|pid| cpu_ms(*pid)).sum::<u64>();
        let before = cpu();
        std::thread::sleep(Duration::from_secs(10));
        #[allow(clippy::cast_precision_loss, reason = "milliseconds")]
        let share = (cpu() - before) as f64 / 10_000.0;
        share
    }
}

/// Returns the processor time that a process has taken.
fn cpu_ms(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some((_, fields)) = stat.rsplit_once(") ") else { return 0 };
    // Behind the name: user and system time are the 12th and 13th, in hundredths of a second.
    fields.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * 10
}
