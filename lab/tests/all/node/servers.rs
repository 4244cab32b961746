// SPDX-License-Identifier: Apache-2.0
//! Server modules in Wasm: HTTP modules and programs on addresses of their users' own.

use std::path::Path;
use std::process::{Child, Stdio};

use crate::common::browser::Browser;
use crate::common::{Driver, Serving, eventually};
use netserv_lab::netns::host_port;
use netserv_lab::node::{LabPackage, LabUser, module_parts, project};
use netserv_model::request::{ModuleState, Outcome};
use netserv_model::{Flavour, Refusal, RefusalKind};
use serde_json::{Value, json};

const LISTEN: &str = "listen = ['tcp port 80', 'tcp port 7', 'tcp port 443']\n";
const HELLO: &str = "Hello from a NetServ node";

over_one_driver! {
    afxdp: [an_unmodified_component_answers_two_users_over_ipv4_and_ipv6, an_upgrade_under_load_refuses_no_request]
    nfqueue: [a_module_of_both_roles_shares_its_state]
}

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
    let newer = newer(&net, "guard", &net.alice, "1.0.1");
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
        let newer = newer(&net, "hello-http", &net.alice, &format!("1.0.{patch}"));
        assert!(matches!(net.setup(&net.alice, &newer, &[]), Outcome::Replaced { .. }));
    }
    let report = String::from_utf8(load.wait_with_output().unwrap().stdout).unwrap();
    assert!(report.contains("Requests/sec") && !report.contains("Socket errors"), "{report}");
    assert!(!report.contains("Non-2xx"), "{report}");
}

/// Goal: requests that are under way when the user's last module is removed are answered, also if the module comes back
/// meanwhile or the node is stopped. Method: a client that takes two seconds to say what is to be echoed.
#[test]
fn what_is_under_way_is_answered_after_the_last_module_was_removed() {
    let test = "what_is_under_way_is_answered_after_the_last_module_was_removed";
    let Some(mut net) = Serving::start(test, Driver::Nfqueue, LISTEN) else { return };
    let package = net.install("hello-http", &net.alice, &[]);
    let address = net.address(&net.alice, false);
    net.answers("receiver", address, "/", HELLO);
    let links = || {
        let output = net.lab.command("node", "ip").args(["route", "show", "proto", "78"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(links().contains(&address.to_string()));

    let slow = slow_echo(&net, address);
    assert_eq!(net.request(&net.alice, &["remove", "example.org/hello-http"]), Outcome::Removed);
    eventually("nobody is served any more", || net.get("receiver", address, "/").is_none());
    assert_eq!(answer(slow), "first second");
    eventually("the network goes after the worker", || links().is_empty());

    let installed = |outcome: &Outcome| matches!(outcome, Outcome::Installed { .. });
    assert!(installed(&net.setup(&net.alice, &package, &[])));
    net.answers("receiver", address, "/", HELLO);
    let slow = slow_echo(&net, address);
    assert_eq!(net.request(&net.alice, &["remove", "example.org/hello-http"]), Outcome::Removed);
    let outcome = net.setup(&net.alice, &package, &[]);
    assert!(installed(&outcome), "{outcome:?}");
    assert_eq!(answer(slow), "first second");
    assert_eq!(net.address(&net.alice, false), address);
    net.answers("receiver", address, "/", HELLO);

    let slow = slow_echo(&net, address);
    net.lab.stop("node", "netservd").unwrap();
    assert_eq!(answer(slow), "first second");
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

/// Goal: the page is of use to people. Method: a browser presses the button beside the one sender that there is, as
/// somebody does who looks at the page, and the sender's next packet is dropped.
#[test]
fn a_browser_reads_and_uses_the_page() {
    let Some(net) = Serving::start("a_browser_reads_and_uses_the_page", Driver::Nfqueue, LISTEN) else { return };
    let filter = format!("udp dst {}/32 port 9999", net.lab.v4("sender"));
    net.install("guard", &net.alice, &["--filter", &filter]);
    let (address, client) = (net.address(&net.alice, true), net.lab.v4("receiver"));
    let send = || {
        let line = format!("echo hello > /dev/udp/{}/9999", net.lab.v4("sender"));
        assert!(net.lab.command("receiver", "bash").args(["-c", &line]).status().unwrap().success());
    };
    send();
    net.answers("receiver", address, "/", &client.to_string());
    let mut browser = Browser::open(&net.lab, "receiver", &format!("http://{}/", host_port(address, 80)));
    let mut page = Value::Null;
    eventually("the page has the sender", || {
        page = browser.evaluate("document.querySelector('#senders')?.innerText");
        page.as_str().is_some_and(|text| text.contains(&client.to_string()))
    });
    assert_eq!(page, json!(format!("address\tpackets\t\n{client}\t1\t\nblock")));
    assert_eq!(browser.evaluate("document.querySelector('h1').innerText"), json!("Who sends packets"));
    assert_eq!(browser.evaluate("document.querySelectorAll('button').length"), json!(1));
    browser.evaluate("document.querySelector('button').click()");
    let said = json!(format!("block {client}\n"));
    eventually("the answer is shown", || browser.evaluate("document.body?.innerText") == said);
    send();
    eventually("its packet is dropped", || net.status(&net.alice, "guard").unwrap().packets.dropped == 1);
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
    let other = newer(&net, "guard", &net.alice, "1.0.0");
    refused(&net.alice, &other, RefusalKind::PortTaken, "example.org/hello-http");
    net.answers("receiver", net.address(&net.alice, false), "/", HELLO);
}

#[test]
fn a_program_that_ends_is_started_again_and_then_given_up() {
    let test = "a_program_that_ends_is_started_again_and_then_given_up";
    let Some(net) = Serving::start(test, Driver::Nfqueue, LISTEN) else { return };
    let manifest = net.lab.dir().join("program.toml");
    let text = "manifest = 1\nname = \"example.org/program\"\nversion = \"1.0.0\"\n\
                dependencies = [\"command>=1\"]\n[server]\nlisten = [\"tcp port 80\"]\n";
    std::fs::write(&manifest, text).unwrap();
    let (parts, out) = (module_parts("server-program", Flavour::Wasm).unwrap(), net.lab.dir().join("program.nsm"));
    let package = net.lab.package_of(&manifest, &parts, &out, &net.alice).unwrap();
    // It runs for a while, then may not have the port that it wants, and ends.
    let wishes = ["--property", "wait-ms=500", "--property", "port=81"];
    let outcome = net.setup(&net.alice, &package, &wishes);
    assert!(matches!(outcome, Outcome::Installed { .. }), "{outcome:?}");
    eventually("it is given up", || net.status(&net.alice, "program").unwrap().state == ModuleState::Quarantined);
    // How often it was started again, and that it ended by itself each time, is counted. The states in between last for
    // too short a time to be seen from here; the controller's own tests see them.
    assert_eq!(net.status(&net.alice, "program").unwrap().restarts, 4);
    let metrics = net.lab.metrics("node").unwrap();
    for counted in [
        r#"netserv_controller_events_total{event="module-failure"} 5"#,
        r#"netserv_controller_events_total{event="quarantine"} 1"#,
    ] {
        assert!(metrics.lines().any(|line| line == counted), "no `{counted}` in\n{metrics}");
    }
    let failure = net.status(&net.alice, "program").unwrap().last_failure.unwrap();
    assert_eq!(failure.kind, RefusalKind::Trapped, "{failure}");
    assert_eq!(net.get("receiver", net.address(&net.alice, false), "/"), None);
}

/// Packs a sample module with another version.
fn newer(net: &Serving, module: &str, user: &LabUser, version: &str) -> LabPackage {
    let text = std::fs::read_to_string(project(module).unwrap()).unwrap();
    let text = text.split("[[").next().unwrap().replacen("\"1.0.0\"", &format!("{version:?}"), 1);
    let manifest = net.lab.dir().join(format!("{module}-{version}.toml"));
    std::fs::write(&manifest, text).unwrap();
    let out = net.lab.dir().join(format!("{module}-{version}.nsm"));
    net.lab.package_of(&manifest, &module_parts(module, Flavour::Wasm).unwrap(), Path::new(&out), user).unwrap()
}

/// Has a server of alice's echo what takes two seconds to be said, and returns when the request is under way.
fn slow_echo(net: &Serving, address: std::net::IpAddr) -> Child {
    let requests = || net.status(&net.alice, "hello-http").and_then(|status| status.server).unwrap().requests;
    let before = requests();
    let script =
        format!("(printf 'first '; sleep 2; printf second) | curl -sN -m 9 -X POST -T - http://{address}/echo");
    let mut command = net.lab.command("receiver", "sh");
    let child = command.args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    eventually("the request is under way", || requests() > before);
    child
}

fn answer(client: Child) -> String {
    String::from_utf8(client.wait_with_output().unwrap().stdout).unwrap()
}

/// Asks a server over and over, with 16 connections.
fn wrk(net: &Serving, url: &str, seconds: u32) -> Child {
    let mut command = net.lab.command("receiver", "wrk");
    command.args(["-t1", "-c16", &format!("-d{seconds}s"), url]).stdout(Stdio::piped()).spawn().unwrap()
}
