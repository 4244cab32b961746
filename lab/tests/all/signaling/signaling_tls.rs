// SPDX-License-Identifier: Apache-2.0
//! Signaling over TLS between running nodes: who is a peer, who is refused and why, and what goes past it.

use std::os::unix::fs::PermissionsExt as _;

use crate::common::eventually;
use netserv_lab::netns::{Lab, is_root};
use netserv_lab::node::{LabUser, workspace};
use netserv_lab::topology::Topology;
use netserv_model::request::{HopProof, NodeReport, Outcome};
use netserv_skips::skipped;

/// What the text of the request has in it.
const REQUEST: &[u8] = b"PROBE";
/// What GIST's datagrams begin with (RFC 5971 §5.3.1).
const GIST_MAGIC: [u8; 4] = [0x4e, 0x04, 0xbd, 0xa5];
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
        let result = crate::common::request_as(&net.lab, &net.user, &setup);
        crate::common::assert_nodes(&result, |outcome| {
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

/// Method: the same request is captured where it goes over TLS, and where it does not, which shows that the capture works.
#[test]
fn who_listens_on_the_link_reads_no_request_that_goes_over_tls() {
    let test = "who_listens_on_the_link_reads_no_request_that_goes_over_tls";
    let is_there = std::process::Command::new("tcpdump").arg("--version").output().is_ok();
    if !is_there {
        return skipped(test, "tcpdump is not installed");
    }
    for (more, read) in [("require = true\n", false), ("", true)] {
        let Some(mut net) = Net::up(test, more) else { return };
        if read {
            net.lab.stop("sender", "netservd").unwrap();
            net.lab.start_netservd("sender", "host", &[], "").unwrap();
        }
        let file = net.lab.dir().join("link.pcap");
        let mut capture = net.lab.command("sender", "tcpdump");
        capture.args(["-i", "any", "-U", "--immediate-mode", "-w"]).arg(&file).args(["tcp", "or", "udp"]);
        net.lab.start("sender", "tcpdump", &mut capture).unwrap();
        eventually("the capture begins", || net.lab.log("sender", "tcpdump").contains("listening"));
        assert!(net.reaches_n2());
        let has = |text: &[u8]| std::fs::read(&file).unwrap().windows(text.len()).any(|window| window == text);
        eventually("the request is captured", || has(&GIST_MAGIC) && has(REQUEST) == read);
        assert_eq!(has(REQUEST), read, "{more}");
    }
}

/// Method: the sender shows one certificate after the other, each after a reload, to a node that goes on serving.
#[test]
fn who_shows_a_bad_certificate_is_refused_until_a_reload_brings_a_good_one() {
    let test = "who_shows_a_bad_certificate_is_refused_until_a_reload_brings_a_good_one";
    let Some(net) = Net::up(test, "require = true\n") else { return };
    let (mut bad, mut refused) = (0, 0);
    for (certificate, cause) in [
        ("expired", "expired"),
        ("foreign", "UnknownIssuer"),
        ("server-only", "key usage for client"),
        ("nameless", "no name"),
    ] {
        net.show("sender", certificate, "authority");
        net.reload("sender");
        assert!(!net.reaches_n2(), "{certificate}");
        let told = net.handshakes("n1", "bad-certificate") + net.handshakes("n1", "unauthorized");
        assert!(told > bad, "{certificate}");
        bad = told;
        eventually(cause, || {
            // Warnings are few: one more try may be told of.
            net.lab.log("n1", "netservd").contains(cause) || (net.reaches_n2(), false).1
        });
        // A reset may overtake the alert: one more try may be told.
        eventually("the sender is told", || {
            net.handshakes("sender", "refused-by-peer") > refused || (net.reaches_n2(), false).1
        });
        refused = net.handshakes("sender", "refused-by-peer");
    }
    assert!(net.lab.log("sender", "netservd").contains("the peer refuses this node"));
    net.show("sender", "sender", "authority");
    net.reload("sender");
    assert!(net.reaches_n2());
}

#[test]
fn who_is_not_on_the_list_is_refused_and_who_is_taken_off_loses_its_connection() {
    let test = "who_is_not_on_the_list_is_refused_and_who_is_taken_off_loses_its_connection";
    let Some(net) = Net::up(test, "require = true\npeers = [\"*.example.net\"]\n") else { return };
    assert!(net.reaches_n2());
    assert_eq!(net.count("n1", "netserv_gist_associations"), 2);
    net.configure("n1", "require = true\npeers = [\"n2.example.net\"]\n");
    let reloaded = net.reload("n1");
    assert!(reloaded.contains("signaling.tls.peers"), "{reloaded}");
    eventually("the sender's connection is closed", || net.count("n1", "netserv_gist_associations") == 1);
    let log = net.lab.log("n1", "netservd");
    assert!(log.contains("signaling.tls.peers has none of its names: sender.example.net"), "{log}");
    assert!(!net.reaches_n2());
    assert!(net.handshakes("n1", "unauthorized") >= 1);
    assert!(net.lab.log("sender", "netservd").contains("AccessDenied"), "the sender is told, too");
    net.configure("n1", "require = true\n");
    net.reload("n1");
    assert!(net.reaches_n2());
}

#[test]
fn what_is_no_tls_or_no_peer_on_its_port_ends_in_time_and_disturbs_nobody() {
    let test = "what_is_no_tls_or_no_peer_on_its_port_ends_in_time_and_disturbs_nobody";
    let Some(mut net) = Net::up(test, "require = true\n") else { return };
    let n1 = net.lab.v4("n1");
    // More silent connections of one machine than it may have at a time.
    let crowd = format!("for n in $(seq 40); do sleep 20 | timeout 20 nc {n1} {TLS_PORT} & done; wait");
    net.lab.start("r", "crowd", net.lab.command("r", "sh").args(["-c", &crowd])).unwrap();
    eventually("the oldest go", || net.handshakes("n1", "crowded") >= 1);
    assert!(net.reaches_n2(), "others are served meanwhile");
    let bytes = format!("head -c 4096 /dev/zero | timeout 20 nc {n1} {TLS_PORT}");
    let shown = net.lab.command("sender", "sh").args(["-c", &bytes]).output().unwrap();
    assert!(shown.status.success(), "the node ends it: {shown:?}");
    assert!(net.handshakes("n1", "not-tls") >= 1);
    // Half a client's first message, a byte at a time, and a client that says nothing.
    let trickle = format!(
        "(printf '\\026\\003\\001\\002'; while sleep 0.2; do printf '\\001'; done) | timeout 20 nc {n1} {TLS_PORT}"
    );
    net.lab.start("sender", "trickle", net.lab.command("sender", "sh").args(["-c", &trickle])).unwrap();
    let silent = format!("sleep 20 | timeout 20 nc {n1} {TLS_PORT}");
    net.lab.start("sender", "silent", net.lab.command("sender", "sh").args(["-c", &silent])).unwrap();
    assert!(net.reaches_n2(), "others are served meanwhile");
    let ended = || net.handshakes("n1", "timed-out") + net.handshakes("n1", "crowded");
    eventually("all are ended", || ended() == 40 + 2);
    assert!(net.handshakes("n1", "timed-out") >= 3);
    // One that speaks TLS and has no certificate.
    let client = format!("sleep 2 | timeout 20 openssl s_client -connect {n1}:{TLS_PORT} -tls1_3");
    net.lab.command("sender", "sh").args(["-c", &client]).output().unwrap();
    assert!(net.handshakes("n1", "bad-certificate") >= 1);
    // And one of an old version.
    let before = net.handshakes("n1", "not-tls");
    let old = format!("sleep 2 | timeout 20 openssl s_client -connect {n1}:{TLS_PORT} -tls1_2");
    net.lab.command("sender", "sh").args(["-c", &old]).output().unwrap();
    assert!(net.handshakes("n1", "not-tls") > before);
    assert!(net.reaches_n2());
}

#[test]
fn where_it_is_not_required_tls_is_spoken_with_those_who_have_it() {
    let test = "where_it_is_not_required_tls_is_spoken_with_those_who_have_it";
    let Some(mut net) = Net::up(test, "client-certificate = \"optional\"\n") else { return };
    net.lab.stop("sender", "netservd").unwrap();
    net.lab.start_netservd("sender", "host", &[], "").unwrap();
    assert!(net.reaches_n2());
    assert_eq!((net.secured("n1"), net.secured("n2")), (1, 1));
    assert_eq!(net.count("n1", "netserv_gist_associations"), 2);
    // Who connects may leave its certificate out.
    let done = net.handshakes("n1", "done");
    let client = format!("sleep 1 | timeout 20 openssl s_client -connect {}:{TLS_PORT} -tls1_3", net.lab.v4("n1"));
    net.lab.command("sender", "sh").args(["-c", &client]).output().unwrap();
    assert_eq!(net.handshakes("n1", "done"), done + 1);
    // A node that requires it is not reached by one without it, which learns why.
    net.lab.stop("n1", "netservd").unwrap();
    net.lab.start_netservd("n1", "node", &[], &net.extra("n1", "require = true\n")).unwrap();
    let result = net.lab.request("sender", &["path", &net.lab.v4("receiver").to_string()]).unwrap();
    assert!(result.incomplete.as_ref().is_some_and(|refusal| refusal.detail.contains("may want TLS")), "{result:?}");
}

/// Goal: a path says under which name each node has proven itself, and who has not; over IPv4 and IPv6. Method: all speak TLS;
/// then the sender does not.
#[test]
fn a_path_says_by_which_name_of_a_certificate_a_node_is_proven() {
    let test = "a_path_says_by_which_name_of_a_certificate_a_node_is_proven";
    let Some(mut net) = Net::up(test, "") else { return };
    for is_first_plain in [false, true] {
        if is_first_plain {
            net.lab.stop("sender", "netservd").unwrap();
            net.lab.start_netservd("sender", "host", &[], "").unwrap();
        }
        for to in [net.lab.v4("receiver").to_string(), net.lab.v6("receiver").to_string()] {
            let result = net.lab.request("sender", &["path", &to]).unwrap();
            let named = |node: &str| (Some(HopProof::Tls), Some(format!("{node}.example.net")));
            let first = if is_first_plain { (Some(HopProof::Association), None) } else { named("n1") };
            let expected = [("sender", None), ("n1", Some(first)), ("n2", Some(named("n2")))];
            let proven = |node: &NodeReport| node.hop.clone().map(|hop| (hop.proof, hop.tls_name));
            let found: Vec<_> = result.nodes.iter().map(|node| (node.node.as_str(), proven(node))).collect();
            assert_eq!(found, expected, "{result:?}");
            let ip_hops = result.nodes[2].hop.as_ref().and_then(|hop| hop.ip_hops);
            assert_eq!(ip_hops, Some(2), "r lies between: {result:?}");
        }
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
        let mut lab = Lab::up(Topology::two_nodes()).unwrap();
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

    /// Writes a machine's configuration anew, with further lines of `[signaling.tls]`.
    fn configure(&self, machine: &str, more: &str) {
        let path = self.lab.dir().join(format!("{machine}.toml"));
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once("[fetch]").unwrap();
        let users = rest.split_once("[[user]]").map(|(_, users)| format!("[[user]]{users}")).unwrap_or_default();
        std::fs::write(&path, format!("{before}{}\n{users}", self.extra(machine, more))).unwrap();
    }

    /// Has a machine's daemon read its files again; returns what it says of that.
    fn reload(&self, machine: &str) -> String {
        String::from_utf8(self.lab.netserv(machine, &["node", "reload"]).unwrap().stdout).unwrap()
    }

    /// Returns whether a request of the sender gets as far as it should.
    fn reaches_n2(&self) -> bool {
        let receiver = self.lab.v4("receiver").to_string();
        let result = self.lab.request("sender", &["path", &receiver, "--timeout", "8s"]);
        result.is_ok_and(|result| result.nodes.iter().any(|node| node.node.as_str() == "n2"))
    }

    fn secured(&self, machine: &str) -> u64 {
        self.count(machine, "netserv_gist_events_total{event=\"associations_secured\"}")
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
