// SPDX-License-Identifier: Apache-2.0
//! Viewers are sent to a node by its name, where the cache speaks HTTPS with the provider's certificate, which is renewed without a new package.

use std::net::IpAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use netserv_lab::netns::{is_root, wait_until};
use netserv_lab::videosite::{Changes, FILM, Times, VideoSite};
use netserv_lab::website::noise;
use netserv_skips::skipped;

/// How long things may take on a busy machine, compiling above all.
const LONG: Duration = Duration::from_secs(90);
const TIMES: Times = Times { count: 3, lease_s: 10, idle_s: 60 };
const NAME: &str = "n1.edge.example.org";
/// As docs/apps/cdn.md says.
const SITE: [(&str, &str); 2] = [
    (
        "    \"~:\" \"[$netserv_address]\";\n    default $netserv_address;",
        "    default $netserv_node.edge.example.org;",
    ),
    ("return 302 http://", "return 302 https://"),
];

/// Goal: a redirect names the node, a DNS server could say where that is, and the cache there has the provider's certificate; a renewed one of
/// the same key comes by a reload of the agent, without a gap and with what is stored; one of another key changes nothing.
#[test]
fn a_node_has_a_name_and_a_certificate_that_is_renewed() {
    let test = "a_node_has_a_name_and_a_certificate_that_is_renewed";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    let mut site = VideoSite::up(None).unwrap();
    let dir = site.lab.dir().to_owned();
    let pem = |name: &str| dir.join(name);
    let keys = [pem("edge.key"), pem("other.key")];
    keys.iter().for_each(|key| openssl(&["ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", path(key)]));
    for (name, key, serial) in
        [("first.pem", &keys[0], "1"), ("second.pem", &keys[0], "2"), ("third.pem", &keys[1], "3")]
    {
        let subject = ["-subj", "/CN=edge", "-addext", "subjectAltName=DNS:*.edge.example.org", "-set_serial", serial];
        let file = pem(name);
        openssl(
            &[&["req", "-x509", "-new", "-days", "9", "-key", path(key), "-out", path(&file)], &subject[..]].concat(),
        );
    }
    let (names, chain) = (pem("names"), pem("chain.pem"));
    std::fs::copy(pem("first.pem"), &chain).unwrap();
    let tls = "listen = [\"tcp port 443\"]\ntls = { certificate = \"first.pem\", key = \"edge.key\" }\n";
    let package = site.package(tls).unwrap();
    let changes = Changes {
        tables: &format!("[names]\nfile = {names:?}\ndomain = \"edge.example.org\"\n"),
        rule: &format!("tls-chain = {chain:?}\n"),
        site: &SITE,
        ..Changes::default()
    };
    site.start_with(TIMES, &package, &changes).unwrap();
    std::fs::write(site.path("www").join(&FILM[1..]), noise(100_000)).unwrap();

    let (_, sent) = site.come("v1", TIMES, LONG).unwrap();
    assert_eq!(sent.to, format!("https://{NAME}{FILM}"));
    let address = named(&names).unwrap();
    assert!(site.module("n1").unwrap().addresses.contains(&address), "{address}");
    let (resolve, trusted) = (format!("{NAME}:443:{address}"), pem("trusted.pem"));
    let both = ["first.pem", "second.pem"].map(|name| std::fs::read_to_string(pem(name)).unwrap());
    std::fs::write(&trusted, both.concat()).unwrap();
    let visit = || site.get("v1", &sent.to, &["--resolve", &resolve, "--cacert", path(&trusted)]).unwrap();
    assert!(visit().cache.contains("stored"));
    let is_hit = || {
        let visit = visit();
        assert_eq!((visit.code, visit.bytes), (200, 100_000));
        visit.cache.contains("; hit")
    };
    assert!(wait_until(LONG, is_hit));
    let serial = || {
        let server = format!(
            "echo | openssl s_client -connect {address}:443 -servername {NAME} 2>&1 | openssl x509 -noout -serial"
        );
        let said = site.lab.command("v1", "sh").args(["-c", &server]).output().unwrap();
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(serial(), "serial=01");

    let renew = |name: &str| {
        std::fs::copy(site.path(name), &chain).unwrap();
        let socket = site.path("agent.sock");
        let mut netserv = Command::new(netserv_lab::netns::program("netserv").unwrap());
        let said = netserv.env("NETSERV_AGENT_SOCKET", socket).args(["agent", "reload"]).output().unwrap();
        assert!(String::from_utf8_lossy(&said.stdout).contains("video  renewed"), "{said:?}");
    };
    let digest = site.module("n1").unwrap().digest;
    renew("second.pem");
    let is_renewed = || {
        assert!(is_hit(), "what is stored stays");
        serial() == "serial=02"
    };
    assert!(wait_until(LONG, is_renewed), "{}", site.lab.log("sender", "agent"));
    assert_eq!(site.module("n1").unwrap().digest, digest, "it is the same package");
    renew("third.pem");
    let is_ailing = || site.agent().unwrap().deployments.iter().all(|one| one.health == "ailing");
    assert!(wait_until(LONG, is_ailing), "{}", site.lab.log("sender", "agent"));
    assert!(serial() == "serial=02" && is_hit(), "a certificate of another key is none");
    assert!(site.lab.log("sender", "agent").contains("`tls-chain` cannot be used"), "it is said why");
}

/// Returns the address that the names have for the node, of IPv4.
fn named(names: &Path) -> Option<IpAddr> {
    let text = std::fs::read_to_string(names).ok()?;
    let own = text.lines().filter_map(|line| line.strip_suffix(NAME)?.trim().parse().ok());
    own.into_iter().find(|address: &IpAddr| address.is_ipv4())
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn openssl(args: &[&str]) {
    let said = Command::new("openssl").args(args).output().unwrap();
    assert!(said.status.success(), "{said:?}");
}
