// SPDX-License-Identifier: Apache-2.0
//! `setup`, `remove`, `probe` and `path` against a node with canned answers.

use std::collections::BTreeMap;

use crate::support::{FakeNode, Home, check, text};
use netserv_model::api::{PostRequest, RequestResult};
use netserv_model::floating::GivenUp;
use netserv_model::request::{
    Body, Environment, Hop, HopProof, ModuleState, ModuleStatus, NodeLoad, NodeReport, Outcome,
};
use netserv_model::request::{PacketCounts, PathEnd, PolicyReport, ReturnStack, ServerCounts, Withheld};
use netserv_model::{Flavour, Refusal, RefusalKind, SessionId};
use netserv_wire::nslp::Message;

const DIGEST: &str = "sha256:9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f";

fn report(node: &str, address: &str, outcome: Outcome, took_us: u64) -> NodeReport {
    NodeReport {
        node: node.parse().unwrap(),
        address: address.parse().unwrap(),
        outcome,
        took_us,
        hop: None,
        load: None,
        modules: Vec::new(),
        blocks: Vec::new(),
        environments: Vec::new(),
        policy: None,
    }
}

fn result(nodes: Vec<NodeReport>, incomplete: Option<Refusal>) -> RequestResult {
    let end = incomplete.is_none().then_some(PathEnd::Unreachable);
    RequestResult {
        session: SessionId([0xab; 16]),
        nodes,
        incomplete,
        end,
        withheld: Default::default(),
        returned: None,
        beside: Default::default(),
        took_us: 15_340,
    }
}

fn refused(kind: RefusalKind, detail: &str) -> Outcome {
    Outcome::Refused(Refusal::new(kind, detail))
}

fn node(result: &RequestResult) -> FakeNode {
    FakeNode::answering(200, serde_json::to_string(result).unwrap())
}

/// The one request that the node got, with its message.
fn posted(node: &FakeNode) -> (PostRequest, Message) {
    let seen = node.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].0, "/v1/requests");
    let request: PostRequest = serde_json::from_str(&seen[0].1).unwrap();
    let message = Message::parse(request.message.as_bytes()).unwrap();
    (request, message)
}

#[test]
fn a_setup_says_what_the_command_line_says_and_is_signed() {
    let node = node(&result(vec![report("r1", "10.0.0.1", Outcome::Installed { lease_s: 1800 }, 12_100)], None));
    let home = Home::with_key();
    let mut arguments = vec!["setup", "example.org/net-monitor@1.2.0", "--to", "10.2.0.1", "--from", "10.1.0.1"];
    arguments.extend(["--url", "https://cp.example/m.nsm", "--digest", DIGEST, "--ttl", "30m", "--timeout", "1500ms"]);
    arguments.extend(["--filter", "udp dst 10.2.0.0/24 port 5060", "--filter", "tcp port 80", "--dry-run"]);
    arguments.extend(["--property", "sample=100", "--property", "to=a=b, c", "--depends-on", "kv>=2"]);
    arguments.extend(["--session", "000102030405060708090a0b0c0d0e0f"]);
    let output = home.ask(&node, &arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    let (request, message) = posted(&node);
    let path = request.path.unwrap();
    assert_eq!(path.destination.to_string(), "10.2.0.1");
    assert_eq!(path.source.unwrap().to_string(), "10.1.0.1");
    assert_eq!(request.timeout_ms, 1500);
    assert_eq!(request.session.unwrap().to_string(), "000102030405060708090a0b0c0d0e0f");
    let request = message.request(SessionId([0; 16]));
    assert_eq!(request.user.unwrap().as_str(), "janedoe");
    assert!(request.dry_run);
    let Body::Setup(setup) = request.body else { panic!("{:?}", request.body) };
    assert_eq!(setup.module.to_string(), "example.org/net-monitor@1.2.0");
    assert_eq!(setup.url, "https://cp.example/m.nsm");
    assert_eq!(setup.digest.to_string(), DIGEST);
    assert_eq!(setup.ttl.as_secs(), 1800);
    let filters: Vec<String> = setup.filters.iter().map(ToString::to_string).collect();
    assert_eq!(filters, ["udp dst 10.2.0.0/24 port 5060", "tcp port 80"]);
    assert_eq!(setup.properties["sample"], "100");
    assert_eq!(setup.properties["to"], "a=b, c");
    assert_eq!(setup.dependencies[0].to_string(), "kv>=2");

    let shown = home.netserv(&["key", "show"]);
    let public: netserv_model::PublicKey = text(&shown.stdout).trim().parse().unwrap();
    let key = ed25519_dalek::VerifyingKey::from_bytes(&public.0).unwrap();
    let signature = ed25519_dalek::Signature::from_bytes(&request.signature.unwrap().0);
    assert!(key.verify_strict(&request.signed_bytes, &signature).is_ok());
}

#[test]
fn a_response_stack_is_a_table_with_cause_and_fix_of_each_refusal() {
    let nodes = vec![
        report("r1", "10.0.0.1", Outcome::Installed { lease_s: 3600 }, 12_100),
        report("router-2", "10.0.12.2", refused(RefusalKind::BadTtl, "8d is more\nthan 7d"), 410),
        report("r3", "2001:db8::3", Outcome::Refreshed { lease_s: 3600 }, 2_000_000),
    ];
    let node = node(&result(nodes, None));
    let home = Home::with_key();
    let arguments =
        ["setup", "example.org/a@1.0.0", "--to", "10.2.0.1", "--url", "https://cp.example/a", "--digest", DIGEST];
    check(
        &home.ask(&node, &arguments),
        5,
        "\
HOP  NODE      ADDRESS      OUTCOME              TIME
1    r1        10.0.0.1     installed, lease 1h  12.1 ms
2    router-2  10.0.12.2    refused: bad-ttl     0.4 ms
     cause: 8d is more than 7d
     fix: ask for a lease that the node grants (`netserv probe --ask policy`)
3    r3        2001:db8::3  refreshed, lease 1h  2.0 s
3 nodes in 15.3 ms, 1 refused
",
        "setup example.org/a@1.0.0 on the way to 10.2.0.1\n",
    );
}

/// Goal: a node that still compiles is asked again in the same session, with a new signature, until it has the module.
#[test]
fn a_setup_that_takes_long_is_sent_again() {
    let slow = report("r1", "10.0.0.1", refused(RefusalKind::InProgress, "accepted; not done after 9 ms"), 9000);
    let answers = [vec![slow], vec![report("r1", "10.0.0.1", Outcome::Installed { lease_s: 3600 }, 12_100)]];
    let answers = answers.map(|nodes| serde_json::to_string(&result(nodes, None)).unwrap());
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let node = FakeNode::with(move || {
        let at = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst).min(1);
        (axum::http::StatusCode::OK, axum::body::Body::from(answers[at].clone()))
    });
    let home = Home::with_key();
    let arguments =
        ["setup", "example.org/a@1.0.0", "--to", "10.2.0.1", "--url", "https://cp.example/a", "--digest", DIGEST];
    check(
        &home.ask(&node, &arguments),
        0,
        "\
HOP  NODE  ADDRESS   OUTCOME              TIME
1    r1    10.0.0.1  installed, lease 1h  12.1 ms
1 node in 15.3 ms
",
        "\
setup example.org/a@1.0.0 on the way to 10.2.0.1
r1 has accepted it and still fetches or compiles: asked again
",
    );
    let posts: Vec<PostRequest> =
        node.seen().iter().map(|(_, body)| serde_json::from_str(body).unwrap()).collect::<Vec<_>>();
    assert_eq!((posts.len(), posts[0].session, posts[1].session), (2, None, Some(SessionId([0xab; 16]))));
    assert_ne!(posts[0].message, posts[1].message, "a nonce works once");
}

#[test]
fn json_gives_back_the_result_as_it_came() {
    let refusal = Refusal::new(RefusalKind::Timeout, "no answer from beyond r1");
    let sent = result(vec![report("r1", "10.0.0.1", Outcome::Removed, 900)], Some(refusal));
    let node = node(&sent);
    let output = Home::with_key().ask(&node, &["-j", "remove", "example.org/a", "--to", "10.2.0.1"]);
    assert_eq!(serde_json::from_slice::<RequestResult>(&output.stdout).unwrap(), sent);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(6));
    let (_, message) = posted(&node);
    let Body::Remove(remove) = message.body() else { panic!("{:?}", message.body()) };
    assert_eq!(remove.module.as_str(), "example.org/a");
}

#[test]
fn local_requests_have_no_path() {
    let node = node(&result(vec![report("r1", "10.0.0.1", Outcome::WouldDo { action: "remove".into() }, 900)], None));
    let output = Home::with_key().ask(&node, &["remove", "example.org/a", "--local", "--dry-run"]);
    let stdout = "\
HOP  NODE  ADDRESS   OUTCOME       TIME
1    r1    10.0.0.1  would remove  0.9 ms
1 node in 15.3 ms
";
    check(&output, 0, stdout, "remove example.org/a on this node\n");
    assert_eq!(posted(&node).0.path, None);
}

#[test]
fn a_request_for_some_nodes_says_for_which() {
    let others = |reason: &str| Outcome::NotTargeted { reason: reason.to_owned() };
    let nodes = |last: Outcome| {
        vec![report("r1", "10.0.0.1", others("it is for the last node only"), 300), report("r2", "10.0.1.1", last, 900)]
    };
    let target =
        ["--scope", "last", "--node", "r1,r2", "--require", "block=kv>=1,load<0.8", "--require", "memory>=64M"];
    let arguments = [&["remove", "example.org/a", "--to", "10.2.0.1"][..], &target].concat();
    let stdout = "\
HOP  NODE  ADDRESS   OUTCOME       TIME
1    r1    10.0.0.1  not targeted  0.3 ms
     it is for the last node only
2    r2    10.0.1.1  removed       0.9 ms
2 nodes in 15.3 ms
";
    let node_1 = node(&result(nodes(Outcome::Removed), None));
    let home = Home::with_key();
    check(&home.ask(&node_1, &arguments), 0, stdout, "remove example.org/a on the way to 10.2.0.1\n");
    let (_, message) = posted(&node_1);
    let headers = "\nscope: last\nnode-id: r1, r2\nrequire: block=kv>=1, load<0.8, memory>=64M\n";
    assert!(message.as_str().contains(headers), "{}", message.as_str());

    let node_2 = node(&result(nodes(others("`load<0.8` is asked for, the load is 1.200")), None));
    let output = home.ask(&node_2, &arguments);
    assert_eq!(output.status.code(), Some(6));
    let nobody = "cause: no node on the path is one that the request is for\n";
    assert!(text(&output.stdout).contains(nobody), "{}", text(&output.stdout));

    // One that is only on the way back is one, too.
    let back = ReturnStack { nodes: vec![report("r3", "10.0.2.1", Outcome::Removed, 500)], ..ReturnStack::default() };
    let node_3 = node(&RequestResult { returned: Some(back), ..result(nodes(others("its name is not meant")), None) });
    let round = ["remove", "example.org/a", "--to", "10.2.0.1", "--round-trip", "--node", "r3"];
    let output = home.ask(&node_3, &round);
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    let output = home.ask(&node_2, &["probe", "--to", "10.2.0.1", "--require", "disk>1"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn answers_to_a_probe_stand_below_their_node() {
    let mut first = report("r1", "10.0.0.1", Outcome::Probed, 300);
    first.load = Some(NodeLoad {
        containers: 1,
        modules: 2,
        packets: 77,
        load_permille: 125,
        memory_free_kib: 2048,
        ..NodeLoad::default()
    });
    first.blocks = vec!["kv>=1".parse().unwrap(), "packet>=1".parse().unwrap()];
    let engine = "Felix 7.0.5 (OSGi Core 8) on OpenJDK 17.0.15".to_owned();
    first.environments = vec![Environment { flavour: Flavour::Osgi, engine }];
    first.policy = Some(PolicyReport {
        prefixes: vec!["10.2.0.0/24".into()],
        ttl_s_max: 604_800,
        modules_max: 8,
        memory_bytes_max: 8 << 20,
        ceilings: [("connections".to_owned(), 8192), ("timers".to_owned(), 64)].into(),
        listen: vec!["tcp port 80".into()],
        price_per_hour: Some(12),
        ..PolicyReport::default()
    });
    first.modules = vec![ModuleStatus {
        user: "janedoe".parse().unwrap(),
        module: "example.org/a@1.0.0".parse().unwrap(),
        digest: DIGEST.parse().unwrap(),
        flavour: Some(Flavour::Osgi),
        state: ModuleState::BackingOff,
        epoch: 0,
        lease_s: 90,
        held_by: 0,
        sessions: Vec::new(),
        filters: vec!["udp port 5060".parse().unwrap()],
        listen: vec!["tcp port 80".parse().unwrap()],
        intercept: vec!["tcp dst 10.2.0.0/24 port 8080".parse().unwrap()],
        chain: vec!["example.org/b@1.1.0".parse().unwrap()],
        addresses: vec!["192.0.2.7".parse().unwrap()],
        floating: vec!["2001:db8::7".parse().unwrap()],
        given_up: vec![GivenUp { address: "192.0.2.9".parse().unwrap(), epoch: 3 }],
        restarts: 2,
        last_failure: Some(Refusal::new(RefusalKind::Trapped, "out of bounds")),
        packets: PacketCounts { seen: 10, passed: 6, dropped: 3, modified: 1, injected: 0 },
        server: Some(ServerCounts {
            connections: 1,
            requests: 5,
            refused: 2,
            failed: 3,
            errors: 4,
            bytes_in: 2048,
            bytes_out: 9,
        }),
        counters: BTreeMap::from([("sip".to_owned(), 4)]),
    }];
    let node = node(&result(vec![first], None));
    let output = Home::with_key().ask(&node, &["probe", "--to", "10.2.0.1", "--ask", "modules,blocks,load,policy"]);
    check(
        &output,
        0,
        "\
HOP  NODE  ADDRESS   OUTCOME  TIME
1    r1    10.0.0.1  ok       0.3 ms
     load: 2 modules in 1 container, 77 packets seen, load 0.12, 2.0 MiB free
     blocks: kv>=1, packet>=1
     osgi: Felix 7.0.5 (OSGi Core 8) on OpenJDK 17.0.15
     prefixes: 10.2.0.0/24
     ports: all
     longest lease: 7d
     modules at most: 8
     memory of one module at most: 8.0 MiB
     a module gets at most: connections 8192, timers 64
     connections that it may take: tcp port 80
     connections that it may open: none
     price: 12 for each hour of a module

WHERE  USER     MODULE               FLAVOUR  STATE        LEASE   SEEN  PASSED  DROPPED  MODIFIED  INJECTED
r1     janedoe  example.org/a@1.0.0  osgi     backing-off  1m 30s  10    6       3        1         0
       filter: udp port 5060
       listens: tcp port 80
       intercepts: tcp dst 10.2.0.0/24 port 8080
       part: example.org/b@1.1.0
       address: 192.0.2.7
       floating: 2001:db8::7
       gave up: 192.0.2.9, another owner has it since epoch 3
       served: 1 connection with 5 requests, 2 refused, 3 failed, 4 answered with an error, 2.0 KiB in, 9 B out
       counter: sip = 4
       last failure: trapped: out of bounds (2 restarts)
       fix: find the trap with `netserv module test`
1 node in 15.3 ms
",
        "",
    );
    let (_, message) = posted(&node);
    assert!(message.as_str().contains("\nask: modules, blocks, load, policy\n"), "{}", message.as_str());
    assert!(message.signature().is_some());
}

#[test]
fn a_path_is_shown_node_by_node_with_the_ways_between() {
    let hop = |rtt_us: u64, ip_hops: u8, proof: HopProof, name: Option<&str>| {
        Some(Hop {
            rtt_us: Some(rtt_us),
            ip_hops: Some(ip_hops),
            proof: Some(proof),
            tls_name: name.map(str::to_owned),
        })
    };
    let plain =
        |node: &str, address: &str, hop: Option<Hop>| NodeReport { hop, ..report(node, address, Outcome::Probed, 300) };
    let runs = |flavour| Environment { flavour, engine: "it".to_owned() };
    let nodes = vec![
        plain("here", "10.0.0.7", None),
        NodeReport {
            environments: vec![runs(Flavour::Wasm), runs(Flavour::Osgi)],
            blocks: vec!["kv>=1".parse().unwrap(), "packet>=1".parse().unwrap()],
            ..plain("r1", "10.0.0.1", hop(424, 1, HopProof::Association, None))
        },
        NodeReport {
            environments: vec![runs(Flavour::Wasm)],
            blocks: vec!["kv>=1".parse().unwrap(), "packet>=1".parse().unwrap()],
            ..plain("router-2", "10.0.12.2", hop(31_250, 2, HopProof::Tls, Some("r2.example\u{1b}")))
        },
        plain("r3", "10.0.23.3", hop(1_000_000, 1, HopProof::ResponseCookie, None)),
        plain("old", "10.0.34.4", None),
    ];
    let node = node(&result(nodes, None));
    let stdout = "\
HOP  NODE      ADDRESS    RTT      IP HOPS  PROVEN BY              FLAVOURS
1    here      10.0.0.7   -        -        -                      -
2    r1        10.0.0.1   0.42 ms  1        association            wasm, osgi
     blocks: kv>=1, packet>=1
3    router-2  10.0.12.2  31.2 ms  2        TLS, r2.example\\u{1b}  wasm
     blocks: the same
4    r3        10.0.23.3  1.0 s    1        cookie                 -
5    old       10.0.34.4  -        -        -                      -
     10.2.0.1  refused the last Query with an ICMP error
5 nodes in 15.3 ms
";
    check(&Home::empty().ask(&node, &["path", "10.2.0.1"]), 0, stdout, "");
    let (request, message) = posted(&node);
    assert!(request.path.is_some());
    assert!(message.as_str().contains("\nask: nodes, blocks\n"), "{}", message.as_str());
    assert_eq!((message.user(), message.signature()), (None, None));
}

#[test]
fn a_path_for_programs_says_what_is_known_of_all_beyond_this_node() {
    let nodes = || vec![report("r1", "10.0.0.1", Outcome::Probed, 300)];
    let silent = Refusal::new(RefusalKind::Timeout, "nobody after r1 answered; there may be nodes further on");
    let hidden = Withheld { nodes: 2, refused: 0, lease_s: 0 };
    let said = |kind: &str, detail: &str| serde_json::json!({ "is": "incomplete", "reason": { "kind": kind, "detail": detail } });
    let whole = result(nodes(), None);
    for (result, code, expected) in [
        (whole.clone(), 0, serde_json::json!({ "is": "whole", "by": "unreachable" })),
        (result(nodes(), Some(silent.clone())), 6, said("timeout", &silent.detail)),
        (
            RequestResult { withheld: hidden, ..whole.clone() },
            6,
            said("outside-domain", "2 nodes more that the operator of a domain on the path does not show"),
        ),
        (result(Vec::new(), None), 6, said("no-node", "no node answered")),
        (
            RequestResult { end: None, ..whole },
            6,
            said("timeout", "nothing proves that no node comes after the last one"),
        ),
    ] {
        let node = node(&result);
        let output = Home::empty().ask(&node, &["path", "10.2.0.1", "-j"]);
        let mut shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let beyond_us = shown.as_object_mut().unwrap().remove("beyond_us").unwrap();
        assert_eq!(beyond_us, expected);
        assert_eq!(output.status.code(), Some(code), "{beyond_us}");
        assert_eq!(serde_json::from_value::<RequestResult>(shown).unwrap(), result);
    }
}

#[test]
fn a_round_trip_shows_the_way_back_and_is_whole_only_with_it() {
    let there = || vec![report("r1", "10.0.0.1", Outcome::Probed, 300)];
    let back = vec![report("r3", "10.0.3.1", Outcome::Probed, 400), report("r4", "10.0.4.1", Outcome::Probed, 500)];
    let stack = ReturnStack { nodes: back, incomplete: None, end: Some(PathEnd::Destination) };
    let whole = RequestResult { returned: Some(stack.clone()), ..result(there(), None) };
    let node_1 = node(&whole);
    let stdout = "\
HOP  NODE  ADDRESS   RTT  IP HOPS  PROVEN BY  FLAVOURS
1    r1    10.0.0.1  -    -        -          -
     10.2.0.1  refused the last Query with an ICMP error
way back:
HOP  NODE  ADDRESS   RTT  IP HOPS  PROVEN BY  FLAVOURS
1    r3    10.0.3.1  -    -        -          -
2    r4    10.0.4.1  -    -        -          -
     the way back ends at the requester
1 node there and 2 back in 15.3 ms
";
    let home = Home::empty();
    check(&home.ask(&node_1, &["path", "10.2.0.1", "--round-trip"]), 0, stdout, "");
    let (_, message) = posted(&node_1);
    assert!(message.wants_return());

    let stdout = "\
HOP  NODE  ADDRESS   OUTCOME  TIME
1    r1    10.0.0.1  ok       0.3 ms
way back:
the stack of the way back ends early
cause: no-node: no node sent the request back
fix: check the path and that nodes run: `netserv path`
1 node in 15.3 ms
";
    let node_2 = node(&result(there(), None));
    check(&home.ask(&node_2, &["probe", "--to", "10.2.0.1", "--round-trip"]), 6, stdout, "");

    let refused = refused(RefusalKind::UnknownUser, "no user janedoe");
    let nodes = vec![report("r3", "10.0.3.1", refused, 400)];
    let node_3 = node(&RequestResult { returned: Some(ReturnStack { nodes, ..stack }), ..result(there(), None) });
    assert_eq!(home.ask(&node_3, &["probe", "--to", "10.2.0.1", "--round-trip"]).status.code(), Some(5));
}

#[test]
fn a_path_without_nodes_says_so() {
    let node = node(&result(Vec::new(), None));
    let stdout = "     ? 10.2.0.1
cause: no-node: no node answered
fix: check the path and that nodes run: `netserv path`
";
    check(&Home::empty().ask(&node, &["path", "10.2.0.1"]), 6, stdout, "");
}

#[test]
fn personal_questions_need_a_key() {
    let home = Home::empty();
    let node = node(&result(Vec::new(), None));
    let key = home.path().join(".config/netserv/key.pem");
    let stderr = format!(
        "error: cannot read the key file {}: No such file or directory (os error 2)\n\
         fix: make a key with `netserv key new`, or name the file with --key\n",
        key.display()
    );
    check(&home.ask(&node, &["probe", "--to", "10.2.0.1", "--ask", "policy"]), 1, "", &stderr);
    assert!(node.seen().is_empty());
}

#[test]
fn a_name_without_url_or_digest_is_a_wrong_command_line() {
    let stderr = "\
error: no --url for example.org/a@1.0.0
fix: give --url, or a .nsm file in place of the name
";
    let home = Home::with_key();
    check(&home.netserv(&["setup", "example.org/a@1.0.0", "--to", "10.2.0.1"]), 2, "", stderr);
    let stderr = "\
error: the following required arguments were not provided: --to <DEST>
fix: write `netserv setup --to <DEST> <MODULE@VERSION|FILE.nsm>`
";
    check(&home.netserv(&["setup", "example.org/a@1.0.0"]), 2, "", stderr);
}
