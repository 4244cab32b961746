// SPDX-License-Identifier: Apache-2.0
//! Services made of installed modules: put together, composed anew, refused and removed.

use std::time::Duration;

use netserv_model::effect::InstalledRecord;
use netserv_model::limits::CHAIN_PARTS_MAX;
use netserv_model::manifest::{Manifest, ServerPart, ServicePart};
use netserv_model::policy::NodePolicy;
use netserv_model::request::{ModuleState, Setup};
use netserv_model::{Flavour, RefusalKind};

use super::script::{Node, assert_refused, commands, manifest, policy, setup, user};

/// Goal: what is composed and loaded are the parts' components in the service's order, under one lease of its own.
#[test]
fn a_service_is_composed_of_its_parts() {
    let mut node = with_parts();
    let id = node.setup(asked("s@1.0.0"));
    commands!(node, format!("fetch 2 {}", digest("s@1.0.0")));
    node.fetched(2, service("s@1.0.0", &["auth@^1", "app@>=1, <3"]));
    commands!(node, format!("compose 3 {}+{}", digest("auth@1.0.0"), digest("app@2.0.1")));
    node.composed(3);
    commands!(node, "load jane 2 s@1.0.0");
    node.loaded(2);
    commands!(node, "store jane s@1.0.0", format!("answer {id} installed 3600"));
    let status = &node.controller.modules(node.now)[2];
    let chain: Vec<String> = status.chain.iter().map(ToString::to_string).collect();
    assert_eq!(chain, ["example.org/auth@1.0.0", "example.org/app@2.0.1"]);
    assert_eq!((status.state, status.listen.len()), (ModuleState::Running, 1));
    node.remove("s");
    commands!(node, "unload jane 2", "forget jane s", "answer 3 removed");
}

/// Goal: a new version of a part is served as soon as it is composed; until then the old service is, and its lease does
/// not change.
#[test]
fn a_service_follows_its_parts() {
    let mut node = running();
    node.sleep(Duration::from_secs(100));
    node.install_part("app@2.0.2");
    assert_eq!(
        node.last,
        [
            "load jane 3 app@2.0.2",
            "unload jane 1",
            "store jane app@2.0.2",
            "answer 3 replaced 3600",
            &format!("compose 5 {}+{}", digest("auth@1.0.0"), digest("app@2.0.2")),
        ]
    );
    node.composed(5);
    commands!(node, "load jane 4 s@1.0.0");
    node.loaded(4);
    commands!(node, "unload jane 2", "store jane s@1.0.0");
    let modules = node.controller.modules(node.now);
    let service = modules.iter().find(|status| !status.chain.is_empty()).unwrap();
    assert_eq!((service.lease_s, service.chain[1].version.to_string()), (3500, "2.0.2".to_owned()));
}

#[test]
fn a_service_that_lost_a_part_is_removed_and_says_so() {
    let mut node = running();
    node.remove("auth");
    commands!(
        node,
        "unload jane 0",
        "forget jane auth",
        "dissolved jane s@1.0.0 missing-part",
        "unload jane 2",
        "forget jane s",
        "answer 3 removed"
    );
    assert_eq!(node.controller.counters().dissolved, 1);
    assert!(node.told[0].starts_with("jane s lease-ended: missing-part: "), "{:?}", node.told);

    let mut node = running();
    node.install_part("app@1.9.0");
    assert!(node.last.contains(&"dissolved jane s@1.0.0 missing-part".to_owned()), "{:?}", node.last);

    let mut node = running();
    node.sleep(Duration::from_secs(1800));
    let refreshed = ["app@2.0.1", "s@1.0.0"].map(|module| node.setup(asked(module)));
    node.commands();
    assert!(refreshed.iter().all(|id| node.reports[id].outcome.is_ok()));
    node.sleep(Duration::from_secs(1800));
    let commands = node.commands();
    assert!(commands.contains(&"dissolved jane s@1.0.0 missing-part".to_owned()), "{commands:?}");
}

#[test]
fn a_part_that_no_longer_fits_the_others_ends_the_service() {
    let mut node = running();
    node.install_part("app@2.0.2");
    node.fetch_failed(5, RefusalKind::BadCode);
    commands!(node, "dissolved jane s@1.0.0 bad-code", "unload jane 2", "forget jane s");
}

#[test]
fn what_is_missing_or_does_not_fit_is_refused_by_name() {
    use RefusalKind::{BadService, MissingPart};
    for (chain, server, kind, detail) in [
        (&["auth@^1", "cache@^1"][..], true, MissingPart, "`example.org/cache@^1` is not installed"),
        (&["auth@^2", "app@2"], true, MissingPart, "`example.org/auth@^2`, version 1.0.0 is installed"),
        (&["auth@^1", "s@1"], true, BadService, "inside itself: example.org/s, which has example.org/s"),
        (&["auth@^1", "bundle@1"], true, BadService, "example.org/bundle@1.0.0 runs as osgi"),
        (&["seer@1", "watcher@1"], true, BadService, "has [server], and none of its parts has"),
        (&["seer@1", "auth@1"], false, BadService, "example.org/auth@1.0.0 sees no packets"),
    ] {
        let mut node = with_parts();
        node.install(packets("seer@1.0.0"));
        node.install(packets("watcher@1.0.0"));
        node.install_as(Flavour::Osgi, packets("bundle@1.0.0"));
        let id = node.setup(asked("s@1.0.0"));
        node.commands();
        let mut manifest = service("s@1.0.0", chain);
        manifest.server = manifest.server.filter(|_| server);
        node.fetched(5, manifest);
        commands!(node, format!("answer {id} {kind}"));
        assert_refused(&node.reports[&id], kind, detail);
    }
}

/// A service may be part of another one; its own parts then are, and a cycle is seen whenever it would come to be.
#[test]
fn services_nest_and_never_hold_themselves() {
    let mut node = running();
    let (outer, _) = node.install_service("outer@1.0.0", &["s@1", "last@1"]);
    assert_refused(&node.reports[&outer], RefusalKind::MissingPart, "last@^1");
    node.install_part("last@1.0.0");
    let (outer, composed) = node.install_service("outer@1.0.0", &["s@1", "last@1"]);
    assert!(node.reports[&outer].outcome.is_ok());
    let parts = ["auth@1.0.0", "app@2.0.1", "last@1.0.0"].map(digest).map(|digest| digest.to_string());
    assert!(composed.ends_with(&parts.join("+")), "{composed}");
    let (cycle, _) = node.install_service("s@2.0.0", &["auth@1", "outer@1"]);
    let words = "inside itself: example.org/s, which has example.org/outer, which has example.org/s";
    assert_refused(&node.reports[&cycle], RefusalKind::BadService, words);
    let (twice, _) = node.install_service("twice@1.0.0", &["auth@1", "outer@1"]);
    assert_refused(&node.reports[&twice], RefusalKind::BadService, "`example.org/auth` would be in it twice");
    node.remove("app");
    let commands = node.commands();
    for gone in ["dissolved jane s@1.0.0 missing-part", "dissolved jane outer@1.0.0 missing-part"] {
        assert!(commands.contains(&gone.to_owned()), "{commands:?}");
    }
}

#[test]
fn a_service_has_a_bounded_number_of_parts() {
    let mut node = with_parts();
    let names: Vec<String> = (0..CHAIN_PARTS_MAX).map(|n| format!("p{n}@1.0.0")).collect();
    names.iter().for_each(|name| node.install_part(name));
    let chain: Vec<String> = names.iter().map(|name| name.replace("1.0.0", "1")).collect();
    let chain: Vec<&str> = chain.iter().map(String::as_str).collect();
    let (most, _) = node.install_service("most@1.0.0", &chain);
    assert!(node.reports[&most].outcome.is_ok());
    let (over, _) = node.install_service("over@1.0.0", &["most@1", "auth@1"]);
    assert_refused(&node.reports[&over], RefusalKind::BadService, "more than 16");
}

/// Goal: packets go through the parts in the service's order, and a new version has its place before it sees any.
#[test]
fn packets_go_through_the_parts_in_order() {
    let mut node = Node::with(server_policy());
    for module in ["a@1.0.0", "other@1.0.0", "b@1.0.0"] {
        node.install(packets(module));
    }
    let id = node.setup(asked("s@1.0.0"));
    node.commands();
    node.fetched(3, Manifest { server: None, ..service("s@1.0.0", &["b@1", "a@1"]) });
    commands!(node, "store jane s@1.0.0", "order jane 2 1 0", format!("answer {id} installed 3600"));
    let status = &node.controller.modules(node.now)[3];
    assert_eq!((status.state, status.chain.len()), (ModuleState::Running, 2));

    node.install(packets("b@1.1.0"));
    let status: Vec<_> = node.controller.modules(node.now).iter().map(|status| status.module.to_string()).collect();
    assert_eq!(status.len(), 4);
    node.died(None);
    node.sleep(Duration::from_secs(1));
    commands!(node, "start jane");
    node.ready();
    node.commands();
    for slot in [0, 1, 3] {
        node.loaded(slot);
    }
    let orders: Vec<String> = node.commands().into_iter().filter(|command| command.starts_with("order")).collect();
    assert_eq!(orders.last().unwrap(), "order jane 3 1 0");
    node.remove("s");
    commands!(node, "forget jane s", "order jane 0 1 3", format!("answer {} removed", id + 2));
}

#[test]
fn a_new_version_of_a_part_is_in_its_place_before_it_sees_packets() {
    let mut node = Node::with(server_policy());
    node.install(packets("a@1.0.0"));
    node.install(packets("b@1.0.0"));
    node.setup(asked("s@1.0.0"));
    node.commands();
    node.fetched(2, Manifest { server: None, ..service("s@1.0.0", &["b@1", "a@1"]) });
    node.commands();
    node.setup(packets("b@1.1.0"));
    node.commands();
    node.fetched(3, manifest(&packets("b@1.1.0")));
    commands!(node, "load jane 2 b@1.1.0");
    node.loaded(2);
    let commands = node.commands();
    assert_eq!(commands[..2], ["order jane 1 2 0", "filter 2 jane 2 udp dst 10.2.0.0/24"]);
    assert_eq!(commands[commands.len() - 2..], ["order jane 2 0", "answer 3 replaced 3600"]);
}

/// Goal: after a restart of the node, a service waits for its parts' packages, whatever comes first.
#[test]
fn a_service_comes_back_with_its_parts() {
    for service_first in [true, false] {
        let mut node = Node::with(server_policy());
        let records = ["auth@1.0.0", "app@2.0.1", "s@1.0.0"].into_iter().enumerate();
        let records: Vec<_> = records.map(|(order, module)| record(&node, module, order)).collect();
        node.controller.restore(node.now, records);
        node.commands();
        let whole = service("s@1.0.0", &["auth@^1", "app@2"]);
        if service_first {
            node.fetched(2, whole.clone());
            commands!(node,);
        }
        node.fetched(0, web("auth@1.0.0"));
        node.fetched(1, web("app@2.0.1"));
        if !service_first {
            node.fetched(2, whole);
        }
        let composed = format!("compose 3 {}+{}", digest("auth@1.0.0"), digest("app@2.0.1"));
        commands!(node, "start jane", composed);
        node.ready();
        node.commands();
        node.composed(3);
        commands!(node, "load jane 2 s@1.0.0");
        node.loaded(2);
        let status = &node.controller.modules(node.now)[2];
        assert_eq!((status.state, status.chain.len()), (ModuleState::Running, 2));
    }
}

#[test]
fn a_service_whose_part_is_not_there_after_a_restart_is_removed() {
    let mut node = Node::with(server_policy());
    let records = vec![record(&node, "auth@1.0.0", 0), record(&node, "s@1.0.0", 1)];
    node.controller.restore(node.now, records);
    node.commands();
    node.fetched(0, web("auth@1.0.0"));
    node.commands();
    node.fetched(1, service("s@1.0.0", &["auth@^1", "app@2"]));
    commands!(node, "dissolved jane s@1.0.0 missing-part", "forget jane s");
}

#[test]
fn a_service_that_traps_is_composed_and_started_again() {
    let mut node = running();
    node.trapped(2);
    node.sleep_ms(1);
    commands!(node, format!("compose 4 {}+{}", digest("auth@1.0.0"), digest("app@2.0.1")));
    node.composed(4);
    commands!(node, "load jane 2 s@1.0.0");
    node.loaded(2);
    assert_eq!(node.controller.modules(node.now)[2].state, ModuleState::Running);
}

/// A node, and the commands that its last module took.
struct Services {
    node: Node,
    last: Vec<String>,
}

impl std::ops::Deref for Services {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

impl std::ops::DerefMut for Services {
    fn deref_mut(&mut self) -> &mut Node {
        &mut self.node
    }
}

impl Services {
    /// Installs a module with a component.
    fn install_part(&mut self, module: &str) {
        let id = self.node.setup(asked(module));
        self.last.clear();
        self.drive(&web(module), false);
        assert!(self.node.reports[&id].outcome.is_ok(), "{:?}", self.node.reports[&id].outcome);
    }

    /// Asks for a service. Returns the answer's number, and how it was composed.
    fn install_service(&mut self, module: &str, chain: &[&str]) -> (u64, String) {
        let id = self.node.setup(asked(module));
        self.last.clear();
        self.drive(&service(module, chain), true);
        let composed = self.last.iter().find(|command| command.starts_with("compose")).cloned();
        (id, composed.unwrap_or_default())
    }

    /// Carries out what is asked for with success; compositions only if `composes`.
    fn drive(&mut self, manifest: &Manifest, composes: bool) {
        while let Some(command) = self.node.command() {
            let words: Vec<&str> = command.split(' ').collect();
            match words[0] {
                "fetch" => self.node.fetched(words[1].parse().unwrap(), manifest.clone()),
                "compose" if composes => self.node.composed(words[1].parse().unwrap()),
                "start" => self.node.ready(),
                "load" => self.node.loaded(words[2].parse().unwrap()),
                _ => {}
            }
            if words[0] != "fetch" {
                self.last.push(command);
            }
        }
    }
}

/// Returns a node with `auth` and `app`, which serve HTTP.
fn with_parts() -> Services {
    let mut node = Services { node: Node::with(server_policy()), last: Vec::new() };
    node.install_part("auth@1.0.0");
    node.install_part("app@2.0.1");
    node
}

/// Returns a node with a service of both.
fn running() -> Services {
    let mut node = with_parts();
    let (id, _) = node.install_service("s@1.0.0", &["auth@^1", "app@2"]);
    assert!(node.reports[&id].outcome.is_ok(), "{:?}", node.reports[&id].outcome);
    node
}

fn server_policy() -> NodePolicy {
    let mut policy = NodePolicy { container_prefixes: vec!["10.9.0.0/24".parse().unwrap()], ..policy() };
    let jane = policy.users.get_mut(&user("jane")).unwrap();
    jane.listen = vec!["tcp".parse().unwrap()];
    jane.modules_max = 40;
    policy
}

fn asked(module: &str) -> Setup {
    Setup { filters: Vec::new(), ttl: Duration::from_secs(3600), ..setup(module) }
}

fn packets(module: &str) -> Setup {
    Setup { ttl: Duration::from_secs(3600), ..setup(module) }
}

/// Returns the first byte of a module's digest, by which commands show it.
fn digest(module: &str) -> u8 {
    setup(module).digest.0[0]
}

fn web(module: &str) -> Manifest {
    Manifest { packet: None, server: Some(ServerPart::default()), ..manifest(&setup(module)) }
}

fn service(module: &str, chain: &[&str]) -> Manifest {
    let chain = chain.iter().map(|part| format!("example.org/{part}").parse().unwrap()).collect();
    let server = ServerPart { listen: vec!["tcp port 80".parse().unwrap()], ..ServerPart::default() };
    let listen = if module.starts_with("s@") { server } else { ServerPart::default() };
    Manifest { service: Some(ServicePart { chain }), server: Some(listen), ..web(module) }
}

fn record(node: &Node, module: &str, order: usize) -> InstalledRecord {
    InstalledRecord {
        lease_until: node.now.wall + Duration::from_secs(3600),
        order: u64::try_from(order).unwrap(),
        flavour: Some(Flavour::Wasm),
        epoch: 0,
        ..super::script::record(asked(module))
    }
}
