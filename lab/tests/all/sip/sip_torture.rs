// SPDX-License-Identifier: Apache-2.0
//! SIP that tortures, before an unmodified Kamailio: the messages of RFC 4475, and others damaged at random, reach it as they were sent,
//! unless the edge answers them, and phones beside them notice nothing.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::time::Duration;

use crate::common::Driver;
use netserv_lab::captured::{Captured, Datagram};
use netserv_lab::netns::{is_root, wait_until};
use netserv_lab::provider::{Phones, SipProvider, told};
use netserv_lab::topology::Kind;
use netserv_lab::torture::{damage, is_answerable, messages};
use netserv_skips::skipped;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};

over_one_driver! {
    afxdp: [torture_and_damage_reach_kamailio_as_they_are_and_harm_nobody]
    nfqueue: []
}

const LONG: Duration = Duration::from_secs(60);
const FEW: Phones = Phones { count: 50, first: 0, every_ms: 500, seconds: 3, forms: "", tcp: false };
/// Damaged datagrams, and connections of damaged messages, of each version of IP: in short, and in full.
const SHORT: (usize, usize) = (1500, 12);
const FULL: (usize, usize) = (50_000, 400);
/// Datagrams that are sent at a time, and what is between.
const BURST: usize = 50;
const PAUSE: Duration = Duration::from_millis(30);
/// Messages of a connection.
const PIPELINED: usize = 16;
/// How long a connection is listened to after its last byte.
const QUIET: Duration = Duration::from_millis(400);
/// What Kamailio writes into each answer of its own, and the edge never does.
const KAMAILIO: &[u8] = b"Server: kamailio";
/// The seed of all that is random, unless `SEED` says another one.
const SEED: u64 = 4475;

/// Goal: messages that the edge does not answer reach Kamailio as they were sent, and nothing else does: the cases of RFC
/// 4475 and damaged messages, by UDP, and by TCP pipelined and in pieces. Answers have no more bytes of IP than what they
/// answer (STUN: half more), and other phones are answered meanwhile. While all calls are rejected, ACK, CANCEL, PRACK,
/// BYE, emergency calls and responses reach it. Over `nfqueue` and `afxdp`, IPv4 and IPv6.
fn torture_and_damage_reach_kamailio_as_they_are_and_harm_nobody(driver: Driver) {
    torture("torture_and_damage_reach_kamailio_as_they_are_and_harm_nobody", driver, SHORT);
}

#[test]
#[ignore = "takes minutes; `./dev sip` runs it"]
fn much_torture_and_damage_harm_nobody() {
    for driver in [Driver::Nfqueue, Driver::Afxdp] {
        torture("much_torture_and_damage_harm_nobody", driver, FULL);
    }
}

/// Goal: whatever comes, node and module live, honest phones are answered, nothing reaches Kamailio that was not sent or is altered, and what does
/// not reach it was answered by the edge with no more bytes. Method: a stranger sends from `caller` by UDP and by TCP, whole, pipelined and in
/// pieces; tcpdump at it and at Kamailio; phones of all forms meanwhile. While too many call, too, with what must go on all the same.
fn torture(test: &str, driver: Driver, (datagrams, connections): (usize, usize)) {
    let Some(mut provider) = start(test, driver) else { return };
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(SEED);
    eprintln!("SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let honest = [false, true].map(|tcp| {
        let forms = if tcp { "notify,options,crlf,register" } else { "" };
        provider.keep_phones(tcp, Phones { forms, tcp, first: 100 * usize::from(tcp), ..FEW }).unwrap()
    });
    for v6 in [false, true] {
        let torture: Vec<Vec<u8>> = messages().unwrap().into_iter().map(|(_, message)| message).collect();
        let fate = send(&mut provider, v6, &torture);
        assert_eq!(fate.missing, Vec::<Vec<u8>>::new(), "all of RFC 4475 reaches Kamailio");
        let damaged: Vec<Vec<u8>> = (0..datagrams).map(|number| damaged(&provider, v6, number, &mut random)).collect();
        let fate = send(&mut provider, v6, &damaged);
        eprintln!("IPv6: {v6}: of {datagrams} damaged datagrams {} were the edge's", fate.missing.len());
        fate.check();
        assert!(fate.missing.len() > datagrams / 20, "some are not damaged where it matters");
        streams(&mut provider, v6, connections, &mut random);
    }
    for told in honest.map(|phones| told(phones).unwrap()) {
        eprintln!("honest phones: {told:?}");
        assert!(told.registered == FEW.count && told.answered * 100 >= told.sent * 95, "{told:?}");
    }
    overloaded(&mut provider);
    for node in ["n1", "n2"] {
        let module = provider.lab.modules(node).unwrap().modules.remove(0);
        assert_eq!((module.restarts, module.last_failure), (0, None), "the module of {node} fails");
    }
    assert!(!provider.lab.has_ended("sender", "kamailio"));
}

/// What the server needs to go on, and what is no request, reaches Kamailio though all calls are rejected.
fn overloaded(provider: &mut SipProvider) {
    let to = provider.lab.v4("receiver").to_string();
    let key = provider.user.key.display().to_string();
    // The agent says something else as soon as too much waits at Kamailio, which is not so here.
    let tell = ["tell", "example.org/sip-edge", "--topic", "overload", "loss=100 validity-ms=60000"];
    provider.lab.request("sender", &[&tell[..], &["--to", &to, "--user", "voip", "--key", &key]].concat()).unwrap();
    for v6 in [false, true] {
        let (names, mut all): (Vec<String>, Vec<Vec<u8>>) = messages().unwrap().into_iter().unzip();
        let server = provider.server(v6);
        let udp = (server, "UDP");
        let needed = ["ACK", "CANCEL", "PRACK"].map(|method| request(udp, method, "sip:bob@example.org", 900));
        let sos = request(udp, "INVITE", "urn:service:sos.fire", 901);
        let bye = request(udp, "BYE", "sip:bob@example.org", 902)
            .replace("To: <sip:bob@example.org>", "To: <sip:bob@example.org>;tag=9");
        all.extend(needed.into_iter().chain([sos, bye]).map(String::into_bytes));
        let fate = send(provider, v6, &all);
        let reached =
            |name: &str| names.iter().position(|one| one == name).is_some_and(|at| !fate.missing.contains(&all[at]));
        for name in ["wsinv", "unreason", "noreason", "scalarlg", "bigcode", "bcast", "insuf", "badvers", "mismatch01"]
        {
            assert!(reached(name), "{name} was rejected");
        }
        assert!(
            ["sdp01", "invut", "unkscm", "inv2543"].iter().all(|name| !reached(name)),
            "not all calls are rejected"
        );
        assert!(all[names.len()..].iter().all(|message| !fate.missing.contains(message)), "what goes on was rejected");
        // A rejection that would be longer than what it rejects is none.
        let (asked, answered) =
            (bytes(&fate.missing, server), fate.answers.iter().map(|answer| answer.length).sum::<usize>());
        assert!(!fate.answers.is_empty() && answered <= asked, "{answered} bytes for {asked}");
    }
}

/// What became of datagrams.
struct Fate {
    /// Those that did not reach Kamailio, in order.
    missing: Vec<Vec<u8>>,
    /// What the edge answered, in order.
    answers: Vec<Datagram>,
    server: SocketAddr,
}

impl Fate {
    /// Checks that those which are missing are the edge's to answer, and that it did, with no more bytes of IP: half more for STUN.
    fn check(&self) {
        // Nobody answers to the second half of a ping.
        let asked: Vec<&Vec<u8>> = self.missing.iter().filter(|message| **message != b"\r\n").collect();
        for message in &asked {
            assert!(is_answerable(message), "swallowed: {}", String::from_utf8_lossy(message));
        }
        let show = || {
            let messages =
                asked.iter().map(|message| text(message)).chain(self.answers.iter().map(|one| text(&one.payload)));
            messages.collect::<Vec<_>>().join("\n---\n")
        };
        assert_eq!(self.answers.len(), asked.len(), "what does not go on is answered:\n{}", show());
        for (message, answer) in asked.into_iter().zip(&self.answers) {
            let (sent, is_stun) = (bytes(std::slice::from_ref(message), self.server), message.starts_with(&[0, 1]));
            let most = if is_stun { sent * 3 / 2 } else { sent };
            assert!(answer.length <= most, "{answer:?} for {}", String::from_utf8_lossy(message));
            assert_eq!(answer.from, self.server, "in whose name it is");
        }
    }
}

/// Returns how many bytes of IP datagrams are.
fn bytes(datagrams: &[Vec<u8>], server: SocketAddr) -> usize {
    let heads = if server.is_ipv4() { 28 } else { 48 };
    datagrams.iter().map(|datagram| datagram.len() + heads).sum()
}

/// Sends datagrams from the stranger's SIP port, and returns which of them did not reach Kamailio, and what the edge said.
fn send(provider: &mut SipProvider, v6: bool, datagrams: &[Vec<u8>]) -> Fate {
    let (server, stranger) = (provider.server(v6), stranger(provider, v6));
    // The stranger's capture begins first and ends last: Kamailio says 408 half a minute after a request, at any time.
    provider.lab.capture("caller", &[server.ip()]).unwrap();
    provider.lab.capture("sender", &[stranger]).unwrap();
    let sending = || {
        let socket = UdpSocket::bind((stranger, 5060)).unwrap();
        for burst in datagrams.chunks(BURST) {
            for datagram in burst {
                socket.send_to(datagram, server).unwrap();
            }
            std::thread::sleep(PAUSE);
        }
        std::thread::sleep(Duration::from_secs(1));
    };
    provider.lab.within("caller", sending).unwrap();
    let [at_server, at_stranger] = ["sender", "caller"].map(|machine| provider.lab.captured(machine).unwrap());
    // The agent's own signaling toward the stranger is not of SIP. Fragments have no ports.
    let is_sip = |one: &Datagram| [one.from, one.to].contains(&server) || one.from.port() == 0;
    let of_sip =
        |captured: &Captured, from, to| captured.datagrams(from, to).into_iter().filter(is_sip).collect::<Vec<_>>();
    let (sent, reached) = (of_sip(&at_stranger, stranger, server.ip()), of_sip(&at_server, stranger, server.ip()));
    let whole = sent.iter().filter(|one| one.to == server).count();
    assert_eq!(whole, datagrams.len(), "the stranger's machine sends all");
    let (missing, invented) = without(sent, reached);
    assert_eq!(invented, [], "what reaches Kamailio was sent");
    let (said, came) = (of_sip(&at_server, server.ip(), stranger), of_sip(&at_stranger, server.ip(), stranger));
    let (more, lost) = without(came, said);
    // What Kamailio relays to the stranger it may send again in the meantime.
    let begins: [&[u8]; 3] = [b"SIP/2.0 ", b"\r\n", &[1, 1]];
    // Nor is what it says after the capture at it has ended, a 408 after half a minute.
    let is_kamailios = |one: &Datagram| one.payload.windows(KAMAILIO.len()).any(|part| part == KAMAILIO);
    let is_answer = |one: &Datagram| begins.iter().any(|begin| one.payload.starts_with(begin)) && !is_kamailios(one);
    let answers = more.into_iter().filter(is_answer).collect();
    assert_eq!(lost, [], "what Kamailio says arrives");
    Fate { missing: missing.into_iter().map(|one| one.payload).collect(), answers, server }
}

/// Returns which of the first are not among the second, in order, and which of the second are not among the first.
fn without(first: Vec<Datagram>, second: Vec<Datagram>) -> (Vec<Datagram>, Vec<Datagram>) {
    let mut left: BTreeMap<(SocketAddr, SocketAddr, Vec<u8>), Vec<Datagram>> = BTreeMap::new();
    for one in second {
        left.entry((one.from, one.to, one.payload.clone())).or_default().push(one);
    }
    let is_missing =
        |one: &Datagram| left.get_mut(&(one.from, one.to, one.payload.clone())).and_then(Vec::pop).is_none();
    let missing = first.into_iter().filter(is_missing).collect();
    (missing, left.into_values().flatten().collect())
}

/// Sends messages over connections, in pieces, and checks that Kamailio gets of each all that is not the edge's to answer, and no other byte.
fn streams(provider: &mut SipProvider, v6: bool, connections: usize, random: &mut StdRng) {
    let (server, stranger) = (provider.server(v6), stranger(provider, v6));
    let (torture, tcp) = (messages().unwrap(), (server, "TCP"));
    let ping = |number: usize| request(tcp, "OPTIONS", &format!("sip:{}", server.ip()), number).into_bytes();
    let mut all: Vec<Vec<Vec<u8>>> = torture.iter().map(|(_, message)| vec![ping(7), message.clone()]).collect();
    all.extend((0..connections).map(|_| {
        let mut messages: Vec<Vec<u8>> = (0..PIPELINED)
            .map(|number| match number % 4 {
                0 => ping(number),
                1 => b"\r\n\r\n".to_vec(),
                2 => torture[random.random_range(0..torture.len())].1.clone(),
                _ => {
                    let mut message = request(tcp, "MESSAGE", "sip:nobody@example.org", number).into_bytes();
                    if random.random_bool(0.3) {
                        damage(&mut message, random);
                    }
                    message
                }
            })
            .collect();
        messages.shuffle(random);
        messages
    }));
    for (number, messages) in all.iter_mut().enumerate() {
        // By these a stream is known at Kamailio, and its end.
        messages.insert(0, request(tcp, "MESSAGE", "sip:nobody@example.org", FIRST + number).into_bytes());
        messages.push(request(tcp, "MESSAGE", "sip:nobody@example.org", 7).into_bytes());
    }
    let pieces: Vec<Vec<Vec<u8>>> = all
        .iter()
        .enumerate()
        .map(|(number, messages)| {
            let most = [usize::MAX, 700, 90][number % 3];
            cut(&messages.concat(), most, random)
        })
        .collect();
    provider.lab.capture("sender", &[stranger]).unwrap();
    let speak = |pieces: &[Vec<u8>]| {
        let mut stream = TcpStream::connect_timeout(&server, LONG).unwrap();
        stream.set_nodelay(true).unwrap();
        for piece in pieces {
            if stream.write_all(piece).is_err() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        stream.set_read_timeout(Some(QUIET)).unwrap();
        let (mut said, mut room) = (Vec::new(), [0; 4096]);
        let is_closed = loop {
            match stream.read(&mut room) {
                Ok(0) => break true,
                Ok(length) => said.extend_from_slice(&room[..length]),
                Err(error) => break !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
            }
        };
        // The server closes once it has read all, which takes long on a busy machine.
        if !is_closed && stream.shutdown(Shutdown::Write).is_ok() {
            stream.set_read_timeout(Some(LONG)).unwrap();
            while stream.read(&mut room).is_ok_and(|length| length > 0) {}
        }
        (said, is_closed)
    };
    let speaking = || {
        let mut said = Vec::new();
        for group in pieces.chunks(8) {
            std::thread::scope(|scope| {
                let group: Vec<_> = group
                    .iter()
                    .map(|pieces| scope.spawn(|| provider.lab.within("caller", || speak(pieces)).unwrap()))
                    .collect();
                said.extend(group.into_iter().map(|one| one.join().unwrap()));
            });
        }
        said
    };
    let said = speaking();
    std::thread::sleep(Duration::from_millis(500));
    let streams = provider.lab.captured("sender").unwrap().streams(stranger, server.ip());
    for (number, (messages, (answers, is_closed))) in all.iter().zip(said).enumerate() {
        let stream = streams.iter().find(|stream| stream.starts_with(&messages[0]));
        let stream = stream.unwrap_or_else(|| panic!("connection {number} has not reached Kamailio"));
        let what = format!(
            "connection {number}: {:?}\nis {:?}",
            messages.iter().map(|one| text(one)).collect::<Vec<_>>(),
            text(stream)
        );
        assert!(is_rest(stream, messages, is_closed), "{what}");
        if number < torture.len() {
            // The ping before was the edge's, whatever came behind it.
            let answers = text(&answers);
            assert!(
                !text(stream).contains("OPTIONS sip:1") && answers.contains("\r\nCSeq: 7 OPTIONS\r\n"),
                "{what}\nanswers: {answers}"
            );
        }
    }
}

/// Returns whether a stream is these messages one after the other, without some that the edge may answer; or the first part of that, if the
/// server closed the connection.
fn is_rest(stream: &[u8], messages: &[Vec<u8>], is_closed: bool) -> bool {
    let Some((first, others)) = messages.split_first() else { return stream.is_empty() };
    if stream.is_empty() && is_closed {
        return true;
    }
    let goes_on = match stream.strip_prefix(&first[..]) {
        Some(rest) => is_rest(rest, others, is_closed),
        None => is_closed && first.starts_with(stream),
    };
    goes_on || is_answerable(first) && is_rest(stream, others, is_closed)
}

/// Cuts bytes into pieces of so many at most.
fn cut(bytes: &[u8], most: usize, random: &mut StdRng) -> Vec<Vec<u8>> {
    let (mut rest, mut pieces) = (bytes, Vec::new());
    while !rest.is_empty() {
        let length = if most >= bytes.len() { rest.len() } else { random.random_range(1..=rest.len().min(most)) };
        let (piece, after) = rest.split_at(length);
        pieces.push(piece.to_vec());
        rest = after;
    }
    pieces
}

/// Returns a message of a stranger's, of a kind that goes by its number, most of them damaged.
fn damaged(provider: &SipProvider, v6: bool, number: usize, random: &mut StdRng) -> Vec<u8> {
    let server = provider.server(v6);
    let udp = (server, "UDP");
    let own = |method: &str| request(udp, method, &format!("sip:{}", server.ip()), number).into_bytes();
    let mut message = match number % 8 {
        0 => own("OPTIONS"),
        1 => {
            request(udp, "NOTIFY", "sip:example.org", number).replace("Max-", "Event: keep-alive\r\nMax-").into_bytes()
        }
        2 => own("REGISTER"),
        3 => [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], format!("{number:012}").as_bytes()].concat(),
        4 => b"\r\n\r\n".to_vec(),
        5 => {
            let all = messages().unwrap();
            all[random.random_range(0..all.len())].1.clone()
        }
        _ => request(udp, ["INVITE", "ACK", "BYE", "CANCEL", "MESSAGE"][number % 5], "sip:bob@example.org", number)
            .into_bytes(),
    };
    if random.random_bool(0.8) {
        damage(&mut message, random);
    }
    message
}

fn request((server, transport): (SocketAddr, &str), method: &str, uri: &str, number: usize) -> String {
    format!(
        "{method} {uri} SIP/2.0\r\nVia: SIP/2.0/{transport} stranger.example.net;branch=z9hG4bKs{number};rport\r\nMax-Forwards: 70\r\n\
         From: <sip:alice@{server}>;tag={number}\r\nTo: <sip:bob@example.org>\r\nCall-ID: s{number}@example.net\r\n\
         CSeq: {number} {method}\r\nContact: <sip:alice@stranger.example.net>\r\n\
         User-Agent: a stranger of the lab, which says who it is at length\r\nContent-Length: 0\r\n\r\n"
    )
}

/// The number of the first connection's first message.
const FIRST: usize = 1_000_000;

fn stranger(provider: &SipProvider, v6: bool) -> IpAddr {
    if v6 { provider.lab.v6("caller").into() } else { provider.lab.v4("caller").into() }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Starts nodes, Kamailio, and the module on both nodes; nothing without what it takes.
fn start(test: &str, driver: Driver) -> Option<SipProvider> {
    if !is_root() {
        skipped(test, "not root, so no namespaces");
        return None;
    }
    if !Path::new("/usr/sbin/kamailio").exists() {
        skipped(test, "needs kamailio");
        return None;
    }
    let mut provider = SipProvider::up(Some(driver.name()), Kind::Router).unwrap();
    provider.start_server(false).unwrap();
    provider.start_agent().unwrap();
    provider.phones(false, Phones { forms: "notify,options", ..FEW }).unwrap();
    let is_there = || ["n1", "n2"].iter().all(|node| provider.counter(node, "notify").is_some());
    assert!(wait_until(LONG, is_there), "{}", provider.lab.log("sender", "agent"));
    Some(provider)
}
