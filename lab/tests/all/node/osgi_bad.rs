// SPDX-License-Identifier: Apache-2.0
//! Bundles that do what they must not: each costs at most its own user's container, and an innocent user beside it, who
//! has modules of both flavours, notices nothing.

use std::path::PathBuf;
use std::time::Duration;

use crate::common::{
    Driver, Net, ask_udp, assert_nodes, eventually, net_with, publish_bundle, request_as, sending_udp,
};
use netserv_lab::netns::wait_until;
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::node::{LabPackage, workspace};
use netserv_model::request::{ModuleStatus, Outcome};
use netserv_model::{Flavour, Refusal, RefusalKind};

/// The innocent user's echo is asked every 10 ms, from beginning to end.
const INNOCENT_PORT: u16 = 44444;
/// How long an answer may take before the innocent user has noticed something: tests beside this one take processors, too.
const NOTICED_MS: u32 = 2000;
/// Where the bad bundles' packets go.
const BAD_PORT: u16 = 7777;

over_one_driver! {
    afxdp: [bundles_that_end_their_process, bundles_that_do_not_stop]
    nfqueue: [bundles_that_fail_on_packets, bundles_that_try_to_get_out]
}

/// No driver has part in it.
#[test]
fn bundles_that_cannot_be_started() {
    let Some(mut net) = troubled("bundles_that_cannot_be_started", Driver::Afxdp) else { return };
    for (name, kind, named) in [
        ("missing-import", RefusalKind::MissingDependency, "package"),
        ("missing-capability", RefusalKind::MissingDependency, "capability"),
        ("newer-java", RefusalKind::MissingDependency, "Java"),
        ("newer-class", RefusalKind::MissingDependency, "Java"),
        ("damaged-class", RefusalKind::BadCode, ""),
        ("missing-activator", RefusalKind::BadCode, ""),
        ("extension", RefusalKind::BadCode, ""),
        ("fragment", RefusalKind::BadCode, ""),
    ] {
        let (package, url) = publish_bundle(&net, name, "", broken(name));
        let refusal = crate::common::refusal(&net.setup(&package, &url, &filter(&net)));
        assert_eq!(refusal.kind, kind, "{name}: {refusal}");
        assert!(refusal.detail.contains(named), "{name}: {refusal}");
    }
    assert_unhurt(&mut net);
}

/// No driver has part in it.
#[test]
fn bundles_that_fail_while_they_start() {
    let Some(mut net) = troubled("bundles_that_fail_while_they_start", Driver::Nfqueue) else { return };
    for (behaviour, kinds) in [
        ("throw", &[RefusalKind::Trapped][..]),
        ("stack", &[RefusalKind::Trapped]),
        ("heap", &[RefusalKind::MemoryLimit]),
        ("threads", &[RefusalKind::MemoryLimit]),
        ("block", &[RefusalKind::Stalled]),
        ("deadlock", &[RefusalKind::Stalled]),
        ("loop", &[RefusalKind::Stalled]),
        ("exit", &[RefusalKind::Trapped, RefusalKind::NodeFailed]),
        ("halt", &[RefusalKind::Trapped, RefusalKind::NodeFailed]),
    ] {
        let (package, url) = bad(&net, behaviour, "start");
        let refusal = crate::common::refusal(&net.setup(&package, &url, &filter(&net)));
        assert!(kinds.contains(&refusal.kind), "{behaviour}: {refusal}");
        assert!(behaviour != "throw" || is_in_its_code(&refusal), "{behaviour}: {refusal:?}");
    }
    assert_unhurt(&mut net);
}

/// The first line of what is known of a failure is a method of the bundle's own.
fn is_in_its_code(refusal: &Refusal) -> bool {
    refusal.context.first().is_some_and(|line| line.starts_with("in org.netserv.samples.bad."))
}

fn bundles_that_fail_on_packets(driver: Driver) {
    let Some(mut net) = troubled("bundles_that_fail_on_packets", driver) else { return };
    for (behaviour, kinds) in [
        ("throw", &[RefusalKind::Trapped][..]),
        ("error", &[RefusalKind::Trapped]),
        ("rude", &[RefusalKind::Trapped]),
        ("stack", &[RefusalKind::Trapped]),
        ("heap", &[RefusalKind::MemoryLimit]),
        // Java tries for half a second before it says that there is no more, which is more than this module may take.
        ("direct", &[RefusalKind::MemoryLimit, RefusalKind::Stalled]),
        // The module fails for want of threads, and then the worker ends, since it has none left to stop the module.
        ("threads", &[RefusalKind::MemoryLimit, RefusalKind::Stalled]),
        ("block", &[RefusalKind::Stalled]),
        ("deadlock", &[RefusalKind::Stalled]),
        ("loop", &[RefusalKind::Stalled]),
    ] {
        let failure = run_until_it_fails(&net, behaviour);
        let kind = failure.last_failure.as_ref().map(|refusal| refusal.kind);
        assert!(kind.is_some_and(|kind| kinds.contains(&kind)), "{behaviour}: {failure:?}");
        let said = failure.last_failure.as_ref().is_some_and(is_in_its_code);
        assert!(said || !["throw", "error", "stack"].contains(&behaviour), "{behaviour}: {failure:?}");
    }
    assert_unhurt(&mut net);
}

fn bundles_that_end_their_process(driver: Driver) {
    let Some(mut net) = troubled("bundles_that_end_their_process", driver) else { return };
    for behaviour in ["exit", "halt", "crash"] {
        run_until_it_fails(&net, behaviour);
    }
    assert_unhurt(&mut net);
}

fn bundles_that_try_to_get_out(driver: Driver) {
    let Some(mut net) = troubled("bundles_that_try_to_get_out", driver) else { return };
    for behaviour in ["exec", "library", "files", "sockets", "quotas", "scribble", "flood"] {
        let (package, url) = bad(&net, behaviour, "packet");
        assert_nodes(&net.setup(&package, &url, &filter(&net)), |outcome| matches!(outcome, Outcome::Installed { .. }));
        eventually("the bundle has tried", || {
            poke(&net);
            let counters = net.status("n2", &package).unwrap().counters;
            let tried = counters.get("refused").is_some_and(|count| *count > 0);
            counters.get("seen").is_some_and(|count| *count > 1) && (tried || !refuses(behaviour))
        });
        let status = net.status("n2", &package).unwrap();
        let done = status.counters.get("done").copied().unwrap_or(0);
        assert!(done == 0 || !refuses(behaviour), "{behaviour}: {status:?}");
        assert_nodes(&net.remove(&package), |outcome| *outcome == Outcome::Removed);
    }
    assert_unhurt(&mut net);
}

/// What the bundle tries is refused by the sandbox, and it counts that.
fn refuses(behaviour: &str) -> bool {
    ["exec", "library", "files", "sockets"].contains(&behaviour)
}

fn bundles_that_do_not_stop(driver: Driver) {
    let Some(mut net) = troubled("bundles_that_do_not_stop", driver) else { return };
    for behaviour in ["throw", "block", "loop", "exit"] {
        let (package, url) = bad(&net, behaviour, "stop");
        assert_nodes(&net.setup(&package, &url, &filter(&net)), |outcome| matches!(outcome, Outcome::Installed { .. }));
        assert_nodes(&net.remove(&package), |outcome| *outcome == Outcome::Removed);
        if behaviour == "throw" {
            eventually("the log says how it stopped", || {
                let said = said_of(&net, &package);
                let words = ["the module failed while it stopped", "thrown on purpose"];
                words.iter().all(|word| said.iter().any(|line| line.contains(word)))
            });
        }
        // The next one runs whatever the last one left.
        let (next, url) = bad(&net, "nothing", "packet");
        assert_nodes(&net.setup(&next, &url, &filter(&net)), |outcome| matches!(outcome, Outcome::Installed { .. }));
        eventually("the next bundle sees packets", || {
            poke(&net);
            net.status("n2", &next).is_some_and(|status| status.counters.get("seen").is_some_and(|seen| *seen > 0))
        });
        assert_nodes(&net.remove(&next), |outcome| *outcome == Outcome::Removed);
    }
    assert_unhurt(&mut net);
}

/// Returns the lines of a module in its node's log.
fn said_of(net: &Net, package: &LabPackage) -> Vec<String> {
    let told = net.lab.netserv("n2", &["node", "logs"]).unwrap();
    let name = package.module.split('@').next().unwrap();
    let lines = String::from_utf8_lossy(&told.stdout).into_owned();
    lines.lines().filter(|line| line.contains(name)).map(str::to_owned).collect()
}

/// A network in which `innocent` runs a bundle and a WebAssembly module for the receiver's address.
fn troubled(test: &str, driver: Driver) -> Option<Net> {
    let extra = format!("flavours = [\"osgi\", \"wasm\"]\n{FILES_ALLOWED}");
    let mut net = net_with(test, driver, &extra, &[("innocent", &["10.4.0.2/32"])])?;
    let innocent = net.others[0].clone();
    let receiver = net.lab.v4("receiver");
    for (module, flavour) in [("net-monitor", Flavour::Osgi), ("echo", Flavour::Wasm)] {
        let package = net.lab.package_in(module, &[flavour], &innocent).unwrap();
        let url = net.lab.publish("sender", &package).unwrap();
        let (file, to) = (package.path.to_string_lossy().into_owned(), receiver.to_string());
        let filter = format!("udp dst {receiver}/32 port {INNOCENT_PORT}");
        let args = ["setup", &file, "--to", &to, "--url", &url, "--filter", &filter];
        let result = request_as(&net.lab, &innocent, &args);
        assert_nodes(&result, |outcome| matches!(outcome, Outcome::Installed { .. }));
    }
    // Each line of its output is an answer that did not come in time.
    let asking = format!(
        "use IO::Socket::INET; use Time::HiRes qw(time sleep); $| = 1; \
         $s = IO::Socket::INET->new(PeerAddr => '{receiver}', PeerPort => {INNOCENT_PORT}, Proto => 'udp') or die $!; \
         print \"asking\\n\"; while (1) {{ my $id = ++$n; my $at = time; $s->send($id); \
         eval {{ local $SIG{{ALRM}} = sub {{ die }}; Time::HiRes::ualarm({NOTICED_MS} * 1000); \
         do {{ $s->recv($got, 20) }} while ($got ne $id); Time::HiRes::ualarm(0); 1 }} \
         or print \"no answer to $id after \" . int(1000 * (time - $at)) . \" ms\\n\"; sleep 0.01 }}"
    );
    let mut command = net.lab.command("sender", "perl");
    command.args(["-e", &asking]);
    net.lab.start("sender", "asking", &mut command).unwrap();
    eventually("the innocent user asks", || net.lab.log("sender", "asking").contains("asking"));
    Some(net)
}

/// The innocent user got every answer in time, in both workers, and nothing of anybody else is left.
fn assert_unhurt(net: &mut Net) {
    assert!(!net.lab.has_ended("sender", "asking"), "nobody asked");
    assert_eq!(net.lab.log("sender", "asking").trim(), "asking", "the innocent user noticed something");
    let receiver = net.lab.v4("receiver").into();
    assert_eq!(ask_udp(&net.lab, "sender", receiver, INNOCENT_PORT, "still here").as_deref(), Some("still here"));
    for node in ["n1", "n2"] {
        let modules = net.lab.modules(node).unwrap().modules;
        let left: Vec<&ModuleStatus> = modules.iter().filter(|status| status.user.as_str() != "innocent").collect();
        assert!(left.is_empty(), "state is left on {node}: {left:?}");
        let failed: Vec<&ModuleStatus> =
            modules.iter().filter(|status| status.restarts > 0 || status.last_failure.is_some()).collect();
        assert!(failed.is_empty(), "the innocent user's modules failed on {node}: {failed:?}");
    }
}

/// Installs a bundle that fails on its first packet, sends packets until the failure is known, and removes it. Packets
/// pass meanwhile, since it fails open.
fn run_until_it_fails(net: &Net, behaviour: &str) -> ModuleStatus {
    let (package, url) = bad(net, behaviour, "packet");
    assert_nodes(&net.setup(&package, &url, &filter(net)), |outcome| matches!(outcome, Outcome::Installed { .. }));
    let failed = wait_until(Duration::from_secs(20), || {
        poke(net);
        net.status("n2", &package).is_some_and(|status| status.last_failure.is_some())
    });
    let status = net.status("n2", &package).unwrap();
    assert!(failed, "{behaviour} did not fail: {status:?}\n{}", net.lab.log("n2", "netservd"));
    assert_nodes(&net.remove(&package), |outcome| *outcome == Outcome::Removed);
    status
}

/// Sends packets to the bad bundles.
fn poke(net: &Net) {
    let poke = || {
        let socket = sending_udp(net.lab.v4("sender").into(), BAD_PORT).unwrap();
        // Nobody listens, which ICMP may say of the one before.
        (0..3).for_each(|_| drop(socket.send(b"poke")));
    };
    net.lab.within("receiver", poke).unwrap();
}

fn filter(net: &Net) -> String {
    format!("udp dst {}/32 port {BAD_PORT}", net.lab.v4("sender"))
}

/// Packs the bundle that behaves badly, each behaviour as a module of its own.
fn bad(net: &Net, behaviour: &str, when: &str) -> (LabPackage, String) {
    let properties = format!("behaviour = {behaviour:?}\nwhen = {when:?}\ntarget = \"{}:80\"\n", net.lab.v4("sender"));
    publish_bundle(
        net,
        &format!("{behaviour}-{when}"),
        &properties,
        workspace().join("java/samples/bad/target/bad.jar"),
    )
}

fn broken(name: &str) -> PathBuf {
    workspace().join("java/samples/bad/broken").join(format!("{name}.jar"))
}
