// SPDX-License-Identifier: Apache-2.0
//! Modules of users of whom the node has lost track who is behind their checklists: gone, and back later.

use std::net::IpAddr;
use std::time::Duration;

use netserv_authority::grant::user_of;
use netserv_model::effect::{EffectOutcome, InstalledRecord, ModuleSlot, WorkerNews};
use netserv_model::floating::GivenUp;
use netserv_model::policy::NodePolicy;
use netserv_model::request::{Body, Outcome, Remove, Request, Setup};
use netserv_model::{Flavour, Refusal, RefusalKind, UnixTime, WorkerId};

use super::script::{Node, START, manifest, name, public, user_policy};
use super::sessions::last_stored;
use super::strangers::{
    by_checklist, grant, held, let_in, long, looked_at, looks_of, request, rpki_policy, set_up, set_up_by_checklist,
};

const LEASE: Duration = Duration::from_secs(300);

/// What says that the relying party is late.
fn late() -> EffectOutcome {
    EffectOutcome::Refused(Refusal::new(RefusalKind::FetchFailed, "checklist: the cache is too old"))
}

/// Returns a node that no longer knows who is behind a stranger's checklist, a minute after it let the stranger in.
fn unknown() -> Node {
    unknown_with(rpki_policy(), &long("m@1.0.0"))
}

fn unknown_with(policy: NodePolicy, asked: &Setup) -> Node {
    let mut node = Node::with(policy);
    let outcome = set_up_by_checklist(&mut node, "eve", asked);
    assert!(outcome.is_ok(), "{outcome:?}");
    for _ in 0..12 {
        node.sleep_ms(5000);
        looked_at(&mut node).into_iter().for_each(|look| node.package(look, late()));
    }
    node.commands();
    assert_eq!(node.states(), [""; 0], "no module runs while the node does not know");
    node
}

/// Has the node find out who is behind the checklist, when it looks at that the next time.
fn found_again(node: &mut Node) {
    let look = loop {
        node.sleep_ms(1000);
        if let Some(look) = looked_at(node).pop() {
            break look;
        }
    };
    node.package(look, held());
}

fn sleep_until(node: &mut Node, since_start: Duration) {
    node.sleep((START.instant + since_start).since(node.now.instant));
}

/// Goal: a relying party that is late ends no lease. Method: modules are gone at once, and come back with what is left of their leases when
/// the node knows again.
#[test]
fn modules_come_back_when_the_cache_does() {
    let resumed = format!("resumed {} m@1.0.0", user_of(&public("eve")));
    let mut node = unknown();
    found_again(&mut node);
    assert!(node.commands().contains(&resumed));
    let mut node = unknown();
    found_again(&mut node);
    node.carry_out(&manifest(&long("m@1.0.0")));
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
    assert_eq!(last_stored(&node).suspended, None);
    sleep_until(&mut node, LEASE);
    node.commands();
    assert_eq!(node.states(), [""; 0], "the lease is that of the SETUP");
}

/// Goal: what a user takes back while its modules are gone does not come back, and a newer SETUP counts.
#[test]
fn a_request_finds_what_would_come_back() {
    for is_remove in [true, false] {
        let mut node = unknown();
        let body = if is_remove {
            Body::Remove(Remove { module: name("m"), force: false, all: false, epoch: None })
        } else {
            Body::from(Setup { ttl: Duration::from_secs(100), ..long("m@1.0.0") })
        };
        let id = node.send(by_checklist(&node, "eve", body));
        let [asked] = looked_at(&mut node)[..] else { panic!("it is asked") };
        node.package(asked, held());
        node.carry_out(&manifest(&long("m@1.0.0")));
        assert!(node.reports[&id].outcome.is_ok(), "{:?}", node.reports[&id].outcome);
        for _ in 0..12 {
            node.sleep_ms(5000);
            looked_at(&mut node).into_iter().for_each(|look| node.package(look, held()));
            node.carry_out(&manifest(&long("m@1.0.0")));
        }
        assert_eq!(node.states().len(), usize::from(!is_remove));
    }
}

/// Goal: modules come back after a restart, too, and a stranger's kept data has its day over that. Method: a node that starts from what was
/// stored; somebody is behind the checklist, nobody is, or the node does not know.
#[test]
fn what_may_come_back_outlasts_a_restart() {
    let stored = last_stored(&unknown());
    assert_eq!(stored.suspended, Some(START.wall + Duration::from_secs(50)));
    let restart = |late_s: u64| {
        let mut node = Node::with(rpki_policy());
        node.now = node.now + Duration::from_secs(late_s);
        node.controller.restore(node.now, vec![stored.clone()]);
        let [asked] = looked_at(&mut node)[..] else { panic!("it is looked at") };
        assert_eq!(node.states(), [""; 0], "the node does not know yet");
        (node, asked)
    };
    let (mut node, asked) = restart(100);
    node.package(asked, held());
    node.carry_out(&manifest(&long("m@1.0.0")));
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
    let eve = user_of(&public("eve"));
    let gone = [format!("forget {eve} m"), format!("forget-user {eve}")];
    let (mut node, asked) = restart(100);
    let revoked = Refusal::new(RefusalKind::BadProof, "checklist: its certificate is revoked");
    node.package(asked, EffectOutcome::Refused(revoked));
    node.sleep_ms(30_000);
    let commands = node.commands();
    assert!(gone.iter().all(|line| commands.contains(line)), "{commands:?}");
    // What is kept has the rest of its day.
    let (mut node, asked) = restart(23 * 3600);
    node.package(asked, late());
    let mut is_gone_within = |minutes: u64| {
        (0..minutes * 2).any(|_| {
            node.sleep_ms(30_000);
            let commands = node.commands();
            looks_of(&commands).into_iter().for_each(|look| node.package(look, late()));
            gone.iter().all(|line| commands.contains(line))
        })
    };
    assert!(!is_gone_within(55) && is_gone_within(10));
}

/// Goal: a disk that hangs for a while takes nobody's rights away, and one that hangs for longer does within a minute. Method: checks that
/// are not answered, from the one 30 s after the last that was.
#[test]
fn a_disk_that_hangs_for_a_while_ends_no_rights() {
    let hanging = |hangs: Duration| {
        let mut node = Node::with(rpki_policy());
        let_in(&mut node, "eve");
        sleep_until(&mut node, Duration::from_secs(30) + hangs);
        node
    };
    let mut node = hanging(Duration::from_secs(19));
    let [_, _, last] = looked_at(&mut node)[..] else { panic!("one after the other") };
    node.package(last, held());
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
    found_again(&mut node);
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
    let mut node = hanging(Duration::from_secs(29));
    node.commands();
    assert_eq!(node.states(), [""; 0]);
}

fn network_policy() -> NodePolicy {
    let mut policy = NodePolicy { container_prefixes: vec!["10.9.0.0/24".parse().unwrap()], ..rpki_policy() };
    policy.classes.get_mut("guest").unwrap().rights.listen = vec!["tcp".parse().unwrap()];
    policy
}

fn floating(module: &str, epoch: u64, last_bytes: &[u8]) -> Setup {
    Setup { epoch, floating: last_bytes.iter().map(|last| address(*last)).collect(), ..long(module) }
}

fn address(last: u8) -> IpAddr {
    IpAddr::from([10, 2, 0, last])
}

/// Goal: an address that another node has meanwhile does not come back with its module. Method: a SETUP of a later epoch for the other node
/// passes by while the module is gone; one of the same epoch takes nothing.
#[test]
fn an_address_that_went_to_another_node_does_not_come_back() {
    let asked = floating("m@1.0.0", 2, &[8, 9]);
    for (epoch, says, floats, lost) in [
        (3, "; this node gives up 10.2.0.9, which it had in epoch 2", vec![8], vec![(9, 3)]),
        (2, "; this node has 10.2.0.9 in the same epoch 2, and keeps it", vec![8, 9], vec![]),
    ] {
        let mut node = unknown_with(network_policy(), &asked);
        let passing = by_checklist(&node, "eve", Body::from(floating("m@1.0.0", epoch, &[9])));
        let passed_by = Some("it is for other nodes by name".to_owned());
        let passing = Request { nodes: vec!["r2".parse().unwrap()], passed_by, ..passing };
        let id = node.send(passing);
        looked_at(&mut node).into_iter().for_each(|look| node.package(look, held()));
        node.commands();
        let Outcome::NotTargeted { reason } = &node.reports[&id].outcome else { panic!("it is for another node") };
        assert!(reason.ends_with(says), "{reason}");
        found_again(&mut node);
        node.carry_out(&manifest(&asked));
        let [status] = &node.controller.modules(node.now)[..] else { panic!("it is back") };
        assert_eq!(status.floating, floats.into_iter().map(address).collect::<Vec<_>>());
        let lost = lost.into_iter().map(|(last, epoch)| GivenUp { address: address(last), epoch });
        assert_eq!(status.given_up, lost.collect::<Vec<_>>());
    }
}

/// Goal: no user's epochs count for another's modules. Method: an address goes to a module of another user, in the last epoch of all, while a
/// module is gone; its user has it back in the next epoch of its own.
#[test]
fn the_epochs_of_one_user_do_not_bind_another() {
    let mut node = unknown_with(network_policy(), &floating("m@1.0.0", 2, &[9]));
    let theirs = floating("m@1.0.0", u64::MAX, &[9]);
    assert!(set_up(&mut node, "mallory", &theirs, Some(grant("mallory", "10.2.0.0/16", 3600))).is_ok());
    found_again(&mut node);
    node.carry_out(&manifest(&long("m@1.0.0")));
    let back = node.controller.modules(node.now).into_iter().find(|status| status.user == user_of(&public("eve")));
    assert_eq!(back.expect("it is back").floating, [] as [IpAddr; 0], "the address is the other's");
    let remove = Body::Remove(Remove { module: name("m"), force: false, all: false, epoch: None });
    let remove = request(&node, "mallory", remove, None);
    node.send(remove);
    node.commands();
    let outcome = set_up_by_checklist(&mut node, "eve", &floating("m@1.0.0", 3, &[9]));
    assert!(outcome.is_ok(), "{outcome:?}");
}

/// Goal: a module does not come back once its user has given way to another. Method: a class with one place, which another user takes
/// and gives back.
#[test]
fn modules_of_a_user_who_gave_way_do_not_come_back() {
    let mut policy = rpki_policy();
    policy.classes.get_mut("guest").unwrap().users_max = 1;
    let mut node = unknown_with(policy, &long("m@1.0.0"));
    let_in(&mut node, "mallory");
    let remove = Body::Remove(Remove { module: name("m"), force: false, all: false, epoch: None });
    let remove = by_checklist(&node, "mallory", remove);
    node.send(remove);
    node.commands();
    assert!(set_up_by_checklist(&mut node, "eve", &long("n@1.0.0")).is_ok());
    assert_eq!(node.states(), ["n@1.0.0 Running"]);
}

/// Goal: a module is not lost whose user's rights go and come while a SETUP for it is about to be in force. Method: the change of filters
/// that brings a successor is not done before the rights are back.
#[test]
fn a_module_comes_back_though_a_setup_for_it_is_under_way() {
    for is_removed in [false, true] {
        let mut node = Node::with(rpki_policy());
        let_in(&mut node, "eve");
        sleep_until(&mut node, Duration::from_secs(49));
        let next = long("m@2.0.0");
        let id = node.send(by_checklist(&node, "eve", Body::from(next.clone())));
        looked_at(&mut node).into_iter().for_each(|look| node.package(look, late()));
        node.fetched_last(manifest(&next));
        node.hold_filters();
        node.news(&WorkerId::new(user_of(&public("eve")), Flavour::Wasm), WorkerNews::Loaded(ModuleSlot(1)));
        while node.controller.modules.suspended.is_empty() {
            node.sleep_ms(1000);
            looked_at(&mut node).into_iter().for_each(|look| node.package(look, late()));
        }
        found_again(&mut node);
        let removal = is_removed.then(|| {
            let remove = Body::Remove(Remove { module: name("m"), force: false, all: false, epoch: None });
            let remove = by_checklist(&node, "eve", remove);
            node.send(remove)
        });
        node.release_filters();
        node.carry_out(&manifest(&long("m@1.0.0")));
        assert!(node.reports[&id].outcome.is_refused_for(RefusalKind::FetchFailed), "{:?}", node.reports[&id].outcome);
        assert!(removal.is_none_or(|id| node.reports[&id].outcome == Outcome::Removed));
        let states: &[&str] = if is_removed { &[] } else { &["m@1.0.0 Running"] };
        assert_eq!(node.states(), states);
    }
}

/// Goal: a day in which its user is not known does not count from a time before the module was back. Method: a node starts whose
/// configuration names the user by now.
#[test]
fn a_module_that_is_back_was_not_gone_before() {
    let stored = InstalledRecord { suspended: Some(UnixTime(START.wall.0 - 1000)), ..last_stored(&unknown()) };
    let mut policy = rpki_policy();
    let eve = user_policy("eve", "10.2.0.0/16");
    policy.users.insert(user_of(&public("eve")), eve);
    let mut node = Node::with(policy);
    node.controller.restore(node.now, vec![stored]);
    node.carry_out(&manifest(&long("m@1.0.0")));
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
    assert_eq!(last_stored(&node).suspended, None);
}
