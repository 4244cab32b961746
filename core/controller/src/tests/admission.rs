// SPDX-License-Identifier: Apache-2.0
//! Who may ask for what.

use std::time::Duration;

use netserv_model::effect::{Job, WorkerJob};
use netserv_model::limits::{PROPERTIES_PER_MODULE_MAX, PROPERTY_BYTES_MAX};
use netserv_model::manifest::Resource;
use netserv_model::policy::OperatorPolicy;
use netserv_model::request::{Ask, Body, NodeLoad, Outcome, Probe, Remove, Request, Setup};
use netserv_model::verdict::FailureMode;
use netserv_model::{RefusalKind, UnixTime};

use super::script::{
    Node, assert_refused, commands, key, manifest, name, packet, policy, setup, sign, user, user_policy,
};

#[test]
fn a_host_runs_nothing_and_answers_probes() {
    let mut node = Node::with({
        let mut policy = policy();
        policy.host_only = true;
        policy
    });
    let body = Body::Remove(Remove { module: name("m"), force: false, all: false, epoch: None });
    for body in [Body::from(setup("m@1.0.0")), body] {
        let request = node.request("jane", body);
        assert_refused(&node.ask(request), RefusalKind::NotANode, "r1 is a host");
    }
    assert_eq!(node.probe(&[]).outcome, Outcome::Probed);
    let stranger = node.request("stranger", Body::Probe(Probe { ask: vec![Ask::Modules, Ask::Policy] }));
    let report = node.ask(stranger);
    assert_eq!((report.outcome, report.policy), (Outcome::Probed, None));
}

#[test]
fn the_sender_must_be_known_and_have_signed() {
    type Change<'a> = &'a dyn Fn(&mut Request);
    let changes: [(Change<'_>, RefusalKind); 6] = [
        (&|request| request.user = None, RefusalKind::Unsigned),
        (&|request| request.user = Some(user("stranger")), RefusalKind::UnknownUser),
        (&|request| request.signature = None, RefusalKind::Unsigned),
        (&|request| request.signed_bytes.push(b' '), RefusalKind::BadSignature),
        (&|request| *request = sign(request.clone(), &key("john")), RefusalKind::BadSignature),
        (&|request| request.signature.as_mut().unwrap().0 = [0; 64], RefusalKind::BadSignature),
    ];
    for (change, kind) in changes {
        for body in bodies_that_need_rights() {
            let mut node = Node::new();
            let mut request = node.request("jane", body);
            change(&mut request);
            let report = node.ask(request);
            assert_refused(&report, kind, "");
            node.assert_empty();
        }
    }
}

#[test]
fn who_is_not_meant_does_nothing_and_may_be_meant_later() {
    let load = NodeLoad { load_permille: 800, memory_free_kib: 64 << 10, ..NodeLoad::default() };
    let met = "flavour=wasm,block=kv>=1,memory>=64M,load<0.801";
    for (condition, reason) in [
        ("flavour=osgi", "`flavour=osgi` is asked for, the node does not run it"),
        ("block=kv>=99", "`block=kv>=99` is asked for, the node has version "),
        ("block=media>=1", "`block=media>=1` is asked for, the node has none"),
        ("memory>=65M", "`memory>=65M` is asked for, 67108864 bytes are free"),
        ("load<0.8", "`load<0.8` is asked for, the load is 0.800"),
    ] {
        let mut node = Node::with({
            let mut policy = policy();
            policy.blocks.insert("wasm".to_owned(), 1);
            policy
        });
        node.controller.set_load(load);
        let require = |text: &str| text.split(',').map(|text| text.parse().unwrap()).collect::<Vec<_>>();
        let request = node.request("jane", Body::from(setup("m@1.0.0")));
        let unmet = Request { require: require(condition), ..request.clone() };
        let Outcome::NotTargeted { reason: said } = node.ask(unmet.clone()).outcome else { panic!("{condition}") };
        assert!(said.starts_with(reason), "{said}");
        let by_place = Request { passed_by: Some("it is for the last node only".to_owned()), ..request.clone() };
        assert!(node.ask(by_place.clone()).outcome.is_not_targeted());
        // Who asks is checked first.
        let stranger = Request { signature: None, ..by_place.clone() };
        assert_refused(&node.ask(stranger), RefusalKind::Unsigned, "");
        let old = Request { created: UnixTime(0), ..by_place.clone() };
        assert_refused(&node.ask(sign(old, &key("jane"))), RefusalKind::StaleRequest, "");
        node.assert_empty();
        // The same request, when it is for this node.
        node.send(Request { require: require(met), ..request });
        assert!(!node.commands().is_empty(), "its package is fetched");
        assert!(node.ask(by_place).outcome.is_not_targeted());
        let harmless = node.request("jane", Body::Probe(Probe { ask: Vec::new() }));
        let harmless = Request { user: None, signature: None, require: require(condition), ..harmless };
        assert!(node.ask(harmless).outcome.is_not_targeted());
    }
}

#[test]
fn any_key_of_the_user_will_do() {
    let mut node = Node::new();
    node.policy.users.get_mut(&user("jane")).unwrap().keys.insert(0, super::script::public("john"));
    node.apply_policy();
    for signer in ["jane", "john"] {
        let request = sign(node.request("jane", Body::Probe(Probe { ask: vec![Ask::Policy] })), &key(signer));
        assert_eq!(node.ask(request).outcome, Outcome::Probed);
    }
}

#[test]
fn unsigned_requests_are_taken_only_if_the_operator_says_so() {
    let mut policy = policy();
    policy.accept_unsigned = true;
    let mut node = Node::with(policy);
    let unsigned =
        |node: &Node, user: &str| Request { signature: None, ..node.request(user, Body::from(setup("m@1.0.0"))) };
    let request = unsigned(&node, "stranger");
    assert_refused(&node.ask(request), RefusalKind::UnknownUser, "");
    let request = unsigned(&node, "jane");
    node.send(request.clone());
    commands!(node, "fetch 0 100");
    let mut wrong = node.request("jane", Body::from(setup("m@1.0.0")));
    wrong.signature.as_mut().unwrap().0[3] ^= 1;
    assert_refused(&node.ask(wrong), RefusalKind::BadSignature, "");
}

/// Goal: who signs the packages of the operator's services cannot ask in the operator's name, and neither can who signs nothing.
#[test]
fn requests_of_the_operator_are_signed_by_its_own_key_alone() {
    let mut policy = policy();
    policy.accept_unsigned = true;
    policy.operator = Some(OperatorPolicy { user: user("jane"), key: super::script::public("operator") });
    let mut node = Node::with(policy);
    let request = |node: &Node| node.request("jane", Body::from(setup("m@1.0.0")));
    let by_signer = sign(request(&node), &key("jane"));
    assert_refused(&node.ask(by_signer), RefusalKind::BadSignature, "");
    let by_nobody = Request { signature: None, ..request(&node) };
    assert_refused(&node.ask(by_nobody), RefusalKind::Unsigned, "");
    let own = sign(request(&node), &key("operator"));
    node.send(own);
    commands!(node, "fetch 0 100");
}

#[test]
fn harmless_probes_need_no_user() {
    let mut node = Node::new();
    node.controller.set_load(NodeLoad { load_permille: 7, ..NodeLoad::default() });
    let harmless = Body::Probe(Probe { ask: vec![Ask::Nodes, Ask::Blocks, Ask::Load] });
    for user in [None, Some(user("stranger"))] {
        let anonymous = Request { user, signature: None, ..node.request("jane", harmless.clone()) };
        let report = node.ask(anonymous);
        assert_eq!(report.outcome, Outcome::Probed);
        assert_eq!(report.load.unwrap().load_permille, 7);
        let blocks: Vec<String> = report.blocks.iter().map(ToString::to_string).collect();
        assert_eq!(blocks, ["kv>=2", "packet>=1"]);
    }
}

#[test]
fn a_probe_tells_what_it_is_asked_and_only_of_ones_own() {
    let mut node = Node::new();
    node.policy.users.insert(user("john"), user_policy("john", "10.3.0.0/16"));
    node.apply_policy();
    node.install(setup("m@1.0.0"));
    let report = node.probe(&[Ask::Modules, Ask::Policy, Ask::Load]);
    assert_eq!(report.modules.len(), 1);
    assert_eq!(report.modules[0].lease_s, 60);
    let granted = report.policy.unwrap();
    assert_eq!((granted.prefixes, granted.ttl_s_max, granted.modules_max), (vec!["10.2.0.0/16".to_owned()], 3600, 100));
    let load = report.load.unwrap();
    assert_eq!((load.containers, load.modules), (1, 1));
    assert!(node.probe(&[Ask::Nodes]).modules.is_empty());
    let request = node.request("john", Body::Probe(Probe { ask: vec![Ask::Modules] }));
    assert!(node.ask(request).modules.is_empty());
}

#[test]
fn requests_must_be_fresh() {
    let mut node = Node::new();
    let skew = node.policy.clock_skew_max;
    let now = node.now.wall;
    let at = |node: &mut Node, created: UnixTime| {
        let request = Request { created, ..node.request("jane", Body::Probe(Probe { ask: vec![Ask::Policy] })) };
        node.ask(request)
    };
    let early = UnixTime(now.0 - u64::try_from(skew.as_millis()).unwrap());
    for good in [early, now, now + skew] {
        assert_eq!(at(&mut node, good).outcome, Outcome::Probed);
    }
    for bad in [UnixTime(early.0 - 1), now + skew + Duration::from_millis(1), UnixTime(0), UnixTime(u64::MAX)] {
        assert_refused(&at(&mut node, bad), RefusalKind::StaleRequest, "made at");
    }
}

#[test]
fn a_request_works_once() {
    let mut node = Node::new();
    let request = node.request("jane", Body::Probe(Probe { ask: vec![Ask::Policy] }));
    assert_eq!(node.ask(request.clone()).outcome, Outcome::Probed);
    node.sleep(node.policy.clock_skew_max);
    assert_refused(&node.ask(request.clone()), RefusalKind::Replayed, "");
    node.sleep_ms(1);
    assert_refused(&node.ask(request), RefusalKind::StaleRequest, "");
}

/// The nonces of before are gone after a restart, so requests of before are stale.
#[test]
fn a_request_works_once_also_across_a_restart() {
    let mut node = Node::new();
    let request =
        node.request("jane", Body::Remove(Remove { module: name("m"), force: false, all: false, epoch: None }));
    node.sleep_ms(1000);
    node.controller.restore(node.now, Vec::new());
    // Whoever signs by a clock that is behind is refused for that long, and has to see why.
    let why = format!("made at {}, before the node started at {1}; it is {1} here", request.created, node.now.wall);
    assert_refused(&node.ask(request), RefusalKind::StaleRequest, &why);
    node.now.wall = UnixTime(node.now.wall.0 + 999);
    node.controller.restore(node.now, Vec::new());
    let mut request = node.request("jane", Body::Probe(Probe { ask: vec![Ask::Policy] }));
    request.created = UnixTime(request.created.0 / 1000 * 1000);
    assert_eq!(node.ask(request).outcome, Outcome::Probed, "times are written in whole seconds");
}

/// Goal: a node that starts an hour ahead takes requests once its clock is set right, and none of before its start, also if it started
/// an hour behind.
#[test]
fn a_clock_that_is_set_right_moves_the_start() {
    const WRONG_MS: u64 = 3_600_000;
    for ahead in [true, false] {
        let mut node = Node::new();
        let before = node.request("jane", Body::Probe(Probe { ask: vec![Ask::Policy] }));
        node.sleep_ms(2000);
        let right = node.now;
        node.now.wall = UnixTime(if ahead { right.wall.0 + WRONG_MS } else { right.wall.0 - WRONG_MS });
        node.controller.restore(node.now, Vec::new());
        node.sleep_ms(5000);
        node.now.wall = UnixTime(right.wall.0 + 5000);
        let after = node.request("jane", Body::Probe(Probe { ask: vec![Ask::Policy] }));
        assert_eq!(node.ask(after).outcome, Outcome::Probed, "ahead: {ahead}");
        assert_refused(&node.ask(before), RefusalKind::StaleRequest, "before the node started");
    }
}

#[test]
fn setups_must_keep_to_the_policy() {
    type Change<'a> = &'a dyn Fn(&mut Setup);
    let changes: [(Change<'_>, RefusalKind, &str); 11] = [
        (&|setup| setup.ttl = Duration::from_millis(999), RefusalKind::BadTtl, "1 to 3600 s"),
        (&|setup| setup.ttl = Duration::from_secs(3601), RefusalKind::BadTtl, "3601 s asked for"),
        (&|setup| setup.filters[0] = filter("udp dst 10.3.0.0/24"), RefusalKind::PrefixNotAllowed, "10.3.0.0/24"),
        (&|setup| setup.filters.push(filter("udp")), RefusalKind::PrefixNotAllowed, "everybody"),
        (&|setup| setup.dependencies = deps("kv>=3"), RefusalKind::MissingDependency, "version 2"),
        (&|setup| setup.dependencies = deps("http>=1"), RefusalKind::MissingDependency, "has none"),
        (&|setup| add_properties(setup, PROPERTIES_PER_MODULE_MAX + 1), RefusalKind::BadRequest, "65 properties"),
        (&|setup| add_long_property(setup, PROPERTY_BYTES_MAX), RefusalKind::BadRequest, "`key` is longer"),
        (&|_| {}, RefusalKind::NoNode, ""),
        (&|setup| add_properties(setup, PROPERTIES_PER_MODULE_MAX), RefusalKind::NoNode, ""),
        (&|setup| add_long_property(setup, PROPERTY_BYTES_MAX - 3), RefusalKind::NoNode, ""),
    ];
    for (change, kind, detail) in changes {
        let mut wanted = setup("m@1.0.0");
        change(&mut wanted);
        for dry_run in [false, true] {
            let mut node = Node::new();
            let request = Request { dry_run, ..node.request("jane", Body::from(wanted.clone())) };
            let id = node.send(request);
            let commands = node.commands();
            match (kind, dry_run) {
                (RefusalKind::NoNode, true) => assert_eq!(commands, ["answer 0 would install"]),
                (RefusalKind::NoNode, false) => assert_eq!(commands, ["fetch 0 100"]),
                (_, _) => {
                    assert_refused(&node.reports[&id], kind, detail);
                    node.assert_empty();
                }
            }
        }
    }
}

#[test]
fn ports_are_checked_too() {
    let mut node = Node::new();
    node.policy.users.get_mut(&user("jane")).unwrap().ports = vec!["5060-5061".parse().unwrap()];
    node.apply_policy();
    let mut wanted = setup("m@1.0.0");
    let request = node.request("jane", Body::from(wanted.clone()));
    assert_refused(&node.ask(request), RefusalKind::PortNotAllowed, "5060-5061");
    wanted.filters = vec![filter("udp dst 10.2.0.0/24 port 5060")];
    node.install(wanted);
}

#[test]
fn packages_must_be_what_the_request_says() {
    type Change<'a> = &'a dyn Fn(&mut netserv_model::manifest::Manifest);
    let changes: [(Change<'_>, RefusalKind, &str); 10] = [
        (&|manifest| manifest.manifest = 2, RefusalKind::MissingFeature, "version 2"),
        (&|manifest| manifest.name = name("other"), RefusalKind::BadManifest, "other@1.0.0"),
        (&|manifest| manifest.version = "1.0.1".parse().unwrap(), RefusalKind::BadManifest, "m@1.0.1"),
        (&|manifest| packet(manifest).abi = 2, RefusalKind::AbiMismatch, "ABI 2"),
        (&|manifest| packet(manifest).abi = 0, RefusalKind::AbiMismatch, "ABI 0"),
        (&|manifest| manifest.dependencies = deps("media>=1"), RefusalKind::MissingDependency, "media"),
        (&|manifest| manifest.limits.memory_bytes += 1, RefusalKind::MemoryLimit, "4194305"),
        (&|manifest| packet(manifest).filters = vec![filter("ip")], RefusalKind::PrefixNotAllowed, "everybody"),
        (&|manifest| packet(manifest).filters = filters(17), RefusalKind::QuotaExceeded, "17 filters"),
        (
            &|manifest| manifest.properties = (0..65).map(|n| (n.to_string(), String::new())).collect(),
            RefusalKind::BadManifest,
            "65 properties",
        ),
    ];
    for (change, kind, detail) in changes {
        let mut node = Node::new();
        let wanted = Setup { filters: Vec::new(), ..setup("m@1.0.0") };
        let mut manifest = manifest(&wanted);
        change(&mut manifest);
        let id = node.setup(wanted);
        commands!(node, "fetch 0 100");
        node.fetched(0, manifest);
        assert_eq!(node.commands(), [format!("answer 0 {kind}")]);
        assert_refused(&node.reports[&id], kind, detail);
        node.assert_empty();
    }
}

#[test]
fn a_module_gets_what_it_needs_or_is_refused_by_name() {
    let admits = |resource, amount, refused: &str| {
        let mut node = Node::new();
        let mut manifest = manifest(&setup("m@1.0.0"));
        manifest.needs = [(resource, amount)].into();
        manifest.limits = manifest.limits.raised_to(&manifest.needs);
        let id = node.setup(setup("m@1.0.0"));
        commands!(node, "fetch 0 100");
        node.fetched(0, manifest);
        if refused.is_empty() {
            commands!(node, "start jane");
        } else {
            commands!(node, "answer 0 quota-exceeded");
            assert_refused(&node.reports[&id], RefusalKind::QuotaExceeded, refused);
        }
    };
    let policy = policy();
    let user = &policy.users[&user("jane")];
    let timers = u64::from(user.module_limits.timers);
    admits(Resource::Timers, timers, "");
    let detail = format!("the module needs timers of {}, the user's modules get {timers} at most", timers + 1);
    admits(Resource::Timers, timers + 1, &detail);
    admits(Resource::DiskBytes, user.container.disk_bytes, "");
    admits(Resource::DiskBytes, user.container.disk_bytes + 1, "the module needs disk-bytes of ");
    admits(Resource::BitsPerSecond, u64::MAX, "the module needs bits-per-second of ");
    admits(Resource::CacheBytes, 1, "the module needs cache-bytes of 1, the user's modules get 0 at most");
}

/// A SETUP without filters takes those of the manifest; limits and properties are put together from both sides.
#[test]
fn what_is_loaded_comes_from_request_manifest_and_policy() {
    let mut node = Node::new();
    let mut wanted = Setup { filters: Vec::new(), ..setup("m@1.0.0") };
    wanted.properties.insert("sample".to_owned(), "100".to_owned());
    let mut manifest = manifest(&wanted);
    packet(&mut manifest).filters =
        vec![filter("tcp src 10.2.0.1"), filter("tcp src 10.2.0.1"), filter("icmp dst 10.2.0.1")];
    packet(&mut manifest).on_failure = FailureMode::Closed;
    packet(&mut manifest).parallel = true;
    manifest.limits.timers = 1_000_000;
    manifest.limits.kv_entries = 5;
    manifest.properties = [("sample", "1"), ("depth", "2")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    manifest.state_schema = 7;
    node.setup(wanted);
    commands!(node, "fetch 0 100");
    node.fetched(0, manifest);
    commands!(node, "start jane");
    node.ready();
    node.commands();
    let Some(Job::Workers(WorkerJob::Load(load))) = node.jobs.last() else { panic!("no load") };
    assert_eq!((load.limits.timers, load.limits.kv_entries, load.state_schema), (64, 5, 7));
    assert!(load.packet && load.parallel);
    assert_eq!(load.processors, 1);
    let properties: Vec<(&str, &str)> = load.properties.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(properties, [("depth", "2"), ("sample", "100")]);
    node.loaded(0);
    commands!(
        node,
        "filter 0 jane 0 tcp src 10.2.0.1/32",
        "filter 1 jane 0 icmp dst 10.2.0.1/32",
        "store jane m@1.0.0",
        "answer 0 installed 60"
    );
    let change = node.jobs.iter().find_map(|job| if let Job::Filters(change) = job { Some(change) } else { None });
    assert!(change.unwrap().add.iter().all(|rule| rule.on_failure == FailureMode::Closed));
}

#[test]
fn dry_runs_change_nothing() {
    let mut node = Node::new();
    let dry = |node: &mut Node, body: Body| {
        let request = Request { dry_run: true, ..node.request("jane", body) };
        node.ask(request).outcome
    };
    let would = |action: &str| Outcome::WouldDo { action: action.to_owned() };
    let remove = || Body::Remove(Remove { module: name("m"), force: false, all: false, epoch: None });
    assert_eq!(dry(&mut node, Body::from(setup("m@1.0.0"))), would("install"));
    assert!(dry(&mut node, remove()).is_refused_for(RefusalKind::NotInstalled));
    node.assert_empty();
    node.install(setup("m@1.0.0"));
    let before = node.controller.modules(node.now);
    assert_eq!(dry(&mut node, Body::from(setup("m@1.0.0"))), would("refresh"));
    assert_eq!(dry(&mut node, Body::from(setup("m@1.0.1"))), would("replace"));
    assert_eq!(dry(&mut node, remove()), would("remove"));
    assert_eq!(node.controller.modules(node.now), before);
}

#[test]
fn answers_are_counted_by_method_and_outcome() {
    let mut node = Node::new();
    node.install(setup("m@1.0.0"));
    node.install(setup("m@1.0.0"));
    node.remove("m");
    node.remove("m");
    node.probe(&[]);
    node.commands();
    let counted: Vec<(&str, &str, u64)> =
        node.controller.counters().requests.iter().map(|((method, outcome), n)| (*method, *outcome, *n)).collect();
    assert_eq!(
        counted,
        [
            ("PROBE", "probed", 1),
            ("REMOVE", "not-installed", 1),
            ("REMOVE", "removed", 1),
            ("SETUP", "installed", 1),
            ("SETUP", "refreshed", 1),
        ]
    );
}

fn bodies_that_need_rights() -> [Body; 4] {
    let probe = |ask: Ask| Body::Probe(Probe { ask: vec![Ask::Nodes, ask] });
    [
        Body::from(setup("m@1.0.0")),
        Body::Remove(Remove { module: name("m"), force: false, all: false, epoch: None }),
        probe(Ask::Modules),
        probe(Ask::Policy),
    ]
}

fn filter(text: &str) -> netserv_model::WantedFilter {
    text.parse().unwrap()
}

fn filters(count: usize) -> Vec<netserv_model::WantedFilter> {
    (0..count).map(|n| filter(&format!("dst 10.2.0.{n}"))).collect()
}

fn deps(text: &str) -> Vec<netserv_model::request::Dependency> {
    vec![text.parse().unwrap()]
}

fn add_properties(setup: &mut Setup, count: usize) {
    setup.properties.extend((0..count).map(|n| (format!("key{n}"), String::new())));
}

fn add_long_property(setup: &mut Setup, value_bytes: usize) {
    setup.properties.insert("key".to_owned(), "x".repeat(value_bytes));
}
