// SPDX-License-Identifier: Apache-2.0
//! Bundles from Maven Central, as they are, as servers on addresses of their users' own.

use std::path::PathBuf;
use std::time::Duration;

use crate::common::{Driver, Serving, eventually};
use netserv_lab::node::{LabPackage, LabUser, Part, workspace};
use netserv_model::request::Outcome;
use netserv_model::{Refusal, RefusalKind};

over_one_driver! {
    afxdp: [bundles_as_they_are_answer_over_ipv4_and_ipv6, every_building_block_serves_bundles]
    nfqueue: [two_users_both_listen_on_port_80, a_server_that_is_not_permitted_is_refused_up_front]
}

fn two_users_both_listen_on_port_80(driver: Driver) {
    let Some(net) = Serving::start("two_users_both_listen_on_port_80", driver, LISTEN) else { return };
    let hello = |user: &LabUser| package(&net, "pax-hello", user);
    let addresses = [&net.alice, &net.bob].map(|user| {
        assert!(matches!(net.setup(user, &hello(user), &[]), Outcome::Installed { .. }));
        net.address(user, false)
    });
    assert_ne!(addresses[0], addresses[1]);
    for address in addresses {
        net.answers("receiver", address, "/helloworld/hs", "Hello World");
    }
    // One leaves, the other goes on; what left answers no more.
    assert_eq!(net.request(&net.alice, &["remove", "example.org/pax-hello"]), Outcome::Removed);
    eventually("no answer", || net.get("receiver", addresses[0], "/helloworld/hs").is_none());
    net.answers("sender", addresses[1], "/helloworld/hs", "Hello World");
}

fn bundles_as_they_are_answer_over_ipv4_and_ipv6(driver: Driver) {
    let Some(net) = Serving::start("bundles_as_they_are_answer_over_ipv4_and_ipv6", driver, LISTEN) else { return };
    let jolokia = package(&net, "jolokia", &net.alice);
    assert!(matches!(net.setup(&net.alice, &jolokia, &[]), Outcome::Installed { .. }));
    for six in [false, true] {
        net.answers("receiver", net.address(&net.alice, six), "/jolokia/version", "\"product\":\"felix\"");
    }
    // Only what is granted comes in.
    let address = net.address(&net.alice, false);
    let nc = net.lab.command("receiver", "nc").args(["-z", "-w", "1", &address.to_string(), "8080"]).status().unwrap();
    assert!(!nc.success());
}

fn a_server_that_is_not_permitted_is_refused_up_front(driver: Driver) {
    let test = "a_server_that_is_not_permitted_is_refused_up_front";
    let Some(net) = Serving::start(test, driver, LISTEN) else { return };
    let hello = package(&net, "pax-hello", &net.carol);
    let Outcome::Refused(Refusal { kind, detail, .. }) = net.setup(&net.carol, &hello, &[]) else {
        panic!("not refused")
    };
    assert_eq!(kind, RefusalKind::NotPermitted);
    assert!(detail.contains("80"), "{detail}");
}

fn every_building_block_serves_bundles(driver: Driver) {
    let Some(mut net) = Serving::start("every_building_block_serves_bundles", driver, LISTEN) else { return };
    let toolbox = built(&net, "java/samples/toolbox", "toolbox", &net.alice);
    let filter = format!("udp src {} port 5060", net.lab.v4("sender"));
    let outcome = net.setup(&net.alice, &toolbox, &["--filter", &filter]);
    assert!(matches!(outcome, Outcome::Installed { .. }), "{outcome:?}");
    let address = net.address(&net.alice, false);
    for path in ["/cache", "/compress", "/crypto", "/match", "/sip"] {
        net.answers("receiver", address, path, "ok");
    }
    net.answers("receiver", address, "/http-client?url=http://127.0.0.1/hash", "200 ba7816bf8f01cfea");
    // Alice may connect to nobody.
    let elsewhere = format!("/http-client?url=http://{}:80/", net.lab.v4("sender"));
    net.answers("receiver", address, &elsewhere, "Exception");

    let calls = |net: &Serving| {
        let answer = net.get("receiver", address, "/kv")?;
        answer.trim().strip_prefix("ok ")?.parse::<u64>().ok()
    };
    let before = calls(&net).unwrap();
    let mut count = before;
    while count < before + 100 {
        count = calls(&net).unwrap();
    }
    std::thread::sleep(KV_WRITTEN);
    net.lab.kill("node", "netservd").unwrap();
    net.lab.restart_netservd("node").unwrap();
    let mut after = None;
    eventually("an answer", || {
        after = calls(&net);
        after.is_some()
    });
    assert!(after.unwrap() > count, "{count} calls, then {after:?}");
}

/// After which kv state that is set is on the disk.
const KV_WRITTEN: Duration = Duration::from_secs(1);
const LISTEN: &str = "listen = ['tcp port 80']\n";

/// Packs and signs a bundle from Maven Central.
fn package(net: &Serving, name: &str, user: &LabUser) -> LabPackage {
    built(net, &format!("java/samples/central/{name}"), name, user)
}

/// Packs and signs a bundle that was built in a directory.
fn built(net: &Serving, dir: &str, name: &str, user: &LabUser) -> LabPackage {
    let dir = workspace().join(dir);
    let bundle: PathBuf = dir.join("target").join(format!("{name}.jar"));
    assert!(bundle.exists(), "{} is not there; build it: ./dev build", bundle.display());
    let path = net.lab.dir().join(format!("{name}-{}.nsm", user.name));
    net.lab.package_of(&dir.join("netserv.toml"), &[(Part::Bundle, bundle)], &path, user).unwrap()
}
