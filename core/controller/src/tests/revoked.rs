// SPDX-License-Identifier: Apache-2.0
//! Grants that their issuer takes back.

use std::time::Duration;

use netserv_authority::digest_of_grant;
use netserv_authority::grant::user_of;
use netserv_authority::revocations::Revocations;
use netserv_model::effect::{EffectOutcome, InstalledRecord, Job, ListAnswer, StoreJob, Stored, StoredList};
use netserv_model::policy::{NodePolicy, RevocationSource};
use netserv_model::request::{Body, Outcome};
use netserv_model::{Refusal, RefusalKind};

use super::script::{Node, START, assert_refused, key, public, setup};
use super::strangers::{grant, long, open_policy, request, set_up};
use crate::limits::LIST_ANSWER_TIME_MAX;

const URL: &str = "https://lists.example/house";

/// The policy with `house`, whose lists are a day old at most.
fn with_lists() -> NodePolicy {
    let mut policy = open_policy();
    policy.issuers[0].revocations = Some(source(URL));
    policy
}

fn source(url: &str) -> RevocationSource {
    RevocationSource { url: url.to_owned(), every: Duration::from_secs(30), age_max: Duration::from_secs(86_400) }
}

/// A list of `house` that takes these grants back, made when the script starts.
fn list(number: u64, grants: &[&str]) -> String {
    list_by("house", number, grants)
}

fn list_by(issuer: &str, number: u64, grants: &[&str]) -> String {
    let (grants, keys) = (grants.iter().map(|text| digest_of_grant(text)).collect(), Default::default());
    let iat = START.wall.0 / 1000;
    Revocations { iss: public(issuer), iat, exp: iat + 7 * 86_400, number, grants, keys }.sign(&key(issuer))
}

fn answer(text: String) -> EffectOutcome {
    EffectOutcome::Listed(Some(ListAnswer { text, etag: Some("\"e\"".to_owned()) }))
}

fn away() -> EffectOutcome {
    EffectOutcome::Refused(Refusal::new(RefusalKind::FetchFailed, "away"))
}

/// A node that has an empty list of `house`.
fn listening() -> Node {
    let mut node = Node::with(with_lists());
    node.sleep_ms(0);
    node.listed(URL, answer(list(1, &[])));
    assert_eq!(node.commands(), [format!("ask {URL} -"), "keep-list house".to_owned(), "listed house 1".to_owned()]);
    node
}

/// Lets time pass until the list is asked for; returns how long that was.
fn until_asked(node: &mut Node) -> Duration {
    let start = node.now.instant;
    while node.asks(URL) == 0 {
        node.sleep_ms(10);
    }
    node.now.instant.since(start)
}

fn put(job: &Job) -> Option<InstalledRecord> {
    if let Job::Store(StoreJob::Put(record)) = job { Some((**record).clone()) } else { None }
}

/// Goal: what an issuer takes back is gone at once when the node hears of it, within half a minute, its requester is told why, and what others have stays.
/// Method: two strangers of one issuer, and a list that names the grant of one.
#[test]
fn a_stranger_goes_with_its_grant_and_others_stay() {
    let mut node = listening();
    let (evil, good) = (grant("eve", "10.2.0.0/24", 9000), grant("bob", "10.2.0.0/24", 9000));
    set_up(&mut node, "eve", &long("m@1.0.0"), Some(evil.clone()));
    set_up(&mut node, "bob", &long("m@1.0.0"), Some(good));
    // Within the second in which the list came, another one may have come of the same name.
    for (asked, same) in [("-", answer(list(1, &[]))), ("\"e\"", EffectOutcome::Listed(None))] {
        assert!(until_asked(&mut node) <= Duration::from_secs(30));
        assert_eq!(node.commands(), [format!("ask {URL} {asked}")]);
        node.listed(URL, same);
        assert_eq!(node.commands(), [""; 0], "nothing changed");
    }
    until_asked(&mut node);
    node.listed(URL, answer(list(2, &[&evil])));
    let eve = user_of(&public("eve"));
    let done = node.commands();
    for expected in ["listed house 2", "keep-list house", "unfilter 0", &format!("revoked {eve} m@1.0.0 bad-proof")] {
        assert!(done.iter().any(|command| command == expected), "{expected}: {done:?}");
    }
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
    let [told] = &node.told[..] else { panic!("{:?}", node.told) };
    assert!(told.contains("lease-ended") && told.contains("list 2 of") && told.contains("takes back grant"), "{told}");
    let again = request(&node, "eve", Body::from(long("m@1.0.0")), Some(evil));
    assert_refused(&node.ask(again), RefusalKind::BadProof, "ask for another grant");
    let other = set_up(&mut node, "eve", &long("m@1.0.0"), Some(grant("eve", "10.2.0.0/24", 9001)));
    assert!(matches!(other, Outcome::Installed { .. }), "{other:?}");
}

/// Goal: requests under way end, too. Method: the list comes while a package is on its way.
#[test]
fn a_request_under_way_ends_with_its_grant() {
    let mut node = listening();
    let evil = grant("eve", "10.2.0.0/24", 9000);
    let asked = request(&node, "eve", Body::from(long("m@1.0.0")), Some(evil.clone()));
    let id = node.send(asked);
    node.commands();
    until_asked(&mut node);
    node.listed(URL, answer(list(2, &[&evil])));
    node.commands();
    assert_refused(&node.reports[&id], RefusalKind::BadProof, "takes back grant");
}

/// Goal: a server that fails takes nothing away while the list is good, and everything then; that is counted, and said once. Method: it is away, gives
/// an older list, a page, and one by another key, for a day.
#[test]
fn without_a_list_rights_end_when_the_last_one_is_too_old() {
    let mut node = listening();
    set_up(&mut node, "eve", &long("m@1.0.0"), Some(grant("eve", "10.2.0.0/24", 200_000)));
    let answers =
        [away(), away(), answer(list(0, &[])), answer("<html>".to_owned()), answer(list_by("mallory", 9, &[]))];
    let said = answers.map(|answer| {
        until_asked(&mut node);
        node.commands();
        node.listed(URL, answer);
        node.commands().concat()
    });
    let [away_once, bad] = ["not-listed house fetch-failed", "not-listed house bad-proof"];
    assert_eq!(said, [away_once, "", bad, bad, bad]);
    let [known] = &node.controller.revocations(node.now)[..] else { panic!("there is one") };
    assert_eq!((known.failures, known.list.as_ref().unwrap().number), (5, 1));
    assert!(known.failure.as_ref().unwrap().contains("no key of the issuer"), "{known:?}");
    assert!(known.asked_s.unwrap() > 100, "{known:?}");
    let day_s = 86_400;
    while node.now.instant.since(START.instant).as_secs() < day_s - 290 {
        until_asked(&mut node);
        node.listed(URL, away());
        node.sleep_ms(250_000);
        set_up(&mut node, "eve", &long("m@1.0.0"), None);
    }
    let left = START.instant + Duration::from_secs(day_s);
    node.sleep(left.since(node.now.instant) - Duration::from_millis(1));
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
    node.sleep_ms(1);
    node.commands();
    assert_eq!(node.states(), [""; 0]);
    assert!(node.told.last().unwrap().contains("the revocation list was good until"), "{:?}", node.told);
}

/// Goal: a restart undoes nothing that was taken back, and takes nothing away. Method: a node starts with what it kept: with the list, with none, and with
/// a server that plays an older one back.
#[test]
fn the_newest_list_is_there_after_a_restart() {
    let mut node = listening();
    let evil = grant("eve", "10.2.0.0/24", 9000);
    set_up(&mut node, "eve", &long("m@1.0.0"), Some(evil.clone()));
    let record = node.jobs.iter().rev().find_map(put).unwrap();
    let restart = |lists: &[String]| {
        let mut node = Node::with(with_lists());
        let lists = lists.iter().map(|text| StoredList { issuer: "house".to_owned(), text: text.clone() }).collect();
        let installed = vec![record.clone()];
        node.controller.restore(node.now, Stored { installed, lists, ..Stored::default() });
        node.sleep_ms(0);
        assert_eq!(node.asks(URL), 1, "it asks at once");
        node
    };
    let mut again = restart(&[list(2, &[&evil])]);
    assert_eq!(again.states(), [""; 0]);
    again.commands();
    again.listed(URL, answer(list(1, &[])));
    assert_eq!(again.commands(), ["not-listed house bad-proof"], "an older one is played back");
    let asked = request(&again, "eve", Body::from(setup("m@1.0.0")), Some(evil.clone()));
    assert_refused(&again.ask(asked), RefusalKind::BadProof, "takes back grant");
    for (lists, came, stays) in [
        (vec![list(1, &[])], away(), true),
        (vec![], answer(list(1, &[])), true),
        (vec![], answer(list(2, &[&evil])), false),
        (vec![], away(), false),
        (vec!["damaged".to_owned()], away(), false),
    ] {
        let mut again = restart(&lists);
        assert_eq!(again.states().len(), 1, "it waits for the list: {lists:?}");
        let new = grant("bob", "10.2.0.0/24", 9000);
        let new = request(&again, "bob", Body::from(setup("m@1.0.0")), Some(new));
        if lists.len() != 1 || lists[0] == "damaged" {
            assert_refused(&again.ask(new), RefusalKind::BadProof, "no revocation list");
        }
        again.listed(URL, came);
        again.commands();
        assert_eq!(again.states().len(), usize::from(stays), "{lists:?}");
    }
}

#[test]
fn a_reload_has_lists_asked_for_and_takes_nothing_away_before() {
    for (came, stays) in [(answer(list(1, &[])), true), (away(), false)] {
        let mut node = Node::with(open_policy());
        set_up(&mut node, "eve", &long("m@1.0.0"), Some(grant("eve", "10.2.0.0/24", 9000)));
        node.policy = with_lists();
        node.apply_policy();
        node.sleep_ms(0);
        assert_eq!(node.states().len(), 1);
        node.listed(URL, came);
        node.commands();
        assert_eq!(node.states().len(), usize::from(stays));
    }
    // Another URL is asked at once, and what the earlier one says late is nothing.
    let mut node = listening();
    until_asked(&mut node);
    let other = "https://other.example/house";
    node.policy.issuers[0].revocations = Some(source(other));
    node.apply_policy();
    node.sleep_ms(0);
    assert_eq!(node.asks(other), 1);
    node.listed(URL, answer(list(9, &[])));
    assert_eq!(node.controller.revocations(node.now)[0].list.as_ref().unwrap().number, 1);
    // Without lists, nothing is left of them.
    node.policy = open_policy();
    node.apply_policy();
    node.listed(other, answer(list(9, &[])));
    node.sleep_ms(60_000);
    assert_eq!((node.asks(other), node.controller.revocations(node.now)), (0, Vec::new()));
}

/// Goal: an issuer's old key goes, and its users stay. Method: the operator takes the key out by which the list in force is signed, while the node asks
/// whether there is another list.
#[test]
fn a_key_that_goes_has_the_list_asked_for_again() {
    let mut policy = with_lists();
    policy.issuers[0].keys.push(public("old"));
    let mut node = Node::with(policy);
    for _ in 0..2 {
        until_asked(&mut node);
        node.listed(URL, answer(list_by("old", 1, &[])));
    }
    set_up(&mut node, "eve", &long("m@1.0.0"), Some(grant("eve", "10.2.0.0/24", 9000)));
    until_asked(&mut node);
    assert_eq!(node.commands(), [format!("ask {URL} \"e\"")]);
    node.policy.issuers[0].keys.pop();
    node.apply_policy();
    node.sleep_ms(0);
    assert_eq!(node.commands(), [format!("ask {URL} -")]);
    node.listed(URL, EffectOutcome::Listed(None));
    assert_eq!(node.states().len(), 1, "that is about the old list");
    node.listed(URL, answer(list(1, &[])));
    node.commands();
    assert_eq!(node.states().len(), 1);
}

/// Goal: a server that does not answer holds up no other's list, and is asked once at a time. Method: two issuers, of which one's server is silent.
#[test]
fn a_silent_server_holds_up_nobody() {
    let mut policy = with_lists();
    let silent = "https://silent.example/";
    let mut second = policy.issuers[0].clone();
    (second.name, second.keys, second.revocations) =
        ("second".to_owned(), vec![public("second")], Some(source(silent)));
    policy.issuers.push(second);
    let mut node = Node::with(policy);
    for number in 1..5 {
        until_asked(&mut node);
        node.listed(URL, answer(list(number, &[])));
        assert_eq!(node.asks(silent), 1);
    }
    let [house, second] = &node.controller.revocations(node.now)[..] else { panic!("there are two") };
    assert_eq!((house.list.as_ref().unwrap().number, house.failures), (4, 0));
    assert!(second.failures >= 1 && second.list.is_none(), "{second:?}");
    assert_eq!(second.failure.as_deref(), Some("fetch-failed: the server does not answer"));
    assert!(LIST_ANSWER_TIME_MAX < Duration::from_secs(27), "it counts by the next time");
    node.commands();
    node.listed(silent, answer(list_by("second", 1, &[])));
    assert_eq!(node.commands(), ["keep-list second", "listed second 1"]);
}

/// Goal: a full disk keeps nothing from being taken back. Method: the list cannot be kept.
#[test]
fn a_list_that_cannot_be_kept_is_in_force() {
    let mut policy = with_lists();
    policy.issuers[0].name = "full-disk".to_owned();
    let mut node = Node::with(policy);
    node.sleep_ms(0);
    node.listed(URL, answer(list(1, &[])));
    let done = node.commands();
    assert_eq!(done[1..], ["keep-list full-disk", "listed full-disk 1", "not-listed full-disk node-failed"]);
    assert_eq!(node.controller.counters().store_failures, 1);
    let lease = set_up(&mut node, "eve", &long("m@1.0.0"), Some(grant("eve", "10.2.0.0/24", 9000)));
    assert!(matches!(lease, Outcome::Installed { .. }), "{lease:?}");
}

/// Goal: a clock that is wrong by a day keeps nothing from being taken back; one that is too late ends rights, as no list is known that is good
/// then. Method: it is set while a stranger has a module.
#[test]
fn a_clock_that_is_set_keeps_no_grant_in_force() {
    let evil = grant("eve", "10.2.0.0/24", 9_000_000);
    let day_ms = 86_400_000;
    for late in [false, true] {
        let mut node = listening();
        set_up(&mut node, "eve", &long("m@1.0.0"), Some(evil.clone()));
        node.now.wall.0 = if late { node.now.wall.0 + day_ms } else { node.now.wall.0 - day_ms };
        node.sleep_ms(30_000);
        node.commands();
        assert_eq!(node.states().len(), usize::from(!late));
        until_asked(&mut node);
        node.listed(URL, answer(list(2, &[&evil])));
        node.commands();
        assert_eq!(node.states(), [""; 0]);
    }
}

/// Goal: nodes do not ask all at once, and none asks later than it should. Method: the times at which some do.
#[test]
fn nodes_ask_at_different_times() {
    let times = |name: &str| {
        let mut node = Node::with(NodePolicy { node: name.parse().unwrap(), ..with_lists() });
        let mut ask = || {
            let time = until_asked(&mut node);
            node.listed(URL, answer(list(1, &[])));
            time
        };
        (0..6).map(|_| ask()).skip(1).collect::<Vec<_>>()
    };
    let (one, other) = (times("n1"), times("n2"));
    let least = Duration::from_millis(26_900);
    assert!(one.iter().chain(&other).all(|time| (least..=Duration::from_secs(30)).contains(time)), "{one:?} {other:?}");
    assert!(one != other && one[0] != one[1], "{one:?} {other:?}");
}

/// Goal: a host, which runs no modules, asks for nothing.
#[test]
fn a_host_asks_for_no_lists() {
    let mut node = Node::with(NodePolicy { host_only: true, ..with_lists() });
    node.sleep_ms(60_000);
    assert_eq!(node.asks(URL), 0);
}
