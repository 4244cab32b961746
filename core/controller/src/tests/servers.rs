// SPDX-License-Identifier: Apache-2.0
//! Modules that take connections: of ports of their own, and between others.

use std::time::Duration;

use netserv_model::effect::InstalledRecord;
use netserv_model::effect::{InterceptJob, Job, WorkerJob};
use netserv_model::limits::FILTERS_PER_MODULE_MAX;
use netserv_model::manifest::{Manifest, ModuleLimits, ServerPart};
use netserv_model::policy::NodePolicy;
use netserv_model::request::Setup;
use netserv_model::verdict::FailureMode;
use netserv_model::{Filter, RefusalKind};

use super::script::{Node, assert_refused, commands, manifest, policy, setup, user};

/// Goal: packets and connections of one module change hands together, and nothing of the old one stays.
#[test]
fn a_module_of_both_roles_has_one_life() {
    let mut node = node();
    let first = both(&asked("m@1.0.0"));
    node.setup(asked("m@1.0.0"));
    node.commands();
    node.fetched(0, first.clone());
    commands!(node, "start jane");
    node.ready();
    commands!(node, "load jane 0 m@1.0.0");
    node.loaded(0);
    commands!(
        node,
        "intercept 0 jane 0 tcp dst 10.2.0.0/16 port 80",
        "filter 1 jane 0 udp dst 10.2.0.1/32 port 53",
        "store jane m@1.0.0",
        "answer 0 installed 3600"
    );
    let status = &node.controller.modules(node.now)[0];
    let texts = |filters: &[Filter]| filters.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    assert_eq!(status.filters[0].to_string(), "udp dst 10.2.0.1/32 port 53");
    assert_eq!(texts(&status.listen), "tcp port 80");
    assert_eq!(texts(&status.intercept), "tcp dst 10.2.0.0/16 port 80");

    node.setup(asked("m@1.1.0"));
    node.commands();
    node.fetched(1, both(&asked("m@1.1.0")));
    commands!(node, "load jane 1 m@1.1.0");
    node.loaded(1);
    commands!(
        node,
        "intercept 2 jane 1 tcp dst 10.2.0.0/16 port 80",
        "filter 3 jane 1 udp dst 10.2.0.1/32 port 53",
        "unfilter 1",
        "unintercept 0",
        "unload jane 0",
        "store jane m@1.1.0",
        "answer 1 replaced 3600"
    );
    node.remove("m");
    commands!(node, "unfilter 3", "unintercept 2", "unload jane 1", "forget jane m", "stop jane", "answer 2 removed");
    node.assert_empty();
}

/// Goal: connections do not go to what does not take them. Packets need no such thing, since packet loops see for
/// themselves.
#[test]
fn connections_are_suspended_while_a_module_is_down() {
    let mut node = running();
    node.trapped(0);
    commands!(node, "suspend 0");
    node.sleep_ms(1);
    commands!(node, "load jane 0 m@1.0.0");
    node.trapped(0);
    commands!(node,);
    node.sleep_ms(200);
    commands!(node, "load jane 0 m@1.0.0");
    node.loaded(0);
    commands!(node, "intercept 0 jane 0 tcp dst 10.2.0.0/16 port 80");

    node.died(None);
    commands!(node, "suspend 0");
    node.sleep(Duration::from_secs(1));
    commands!(node, "start jane");
    node.ready();
    commands!(node, "load jane 0 m@1.0.0");
    node.loaded(0);
    commands!(node, "intercept 0 jane 0 tcp dst 10.2.0.0/16 port 80");
}

#[test]
fn what_cannot_be_intercepted_refuses_the_request_or_starts_again() {
    let mut node = node();
    let id = node.setup(asked("m@1.0.0"));
    node.commands();
    node.fetched(0, both(&asked("m@1.0.0")));
    node.ready();
    node.commands();
    node.refuse_rule(0);
    node.loaded(0);
    let begun = "intercept 0 jane 0 tcp dst 10.2.0.0/16 port 80";
    commands!(node, begun, "unload jane 0", "stop jane", check_answer(id, RefusalKind::NodeFailed));
    node.assert_empty();

    let mut node = running();
    node.died(None);
    node.sleep(Duration::from_secs(1));
    node.ready();
    node.commands();
    node.refuse_rule(0);
    node.loaded(0);
    commands!(node, begun, "unload jane 0");
    node.sleep(Duration::from_secs(1));
    commands!(node, "load jane 0 m@1.0.0");
    node.loaded(0);
    commands!(node, "intercept 2 jane 0 tcp dst 10.2.0.0/16 port 80");
}

/// Only the manifest says what is intercepted, and a restarted node has that when the package is there.
#[test]
fn interceptions_come_back_after_a_restart_of_the_node() {
    let mut node = node();
    let asked = asked("m@1.0.0");
    let record = InstalledRecord { filters: both(&asked).filters().to_vec(), ..super::script::record(asked.clone()) };
    node.controller.restore(node.now, vec![record]);
    node.commands();
    node.fetched(0, both(&asked));
    node.ready();
    node.loaded(0);
    let commands = node.commands();
    let installed = &commands[commands.len() - 2..];
    assert_eq!(
        installed,
        ["filter 0 jane 0 udp dst 10.2.0.1/32 port 53", "intercept 1 jane 0 tcp dst 10.2.0.0/16 port 80"]
    );
}

#[test]
fn a_request_for_a_module_without_a_packet_part_narrows_what_it_takes_over() {
    let taker = |setup: &Setup| Manifest { packet: None, ..both(setup) };
    let narrow = |filter: &str| Setup { filters: vec![filter.parse().unwrap()], ..asked("m@1.0.0") };
    let mut node = node();
    let setup = narrow("tcp dst 10.2.3.0/24 port 80");
    node.setup(setup.clone());
    node.carry_out(&taker(&setup));
    let status = &node.controller.modules(node.now)[0];
    assert_eq!((status.filters.len(), status.intercept[0].to_string()), (0, "tcp dst 10.2.3.0/24 port 80".to_owned()));

    // The same again refreshes; what it is to take over besides, it is loaded for.
    let id = node.setup(setup.clone());
    assert!(node.commands().iter().any(|command| command.starts_with(&format!("answer {id} refreshed"))));
    node.setup(narrow("tcp dst 10.2.4.0/24 port 80"));
    let commands = node.commands();
    assert!(commands.iter().any(|command| command.starts_with("load")), "{commands:?}");

    // What cannot be taken over is refused, also if the manifest is right.
    for (filter, kind) in [
        ("udp dst 10.2.3.0/24 port 80", RefusalKind::BadRequest),
        ("tcp dst 10.2.3.0/24", RefusalKind::BadRequest),
        ("tcp dst 10.77.3.0/24 port 80", RefusalKind::PrefixNotAllowed),
    ] {
        let mut node = Node::with(server_policy());
        let setup = narrow(filter);
        let id = node.setup(setup.clone());
        let mut commands = node.commands();
        // Foreign prefixes are seen before the package is fetched.
        if commands.iter().any(|command| command.starts_with("fetch")) {
            node.fetched(0, taker(&setup));
            commands.extend(node.commands());
        }
        assert!(commands.contains(&check_answer(id, kind)), "{filter}: {commands:?}");
    }
}

#[test]
fn interception_is_held_to_the_users_prefixes_ports_and_network() {
    use RefusalKind::{NoNetwork, NotPermitted, PortNotAllowed, PrefixNotAllowed, QuotaExceeded};
    let own = "tcp dst 10.2.0.0/16 port 80";
    let check = |change: &dyn Fn(&mut NodePolicy), intercept: &[&str], expected: Option<RefusalKind>| {
        let mut policy = server_policy();
        change(&mut policy);
        let mut node = Node::with(policy);
        let id = node.setup(asked("m@1.0.0"));
        node.commands();
        let mut manifest = both(&asked("m@1.0.0"));
        let server = manifest.server.as_mut().unwrap();
        server.intercept = intercept.iter().map(|filter| filter.parse().unwrap()).collect();
        node.fetched(0, manifest);
        match expected {
            Some(kind) => {
                commands!(node, format!("answer 0 {kind}"));
                assert_refused(&node.reports[&id], kind, "");
            }
            None => commands!(node, "start jane"),
        }
    };
    let ports = |policy: &mut NodePolicy| jane(policy).ports = vec!["53".parse().unwrap(), "81".parse().unwrap()];
    let unconnected = |policy: &mut NodePolicy| (jane(policy).listen, jane(policy).connect) = (vec![], vec![]);
    check(&|_| {}, &[own], None);
    check(&|_| {}, &["tcp src 10.2.0.0/24 port 80"], None);
    check(&|_| {}, &["tcp dst 10.9.0.0/16 port 80"], Some(PrefixNotAllowed));
    check(&|_| {}, &[own, "tcp port 80"], Some(PrefixNotAllowed));
    check(&ports, &[own], Some(PortNotAllowed));
    check(&ports, &["tcp dst 10.2.0.0/16 port 81"], None);
    check(&|policy| policy.container_prefixes.clear(), &[own], Some(NoNetwork));
    check(&unconnected, &[own], Some(NotPermitted));
    let many: Vec<String> = (0..=FILTERS_PER_MODULE_MAX).map(|n| format!("tcp dst 10.2.0.{n} port 80")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    check(&|_| {}, &many, Some(QuotaExceeded));
    check(&|_| {}, &many[1..], None);
}

#[test]
fn an_interception_that_is_no_longer_allowed_goes_with_its_module() {
    let mut node = running();
    let mut narrower = node.policy.clone();
    jane(&mut narrower).ports = vec!["53".parse().unwrap()];
    node.policy = narrower;
    node.apply_policy();
    let revoked = "revoked jane m@1.0.0 port-not-allowed";
    commands!(node, "unfilter 1", "unintercept 0", "unload jane 0", "forget jane m", revoked, "stop jane");
    node.assert_empty();
}

#[test]
fn two_modules_of_a_user_do_not_share_a_port() {
    let check = |listen: &str, intercept: &str, expected: Option<&str>| {
        let mut node = running();
        let id = node.setup(asked("other@1.0.0"));
        node.commands();
        let server = ServerPart {
            listen: vec![listen.parse().unwrap()],
            intercept: vec![intercept.parse().unwrap()],
            ..ServerPart::default()
        };
        node.fetched(1, Manifest { server: Some(server), packet: None, ..manifest(&asked("other@1.0.0")) });
        match expected {
            Some(detail) => {
                commands!(node, check_answer(id, RefusalKind::PortTaken));
                assert_refused(&node.reports[&id], RefusalKind::PortTaken, detail);
            }
            None => commands!(node, "load jane 1 other@1.0.0"),
        }
    };
    let elsewhere = "tcp dst 10.2.0.0/16 port 8080";
    check("tcp port 81", elsewhere, None);
    check("udp port 80", elsewhere, None);
    let port = "server.listen `tcp port 80-81` meets `tcp port 80` of example.org/m";
    check("tcp port 80-81", elsewhere, Some(port));
    check("tcp src 10.0.0.0/8 port 80", elsewhere, Some("meets `tcp port 80` of example.org/m"));
    // What both take over goes through both.
    check("tcp port 81", "tcp dst 10.2.3.0/24 port 80", None);
}

/// The one that is being installed has the port, too, and lets it go if it fails.
#[test]
fn a_port_is_taken_from_when_its_module_is_fetched() {
    let mut node = node();
    let (first, second) = (node.setup(asked("a@1.0.0")), node.setup(asked("b@1.0.0")));
    node.commands();
    node.fetched(0, both(&asked("a@1.0.0")));
    node.fetched(1, both(&asked("b@1.0.0")));
    commands!(node, "start jane", check_answer(second, RefusalKind::PortTaken));
    node.ready();
    node.trapped(0);
    commands!(node, "load jane 0 a@1.0.0", "stop jane", check_answer(first, RefusalKind::Trapped));
    node.setup(asked("b@1.0.0"));
    node.commands();
    node.fetched(2, both(&asked("b@1.0.0")));
    commands!(node, "start jane");
}

#[test]
fn limits_of_servers_are_bounded_by_the_users() {
    let mut policy = server_policy();
    let granted = ModuleLimits { request_ms: 1, requests: 2, connections: 3, body_bytes: 4, ..ModuleLimits::default() };
    jane(&mut policy).module_limits = granted;
    let mut node = Node::with(policy);
    node.setup(asked("m@1.0.0"));
    node.commands();
    let mut wanted = both(&asked("m@1.0.0"));
    wanted.server.as_mut().unwrap().on_failure = FailureMode::Closed;
    node.fetched(0, wanted);
    node.ready();
    node.commands();
    let Some(Job::Workers(WorkerJob::Load(load))) = node.jobs.last() else { panic!("a load") };
    assert_eq!(load.limits, granted);
    assert!(load.packet && load.server.is_some());
    node.loaded(0);
    node.commands();
    let begun = node.jobs.iter().find_map(|job| {
        let Job::Intercepts(InterceptJob::Begin(rule)) = job else { return None };
        Some(rule.on_failure)
    });
    assert_eq!(begun, Some(FailureMode::Closed));
}

/// Returns a node on which `m` of both roles runs.
fn running() -> Node {
    let mut node = node();
    node.setup(asked("m@1.0.0"));
    node.carry_out(&both(&asked("m@1.0.0")));
    node
}

fn node() -> Node {
    Node::with(server_policy())
}

pub(super) fn server_policy() -> NodePolicy {
    let mut policy = NodePolicy { container_prefixes: vec!["10.9.0.0/24".parse().unwrap()], ..policy() };
    jane(&mut policy).listen = vec!["tcp".parse().unwrap(), "udp".parse().unwrap()];
    policy
}

fn jane(policy: &mut NodePolicy) -> &mut netserv_model::policy::UserPolicy {
    policy.users.get_mut(&user("jane")).unwrap()
}

pub(super) fn asked(module: &str) -> Setup {
    Setup { filters: Vec::new(), ttl: Duration::from_secs(3600), ..setup(module) }
}

/// Returns a manifest with both roles.
pub(super) fn both(setup: &Setup) -> Manifest {
    let mut manifest = manifest(setup);
    super::script::packet(&mut manifest).filters = vec!["udp dst 10.2.0.1 port 53".parse().unwrap()];
    let server = ServerPart {
        listen: vec!["tcp port 80".parse().unwrap()],
        intercept: vec!["tcp dst 10.2.0.0/16 port 80".parse().unwrap()],
        ..ServerPart::default()
    };
    Manifest { server: Some(server), ..manifest }
}

fn check_answer(id: u64, kind: RefusalKind) -> String {
    format!("answer {id} {kind}")
}
