// SPDX-License-Identifier: Apache-2.0
//! Signaling over TLS between running nodes: who is a peer, who is refused and why, and what goes past it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::os::unix::fs::PermissionsExt as _;

use netserv_lab::netns::{Lab, is_root};
use netserv_lab::node::{LabUser, workspace};
use netserv_lab::topology::{Kind, Topology};
use netserv_model::request::Outcome;
use netserv_skips::skipped;

/// Where nodes listen with TLS, and without it.
const TLS_PORT: u16 = 27002;
const PLAIN_PORT: u16 = 27001;

#[test]
fn requests_go_over_tls_alone_where_it_is_required() {
    let Some(net) = Net::up("requests_go_over_tls_alone_where_it_is_required", "require = true\n") else { return };
    let package = net.lab.package("echo", &net.user).unwrap();
    let url = net.lab.publish("sender", &package).unwrap();
    let file = package.path.to_string_lossy().into_owned();
    let (v4, v6) = (net.lab.v4("sender"), net.lab.v6("sender"));
    let url_v6 = url.replacen(&v4.to_string(), &format!("[{v6}]"), 1);
    for (receiver, url, filter) in [
        (net.lab.v4("receiver").to_string(), url, format!("udp dst {v4}/32 port 44444")),
        (net.lab.v6("receiver").to_string(), url_v6, format!("udp dst {v6}/128 port 44444")),
    ] {
        let setup = ["setup", &file, "--to", &receiver, "--url", &url, "--filter", &filter];
        let result = common::request_as(&net.lab, &net.user, &setup);
        common::assert_nodes(&result, |outcome| {
            matches!(outcome, Outcome::Installed { .. } | Outcome::Replaced { .. } | Outcome::Refreshed { .. })
        });
    }
    for machine in MACHINES {
        let associations = |event| net.count(machine, &format!("netserv_gist_events_total{{event=\"{event}\"}}"));
        let opened = associations("associations_opened") + associations("associations_accepted");
        assert!(opened > 0);
        assert_eq!(associations("associations_secured"), opened, "{machine}");
        assert_eq!(net.handshakes(machine, "done"), opened, "{machine}");
        let listening = String::from_utf8(net.lab.run(machine, "ss", &["-tlnH"]).unwrap().stdout).unwrap();
        assert!(listening.contains(&format!(":{TLS_PORT} ")), "{listening}");
        assert!(!listening.contains(&format!(":{PLAIN_PORT} ")), "no plain connection can be made: {listening}");
    }
}

/// Who is in the net of these tests, in order of the path.
const MACHINES: [&str; 3] = ["sender", "n1", "n2"];

/// `sender – n1 – r – n2 – receiver`, whose daemons have certificates.
struct Net {
    lab: Lab,
    user: LabUser,
}

impl Net {
    /// Starts the daemons with their own certificates, and further lines of `[signaling.tls]`; or says that the test is
    /// skipped.
    fn up(test: &str, more: &str) -> Option<Net> {
        if !is_root() {
            skipped(test, "not root, so no namespaces");
            return None;
        }
        let chain = [
            ("sender", Kind::Host),
            ("n1", Kind::Node),
            ("r", Kind::Router),
            ("n2", Kind::Node),
            ("receiver", Kind::Host),
        ];
        let mut lab = Lab::up(Topology::chain(&chain)).unwrap();
        lab.use_driver("nfqueue");
        let own = [format!("{}/32", lab.v4("sender")), format!("{}/128", lab.v6("sender"))];
        let user = lab.user("janedoe", &[&own[0], &own[1]]).unwrap();
        let mut net = Net { lab, user };
        for machine in MACHINES {
            net.show(machine, machine, "authority");
            let (role, users) = if machine == "sender" { ("host", vec![]) } else { ("node", vec![net.user.clone()]) };
            let extra = net.extra(machine, more);
            net.lab.start_netservd(machine, role, &users, &extra).unwrap();
        }
        net.lab.serve_http("sender").unwrap();
        Some(net)
    }

    /// Puts a certificate and its key where a machine's daemon reads them, and an authority.
    fn show(&self, machine: &str, certificate: &str, authority: &str) {
        let from = workspace().join("vectors/certificates");
        let file = |name: &str| self.lab.dir().join(format!("{machine}-{name}"));
        for (from_name, to) in [
            (format!("{certificate}.pem"), file("own.pem")),
            (format!("{certificate}.key"), file("own.key")),
            (format!("{authority}.pem"), file("authority.pem")),
        ] {
            std::fs::copy(from.join(from_name), &to).unwrap();
            std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
    }

    fn extra(&self, machine: &str, more: &str) -> String {
        let file = |name: &str| format!("{:?}", self.lab.dir().join(format!("{machine}-{name}")).display().to_string());
        format!(
            "[fetch]\nschemes = [\"http\"]\n[signaling.tls]\ncertificate = {}\nkey = {}\nauthorities = {}\n{more}",
            file("own.pem"),
            file("own.key"),
            file("authority.pem")
        )
    }

    /// Returns what a metric of a machine's daemon is.
    fn count(&self, machine: &str, metric: &str) -> u64 {
        let metrics = self.lab.metrics(machine).unwrap();
        let line =
            metrics.lines().find(|line| line.starts_with(metric)).unwrap_or_else(|| panic!("{metric}:\n{metrics}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Returns how many TLS handshakes of a machine's daemon had an outcome.
    fn handshakes(&self, machine: &str, outcome: &str) -> u64 {
        self.count(machine, &format!("netserv_signaling_tls_handshakes_total{{outcome=\"{outcome}\"}}"))
    }
}
