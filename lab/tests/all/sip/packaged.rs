// SPDX-License-Identifier: Apache-2.0
//! The steps of docs/apps/sip.md with Debian's Kamailio, and with the units' users, groups and sandboxes.

use std::path::Path;
use std::time::Duration;

use netserv_api::{AgentCheck, AgentFinding};
use netserv_lab::netns::{is_root, program, wait_until};
use netserv_lab::packaged::{Packaged, Unit};
use netserv_lab::provider::{Phones, SipProvider};
use netserv_lab::topology::Kind;
use netserv_lab::voip::documented;
use netserv_skips::skipped;

use crate::common::{Driver, eventually};

const LONG: Duration = Duration::from_secs(60);
const PHONES: Phones = Phones { count: 20, first: 0, every_ms: 500, seconds: 5, forms: "notify", tcp: false };
const UNIT: &str = "/lib/systemd/system/kamailio.service";

/// Goal: an operator who does what the page says, line by line, has sip-edge before the phones; who leaves out the agent's group is told so, by
/// the command and once in the log, with the line that mends it. Method: Debian's own `kamailio.cfg` and unit, and ours, but for addresses.
#[test]
fn the_pages_steps_work_with_debians_kamailio_and_the_shipped_units() {
    let test = "the_pages_steps_work_with_debians_kamailio_and_the_shipped_units";
    let Some(mut operator) = Operator::up(test) else { return };
    let steps = operator.page("apt install kamailio").unwrap();
    let line = |word: &str| steps.lines().find(|line| line.starts_with(word)).unwrap().to_owned();
    // What apt and netserv do is done by the lab.
    operator.machine.run(&operator.provider.lab, &line("chown ")).unwrap();
    operator.machine.run(&operator.provider.lab, &line("echo ")).unwrap();
    operator.start(
        "netservd",
        &Unit::shipped("netservd").unwrap(),
        &program("netservd").unwrap(),
        &["run", "--config", "/etc/netserv.toml"],
    );
    operator.write_kamailio();
    operator.write_agent();
    operator.start_kamailio();
    operator.start_agent();

    let (code, found) = operator.check();
    let missed: Vec<&AgentFinding> = found.iter().filter(|one| !one.ok).collect();
    assert_eq!((code, missed.len()), (1, 1), "{found:?}");
    assert!(missed[0].what == "metric done" && missed[0].found.contains("/run/kamailio is closed to"), "{missed:?}");
    let usermod = line("usermod ");
    assert!(missed[0].fix.as_ref().unwrap().starts_with(&usermod), "{missed:?}");
    let said = |operator: &Operator| {
        let log = operator.provider.lab.log("sender", "agent");
        log.lines().filter(|line| line.contains("/run/kamailio is closed to")).count()
    };
    eventually("the log says so", || said(&operator) == 1);

    operator.machine.run(&operator.provider.lab, &usermod).unwrap();
    operator.provider.lab.stop("sender", "agent").unwrap();
    operator.start_agent();
    let (code, found) = operator.check();
    assert_eq!(code, 0, "{found:?}\n{}", operator.provider.lab.log("sender", "kamailio"));
    let is_there = |provider: &SipProvider| ["n1", "n2"].iter().all(|node| provider.counter(node, "notify").is_some());
    let comes = || {
        operator.provider.phones(false, PHONES).unwrap();
        is_there(&operator.provider)
    };
    assert!(wait_until(LONG, comes), "{}", operator.provider.lab.log("sender", "agent"));
    let told = operator.provider.phones(false, PHONES).unwrap();
    assert!(told.registered == PHONES.count && told.answered + 5 >= told.sent, "{told:?}");
    assert_eq!(said(&operator), 1, "once");

    // Tables for Kamailio are read by its user, if the configuration names its group.
    let config = std::fs::read_to_string(operator.machine.path("/etc/netserv/agent.toml")).unwrap();
    let tables = "[relays]\ndir = \"/run/netserv/kamailio\"\nrpc = \"/run/kamailio/rpc.sock\"\nrule = \"sip\"\n";
    let reads = "setpriv --reuid kamailio --regid kamailio --clear-groups cat /run/netserv/kamailio/rtpengine";
    for (group, expected) in [("", 1), ("group = \"kamailio\"\n", 0)] {
        let text = config.replacen("[[log]]", &format!("{tables}{group}[[log]]"), 1);
        operator.machine.write("/etc/netserv/agent.toml", &text).unwrap();
        let reloaded = operator.machine.netserv(&operator.provider.lab, &["agent", "reload"]).unwrap();
        assert!(reloaded.status.success(), "{reloaded:?}");
        let (code, found) = operator.check();
        assert_eq!(code, expected, "{found:?}");
        let of_tables = found.iter().find(|one| one.what == "relays").unwrap();
        assert!(expected == 0 || of_tables.fix.as_ref().unwrap().contains("group = \"kamailio\""), "{of_tables:?}");
        assert_eq!(operator.machine.run(&operator.provider.lab, reads).is_ok(), expected == 0);
    }
}

/// A provider whose server's machine has Debian's packages and ours.
struct Operator {
    provider: SipProvider,
    machine: Packaged,
}

impl Operator {
    fn up(test: &str) -> Option<Operator> {
        if !is_root() {
            skipped(test, "not root, so no namespaces");
            return None;
        }
        if ![UNIT, "/etc/kamailio/kamailio.cfg"].iter().all(|file| Path::new(file).exists()) {
            skipped(test, "needs Debian's kamailio");
            return None;
        }
        let mut provider = SipProvider::up(Some(Driver::Nfqueue.name()), Kind::Router).unwrap();
        provider.lab.stop("sender", "netservd").unwrap();
        let machine = Packaged::install(&provider.lab, "sender").unwrap();
        std::fs::copy(&provider.user.key, machine.path("/etc/netserv/voip.pem")).unwrap();
        Some(Operator { provider, machine })
    }

    /// Returns a block of the page, with the lab's addresses.
    fn page(&self, first: &str) -> anyhow::Result<String> {
        let lab = &self.provider.lab;
        let own = [("192.0.2.7", lab.v4("sender").to_string()), ("2001:db8::7", lab.v6("sender").to_string())];
        Ok(own.iter().fold(documented(first)?, |text, (page, lab)| text.replace(page, lab)))
    }

    fn write_kamailio(&self) {
        let debians = std::fs::read_to_string("/etc/kamailio/kamailio.cfg").unwrap();
        let (before, route) = debians.split_once("request_route {\n").unwrap();
        let globals =
            self.page("log_engine_type=\"udp\"\nlog_engine_data=\"127.0.0.1:5514\"\nloadmodule \"log_custom").unwrap();
        let first = self.page("    if (is_method(\"REGISTER|OPTIONS|NOTIFY|INVITE\"))").unwrap();
        let text = format!("{before}{globals}request_route {{\n{first}{route}");
        self.machine.write("/etc/kamailio/kamailio.cfg", &text).unwrap();
        let twice: Vec<&str> = text.lines().filter(|line| line.starts_with("loadmodule")).collect();
        let mut once = twice.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), twice.len(), "a module is loaded twice: {twice:?}");
    }

    fn write_agent(&self) {
        let provider = &self.provider;
        let package = provider.lab.package("sip-edge", &provider.user).unwrap();
        let url = provider.lab.publish("sender", &package).unwrap();
        let text =
            self.page("user = \"voip\"\nkey = \"/etc/netserv/voip.pem\"\n\n[[log]]\nname = \"kamailio\"\nudp").unwrap();
        let own = [
            ("example.org/sip-edge@1.0.0", package.module.to_string()),
            ("https://www.example.org/sip-edge.nsm", url),
            ("sha256:…", package.digest.to_string()),
        ];
        let text = own.iter().fold(text, |text, (page, lab)| text.replace(page, lab));
        self.machine.write("/etc/netserv/agent.toml", &text).unwrap();
    }

    fn start_kamailio(&mut self) {
        let unit = Unit::read(Path::new(UNIT)).unwrap();
        // As ExecStart has it, but in the foreground.
        let args =
            ["-DD", "-P", "/run/kamailio/kamailio.pid", "-f", "/etc/kamailio/kamailio.cfg", "-m", "64", "-M", "8"];
        self.start("kamailio", &unit, Path::new("/usr/sbin/kamailio"), &args);
        let lab = &mut self.provider.lab;
        lab.wait_for_start(("sender", "kamailio"), "listen", |lab| lab.sockets_at("sender", "udp", 5060) >= 2).unwrap();
    }

    fn start_agent(&mut self) {
        let args = ["--config", "/etc/netserv/agent.toml"];
        self.start("agent", &Unit::shipped("netserv-agent").unwrap(), &program("netserv-agent").unwrap(), &args);
        let machine = &self.machine;
        let answers = |lab: &netserv_lab::netns::Lab| {
            machine.netserv(lab, &["agent", "status"]).is_ok_and(|output| output.status.success())
        };
        self.provider.lab.wait_for_start(("sender", "agent"), "answer", answers).unwrap();
    }

    fn start(&mut self, name: &str, unit: &Unit, program: &Path, args: &[&str]) {
        let mut command = self.machine.service(&self.provider.lab, unit, program, args).unwrap();
        self.provider.lab.start("sender", name, &mut command).unwrap();
    }

    /// Returns what `netserv agent check` ends with, and what it found.
    fn check(&self) -> (i32, Vec<AgentFinding>) {
        let output = self.machine.netserv(&self.provider.lab, &["agent", "check", "-j"]).unwrap();
        let found: AgentCheck = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {output:?}\n{}", self.provider.lab.log("sender", "agent")));
        (output.status.code().unwrap(), found.checks)
    }
}
