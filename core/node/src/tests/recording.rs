// SPDX-License-Identifier: Apache-2.0
//! Recordings: what is written means the same when it is read, and damage is an error.

use netserv_gist::{AssociationId, Channel, FlowRule, FlowScope, IcmpError, IcmpKind, InterfaceId, Prefix};
use netserv_model::application::ApplicationCall;
use netserv_model::control::{ControlMessage, ModuleMessage};
use netserv_model::effect::{
    InstalledRecord, ListAnswer, Measured, ModuleCounts, ModuleSlot, Stored, StoredList, StoredMessage, Wish,
};
use netserv_model::evidence::Holder;
use netserv_model::floating::GivenUp;
use netserv_model::request::{PacketCounts, ServerCounts};
use netserv_model::route::RouteChange;
use netserv_model::usage::{Held, Meters, ModuleMeter, NetworkMeter, Traffic, Usage, UsageKey, Used, WorkerMeter};
use netserv_model::{SessionId, UnixTime, UserId};

use super::*;
use crate::recording::{Header, Line, OutputDigest, Replay, ReplayError, VERSION};
use crate::{ClientId, Ends, OwnedDatagram, Token};

#[test]
fn every_input_comes_back_as_it_was() {
    let mut kinds = std::collections::BTreeSet::new();
    for input in inputs() {
        kinds.insert(kind(&input));
        let line = Line { now: START, input, outputs: OutputDigest::default().to_hex() };
        let text = line.to_line();
        assert!(!text.contains('\n'));
        assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line, "{text}");
    }
    assert_eq!(kinds, (0..KINDS).collect(), "an input has no example");
}

#[test]
fn a_header_comes_back_as_it_was() {
    let header = header();
    assert_eq!(serde_json::from_str::<Header>(&header.to_line()).unwrap(), header);
}

#[test]
fn a_recorded_run_gives_the_same_outputs_again() {
    let recording = recording();
    let replayed = replay(&recording).unwrap();
    assert_eq!(replayed.inputs + 1, u64::try_from(recording.len()).unwrap());
    assert!(replayed.outputs > 5, "{replayed:?}");
}

#[test]
fn what_differs_is_found_with_its_line_and_what_came_out() {
    let good = recording();
    let at = good.iter().position(|line| line.contains("\"Fetched\"")).unwrap();
    let mut bad = good.clone();
    bad[at] = good[at].replace("10.2.0.0/24", "10.3.0.0/24");
    assert_ne!(bad, good);
    // The filter is told of a few inputs later.
    let Err(ReplayError::Differs { line, recorded, found, outputs }) = replay(&bad) else { panic!("no difference") };
    assert!(line > u64::try_from(at).unwrap() && recorded != found);
    assert!(format!("{outputs:?}").contains("10.3.0.0/24"), "{outputs:?}");
    let mut bad = good.clone();
    bad[2] = good[2].replacen("\"outputs\":\"", "\"outputs\":\"f", 1);
    assert!(matches!(replay(&bad), Err(ReplayError::Differs { line: 3, .. })));
    let mut bad = good;
    bad[0] = bad[0].replacen(&format!("\"recording\":{VERSION}"), &format!("\"recording\":{}", VERSION + 1), 1);
    assert_eq!(replay(&bad).unwrap_err(), ReplayError::Version(VERSION + 1));
}

/// Goal: no damage is a panic. Method: each line with a byte cut off its end, changed or left out, at places all over it.
#[test]
fn damaged_lines_are_errors() {
    let good = recording();
    let mut errors = 0;
    for (at, line) in good.iter().enumerate() {
        for place in (0..line.len()).step_by(line.len() / 60 + 1) {
            let (head, tail) = (&line[..place], &line[place + 1..]);
            let other = if line.as_bytes()[place] == b'9' { "1" } else { "9" };
            for damaged in [head.to_owned(), format!("{head}{tail}"), format!("{head}{other}{tail}")] {
                let mut bad = good.clone();
                bad[at] = damaged;
                errors += usize::from(replay(&bad).is_err());
            }
        }
    }
    assert!(errors > 500, "{errors} errors");
    for identity in ["[]".to_owned(), format!("{:?}", vec![1; 256])] {
        let header =
            good[0].replacen(&format!("{:?}", header().config.gist.peer_identity).replace(' ', ""), &identity, 1);
        assert_ne!(header, good[0]);
        assert!(matches!(Replay::begin(&header), Err(ReplayError::Malformed { line: 1, .. })));
    }
    assert!(matches!(Replay::begin(""), Err(ReplayError::Malformed { line: 1, .. })));
}

fn replay(lines: &[String]) -> Result<crate::recording::Replayed, ReplayError> {
    let mut replay = Replay::begin(&lines[0])?;
    for line in &lines[1..] {
        replay.line(line)?;
    }
    Ok(replay.replayed())
}

/// Records a SETUP that is carried out, and some time after it.
fn recording() -> Vec<String> {
    let mut node = header().node();
    let mut lines = vec![header().to_line()];
    let mut now = START;
    let mut inputs = std::collections::VecDeque::from([
        Input::Restore(Box::default()),
        Input::Addresses(vec![[10, 0, 0, 1].into()]),
        Input::Post(CallId(1), Box::new(setup())),
    ]);
    let mut worker = None;
    while let Some(input) = inputs.pop_front() {
        now = now + Duration::from_millis(3);
        node.handle(now, input.clone());
        let mut digest = OutputDigest::default();
        while let Some(output) = node.poll_output() {
            digest.add(&output);
            let Output::Do(Effect { id, job, .. }) = output else { continue };
            inputs.push_back(Input::Done(id, outcome(&job)));
            let mut tell = |worker: &WorkerId, generation, what| {
                inputs.push_back(Input::News(News { worker: worker.clone(), generation, what }));
            };
            match &job {
                Job::Workers(WorkerJob::Start { worker: started, .. }) => {
                    worker = Some(id);
                    tell(started, id, WorkerNews::Ready { addresses: Vec::new() });
                }
                Job::Workers(WorkerJob::Load(load)) => {
                    tell(&load.worker, worker.unwrap(), WorkerNews::Loaded(load.slot));
                }
                Job::Packages(_)
                | Job::Workers(_)
                | Job::Filters(_)
                | Job::Intercepts(_)
                | Job::Permit(_)
                | Job::Limit(_)
                | Job::Floating(_)
                | Job::Addresses(_)
                | Job::Store(_)
                | Job::Measure
                | Job::ReadMeters
                | Job::Route(_)
                | Job::AskAddress { .. }
                | Job::FindHolder { .. }
                | Job::AskList { .. } => {}
            }
        }
        lines.push(Line { now, input, outputs: digest.to_hex() }.to_line());
    }
    assert!(lines.iter().any(|line| line.contains("Loaded")));
    lines
}

fn header() -> Header {
    let name: netserv_model::NodeId = "n1".parse().unwrap();
    let config = NodeConfig::new(name, vec![1; 16]);
    Header { recording: VERSION, software: "0.1.0".to_owned(), config, policy: policy(2), seed: [7; 32] }
}

fn setup() -> PostRequest {
    let module: ModuleRef = MODULE.parse().unwrap();
    let builder = RequestBuilder::setup(&module, "file:///m.nsm", Digest([1; 32]), Duration::from_secs(60));
    let unsigned = builder.user(&"user0".parse().unwrap()).build(START.wall, Nonce([9; 16])).unwrap();
    let message = unsigned.into_message().as_str().to_owned();
    PostRequest { message, path: None, session: Some(SessionId([4; 16])), timeout_ms: 5 }
}

const KINDS: u8 = 21;

/// Numbers the variants, so that one without an example is found.
fn kind(input: &Input) -> u8 {
    match input {
        Input::Restore(_) => 0,
        Input::Policy(..) => 1,
        Input::Addresses(_) => 2,
        Input::RoutesChanged(_) => 3,
        Input::Datagram(_) => 4,
        Input::Intercepted(..) => 5,
        Input::Icmp(_) => 6,
        Input::Accepted(..) => 7,
        Input::Connected(..) => 8,
        Input::Bytes(..) => 9,
        Input::Closed(..) => 10,
        Input::Post(..) => 11,
        Input::Ask(..) => 12,
        Input::Done(..) => 13,
        Input::News(_) => 14,
        Input::Timeout => 15,
        Input::Stop => 16,
        Input::Ingress(_) => 17,
        Input::Application(..) => 18,
        Input::ApplicationGone(_) => 19,
        Input::Written(..) => 20,
    }
}

fn inputs() -> Vec<Input> {
    let addresses = vec![[10, 0, 0, 1].into(), "fd00::1".parse().unwrap()];
    let datagram = OwnedDatagram {
        interface: InterfaceId(3),
        local: addresses[1],
        source: "[fd00::9]:270".parse().unwrap(),
        destination: addresses[0],
        ttl: 255,
        payload: (0..=255).collect(),
    };
    let ends = Ends { local: addresses[0], peer: "10.0.0.9:40000".parse().unwrap() };
    let error = "a \"quoted\" line\n\u{202e}and \u{0} more".to_owned();
    let path = Some(PathSpec { destination: addresses[1], source: Some(addresses[1]) });
    let mut inputs = vec![
        Input::Restore(Box::new(Stored {
            installed: vec![record()],
            usage: usage(),
            messages: vec![stored_message()],
            lists: vec![StoredList { issuer: "house".to_owned(), text: "a.b.c".to_owned() }],
        })),
        Input::Policy(CallId(5), Box::new(policy(3))),
        Input::Addresses(addresses.clone()),
        Input::Ingress(vec![
            (
                InterfaceId(3),
                vec![Prefix { address: addresses[0], bits: 8 }, Prefix { address: addresses[1], bits: 128 }],
            ),
            (InterfaceId(4), Vec::new()),
        ]),
        Input::RoutesChanged(RouteChange::All),
        Input::RoutesChanged(RouteChange::Toward(vec!["10.0.0.0/8".parse().unwrap(), "fd00::/16".parse().unwrap()])),
        Input::Datagram(Box::new(datagram.clone())),
        Input::Intercepted(Token(u64::MAX), Box::new(datagram)),
        Input::Icmp(Box::new(IcmpError {
            kind: IcmpKind::Port,
            reporter: Some(addresses[1]),
            quoted: (0..=255).collect(),
        })),
        Input::Icmp(Box::new(IcmpError { kind: IcmpKind::TooBig { mtu: 576 }, reporter: None, quoted: vec![1] })),
        Input::Icmp(Box::new(IcmpError { kind: IcmpKind::Prohibited, reporter: None, quoted: Vec::new() })),
        Input::Accepted(Token(0), ends, Channel::Plain),
        Input::Accepted(Token(1), ends, Channel::Tls { peer: None, flows: FlowScope::default() }),
        Input::Connected(
            AssociationId(u64::MAX),
            Channel::Tls {
                peer: Some("n1.example.net".to_owned()),
                flows: FlowScope(vec![FlowRule {
                    allow: false,
                    prefixes: vec![Prefix { address: addresses[0], bits: 8 }],
                }]),
            },
        ),
        Input::Bytes(AssociationId(1), (0..=255).rev().collect()),
        Input::Bytes(AssociationId(1), Vec::new()),
        Input::Written(AssociationId(1), usize::MAX),
        Input::Closed(AssociationId(2), Some(error)),
        Input::Closed(AssociationId(2), None),
        Input::Post(CallId(1), Box::new(setup())),
        Input::Post(CallId(1), Box::new(PostRequest { path, session: None, ..setup() })),
        Input::Ask(CallId(2), What::Counters),
        Input::Ask(CallId(3), What::Usage),
        Input::Timeout,
        Input::Stop,
        Input::ApplicationGone(ClientId(u64::MAX)),
    ];
    inputs.extend(calls().map(|call| Input::Application(ClientId(3), u64::MAX, Box::new(call))));
    inputs.extend(outcomes().into_iter().map(|outcome| Input::Done(EffectId(1 << 63), outcome)));
    inputs.extend(news().into_iter().map(|what| {
        let worker = WorkerId::new("user0".parse().unwrap(), Flavour::Osgi);
        Input::News(News { worker, generation: EffectId(5), what })
    }));
    inputs
}

fn calls() -> [ApplicationCall; 4] {
    let flow = r#"{"source":"fd00::1","destination":"fd00::9","direction":"upstream","protocol":17,"source_port":5}"#;
    let session = "ab".repeat(16);
    [
        r#"{"call":"register","version":1,"nslp_id":32767,"router_alert":65534,"name":"é \"x\""}"#.to_owned(),
        format!(
            r#"{{"call":"send-message","handle":18446744073709551615,"session":"{session}","flow":{flow},"data":"00ff"}}"#
        ),
        format!(r#"{{"call":"set-state-lifetime","session":"{session}","flow":{flow},"lifetime_ms":5}}"#),
        format!(r#"{{"call":"invalidate-routing-state","flow":{flow},"bad":true}}"#),
    ]
    .map(|text| serde_json::from_str(&text).unwrap())
}

fn outcomes() -> Vec<EffectOutcome> {
    let user: UserId = "user0".parse().unwrap();
    let manifest = |text: &str| Box::new(serde_json::from_str::<Manifest>(text).unwrap());
    let server = r#"{"manifest":1,"name":"example.org/s","version":"2.0.0-rc.1+b","description":"é","dependencies":["kv>=1"],
        "server":{"listen":["tcp port 80"],"intercept":["tcp dst 10.2.0.0/16 port 80"],"on-failure":"drop"},
        "properties":{"a":"b\n"},"state-schema":4,"limits":{"memory-bytes":5}}"#;
    let service =
        r#"{"manifest":1,"name":"example.org/v","version":"1.0.0","service":{"chain":["example.org/auth@^1"]}}"#;
    let counts = ModuleCounts {
        worker: WorkerId::new(user.clone(), Flavour::Wasm),
        slot: ModuleSlot(63),
        packets: PacketCounts { seen: u64::MAX, passed: 1, dropped: 2, modified: 3, injected: 4 },
        counters: BTreeMap::from([("seen \"x\"".to_owned(), 5)]),
        server: Some(ServerCounts { connections: 1, bytes_out: u64::MAX, ..ServerCounts::default() }),
    };
    let measured = Measured {
        load: netserv_model::request::NodeLoad { load_permille: 1001, memory_free_kib: 7, ..Default::default() },
        modules: vec![counts],
        addresses: BTreeMap::from([(user, vec!["fd00::5".parse().unwrap()])]),
    };
    let fetched = |manifest, flavour| EffectOutcome::Fetched { manifest, flavour };
    vec![
        EffectOutcome::Done,
        fetched(Box::new(super::manifest()), Flavour::Wasm),
        fetched(manifest(server), Flavour::Osgi),
        fetched(manifest(service), Flavour::Wasm),
        EffectOutcome::Measured(Box::new(measured)),
        EffectOutcome::Routed(Some([10, 0, 0, 1].into())),
        EffectOutcome::Routed(None),
        EffectOutcome::Vouched(Digest([3; 32])),
        EffectOutcome::Held(Holder { prefixes: vec!["10.0.0.0/8".parse().unwrap()], until: UnixTime(9) }),
        EffectOutcome::Listed(None),
        EffectOutcome::Listed(Some(ListAnswer { text: "a.b.c".to_owned(), etag: Some("\"1\"".to_owned()) })),
        EffectOutcome::Exported { digest: Digest([7; 32]), bytes: u64::MAX },
        EffectOutcome::Metered(Box::new(meters())),
        EffectOutcome::Refused(Refusal::new(RefusalKind::NodeFailed, "why\n")),
    ]
}

fn usage() -> Vec<(UsageKey, Used)> {
    let (user, module) = ("user0".parse().unwrap(), module_name());
    let traffic = Traffic { packets_in: u64::MAX, bytes_in: 1, packets_out: 2, bytes_out: 3 };
    let usage =
        Usage { packets: traffic, cpu_ns: u64::MAX, memory_byte_seconds: 4, disk_byte_seconds: 5, network: traffic };
    let used = Used { since: START.wall, until: START.wall, usage };
    vec![(UsageKey::default(), used), (UsageKey::of_user(&user), used), (UsageKey::of_module(&user, &module), used)]
}

fn meters() -> Meters {
    let user: UserId = "user0".parse().unwrap();
    let worker = WorkerId::new(user.clone(), Flavour::Osgi);
    let traffic = Traffic { packets_in: u64::MAX, ..Traffic::default() };
    let (load, module) = (EffectId(7), module_name());
    Meters {
        modules: vec![ModuleMeter { load, worker: worker.clone(), module, packets: traffic, busy: 9, ended: true }],
        workers: vec![WorkerMeter { worker, generation: EffectId(5), cpu_ns: u64::MAX, ended: false }],
        networks: vec![NetworkMeter { user: user.clone(), made: 8, traffic, ended: false }],
        held: BTreeMap::from([(user, Held { memory_bytes: 1, disk_bytes: u64::MAX })]),
    }
}

fn stored_message() -> StoredMessage {
    let message = ControlMessage { topic: "limit".parse().unwrap(), seq: 7, body: b"\xff".to_vec() };
    StoredMessage { user: "jane".parse().unwrap(), module: "example.org/m".parse().unwrap(), message }
}

fn news() -> [WorkerNews; 6] {
    let refusal = Refusal::new(RefusalKind::Stalled, "it stalled");
    [
        WorkerNews::Ready { addresses: Vec::new() },
        WorkerNews::Died { refusal: refusal.clone(), culprit: Some(ModuleSlot(3)) },
        WorkerNews::Died { refusal: refusal.clone(), culprit: None },
        WorkerNews::Loaded(ModuleSlot(0)),
        WorkerNews::Failed { slot: ModuleSlot(63), refusal },
        WorkerNews::Notified {
            slot: ModuleSlot(63),
            message: ModuleMessage { topic: "full".parse().unwrap(), body: b"\xff".to_vec() },
        },
    ]
}

fn record() -> InstalledRecord {
    InstalledRecord {
        user: "user0".parse().unwrap(),
        module: MODULE.parse().unwrap(),
        url: "https://cp.example/m.nsm?a=\"b\"".to_owned(),
        digest: Digest([0xfe; 32]),
        evidence: None,
        suspended: None,
        session: SessionId([1; 16]),
        nonce: None,
        filters: vec!["udp dst 10.2.0.0/24 port 5060".parse().unwrap(), "tcp src fd00::/16".parse().unwrap()],
        intercept: vec!["tcp dst 10.2.0.0/24 port 80".parse().unwrap()],
        properties: BTreeMap::from([("a=b".to_owned(), "c,\"d\"".to_owned())]),
        lease_until: START.wall,
        sessions: Vec::new(),
        wish: Some(Wish { what: Digest([8; 32]), made: START.wall }),
        order: u64::MAX,
        flavour: Some(Flavour::Osgi),
        epoch: u64::MAX,
        floating: vec![[192, 0, 2, 1].into()],
        given_up: vec![GivenUp { address: [192, 0, 2, 2].into(), epoch: u64::MAX }],
        state: Some(Digest([7; 32])),
        moved_in: Some(u64::MAX),
    }
}
