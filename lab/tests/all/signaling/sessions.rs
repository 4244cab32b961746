// SPDX-License-Identifier: Apache-2.0
//! Sessions of one module that share a node: each has what it asked for, for as long as it asked, and ends alone.

use std::time::{Duration, Instant, SystemTime};

use ed25519_dalek::pkcs8::DecodePrivateKey;
use ed25519_dalek::{Signer, SigningKey};
use netserv_lab::netns::{Lab, is_root};
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::node::{LabPackage, LabUser};
use netserv_lab::topology::{Impairment, Kind, Link, Machine, Topology};
use netserv_model::api::{PathSpec, PostRequest, RequestResult};
use netserv_model::request::{ModuleStatus, Outcome};
use netserv_model::{Nonce, RefusalKind, SessionId, Signature, UnixTime};
use netserv_skips::skipped;
use netserv_wire::nslp::RequestBuilder;

const MODULE: &str = "example.org/net-monitor";

/// Goal: SETUPs of one module toward two users, through a node that is on both ways, and by two requesters toward one of them: the
/// shared node sees all flows, keeps the longest lease, and loses the module with the last session; over IPv4 and IPv6. Method: `s – n1`,
/// then `n2 – d1` and `n3 – d2`, and `t` beside `s`; no request names a session.
#[test]
fn two_ways_and_two_requesters_of_one_module_share_a_node() {
    let Some((mut lab, user)) = up("two_ways_and_two_requesters_of_one_module_share_a_node") else { return };
    let package = lab.package("net-monitor", &user).unwrap();
    let url = lab.publish("s", &package).unwrap();
    for six in [false, true] {
        let net = Net { lab: &lab, user: &user, package: &package, url: &url, six };
        let (one, other) = (net.setup("s", "d1", 300), net.setup("s", "d2", 300));
        assert_eq!((one.len(), other.len()), (2, 2), "{one:?} {other:?}");
        assert!(other.iter().all(|outcome| matches!(outcome, Outcome::Installed { .. })), "{other:?}");
        assert_eq!(net.seen("n1"), [net.filter("s", "d1"), net.filter("s", "d2")].into());
        net.remove("s", "d2", &[]);
        assert_eq!((net.seen("n1"), net.status("n3").is_none()), ([net.filter("s", "d1")].into(), true));

        // Another requester asks for less time, and leaves.
        net.setup("t", "d1", 60);
        let status = net.status("n1").unwrap();
        assert_eq!((status.held_by, status.sessions.len()), (2, 2), "{status:?}");
        assert!((200..=300).contains(&status.lease_s), "{status:?}");
        assert_eq!(net.seen("n1"), [net.filter("s", "d1"), net.filter("t", "d1")].into());
        net.remove("t", "d1", &[]);
        assert_eq!(net.seen("n1"), [net.filter("s", "d1")].into());

        // Who holds nothing takes nothing, but by all; and the same again, after a restart, is the same session.
        let refused = net.remove("t", "d1", &[]);
        assert!(refused.iter().all(|outcome| !outcome.is_ok()), "{refused:?}");
        let again = net.setup("s", "d1", 300);
        assert!(again.iter().all(|outcome| matches!(outcome, Outcome::Refreshed { .. })), "{again:?}");
        let removed = net.remove("t", "d1", &["--all"]);
        assert!(removed.iter().all(|outcome| *outcome == Outcome::Removed), "{removed:?}");
        assert!(net.status("n1").is_none() && net.status("n2").is_none());
        net.setup("s", "d1", 300);
        lab.stop("s", "netservd").unwrap();
        lab.restart_netservd("s").unwrap();
        let net = Net { lab: &lab, user: &user, package: &package, url: &url, six };
        let removed = net.remove("s", "d1", &[]);
        assert!(removed.iter().all(|outcome| *outcome == Outcome::Removed), "{removed:?}");
    }
}

/// Goal: a stranger without a key brings nothing back by a copy of a signed SETUP: neither what its user removed, nor an old version.
/// Method: as above; `t` posts what `s` had signed, by a session of its own, when the SETUP is older than `clock-skew-s`.
#[test]
fn a_copied_setup_does_nothing_by_another_session() {
    let skew = format!("{FILES_ALLOWED}[admission]\nclock-skew-s = 8\n");
    let Some((lab, user)) = up_with("a_copied_setup_does_nothing_by_another_session", &skew) else { return };
    let package = lab.package("net-monitor", &user).unwrap();
    let url = lab.publish("s", &package).unwrap();
    let net = Net { lab: &lab, user: &user, package: &package, url: &url, six: false };
    let setup = || {
        let module = package.module.parse().unwrap();
        let setup = RequestBuilder::setup(&module, &url, package.digest.parse().unwrap(), Duration::from_secs(600));
        setup.filter(&net.filter("s", "d1").parse().unwrap())
    };
    let (made, old) = (Instant::now(), signed(&user, setup(), 1));
    let installed = net.post("s", &old, None);
    assert!(installed.iter().all(|outcome| matches!(outcome, Outcome::Installed { .. })), "{installed:?}");
    // Nonces alone are forgotten then.
    std::thread::sleep(Duration::from_secs(9).saturating_sub(made.elapsed()));
    // The node of the stranger answers a request that it has sent by one session before.
    let is_refused = |session: u8| {
        let refused = net.post("t", &old, Some(SessionId([session; 16])));
        assert_eq!(refused.len(), 2);
        assert!(refused.iter().all(|outcome| outcome.is_refused_for(RefusalKind::Replayed)), "{refused:?}");
    };
    is_refused(0x51);
    assert_eq!(net.status("n1").unwrap().held_by, 1);
    // Another requester's properties are newer.
    let newer = signed(&user, setup().property("sample", "7"), 2);
    let replaced = net.post("t", &newer, None);
    assert!(replaced.iter().all(|outcome| matches!(outcome, Outcome::Replaced { .. })), "{replaced:?}");
    is_refused(0x52);
    net.remove("s", "d1", &[]);
    assert_eq!(net.status("n1").unwrap().held_by, 1);
    is_refused(0x53);
    net.remove("t", "d1", &[]);
    is_refused(0x54);
    assert!(net.status("n1").is_none() && net.status("n2").is_none());
}

/// Signs a request as the user.
fn signed(user: &LabUser, builder: RequestBuilder, nonce: u128) -> String {
    let key = SigningKey::from_pkcs8_pem(&std::fs::read_to_string(&user.key).unwrap()).unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let created = UnixTime(u64::try_from(now.as_millis()).unwrap());
    let unsigned = builder.user(&user.name.parse().unwrap()).build(created, Nonce(nonce.to_be_bytes())).unwrap();
    let signature = Signature(key.sign(unsigned.canonical_bytes()).to_bytes());
    unsigned.with_signature(signature).unwrap().as_str().to_owned()
}

struct Net<'a> {
    lab: &'a Lab,
    user: &'a LabUser,
    package: &'a LabPackage,
    url: &'a str,
    six: bool,
}

impl Net<'_> {
    fn address(&self, machine: &str) -> String {
        if self.six { self.lab.v6(machine).to_string() } else { self.lab.v4(machine).to_string() }
    }

    fn filter(&self, from: &str, to: &str) -> String {
        let length = if self.six { 128 } else { 32 };
        format!("udp src {}/{length} dst {}/{length}", self.address(from), self.address(to))
    }

    fn request(&self, from: &str, args: &[&str]) -> Vec<Outcome> {
        let key = self.user.key.to_string_lossy().into_owned();
        let result = self.lab.request(from, &[args, &["--user", &self.user.name, "--key", &key]].concat()).unwrap();
        result.nodes.into_iter().map(|node| node.outcome).collect()
    }

    /// Sends a signed request as it is toward `d1`.
    fn post(&self, from: &str, message: &str, session: Option<SessionId>) -> Vec<Outcome> {
        let path = Some(PathSpec { destination: self.lab.v4("d1").into(), source: None });
        let request = PostRequest { message: message.to_owned(), path, session, timeout_ms: 30_000 };
        let answer = self.lab.post(from, "/v1/requests", &serde_json::to_string(&request).unwrap()).unwrap();
        let result: RequestResult = serde_json::from_str(&answer).unwrap();
        result.nodes.into_iter().map(|node| node.outcome).collect()
    }

    fn setup(&self, from: &str, to: &str, ttl_s: u32) -> Vec<Outcome> {
        let (file, ttl) = (self.package.path.to_string_lossy().into_owned(), format!("{ttl_s}s"));
        let (to_address, filter) = (self.address(to), self.filter(from, to));
        let args = ["setup", &file, "--to", &to_address, "--url", self.url, "--filter", &filter, "--ttl", &ttl];
        self.request(from, &args)
    }

    fn remove(&self, from: &str, to: &str, more: &[&str]) -> Vec<Outcome> {
        self.request(from, &[&["remove", MODULE, "--to", &self.address(to)], more].concat())
    }

    fn status(&self, node: &str) -> Option<ModuleStatus> {
        self.lab.modules(node).unwrap().modules.into_iter().next()
    }

    fn seen(&self, node: &str) -> std::collections::BTreeSet<String> {
        self.status(node).into_iter().flat_map(|status| status.filters).map(|filter| filter.to_string()).collect()
    }
}

fn up(test: &str) -> Option<(Lab, LabUser)> {
    up_with(test, FILES_ALLOWED)
}

fn up_with(test: &str, extra: &str) -> Option<(Lab, LabUser)> {
    if !is_root() {
        skipped(test, "not root, so no namespaces");
        return None;
    }
    let machine = |kind: Kind| move |name: &str| Machine { name: name.to_owned(), kind };
    let machines = ["s", "t", "d1", "d2"].map(machine(Kind::Host)).into_iter();
    let machines = machines.chain(["n1", "n2", "n3"].map(machine(Kind::Node))).collect();
    let ends = [("s", "n1"), ("t", "n1"), ("n1", "n2"), ("n1", "n3"), ("n2", "d1"), ("n3", "d2")];
    let link = |(a, b): (&str, &str)| Link { a: a.to_owned(), b: b.to_owned(), impairment: Impairment::default() };
    let mut lab = Lab::up(Topology { machines, links: ends.map(link).into() }).unwrap();
    let own: Vec<String> = ["d1", "d2"]
        .iter()
        .flat_map(|name| [format!("{}/32", lab.v4(name)), format!("{}/128", lab.v6(name))])
        .collect();
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let user = lab.user("janedoe", &own).unwrap();
    for node in ["n1", "n2", "n3"] {
        lab.start_netservd(node, "node", std::slice::from_ref(&user), extra).unwrap();
    }
    for host in ["s", "t"] {
        lab.start_netservd(host, "host", &[], "").unwrap();
    }
    lab.serve_http("s").unwrap();
    Some((lab, user))
}
