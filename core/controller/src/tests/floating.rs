// SPDX-License-Identifier: Apache-2.0
//! Addresses that follow a module: whose they are, in which epoch, and for how long they lead here.

use std::net::IpAddr;
use std::time::Duration;

use netserv_model::effect::{EffectOutcome, InstalledRecord, Job, Stored, WorkerNews};
use netserv_model::floating::GivenUp;
use netserv_model::policy::NodePolicy;
use netserv_model::request::{Ask, Body, Outcome, Setup};
use netserv_model::{Flavour, Refusal, RefusalKind, WantedFilter};

use super::script::*;
use super::servers::server_policy;

const FIRST: &str = "10.2.0.9";
const SECOND: &str = "10.2.0.10";

#[test]
fn an_address_leads_here_from_before_its_module_sees_packets_until_the_module_is_gone() {
    let mut node = Node::with(server_policy());
    let asked = floating("m@1.0.0", 1, &[FIRST, SECOND]);
    let id = node.setup(asked.clone());
    node.fetched(0, manifest(&asked));
    node.ready();
    node.loaded(0);
    let all = node.commands();
    let place = |line: &str| all.iter().position(|found| found.starts_with(line)).unwrap_or_else(|| panic!("{all:?}"));
    assert!(place("load ") < place("float 10.2.0.9 10.2.0.10") && place("float") < place("filter 0"), "{all:?}");
    assert!(place("filter 0") < place("store jane m") && all.contains(&format!("answer {id} installed 600")));
    let status = node.probe(&[Ask::Modules]).modules.remove(0);
    assert_eq!(status.floating, [FIRST, SECOND].map(address));

    // The next version goes on with one of them; while it fails, nothing changes.
    node.sleep_ms(1000);
    let next = floating("m@2.0.0", 1, &[SECOND]);
    node.setup(next.clone());
    node.fetched(1, manifest(&next));
    node.loaded(1);
    let commands = node.commands();
    let floats: Vec<&String> = commands.iter().filter(|line| line.starts_with("float")).collect();
    assert_eq!(floats, ["float 10.2.0.10"], "{commands:?}");
    node.trapped(1);
    node.died(None);
    assert!(node.commands().iter().all(|line| !line.starts_with("float")), "it stays while its module is down");
    node.remove("m");
    let all = node.commands();
    assert!(all.contains(&"float ".to_owned()), "{all:?}");
    node.assert_empty();
}

#[test]
fn an_address_that_is_kept_is_never_asked_for_again() {
    let mut node = Node::with(server_policy());
    install(&mut node, floating("m@1.0.0", 1, &[FIRST]));
    let seen = node.jobs.len();
    node.sleep_ms(1000);
    install(&mut node, floating("m@1.0.0", 1, &[FIRST]));
    node.sleep_ms(1000);
    install(&mut node, floating("m@2.0.0", 2, &[FIRST]));
    assert!(!node.jobs[seen..].iter().any(|job| matches!(job, Job::Floating(_))), "{:?}", node.jobs);
    node.sleep(Duration::from_secs(601));
    assert!(node.commands().contains(&"float ".to_owned()), "its lease has ended");
    node.assert_empty();
}

#[test]
fn only_who_owns_an_address_has_it_lead_somewhere() {
    let check = |policy: NodePolicy, address: &str, kind: RefusalKind, detail: &str| {
        let mut node = Node::with(policy);
        let report = node.ask(node.request("jane", Body::from(floating("m@1.0.0", 1, &[FIRST, address]))));
        assert_refused(&report, kind, detail);
        node.assert_empty();
    };
    let foreign = "floating address 10.3.0.1 does not lie in a prefix of the user";
    check(server_policy(), "10.3.0.1", RefusalKind::PrefixNotAllowed, foreign);
    check(server_policy(), "2001:db8::1", RefusalKind::PrefixNotAllowed, "2001:db8::1");
    check(policy(), SECOND, RefusalKind::NoNetwork, "the containers of this node have no network");
    let mut none_granted = server_policy();
    none_granted.users.get_mut(&user("jane")).unwrap().listen.clear();
    check(none_granted, SECOND, RefusalKind::NoNetwork, "grants neither `listen` nor `connect`");
    let mut given = server_policy();
    given.users.get_mut(&user("jane")).unwrap().addresses = vec![address(SECOND)];
    check(given, SECOND, RefusalKind::AddressTaken, "floating address 10.2.0.10 is that of a container");
}

#[test]
fn two_modules_do_not_have_one_address_but_the_later_epoch_of_one_user_takes_it() {
    let mut both = server_policy();
    let john = both.users[&user("jane")].clone();
    both.users.insert(user("john"), netserv_model::policy::UserPolicy { keys: vec![public("john")], ..john });
    let mut node = Node::with(both);
    install(&mut node, floating("m@1.0.0", 3, &[FIRST, SECOND]));
    let report = node.ask(node.request("john", Body::from(floating("m@1.0.0", 9, &[FIRST]))));
    assert_refused(&report, RefusalKind::AddressTaken, "floating address 10.2.0.9 leads to a module of another user");
    for epoch in [1, 3] {
        let report = node.ask(node.request("jane", Body::from(floating("other@1.0.0", epoch, &[FIRST]))));
        assert_refused(&report, RefusalKind::AddressTaken, "10.2.0.9 leads to example.org/m in epoch 3");
    }
    let seen = node.jobs.len();
    install(&mut node, floating("other@1.0.0", 4, &[FIRST]));
    assert!(!node.jobs[seen..].iter().any(|job| matches!(job, Job::Floating(_))), "it led here all the time");
    let [m, other] = &node.controller.modules(node.now)[..] else { panic!("two modules") };
    assert_eq!((&m.floating[..], &other.floating[..]), (&[address(SECOND)][..], &[address(FIRST)][..]));
    assert_eq!(m.given_up, [GivenUp { address: address(FIRST), epoch: 4 }]);
    // Without another one, its own next epoch brings it back.
    node.remove("other");
    node.commands();
    node.sleep_ms(1000);
    let report = node.ask(node.request("jane", Body::from(floating("m@1.0.0", 4, &[FIRST]))));
    assert_refused(&report, RefusalKind::OldEpoch, "10.2.0.9 has another owner since epoch 4, this is epoch 4");
    install(&mut node, floating("m@1.0.0", 5, &[FIRST]));
    let status = &node.controller.modules(node.now)[0];
    assert_eq!((&status.floating[..], &status.given_up[..]), (&[address(FIRST)][..], &[][..]));
}

#[test]
fn of_two_that_are_being_installed_the_later_epoch_has_the_address() {
    let mut node = Node::with(server_policy());
    let (early, late) = (floating("a@1.0.0", 1, &[FIRST]), floating("b@2.0.0", 2, &[FIRST]));
    let (first, second) = (node.setup(early.clone()), node.setup(late.clone()));
    node.fetched(0, manifest(&early));
    node.fetched(1, manifest(&late));
    node.ready();
    node.loaded(0);
    node.loaded(1);
    node.commands();
    assert_refused(&node.reports[&first], RefusalKind::AddressTaken, "leads to example.org/b in epoch 2");
    assert!(node.reports[&second].outcome.is_ok());
}

/// Goal: who sees a later epoch go to another node gives its addresses up, and nobody else does.
#[test]
fn a_setup_for_another_node_with_a_later_epoch_takes_the_address() {
    let mut node = Node::with(server_policy());
    let own = Setup { filters: vec![to_self()], ..floating("m@1.0.0", 2, &[FIRST, SECOND]) };
    install(&mut node, own);
    let passes = |node: &Node, setup: Setup| {
        let mut request = node.request("jane", Body::from(setup));
        request.nodes = vec!["r2".parse().unwrap()];
        request.passed_by = Some("it is for other nodes by name".to_owned());
        request
    };
    let reason = |node: &mut Node, request| {
        let outcome = node.ask(request).outcome;
        let Outcome::NotTargeted { reason } = outcome else { panic!("{outcome:?}") };
        reason
    };
    let holds = |node: &Node| node.controller.modules(node.now)[0].floating.clone();
    // Of an earlier epoch, of another module, of other addresses, only asked about, or of nobody known.
    for setup in
        [floating("m@1.0.0", 1, &[FIRST]), floating("x@1.0.0", 9, &[FIRST]), floating("m@1.0.0", 9, &["10.2.0.7"])]
    {
        let request = passes(&node, setup);
        assert_eq!(reason(&mut node, request), "it is for other nodes by name");
    }
    let mut dry = passes(&node, floating("m@1.0.0", 9, &[FIRST]));
    dry.dry_run = true;
    assert_eq!(reason(&mut node, dry), "it is for other nodes by name");
    let mut forged = passes(&node, floating("m@1.0.0", 9, &[FIRST]));
    forged.signed_bytes.push(b'x');
    assert_refused(&node.ask(forged), RefusalKind::BadSignature, "");
    // Two nodes are not owners in one epoch; the requester is told who has it.
    let same = passes(&node, floating("m@1.0.0", 2, &[FIRST]));
    assert!(reason(&mut node, same).ends_with("; this node has 10.2.0.9 in the same epoch 2, and keeps it"));
    assert_eq!(holds(&node), [FIRST, SECOND].map(address));

    let later = passes(&node, floating("m@1.0.0", 3, &[FIRST]));
    let id = node.send(later);
    let commands = node.commands();
    for expected in ["float 10.2.0.10", "store jane m@1.0.0", "gave-up jane m 10.2.0.9 3"] {
        assert!(commands.contains(&expected.to_owned()), "{expected}: {commands:?}");
    }
    let Outcome::NotTargeted { reason } = &node.reports[&id].outcome else { panic!("it is for another node") };
    assert!(reason.ends_with("; this node gives up 10.2.0.9, which it had in epoch 2"), "{reason}");
    // `self` is what is left.
    assert!(commands.contains(&"filter 2 jane 0 udp dst 10.2.0.10/32 port 5060".to_owned()), "{commands:?}");
    assert_eq!(holds(&node), [address(SECOND)]);
    assert_eq!(node.controller.modules(node.now)[0].given_up, [GivenUp { address: address(FIRST), epoch: 3 }]);
    node.sleep_ms(1000);
    for late in [2, 3] {
        let report = node.ask(node.request("jane", Body::from(floating("m@1.0.0", late, &[FIRST, SECOND]))));
        assert_refused(&report, RefusalKind::OldEpoch, "4 is the first that this node takes");
    }
    install(&mut node, floating("m@1.0.0", 4, &[FIRST]));
    assert_eq!(holds(&node), [address(FIRST)]);
}

/// Goal: a SETUP that is meant for this node takes nothing from it, whatever its conditions; one for another node counts also
/// while the module is not here.
#[test]
fn a_setup_for_this_node_takes_no_address_and_one_for_another_is_remembered() {
    let mut node = Node::with(server_policy());
    install(&mut node, floating("m@1.0.0", 1, &[FIRST]));
    let mut unmet = node.request("jane", Body::from(floating("m@1.0.0", 2, &[FIRST])));
    unmet.nodes = vec![node.policy.node.clone()];
    unmet.require = vec!["block=kv>=99".parse().unwrap()];
    assert!(node.ask(unmet).outcome.is_not_targeted());
    let mut by_place = node.request("jane", Body::from(floating("m@1.0.0", 2, &[FIRST])));
    by_place.passed_by = Some("it is for the last node only".to_owned());
    assert!(node.ask(by_place).outcome.is_not_targeted());
    let status = node.controller.modules(node.now).remove(0);
    assert_eq!((status.floating, status.given_up), (vec![address(FIRST)], vec![]));

    node.remove("m");
    node.commands();
    node.sleep_ms(1000);
    let mut passing = node.request("jane", Body::from(floating("m@1.0.0", 3, &[FIRST])));
    passing.nodes = vec!["r2".parse().unwrap()];
    passing.passed_by = Some("it is for other nodes by name".to_owned());
    assert!(node.ask(passing).outcome.is_not_targeted());
    node.sleep_ms(1000);
    let report = node.ask(node.request("jane", Body::from(floating("m@1.0.0", 3, &[FIRST]))));
    assert_refused(&report, RefusalKind::OldEpoch, "epoch 3 of example.org/m, 4 is the first");
}

/// Goal: what an address was given up for is not forgotten by another SETUP of the same epoch.
#[test]
fn an_address_that_was_given_up_does_not_come_back_in_that_epoch() {
    let mut node = Node::with(server_policy());
    install(&mut node, floating("m@1.0.0", 1, &[FIRST]));
    node.sleep_ms(1000);
    install(&mut node, floating("x@1.0.0", 2, &[FIRST]));
    node.sleep_ms(1000);
    let mut other = floating("m@1.0.0", 2, &[]);
    other.properties.insert("key".to_owned(), "value".to_owned());
    install(&mut node, other.clone());
    node.sleep_ms(1000);
    other.floating = vec![address(FIRST)];
    let report = node.ask(node.request("jane", Body::from(other)));
    assert_refused(&report, RefusalKind::OldEpoch, "has another owner since epoch 2");
}

/// Goal: an effect that fails though nobody waits for it is not asked for again and again.
#[test]
fn a_failure_that_nobody_waits_for_is_not_tried_at_once_again() {
    let mut node = Node::with(server_policy());
    install(&mut node, floating("m@1.0.0", 1, &[FIRST]));
    node.sleep_ms(1000);
    install(&mut node, floating("x@1.0.0", 1, &[SECOND]));
    node.refuse_floating();
    node.remove("x");
    let floats = node.commands().iter().filter(|line| line.starts_with("float")).count();
    assert!(floats <= 2, "{floats} times");
}

#[test]
fn a_module_on_its_way_that_a_later_epoch_passes_by_is_not_installed() {
    let mut node = Node::with(server_policy());
    let own = floating("m@1.0.0", 2, &[FIRST]);
    let id = node.setup(own);
    let mut request = node.request("jane", Body::from(floating("m@1.0.0", 3, &[FIRST])));
    request.nodes = vec!["r2".parse().unwrap()];
    request.passed_by = Some("it is for other nodes by name".to_owned());
    node.send(request);
    node.commands();
    assert_refused(&node.reports[&id], RefusalKind::OldEpoch, "another node has 10.2.0.9 in epoch 3");
    node.assert_empty();
}

#[test]
fn self_is_the_floating_addresses_of_the_module_too() {
    let mut node = Node::with(server_policy());
    let asked = Setup { filters: vec![to_self()], ..floating("m@1.0.0", 1, &[FIRST]) };
    node.setup(asked.clone());
    node.fetched(0, manifest(&asked));
    node.news(&jane(Flavour::Wasm), WorkerNews::Ready { addresses: vec![address("10.9.0.2")] });
    node.loaded(0);
    let commands = node.commands();
    for expected in ["udp dst 10.9.0.2/32 port 5060", "udp dst 10.2.0.9/32 port 5060"] {
        assert!(commands.iter().any(|line| line.starts_with("filter") && line.ends_with(expected)), "{commands:?}");
    }
    // Another module of the container has nothing to do with it.
    let other = Setup { filters: vec![to_self()], ..floating("n@1.0.0", 1, &[]) };
    node.setup(other.clone());
    node.fetched(1, manifest(&other));
    node.loaded(1);
    let commands = node.commands();
    assert_eq!(commands.iter().filter(|line| line.starts_with("filter")).count(), 1, "{commands:?}");
}

#[test]
fn an_address_that_the_kernel_refuses_keeps_its_module_out_and_nothing_else() {
    let mut node = Node::with(server_policy());
    install(&mut node, floating("m@1.0.0", 1, &[FIRST]));
    let next = floating("n@1.0.0", 1, &[SECOND]);
    let id = node.setup(next.clone());
    node.refuse_floating();
    node.fetched(0, manifest(&next));
    node.fetched(1, manifest(&next));
    node.loaded(1);
    let commands = node.commands();
    assert_refused(&node.reports[&id], RefusalKind::NodeFailed, "");
    let floats: Vec<&String> = commands.iter().filter(|line| line.starts_with("float")).collect();
    assert_eq!(floats, ["float 10.2.0.9 10.2.0.10", "float 10.2.0.9"], "{commands:?}");
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
}

/// Goal: after a restart, an address leads here once its module runs, and what was given up does not.
#[test]
fn addresses_come_back_with_their_modules_after_a_restart() {
    let mut node = Node::with(server_policy());
    let asked = floating("m@1.0.0", 2, &[FIRST]);
    let given_up = vec![GivenUp { address: address(SECOND), epoch: 5 }];
    node.controller.restore(node.now, vec![InstalledRecord { epoch: 2, given_up, ..record(asked.clone()) }]);
    node.fetched(0, manifest(&asked));
    node.ready();
    assert!(node.commands().iter().all(|line| !line.starts_with("float")));
    assert_eq!(node.controller.modules(node.now)[0].floating, [] as [IpAddr; 0]);
    // What is in the way may go: it starts again.
    node.refuse_floating();
    node.loaded(0);
    assert!(node.commands().contains(&"float 10.2.0.9".to_owned()));
    assert_eq!(node.states(), ["m@1.0.0 BackingOff"]);
    node.sleep(Duration::from_secs(1));
    node.commands();
    node.loaded(0);
    assert!(node.commands().contains(&"float 10.2.0.9".to_owned()));
    let status = node.controller.modules(node.now).remove(0);
    assert_eq!((&status.floating[..], status.given_up.len()), (&[address(FIRST)][..], 1));
    node.sleep_ms(1000);
    let report = node.ask(node.request("jane", Body::from(floating("m@1.0.0", 5, &[FIRST, SECOND]))));
    assert_refused(&report, RefusalKind::OldEpoch, "10.2.0.10 has another owner since epoch 5");
}

#[test]
fn what_a_crash_left_to_two_modules_is_the_later_ones_and_what_the_policy_took_is_nobodys() {
    let record = |module: &str, epoch: u64, order: u64| InstalledRecord {
        epoch,
        order,
        ..record(floating(module, epoch, &[FIRST]))
    };
    for orders in [(0, 1), (1, 0)] {
        let mut node = Node::with(server_policy());
        let records = vec![record("a@1.0.0", 1, orders.0), record("b@2.0.0", 2, orders.1)];
        node.controller.restore(node.now, Stored { installed: records, ..Stored::default() });
        node.carry_out(&manifest(&setup("a@1.0.0")));
        let all = node.controller.modules(node.now);
        let lost: Vec<(String, u64)> = all
            .iter()
            .flat_map(|status| status.given_up.iter().map(|lost| (status.module.name.to_string(), lost.epoch)))
            .collect();
        assert_eq!(lost, [("example.org/a".to_owned(), 2)]);
    }
    let mut node = Node::with(server_policy());
    install(&mut node, floating("m@1.0.0", 1, &[FIRST]));
    let prefixes = vec!["10.2.0.0/29".parse().unwrap()];
    node.policy.users.get_mut(&user("jane")).unwrap().prefixes.clone_from(&prefixes);
    node.policy.users.get_mut(&user("jane")).unwrap().prefixes.push("10.2.0.16/28".parse().unwrap());
    node.apply_policy();
    let commands = node.commands();
    assert!(commands.contains(&"revoked jane m@1.0.0 prefix-not-allowed".to_owned()), "{commands:?}");
    assert!(commands.contains(&"float ".to_owned()), "{commands:?}");
}

#[test]
fn an_answer_that_nobody_waits_for_does_no_harm() {
    let mut node = Node::with(server_policy());
    let failed = || Some(Refusal::new(RefusalKind::NodeFailed, "late"));
    let none = std::collections::BTreeSet::new();
    let crate::Controller { cx, modules, .. } = &mut node.controller;
    let id = netserv_model::effect::EffectId(7);
    crate::modules::settling::floating_changed(cx, modules, &user("jane"), id, &none, failed());
    install(&mut node, floating("m@1.0.0", 1, &[FIRST]));
    let id = netserv_model::effect::EffectId(u64::MAX);
    node.controller.handle_outcome(node.now, id, EffectOutcome::Done);
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
}

fn install(node: &mut Node, setup: Setup) {
    node.install(setup);
}

fn floating(module: &str, epoch: u64, addresses: &[&str]) -> Setup {
    let floating = addresses.iter().map(|text| address(text)).collect();
    Setup {
        epoch,
        floating,
        ttl: Duration::from_secs(600),
        filters: vec!["udp dst 10.2.0.4".parse().unwrap()],
        ..setup(module)
    }
}

fn to_self() -> WantedFilter {
    "udp dst self port 5060".parse().unwrap()
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}
