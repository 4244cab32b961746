// SPDX-License-Identifier: Apache-2.0
//! A module's state over real nodes: out of one into the user's store, and from there into another.

use std::process::Command;

use crate::common::store::outcome_of;
use crate::common::{Driver, Net, ask_udp, assert_nodes, eventually, net_with, publish_bundle};
use netserv_lab::netns::program;
use netserv_lab::node::{LabPackage, workspace};
use netserv_lab::states::StateStore;
use netserv_model::request::{ModuleState, Outcome, StateSource};
use netserv_model::{Flavour, RefusalKind};

const MONITOR: &str = "example.org/net-monitor";

/// Goal: what net-monitor counted on n1 goes on on n2, whose operator has another copy of the module; one node has it in each
/// epoch. What is no state of the module, of another digest, or older than what a node knows changes nothing anywhere.
#[test]
fn a_module_moves_with_its_state() {
    let Some((mut net, store)) = net_with_store("a_module_moves_with_its_state", "") else { return };
    let sender = net.lab.v4("sender");
    let (package, url) = net.publish("net-monitor");
    let filter = format!("udp dst {sender}/32");
    let set_up = |node: &str, more: &[&str]| {
        let result = net.setup_with(&package, &url, &filter, &[&["--node", node], more].concat());
        outcome_of(&result, node)
    };
    assert!(matches!(set_up("n1", &["--epoch", "1"]), Outcome::Installed { .. }));
    let counted = |node: &str| {
        let status = net.status(node, &package);
        let counters = status.map(|status| status.counters).unwrap_or_default();
        counters
            .iter()
            .filter(|(name, _)| name.ends_with(&format!(" {sender} 62")))
            .map(|(_, count)| count)
            .sum::<u64>()
    };
    for _ in 0..5 {
        ask_udp(&net.lab, "receiver", sender.into(), 7777, "poke");
    }
    let to = net.lab.v4("receiver").to_string();
    let export = |node: &str, url: &str| {
        let result = net.request(&["state", "export", MONITOR, "--url", url, "--to", &to, "--node", node]);
        outcome_of(&result, node)
    };
    assert_eq!(kind(&export("n1", &format!("http://{sender}:1/s"))), Some(RefusalKind::BadUrl));
    assert_eq!(kind(&export("n2", &store.url("s"))), Some(RefusalKind::NotInstalled));
    let Outcome::Exported { digest, bytes } = export("n1", &store.url("s1")) else { panic!("no state") };
    // It says its counts when it is asked, and goes on.
    assert!(counted("n1") > 0);
    let shown = show(&net, "s1");
    assert_eq!((shown["module"].as_str(), shown["bytes"].as_u64()), (Some(MONITOR), Some(bytes)));
    assert_eq!(shown["digest"].as_str(), Some(digest.to_string().as_str()));

    let begin = |node: &str, epoch: &str, state: &StateSource| {
        set_up(node, &["--epoch", epoch, "--state", &state.url, "--state-digest", &state.digest.to_string()])
    };
    let state = StateSource { url: store.url("s1"), digest };
    let other = StateSource { digest: netserv_model::Digest([1; 32]), ..state.clone() };
    assert_eq!(kind(&begin("n2", "2", &other)), Some(RefusalKind::DigestMismatch));
    let gone = StateSource { url: store.url("none"), digest };
    assert_eq!(kind(&begin("n2", "2", &gone)), Some(RefusalKind::FetchFailed));
    let (keeper, keeper_url) = net.publish("keep-alive");
    let wrong = ["--node", "n2", "--epoch", "1", "--state", &state.url, "--state-digest", &digest.to_string()];
    let result = net.setup_with(&keeper, &keeper_url, &filter, &wrong);
    assert_eq!(kind(&outcome_of(&result, "n2")), Some(RefusalKind::StateRefused));
    let before = counted("n1");
    assert!(matches!(begin("n2", "2", &state), Outcome::Installed { .. }));
    assert_eq!(counted("n2"), before);

    // Whoever asks the whole path takes it from the earlier owner alone.
    let removed = net.request(&["remove", MONITOR, "--to", &to, "--epoch", "2"]);
    assert_eq!(outcome_of(&removed, "n1"), Outcome::Removed);
    assert_eq!(kind(&outcome_of(&removed, "n2")), Some(RefusalKind::OldEpoch));
    assert_eq!(net.status("n2", &package).unwrap().epoch, 2);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(kind(&begin("n1", "2", &state)), Some(RefusalKind::OldEpoch));
    assert_eq!(kind(&set_up("n2", &["--epoch", "1"])), Some(RefusalKind::OldEpoch));
    // The epoch is not forgotten by a node that is killed; its counts are not either.
    net.lab.kill("n2", "netservd").unwrap();
    net.lab.restart_netservd("n2").unwrap();
    eventually("it runs again", || net.status("n2", &package).is_some_and(|is| is.state == ModuleState::Running));
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let package_args = net.setup_with(&package, &url, &filter, &["--node", "n2", "--epoch", "1"]);
    assert_eq!(kind(&outcome_of(&package_args, "n2")), Some(RefusalKind::OldEpoch));
    let again = net.setup_with(&package, &url, &filter, &["--epoch", "3"]);
    assert_nodes(&again, |outcome| matches!(outcome, Outcome::Installed { .. } | Outcome::Refreshed { .. }));
}

/// Goal: what the bundle net-monitor counted and was told on n1 goes on on n2, and from there as WebAssembly on n1, by the same
/// bytes. A bundle that throws when it is asked goes on; one that never answers costs its own worker a restart.
#[test]
fn a_bundle_moves_with_its_state() {
    let flavours = "flavours = [\"osgi\", \"wasm\"]\n";
    let Some((net, store)) = net_with_store("a_bundle_moves_with_its_state", flavours) else { return };
    let sender = net.lab.v4("sender");
    let filter = format!("udp dst {sender}/32 port 7777");
    let publish = |flavour| {
        let package = net.lab.package_in("net-monitor", &[flavour], &net.user).unwrap();
        let url = net.lab.publish("sender", &package).unwrap();
        (package, url)
    };
    let (package, url) = publish(Flavour::Osgi);
    let set_up = |(package, url): &(LabPackage, String), node: &str, more: &[&str]| {
        outcome_of(&net.setup_with(package, url, &filter, &[&["--node", node], more].concat()), node)
    };
    let to = net.lab.v4("receiver").to_string();
    let export = |module: &str, node: &str, name: &str| {
        let url = store.url(name);
        outcome_of(&net.request(&["state", "export", module, "--url", &url, "--to", &to, "--node", node]), node)
    };
    let counted = |node: &str| {
        let counters = net.status(node, &package).map(|status| status.counters).unwrap_or_default();
        counters.iter().filter(|(name, _)| name.contains(&format!(" {sender} "))).map(|(_, count)| count).sum::<u64>()
    };
    let bundle = (package.clone(), url);
    assert!(matches!(set_up(&bundle, "n1", &["--epoch", "1"]), Outcome::Installed { .. }));
    for _ in 0..3 {
        ask_udp(&net.lab, "receiver", sender.into(), 7777, "poke");
    }
    let told = net.request(&["tell", MONITOR, "--topic", "sample", "--to", &to, "--node", "n1", "5"]);
    assert_eq!(outcome_of(&told, "n1"), Outcome::Told);
    let Outcome::Exported { digest, .. } = export(MONITOR, "n1", "s1") else { panic!("no state") };
    eventually("they are counted", || counted("n1") == 3);
    let shown = show(&net, "s1");
    assert_eq!((shown["parts"]["packet"].as_u64(), shown["entries"].as_u64()), (Some(8), Some(2)), "{shown}");

    let from = |name: &str, epoch: &str| {
        let (url, digest) = (store.url(name), digest.to_string());
        ["--epoch", epoch, "--state", &url, "--state-digest", &digest].map(str::to_owned)
    };
    let begin = |module: &(LabPackage, String), node: &str, name: &str, epoch: &str| {
        let more = from(name, epoch);
        set_up(module, node, &more.each_ref().map(String::as_str))
    };
    let again = |node: &str, name: &str| {
        let outcome = export(MONITOR, node, name);
        assert!(matches!(outcome, Outcome::Exported { digest: other, .. } if other == digest), "{node}: {outcome:?}");
        let flavour = net.status(node, &package).unwrap().flavour;
        // A node looks at modules' counters now and then.
        eventually("its counts are known", || counted(node) > 0);
        (counted(node), flavour)
    };
    assert!(matches!(begin(&bundle, "n2", "s1", "2"), Outcome::Installed { .. }));
    let removed = net.request(&["remove", MONITOR, "--to", &to, "--epoch", "2"]);
    assert_eq!(outcome_of(&removed, "n1"), Outcome::Removed);
    assert_eq!(again("n2", "s2"), (3, Some(Flavour::Osgi)));
    assert!(matches!(begin(&publish(Flavour::Wasm), "n1", "s2", "3"), Outcome::Installed { .. }));
    assert_eq!(again("n1", "s3"), (3, Some(Flavour::Wasm)));

    for (behaviour, expected) in [("throw", RefusalKind::StateRefused), ("loop", RefusalKind::NotRunning)] {
        let name = format!("{behaviour}-export");
        let properties = format!("behaviour = {behaviour:?}\nwhen = \"export\"\n");
        let bad = publish_bundle(&net, &name, &properties, workspace().join("java/samples/bad/target/bad.jar"));
        assert!(matches!(set_up(&bad, "n2", &["--epoch", "1"]), Outcome::Installed { .. }));
        assert_eq!(kind(&export(&format!("example.org/{name}"), "n2", "bad")), Some(expected));
        if behaviour == "throw" {
            assert_eq!(net.status("n2", &bad.0).unwrap().state, ModuleState::Running);
            assert_eq!(outcome_of(&net.remove(&bad.0), "n2"), Outcome::Removed);
        } else {
            let fails = || net.status("n2", &bad.0).is_some_and(|is| is.last_failure.is_some());
            eventually("it is known who never answers", fails);
        }
    }
    assert!(!net.lab.dir().join("states/bad").exists());
    // The bundle beside them is started anew with what it keeps.
    let runs = || net.status("n2", &package).is_some_and(|is| is.state == ModuleState::Running && is.restarts > 0);
    eventually("it runs again", runs);
    assert_eq!(counted("n2"), 3);
}

/// A network whose nodes write states to a store on the sender.
fn net_with_store(test: &str, extra: &str) -> Option<(Net, StateStore)> {
    let mut net = net_with(test, Driver::Nfqueue, "", &[])?;
    let config = format!("{extra}{}", StateStore::config(&net.lab, "sender"));
    for node in ["n1", "n2"] {
        net.lab.stop(node, "netservd").unwrap();
        net.lab.start_netservd(node, "node", std::slice::from_ref(&net.user), &config).unwrap();
    }
    let store = StateStore::open(&mut net.lab, "sender").unwrap();
    Some((net, store))
}

/// Returns what `netserv state show` says of a state in the store.
fn show(net: &Net, name: &str) -> serde_json::Value {
    let mut command = Command::new(program("netserv").unwrap());
    let output = command.args(["-j", "state", "show"]).arg(net.lab.dir().join("states").join(name)).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn kind(outcome: &Outcome) -> Option<RefusalKind> {
    let Outcome::Refused(refusal) = outcome else { panic!("not refused: {outcome:?}") };
    Some(refusal.kind)
}
