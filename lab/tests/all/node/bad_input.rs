// SPDX-License-Identifier: Apache-2.0
//! Each fault of a request or a package: a named refusal in the response stack, no state left, no other user hurt.

use std::net::{IpAddr, Ipv6Addr};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{
    Driver, Net, Serving, ask_udp, assert_nodes, assert_refused, eventually, net_with, post, publish_bad,
};
use crate::tar_file::Tar;
use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::DecodePrivateKey as _;
use netserv_lab::netns::host_port;
use netserv_lab::node::FILES_ALLOWED;
use netserv_lab::node::{LabPackage, LabUser};
use netserv_lab::patience::grown;
use netserv_model::request::Outcome;
use netserv_model::{RefusalKind, SessionId};
use netserv_repository::package;
use netserv_wire::gist::{Cookie, Message, MessageType, Mri, Nli, PathCoupled};

/// Short waits, small packages, so that the bounds are reached quickly.
const STRICT: &str = "[fetch]\nschemes = [\"http\"]\ntimeout-s = 2\nbytes-max = 300000\n";

/// A web server that answers every request with a body without end.
const ENDLESS: &str = r#"exec perl -e 'use IO::Socket::INET; $SIG{CHLD} = "IGNORE";
    $listener = IO::Socket::INET->new(LocalPort => 8082, Listen => 9, ReuseAddr => 1) or die $!;
    while ($client = $listener->accept) {
        next if fork;
        print $client "HTTP/1.1 200 OK\r\n\r\n";
        1 while print $client "x" x 65536;
        exit;
    }'"#;

/// A web server that redirects from `/X` to `http://X`.
const REDIRECTS: &str = r#"exec perl -e 'use IO::Socket::INET;
    $listener = IO::Socket::INET->new(LocalPort => 8083, Listen => 9, ReuseAddr => 1) or die $!;
    while ($client = $listener->accept) {
        while (<$client>) { $to = $1 if m{^GET /(\S+)}; last if /^\r\n/; }
        print $client "HTTP/1.1 302 Found\r\nLocation: http://$to\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        close $client;
    }'"#;

/// Opens 16 connections from each of its addresses to a node's port of signaling, sends nothing, and opens each again
/// as it ends. Says `open` when all are.
const IDLE: &str = r#"exec perl -e 'use IO::Socket::INET; use IO::Select;
    ($node, @from) = @ARGV; $| = 1; $idle = IO::Select->new;
    sub connect_from {
        $socket = IO::Socket::INET->new(PeerAddr => $node, PeerPort => 27001, LocalAddr => $_[0], Timeout => 1) or return;
        $from{fileno $socket} = $_[0];
        $idle->add($socket);
    }
    for $address (@from) { connect_from($address) for 1 .. 16 }
    print "open\n";
    while (1) {
        for $socket ($idle->can_read(1)) {
            $address = delete $from{fileno $socket};
            $idle->remove($socket);
            close $socket;
            connect_from($address);
        }
    }' -- "$@""#;

/// A network in which `innocent` runs an echo for the receiver's address while everything else goes wrong.
fn troubled(test: &str, driver: Driver) -> Option<Net> {
    let net = net_with(test, driver, STRICT, &[("innocent", &["10.4.0.2/32"])])?;
    let innocent = &net.others[0];
    let package = net.lab.package("echo", innocent).unwrap();
    let url = net.lab.publish("sender", &package).unwrap();
    let result = request_as(&net, innocent, &setup_args(&net, &package, &url, "udp dst 10.4.0.2/32 port 44444"));
    assert_nodes(&result, |outcome| matches!(outcome, Outcome::Installed { .. }));
    Some(net)
}

/// The innocent user's module still answers, and nobody else's is installed.
fn assert_unhurt(net: &Net) {
    let receiver = net.lab.v4("receiver").into();
    assert_eq!(ask_udp(&net.lab, "sender", receiver, 44444, "still here").as_deref(), Some("still here"));
    for node in ["n1", "n2"] {
        let modules = net.lab.modules(node).unwrap().modules;
        let users: Vec<&str> = modules.iter().map(|status| status.user.as_str()).collect();
        assert_eq!(users, ["innocent"], "state is left on {node}");
    }
}

fn setup_args(net: &Net, package: &LabPackage, url: &str, filter: &str) -> Vec<String> {
    let file = package.path.to_string_lossy().into_owned();
    let receiver = net.lab.v4("receiver").to_string();
    ["setup", &file, "--to", &receiver, "--url", url, "--filter", filter].map(str::to_owned).to_vec()
}

fn request_as(net: &Net, user: &LabUser, args: &[String]) -> netserv_model::api::RequestResult {
    crate::common::request_as(&net.lab, user, &args.iter().map(String::as_str).collect::<Vec<_>>())
}

over_one_driver! {
    afxdp: [
        packages_that_cannot_be_had,
        code_that_does_not_start,
        a_flood_of_dead_neighbours_keeps_nobody_from_being_served,
    ]
    nfqueue: [requests_that_are_not_admitted, packages_of_a_later_version, code_that_fails_on_packets]
}

fn requests_that_are_not_admitted(driver: Driver) {
    let Some(net) = troubled("requests_that_are_not_admitted", driver) else { return };
    let (package, url) = net.publish("net-monitor");
    let own = format!("udp dst {}/32", net.lab.v4("sender"));
    let args = setup_args(&net, &package, &url, &own);

    let stranger = net.lab.user("stranger", &[]).unwrap();
    assert_refused(&request_as(&net, &stranger, &args), RefusalKind::UnknownUser);
    let forger = LabUser { name: "janedoe".into(), ..stranger };
    assert_refused(&request_as(&net, &forger, &args), RefusalKind::BadSignature);

    assert_refused(&post_unsigned(&net, &package, &url, &own), RefusalKind::Unsigned);

    for filter in ["udp dst 10.4.0.2/32", "udp", "ip", "udp src 10.0.0.0/8", "udp dst 0.0.0.0/0"] {
        assert_refused(&net.setup(&package, &url, filter), RefusalKind::PrefixNotAllowed);
    }
    assert_refused(&net.setup_with(&package, &url, &own, &["--ttl", "365d"]), RefusalKind::BadTtl);
    let needs = ["--depends-on", "teleport>=1"];
    assert_refused(&net.setup_with(&package, &url, &own, &needs), RefusalKind::MissingDependency);
    assert_unhurt(&net);
}

fn packages_that_cannot_be_had(driver: Driver) {
    let Some(mut net) = troubled("packages_that_cannot_be_had", driver) else { return };
    let (package, _) = net.publish("net-monitor");
    let sender = net.lab.v4("sender");
    let own = format!("udp dst {sender}/32");
    let serve = |net: &mut Net, name: &str, script: &str| {
        let mut command = net.lab.command("sender", "sh");
        command.args(["-c", script]);
        net.lab.start("sender", name, &mut command).unwrap();
    };
    serve(&mut net, "hangs", "exec nc -l -k 8081 > /dev/null");
    serve(&mut net, "endless", ENDLESS);
    std::thread::sleep(Duration::from_millis(100));
    for (url, kind) in [
        (format!("http://{sender}/nowhere.nsm"), RefusalKind::FetchFailed),
        (format!("http://{sender}:1/x.nsm"), RefusalKind::FetchFailed),
        (format!("ftp://{sender}/x.nsm"), RefusalKind::BadUrl),
        ("file:///etc/passwd".to_owned(), RefusalKind::BadUrl),
        (format!("http://{sender}:8081/x.nsm"), RefusalKind::FetchFailed),
        (format!("http://{sender}:8082/x.nsm"), RefusalKind::PackageTooLarge),
    ] {
        let started = Instant::now();
        let result = net.setup(&package, &url, &own);
        let refusal = crate::common::refusal(&result);
        assert_eq!(refusal.kind, kind, "{url}: {refusal}");
        assert!(started.elapsed() < grown(Duration::from_secs(8)), "{url} took {:?}", started.elapsed());
    }

    // What the URL serves is not what was signed for.
    let (_, echo_url) = net.publish("echo");
    assert_refused(&net.setup(&package, &echo_url, &own), RefusalKind::DigestMismatch);
    let garbage = net.lab.dir().join("www/garbage.nsm");
    std::fs::write(&garbage, [0x42; 5000]).unwrap();
    let garbage = format!("http://{sender}/garbage.nsm");
    assert_refused(&net.setup(&package, &garbage, &own), RefusalKind::BadPackage);

    // A package that somebody else signed.
    let stranger = net.lab.user("stranger", &[]).unwrap();
    let foreign = net.lab.package("header-dump", &stranger).unwrap();
    let foreign_url = net.lab.publish("sender", &foreign).unwrap();
    assert_refused(&net.setup(&foreign, &foreign_url, &own), RefusalKind::ModuleUnsigned);
    assert_unhurt(&net);
}

/// What a later version of `netserv module build` requires is refused by its name, on every node; what is optional is not.
fn packages_of_a_later_version(driver: Driver) {
    let Some(net) = troubled("packages_of_a_later_version", driver) else { return };
    let result = setup_later(&net, r#""requires":[]"#, r#""requires":["detour"]"#);
    for node in &result.nodes {
        let Outcome::Refused(refusal) = &node.outcome else { panic!("{:?}", node.outcome) };
        assert_eq!(refusal.kind, RefusalKind::MissingFeature);
        assert!(refusal.detail.contains("requires `detour`"), "{refusal}");
    }
    assert_eq!(result.nodes.len(), 2);
    assert_refused(&setup_later(&net, r#"{"manifest":1"#, r#"{"manifest":2"#), RefusalKind::MissingFeature);
    assert_unhurt(&net);

    let result = setup_later(&net, r#""state-schema":1"#, r#""state-schema":1,"greeting":"hello""#);
    assert_nodes(&result, |outcome| matches!(outcome, Outcome::Installed { .. }));
}

/// Publishes net-monitor with its manifest as a later version might write it, signed anew, and sends the SETUP.
fn setup_later(net: &Net, from: &str, to: &str) -> netserv_model::api::RequestResult {
    let (package, _) = net.publish("net-monitor");
    let built = package::read(&std::fs::read(&package.path).unwrap()).unwrap();
    let mut layout = Tar::of(&built);
    layout.rewrite_everywhere(from, to);
    let key = SigningKey::read_pkcs8_pem_file(&net.user.key).unwrap();
    layout.sign_again(built.signatures().first().unwrap().signature, &key);
    let path = net.lab.dir().join("later.nsm");
    std::fs::write(&path, layout.to_bytes()).unwrap();
    let later = LabPackage { path, digest: layout.digest().to_string(), ..package };
    let url = net.lab.publish("sender", &later).unwrap();
    let (receiver, filter) = (net.lab.v4("receiver").to_string(), format!("udp dst {}/32", net.lab.v4("sender")));
    // By its name: the command line is of the nodes' version, and reads no more than they do.
    let module = ["setup", &later.module, "--digest", &later.digest, "--url", &url];
    net.request(&[module.as_slice(), &["--to", &receiver, "--filter", &filter]].concat())
}

fn code_that_does_not_start(driver: Driver) {
    let Some(net) = troubled("code_that_does_not_start", driver) else { return };
    for (name, kind) in [
        ("not-wasm", RefusalKind::BadCode),
        ("missing-export", RefusalKind::AbiMismatch),
        ("wrong-abi", RefusalKind::AbiMismatch),
        ("trap-at-start", RefusalKind::Trapped),
        ("four-gib", RefusalKind::MemoryLimit),
        ("loop-at-start", RefusalKind::Stalled),
    ] {
        let (package, url) = publish_bad(&net, name);
        let result = net.setup(&package, &url, &format!("udp dst {}/32", net.lab.v4("sender")));
        let refusal = crate::common::refusal(&result);
        assert_eq!(refusal.kind, kind, "{name}: {refusal}");
    }
    assert_unhurt(&net);
}

fn code_that_fails_on_packets(driver: Driver) {
    let Some(net) = troubled("code_that_fails_on_packets", driver) else { return };
    let sender = net.lab.v4("sender");
    for (name, kind) in [("trap-on-packet", RefusalKind::Trapped), ("endless-loop", RefusalKind::Stalled)] {
        let (package, url) = publish_bad(&net, name);
        let result = net.setup(&package, &url, &format!("udp dst {sender}/32 port 7777"));
        assert_nodes(&result, |outcome| matches!(outcome, Outcome::Installed { .. }));
        eventually("the failure is known", || {
            ask_udp(&net.lab, "receiver", sender.into(), 7777, "poke");
            net.status("n2", &package).is_some_and(|s| s.last_failure.is_some_and(|failure| failure.kind == kind))
        });
        // While it fails, its packets pass, and the innocent user's are answered.
        let receiver = net.lab.v4("receiver").into();
        eventually("the innocent user's module answers", || {
            ask_udp(&net.lab, "sender", receiver, 44444, "still here").is_some()
        });
        assert_nodes(&net.remove(&package), |outcome| *outcome == Outcome::Removed);
    }
    assert_unhurt(&net);
}

/// Goal: connections that prove nothing, opened again as they end, keep nobody's signaling from a new association.
#[test]
fn idle_connections_do_not_keep_others_from_signaling() {
    let Some(mut net) = net_with("idle_connections_do_not_keep_others_from_signaling", Driver::Nfqueue, STRICT, &[])
    else {
        return;
    };
    let from: Vec<String> = (100..108).map(|number| format!("10.4.0.{number}")).collect();
    for address in &from {
        net.lab.run("receiver", "ip", &["address", "add", &format!("{address}/32"), "dev", "lo"]).unwrap();
    }
    for node in ["n1", "n2"] {
        let mut command = net.lab.command("receiver", "sh");
        command.args(["-c", IDLE, "idle", &net.lab.v4(node).to_string()]).args(&from);
        net.lab.start("receiver", &format!("idle-{node}"), &mut command).unwrap();
        eventually("the table is full", || net.lab.log("receiver", &format!("idle-{node}")).contains("open"));
    }
    let probe = net.request(&["probe", "--to", &net.lab.v4("receiver").to_string()]);
    assert_nodes(&probe, |outcome| *outcome == Outcome::Probed);
    for node in ["n1", "n2"] {
        let metrics = net.lab.metrics(node).unwrap();
        let count = |name: &str| metrics.lines().find(|line| line.contains(name)).unwrap().to_owned();
        assert!(!count("associations_evicted").ends_with(" 0"), "{}", count("associations_evicted"));
        assert!(count("associations_refused").ends_with(" 0"), "{}", count("associations_refused"));
    }
}

/// Goal: Queries that name neighbours of a node that are not there keep nobody from being served. Method: the router sends
/// a thousand a second with addresses of both of its networks, while the sender asks for its path again and again.
fn a_flood_of_dead_neighbours_keeps_nobody_from_being_served(driver: Driver) {
    let test = "a_flood_of_dead_neighbours_keeps_nobody_from_being_served";
    let Some(mut net) = net_with(test, driver, FILES_ALLOWED, &[]) else { return };
    let receiver = net.lab.v4("receiver").to_string();
    let path = |net: &Net| {
        let result = net.lab.request("sender", &["path", &receiver, "--timeout", "20s"]).unwrap();
        let names: Vec<&str> = result.nodes.iter().map(|node| node.node.as_str()).collect();
        assert_eq!((names, &result.incomplete), (vec!["sender", "n1", "n2"], &None), "{result:?}");
        result.took_us
    };
    path(&net);
    let interfaces = net.lab.topology().interfaces_of("n1");
    let mut command = net.lab.command("r", "python3");
    command.args(["-c", DEAD_NEIGHBOURS, &query_template()]);
    command.args(interfaces.iter().map(|interface| interface.v4.to_string()));
    net.lab.start("r", "flood", &mut command).unwrap();
    let metric = |net: &Net, name: &str| -> u64 {
        let metrics = net.lab.metrics("n1").unwrap();
        let line = metrics.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("no {name}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    eventually("the flood arrives", || metric(&net, "unproven_limited") > 1000);
    let slowest = (0..20).map(|_| path(&net)).max().unwrap();
    assert!(slowest < 2_000_000, "a request took {slowest} µs");
    assert!(!net.lab.has_ended("r", "flood"), "{}", net.lab.log("r", "flood"));
}

/// Sends a node at its second address a thousand Queries a second that name made up neighbours of all its addresses.
const DEAD_NEIGHBOURS: &str = r#"
import os, random, socket, sys, time
template, own = bytes.fromhex(sys.argv[1]), [socket.inet_aton(text) for text in sys.argv[2:]]
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
start, sent = time.monotonic(), 0
while sent < 120000:
    dead = random.choice(own)[:3] + bytes([random.randrange(3, 255)])
    udp.sendto(template.replace(bytes([203, 0, 113, 77]), dead).replace(bytes([0xab] * 16), os.urandom(16)), (sys.argv[3], 270))
    sent += 1
    time.sleep(max(0, start + sent / 1000 - time.monotonic()))
"#;

/// Returns a Query in hex, of the session of 16 times 0xab and of 203.0.113.77.
fn query_template() -> String {
    let address = IpAddr::from([203, 0, 113, 77]);
    let mut query = Message::new(MessageType::Query, 32_704);
    query.hops = 8;
    query.mri = Some(Mri::PathCoupled(PathCoupled::new([10, 9, 9, 1].into(), [10, 9, 9, 2].into()).unwrap()));
    query.session = Some(SessionId([0xab; 16]));
    query.nli = Some(Nli { peer_identity: vec![7; 16], ip_ttl: 0, validity: Duration::from_secs(30), address });
    query.query_cookie = Some(Cookie(vec![5; 16]));
    query.source_is_signaller = false;
    query.emit_datagram().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Goal: a URL leads to no service of the node, whatever address of its is named, and the refusal does not tell whether
/// there is one. Method: the node listens on one port and not on another; both are named, and redirected to.
#[test]
fn packages_are_not_fetched_from_the_node_itself() {
    let test = "packages_are_not_fetched_from_the_node_itself";
    let Some(mut net) = Serving::start(test, Driver::Nfqueue, "listen = ['tcp port 80']\n") else { return };
    net.install("hello-http", &net.alice, &[]);
    net.lab.run("node", "ip", &["route", "add", "local", "198.51.100.0/24", "dev", "lo"]).unwrap();
    let mut command = net.lab.command("node", "sh");
    command.args(["-c", "nc -4 -l -k 80 & exec nc -6 -l -k 80"]);
    net.lab.start("node", "listens", &mut command).unwrap();
    let mut command = net.lab.command("sender", "sh");
    command.args(["-c", REDIRECTS]);
    net.lab.start("sender", "redirects", &mut command).unwrap();
    let (v4, v6, sender) = (net.lab.v4("node"), net.lab.v6("node"), net.lab.v4("sender"));
    for address in [v4.into(), v6.into()] {
        let connects = || net.lab.run("node", "nc", &["-z", &IpAddr::to_string(&address), "80"]).is_ok();
        eventually("the node listens", connects);
    }
    let redirects = || net.lab.run("sender", "nc", &["-z", "127.0.0.1", "8083"]).is_ok();
    eventually("the sender redirects", redirects);
    let anycast = Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64);
    let [own, mapped, anycast] = [v6, v4.to_ipv6_mapped(), anycast].map(|address| format!("[{address}]"));
    let container = [false, true].map(|six| host_port(net.address(&net.alice, six), 80).replace(":80", ""));
    let far = net.lab.topology().interfaces_of("node")[1].v4.to_string();
    let here = ["127.0.0.1", "127.8.8.8", "[::1]", "[::]", "0.0.0.0", "198.51.100.7", "localhost"].map(str::to_owned);
    let package = net.lab.package("header-dump", &net.carol).unwrap();
    for host in [v4.to_string(), far, own, mapped, anycast].into_iter().chain(container).chain(here) {
        let refused = |url: String| {
            let outcome = net.request(&net.carol, &["setup", &package.path.to_string_lossy(), "--url", &url]);
            let Outcome::Refused(refusal) = outcome else { panic!("{url}: {outcome:?}") };
            refusal
        };
        let refusal = refused(format!("http://{host}/m.nsm"));
        assert_eq!(refusal.kind, RefusalKind::BadUrl, "{host}: {refusal}");
        assert!(refusal.detail.contains("fetch.own-addresses"), "{host}: {refusal}");
        for same in
            [format!("{host}:81/m.nsm"), format!("{sender}:8083/{host}:80/m"), format!("{sender}:8083/{host}:81/m")]
        {
            assert_eq!(refused(format!("http://{same}")), refusal, "{same}");
        }
    }
    assert_eq!(net.lab.log("node", "listens"), "", "somebody was asked");
}

/// Posts a SETUP without a signature, which the command line does not do.
fn post_unsigned(net: &Net, package: &LabPackage, url: &str, filter: &str) -> netserv_model::api::RequestResult {
    let now = Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]).output().unwrap();
    let message = format!(
        "SETUP {} NETSERV/1\nuser: janedoe\nurl: {url}\ndigest: {}\nfilter: {filter}\nttl: 60\ncreated: {}\nnonce: {}\n\n",
        package.module,
        package.digest,
        String::from_utf8_lossy(&now.stdout).trim(),
        "5a".repeat(16)
    );
    post(net, &message)
}
