// SPDX-License-Identifier: Apache-2.0
//! Every kind of refusal reaches the requester of a running network. Kinds that other tests of this folder bring about are
//! only looked for there.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::common::{
    Driver, Net, ask_udp, assert_nodes, assert_refused, eventually, net, net_with, post, post_body, refusal,
};
use ed25519_dalek::pkcs8::DecodePrivateKey;
use ed25519_dalek::{Signer, SigningKey};
use netserv_lab::node::{LabPackage, LabUser, Part, module_bundle, module_component, module_parts, workspace};
use netserv_model::api::RequestResult;
use netserv_model::control::ControlMessage;
use netserv_model::request::{ModuleState, Outcome};
use netserv_model::target::Destinations;
use netserv_model::{Digest, Flavour, ModuleRef, Nonce, RefusalKind, Signature, UnixTime};
use netserv_skips::skipped;
use netserv_wire::nslp::RequestBuilder;

/// The network of a test, whose nodes fetch from its web server.
const FETCHES: &str = "[fetch]\nschemes = [\"http\"]\ntimeout-s = 5\n";
const LEASE: Duration = Duration::from_secs(60);
/// Longer than a node lets a request be old.
const LONG_AGO: Duration = Duration::from_secs(3600);

/// Worlds have no node, so what their tests name does not count.
#[test]
fn every_kind_is_brought_about_by_a_test_over_running_nodes() {
    let topics = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all");
    let folders = std::fs::read_dir(topics).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|is| is == "rs") && !path.ends_with("world.rs"));
    let texts: String = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let words: Vec<&str> = texts.split(|c: char| !c.is_alphanumeric() && c != ':').collect();
    let missing: Vec<RefusalKind> = RefusalKind::ALL
        .into_iter()
        .filter(|kind| !words.iter().any(|word| word.ends_with(&format!("RefusalKind::{kind:?}"))))
        .collect();
    assert!(missing.is_empty(), "no test over running nodes brings these about: {missing:?}");
}

#[test]
fn requests_that_are_none_late_or_repeated() {
    let Some(net) = net("requests_that_are_none_late_or_repeated", Driver::Afxdp) else { return };
    let (package, url) = net.publish("net-monitor");
    let request = || setup(&net, &package, &url);

    let late = sign(&net.user, request(), ago(LONG_AGO), 1);
    assert_refused(&post(&net, &late), RefusalKind::StaleRequest);
    // What is no message has no path to go, so the sender's own daemon refuses it.
    let answer = post_body(&net, &serde_json::json!({ "message": format!("{late}SETUP") }));
    assert!(answer["error"].as_str().unwrap().starts_with(RefusalKind::BadRequest.as_str()), "{answer}");
    assert_eq!(net.status("n1", &package), None);

    // A copy of a request that its user made for another path.
    let elsewhere = Destinations::one("203.0.113.9".parse().unwrap());
    let copied = sign(&net.user, request().along(&elsewhere), ago(Duration::ZERO), 2);
    let path = serde_json::json!({ "destination": net.lab.v4("receiver") });
    let answer = post_body(&net, &serde_json::json!({ "message": copied, "path": path }));
    let error = answer["error"].as_str().unwrap_or_default();
    assert!(error.starts_with(RefusalKind::NotForThisNode.as_str()), "{answer}");
    assert_eq!(net.status("n1", &package), None);

    let once = sign(&net.user, request(), ago(Duration::ZERO), 3);
    assert_nodes(&post(&net, &once), |outcome| matches!(outcome, Outcome::Installed { .. }));
    // A request that comes once more has its answer once more, and makes nothing longer; what was removed does not come back.
    std::thread::sleep(Duration::from_millis(1100));
    assert_nodes(&post(&net, &once), |outcome| matches!(outcome, Outcome::Installed { .. }));
    assert!(net.status("n1", &package).unwrap().lease_s < LEASE.as_secs());
    assert_nodes(&net.remove(&package), |outcome| *outcome == Outcome::Removed);
    assert_refused(&post(&net, &once), RefusalKind::Replayed);
}

#[test]
fn packages_that_are_not_what_was_asked_for() {
    let test = "packages_that_are_not_what_was_asked_for";
    let extra = format!("flavours = [\"wasm\"]\n{FETCHES}");
    let Some(net) = net_with(test, Driver::Afxdp, &extra, &[]) else { return };
    let (package, url) = net.publish("net-monitor");
    let other = setup_of(&net, "example.org/other@1.0.0", &package, &url);
    assert_refused(&post(&net, &sign(&net.user, other, ago(Duration::ZERO), 1)), RefusalKind::BadManifest);

    if module_component("hello-http").is_err() || module_bundle("net-monitor").is_err() {
        return skipped(test, "the sample modules are not built: ./dev build");
    }
    // A server that names no block of servers, which a node without networks does not have either.
    let manifest = std::fs::read_to_string(workspace().join("modules/samples/hello-http/netserv.toml")).unwrap();
    let (without, path) = (net.lab.dir().join("server.toml"), net.lab.dir().join("server.nsm"));
    std::fs::write(&without, manifest.replace("dependencies = [\"http>=1\"]\n", "")).unwrap();
    let parts = [(Part::Component, module_component("hello-http").unwrap())];
    let server = net.lab.package_of(&without, &parts, &path, &net.user).unwrap();
    let url = net.lab.publish("sender", &server).unwrap();
    let (file, receiver) = (server.path.to_string_lossy().into_owned(), net.lab.v4("receiver").to_string());
    assert_refused(&net.request(&["setup", &file, "--to", &receiver, "--url", &url]), RefusalKind::NoNetwork);

    let bundle = net.lab.package_in("net-monitor", &[Flavour::Osgi], &net.user).unwrap();
    let url = net.lab.publish("sender", &bundle).unwrap();
    assert_refused(&net.setup(&bundle, &url, &own(&net)), RefusalKind::NoFlavour);
    for node in ["n1", "n2"] {
        assert_eq!(net.lab.modules(node).unwrap().modules, [], "state is left on {node}");
    }
}

#[test]
fn filters_on_ports_of_others() {
    let test = "filters_on_ports_of_others";
    let Some(mut net) = net_with(test, Driver::Afxdp, FETCHES, &[]) else { return };
    net.user.extra = "ports = [\"5060\"]\n".to_owned();
    for node in ["n1", "n2"] {
        net.lab.stop(node, "netservd").unwrap();
        net.lab.start_netservd(node, "node", std::slice::from_ref(&net.user), FETCHES).unwrap();
    }
    let (package, url) = net.publish("net-monitor");
    for filter in [own(&net), format!("{} port 5061", own(&net))] {
        assert_refused(&net.setup(&package, &url, &filter), RefusalKind::PortNotAllowed);
    }
    let granted = net.setup(&package, &url, &format!("{} port 5060", own(&net)));
    assert_nodes(&granted, |outcome| matches!(outcome, Outcome::Installed { .. }));
}

/// Goal: what a module cannot do without and a node does not grant is refused with both numbers, whatever its code; what is granted is
/// installed. Method: keep-alive in each flavour, which needs one counter more than the node has for it.
#[test]
fn modules_that_need_more_than_is_granted() {
    let test = "modules_that_need_more_than_is_granted";
    let Some(mut net) = net_with(test, Driver::Afxdp, FETCHES, &[]) else { return };
    net.user.extra = "module-limits = { counters = 8 }\n".to_owned();
    for node in ["n1", "n2"] {
        net.lab.stop(node, "netservd").unwrap();
        net.lab.start_netservd(node, "node", std::slice::from_ref(&net.user), FETCHES).unwrap();
    }
    for flavour in [Flavour::Wasm, Flavour::Osgi] {
        let package = |counters: u32| {
            let dir = net.lab.dir().join(format!("needs-{flavour}-{counters}"));
            std::fs::create_dir_all(&dir).unwrap();
            let project = dir.join("netserv.toml");
            let head = "manifest = 1\nname = \"example.org/keep-alive\"\nversion = \"1.0.0\"\n";
            let text = format!("{head}[packet]\nabi = 1\n[needs]\ncounters = {counters}\n");
            std::fs::write(&project, text).unwrap();
            let path = net.lab.dir().join(format!("needs-{flavour}-{counters}.nsm"));
            let parts = module_parts("keep-alive", flavour).unwrap();
            let package = net.lab.package_of(&project, &parts, &path, &net.user).unwrap();
            let url = net.lab.publish("sender", &package).unwrap();
            (package, url)
        };
        let (greedy, url) = package(9);
        let result = net.setup(&greedy, &url, &own(&net));
        assert_refused(&result, RefusalKind::QuotaExceeded);
        let said = "the module needs counters of 9, the user's modules get 8 at most";
        assert!(refusal(&result).detail.contains(said), "{result:?}");
        let (modest, url) = package(8);
        assert_nodes(&net.setup(&modest, &url, &own(&net)), |outcome| matches!(outcome, Outcome::Installed { .. }));
        assert_nodes(&net.remove(&modest), |outcome| *outcome == Outcome::Removed);
    }
}

/// A module that fails too often stays out, also when it is sent anew.
#[test]
fn modules_in_quarantine() {
    let Some(net) = net("modules_in_quarantine", Driver::Afxdp) else { return };
    let (sender, receiver) = (net.lab.v4("sender"), net.lab.v4("receiver").to_string());
    let (package, url) = crate::common::publish_bad(&net, "trap-on-packet");
    let filter = format!("{} port 7777", own(&net));
    assert_nodes(&net.setup(&package, &url, &filter), |outcome| matches!(outcome, Outcome::Installed { .. }));
    // The module fails open, so each packet meets it on both nodes.
    eventually("both nodes put it into quarantine", || {
        ask_udp(&net.lab, "receiver", sender.into(), 7777, "poke");
        ["n1", "n2"]
            .iter()
            .all(|node| net.status(node, &package).is_some_and(|status| status.state == ModuleState::Quarantined))
    });
    let tell = ["tell", "example.org/trap-on-packet", "--topic", "a", "b", "--to", &receiver];
    assert_refused(&net.request(&tell), RefusalKind::NotRunning);
    assert_nodes(&net.remove(&package), |outcome| *outcome == Outcome::Removed);
    assert_refused(&net.setup(&package, &url, &filter), RefusalKind::Quarantined);
}

/// Method: several senders tell a module that takes nothing, each message as soon as the one before it was answered.
#[test]
fn messages_that_are_too_many() {
    let Some(net) = net("messages_that_are_too_many", Driver::Afxdp) else { return };
    let (package, url) = crate::common::publish_bad(&net, "deaf");
    assert_nodes(&net.setup(&package, &url, &own(&net)), |outcome| matches!(outcome, Outcome::Installed { .. }));
    let module = package.module.parse::<ModuleRef>().unwrap().name;
    let (seq, kinds) = (AtomicU64::new(1), Mutex::new(Vec::new()));
    let tell = || {
        let seq = seq.fetch_add(1, Ordering::Relaxed);
        let message = ControlMessage { topic: "a".parse().unwrap(), seq, body: Vec::new() };
        let signed = sign(&net.user, RequestBuilder::tell(&module, &message), ago(Duration::ZERO), seq.into());
        for node in post(&net, &signed).nodes {
            let Outcome::Refused(refusal) = node.outcome else { continue };
            kinds.lock().unwrap().push(refusal.kind);
        }
    };
    let seen = |kind| kinds.lock().unwrap().contains(&kind);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                eventually("nodes refuse for both causes", || {
                    tell();
                    seen(RefusalKind::RateLimited) && seen(RefusalKind::InboxFull)
                });
            });
        }
    });
}

#[test]
fn nodes_that_are_slow_absent_or_none() {
    let Some(mut net) = net_with("nodes_that_are_slow_absent_or_none", Driver::Afxdp, FETCHES, &[]) else { return };
    let (package, url) = net.publish("net-monitor");

    // A host runs no modules, and says so when nobody else is asked.
    let message = sign(&net.user, setup(&net, &package, &url), ago(Duration::ZERO), 1);
    let answer = post_body(&net, &serde_json::json!({ "message": message }));
    let result: RequestResult = serde_json::from_value(answer).unwrap();
    assert_eq!(refusal(&result).kind, RefusalKind::NotANode, "{result:?}");

    // The web server says nothing for longer than the requester waits, and shorter than the nodes do.
    let mut silent = net.lab.command("sender", "nc");
    silent.args(["-l", "-k", "8081"]);
    net.lab.start("sender", "silent", &mut silent).unwrap();
    let url = format!("http://{}:8081/x.nsm", net.lab.v4("sender"));
    let within = |message: &str, timeout_ms: u64| -> RequestResult {
        let path = serde_json::json!({ "destination": net.lab.v4("receiver") });
        let body = serde_json::json!({ "message": message, "path": path, "timeout_ms": timeout_ms });
        let answer = post_body(&net, &body);
        serde_json::from_value(answer.clone()).unwrap_or_else(|_| panic!("{answer}"))
    };
    let message = sign(&net.user, setup(&net, &package, &url), ago(Duration::ZERO), 4);
    assert_refused(&within(&message, 2500), RefusalKind::InProgress);
    // With time, it is said what came of it.
    let (file, key) = (package.path.to_string_lossy(), net.user.key.to_string_lossy());
    let (filter, to) = (own(&net), net.lab.v4("receiver").to_string());
    let by = ["--timeout", "2s", "--user", &net.user.name, "--key", &key];
    let setup = ["setup", &file, "--to", &to, "--url", &url, "--filter", &filter];
    let told = net.lab.try_netserv("sender", &[&setup[..], &by].concat()).unwrap();
    let told = String::from_utf8_lossy(&[told.stdout, told.stderr].concat()).into_owned();
    assert!(told.contains("still fetches or compiles") && told.contains("fetch-failed"), "{told}");

    // A node that stands still keeps the others from nothing but its own answer.
    let pid = net.lab.pid("n2", "netservd").unwrap().to_string();
    let signal = |name: &str| assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    signal("-STOP");
    let result = within(&sign(&net.user, RequestBuilder::probe(&[]), ago(Duration::ZERO), 5), 1500);
    signal("-CONT");
    assert_eq!(result.incomplete.as_ref().map(|refusal| refusal.kind), Some(RefusalKind::Timeout), "{result:?}");

    for node in ["n1", "n2"] {
        net.lab.stop(node, "netservd").unwrap();
    }
    let probe = sign(&net.user, RequestBuilder::probe(&[]), ago(Duration::ZERO), 2);
    let result = post(&net, &probe);
    assert_eq!(result.incomplete.as_ref().map(|refusal| refusal.kind), Some(RefusalKind::NoNode), "{result:?}");
}

fn own(net: &Net) -> String {
    format!("udp dst {}/32", net.lab.v4("sender"))
}

fn setup(net: &Net, package: &LabPackage, url: &str) -> RequestBuilder {
    setup_of(net, &package.module, package, url)
}

/// Asks for a module by the name, with the digest of a package.
fn setup_of(net: &Net, module: &str, package: &LabPackage, url: &str) -> RequestBuilder {
    let digest: Digest = package.digest.parse().unwrap();
    RequestBuilder::setup(&module.parse().unwrap(), url, digest, LEASE).filter(&own(net).parse().unwrap())
}

/// Signs a request as the user, with what the command line does not let one write.
fn sign(user: &LabUser, builder: RequestBuilder, created: UnixTime, nonce: u128) -> String {
    let key = SigningKey::from_pkcs8_pem(&std::fs::read_to_string(&user.key).unwrap()).unwrap();
    let unsigned = builder.user(&user.name.parse().unwrap()).build(created, Nonce(nonce.to_be_bytes())).unwrap();
    let signature = Signature(key.sign(unsigned.canonical_bytes()).to_bytes());
    unsigned.with_signature(signature).unwrap().as_str().to_owned()
}

fn ago(time: Duration) -> UnixTime {
    let then = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap() - time;
    UnixTime(u64::try_from(then.as_millis()).unwrap())
}
