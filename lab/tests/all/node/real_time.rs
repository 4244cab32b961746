// SPDX-License-Identifier: Apache-2.0
//! Nodes whose packet threads and workers are in the kernel's real-time class.

use crate::common::{Driver, assert_nodes, eventually, net_with, publish_bad};
use netserv_lab::bench::pin::workers;
use netserv_model::RefusalKind;
use netserv_model::request::Outcome;
use netserv_skips::not_run;

const REAL_TIME: &str = "dataplane.cores = [0]\ndataplane.real-time = true\ndataplane.busy-poll-us = 50\n\
                         [fetch]\nschemes = [\"http\"]\n";

/// Goal: a module that spins for ever in the real-time class, on the one core of packet threads and all workers, is ended like
/// any other that hangs, and the other modules of both nodes go on.
#[test]
fn a_module_that_spins_in_the_class_is_ended() {
    const TEST: &str = "a_module_that_spins_in_the_class_is_ended";
    let Some(net) = net_with(TEST, Driver::Afxdp, REAL_TIME, &[]) else { return };
    let status = net.lab.netserv("n2", &["node", "status"]).unwrap();
    if String::from_utf8_lossy(&status.stdout).contains("real-time class") {
        return not_run(TEST, "no real-time class here");
    }
    let sender = net.lab.v4("sender");
    let (echo, url) = net.publish("echo");
    let installed = |outcome: &Outcome| matches!(outcome, Outcome::Installed { .. });
    assert_nodes(&net.setup(&echo, &url, &format!("udp dst {sender}/32 port 44444")), installed);
    let answers = || net.ask_udp(sender.into(), 44444, "x").is_some();
    eventually("the module answers", answers);
    let theirs = workers(net.lab.pid("n2", "netservd").unwrap()).unwrap();
    eventually("its worker is in the class", || theirs.iter().any(|pid| is_real_time(*pid)));

    let (endless, url) = publish_bad(&net, "endless-loop");
    assert_nodes(&net.setup(&endless, &url, &format!("udp dst {sender}/32 port 7777")), installed);
    eventually("it is ended", || {
        net.ask_udp(sender.into(), 7777, "poke");
        let failure = net.status("n2", &endless).and_then(|status| status.last_failure);
        failure.is_some_and(|failure| failure.kind == RefusalKind::Stalled)
    });
    assert_nodes(&net.remove(&endless), |outcome| *outcome == Outcome::Removed);
    eventually("the other module answers", answers);
    let theirs = workers(net.lab.pid("n2", "netservd").unwrap()).unwrap();
    eventually("and its worker is in the class", || theirs.iter().any(|pid| is_real_time(*pid)));
}

/// The 41st field of `stat` is the policy; the second, a name in parentheses, can hold anything.
fn is_real_time(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(38)) == Some("1")
}
