// SPDX-License-Identifier: Apache-2.0
//! Services made of installed modules: HTTP middleware in front of an HTTP module.

use crate::common::{Driver, Serving, eventually};
use netserv_lab::node::{LabPackage, Part, module_parts, project};
use netserv_model::request::{ModuleState, Outcome};
use netserv_model::{Flavour, Refusal, RefusalKind};

const LISTEN: &str = "listen = ['tcp port 80']\n";
const HELLO: &str = "Hello from a NetServ node";
const CHAIN: [&str; 2] = ["example.org/token@^1", "example.org/hello-http@^1"];

/// Goal: requests go through the parts in order, a new version of a part is composed in, and a part that leaves takes the
/// service with it.
#[test]
fn middleware_stands_before_a_module_until_it_is_removed() {
    let test = "middleware_stands_before_a_module_until_it_is_removed";
    let Some(net) = Serving::start(test, Driver::Nfqueue, LISTEN) else { return };
    let service = service(&net, "1.0.0", &CHAIN);
    let refusal = refused(net.setup(&net.alice, &service, &[]));
    assert_eq!(refusal.kind, RefusalKind::MissingPart);
    assert!(refusal.detail.contains("example.org/token@^1"), "{refusal}");

    installed(&net.setup(&net.alice, &part(&net, "token", "1.0.0"), &[]));
    installed(&net.setup(&net.alice, &part(&net, "hello-http", "1.0.0"), &[]));
    let address = net.address(&net.alice, false);
    assert_eq!(net.get("receiver", address, "/"), None, "parts serve nothing by themselves");
    installed(&net.setup(&net.alice, &service, &["--property", "token=secret"]));
    net.answers("receiver", address, "/", "a token is needed");
    let url = format!("http://{address}/");
    let with_token = || net.curl("receiver", &["-H", "authorization: Bearer secret", &url]);
    assert!(String::from_utf8_lossy(&with_token().stdout).contains(HELLO));
    let status = net.status(&net.alice, "shop").unwrap();
    assert_eq!((status.state, status.chain.len()), (ModuleState::Running, 2));

    let newer = part(&net, "hello-http", "1.1.0");
    assert!(matches!(net.setup(&net.alice, &newer, &[]), Outcome::Replaced { .. }));
    let composed = || net.status(&net.alice, "shop").unwrap().chain.iter().any(|part| part.version.minor == 1);
    eventually("the service has the new part", composed);
    assert!(String::from_utf8_lossy(&with_token().stdout).contains(HELLO));

    assert_eq!(net.request(&net.alice, &["remove", "example.org/token"]), Outcome::Removed);
    eventually("the service is gone", || net.status(&net.alice, "shop").is_none());
    eventually("nothing answers", || net.get("receiver", address, "/").is_none());
    let log = net.lab.log("node", "netservd");
    assert!(log.contains("a service is removed") && log.contains("example.org/token@^1"), "{log}");
}

#[test]
fn parts_that_do_not_fit_are_refused_by_name() {
    let Some(net) = Serving::start("parts_that_do_not_fit_are_refused_by_name", Driver::Nfqueue, LISTEN) else {
        return;
    };
    installed(&net.setup(&net.alice, &part(&net, "token", "1.0.0"), &[]));
    installed(&net.setup(&net.alice, &part(&net, "hello-http", "1.0.0"), &[]));
    let turned = service(&net, "1.0.0", &[CHAIN[1], CHAIN[0]]);
    let refusal = refused(net.setup(&net.alice, &turned, &[]));
    assert_eq!(refusal.kind, RefusalKind::BadService, "{refusal}");
    assert!(refusal.detail.contains("example.org/hello-http@1.0.0 answers itself"), "{refusal}");
    let old = service(&net, "1.0.1", &["example.org/token@^2", CHAIN[1]]);
    let refusal = refused(net.setup(&net.alice, &old, &[]));
    assert_eq!(refusal.kind, RefusalKind::MissingPart, "{refusal}");
    assert!(refusal.detail.contains("version 1.0.0 is installed"), "{refusal}");
}

fn installed(outcome: &Outcome) {
    assert!(matches!(outcome, Outcome::Installed { .. }), "{outcome:?}");
}

fn refused(outcome: Outcome) -> Refusal {
    let Outcome::Refused(refusal) = outcome else { panic!("{outcome:?}") };
    refusal
}

/// Packs a sample module that takes no connections of its own.
fn part(net: &Serving, module: &str, version: &str) -> LabPackage {
    let text = std::fs::read_to_string(project(module).unwrap()).unwrap();
    let text = text.split("[[").next().unwrap().replacen("\"1.0.0\"", &format!("{version:?}"), 1);
    let text = text.replacen("listen = [\"tcp port 80\"]", "listen = []", 1);
    package(net, module, version, &text, &module_parts(module, Flavour::Wasm).unwrap())
}

fn service(net: &Serving, version: &str, chain: &[&str]) -> LabPackage {
    let text = format!(
        "manifest = 1\nname = \"example.org/shop\"\nversion = \"{version}\"\n[service]\nchain = {chain:?}\n\
         [server]\nlisten = [\"tcp port 80\"]\n"
    );
    package(net, "shop", version, &text, &[])
}

fn package(net: &Serving, name: &str, version: &str, text: &str, parts: &[(Part, std::path::PathBuf)]) -> LabPackage {
    let manifest = net.lab.dir().join(format!("{name}-{version}.toml"));
    std::fs::write(&manifest, text).unwrap();
    net.lab.package_of(&manifest, parts, &net.lab.dir().join(format!("{name}-{version}.nsm")), &net.alice).unwrap()
}
