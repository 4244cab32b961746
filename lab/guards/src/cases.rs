// SPDX-License-Identifier: Apache-2.0
//! The hot functions of `core/`.

use std::hint::black_box;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use ed25519_dalek::{Signer as _, SigningKey};
use netserv_authority::grant::{Grant, user_of};
use netserv_authority::{Authority, digest_of_grant};
use netserv_gist::{
    ApiCall, Config, Datagram, Engine, InterfaceId, MessageHandle, SendOptions, TransferAttributes, Transmit,
};
use netserv_model::effect::FilterId;
use netserv_model::policy::{Class, Issuer, NodePolicy, UserPolicy};
use netserv_model::request::Request;
use netserv_model::{Filter, FilterIndex, Flow, Instant, Nonce, PublicKey, SessionId, Signature, UnixTime, UserId};
use netserv_wire::container::ring::{Answer, HostEnd, Ingress, MAPPING_WORDS, WorkerEnd};
use netserv_wire::gist::{self, Mri, PathCoupled, UDP_PORT};
use netserv_wire::ip::{IpView, build, checksum, decrement_ttl};
use netserv_wire::nslp::{self, RequestBuilder};

/// Operations of a case: enough that what surrounds them does not count.
const OPERATIONS: u32 = 256;

/// Runs every case.
pub(crate) fn run() {
    packets();
    filters();
    filter_index(1);
    filter_index(10_000);
    ring(1);
    ring(64);
    gist_messages();
    gist_query();
    nslp_texts();
    decisions();
}

/// What happens in here is counted from outside, and so are the calls.
#[inline(never)]
fn netserv_guarded(work: impl FnOnce()) {
    work();
}

/// Counts an operation.
fn guard<R>(name: &str, mut operation: impl FnMut() -> R) {
    // The first time allocates, and finds what the dynamic linker has to find.
    black_box(operation());
    println!("guard {name} {OPERATIONS}");
    netserv_guarded(|| (0..OPERATIONS).for_each(|_| drop(black_box(operation()))));
}

fn packets() {
    let packets = [("udp4-60B", udp("10.0.0.1:4000", "10.2.0.9:5060", 32)), ("udp6-chain", chained())];
    for (name, packet) in &packets {
        guard(&format!("ip parse {name}"), || IpView::parse(black_box(packet)));
        let view = IpView::parse(packet).expect("a packet");
        guard(&format!("ip flow {name}"), || black_box(&view).flow());
    }
    for (name, payload) in [("60B", 32), ("1500B", 1472)] {
        let mut packet = udp("10.0.0.1:4000", "10.2.0.9:5060", payload);
        guard(&format!("ip checksum fill {name}"), || checksum::fill(black_box(&mut packet)));
        let view = IpView::parse(&packet).expect("a packet");
        guard(&format!("ip checksum verify {name}"), || {
            (checksum::verify_header(black_box(&view)), checksum::verify_transport(black_box(&view)))
        });
    }
    let mut packet = udp("10.0.0.1:4000", "10.2.0.9:5060", 32);
    guard("ip decrement ttl", || {
        packet[8] = 64;
        decrement_ttl(black_box(&mut packet))
    });
}

fn filters() {
    let packet = udp("10.0.0.1:4000", "10.2.0.9:5060", 32);
    let flow = IpView::parse(&packet).expect("a packet").flow();
    let one = filter("udp src 10.0.0.0/16 dst 10.2.0.0/24 port 5060");
    guard("filter matches", || black_box(&one).matches(black_box(&flow)));
    // The last of them matches.
    let many: Vec<Filter> = (0..63).map(|number| filter(&format!("udp dst 10.3.{number}.0/24 port 5060"))).collect();
    let many: Vec<Filter> = many.into_iter().chain([one]).collect();
    guard("filter first of 64 in line", || first(black_box(&many), black_box(&flow)));
}

/// Looks for the filters of a packet among so many.
fn filter_index(count: u64) {
    let mut index = FilterIndex::new(1);
    for number in 0..count {
        let net = format!("10.{}.{}.0/24", number / 256, number % 256);
        index.insert(FilterId(number), filter(&format!("udp dst {net} port 5060")), number);
    }
    let packet = udp("10.0.0.1:4000", "10.0.0.9:5060", 32);
    let flow = IpView::parse(&packet).expect("a packet").flow();
    let mut found = Vec::new();
    guard(&format!("filter index of {count}, one matches"), || index.matching(black_box(&flow), &mut found));
    assert_eq!(found.len(), 1);
    let other = Flow { destination: address("192.0.2.1"), ..flow };
    guard(&format!("filter index of {count}, none matches"), || index.matching(black_box(&other), &mut found));
    assert!(found.is_empty());
}

fn first(filters: &[Filter], flow: &Flow) -> Option<usize> {
    filters.iter().position(|filter| filter.matches(flow))
}

/// Packets of 60 bytes to the worker and back, so many for each look at the indices of the other end.
fn ring(batch: u64) {
    let memory: Arc<[AtomicU64]> = (0..MAPPING_WORDS).map(|_| AtomicU64::new(0)).collect();
    let mut host = HostEnd::new(Arc::clone(&memory)).expect("the memory has the right size");
    let mut worker = WorkerEnd::new(memory).expect("the host laid the ring out");
    let packet = udp("10.0.0.1:4000", "10.2.0.9:5060", 32);
    let mut bytes = vec![0; packet.len()];
    let mut round = || {
        for cookie in 0..batch {
            host.push(black_box(&packet), Ingress::default(), 1, cookie).expect("there is room");
        }
        black_box(host.publish());
        while let Some(arrival) = worker.pop().expect("the host keeps the rules") {
            worker.read(&arrival, &mut bytes);
            worker.answer(arrival, Answer::Pass, None).expect("there is room");
        }
        black_box(worker.publish());
        while let Some(returned) = host.pop().expect("the worker keeps the rules") {
            black_box(&returned);
        }
    };
    round();
    let rounds = u64::from(OPERATIONS) / batch;
    println!("guard ring round trip in batches of {batch} {OPERATIONS}");
    netserv_guarded(|| (0..rounds).for_each(|_| round()));
}

fn gist_messages() {
    let payload = query_payload(1);
    let bytes = gist::strip_magic(&payload).expect("a query begins with the magic number");
    guard("gist parse query", || gist::Message::parse(black_box(bytes)));
    let message = gist::Message::parse(bytes).expect("a query");
    guard("gist emit query", || black_box(&message).emit());
}

/// A Query of a stranger: parsed, answered with a cookie, nothing kept.
fn gist_query() {
    let mut engine = engine(2);
    let payload = query_payload(1);
    let now = Instant::from_millis(1000);
    let mut step = 0;
    guard("gist answer query", || {
        // Slow enough for the limit of Responses.
        step += 10;
        let source = SocketAddr::new(address("10.0.0.1"), UDP_PORT);
        engine.handle_datagram(now + Duration::from_millis(step), datagram(source, &payload));
        let answer = engine.poll_transmit();
        assert!(matches!(answer, Some(Transmit::Datagram { .. })), "a Query is answered: {answer:?}");
        answer
    });
}

fn nslp_texts() {
    let setup = include_bytes!("../../../vectors/nslp/setup.txt");
    let response = include_bytes!("../../../vectors/nslp/response.txt");
    guard("nslp parse setup", || nslp::Message::parse(black_box(setup)));
    guard("nslp parse response", || nslp::Response::parse(black_box(response)));
}

/// Who asks, and by what right: a user of the configuration, and a stranger with the longest chain of grants.
fn decisions() {
    let (named, stranger) = (key(9), key(5));
    let mut policy = NodePolicy::new("n".parse().expect("a name"));
    let rights = UserPolicy { keys: vec![public(&named)], modules_max: 2, ..UserPolicy::default() };
    policy.users.insert("jane".parse().expect("a name"), rights.clone());
    policy.classes.insert("guest".to_owned(), Class { users_max: 3, prefixes_max: 2, lease_max: None, rights });
    policy.issuers.push(Issuer {
        name: "house".to_owned(),
        keys: vec![public(&key(1))],
        prefixes: vec!["10.0.0.0/8".parse().expect("a prefix")],
        class: "guest".to_owned(),
        revocations: None,
    });
    let authority = Authority::default();
    let decide = |request: &Request| authority.prove(&policy, black_box(request), NOW).expect("it is allowed").key;
    let asked = setup(&named, &"jane".parse().expect("a name"), &[]);
    guard("authority decide on a user of the configuration", || decide(&asked));
    let chain: Vec<String> = (1..5).map(|by| grant(&key(by), &key(by + 1), 4 - by)).collect();
    let asked = setup(&stranger, &user_of(&public(&stranger)), &chain);
    guard("authority decide on a chain of 4 grants", || decide(&asked));
}

const NOW: UnixTime = UnixTime::from_secs(1_800_000_000);

fn setup(by: &SigningKey, user: &UserId, grants: &[String]) -> Request {
    let (module, digest) = ("example.org/any@1.0.0".parse().expect("a name"), digest_of_grant("any"));
    let setup = RequestBuilder::setup(&module, "http://192.0.2.1/any.nsm", digest, Duration::from_secs(600));
    let setup = setup.filter(&filter("udp dst 10.7.0.1 port 5060").into()).user(user).grants(grants);
    let unsigned = setup.build(NOW, Nonce([1; 16])).expect("a request");
    let signature = Signature(by.sign(unsigned.canonical_bytes()).to_bytes());
    unsigned.with_signature(signature).expect("a request").request(SessionId([1; 16]))
}

fn grant(by: &SigningKey, to: &SigningKey, delegations: u8) -> String {
    let (nbf, exp) = (NOW.0 / 1000 - 3600, NOW.0 / 1000 + 3600);
    let (iss, sub, prefixes) = (public(by), public(to), vec!["10.7.0.0/16".parse().expect("a prefix")]);
    Grant { iss, sub, nbf, exp, prefixes, ports: Vec::new(), modules_max: None, delegations }.sign(by)
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn public(key: &SigningKey) -> PublicKey {
    PublicKey(key.verifying_key().to_bytes())
}

const NSLP: u16 = 33;

fn engine(identity: u8) -> Engine {
    let mut config = Config::new(vec![identity; 16]);
    config.hosted.insert(NSLP, 65_503);
    Engine::new(config, [identity; 32])
}

/// Returns the Query with which an engine begins a session.
fn query_payload(session: u8) -> Vec<u8> {
    let flow = PathCoupled::new(address("10.0.0.1"), address("10.0.1.1")).expect("both are IPv4");
    let call = ApiCall::SendMessage {
        handle: MessageHandle(1),
        nslp_id: NSLP,
        session: SessionId([session; 16]),
        mri: Mri::PathCoupled(flow),
        attributes: TransferAttributes::default(),
        sii: None,
        timeout: Duration::from_secs(10),
        data: vec![0x4e; 64],
        hops: None,
        options: SendOptions::default(),
    };
    let mut engine = engine(1);
    engine.handle_api(Instant::from_millis(1000), call, address("10.0.0.1")).expect("the call is good");
    match engine.poll_transmit() {
        Some(Transmit::QMode { payload, .. }) => payload,
        other => panic!("a session begins with a Query, not with {other:?}"),
    }
}

fn datagram(source: SocketAddr, payload: &[u8]) -> Datagram<'_> {
    Datagram {
        interface: InterfaceId(1),
        local: address("10.0.0.2"),
        source,
        destination: address("10.0.1.1"),
        destination_is_local: false,
        ttl: 63,
        q_mode_interceptable: true,
        payload,
    }
}

/// Returns an IPv6 packet with two extension headers in front of its datagram.
fn chained() -> Vec<u8> {
    let plain = udp("[fd00::1]:4000", "[fd00::2]:5060", 32);
    let headers = [60, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0];
    let mut packet = [&plain[..40], &headers, &plain[40..]].concat();
    packet[5] += 16;
    packet[6] = 43;
    packet
}

fn udp(source: &str, destination: &str, payload_bytes: usize) -> Vec<u8> {
    let socket = |text: &str| -> SocketAddr { text.parse().expect("an address") };
    build::udp(socket(source), socket(destination), 64, &vec![7; payload_bytes]).expect("a packet")
}

fn filter(text: &str) -> Filter {
    text.parse().expect("a filter")
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[cfg(test)]
mod tests {
    /// The cases check what they measure.
    #[test]
    fn every_case_runs() {
        super::run();
    }
}
