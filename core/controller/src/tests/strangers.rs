// SPDX-License-Identifier: Apache-2.0
//! Users whom the configuration does not name, and whose rights are grants.

use std::collections::BTreeMap;
use std::time::Duration;

use ed25519_dalek::SigningKey;
use netserv_authority::grant::{Grant, user_of};
use netserv_authority::{digest_of, digest_of_grant};
use netserv_model::audit::Proven;
use netserv_model::effect::{EffectOutcome, InstalledRecord, Job, StoreJob, WorkerJob, WorkerNews};
use netserv_model::evidence::{AddressProof, Checklist, Holder};
use netserv_model::limits::REQUESTS_PENDING_MAX;
use netserv_model::policy::{AddressTls, Class, ContainerLimits, Issuer, NodePolicy, UserPolicy};
use netserv_model::request::{Ask, Body, Outcome, Probe, Remove, Request, Setup};
use netserv_model::{Digest, Filter, Flavour, Nonce, PublicKey, Refusal, RefusalKind, SessionId, WorkerId};
use sha2::{Digest as _, Sha256};

use super::script::{
    Node, START, assert_refused, commands, key, manifest, name, policy, public, setup, sign, user, user_policy,
};
use crate::limits::{EPOCHS_REMEMBERED_MAX, PROOFS_MAX, PROOFS_OF_PEERS_MAX, PROOFS_OF_SITE_MAX, REMEMBERED_USERS_MAX};

/// A policy that lets `house` vouch for users with parts of 10.2.0.0/15.
pub(super) fn open_policy() -> NodePolicy {
    let mut policy = policy();
    let rights = UserPolicy { keys: Vec::new(), prefixes: Vec::new(), modules_max: 2, ..user_policy("x", "::/0") };
    let container = ContainerLimits { cpu_permille: 200, ..rights.container };
    let rights = UserPolicy { container, ..rights };
    let class = Class { users_max: 10_000, prefixes_max: 2, lease_max: Some(Duration::from_secs(300)), rights };
    policy.classes.insert("guest".to_owned(), class);
    let prefixes = vec!["10.2.0.0/15".parse().unwrap()];
    let keys = vec![public("house")];
    let house = Issuer { name: "house".to_owned(), keys, prefixes, class: "guest".to_owned(), revocations: None };
    policy.issuers.push(house);
    policy
}

pub(super) fn grant(to: &str, prefix: &str, seconds: u64) -> String {
    let now = START.wall.0 / 1000;
    let grant = Grant {
        iss: public("house"),
        sub: public(to),
        nbf: now,
        exp: now + seconds,
        prefixes: vec![prefix.parse().unwrap()],
        ports: Vec::new(),
        modules_max: None,
        delegations: 0,
    };
    grant.sign(&key("house"))
}

/// Returns a request of a stranger's with a grant, or without any.
pub(super) fn request(node: &Node, who: &str, body: Body, grant: Option<String>) -> Request {
    let request = node.request(who, body);
    let user = user_of(&public(who));
    sign(Request { user: Some(user), grants: grant.into_iter().collect(), ..request }, &key(who))
}

pub(super) fn set_up(node: &mut Node, who: &str, asked: &Setup, grant: Option<String>) -> Outcome {
    let request = request(node, who, Body::from(asked.clone()), grant);
    let id = node.send(request);
    node.carry_out(&manifest(asked));
    node.reports[&id].outcome.clone()
}

pub(super) fn long(module: &str) -> Setup {
    Setup { ttl: Duration::from_secs(3600), ..setup(module) }
}

#[test]
fn a_stranger_runs_what_its_grant_allows_until_it_ends() {
    let mut node = Node::with(open_policy());
    let inside = grant("eve", "10.2.0.0/24", 200);
    let lease = set_up(&mut node, "eve", &long("m@1.0.0"), Some(inside.clone()));
    assert_eq!(lease, Outcome::Installed { lease_s: 200 }, "a lease is no longer than the grant");
    let wide = Setup { filters: vec!["dst 10.2.1.1".parse().unwrap()], ..long("o@1.0.0") };
    let Outcome::Refused(refusal) = set_up(&mut node, "eve", &wide, Some(inside.clone())) else {
        panic!("it is allowed")
    };
    assert_eq!(refusal.kind, RefusalKind::PrefixNotAllowed);
    let remedy =
        format!("grant of house {}: for more, have {} sign another grant", digest_of_grant(&inside), public("house"));
    assert!(refusal.detail.ends_with(&remedy), "{refusal:?}");
    let probe = request(&node, "eve", Body::Probe(Probe { ask: vec![Ask::Policy, Ask::Modules] }), None);
    let report = node.ask(probe);
    assert_eq!(report.policy.unwrap().prefixes, ["10.2.0.0/24"]);
    assert_eq!(report.modules.len(), 1);
    node.sleep_ms(199_999);
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
    node.sleep_ms(1);
    let gone = format!("forget-user {}", user_of(&public("eve")));
    assert!(
        node.commands().contains(&gone) || {
            node.sleep_ms(60_000);
            node.commands().contains(&gone)
        }
    );
    assert_eq!(node.states(), [""; 0]);
    assert!(
        node.told.iter().any(|told| told.contains("lease-ended") && told.contains("it ended at")),
        "{:?}",
        node.told
    );
    let again = request(&node, "eve", Body::from(setup("m@1.0.0")), None);
    assert_refused(&node.ask(again), RefusalKind::UnknownUser, "no user");
}

#[test]
fn the_classes_lease_holds_and_a_newer_grant_prolongs() {
    let mut node = Node::with(open_policy());
    let lease = set_up(&mut node, "eve", &long("m@1.0.0"), Some(grant("eve", "10.2.0.0/24", 1000)));
    assert_eq!(lease, Outcome::Installed { lease_s: 300 });
    node.sleep_ms(250_000);
    let lease = set_up(&mut node, "eve", &long("m@1.0.0"), Some(grant("eve", "10.2.0.0/24", 400)));
    assert_eq!(lease, Outcome::Refreshed { lease_s: 300 }, "a grant that ends earlier takes nothing away");
    node.sleep_ms(250_000);
    set_up(&mut node, "eve", &long("m@1.0.0"), Some(grant("eve", "10.2.0.0/24", 2000)));
    node.sleep_ms(250_000);
    set_up(&mut node, "eve", &long("m@1.0.0"), None);
    node.sleep_ms(290_000);
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
}

#[test]
fn a_stranger_is_there_after_a_restart_as_long_as_its_grant_holds() {
    let mut node = Node::with(open_policy());
    set_up(&mut node, "eve", &long("m@1.0.0"), Some(grant("eve", "10.2.0.0/24", 200)));
    let put = |job: &Job| if let Job::Store(StoreJob::Put(record)) = job { Some((**record).clone()) } else { None };
    let stored = node.jobs.iter().rev().find_map(put).unwrap();
    assert!(stored.evidence.is_some());
    let lease_until = START.wall + Duration::from_secs(250);
    let sessions = Vec::new();
    let stored = InstalledRecord { lease_until, sessions, ..stored };
    let restart = |late: u64, policy: NodePolicy| {
        let mut node = Node::with(policy);
        node.now = node.now + Duration::from_secs(late);
        node.controller.restore(node.now, vec![stored.clone()]);
        node
    };
    let mut again = restart(100, open_policy());
    again.carry_out(&manifest(&setup("m@1.0.0")));
    assert_eq!(again.states(), ["m@1.0.0 Running"]);
    again.sleep_ms(100_000);
    assert_eq!(again.states(), [""; 0], "the grant has ended");
    assert_eq!(restart(201, open_policy()).states(), [""; 0]);
    assert_eq!(restart(100, policy()).states(), [""; 0], "nobody trusts the issuer");
}

#[test]
fn what_an_issuer_vouched_for_goes_with_the_operators_trust() {
    let mut node = Node::with(open_policy());
    set_up(&mut node, "eve", &long("m@1.0.0"), Some(grant("eve", "10.2.0.0/24", 2000)));
    node.policy.issuers.clear();
    node.apply_policy();
    assert!(node.commands().iter().any(|command| command.starts_with("revoked k-")));
    assert_eq!(node.states(), [""; 0]);
    assert!(node.told.iter().any(|told| told.contains("takes no grants of")), "{:?}", node.told);
}

#[test]
fn containers_are_held_to_what_a_proof_gives_while_it_does() {
    let mut policy = open_policy();
    let listen: Filter = "tcp port 80".parse().unwrap();
    policy.container_prefixes = vec!["192.0.2.0/24".parse().unwrap()];
    policy.classes.get_mut("guest").unwrap().rights.listen = vec![listen];
    let mut node = Node::with(policy);
    set_up(&mut node, "eve", &long("m@1.0.0"), Some(grant("eve", "10.2.0.0/24", 200)));
    let plan = |node: &Node| {
        let plans = node.jobs.iter().rev();
        plans.filter_map(|job| if let Job::Addresses(plan) = job { Some(plan.users.clone()) } else { None }).next()
    };
    assert!(plan(&node).unwrap().contains_key(&user_of(&public("eve"))), "it gets an address");
    set_up(&mut node, "eve", &long("m@1.0.0"), Some(grant("eve", "10.2.0.0/16", 250)));
    let permits = |node: &Node| {
        let jobs = node.jobs.iter().rev();
        jobs.filter_map(|job| if let Job::Permit(permits) = job { Some((**permits).clone()) } else { None }).next()
    };
    assert_eq!(permits(&node).unwrap().prefixes, ["10.2.0.0/16".parse().unwrap()], "it is another grant's");
    node.sleep_ms(250_000);
    let stop = format!("stop {}", user_of(&public("eve")));
    assert!(node.commands().contains(&stop), "nothing is left to be held");
    assert!(!plan(&node).unwrap().contains_key(&user_of(&public("eve"))));
}

#[test]
fn a_stranger_has_its_own_modules_only() {
    let mut node = Node::with(open_policy());
    node.install(setup("m@1.0.0"));
    set_up(&mut node, "eve", &long("m@1.0.0"), Some(grant("eve", "10.2.0.0/24", 200)));
    set_up(&mut node, "mallory", &long("m@1.0.0"), Some(grant("mallory", "10.2.0.0/24", 200)));
    assert_eq!(node.states().len(), 3);
    let all = Body::Remove(Remove { module: name("m"), force: false, all: true, epoch: None });
    let remove = request(&node, "eve", all, None);
    let id = node.send(remove);
    node.commands();
    assert_eq!(node.reports[&id].outcome, Outcome::Removed);
    assert_eq!(node.states().len(), 2);
}

/// Goal: strangers make the node remember no more than so much. Method: each asks once, and a late one while all are remembered.
#[test]
fn what_is_remembered_of_strangers_is_bounded() {
    let mut node = Node::with(open_policy());
    for number in 0..REMEMBERED_USERS_MAX {
        let user = format!("u{number}").parse().unwrap();
        node.controller
            .modules
            .nonces
            .take(
                &user,
                Node::new().request("jane", Body::from(setup("m@1.0.0"))).nonce,
                node.now.wall,
                Duration::from_secs(300),
                node.now.wall,
            )
            .unwrap();
    }
    let grant = grant("eve", "10.2.0.0/24", 2000);
    let late = request(&node, "eve", Body::from(setup("m@1.0.0")), Some(grant.clone()));
    assert_refused(&node.ask(late), RefusalKind::QuotaExceeded, "remembers requests of");
    node.sleep_ms(700_000);
    let lease = set_up(&mut node, "eve", &long("m@1.0.0"), Some(grant));
    assert_eq!(lease, Outcome::Installed { lease_s: 300 }, "those are over");
    // Users of the configuration are never refused for it.
    let session = SessionId([3; 16]);
    let jane = node.request("jane", Body::from(setup("m@1.0.0")));
    let id = node.send(Request { session, ..jane });
    node.carry_out(&manifest(&setup("m@1.0.0")));
    assert!(node.reports[&id].outcome.is_ok());
}

fn by_address(node: &Node, who: &str, address: &str) -> (Request, Digest) {
    let proof = AddressProof { address: address.parse().unwrap(), key: public(who), random: Nonce([7; 16]) };
    let asked = Setup { filters: vec![format!("dst {address}").parse().unwrap()], ..long("m@1.0.0") };
    let request = request(node, who, Body::from(asked), None);
    (sign(Request { address_proof: Some(proof), ..request }, &key(who)), digest_of(&proof))
}

#[test]
fn an_address_is_asked_as_the_operator_says() {
    for address_tls in AddressTls::ALL {
        let policy = NodePolicy { address_class: Some("guest".to_owned()), address_tls, ..open_policy() };
        let mut node = Node::with(policy);
        let (asked, _) = by_address(&node, "eve", "203.0.113.9");
        node.send(asked);
        commands!(node, format!("ask 0 203.0.113.9 {} {address_tls}", user_of(&public("eve"))));
    }
}

#[test]
fn a_request_waits_until_its_address_has_vouched_for_it() {
    let mut node = Node::with(NodePolicy { address_class: Some("guest".to_owned()), ..open_policy() });
    let (asked, said) = by_address(&node, "eve", "203.0.113.9");
    let eve = user_of(&public("eve"));
    let id = node.send(asked.clone());
    commands!(node, format!("ask 0 203.0.113.9 {eve} allow"));
    node.package(0, EffectOutcome::Vouched(said));
    node.carry_out(&manifest(&long("m@1.0.0")));
    assert_eq!(node.reports[&id].outcome, Outcome::Installed { lease_s: 300 });
    // The address says something else, or nothing.
    let (other, _) = by_address(&node, "mallory", "203.0.113.9");
    let id = node.send(other);
    node.commands();
    node.package(2, EffectOutcome::Vouched(said));
    node.commands();
    assert_refused(&node.reports[&id], RefusalKind::BadProof, "not for this key");
    let (late, said) = by_address(&node, "mallory", "203.0.113.9");
    let id = node.send(late);
    node.sleep_ms(8000);
    node.commands();
    assert_refused(&node.reports[&id], RefusalKind::FetchFailed, "within 8 s");
    node.package(3, EffectOutcome::Vouched(said));
    assert_eq!(node.states(), ["m@1.0.0 Running"], "it came too late");
    node.sleep_ms(300_000);
    node.commands();
    assert_eq!(node.states(), [""; 0]);
}

/// Goal: nobody keeps an address that is another's by now, since its own module answers for it. Method: a module sees what the address's
/// web server sends; neither its user's rights are prolonged by that, nor does another user get some.
#[test]
fn no_address_is_asked_through_a_module_of_its_user() {
    let mut node = Node::with(NodePolicy { address_class: Some("guest".to_owned()), ..open_policy() });
    let by = |node: &Node, who: &str, filter: &str| {
        let (asked, said) = by_address(node, who, "203.0.113.9");
        let Body::Setup(setup) = asked.body else { unreachable!() };
        let body = Body::from(Setup { filters: vec![filter.parse().unwrap()], ..*setup });
        (sign(Request { body, ..asked }, &key(who)), said)
    };
    let (asked, said) = by(&node, "eve", "tcp src 203.0.113.9");
    node.send(asked);
    node.commands();
    node.package(0, EffectOutcome::Vouched(said));
    node.carry_out(&manifest(&long("m@1.0.0")));
    let is_asked = |commands: &[String]| commands.iter().any(|line| line.starts_with("ask "));
    node.sleep_ms(200_000);
    let (again, _) = by(&node, "eve", "tcp src 203.0.113.9");
    let id = node.send(again);
    assert!(!is_asked(&node.commands()));
    assert_eq!(node.reports[&id].outcome, Outcome::Refreshed { lease_s: 100 }, "its rights are as long as before");
    let (other, _) = by(&node, "mallory", "tcp src 203.0.113.9");
    assert_refused(&node.ask(other), RefusalKind::BadProof, "sees packets of the address's web server");
    node.sleep_ms(100_000);
    node.commands();
    assert_eq!(node.states(), [""; 0]);
    for who in ["mallory", "eve"] {
        let (new, _) = by(&node, who, "tcp src 203.0.113.9");
        node.send(new);
        assert!(is_asked(&node.commands()), "the address itself answers by now");
    }
    // What does not see that does not matter.
    for filter in ["tcp src 203.0.113.9 sport 8080", "udp src 203.0.113.9", "dst 203.0.113.9"] {
        let mut node = Node::with(NodePolicy { address_class: Some("guest".to_owned()), ..open_policy() });
        let (asked, said) = by(&node, "eve", filter);
        node.send(asked);
        node.commands();
        node.package(0, EffectOutcome::Vouched(said));
        node.carry_out(&manifest(&long("m@1.0.0")));
        node.sleep_ms(200_000);
        let (again, _) = by(&node, "eve", filter);
        node.send(again);
        assert!(is_asked(&node.commands()), "{filter}");
    }
}

/// Goal: a grant that ends, or is taken back, is not followed by an hour by the address's own word, since its module answers for it. Method: a
/// user by a grant, whose module sees what the address's web server sends, brings a proof by the address; so does another key.
#[test]
fn no_address_is_asked_through_a_module_of_a_user_by_a_grant() {
    let mut node = Node::with(NodePolicy { address_class: Some("guest".to_owned()), ..open_policy() });
    let asked = Setup { filters: vec!["tcp src 10.2.0.9".parse().unwrap()], ..long("m@1.0.0") };
    let lease = set_up(&mut node, "eve", &asked, Some(grant("eve", "10.2.0.0/24", 200)));
    assert_eq!(lease, Outcome::Installed { lease_s: 200 });
    node.sleep_ms(150_000);
    let is_asked = |commands: &[String]| commands.iter().any(|line| line.starts_with("ask "));
    let by = |node: &Node| {
        let (again, _) = by_address(node, "eve", "10.2.0.9");
        sign(Request { body: Body::from(asked.clone()), ..again }, &key("eve"))
    };
    let id = node.send(by(&node));
    assert!(!is_asked(&node.commands()));
    assert_eq!(node.reports[&id].outcome, Outcome::Refreshed { lease_s: 50 }, "its rights are as long as before");
    let (other, _) = by_address(&node, "mallory", "10.2.0.9");
    assert_refused(&node.ask(other), RefusalKind::BadProof, "sees packets of the address's web server");
    let (elsewhere, _) = by_address(&node, "mallory", "10.2.0.10");
    node.send(elsewhere);
    assert!(is_asked(&node.commands()), "no module sees that one's");
    node.sleep_ms(50_000);
    node.commands();
    assert_eq!(node.states(), [""; 0]);
    node.send(by(&node));
    assert!(is_asked(&node.commands()), "the address itself answers by now");
}

/// Goal: no module answers for an address that comes after the question and is gone before the answer.
#[test]
fn no_answer_counts_that_a_module_may_have_given_meanwhile() {
    let mut node = Node::with(NodePolicy { address_class: Some("guest".to_owned()), ..open_policy() });
    let (asked, said) = by_address(&node, "mallory", "10.2.0.9");
    let id = node.send(asked);
    assert!(node.commands().iter().any(|line| line.starts_with("ask ")));
    let eves = Setup { filters: vec!["tcp src 10.2.0.9".parse().unwrap()], ..long("m@1.0.0") };
    let eve = grant("eve", "10.2.0.0/24", 200);
    assert!(set_up(&mut node, "eve", &eves, Some(eve.clone())).is_ok());
    let body = Body::Remove(Remove { module: name("m"), force: false, all: false, epoch: None });
    let remove = request(&node, "eve", body, Some(eve));
    assert_eq!(node.ask(remove).outcome, Outcome::Removed);
    assert_eq!(node.states(), [""; 0]);
    node.package(0, EffectOutcome::Vouched(said));
    node.commands();
    assert_refused(&node.reports[&id], RefusalKind::BadProof, "sees packets of the address's web server");
    node.sleep_ms(9000);
    node.send(by_address(&node, "mallory", "10.2.0.9").0);
    assert!(node.commands().iter().any(|line| line.starts_with("ask ")), "it can be asked again");
}

/// Goal: who has a checklist of the holder of its prefixes runs its modules as long as somebody is behind that; it is looked at again each
/// 30 s, and what depends on it goes with it.
#[test]
fn a_holder_lets_a_stranger_in_and_out() {
    let mut node = Node::with(NodePolicy { rpki_class: Some("guest".to_owned()), ..open_policy() });
    let grant = grant("eve", "10.2.0.0/16", 3600);
    let named = digest_of_grant(&grant);
    let checklist = Some(Checklist::new(vec![7; 9]).unwrap());
    let asked = request(&node, "eve", Body::from(long("m@1.0.0")), Some(grant));
    let id = node.send(sign(Request { checklist, ..asked }, &key("eve")));
    commands!(node, format!("find-holder 0 {named}"));
    let holder =
        || Holder { prefixes: vec!["10.2.0.0/15".parse().unwrap()], until: START.wall + Duration::from_secs(3600) };
    node.package(0, EffectOutcome::Held(holder()));
    node.carry_out(&manifest(&long("m@1.0.0")));
    assert_eq!(node.reports[&id].outcome, Outcome::Installed { lease_s: 300 });
    for _ in 0..2 {
        node.sleep_ms(30_000);
        let again = node.commands().into_iter().find_map(|line| line.strip_prefix("find-holder ").map(str::to_owned));
        let effect = again.expect("it is looked at again").split(' ').next().unwrap().parse().unwrap();
        node.package(effect, EffectOutcome::Held(holder()));
        assert_eq!(node.states(), ["m@1.0.0 Running"]);
    }
    node.sleep_ms(30_000);
    let again = node.commands().into_iter().find_map(|line| line.strip_prefix("find-holder ").map(str::to_owned));
    let effect = again.expect("and again").split(' ').next().unwrap().parse().unwrap();
    let revoked = Refusal::new(RefusalKind::BadProof, "checklist: its certificate is revoked");
    node.package(effect, EffectOutcome::Refused(revoked));
    let told = node.commands();
    assert!(told.iter().any(|line| line.starts_with("revoked ") && line.ends_with(" bad-proof")), "{told:?}");
    assert_eq!(node.states(), [""; 0]);
}

pub(super) fn rpki_policy() -> NodePolicy {
    NodePolicy { rpki_class: Some("guest".to_owned()), ..open_policy() }
}

pub(super) fn by_checklist(node: &Node, who: &str, body: Body) -> Request {
    let asked = request(node, who, body, Some(grant(who, "10.2.0.0/16", 3600)));
    sign(Request { checklist: Some(Checklist::new(vec![7; 9]).unwrap()), ..asked }, &key(who))
}

pub(super) fn held() -> EffectOutcome {
    let prefixes = vec!["10.2.0.0/15".parse().unwrap()];
    EffectOutcome::Held(Holder { prefixes, until: START.wall + Duration::from_secs(3600) })
}

/// Returns the effects that ask who is behind a checklist, of those that are begun now.
pub(super) fn looked_at(node: &mut Node) -> Vec<u64> {
    looks_of(&node.commands())
}

pub(super) fn looks_of(commands: &[String]) -> Vec<u64> {
    let asked = commands.iter().filter_map(|line| line.strip_prefix("find-holder "));
    asked.map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
}

/// Has a stranger's module run by a checklist.
pub(super) fn let_in(node: &mut Node, who: &str) {
    let outcome = set_up_by_checklist(node, who, &long("m@1.0.0"));
    assert!(outcome.is_ok(), "{outcome:?}");
}

/// Has a stranger ask for a module by a checklist, whose holder is known.
pub(super) fn set_up_by_checklist(node: &mut Node, who: &str, asked: &Setup) -> Outcome {
    let is_known = node.controller.cx.may(&user_of(&public(who))).is_some();
    let id = node.send(by_checklist(node, who, Body::from(asked.clone())));
    if !is_known {
        looked_at(node).into_iter().for_each(|look| node.package(look, held()));
    }
    node.carry_out(&manifest(asked));
    node.reports[&id].outcome.clone()
}

/// Goal: nobody loses modules, and what they kept, since the relying party replaces files of its cache at this moment; what lasts counts.
#[test]
fn a_cache_that_is_being_replaced_ends_no_rights() {
    let mut node = Node::with(rpki_policy());
    let_in(&mut node, "eve");
    let passing = || EffectOutcome::Refused(Refusal::new(RefusalKind::FetchFailed, "checklist: another hash"));
    node.sleep_ms(30_000);
    let [again] = looked_at(&mut node)[..] else { panic!("it is looked at again") };
    node.package(again, passing());
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
    node.sleep_ms(5000);
    let [soon] = looked_at(&mut node)[..] else { panic!("soon") };
    node.package(soon, held());
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
    node.sleep_ms(30_000);
    let [again] = looked_at(&mut node)[..] else { panic!("as often as before") };
    node.package(again, passing());
    for soon in 1..=4 {
        assert_eq!(node.states(), ["m@1.0.0 Running"], "{soon}");
        node.sleep_ms(5000);
        let [soon] = looked_at(&mut node)[..] else { panic!("soon") };
        node.package(soon, passing());
        node.commands();
    }
    assert_eq!(node.states(), [""; 0], "it does not pass");
    // What its modules kept is there until the cache has had a day, and no longer.
    let gone = format!("forget-user {}", user_of(&public("eve")));
    let is_gone_within = |node: &mut Node, hours: u64| {
        (0..hours * 120).any(|_| {
            node.sleep_ms(30_000);
            let commands = node.commands();
            looks_of(&commands).into_iter().for_each(|look| node.package(look, passing()));
            commands.contains(&gone)
        })
    };
    assert!(!is_gone_within(&mut node, 23) && is_gone_within(&mut node, 2));
    let counts = node.controller.counters();
    assert_eq!((counts.checklists_confirmed, counts.checklists_denied), (1, 0));
    assert!(counts.checklists_unknown > 3);
}

/// Goal: checks that take long keep none from being done every 30 s. Method: both checks of a round take 14 s together.
#[test]
fn the_next_look_at_checklists_counts_from_the_begin_of_the_last_one() {
    let mut node = Node::with(rpki_policy());
    for who in ["eve", "mallory"] {
        let_in(&mut node, who);
    }
    node.sleep_ms(30_000);
    for _ in 0..2 {
        let [look] = looked_at(&mut node)[..] else { panic!("one after the other") };
        node.sleep_ms(7000);
        node.package(look, held());
    }
    assert_eq!(looked_at(&mut node).len(), 0);
    node.sleep_ms(16_000);
    assert_eq!(looked_at(&mut node).len(), 1);
}

/// Goal: a checklist of which it is not found out in time who is behind it keeps no other from being looked at.
#[test]
fn checklists_are_looked_at_again_though_one_is_not_answered() {
    let mut node = Node::with(rpki_policy());
    for who in ["eve", "mallory"] {
        let_in(&mut node, who);
    }
    node.sleep_ms(30_000);
    assert_eq!(looked_at(&mut node).len(), 1, "one after the other");
    node.apply_policy();
    assert_eq!(looked_at(&mut node).len(), 0, "also after a reload");
    node.sleep_ms(8000);
    let [second] = looked_at(&mut node)[..] else { panic!("the next one") };
    node.package(second, EffectOutcome::Refused(Refusal::new(RefusalKind::BadProof, "checklist: revoked")));
    node.commands();
    assert_eq!(node.states().len(), 1);
    node.sleep_ms(2 * (1000 + 8000));
    node.commands();
    assert_eq!(node.states(), [""; 0], "the node has not known for long who is behind the first");
    let counts = node.controller.counters();
    let looks = [counts.checklists_confirmed, counts.checklists_denied, counts.checklists_unknown];
    assert_eq!((looks, counts.checklists_ms), ([0, 1, 3], 3 * 8000));
}

/// Goal: addresses that do not answer keep no checklist from being looked at.
#[test]
fn slow_addresses_do_not_hold_up_checklists() {
    let mut node = Node::with(NodePolicy { address_class: Some("guest".to_owned()), ..rpki_policy() });
    for number in 0..PROOFS_MAX {
        let (asked, _) = by_address(&node, &format!("u{number}"), &format!("203.0.{number}.1"));
        node.send(asked);
    }
    node.commands();
    node.send(by_checklist(&node, "eve", Body::from(long("m@1.0.0"))));
    assert_eq!(looked_at(&mut node).len(), 1);
}

/// Goal: peers of one site leave places to others who bring checklists, and clients of the node have all that are free. Method: as many
/// come from one site as there are places, then one from another site, then clients.
#[test]
fn checklists_of_one_site_leave_places_to_others() {
    let mut node = Node::with(rpki_policy());
    let bring = |node: &mut Node, who: String, from: Option<&str>| {
        let from = from.map(|address| address.parse().unwrap());
        let id = node.send(Request { from, ..by_checklist(node, &who, Body::from(long("m@1.0.0"))) });
        let is_asked = looked_at(node).len() == 1;
        assert_eq!(is_asked, !node.reports.contains_key(&id));
        is_asked
    };
    let of_site = (0..PROOFS_MAX).filter(|n| bring(&mut node, format!("u{n}"), Some(&format!("192.0.2.{n}")))).count();
    assert_eq!(of_site, PROOFS_OF_PEERS_MAX);
    assert!(bring(&mut node, "other".to_owned(), Some("198.51.100.1")));
    let of_clients = (0..PROOFS_MAX).filter(|n| bring(&mut node, format!("client{n}"), None)).count();
    assert_eq!(of_clients, PROOFS_MAX - PROOFS_OF_PEERS_MAX - 1);
    let refused = node.reports.values().next().unwrap();
    assert_refused(refused, RefusalKind::QuotaExceeded, "32 for peers of one site");
}

#[test]
fn addresses_are_asked_within_bounds() {
    let mut node = Node::with(NodePolicy { address_class: Some("guest".to_owned()), ..open_policy() });
    let mut refused = 0;
    for site in 0..=PROOFS_MAX / PROOFS_OF_SITE_MAX {
        for host in 0..=PROOFS_OF_SITE_MAX {
            let (asked, _) = by_address(&node, &format!("u{site}-{host}"), &format!("203.0.{site}.{}", host + 1));
            let id = node.send(asked);
            node.commands();
            refused += usize::from(node.reports.contains_key(&id));
        }
    }
    let all = (PROOFS_MAX / PROOFS_OF_SITE_MAX + 1) * (PROOFS_OF_SITE_MAX + 1);
    assert_eq!(all - refused, PROOFS_MAX);
    node.sleep_ms(8000);
    node.commands();
    assert_eq!(node.reports.len(), all, "each is answered");
}

/// Goal: who has a node ask silent addresses of ever more sites leaves places to those who come by other paths.
#[test]
fn addresses_that_peers_of_one_site_name_leave_places_to_others() {
    let mut node = Node::with(NodePolicy { address_class: Some("guest".to_owned()), ..open_policy() });
    let bring = |node: &mut Node, n: usize, from: &str| {
        let (asked, _) = by_address(node, &format!("u{n}"), &format!("203.0.{n}.1"));
        let id = node.send(Request { from: Some(from.parse().unwrap()), ..asked });
        node.commands();
        !node.reports.contains_key(&id)
    };
    let of_site = (0..PROOFS_MAX).filter(|n| bring(&mut node, *n, &format!("192.0.2.{n}"))).count();
    assert_eq!(of_site, PROOFS_OF_PEERS_MAX);
    assert!(bring(&mut node, PROOFS_MAX, "198.51.100.1"));
}

/// Goal: strangers whose requests come late make the node remember no more either, and none of theirs is taken twice. Method: one more
/// comes while as many are remembered as may be; then the one that was forgotten for it comes again.
#[test]
fn what_is_remembered_of_late_strangers_is_bounded() {
    let mut node = Node::with(open_policy());
    let until = node.now.wall + Duration::from_secs(10_000);
    let nonce = node.request("jane", Body::from(setup("m@1.0.0"))).nonce;
    let module = name("m");
    let session = SessionId([1; 16]);
    let mut wall = node.now.wall;
    for number in 0..REMEMBERED_USERS_MAX {
        let user = format!("u{number}").parse().unwrap();
        wall.0 += 1;
        node.controller.users.seen_mut().note(&user, (nonce, session), (wall, until), wall);
        node.controller.users.newest_mut().note(&user, (&module, None), (nonce, wall), false, until, wall);
    }
    let grant = |to: &str| Some(grant(to, "10.2.0.0/24", 9000));
    let old = request(&node, "mallory", Body::from(long("m@1.0.0")), grant("mallory"));
    node.sleep_ms(10_000);
    let late = request(&node, "eve", Body::from(long("m@1.0.0")), grant("eve"));
    node.sleep_ms(400_000);
    node.send(late);
    node.carry_out(&manifest(&long("m@1.0.0")));
    assert_eq!(node.states().len(), 1, "it makes room");
    assert_eq!(node.controller.users.seen_mut().users(), REMEMBERED_USERS_MAX);
    assert_refused(&node.ask(old), RefusalKind::Replayed, "are forgotten");
}

/// Goal: an answer names what proved the request, and an end of rights what these came from. Method: a user of the configuration, a stranger
/// with a grant, and requests that nobody has proven to have made.
#[test]
fn answers_name_what_decided_them() {
    let mut node = Node::with(open_policy());
    let asked = request(&node, "eve", Body::from(long("m@1.0.0")), Some(grant("eve", "10.2.0.0/24", 200)));
    let text = asked.grants[0].clone();
    let id = node.send(asked.clone());
    node.carry_out(&manifest(&long("m@1.0.0")));
    let digest = Digest(Sha256::digest(text).into());
    let by_grant = Proven { key: Some(public("eve")), evidence: format!("grant of house {digest}"), is_stranger: true };
    assert_eq!(node.proven[&id], Some(by_grant.clone()));
    let shorter = request(&node, "eve", Body::from(long("m@1.0.0")), Some(grant("eve", "10.2.0.0/24", 100)));
    let id = node.send(shorter);
    node.commands();
    assert_eq!(node.proven[&id], Some(by_grant.clone()), "the other one stays in force");
    let wide = Setup { filters: vec!["dst 10.2.1.1".parse().unwrap()], ..long("o@1.0.0") };
    let refused = request(&node, "eve", Body::from(wide.clone()), Some(grant("eve", "10.2.0.0/24", 200)));
    let id = node.send(refused);
    node.carry_out(&manifest(&wide));
    assert!(node.proven[&id].is_some(), "it is refused, and by whom it is is known");
    let proven_by = |node: &mut Node, request: Request| {
        node.ask(request);
        node.proven.values().next_back().cloned().flatten()
    };
    let stranger = request(&node, "mallory", Body::from(setup("m@1.0.0")), None);
    assert_eq!(proven_by(&mut node, stranger.clone()), None);
    let forged = Request { user: asked.user.clone(), ..stranger };
    assert_eq!(proven_by(&mut node, forged), None, "another key signed it");
    let own = node.request("jane", Body::Probe(Probe { ask: vec![Ask::Policy] }));
    let configured = Proven { key: Some(public("jane")), evidence: "configured".to_owned(), is_stranger: false };
    assert_eq!(proven_by(&mut node, own), Some(configured));
    node.sleep_ms(200_000);
    let commands = node.commands();
    let ended = node.ended.iter().map(|(user, evidence)| (user.clone(), evidence.clone())).collect::<Vec<_>>();
    assert_eq!(ended, [(asked.user.unwrap(), Some(by_grant.evidence))], "{commands:?}");
}

/// Goal: who is refused leaves nothing. Method: a stranger of an issuer whose users all have modules.
#[test]
fn strangers_who_are_too_many_are_not_remembered() {
    let mut policy = open_policy();
    policy.classes.get_mut("guest").unwrap().users_max = 1;
    let mut node = Node::with(policy);
    set_up(&mut node, "eve", &long("m@1.0.0"), Some(grant("eve", "10.2.0.0/24", 2000)));
    let before = node.controller.modules.nonces.users();
    let late = request(&node, "mallory", Body::from(setup("m@1.0.0")), Some(grant("mallory", "10.2.0.0/24", 2000)));
    assert_refused(&node.ask(late.clone()), RefusalKind::QuotaExceeded, "1 users with modules");
    assert_eq!(node.controller.modules.nonces.users(), before, "it fills what is for those who are taken");
    assert_refused(&node.ask(late), RefusalKind::QuotaExceeded, "1 users with modules");
}

/// Goal: it is said why a user without modules is not known any more. Method: one that gives way to another, and one whose grant ends.
#[test]
fn users_without_modules_are_not_forgotten_in_silence() {
    let mut policy = open_policy();
    policy.classes.get_mut("guest").unwrap().users_max = 1;
    let mut node = Node::with(policy);
    let ask = |node: &mut Node, who: &str| {
        let body = Body::Probe(Probe { ask: vec![Ask::Policy] });
        let asked = request(node, who, body, Some(grant(who, "10.2.0.0/24", 200)));
        node.send(asked);
        node.commands()
    };
    let line = |who: &str, kind| format!("forgotten {} {kind} grant of house sha256:", user_of(&public(who)));
    let is_said = |commands: &[String], line: &str| commands.iter().any(|command| command.starts_with(line));
    ask(&mut node, "eve");
    let commands = ask(&mut node, "mallory");
    assert!(is_said(&commands, &line("eve", "quota-exceeded")), "{commands:?}");
    node.sleep_ms(200_000);
    let commands = node.commands();
    assert!(is_said(&commands, &line("mallory", "bad-proof")), "{commands:?}");
}

/// Goal: a restart takes nothing away that a grant in force gives. Method: two modules, of which the later one needs a wider grant
/// that ends earlier.
#[test]
fn the_grant_in_force_is_there_after_a_restart() {
    let mut node = Node::with(open_policy());
    set_up(&mut node, "eve", &long("m@1.0.0"), Some(grant("eve", "10.2.0.0/24", 2000)));
    let wide = Setup { filters: vec!["dst 10.2.1.1".parse().unwrap()], ..long("o@1.0.0") };
    set_up(&mut node, "eve", &wide, Some(grant("eve", "10.2.0.0/16", 1000)));
    assert_eq!(node.states().len(), 2);
    let put = |job: &Job| if let Job::Store(StoreJob::Put(record)) = job { Some((**record).clone()) } else { None };
    let stored: BTreeMap<_, _> =
        node.jobs.iter().filter_map(put).map(|record| (record.module.name.clone(), record)).collect();
    let mut again = Node::with(open_policy());
    again.controller.restore(node.now, stored.into_values().collect::<Vec<_>>());
    assert_eq!(again.states().len(), 2, "{:?}", again.states());
}

/// Goal: strangers who are only passed by cost others nothing of what is remembered. Method: many of them, each with one module that is
/// for another node, beside a user of the configuration with two.
#[test]
fn strangers_who_are_passed_by_displace_nobodys_epochs() {
    let mut node = Node::with(open_policy());
    let jane = ["m", "o"].map(|module| (user("jane"), name(module)));
    let epochs = &mut node.controller.modules.epochs;
    jane.iter().for_each(|key| epochs.note(key, 7, |_| true));
    for number in 2..EPOCHS_REMEMBERED_MAX {
        epochs.note(&(user(&format!("k-{number}")), name("m")), 7, |_| false);
    }
    let elsewhere = Setup { floating: vec!["10.2.0.7".parse().unwrap()], epoch: 3, ..long("m@1.0.0") };
    let passing = request(&node, "eve", Body::from(elsewhere), Some(grant("eve", "10.2.0.0/24", 9000)));
    let nodes = vec!["other".parse().unwrap()];
    let passed_by = Some("it is for others".to_owned());
    node.ask(Request { nodes, passed_by, ..passing });
    let epochs = &node.controller.modules.epochs;
    assert_eq!(epochs.len(), EPOCHS_REMEMBERED_MAX);
    assert_eq!(epochs.of(&(user_of(&public("eve")), name("m"))), 4);
    assert!(jane.iter().all(|key| epochs.of(key) == 7));
}

/// Goal: who asks what it is granted learns the longest lease that it gets. Method: a class with one that is shorter than the node's.
#[test]
fn a_stranger_is_told_its_longest_lease() {
    let mut node = Node::with(open_policy());
    let body = Body::Probe(Probe { ask: vec![Ask::Policy] });
    let probe = request(&node, "eve", body, Some(grant("eve", "10.2.0.0/24", 9000)));
    assert_eq!(node.ask(probe).policy.unwrap().ttl_s_max, 300);
}

/// Goal: nobody keeps the node from looking at proofs that have ended. Method: the clock is set on beyond a proof's end, and another
/// stranger asks more often than proofs are looked at; then a request comes just before the timer for the end of one.
#[test]
fn requests_of_others_do_not_put_off_the_end_of_a_proof() {
    let mut node = Node::with(open_policy());
    set_up(&mut node, "eve", &long("m@1.0.0"), Some(grant("eve", "10.2.0.0/24", 200)));
    let probe = |node: &mut Node| {
        let body = Body::Probe(Probe { ask: vec![Ask::Policy] });
        let probe = request(node, "mallory", body, Some(grant("mallory", "10.2.0.0/24", 9000)));
        assert_eq!(node.ask(probe).outcome, Outcome::Probed);
    };
    probe(&mut node);
    node.now.wall.0 += 300_000;
    for _ in 0..3 {
        node.sleep_ms(20_000);
        probe(&mut node);
    }
    assert_eq!(node.states(), [""; 0], "its grant ended long ago");
}

/// Goal: nothing is kept for who has no rights any more. Method: a restart by a policy that does not trust the issuer, when no proof
/// holds whose end would be waited for.
#[test]
fn strangers_without_rights_are_forgotten_after_a_restart() {
    let mut node = Node::with(open_policy());
    set_up(&mut node, "eve", &long("m@1.0.0"), Some(grant("eve", "10.2.0.0/24", 2000)));
    let put = |job: &Job| if let Job::Store(StoreJob::Put(record)) = job { Some((**record).clone()) } else { None };
    let stored = node.jobs.iter().rev().find_map(put).unwrap();
    let mut policy = policy();
    policy.container_prefixes = vec!["192.0.2.0/24".parse().unwrap()];
    let mut again = Node::with(policy);
    again.controller.restore(node.now, vec![stored]);
    assert_eq!(again.states(), [""; 0]);
    again.sleep_ms(60_000);
    again.commands();
    assert!(!again.controller.cx.address_plan().users.contains_key(&user_of(&public("eve"))));
}

/// Goal: strangers, of whom an issuer may make as many as it likes, do not keep users of the configuration out. Method: as many as the
/// node works on requests, with one each that waits for its package, and then a user.
#[test]
fn strangers_give_way_to_users_of_the_configuration() {
    let mut node = Node::with(open_policy());
    for number in 0..REQUESTS_PENDING_MAX {
        let mut seed = [9; 32];
        seed[..8].copy_from_slice(&u64::try_from(number).unwrap().to_be_bytes());
        let own = SigningKey::from_bytes(&seed);
        let sub = PublicKey(own.verifying_key().to_bytes());
        let now = START.wall.0 / 1000;
        let (prefixes, ports) = (vec!["10.2.0.0/24".parse().unwrap()], Vec::new());
        let iss = public("house");
        let grant = Grant { iss, sub, nbf: now, exp: now + 9000, prefixes, ports, modules_max: None, delegations: 0 };
        let grants = vec![grant.sign(&key("house"))];
        let asks = node.request("eve", Body::from(setup("m@1.0.0")));
        let asks = sign(Request { user: Some(user_of(&sub)), grants, ..asks }, &own);
        node.send(asks);
    }
    node.commands();
    assert!(node.reports.is_empty());
    let id = node.setup(setup("m@1.0.0"));
    node.commands();
    assert_eq!(node.reports.len(), 1, "one gives way");
    assert!(!node.reports.contains_key(&id));
}

/// Goal: a clock that is set back takes nothing away, whatever is done meanwhile. Method: it shows a time before the grant begins while the
/// policy is put in force again and while a worker dies, and when the node starts.
#[test]
fn a_clock_that_is_set_back_ends_nothing() {
    let mut node = Node::with(open_policy());
    set_up(&mut node, "eve", &long("m@1.0.0"), Some(grant("eve", "10.2.0.0/24", 2000)));
    let put = |job: &Job| if let Job::Store(StoreJob::Put(record)) = job { Some((**record).clone()) } else { None };
    let stored = node.jobs.iter().rev().find_map(put).unwrap();
    node.now.wall.0 -= 5000;
    node.policy.maintenance = true;
    node.apply_policy();
    assert_eq!(node.states(), ["m@1.0.0 Running"]);
    let worker = WorkerId::new(user_of(&public("eve")), Flavour::Wasm);
    let refusal = Refusal::new(RefusalKind::Trapped, "it trapped");
    node.news(&worker, WorkerNews::Died { refusal, culprit: None });
    node.sleep_ms(100);
    node.carry_out(&manifest(&setup("m@1.0.0")));
    let container = node.policy.classes["guest"].rights.container;
    let start = |job: &Job| if let Job::Workers(WorkerJob::Start { limits, .. }) = job { Some(*limits) } else { None };
    let starts = node.jobs.iter().filter_map(start);
    assert_eq!(starts.collect::<Vec<_>>(), [container; 2], "it gets no more than its class gives");
    let mut again = Node::with(open_policy());
    again.controller.restore(node.now, vec![stored]);
    assert_eq!(again.states().len(), 1);
}
