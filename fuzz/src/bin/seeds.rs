// SPDX-License-Identifier: Apache-2.0
//! Writes the seeds of the corpus: `cargo run -p netserv-fuzz --bin seeds`.
//!
//! Seeds are golden bytes out of `vectors/`, messages that are wrong in one way each, and scripts for the targets that
//! play one. What a fuzzer found is in the corpus beside them, under names that libFuzzer gave.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use ed25519_dalek::SigningKey;
use netserv_authority::digest_of_grant;
use netserv_authority::grant::Grant;
use netserv_authority::revocations::Revocations;
use netserv_fuzz::checklist;
use netserv_model::effect::ModuleSlot;
use netserv_model::{Nonce, PublicKey, Refusal, RefusalKind, SessionId};
use netserv_rpki_tree::{Checklist, Tree};
use netserv_wire::container::frames::{FromWorker, LogLevel, PartKind, StorageFailures, ToWorker};
use netserv_wire::container::media::{
    Corner, MediaFormat, MediaLayer, MediaOutcome, MediaOverlay, MediaPart, MediaSegments, MediaSettings, MediaSource,
    MediaTask,
};
use netserv_wire::gist::{
    AdditionalInfo, Cookie, ErrorCode, ErrorObject, LooseEnd, Message, MessageType, Mri, NatTraversal, Nli,
    PathCoupled, ProtocolOption, RawObject, StackConfiguration, StackProposal, strip_magic,
};
use netserv_wire::ip::build;
use netserv_wire::nslp::Part;

type Seeds = Vec<(String, Vec<u8>)>;

fn main() -> std::io::Result<()> {
    let messages: Seeds = golden_messages().into_iter().chain(built_messages()).collect();
    write("gist_stream", &streams(&messages))?;
    let malformed = messages.iter().flat_map(|(name, bytes)| malformed(name, bytes));
    let all = messages.iter().cloned().chain(malformed).collect();
    write("gist_message", &all)?;
    write("gist_engine", &engine_scripts())?;
    write("node", &node_scripts())?;
    write("ip_view", &packets())?;
    write("nslp_text", &texts())?;
    write("sip_text", &sip_messages()?)?;
    write("container_frames", &frames())?;
    write("packet_ring", &ring_scripts())?;
    let frames = link_frames();
    write("ethernet_frame", &frames)?;
    write("xdp_classify", &classified(&frames))?;
    write("xdp_forward", &forwarded(&frames))?;
    write("filter_index", &filter_scripts())?;
    write("grant_chain", &chains())?;
    write("revocation_list", &revocation_lists())?;
    checklists()
}

/// Claims of chains, which their target signs, and a text that is signed.
fn chains() -> Seeds {
    let public = |place: u8| PublicKey(SigningKey::from_bytes(&[place; 32]).verifying_key().to_bytes());
    let grant = |place: u8, exp: u64, prefix: &str, more: &str| {
        let (iss, sub) = (public(place), public(place + 1));
        format!(r#"{{"iss":"{iss}","sub":"{sub}","nbf":1800000000,"exp":{exp},"prefixes":["{prefix}"]{more}}}"#)
    };
    let first = grant(0, 1_900_000_000, "10.0.0.0/8", r#","delegations":3,"modules-max":7"#);
    let second = grant(1, 1_890_000_000, "10.2.0.0/16", r#","delegations":2,"ports":["80","443-444"]"#);
    let third = grant(2, 1_890_000_000, "10.2.3.0/24", r#","delegations":1,"ports":["443"]"#);
    let fourth = grant(3, 1_870_000_000, "10.2.3.4/32", r#","ports":["443"],"modules-max":1"#);
    let text = Grant {
        iss: public(0),
        sub: public(1),
        nbf: 1,
        exp: 2,
        prefixes: vec!["2001:db8::/32".parse().expect("a prefix")],
        ports: Vec::new(),
        modules_max: None,
        delegations: 0,
    };
    let four = [first.as_str(), &second, &third, &fourth];
    vec![
        ("one".to_owned(), first.clone().into_bytes()),
        ("four".to_owned(), four.join("\n").into_bytes()),
        ("wider".to_owned(), [first.as_str(), &second.replace("10.2.0.0/16", "0.0.0.0/0")].join("\n").into_bytes()),
        ("unknown-claim".to_owned(), first.replace("\"nbf\"", "\"not\\nknown\":1,\"nbf\"").into_bytes()),
        ("text".to_owned(), text.sign(&SigningKey::from_bytes(&[0; 32])).into_bytes()),
    ]
}

fn revocation_lists() -> Seeds {
    let key = SigningKey::from_bytes(&[0; 32]);
    let (iss, other) = (PublicKey(key.verifying_key().to_bytes()), PublicKey([9; 32]));
    let claims = format!(
        r#"{{"iss":"{iss}","iat":1800000000,"exp":1800086400,"number":4,"grants":["{}"],"keys":["{other}"]}}"#,
        digest_of_grant("a grant")
    );
    let list = Revocations { iss, iat: 1, exp: 2, number: u64::MAX, grants: BTreeSet::new(), keys: BTreeSet::new() };
    vec![
        ("claims".to_owned(), claims.clone().into_bytes()),
        ("own-key".to_owned(), claims.replace(&other.to_string(), &iss.to_string()).into_bytes()),
        ("text".to_owned(), list.sign(&key).into_bytes()),
    ]
}

/// A cache, and checklists of its holder. Their keys are made anew each time, so they stay if they are there.
fn checklists() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(checklist::CACHE);
    if folder.exists() {
        return Ok(());
    }
    let nets = |texts: &[&str]| texts.iter().map(|net| net.parse().expect("a prefix")).collect::<Vec<_>>();
    let mut tree = Tree::new(checklist::CHECKED_AT);
    let certificate = tree.certificate(&nets(&checklist::HELD));
    let holder = tree.authority(0, "holder", &certificate);
    let good = tree.checklist(&nets(&["10.1.2.0/24", "2001:db8:1:2::/64"]), checklist::LISTED);
    let beyond = tree.checklist(&nets(&["10.2.0.0/16"]), checklist::LISTED);
    let published = Checklist { is_published: true, ..good.clone() };
    let seeds = [("good", &good), ("beyond", &beyond), ("published", &published)];
    let seeds = seeds.map(|(name, checklist)| (name.to_owned(), tree.sign(holder, checklist))).to_vec();
    netserv_rpki_tree::write(&tree.publish(), &folder)?;
    fs::write(folder.join("lab.tal"), tree.locator())?;
    write("checklist", &seeds)
}

fn write(target: &str, seeds: &Seeds) -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    seeds.iter().try_for_each(|(name, bytes)| fs::write(folder.join(name), bytes))
}

/// The vectors of both parsers.
fn sip_messages() -> std::io::Result<Seeds> {
    let mut seeds = Seeds::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors/sip"))? {
        let path = entry?.path();
        if let (Some("sip"), Some(name)) = (path.extension().and_then(|it| it.to_str()), path.file_stem()) {
            seeds.push((name.to_string_lossy().into_owned(), fs::read(&path)?));
        }
    }
    Ok(seeds)
}

fn named(seeds: &[(&str, &[u8])]) -> Seeds {
    seeds.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect()
}

const LISTINGS: [(&str, &str); 3] = [
    ("dmode-v4", include_str!("../../../vectors/gist/gist-dmode-v4.txt")),
    ("dmode-v6", include_str!("../../../vectors/gist/gist-dmode-v6.txt")),
    ("tcp-v4", include_str!("../../../vectors/gist/gist-tcp-v4.txt")),
];

const CAPTURES: [(&str, &[u8]); 3] = [
    ("dmode-v4", include_bytes!("../../../vectors/gist/gist-dmode-v4.pcap")),
    ("dmode-v6", include_bytes!("../../../vectors/gist/gist-dmode-v6.pcap")),
    ("tcp-v4", include_bytes!("../../../vectors/gist/gist-tcp-v4.pcap")),
];

fn golden_messages() -> Seeds {
    let mut seeds = Seeds::new();
    for (name, listing) in LISTINGS {
        let messages = listing.lines().filter_map(|line| line.trim().strip_prefix("hex=")).map(from_hex);
        for (number, bytes) in messages.enumerate() {
            let message = strip_magic(&bytes).unwrap_or(&bytes).to_vec();
            seeds.push((format!("golden-{name}-{number}"), message));
        }
    }
    seeds
}

/// Messages with what the captures lack.
fn built_messages() -> Seeds {
    let address = "10.1.0.1".parse().expect("an address");
    let flow = PathCoupled::new(address, address).expect("one version").with_ports(17, Some(0), Some(5060));
    let v6 = "fd00::1".parse().expect("an address");
    let labelled = PathCoupled::new(v6, v6).expect("one version").with_flow_label(9).with_spi(50, 7).with_dscp(46);
    let mri = Mri::PathCoupled(flow);
    let nli = Nli { peer_identity: vec![1; 5], ip_ttl: 9, validity: Duration::from_secs(30), address };
    let nat_traversal =
        NatTraversal { mri: mri.clone(), translated: vec![0, 2, 4], nats: vec![b"nat".to_vec(), Vec::new()] };
    let mut object = ErrorObject::new(ErrorCode::InvalidCookie, [1, 1, 0, 26, 0, 33, 2, 0x80], true, false);
    object.session = Some(SessionId([7; 16]));
    object.mri = Some(mri.clone());
    object.infos = vec![
        AdditionalInfo::MessageLength(9),
        AdditionalInfo::Mtu(1400),
        AdditionalInfo::ObjectType(5),
        AdditionalInfo::invalid_object(&[0, 5, 0, 1, 9, 9, 9, 9], 4),
    ];
    object.comment = Some("no such cookie".to_owned());
    let error = Message {
        nat_traversal: Some(nat_traversal.clone()),
        nli: Some(nli.clone()),
        error: Some(object),
        ..Message::new(MessageType::Error, 0)
    };
    let query = Message {
        nat_traversal: Some(nat_traversal),
        mri: Some(mri),
        session: Some(SessionId([3; 16])),
        nli: Some(nli),
        query_cookie: Some(Cookie(vec![5; 8])),
        stack_proposal: Some(StackProposal { profiles: vec![vec![1], vec![2, 1]] }),
        stack_configuration: Some(StackConfiguration {
            hold_time: Duration::from_secs(30),
            options: vec![ProtocolOption { protocol: 1, profile: 0, port: Some(30000), forbidden: true }],
        }),
        unknown: vec![RawObject { kind: 0x7D0, value: vec![1; 4] }],
        ..Message::new(MessageType::Query, 0x7FC0)
    };
    let data = Message {
        mri: Some(Mri::PathCoupled(labelled)),
        session: Some(SessionId([3; 16])),
        nslp_data: Some(b"data".to_vec()),
        ..Message::new(MessageType::Data, 0x7FC0)
    };
    let loose_end = LooseEnd::new(v6, v6, netserv_wire::gist::Direction::Upstream).expect("one version");
    let loose = Message { mri: Some(Mri::LooseEnd(loose_end)), ..data.clone() };
    let hello = Message { reply_wanted: true, hello_id: Some(77), ..Message::new(MessageType::MaHello, 0) };
    let all = [("error", error), ("query", query), ("data", data), ("loose-end", loose), ("hello", hello)];
    all.into_iter().map(|(name, message)| (format!("built-{name}"), message.emit())).collect()
}

/// Forms of a message that are wrong in one way each.
fn malformed(name: &str, bytes: &[u8]) -> Seeds {
    let changed = |at: usize, value: u8| {
        let mut copy = bytes.to_vec();
        copy[at] = value;
        copy
    };
    if !name.starts_with("built-") {
        return Seeds::new();
    }
    let forms = [
        ("version", changed(0, 2)),
        ("short", bytes[..bytes.len() - 4].to_vec()),
        ("long", [bytes, &[0; 4]].concat()),
        ("flags", changed(7, 0xFF)),
        ("unknown-object", changed(9, 0x7F)),
        ("reserved-object", changed(8, 0xC0)),
        ("object-length", changed(11, bytes[11] + 1)),
        ("no-object", changed(3, 0)[..8].to_vec()),
    ];
    forms.into_iter().map(|(form, bytes)| (format!("{name}-{form}"), bytes)).collect()
}

fn streams(messages: &Seeds) -> Seeds {
    let of = |prefix: &str| -> Vec<u8> {
        messages.iter().filter(|(name, _)| name.starts_with(prefix)).flat_map(|(_, bytes)| bytes.clone()).collect()
    };
    let damaged = [&of("built-hello")[..], &[9; 8], &of("built-hello")].concat();
    let faulty = [&of("built-hello")[..], &malformed("built-x", &of("built-data"))[4].1, &of("built-hello")].concat();
    let seeds = [
        ("one-by-one", 1, of("golden-tcp-v4")),
        ("sevens", 7, of("built-")),
        ("at-once", 255, of("golden-dmode-v6")),
        ("broken", 3, damaged),
        ("faulty", 9, faulty),
    ];
    seeds.into_iter().map(|(name, size, bytes)| (name.to_owned(), [&[size][..], &bytes].concat())).collect()
}

/// The steps are those of `gist_engine`: 0–2 deliver, 3 lose, 4 repeat, 5 damage, 6–8 connection, 9 break, 10–12 send,
/// 13 time, 14 forge, 15 rest.
fn engine_scripts() -> Seeds {
    let small = [10, 20, 50, 0];
    let big = [11, 90, 50, 0];
    let handshake = [0, 0, 0, 0, 0, 0, 0, 0];
    let connect = [6; 8];
    let answer = [12, 9, 0, 50, 0, 0, 0];
    named(&[
        ("datagrams", &[&small[..], &handshake, &answer, &handshake, &small, &handshake].concat()),
        ("connection", &[&big[..], &handshake, &connect, &answer, &connect, &big, &connect].concat()),
        ("both-sessions", &[&big[..], &[11, 200, 50, 1], &handshake, &handshake, &connect, &connect].concat()),
        ("retries", &[&small[..], &[3, 0, 13, 5, 3, 0, 13, 10, 0, 0, 0, 0, 13, 20, 0, 0]].concat()),
        ("lost-confirm", &[&small[..], &[0, 0, 0, 0, 3, 0, 10, 9, 50, 0, 0, 0, 0, 0, 0, 0]].concat()),
        ("repeated", &[&small[..], &[4, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat()),
        ("damaged", &[&small[..], &[5, 0, 20, 1, 0, 0, 5, 0, 90, 7, 0, 0, 13, 6, 0, 0, 0, 0, 0, 0]].concat()),
        ("broken", &[&big[..], &handshake, &[6, 6, 9, 0], &big, &handshake, &connect, &[9, 0, 13, 255]].concat()),
        ("refresh", &[&big[..], &handshake, &connect, &[13, 200, 13, 50], &handshake, &connect, &[13, 255]].concat()),
        ("given-up", &[&big[..], &[15, 1, 0, 0, 0, 15, 0, 0, 15, 2, 0, 1, 13, 255, 13, 255]].concat()),
        (
            "explicit",
            &[&small[..], &handshake, &answer, &handshake, &[10, 9, 51, 0, 12, 9, 0, 51, 0], &handshake].concat(),
        ),
        (
            "forged",
            &[&[14, 1, 8, 1, 1, 0, 0, 0, 33, 0x80, 0xC0, 0, 0][..], &[15, 3, 0, 1, 8, 1, 1, 0, 2, 0, 0, 5, 0x80]]
                .concat(),
        ),
    ])
}

/// The steps are those of `node`: 0–5 datagrams, 6–7 connections, 8 break, 9 post, 10–11 answer well, 12 answer badly,
/// 13 time, 14 news, 15 rest.
fn node_scripts() -> Seeds {
    // The first node: a SETUP, its package, the worker's start, ready, the load, loaded, the filters, the store.
    let answer = [10, 0];
    let (ready, loaded) = ([14, 0, 0, 0], [14, 6, 0, 0]);
    let installs = [&answer[..], &answer, &ready, &answer, &loaded, &answer, &answer].concat();
    let again = [&answer[..], &answer, &loaded, &answer, &answer].concat();
    let setup = |which: u8| [9, 0, which];
    let alone = [&setup(0)[..], &installs].concat();
    let path = [9, 0x30, 0];
    let there = [10, 1];
    let beyond = [&there[..], &there, &[14, 1, 0, 0], &there, &[14, 7, 0, 0], &there, &there, &there].concat();
    let handshake = [0, 0, 0, 0, 0, 0, 0, 0, 6, 6, 6, 6];
    let end = [15, 3, 10, 1, 10, 1, 6, 6, 6, 6];
    named(&[
        ("alone", &alone),
        ("removed", &[&alone[..], &[9, 4, 0], &answer, &answer, &answer, &answer].concat()),
        ("replaced", &[&alone[..], &setup(4), &again, &answer, &answer].concat()),
        ("service", &[&alone[..], &setup(1), &again, &setup(3), &again, &answer, &answer].concat()),
        ("intercepts", &[&setup(2)[..], &installs, &answer].concat()),
        ("path", &[&path[..], &answer, &installs, &handshake, &beyond, &end].concat()),
        ("path-lost", &[&path[..], &[3, 0, 13, 6, 3, 0, 13, 20], &answer, &installs, &[13, 255, 13, 255]].concat()),
        ("died", &[&alone[..], &[14, 14, 0, 0, 13, 5], &installs, &[14, 30, 0, 0, 13, 30], &installs].concat()),
        ("trapped", &[&alone[..], &[14, 12, 0, 0, 13, 1], &again, &[14, 12, 0, 0, 13, 30], &again].concat()),
        ("bad-outcomes", &[&setup(0)[..], &[12, 0, 2, 12, 0, 5, 12, 0, 0], &setup(1), &[12, 0, 3, 12, 0, 4]].concat()),
        ("measured", &[&[15, 0, 9, 6, 0, 15, 0][..], &answer, &answer, &[12, 0, 0]].concat()),
        ("revoked", &[&alone[..], &[15, 6, 1, 0], &answer, &answer, &answer].concat()),
        ("strays", &[&setup(0)[..], &[15, 8, 1, 0, 2, 15, 8, 0, 1, 2, 15, 10, 1, 3, 1, 2, 3, 15, 12, 1]].concat()),
    ])
}

/// Returns the frames of a capture.
fn captured(capture: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = &capture[24..];
    std::iter::from_fn(move || {
        let [_, _, _, _, _, _, _, _, a, b, c, d, _, _, _, _, after @ ..] = rest else { return None };
        let (frame, later) = after.split_at(u32::from_le_bytes([*a, *b, *c, *d]) as usize);
        rest = later;
        Some(frame)
    })
}

fn packets() -> Seeds {
    let mut seeds = Seeds::new();
    for (name, capture) in CAPTURES {
        for (number, frame) in captured(capture).enumerate() {
            if matches!(frame[12..14], [0x08, 0x00] | [0x86, 0xDD]) {
                seeds.push((format!("golden-{name}-{number}"), frame[14..].to_vec()));
            }
        }
    }
    let source = "[fd00::1]:4000".parse().expect("an address");
    let v6 = build::udp(source, source, 64, b"hello").expect("a packet");
    let chain = [60, 0, 5, 2, 0, 36, 1, 0, 43, 0, 1, 4, 0, 0, 0, 0, 44, 2, 4, 1, 0, 0, 0, 0];
    let (segment, rest) = ([0xFD; 16], [51, 0, 0, 0, 0, 0, 0, 9, 17, 4, 0, 0]);
    let mut chained = [&v6[..40], &chain, &segment, &rest, &[0; 20], &v6[40..]].concat();
    chained[5] += u8::try_from(chained.len() - v6.len()).expect("a short chain");
    chained[6] = 0;
    let source = "10.0.0.1:4000".parse().expect("an address");
    let v4 = build::udp(source, source, 64, b"hello").expect("a packet");
    let ip = |protocol| build::ip(source.ip(), source.ip(), protocol, 64, &[7; 24]).expect("a packet");
    let mut fragment = v4.clone();
    fragment[6] = 0x20;
    seeds.extend(named(&[
        ("udp-v4", &v4),
        ("udp-v6", &v6),
        ("chain-v6", &chained),
        ("fragment-v4", &fragment),
        ("cut-v4", &v4[..30]),
        ("padded-v4", &[&v4[..], &[0; 9]].concat()),
        ("icmp-v4", &ip(1)),
        ("tcp-v4", &ip(6)),
    ]));
    seeds
}

/// Frames as they come in: those of the captures, and one for each thing that can be odd about a frame.
fn link_frames() -> Seeds {
    let mut seeds = Seeds::new();
    for (name, capture) in CAPTURES {
        seeds.extend(captured(capture).enumerate().map(|(at, frame)| (format!("golden-{name}-{at}"), frame.to_vec())));
    }
    let frame = |head: &[u8], packet: &[u8]| [&[2, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2][..], head, packet].concat();
    for (name, packet) in packets().into_iter().filter(|(name, _)| !name.starts_with("golden")) {
        let kind: &[u8] = if packet[0] >> 4 == 4 { &[8, 0] } else { &[0x86, 0xdd] };
        seeds.push((name, frame(kind, &packet)));
    }
    let v4 = udp_packet("10.0.0.9:4000", "10.0.0.5:5060");
    let v6 = udp_packet("[fd00::9]:4000", "[fd00::5]:5060");
    let mut jumbo = v6.clone();
    jumbo[4..7].fill(0);
    let mut without_checksum = v4.clone();
    // The sum of the pseudo header alone, as a sender leaves it to its card.
    without_checksum[26..28].copy_from_slice(&(0x0a00_u16 * 2 + 9 + 5 + 17 + 8 + 5).to_be_bytes());
    let (mut later, mut later_v6) = (v4.clone(), [&v6[..40], &[17, 0, 0, 8, 0, 0, 0, 1], &v6[40..]].concat());
    later[7] = 9;
    later_v6[5] += 8;
    later_v6[6] = 44;
    let own = udp_packet("10.0.0.9:4000", "10.0.0.1:5060");
    let signaling = udp_packet("10.0.0.9:4000", "10.0.0.5:270");
    let kinds: [(&str, &[u8], &[u8]); 13] = [
        ("plain-v4", &[8, 0], &v4),
        ("plain-v6", &[0x86, 0xdd], &v6),
        ("vlan", &[0x81, 0, 0xe0, 5, 8, 0], &v4),
        ("vlan-priority", &[0x81, 0, 0x20, 0, 0x86, 0xdd], &v6),
        ("qinq", &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0], &v4),
        ("two-tags", &[0x81, 0, 0, 5, 0x81, 0, 0, 6, 8, 0], &v4),
        ("other-version", &[0x86, 0xdd], &v4),
        ("jumbogram", &[0x86, 0xdd], &jumbo),
        ("later-v4", &[8, 0], &later),
        ("later-v6", &[0x86, 0xdd], &later_v6),
        ("no-checksum", &[8, 0], &without_checksum),
        ("own", &[8, 0], &own),
        ("signaling", &[8, 0], &signaling),
    ];
    seeds.extend(kinds.iter().map(|(name, head, packet)| ((*name).to_owned(), frame(head, packet))));
    let plain = frame(&[8, 0], &v4);
    seeds.extend([13, 14, 17, 33, 34, 41].map(|length| (format!("cut-at-{length}"), plain[..length].to_vec())));
    seeds
}

/// One filter that wants all, several, and none, in front of frames. `read_filters` and `read_frame` read them.
fn classified(frames: &Seeds) -> Seeds {
    // A filter is a step, its parts, and what they ask for.
    let all = [1, 1, 0];
    let some = [
        &[5][..],
        &[1, 2 | 8 | 64, 0, 0, 8, 0x13, 0xc4, 0],
        &[1, 1 | 16, 0, 5, 24],
        &[1, 4 | 2 | 32, 0x0f, 0xa0, 80],
        &[0, 3],
        &[1, 4 | 16, 0, 5, 100],
    ];
    let filters: [(&str, Vec<u8>); 3] = [("all", all.to_vec()), ("some", some.concat()), ("none", vec![0])];
    let mut seeds = Seeds::new();
    for (name, frame) in frames {
        let count = if name.starts_with("plain") { 3 } else { 2 };
        for (kind, filters) in &filters[..count] {
            // Behind a station that is put in front, or behind its own.
            let rest: &[u8] = if frame.len() < 14 { frame } else { &frame[12..] };
            let how = if name.starts_with("vlan") { 1 } else { 2 };
            seeds.push((format!("{name}-{kind}"), [&filters[..], &[how], rest].concat()));
        }
    }
    seeds.push(("long-all".to_owned(), [&all[..], &[0x80 | 2 | 8 << 2], &frames[0].1[12..]].concat()));
    seeds
}

/// The options of `xdp_forward`, and no filter, in front of each frame.
fn forwarded(frames: &Seeds) -> Seeds {
    let mut seeds = Seeds::new();
    for (name, frame) in frames.iter().filter(|(_, frame)| frame.len() >= 14) {
        for (kind, options) in
            [("out", 3), ("virtual", 7), ("checked", 3 | 8), ("no-way", 3 | 0x20), ("back", 3 | 0x40)]
        {
            seeds.push((format!("{name}-{kind}"), [&[options, 0, 2][..], &frame[12..]].concat()));
        }
    }
    seeds
}

/// The steps are those of `filter_index`: 0 remove, 1 insert, 2–3 look up.
fn filter_scripts() -> Seeds {
    let insert = [1, 2 | 8 | 64, 0, 0, 8, 0x13, 0xc4, 0];
    let range = [5, 2 | 32 | 64, 0, 9, 0xfa, 0x13, 0xc4, 33];
    let v6 = [9, 4 | 16, 1, 2, 120];
    let look = [2, 2 | 2 << 3, 0, 9, 0, 5, 0x0f, 0xa0, 0x13, 0xc4];
    let look_v6 = [2, 1, 1, 7, 1, 9];
    named(&[
        ("one", &[&[0, 1][..], &insert, &look].concat()),
        ("several", &[&[0, 2][..], &insert, &range, &v6, &look, &look_v6].concat()),
        ("removed", &[&[0, 3][..], &insert, &range, &look, &[0], &look, &[0], &look].concat()),
        ("replaced", &[&[0, 4][..], &insert, &v6, &insert, &look, &[1, 0], &look, &look_v6].concat()),
    ])
}

fn udp_packet(source: &str, destination: &str) -> Vec<u8> {
    let socket = |text: &str| text.parse().expect("an address");
    build::udp(socket(source), socket(destination), 64, b"hello").expect("a packet")
}

fn texts() -> Seeds {
    let tell = include_str!("../../../vectors/nslp/tell.txt");
    let long =
        tell.replace("limit", &"~".repeat(64)).replace("cmF0ZT0xMDAKAP8=", "").replace(&u64::MAX.to_string(), "0");
    let part = Part { index: 2, count: 3, nonce: Nonce([5; 16]), bytes: b"a part".to_vec() };
    named(&[
        ("setup", include_bytes!("../../../vectors/nslp/setup.txt")),
        ("setup-paper", include_bytes!("../../../vectors/nslp/setup-paper.txt")),
        ("remove", include_bytes!("../../../vectors/nslp/remove.txt")),
        ("tell", tell.as_bytes()),
        ("tell-longest-topic", long.as_bytes()),
        ("tell-two-bodies", tell.replace("node-id: r2", "body: AA==").as_bytes()),
        ("tell-bad-body", tell.replace("AP8=", "AP8").as_bytes()),
        ("tell-large-seq", tell.replace("615", "616").as_bytes()),
        ("probe", include_bytes!("../../../vectors/nslp/probe.txt")),
        ("response", include_bytes!("../../../vectors/nslp/response.txt")),
        ("notify", include_bytes!("../../../vectors/nslp/notify.txt")),
        ("notify-message", include_bytes!("../../../vectors/nslp/notify-message.txt")),
        ("tear", include_bytes!("../../../vectors/nslp/tear.txt")),
        ("probe-edge", include_bytes!("../../../vectors/nslp/probe-edge.txt")),
        ("hop", include_bytes!("../../../vectors/nslp/hop.txt")),
        ("part", &part.emit()),
        ("properties", b"a=1,b=2\\,3"),
        ("no-end", b"PROBE nodes NETSERV/1\nnonce: 05"),
    ])
}

fn media_task() -> FromWorker {
    let overlay = MediaOverlay { layer: MediaLayer::Text("hello".to_owned()), corner: Corner::TopRight };
    let large = MediaSettings { overlay: Some(overlay), ..MediaSettings::new(MediaFormat::Webm) };
    let segments = MediaSegments::Every(2_000);
    let small = MediaSettings { width: 320, grey: true, segments, ..MediaSettings::new(MediaFormat::Mpegts) };
    let part = MediaPart { start_ms: 500, ..MediaPart::default() };
    let task = MediaTask::Transcode { source: MediaSource::Any, part, outputs: vec![large, small] };
    FromWorker::Media { slot: ModuleSlot(1), job: 7, task }
}

fn frames() -> Seeds {
    let refusal = Refusal::new(RefusalKind::Trapped, "out of bounds");
    let log = FromWorker::Log { slot: Some(ModuleSlot(3)), level: LogLevel::Warn, text: "odd".to_owned() };
    let counters = BTreeMap::from([("seen".to_owned(), 5)]);
    let from = [
        ("ready", FromWorker::Ready { abi: 1, engine: "wasm".to_owned() }),
        ("loaded", FromWorker::Loaded { slot: ModuleSlot(63) }),
        ("failed", FromWorker::Failed { slot: ModuleSlot(1), refusal }),
        ("log", log),
        ("stats", FromWorker::Stats { slot: ModuleSlot(0), packets: Default::default(), counters, server: None }),
        ("stats-done", FromWorker::StatsDone { storage: StorageFailures::default() }),
        ("sockets-wanted", FromWorker::Sockets { count: 64, v6: true }),
        ("media-wanted", media_task()),
        ("media-cancel", FromWorker::MediaCancel { job: 7 }),
    ];
    let load = ToWorker::Load {
        slot: ModuleSlot(3),
        module: "example.org/net-monitor@1.2.0".parse().expect("a module"),
        properties: BTreeMap::from([("sample".to_owned(), "100".to_owned())]),
        limits: Default::default(),
        state_schema: 1,
        parts: vec![PartKind::Packet],
        server: None,
        blocks: BTreeSet::new(),
        parallel: false,
    };
    let to = [
        ("load", load),
        ("unload", ToWorker::Unload { slot: ModuleSlot(64) }),
        ("stats-wanted", ToWorker::Stats),
        ("sockets", ToWorker::Sockets { v6: false }),
        ("permit", ToWorker::Permit { connect: Vec::new(), listen: Vec::new() }),
        ("media-started", ToWorker::MediaStarted { job: 7 }),
        ("media-ended", ToWorker::MediaEnded { job: 7, outcome: MediaOutcome::Done, detail: String::new() }),
        ("shutdown", ToWorker::Shutdown),
    ];
    let from = from.into_iter().filter_map(|(name, frame)| Some((name.to_owned(), frame.encode().ok()?)));
    let to = to.into_iter().filter_map(|(name, frame)| Some((name.to_owned(), frame.encode().ok()?)));
    from.chain(to)
        .chain(named(&[("unknown", br#"{"frame":"reboot"}"#), ("slot", br#"{"frame":"loaded","slot":99}"#)]))
        .collect()
}

/// The steps are those of `packet_ring`: 0–1 push, 2 publish, 3 take, 4 answer, 5 inject, 6–7 scribble.
fn ring_scripts() -> Seeds {
    let push = [0, 0, 100, 3];
    named(&[
        ("answers", &[&push[..], &push, &push, &[2, 4, 0, 1, 4, 1, 1, 4, 2, 9, 9, 3]].concat()),
        ("injected", &[5, 7, 7, 7, 7, 3, 2, 3]),
        ("empty-packet", &[0, 0, 0, 1, 2, 3]),
        ("long-packet", &[0, 255, 255, 1, 2, 3]),
        ("index-scribbled", &[&push[..], &[2, 7, 64, 255, 255, 255, 255, 255, 255, 255, 255, 3, 0, 0, 1, 1]].concat()),
        ("tail-scribbled", &[&push[..], &[2, 7, 64, 1, 0, 0, 0, 0, 0, 0, 0, 3]].concat()),
    ])
}

fn from_hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs.map(|pair| u8::from_str_radix(&String::from_utf8_lossy(pair), 16).expect("hex digits")).collect()
}
