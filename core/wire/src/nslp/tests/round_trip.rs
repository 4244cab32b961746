// SPDX-License-Identifier: Apache-2.0
//! Properties that hold for any input.

use netserv_model::PublicKey;
use netserv_model::evidence::{AddressProof, Checklist};
use netserv_model::floating::GivenUp;
use netserv_model::limits::MESSAGE_BYTES_MAX;
use netserv_model::off_path::{Beside, Off};
use netserv_model::request::{
    Environment, Hop, HopProof, ModuleState, ModuleStatus, NodeLoad, NodeReport, PacketCounts, PathEnd, PolicyReport,
    ReturnStack, ServerCounts, StateSource, Withheld,
};
use netserv_model::target::{Condition, Destinations, Scope, TARGET_NODES_MAX, Target};
use netserv_model::text::one_line;
use netserv_model::{Digest, DomainName, Filter, Flavour, Nonce, Refusal, Signature, UnixTime, WantedFilter};
use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn any_bytes_are_understood_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Payload::parse(&bytes);
        let _ = peek_nonce(&bytes);
    }

    #[test]
    fn a_changed_byte_does_no_harm(which in 0..TEXTS.len(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = TEXTS[which].as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(Payload::Request(_, message)) = Payload::parse(&bytes) {
            prop_assert_eq!(Message::parse(message.as_str().as_bytes()), Ok(*message));
        }
    }

    #[test]
    fn properties_round_trip(
        pairs in prop::collection::btree_map("\\PC{1,8}|[ ,=%\u{0}-\u{1f}]{1,4}", any::<String>(), 0..8),
    ) {
        let text = encode_properties(&pairs);
        prop_assert!(!text.contains(char::is_control));
        prop_assert_eq!(decode_properties(&text), Ok(pairs));
    }

    #[test]
    fn requests_round_trip(
        properties in prop::collection::btree_map("[a-z]{1,8}", any::<String>(), 0..8),
        ports in prop::collection::vec(any::<u16>(), 0..5),
        scope in 0..Scope::ALL.len(), names in prop::collection::vec("[a-z]{1,63}", 0..TARGET_NODES_MAX), load in any::<u32>(),
        ttl in any::<u32>(), created in 0..4_000_000_000_u64, nonce in any::<[u8; 16]>(), dry_run in any::<bool>(),
        epoch in prop_oneof![0..3_u64, any::<u64>()],
    ) {
        let module = "example.org/a/b@0.1.0-rc.1+x".parse().unwrap();
        let ttl = Duration::from_secs(ttl.into());
        let filters: Vec<WantedFilter> =
            ports.iter().map(|port| format!("tcp dst self port {port}").parse().unwrap()).collect();
        let intercept: Vec<Filter> = ports.iter().map(|port| format!("tcp port {port}").parse().unwrap()).collect();
        let mut builder = RequestBuilder::setup(&module, "http://h/p", Digest([4; 32]), ttl);
        builder = builder.user(&"jane".parse().unwrap()).dependency(&"kv>=2".parse().unwrap());
        builder = filters.iter().fold(builder, |builder, filter| builder.filter(filter));
        builder = intercept.iter().fold(builder, |builder, filter| builder.intercept(filter));
        builder = properties.iter().fold(builder, |builder, (key, value)| builder.property(key, value));
        let prepare = dry_run && epoch % 2 == 1;
        let buffer: Option<IpAddr> = (prepare && epoch > 1).then(|| "2001:db8::7".parse().unwrap());
        let builder = match (dry_run, prepare) {
            (_, true) => buffer.iter().fold(builder.prepare(), |builder, address| builder.buffer(*address)),
            (true, false) => builder.dry_run(),
            (false, false) => builder,
        };
        let state = StateSource { url: "http://h/s".to_owned(), digest: Digest([5; 32]) };
        let state = (epoch > 1).then_some(state);
        let floating: Vec<IpAddr> = match epoch > 2 && names.len() == 1 {
            true => vec!["192.0.2.9".parse().unwrap(), "2001:db8::9".parse().unwrap()],
            false => Vec::new(),
        };
        let builder = if epoch > 0 { builder.epoch(epoch) } else { builder };
        let builder = state.iter().fold(builder, |builder, state| builder.state(state)).floating(&floating);
        let nodes = names.iter().map(|name| name.parse().unwrap()).collect();
        let require = vec![Condition::LoadBelow(load), Condition::MemoryFree(u64::from(load) << 7)];
        let domains: Vec<DomainName> = names.iter().take(2).map(|name| format!("d{}", name.len()).parse().unwrap()).collect();
        let target = Target { scope: Scope::ALL[scope], nodes, domains, require };
        let ends = ["203.0.113.9/32", "2001:db8::/32"].map(|end| end.parse().unwrap());
        let destinations = Destinations(ends[..usize::try_from(epoch % 3).unwrap()].to_vec());
        let grants = vec!["a.b.c".to_owned(); usize::from(epoch % 5 == 0) * 2];
        let address_proof = (epoch % 3 == 0).then(|| AddressProof {
            address: "2001:db8::7".parse().unwrap(), key: PublicKey([3; 32]), random: Nonce([2; 16]),
        });
        let checklist = (epoch % 5 == 0).then(|| Checklist::new(vec![7; 1 + usize::try_from(epoch % 4000).unwrap()]).unwrap());
        let builder = builder.target(&target).along(&destinations).grants(&grants).address_proof(address_proof);
        let builder = builder.checklist(checklist.as_ref());
        let created = UnixTime::from_secs(created);
        let unsigned = builder.build(created, Nonce(nonce)).unwrap();
        let signed_bytes = unsigned.canonical_bytes().to_vec();
        let message = unsigned.with_signature(Signature([6; 64])).unwrap();
        let body = Body::from(Setup {
            module, url: "http://h/p".to_owned(), digest: Digest([4; 32]), filters, intercept, properties,
            dependencies: vec!["kv>=2".parse().unwrap()], ttl, epoch, state, floating, prepare, buffer,
        });
        let session = SessionId([8; 16]);
        let user = Some("jane".parse().unwrap());
        let signature = Some(Signature([6; 64]));
        let (nodes, require) = (target.nodes.clone(), target.require.clone());
        let is_bound = !names.is_empty() || epoch % 3 > 0;
        let request = Request { session, user, created, nonce: Nonce(nonce), body, signed_bytes, signature, grants, address_proof, checklist, dry_run, nodes, is_bound, require, passed_by: None, from: None };
        prop_assert_eq!(message.request(session), request);
        prop_assert_eq!((message.target(), message.destinations()), (&target, &destinations));
        prop_assert_eq!(Message::parse(message.as_str().as_bytes()), Ok(message));
    }

    #[test]
    fn responses_round_trip(
        entries in prop::collection::vec(report(), 0..6),
        incomplete in prop::option::of("\\PC{0,300}"),
        end in 0..PathEnd::ALL.len(),
        returned in prop::option::of((prop::collection::vec(report(), 0..3), prop::option::of("\\PC{0,300}"))),
        foreign in 0..6_usize,
        withheld in (0..3_u32, 0..3_u32, 0..9_u64),
    ) {
        let (nodes, refused, lease_s) = withheld;
        let response = Response {
            session: SessionId([1; 16]),
            nonce: Nonce([2; 16]),
            foreign: foreign.min(entries.len()),
            beside: Off {
                missing: nodes,
                nodes: entries.iter().map(|report| Beside { hops: 2, report: report.clone() }).collect(),
            },
            withheld: Withheld { nodes, refused, lease_s },
            entries,
            end: incomplete.is_none().then_some(PathEnd::ALL[end]),
            incomplete: incomplete.map(|detail| Refusal::new(RefusalKind::NoNode, detail)),
            returned: returned.map(|(nodes, incomplete)| ReturnStack {
                nodes,
                end: incomplete.is_none().then_some(PathEnd::ALL[end]),
                incomplete: incomplete.map(|detail| Refusal::new(RefusalKind::Timeout, detail)),
            }),
            unknown: vec![("x-y".to_owned(), "kept".to_owned())],
        };
        let text = response.emit();
        prop_assert!(text.len() <= MESSAGE_BYTES_MAX);
        prop_assert_eq!(Response::parse(text.as_bytes()), Ok(response));
    }

    #[test]
    fn parts_round_trip(text in "[a-z\n]{0,40}", times in 1..1500_usize) {
        let mut text = text.repeat(times);
        text.truncate(MESSAGE_BYTES_MAX);
        let pieces = parts(&text, Nonce([3; 16]));
        let mut joined = Vec::new();
        for (at, piece) in pieces.iter().enumerate() {
            if pieces.len() == 1 {
                joined.extend(piece);
            } else {
                let part = Part::parse(piece).unwrap();
                prop_assert_eq!((part.index, part.count, part.nonce), (at + 1, pieces.len(), Nonce([3; 16])));
                joined.extend(part.bytes);
            }
        }
        let padding = joined.split_off(text.len());
        prop_assert!(padding.len() < 4 && padding.iter().all(|&byte| byte == b'\n'));
        prop_assert_eq!(joined, text.into_bytes());
    }
}

fn report() -> impl Strategy<Value = NodeReport> {
    let outcome = prop_oneof![
        any::<u64>().prop_map(|lease_s| Outcome::Installed { lease_s }),
        any::<u64>().prop_map(|lease_s| Outcome::Replaced { lease_s }),
        Just(Outcome::Removed),
        Just(Outcome::Told),
        any::<u64>().prop_map(|bytes| Outcome::Exported { digest: Digest([7; 32]), bytes }),
        Just(Outcome::Probed),
        "\\PC{0,20}".prop_map(|reason| Outcome::NotTargeted { reason: one_line(&reason) }),
        "\\PC{0,20}".prop_map(|action| Outcome::WouldDo { action: one_line(&action) }),
        "\\PC{0,400}".prop_map(|detail| Outcome::Refused(Refusal::new(RefusalKind::BadTtl, detail))),
    ];
    let load = any::<[u32; 4]>().prop_map(|[containers, modules, packets, load_permille]| NodeLoad {
        containers,
        modules,
        packets: packets.into(),
        load_permille,
        memory_free_kib: 7,
        processors: modules,
        maintenance: packets % 2 == 1,
    });
    let module = prop::collection::btree_map("\\PC{0,12}".prop_map(|name| one_line(&name)), any::<u64>(), 0..40)
        .prop_map(|counters| ModuleStatus {
            user: "jane".parse().unwrap(),
            module: "example.org/x@1.0.0".parse().unwrap(),
            digest: Digest([3; 32]),
            flavour: Some(Flavour::Osgi),
            state: ModuleState::Running,
            epoch: 7,
            lease_s: 9,
            held_by: 0,
            sessions: Vec::new(),
            filters: vec!["udp port 5060".parse().unwrap()],
            listen: vec!["tcp port 80".parse().unwrap()],
            intercept: vec!["tcp dst 10.0.0.0/8 port 80".parse().unwrap()],
            chain: vec!["example.org/y@1.0.0".parse().unwrap()],
            addresses: vec!["192.0.2.7".parse().unwrap()],
            floating: vec!["2001:db8::7".parse().unwrap()],
            given_up: vec![GivenUp { address: "192.0.2.9".parse().unwrap(), epoch: 3 }],
            restarts: 1,
            last_failure: None,
            packets: PacketCounts::default(),
            server: Some(ServerCounts { requests: 5, ..ServerCounts::default() }),
            counters,
        });
    let policy = Just(PolicyReport {
        prefixes: vec!["10.0.0.0/8".to_owned()],
        ttl_s_max: 1,
        modules_max: 2,
        memory_bytes_max: 3,
        ceilings: [("timers".to_owned(), 64)].into(),
        listen: vec!["tcp port 80".to_owned()],
        price_per_hour: Some(4),
        ..PolicyReport::default()
    });
    let modules = prop::collection::vec(module, 0..3);
    let proof = prop::option::of(prop::sample::select(&HopProof::ALL[..]));
    let hop = (any::<[Option<u8>; 2]>(), proof, "\\PC{0,30}").prop_map(|([rtt, ip_hops], proof, name)| Hop {
        rtt_us: rtt.map(u64::from),
        ip_hops,
        proof,
        tls_name: (proof == Some(HopProof::Tls)).then(|| one_line(&name)),
    });
    let hop = prop::option::of(hop);
    (outcome, prop::option::of(load), modules, prop::option::of(policy), any::<[u8; 16]>(), any::<u64>(), hop).prop_map(
        |(outcome, load, modules, policy, address, took_us, hop)| NodeReport {
            node: "node-1.example".parse().unwrap(),
            address: address.into(),
            outcome,
            took_us,
            hop,
            load,
            modules,
            blocks: vec!["kv>=1".parse().unwrap()],
            environments: vec![Environment { flavour: Flavour::Osgi, engine: "Felix on a JVM".to_owned() }],
            policy,
        },
    )
}
