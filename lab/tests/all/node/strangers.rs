// SPDX-License-Identifier: Apache-2.0
//! Users whom no configuration names: grants of an issuer whom the operators trust, and of its holders.

use std::time::{Duration, Instant, SystemTime};

use crate::common::{Driver, Net, assert_nodes, assert_refused, eventually, net_with, request_as};
use netserv_authority::digest_of_grant;
use netserv_authority::grant::Grant;
use netserv_lab::node::{FILES_ALLOWED, LabUser};
use netserv_lab::patience::grown;
use netserv_lab::stranger::{Stranger, grant};
use netserv_model::api::RequestResult;
use netserv_model::request::{ModuleState, Outcome};
use netserv_model::{RefusalKind, UnixTime};

/// The operators' words for what strangers get.
pub(super) fn trust(issuer: &LabUser, prefixes: &str) -> String {
    format!(
        "{FILES_ALLOWED}\n[class.guest]\nmodules-max = 1\nports = [\"5060\"]\n[[issuer]]\nname = \"house\"\n\
         keys = [\"{}\"]\nprefixes = [{prefixes}]\nclass = \"guest\"\n",
        issuer.public
    )
}

pub(super) fn stranger(net: &Net, name: &str) -> Stranger {
    Stranger::new(&net.lab, name).unwrap()
}

/// Has a stranger ask for keep-alive with some evidence.
pub(super) fn set_up(net: &Net, who: &Stranger, filter: &str, evidence: &[&str]) -> RequestResult {
    who.set_up(&net.lab, "keep-alive", filter, evidence).unwrap()
}

pub(super) fn is_on(net: &Net, who: &Stranger, node: &str) -> bool {
    who.is_on(&net.lab, node).unwrap()
}

/// Goal: who has a grant, or a part of one, runs its module at each node that trusts the issuer, and nobody gets more than was granted; all of
/// it goes within a second when the grant ends, and when an operator takes its trust back; a restart keeps it. Method: real nodes and grants by the
/// command line, in both versions of IP.
#[test]
fn grants_let_strangers_in_and_out() {
    let Some(mut net) = net_with("grants_let_strangers_in_and_out", Driver::Afxdp, FILES_ALLOWED, &[]) else { return };
    let house = net.lab.user("house", &[]).unwrap();
    let [four, six] = [format!("{}/32", net.lab.v4("sender")), format!("{}/128", net.lab.v6("sender"))];
    let prefixes = format!("\"{four}\", \"{six}\"");
    for node in ["n1", "n2"] {
        net.lab.stop(node, "netservd").unwrap();
        net.lab.start_netservd(node, "node", std::slice::from_ref(&net.user), &trust(&house, &prefixes)).unwrap();
    }
    let both = format!("{four},{six}");
    let [provider, app, other] = ["provider", "app", "other"].map(|name| stranger(&net, name));
    let whole = grant(&net.lab, &house, &provider.key, None, &["--prefix", &both, "--delegations", "1"]).unwrap();
    let part = grant(&net.lab, &provider.key, &app.key, Some(&*whole), &["--prefix", &six, "--for", "1h"]).unwrap();
    assert!(grant(&net.lab, &app.key, &other.key, Some(&*part), &[]).is_err(), "it may not be passed on");
    let made_up = grant(&net.lab, &provider.key, &other.key, None, &["--prefix", &both]).unwrap();

    let [own_four, own_six] = [format!("udp dst {four} port 5060"), format!("udp dst {six} port 5060")];
    let is_installed = |outcome: &Outcome| matches!(outcome, Outcome::Installed { .. });
    let result = set_up(&net, &provider, &own_four, &["--grant", &whole]);
    assert_nodes(&result, is_installed);
    assert_nodes(&set_up(&net, &app, &own_six, &["--grant", &part]), is_installed);
    assert_refused(&set_up(&net, &app, &own_four, &["--grant", &part]), RefusalKind::PrefixNotAllowed);
    assert_refused(
        &set_up(&net, &app, &own_six.replace("5060", "5061"), &["--grant", &part]),
        RefusalKind::PortNotAllowed,
    );
    // Somebody else's grant, one of nobody's whom the operators know, and none.
    assert_refused(&set_up(&net, &other, &own_four, &["--grant", &whole]), RefusalKind::BadProof);
    assert_refused(&set_up(&net, &other, &own_four, &["--grant", &made_up]), RefusalKind::BadProof);
    let nobody = LabUser { name: other.user.to_string(), ..other.key.clone() };
    let removed = ["remove", "example.org/keep-alive", "--to", &net.lab.v4("receiver").to_string()].map(str::to_owned);
    let removed: Vec<&str> = removed.iter().map(String::as_str).collect();
    assert_refused(&request_as(&net.lab, &nobody, &removed), RefusalKind::UnknownUser);
    let wide = grant(&net.lab, &house, &other.key, None, &["--prefix", "10.0.0.0/8"]).unwrap();
    assert_refused(&set_up(&net, &other, &own_four, &["--grant", &wide]), RefusalKind::PrefixNotAllowed);

    net.lab.stop("n1", "netservd").unwrap();
    net.lab.restart_netservd("n1").unwrap();
    eventually("the strangers' modules are there after a restart", || {
        let modules = net.lab.modules("n1").unwrap().modules;
        is_on(&net, &provider, "n1")
            && is_on(&net, &app, "n1")
            && modules.iter().all(|status| status.state == ModuleState::Running)
    });

    let short = grant(&net.lab, &house, &other.key, None, &["--prefix", &both, "--for", "7s"]).unwrap();
    let (_, end) = Grant::parse(std::fs::read_to_string(&short).unwrap().trim_end()).unwrap().time();
    let asked = Instant::now();
    assert_nodes(&set_up(&net, &other, &own_four, &["--grant", &short]), is_installed);
    while SystemTime::now() < SystemTime::UNIX_EPOCH + Duration::from_millis(end.0) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let ended = Instant::now();
    eventually("what a grant gave goes with it", || ["n1", "n2"].iter().all(|node| !is_on(&net, &other, node)));
    assert!(ended.elapsed() < grown(Duration::from_secs(1)), "{:?}", ended.elapsed());
    assert!(asked.elapsed() > Duration::from_secs(5), "{:?}", asked.elapsed());
    assert_refused(&set_up(&net, &other, &own_four, &["--grant", &short]), RefusalKind::BadProof);

    let config = net.lab.dir().join("n1.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace(&house.public, &net.user.public)).unwrap();
    net.lab.netserv("n1", &["node", "reload"]).unwrap();
    eventually("an operator takes its trust back", || !is_on(&net, &provider, "n1") && !is_on(&net, &app, "n1"));
    assert!(is_on(&net, &provider, "n2"), "the other one does not");
    let to = net.lab.v4("receiver").to_string();
    let remove = ["remove", "example.org/keep-alive", "--to", &to, "--node", "n2"];
    let result = provider.request(&net.lab, &remove, &["--grant", &whole]).unwrap();
    assert!(result.nodes.iter().any(|node| node.outcome == Outcome::Removed), "{result:?}");
}

/// Goal: who runs a web server at an address runs its module for that address at nodes that ask it, in both versions of IP, and for nothing
/// else; nobody does by a proof that the address does not confirm. Method: nginx of Debian, by HTTP at the sender and by HTTPS alone at the
/// receiver, and proofs by the command line.
#[test]
fn an_address_lets_its_owner_in() {
    let Some(mut net) = net_with("an_address_lets_its_owner_in", Driver::Afxdp, FILES_ALLOWED, &[]) else { return };
    let trust =
        format!("{FILES_ALLOWED}\n[class.visitor]\nmodules-max = 2\n[admission]\naddress-class = \"visitor\"\n");
    for node in ["n1", "n2"] {
        net.lab.stop(node, "netservd").unwrap();
        net.lab.start_netservd(node, "node", std::slice::from_ref(&net.user), &trust).unwrap();
    }
    let www = net.lab.dir().join("www");
    let is_installed = |outcome: &Outcome| matches!(outcome, Outcome::Installed { .. });
    let prove = |net: &Net, who: &Stranger, address: &str, confirmed: bool| {
        who.proof(&net.lab, address, confirmed.then_some(&*www)).unwrap()
    };
    let set_up = |net: &Net, who: &Stranger, filter: &str, proof: &str| set_up(net, who, filter, &["--proof", proof]);
    let (four, six) = (net.lab.v4("sender").to_string(), net.lab.v6("sender").to_string());
    for (name, address, other) in [("four", &four, &six), ("six", &six, &four)] {
        let owner = stranger(&net, name);
        let unconfirmed = prove(&net, &owner, address, false);
        assert_refused(
            &set_up(&net, &owner, &format!("udp dst {address} port 5060"), &unconfirmed),
            RefusalKind::FetchFailed,
        );
        let proof = prove(&net, &owner, address, true);
        assert_nodes(&set_up(&net, &owner, &format!("udp dst {address} port 5060"), &proof), is_installed);
        assert_refused(
            &set_up(&net, &owner, &format!("udp dst {other} port 5060"), &proof),
            RefusalKind::PrefixNotAllowed,
        );
        // What lies there is for another random number.
        let another = prove(&net, &owner, other, false);
        assert_refused(&set_up(&net, &owner, &format!("udp dst {other} port 5060"), &another), RefusalKind::BadProof);
        assert!(is_on(&net, &owner, "n1") && is_on(&net, &owner, "n2"));
    }
    // The receiver speaks HTTPS only, with a certificate that is for another address.
    net.lab.serve_https("receiver").unwrap();
    for address in [net.lab.v4("receiver").to_string(), net.lab.v6("receiver").to_string()] {
        let owner = stranger(&net, if address.contains(':') { "tls-six" } else { "tls-four" });
        let filter = format!("udp dst {address} port 5060");
        let unconfirmed = prove(&net, &owner, &address, false);
        let refused = set_up(&net, &owner, &filter, &unconfirmed);
        assert_refused(&refused, RefusalKind::FetchFailed);
        assert_nodes(&set_up(&net, &owner, &filter, &prove(&net, &owner, &address, true)), is_installed);
    }
    // An operator wants a certificate for the address.
    let config = net.lab.dir().join("n1.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("address-class", "address-tls = \"require\"\naddress-class")).unwrap();
    net.lab.netserv("n1", &["node", "reload"]).unwrap();
    for machine in ["receiver", "sender"] {
        let (unsure, address) = (stranger(&net, &format!("unsure-{machine}")), net.lab.v4(machine).to_string());
        let result = set_up(&net, &unsure, &format!("dst {address}"), &prove(&net, &unsure, &address, true));
        assert!(is_installed(&result.nodes.last().unwrap().outcome), "n2 does not: {result:?}");
        let Outcome::Refused(refusal) = &result.nodes[0].outcome else { panic!("{result:?}") };
        assert!(refusal.detail.contains("https://"), "{refusal}");
    }
    std::fs::write(&config, text).unwrap();
    net.lab.netserv("n1", &["node", "reload"]).unwrap();
    // Nobody listens at the router, and a node does not ask itself.
    let nobody = stranger(&net, "nobody");
    for address in [net.lab.v4("r").to_string(), net.lab.v4("n2").to_string()] {
        let result = set_up(&net, &nobody, &format!("dst {address}"), &prove(&net, &nobody, &address, true));
        assert!(result.nodes.iter().all(|node| matches!(node.outcome, Outcome::Refused(_))), "{result:?}");
    }
    net.lab.stop("n1", "netservd").unwrap();
    net.lab.restart_netservd("n1").unwrap();
    eventually("the owners' modules are there after a restart", || net.lab.modules("n1").unwrap().modules.len() == 4);
}

/// Goal: whom the holder of its prefixes vouches for by a checklist runs its module at nodes with a cache of the RPKI, for those prefixes and no
/// others; a restart keeps it, and it goes when the holder's certificate is revoked. Method: a tree of the RPKI made here, and the command line.
#[test]
fn a_holder_lets_strangers_in_and_its_end_takes_them_out() {
    let test = "a_holder_lets_strangers_in_and_its_end_takes_them_out";
    let Some(mut net) = net_with(test, Driver::Afxdp, FILES_ALLOWED, &[]) else { return };
    let own: ipnet::IpNet = format!("{}/32", net.lab.v4("sender")).parse().unwrap();
    let other: ipnet::IpNet = format!("{}/32", net.lab.v4("receiver")).parse().unwrap();
    let since_1970 = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let mut tree = netserv_rpki_tree::Tree::new(UnixTime::from_secs(since_1970.as_secs()));
    let held = tree.certificate(&[own]);
    let holder = tree.authority(0, "holder", &held);
    let (cache, tal) = (net.lab.dir().join("rpki"), net.lab.dir().join("lab.tal"));
    std::fs::write(&tal, tree.locator()).unwrap();
    let trust = format!(
        "{FILES_ALLOWED}\n[class.guest]\nmodules-max = 1\n[admission]\nrpki-class = \"guest\"\n\
         [rpki]\ncache = {cache:?}\ntals = [{tal:?}]\n"
    );
    let [mine, wide, nobodys] = ["mine", "wide", "nobodys"].map(|name| stranger(&net, name));
    let issuer = net.lab.user("holder", &[]).unwrap();
    let evidence = |tree: &mut netserv_rpki_tree::Tree, who: &Stranger, prefix: &ipnet::IpNet| {
        let grant = grant(&net.lab, &issuer, &who.key, None, &["--prefix", &prefix.to_string()]).unwrap();
        let text = std::fs::read_to_string(&grant).unwrap();
        let checklist = tree.checklist(&[own], digest_of_grant(text.trim()));
        let file = net.lab.dir().join(format!("{}.sig", who.key.name));
        std::fs::write(&file, tree.sign(holder, &checklist)).unwrap();
        (grant, file.to_string_lossy().into_owned())
    };
    let (good, beyond) = (evidence(&mut tree, &mine, &own), evidence(&mut tree, &wide, &other));
    // A grant that no checklist names.
    let unnamed =
        (grant(&net.lab, &issuer, &nobodys.key, None, &["--prefix", &own.to_string()]).unwrap(), good.1.clone());
    netserv_rpki_tree::write(&tree.publish(), &cache).unwrap();
    for node in ["n1", "n2"] {
        net.lab.stop(node, "netservd").unwrap();
        net.lab.start_netservd(node, "node", std::slice::from_ref(&net.user), &trust).unwrap();
    }
    let set_up = |net: &Net, who: &Stranger, (grant, checklist): &(String, String), prefix: &ipnet::IpNet| {
        let evidence = ["--grant", grant, "--checklist", checklist];
        set_up(net, who, &format!("udp dst {prefix} port 5060"), &evidence)
    };
    let is_installed = |outcome: &Outcome| matches!(outcome, Outcome::Installed { .. });
    assert_nodes(&set_up(&net, &mine, &good, &own), is_installed);
    assert_refused(&set_up(&net, &mine, &good, &other), RefusalKind::PrefixNotAllowed);
    assert_refused(&set_up(&net, &wide, &beyond, &other), RefusalKind::PrefixNotAllowed);
    assert_refused(&set_up(&net, &nobodys, &unnamed, &own), RefusalKind::BadProof);

    net.lab.stop("n1", "netservd").unwrap();
    net.lab.restart_netservd("n1").unwrap();
    eventually("the stranger's module is there after a restart", || is_on(&net, &mine, "n1"));
    let shown = net.lab.netserv("n1", &["node", "user", "show", mine.user.as_str()]).unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("checklist sha256:") && shown.contains("example.org/keep-alive@"), "{shown}");

    // The relying party has not run for two days; then it does. The module comes back, also to a node that was restarted meanwhile, and what
    // it kept is not forgotten.
    let has_run = |days: u64| {
        let then = std::time::SystemTime::now() - Duration::from_secs(days * 86_400);
        let folders = [cache.clone(), cache.join("ta/lab")];
        folders.iter().for_each(|folder| std::fs::File::open(folder).unwrap().set_modified(then).unwrap());
    };
    has_run(2);
    for node in ["n1", "n2"] {
        net.lab.netserv(node, &["node", "reload"]).unwrap();
    }
    eventually("the cache is too old", || !is_on(&net, &mine, "n1") && !is_on(&net, &mine, "n2"));
    assert_refused(&set_up(&net, &mine, &good, &own), RefusalKind::FetchFailed);
    net.lab.stop("n1", "netservd").unwrap();
    net.lab.restart_netservd("n1").unwrap();
    assert!(!is_on(&net, &mine, "n1"), "it waits for the relying party");
    has_run(0);
    for node in ["n1", "n2"] {
        net.lab.netserv(node, &["node", "reload"]).unwrap();
    }
    eventually("it is there again", || is_on(&net, &mine, "n1") && is_on(&net, &mine, "n2"));
    assert_nodes(&set_up(&net, &mine, &good, &own), Outcome::is_ok);
    let audit = net.lab.netserv("n1", &["node", "audit", "--user", mine.user.as_str()]).unwrap();
    let audit = String::from_utf8(audit.stdout).unwrap();
    assert!(audit.contains("REVOKE") && !audit.contains("FORGET"), "{audit}");

    tree.revoke(holder);
    netserv_rpki_tree::write(&tree.publish(), &cache).unwrap();
    for node in ["n1", "n2"] {
        net.lab.netserv(node, &["node", "reload"]).unwrap();
    }
    eventually("what the holder vouched for goes with it", || !is_on(&net, &mine, "n1") && !is_on(&net, &mine, "n2"));
    let metrics = net.lab.metrics("n1").unwrap();
    assert!(metrics.contains("netserv_checklist_checks_total{outcome=\"denied\"} 1\n"), "{metrics}");
    assert!(metrics.contains("netserv_checklist_check_seconds_total "), "{metrics}");
    assert_refused(&set_up(&net, &mine, &good, &own), RefusalKind::BadProof);
}
