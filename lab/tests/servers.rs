// SPDX-License-Identifier: Apache-2.0
//! Server modules in Wasm: HTTP modules and programs on addresses of their users' own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::path::Path;
use std::process::{Child, Stdio};

use common::{Driver, Serving, eventually};
use netserv_lab::netns::host_port;
use netserv_lab::node::{LabPackage, LabUser, module_parts, workspace};
use netserv_model::request::{ModuleState, Outcome};
use netserv_model::{Flavour, Refusal, RefusalKind};

const LISTEN: &str = "listen = ['tcp port 80', 'tcp port 7', 'tcp port 443']\n";
const HELLO: &str = "Hello from a NetServ node";

over_each_driver!(
    an_unmodified_component_answers_two_users_over_ipv4_and_ipv6,
    a_module_of_both_roles_shares_its_state,
    an_upgrade_under_load_refuses_no_request,
);

fn an_unmodified_component_answers_two_users_over_ipv4_and_ipv6(driver: Driver) {
    let test = "an_unmodified_component_answers_two_users_over_ipv4_and_ipv6";
    let Some(net) = Serving::start(test, driver, LISTEN) else { return };
    for user in [&net.alice, &net.bob] {
        net.install("hello-http", user, &[]);
        for six in [false, true] {
            net.answers("receiver", net.address(user, six), "/", HELLO);
        }
    }
    assert_ne!(net.address(&net.alice, false), net.address(&net.bob, false));
    // Only what is granted comes in.
    let address = net.address(&net.alice, false).to_string();
    let nc = net.lab.command("receiver", "nc").args(["-z", "-w", "1", &address, "8080"]).status().unwrap();
    assert!(!nc.success());
    let url = format!("http://{address}/echo");
    let echo = net.curl("receiver", &["--data-binary", "there and back", &url]);
    assert_eq!(String::from_utf8_lossy(&echo.stdout), "there and back");

    // One leaves, the other goes on.
    assert_eq!(net.request(&net.alice, &["remove", "example.org/hello-http"]), Outcome::Removed);
    eventually("no answer", || net.get("receiver", address.parse().unwrap(), "/").is_none());
    net.answers("sender", net.address(&net.bob, false), "/", HELLO);
}

fn a_module_of_both_roles_shares_its_state(driver: Driver) {
    let Some(net) = Serving::start("a_module_of_both_roles_shares_its_state", driver, LISTEN) else { return };
    let filter = format!("udp dst {}/32 port 9999", net.lab.v4("sender"));
    net.install("guard", &net.alice, &["--filter", &filter]);
    let (page, receiver) = (net.address(&net.alice, false), net.lab.v4("receiver").to_string());
    let send = || {
        let line = format!("echo hello > /dev/udp/{}/9999", net.lab.v4("sender"));
        assert!(net.lab.command("receiver", "bash").args(["-c", &line]).status().unwrap().success());
    };
    let says = |text: &str| net.get("receiver", page, "/senders").is_some_and(|all| all.contains(text));

    (0..3).for_each(|_| send());
    eventually("three packets are counted", || says(&format!("{receiver} 3 allowed")));
    let wish = net.curl("receiver", &["-X", "POST", &format!("http://{page}/block/{receiver}")]);
    assert_eq!(String::from_utf8_lossy(&wish.stdout), format!("block {receiver}\n"));
    eventually("the sender is blocked", || says(&format!("{receiver} 3 blocked")));
    send();
    eventually("its packet is dropped", || net.status(&net.alice, "guard").unwrap().packets.dropped == 1);

    // What is blocked stays blocked in the next version, which finds the same state.
    let newer = newer(&net, "guard", &net.alice, "1.0.1", "");
    assert!(matches!(net.setup(&net.alice, &newer, &["--filter", &filter]), Outcome::Replaced { .. }));
    send();
    eventually("its packet is dropped", || net.status(&net.alice, "guard").unwrap().packets.dropped == 1);
    assert!(says(&format!("{receiver} ")) && says("blocked"));

    // Both parts leave together.
    assert_eq!(net.request(&net.alice, &["remove", "example.org/guard"]), Outcome::Removed);
    eventually("the page is gone", || net.get("receiver", page, "/").is_none());
}

fn an_upgrade_under_load_refuses_no_request(driver: Driver) {
    let Some(net) = Serving::start("an_upgrade_under_load_refuses_no_request", driver, LISTEN) else { return };
    net.install("hello-http", &net.alice, &[]);
    let address = net.address(&net.alice, false);
    net.answers("receiver", address, "/", HELLO);
    let load = wrk(&net, &format!("http://{address}/"), 4);
    for patch in 1..=3 {
        let newer = newer(&net, "hello-http", &net.alice, &format!("1.0.{patch}"), "");
        assert!(matches!(net.setup(&net.alice, &newer, &[]), Outcome::Replaced { .. }));
    }
    let report = String::from_utf8(load.wait_with_output().unwrap().stdout).unwrap();
    assert!(report.contains("Requests/sec") && !report.contains("Socket errors"), "{report}");
    assert!(!report.contains("Non-2xx"), "{report}");
}

#[test]
fn a_program_with_sockets_of_its_own_runs_as_it_is() {
    let test = "a_program_with_sockets_of_its_own_runs_as_it_is";
    let Some(net) = Serving::start(test, Driver::Nfqueue, LISTEN) else { return };
    net.install("echo-server", &net.alice, &[]);
    let address = net.address(&net.alice, false);
    let script = format!("echo hello | timeout 5 nc -N {address} 7");
    let output = || net.lab.command("receiver", "sh").args(["-c", &script]).output().unwrap().stdout;
    eventually("the echo comes back", || output() == b"hello\n");
}

#[test]
fn a_browser_reads_and_uses_the_page() {
    let Some(net) = Serving::start("a_browser_reads_and_uses_the_page", Driver::Nfqueue, LISTEN) else { return };
    let filter = format!("udp dst {}/32 port 9999", net.lab.v4("sender"));
    net.install("guard", &net.alice, &["--filter", &filter]);
    let address = net.address(&net.alice, true);
    net.answers("receiver", address, "/", "Who sends packets");
    let profile = net.lab.dir().join("browser");
    let mut browser = net.lab.command("receiver", "chromium");
    browser.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"]);
    browser.arg(format!("--user-data-dir={}", profile.display())).arg(format!("http://{}/", host_port(address, 80)));
    let output = browser.output().unwrap();
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(page.contains("<h1>Who sends packets</h1>") && page.contains("id=\"senders\""), "{page}");
}

#[test]
fn a_node_with_ipv6_only_serves() {
    let test = "a_node_with_ipv6_only_serves";
    let Some(net) = Serving::with_prefixes(test, Driver::Nfqueue, &["fd99:8::/64"], LISTEN) else { return };
    net.install("hello-http", &net.alice, &[]);
    assert!(net.status(&net.alice, "hello-http").unwrap().addresses.iter().all(std::net::IpAddr::is_ipv6));
    net.answers("receiver", net.address(&net.alice, true), "/", HELLO);
}

#[test]
fn what_cannot_be_served_is_refused_up_front() {
    let test = "what_cannot_be_served_is_refused_up_front";
    let Some(net) = Serving::start(test, Driver::Nfqueue, LISTEN) else { return };
    let filter = format!("udp dst {}/32 port 9999", net.lab.v4("sender"));
    let refused = |user: &LabUser, package: &LabPackage, kind: RefusalKind, why: &str| {
        let outcome = net.setup(user, package, &["--filter", &filter]);
        let Outcome::Refused(Refusal { kind: got, detail, .. }) = outcome else {
            panic!("{} is not refused", package.module)
        };
        assert_eq!(got, kind, "{detail}");
        assert!(detail.contains(why), "{detail}");
    };
    let hello = net.lab.package("hello-http", &net.carol).unwrap();
    refused(&net.carol, &hello, RefusalKind::NotPermitted, "80");

    // Two modules of a user on one port.
    net.install("hello-http", &net.alice, &[]);
    let other = newer(&net, "guard", &net.alice, "1.0.0", "");
    refused(&net.alice, &other, RefusalKind::PortTaken, "example.org/hello-http");
    net.answers("receiver", net.address(&net.alice, false), "/", HELLO);
}

#[test]
fn a_program_that_ends_is_started_again_and_then_given_up() {
    let test = "a_program_that_ends_is_started_again_and_then_given_up";
    let Some(net) = Serving::start(test, Driver::Nfqueue, "listen = ['tcp port 80']\n") else { return };
    // It may not listen on port 7, so it ends with an error at once, each time.
    let package = newer(&net, "echo-server", &net.alice, "1.0.1", "tcp port 80");
    let outcome = net.setup(&net.alice, &package, &[]);
    let failed = || {
        net.status(&net.alice, "echo-server")
            .is_none_or(|status| matches!(status.state, ModuleState::BackingOff | ModuleState::Quarantined))
    };
    assert!(matches!(outcome, Outcome::Installed { .. } | Outcome::Refused(_)), "{outcome:?}");
    eventually("the failure is seen", failed);
}

/// Packs a sample module with another version, and another port if one is named.
fn newer(net: &Serving, module: &str, user: &LabUser, version: &str, listen: &str) -> LabPackage {
    let source = workspace().join("modules").join(module).join("netserv.toml");
    let text = std::fs::read_to_string(source).unwrap();
    let text = text.split("[[").next().unwrap().replacen("\"1.0.0\"", &format!("{version:?}"), 1);
    let text = if listen.is_empty() { text } else { text.replacen("tcp port 7", listen, 1) };
    let manifest = net.lab.dir().join(format!("{module}-{version}.toml"));
    std::fs::write(&manifest, text).unwrap();
    let out = net.lab.dir().join(format!("{module}-{version}.nsm"));
    net.lab.package_of(&manifest, &module_parts(module, Flavour::Wasm).unwrap(), Path::new(&out), user).unwrap()
}

/// Asks a server over and over, with 16 connections.
fn wrk(net: &Serving, url: &str, seconds: u32) -> Child {
    let mut command = net.lab.command("receiver", "wrk");
    command.args(["-t1", "-c16", &format!("-d{seconds}s"), url]).stdout(Stdio::piped()).spawn().unwrap()
}
