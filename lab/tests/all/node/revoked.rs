// SPDX-License-Identifier: Apache-2.0
//! Grants that their issuer takes back, while their users' modules run.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::common::{Driver, Net, assert_nodes, assert_refused, eventually, net_with};
use crate::node::strangers::{is_on, set_up, stranger, trust};
use netserv_lab::node::{FILES_ALLOWED, LabUser, cli};
use netserv_lab::patience::grown;
use netserv_lab::stranger::grant;
use netserv_model::RefusalKind;
use netserv_model::api::RevocationInfo;
use netserv_model::request::Outcome;

/// Seconds until the nodes ask for the list again.
const EVERY_S: u64 = 3;

/// Goal: what an issuer takes back is gone at every node soon, with its filters, and the requester is told why; what its other users have stays; a restart
/// and an older list change nothing. Method: real nodes and nginx of Debian, with lists by the command line.
#[test]
fn a_module_goes_when_its_grant_is_taken_back() {
    let name = "a_module_goes_when_its_grant_is_taken_back";
    let Some(mut net) = net_with(name, Driver::Afxdp, FILES_ALLOWED, &[]) else { return };
    let house = net.lab.user("house", &[]).unwrap();
    let four = format!("{}/32", net.lab.v4("sender"));
    let url = format!("http://{}/house.jws", net.lab.v4("sender"));
    let lists = format!("revocations = \"{url}\"\nrevocations-every-s = {EVERY_S}\n");
    let first = revoke(&net, &house, &[]);
    for node in ["n1", "n2"] {
        net.lab.stop(node, "netservd").unwrap();
        let config = trust(&house, &format!("\"{four}\"")) + &lists;
        net.lab.start_netservd(node, "node", std::slice::from_ref(&net.user), &config).unwrap();
    }
    eventually("the nodes have the list", || ["n1", "n2"].iter().all(|node| number(&net, node) == Some(1)));
    let [evil, good] = ["evil", "good"].map(|name| stranger(&net, name));
    let [evils, goods] =
        [&evil, &good].map(|who| grant(&net.lab, &house, &who.key, None, &["--prefix", &four]).unwrap());
    let filter = format!("udp dst {four} port 5060");
    for (who, grant) in [(&evil, &evils), (&good, &goods)] {
        assert_nodes(&set_up(&net, who, &filter, &["--grant", grant]), |outcome| {
            matches!(outcome, Outcome::Installed { .. })
        });
    }

    revoke(&net, &house, &[&evils]);
    let taken = Instant::now();
    eventually("it is gone", || ["n1", "n2"].iter().all(|node| !is_on(&net, &evil, node)));
    assert!(taken.elapsed() < grown(Duration::from_secs(EVERY_S + 10)), "{:?}", taken.elapsed());
    assert!(["n1", "n2"].iter().all(|node| is_on(&net, &good, node)), "the other one stays");
    let log = |machine: &str| {
        let output = net.lab.netserv(machine, &["node", "logs"]).unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let is_told =
        |node: &str| log("sender").lines().any(|line| line.contains("takes back grant") && line.contains(node));
    eventually("the requester is told by each node", || is_told("n1") && is_told("n2"));
    assert_refused(&set_up(&net, &evil, &filter, &["--grant", &evils]), RefusalKind::BadProof);
    let metrics = net.lab.metrics("n1").unwrap();
    for line in
        ["netserv_revocation_list_number{issuer=\"house\"} 2", "netserv_controller_events_total{event=\"revoked\"} 1"]
    {
        assert!(metrics.contains(line), "{metrics}");
    }

    // Somebody plays the older list back, before and after a restart.
    std::fs::write(list_path(&net), first).unwrap();
    net.lab.stop("n1", "netservd").unwrap();
    net.lab.restart_netservd("n1").unwrap();
    let is_refused = |node: &str| {
        let failure = known(&net, node).failure.unwrap_or_default();
        failure.contains("number 1, after another one with number 2")
    };
    eventually("the older list is refused", || is_refused("n1") && is_refused("n2"));
    eventually("the other one is there after the restart", || is_on(&net, &good, "n1"));
    assert_eq!(number(&net, "n1"), Some(2));
    assert_refused(&set_up(&net, &evil, &filter, &["--grant", &evils]), RefusalKind::BadProof);
}

/// Makes the next list, with grants; returns its text.
fn revoke(net: &Net, by: &LabUser, grants: &[&str]) -> String {
    let (list, key) = (list_path(net), by.key.to_string_lossy().into_owned());
    let text = list.to_string_lossy().into_owned();
    cli(&[&["grant", "revoke", "--key", &key, "--list", &text], grants].concat()).unwrap();
    std::fs::read_to_string(list).unwrap()
}

fn list_path(net: &Net) -> PathBuf {
    net.lab.dir().join("www/house.jws")
}

fn known(net: &Net, node: &str) -> RevocationInfo {
    net.lab.info(node).unwrap().revocations.into_iter().next().unwrap()
}

fn number(net: &Net, node: &str) -> Option<u64> {
    known(net, node).list.map(|list| list.number)
}
