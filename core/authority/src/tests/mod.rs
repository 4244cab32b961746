// SPDX-License-Identifier: Apache-2.0

mod attacks;
mod checklists;

use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ed25519_dalek::{Signer as _, SigningKey};
use ipnet::IpNet;
use netserv_model::evidence::{AddressProof, Evidence};
use netserv_model::policy::{Class, Issuer, NodePolicy, UserPolicy};
use netserv_model::request::{Ask, Body, Probe, Request};
use netserv_model::{
    Digest, Instant, Nonce, Now, PortRange, PublicKey, Refusal, RefusalKind, SessionId, Signature, UnixTime, UserId,
};
use proptest::prelude::*;

use crate::chain::{Chain, ChainError, Wider, check_narrower, has_ports};
use crate::grant::{Grant, GrantError, user_of};
use crate::limits::{
    ADDRESS_ASKED_AFTER, ADDRESS_TIME, CHAIN_GRANTS_MAX, EVIDENCE_BYTES_MAX, GRANT_PREFIXES_MAX, GRANTED_USERS_MAX,
};
use crate::{Authority, Question, Said, Unproven, digest_of, scope};

pub(crate) const NOW: UnixTime = UnixTime::from_secs(1_800_000_000);
pub(crate) const HOUR: u64 = 3600;

pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

pub(crate) fn public(seed: u8) -> PublicKey {
    PublicKey(key(seed).verifying_key().to_bytes())
}

/// A grant for `to` of 10.2.0.0/16 for two hours around now, which may be delegated three times.
pub(crate) fn grant(to: u8) -> Grant {
    Grant {
        iss: PublicKey([0; 32]),
        sub: public(to),
        nbf: NOW.0 / 1000 - HOUR,
        exp: NOW.0 / 1000 + HOUR,
        prefixes: vec!["10.2.0.0/16".parse().unwrap()],
        ports: Vec::new(),
        modules_max: None,
        delegations: 3,
    }
}

/// Returns a chain from key 1 to 2, 3 and so on, each grant made narrower by `narrow`.
fn texts(length: u8, narrow: impl Fn(u8, Grant) -> Grant) -> Vec<String> {
    (1..=length).map(|by| narrow(by, Grant { delegations: 4 - by, ..grant(by + 1) }).sign(&key(by))).collect()
}

pub(crate) fn policy() -> NodePolicy {
    let mut policy = NodePolicy::new("n".parse().unwrap());
    let rights = UserPolicy { modules_max: 2, ..UserPolicy::default() };
    let named = UserPolicy { keys: vec![public(99)], prefixes: vec!["10.9.0.0/16".parse().unwrap()], ..rights.clone() };
    policy.users.insert("jane".parse().unwrap(), named);
    policy.classes.insert("guest".to_owned(), Class { users_max: 3, prefixes_max: 2, lease_max: None, rights });
    let prefixes = vec!["10.0.0.0/8".parse().unwrap()];
    policy.issuers.push(Issuer {
        name: "house".to_owned(),
        keys: vec![public(1)],
        prefixes,
        class: "guest".to_owned(),
        revocations: None,
    });
    policy
}

pub(crate) fn request(by: u8, user: &UserId, grants: &[String]) -> Request {
    let signed_bytes = b"a request".to_vec();
    Request {
        session: SessionId([1; 16]),
        user: Some(user.clone()),
        created: NOW,
        nonce: Nonce([1; 16]),
        body: Body::Probe(Probe { ask: vec![Ask::Policy] }),
        signature: Some(Signature(key(by).sign(&signed_bytes).to_bytes())),
        signed_bytes,
        grants: grants.to_vec(),
        address_proof: None,
        checklist: None,
        dry_run: false,
        nodes: Vec::new(),
        is_bound: false,
        require: Vec::new(),
        passed_by: None,
        from: None,
    }
}

pub(crate) fn at(wall: UnixTime) -> Now {
    Now { instant: Instant::from_millis(wall.0 - NOW.0), wall }
}

/// Has a user ask with grants whose last one is for its key; returns what it may do then.
pub(crate) fn ask(
    authority: &mut Authority,
    policy: &NodePolicy,
    by: u8,
    grants: &[String],
) -> Result<UserPolicy, Refusal> {
    ask_at(authority, policy, by, grants, NOW, |_| true)
}

fn ask_at(
    authority: &mut Authority,
    policy: &NodePolicy,
    by: u8,
    grants: &[String],
    now: UnixTime,
    has_modules: impl Fn(&UserId) -> bool,
) -> Result<UserPolicy, Refusal> {
    let user = user_of(&public(by));
    let request = request(by, &user, grants);
    let proof = refused(authority.prove(policy, &request, now))?;
    authority.accept(proof, now, has_modules)?;
    authority.rights(policy, &user, now).cloned()
}

pub(crate) fn refused<T>(result: Result<T, Unproven>) -> Result<T, Refusal> {
    result.map_err(|unproven| match unproven {
        Unproven::Refused(refusal) => refusal,
        Unproven::Ask(question) => panic!("{question:?} is to be asked"),
    })
}

#[track_caller]
pub(crate) fn assert_refused<T: std::fmt::Debug>(result: Result<T, Refusal>, kind: RefusalKind, detail: &str) {
    let refusal = result.unwrap_err();
    assert!(refusal.kind == kind && refusal.detail.contains(detail), "{refusal:?}");
}

/// Goal: whoever changes a grant in the smallest way has none. Method: each bit of its text is flipped, one after the other.
#[test]
fn a_grant_with_a_flipped_bit_is_none() {
    let text = Grant { modules_max: Some(3), ports: vec!["5060".parse().unwrap()], ..grant(2) }.sign(&key(1));
    assert_eq!(Grant::verify(&text).unwrap().sub, public(2));
    for at in 0..text.len() * 8 {
        let mut bytes = text.clone().into_bytes();
        bytes[at / 8] ^= 1 << (at % 8);
        if let Ok(text) = String::from_utf8(bytes) {
            assert!(Grant::verify(&text).is_err(), "bit {at}");
        }
    }
}

/// Goal: a grant may be made by any program that writes JWS, and what it says that nodes do not know makes it none. Method: headers
/// and claims of others, signed as they are.
#[test]
fn grants_of_other_programs_are_taken_as_far_as_they_are_understood() {
    let signed = |header: &str, claims: &str| {
        let text = format!("{}.{}", BASE64.encode(header), BASE64.encode(claims));
        format!("{text}.{}", BASE64.encode(key(1).sign(text.as_bytes()).to_bytes()))
    };
    let header = r#"{"alg":"EdDSA","typ":"netserv-grant+jwt"}"#;
    let claims = |more: &str| {
        let (iss, sub) = (public(1), public(2));
        format!(r#"{{"sub":"{sub}", "iss":"{iss}","nbf":1,"exp":2,"prefixes":["10.0.0.0/8"]{more}}}"#)
    };
    for good in [header, r#"{ "typ":"netserv-grant+jwt", "kid":"a", "alg":"Ed25519" }"#] {
        assert_eq!(Grant::verify(&signed(good, &claims(""))).unwrap().exp, 2, "{good}");
    }
    for bad in [
        r#"{"alg":"none","typ":"netserv-grant+jwt"}"#,
        r#"{"alg":"HS256","typ":"netserv-grant+jwt"}"#,
        r#"{"alg":"EdDSA"}"#,
        r#"{"alg":"EdDSA","typ":"JWT"}"#,
        r#"{"alg":"EdDSA","typ":"netserv-grant+jwt","crit":["b64"],"b64":false}"#,
    ] {
        assert_eq!(Grant::verify(&signed(bad, &claims(""))), Err(GrantError::Header), "{bad}");
    }
    for bad in [r#","only-on":["n"]"#, r#","ports":["0-70000"]"#, r#","exp":3"#, r#","delegations":-1"#] {
        assert!(matches!(Grant::verify(&signed(header, &claims(bad))), Err(GrantError::Claims(_))), "{bad}");
    }
    let many = vec![r#""10.0.0.0/8""#; GRANT_PREFIXES_MAX + 1].join(",");
    for prefixes in ["", &many] {
        let claims = claims("").replace(r#""10.0.0.0/8""#, prefixes);
        assert!(matches!(Grant::verify(&signed(header, &claims)), Err(GrantError::Claims(_))), "{prefixes}");
    }
    assert_eq!(Grant::parse(&"a".repeat(EVIDENCE_BYTES_MAX + 1)), Err(GrantError::TooLong(EVIDENCE_BYTES_MAX + 1)));
    for no_grant in ["", ".", "..", "a.b.c", "\u{1f980}.a.b"] {
        assert!(Grant::verify(no_grant).is_err(), "{no_grant}");
    }
}

#[test]
fn a_chain_has_at_most_four_links_that_hang_together() {
    assert_eq!(Chain::verify(&texts(4, |_, grant| grant)).unwrap().last().sub, public(5));
    let none: [String; 0] = [];
    assert_eq!(Chain::verify(&none), Err(ChainError::Length(0)));
    let long = vec![grant(2).sign(&key(1)); CHAIN_GRANTS_MAX + 1];
    assert_eq!(Chain::verify(&long), Err(ChainError::Length(CHAIN_GRANTS_MAX + 1)));
    let wide = |by: u8, wider: Wider| Err(ChainError::Wider { place: usize::from(by), wider });
    let with = |change: fn(&mut Grant)| {
        texts(3, move |by, mut grant| {
            if by == 3 {
                change(&mut grant);
            }
            grant
        })
    };
    let prefix = |grant: &mut Grant| grant.prefixes.push("10.3.0.0/16".parse().unwrap());
    assert_eq!(Chain::verify(&with(prefix)), wide(3, Wider::Prefixes));
    assert_eq!(Chain::verify(&with(|grant| grant.exp += 1)), wide(3, Wider::Time));
    assert_eq!(Chain::verify(&with(|grant| grant.nbf -= 1)), wide(3, Wider::Time));
    assert_eq!(Chain::verify(&with(|grant| grant.delegations = 2)), wide(3, Wider::Delegations));
    assert_eq!(Chain::verify(&with(|grant| grant.sub = public(1))), Err(ChainError::Loop(public(1))));
    let mut swapped = texts(3, |_, grant| grant);
    swapped.remove(1);
    assert_eq!(Chain::verify(&swapped), wide(2, Wider::Issuer));
}

fn any_grant() -> impl Strategy<Value = Grant> {
    let prefixes = prop::collection::vec((0..4_u8, 8..=10_u8), 1..3);
    let ports = prop::collection::vec((0..6_u16, 0..6_u16), 0..3);
    (prefixes, ports, prop::option::of(0..3_u32), 0..3_u64, 3..6_u64, 0..3_u8, 1..3_u8).prop_map(
        |(prefixes, ports, modules_max, nbf, exp, delegations, seed)| Grant {
            iss: public(seed),
            sub: public(seed),
            nbf,
            exp,
            prefixes: prefixes
                .iter()
                .map(|(part, length)| IpNet::new([10, part << 6, 0, 0].into(), *length).unwrap())
                .collect(),
            ports: ports.iter().map(|(a, b)| PortRange::new((*a).min(*b), (*a).max(*b)).unwrap()).collect(),
            modules_max,
            delegations,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// Goal: a delegation that is taken lets nothing be done that the grant before does not, in any dimension. Method: random pairs of
    /// grants, and each address, port, number of modules, time and delegation that tells them apart.
    #[test]
    fn what_is_narrower_allows_nothing_more((one, before) in (any_grant(), any_grant())) {
        let addresses = (0..4_u8).map(|part| IpNet::from(IpAddr::from([10, part << 6, 0, 1])));
        let has = |grant: &Grant, net: &IpNet| grant.prefixes.iter().any(|prefix| prefix.contains(net));
        let has_port = |grant: &Grant, port| has_ports(&grant.ports, &[PortRange::new(port, port).unwrap()]);
        let addresses: Vec<IpNet> = addresses.collect();
        let allows_more = one.iss != before.sub
            || addresses.iter().any(|net| has(&one, net) && !has(&before, net))
            || (0..8).any(|port| has_port(&one, port) && !has_port(&before, port))
            || one.modules_max.is_some_and(|most| before.modules_max.is_some_and(|other| most > other))
            || (0..7).any(|time| {
                (one.nbf..one.exp).contains(&time) && !(before.nbf..before.exp).contains(&time)
            })
            || one.delegations >= before.delegations;
        if check_narrower(&one, &before).is_ok() {
            prop_assert!(!allows_more, "{one:?} {before:?}");
        }
    }

    #[test]
    fn no_text_is_too_odd(texts in prop::collection::vec("[A-Za-z0-9_.-]{0,60}|\\PC{0,20}", 0..6)) {
        prop_assert!(Chain::verify(&texts).is_err());
    }
}

#[test]
fn a_stranger_has_what_its_chain_and_the_issuers_class_both_give() {
    let (mut authority, policy) = (Authority::default(), policy());
    let narrow = |by: u8, grant: Grant| match by {
        3 => Grant {
            prefixes: vec!["10.2.3.0/24".parse().unwrap()],
            ports: vec!["5060".parse().unwrap()],
            modules_max: Some(1),
            exp: grant.exp - 60,
            ..grant
        },
        _ => grant,
    };
    let grants = texts(3, narrow);
    let may = ask(&mut authority, &policy, 4, &grants).unwrap();
    assert_eq!(may.keys, [public(4)]);
    assert_eq!((may.prefixes, may.modules_max), (vec!["10.2.3.0/24".parse().unwrap()], 1));
    let filters = |text: &str| [text.parse().unwrap()];
    let user = user_of(&public(4));
    let check = |text: &str| scope::check(&policy, authority.rights(&policy, &user, NOW).unwrap(), &filters(text));
    assert_eq!(check("udp dst 10.2.3.9 port 5060"), Ok(()));
    assert_refused(check("udp dst 10.2.4.9 port 5060"), RefusalKind::PrefixNotAllowed, "10.2.4.9");
    assert_refused(check("udp dst 10.2.3.9 port 5061"), RefusalKind::PortNotAllowed, "5060");
    assert_eq!(authority.lease_max(&user, NOW), Some(Duration::from_secs(HOUR - 60)));
    assert_eq!(authority.next_end(NOW), Some(NOW + Duration::from_secs(HOUR - 60)));
    // Once known, a request need not bring them.
    assert!(ask(&mut authority, &policy, 4, &[]).is_ok());
    assert!(user.as_str().len() <= 32 && user.as_str().starts_with("k-"), "{user}");
}

#[test]
fn who_has_no_good_grant_is_unknown() {
    let policy = policy();
    let mut authority = Authority::default();
    let unknown = |grants: &[String], by: u8, detail: &str| {
        let kind = if grants.is_empty() { RefusalKind::UnknownUser } else { RefusalKind::BadProof };
        assert_refused(ask(&mut Authority::default(), &policy, by, grants), kind, detail);
    };
    unknown(&[], 2, "no user `k-");
    unknown(&[grant(2).sign(&key(7))], 2, "takes no grants of");
    unknown(&[grant(3).sign(&key(1))], 2, "the request names");
    unknown(&["x".to_owned()], 2, "three parts");
    let (good, other) = (grant(2).sign(&key(1)), grant(3).sign(&key(1)));
    let forged = format!("{}.{}", good.rsplit_once('.').unwrap().0, other.rsplit_once('.').unwrap().1);
    unknown(&[forged], 2, "did not sign");
    let past = Grant { exp: NOW.0 / 1000, ..grant(2) };
    unknown(&[past.sign(&key(1))], 2, &format!("it ended at {NOW}, it is {NOW} here"));
    let future = Grant { nbf: NOW.0 / 1000 + 1, ..grant(2) };
    unknown(&[future.sign(&key(1))], 2, &format!("it begins at {}, it is {NOW} here", NOW + Duration::from_secs(1)));
    // The grant is good, and another one signs.
    let user = user_of(&public(2));
    let other = request(3, &user, &[grant(2).sign(&key(1))]);
    assert_refused(refused(authority.prove(&policy, &other, NOW)).map(drop), RefusalKind::BadSignature, "");
    let unsigned = Request { signature: None, ..request(2, &user, &[grant(2).sign(&key(1))]) };
    let lax = NodePolicy { accept_unsigned: true, ..policy.clone() };
    assert_refused(refused(authority.prove(&lax, &unsigned, NOW)).map(drop), RefusalKind::Unsigned, "");
    // A grant takes nothing away from whom the configuration names, and gives it nothing.
    let jane: UserId = "jane".parse().unwrap();
    let named = request(99, &jane, &[grant(99).sign(&key(1))]);
    let proof = authority.prove(&policy, &named, NOW).unwrap();
    assert!(!proof.brings_evidence());
    authority.accept(proof, NOW, |_| true).unwrap();
    assert_eq!(authority.rights(&policy, &jane, NOW).unwrap().prefixes, ["10.9.0.0/16".parse::<IpNet>().unwrap()]);
}

#[test]
fn an_issuer_gives_no_more_than_the_operator_lets_it() {
    let ask = |policy: &NodePolicy, grant: Grant| ask(&mut Authority::default(), policy, 2, &[grant.sign(&key(1))]);
    let wide = Grant { prefixes: vec!["0.0.0.0/0".parse().unwrap()], ..grant(2) };
    assert_refused(ask(&policy(), wide), RefusalKind::PrefixNotAllowed, "it may not give 0.0.0.0/0; ask `");
    let many = Grant {
        prefixes: ["10.1.0.0/24", "10.2.0.0/24", "10.3.0.0/24"].map(|one| one.parse().unwrap()).into(),
        ..grant(2)
    };
    assert_refused(ask(&policy(), many), RefusalKind::QuotaExceeded, "3 prefixes, at most 2");
    let mut limited = policy();
    limited.classes.get_mut("guest").unwrap().rights.ports = vec!["5060-5061".parse().unwrap()];
    assert_eq!(ask(&limited, grant(2)).unwrap().ports, ["5060-5061".parse().unwrap()]);
    let ports = |ports: &str| Grant { ports: vec![ports.parse().unwrap()], ..grant(2) };
    assert_eq!(ask(&limited, ports("5061")).unwrap().ports, ["5061".parse().unwrap()]);
    assert_refused(ask(&limited, ports("5061-5062")), RefusalKind::PortNotAllowed, "beyond the ports");
    assert_eq!(ask(&policy(), Grant { modules_max: Some(9), ..grant(2) }).unwrap().modules_max, 2);
    let nothing = NodePolicy { classes: Default::default(), ..policy() };
    assert_refused(ask(&nothing, grant(2)), RefusalKind::BadProof, "class `guest`");
    assert_refused(ask(&NodePolicy::new("n".parse().unwrap()), grant(2)), RefusalKind::BadProof, "takes no grants");
}

#[test]
fn rights_end_with_their_proof_and_with_the_operators_trust() {
    let (mut authority, mut policy) = (Authority::default(), policy());
    let user = user_of(&public(2));
    let of = |end: u64| [Grant { exp: NOW.0 / 1000 + end, ..grant(2) }.sign(&key(1))];
    ask(&mut authority, &policy, 2, &of(60)).unwrap();
    let end = NOW + Duration::from_secs(60);
    assert!(authority.rights(&policy, &user, UnixTime(end.0 - 1)).is_ok());
    assert_refused(authority.rights(&policy, &user, end).cloned(), RefusalKind::BadProof, "it ended at");
    assert_eq!(authority.next_end(end), None);
    // It asks with a longer one, and then with a shorter one again.
    ask_at(&mut authority, &policy, 2, &of(120), end, |_| true).unwrap();
    ask_at(&mut authority, &policy, 2, &of(90), end, |_| true).unwrap();
    assert_eq!(authority.next_end(end), Some(NOW + Duration::from_secs(120)));
    let trusted = std::mem::take(&mut policy.issuers);
    authority.set_policy(&policy);
    assert_refused(authority.rights(&policy, &user, NOW).cloned(), RefusalKind::BadProof, "takes no grants of");
    policy.issuers = trusted;
    authority.set_policy(&policy);
    assert!(authority.rights(&policy, &user, NOW).is_ok(), "the operator trusts it again");
    authority.forget_ended(at(NOW + Duration::from_secs(200)), |_| true);
    assert!(authority.evidence(&user).is_some(), "it has modules");
    authority.forget_ended(at(NOW + Duration::from_secs(200)), |_| false);
    assert!(authority.evidence(&user).is_none());
}

#[test]
fn a_grant_takes_nothing_away_that_modules_depend_on() {
    let (mut authority, policy) = (Authority::default(), policy());
    let of = |prefixes: &[&str], end: u64| {
        let prefixes = prefixes.iter().map(|one| one.parse().unwrap()).collect();
        [Grant { prefixes, exp: NOW.0 / 1000 + end, ..grant(2) }.sign(&key(1))]
    };
    ask(&mut authority, &policy, 2, &of(&["10.2.1.0/24"], 60)).unwrap();
    let other = of(&["10.2.2.0/24"], 600);
    assert_refused(ask(&mut authority, &policy, 2, &other), RefusalKind::QuotaExceeded, "modules depend on that");
    let both = of(&["10.2.1.0/24", "10.2.2.0/24"], 30);
    assert_eq!(ask(&mut authority, &policy, 2, &both).unwrap().prefixes.len(), 2);
    let may = ask_at(&mut authority, &policy, 2, &other, NOW, |_| false).unwrap();
    assert_eq!(may.prefixes, ["10.2.2.0/24".parse::<IpNet>().unwrap()], "without modules the newest holds");
}

#[test]
fn the_number_of_strangers_is_bounded_and_idle_ones_give_way() {
    let mut policy = policy();
    let mut authority = Authority::default();
    let mut by = |to: u8, policy: &NodePolicy, busy: &[u8]| {
        let grants = [Grant { exp: NOW.0 / 1000 + u64::from(to), ..grant(to) }.sign(&key(1))];
        let busy: Vec<UserId> = busy.iter().map(|to| user_of(&public(*to))).collect();
        ask_at(&mut authority, policy, to, &grants, NOW, |user| busy.contains(user))
    };
    for to in [12, 11, 13] {
        by(to, &policy, &[]).unwrap();
    }
    assert_refused(by(14, &policy, &[11, 12, 13]), RefusalKind::QuotaExceeded, "3 users");
    by(14, &policy, &[11, 13]).unwrap();
    assert!(authority.evidence(&user_of(&public(12))).is_none(), "it had nothing here");
    assert!(authority.evidence(&user_of(&public(11))).is_some());
    // All issuers together.
    policy.classes.get_mut("guest").unwrap().users_max = usize::MAX;
    let restored = |authority: &mut Authority, number: u32| {
        let mut seed = [7; 32];
        seed[..4].copy_from_slice(&number.to_be_bytes());
        let sub = PublicKey(SigningKey::from_bytes(&seed).verifying_key().to_bytes());
        let text = Grant { sub, ..grant(2) }.sign(&key(1));
        authority.restore(&policy, &user_of(&sub), &Evidence::Grants(vec![text]), NOW);
        user_of(&sub)
    };
    let mut full = Authority::default();
    let most = u32::try_from(GRANTED_USERS_MAX).unwrap();
    let last: Vec<UserId> = (0..=most).map(|number| restored(&mut full, number)).collect();
    assert!(full.rights(&policy, &last[0], NOW).is_ok());
    assert!(full.rights(&policy, &last[GRANTED_USERS_MAX], NOW).is_err());
    assert_refused(ask(&mut full, &policy, 2, &[grant(2).sign(&key(1))]), RefusalKind::QuotaExceeded, "512 users");
}

fn address_policy() -> NodePolicy {
    let excluded = vec!["192.0.2.0/24".parse().unwrap()];
    NodePolicy { address_class: Some("guest".to_owned()), address_excluded: excluded, ..policy() }
}

fn by_address(by: u8, address: &str) -> (UserId, Request) {
    let user = user_of(&public(by));
    let proof = AddressProof { address: address.parse().unwrap(), key: public(by), random: Nonce([by; 16]) };
    (user.clone(), Request { address_proof: Some(proof), ..request(by, &user, &[]) })
}

fn as_setup(request: Request) -> Request {
    let setup = netserv_model::request::Setup {
        module: "example.org/m@1.0.0".parse().unwrap(),
        url: String::new(),
        digest: Digest([0; 32]),
        filters: Vec::new(),
        intercept: Vec::new(),
        properties: Default::default(),
        dependencies: Vec::new(),
        ttl: Duration::from_secs(60),
        epoch: 0,
        state: None,
        floating: Vec::new(),
        prepare: false,
        buffer: None,
    };
    Request { body: Body::from(setup), ..request }
}

#[test]
fn an_address_vouches_for_itself_alone_and_for_a_while() {
    let (mut authority, policy) = (Authority::default(), address_policy());
    let (user, asked) = by_address(2, "203.0.113.9");
    let address = "203.0.113.9".parse().unwrap();
    assert_eq!(authority.prove(&policy, &asked, NOW).map(drop), Err(Unproven::Ask(Question::Address(address))));
    let said = || Said::Address(digest_of(&asked.address_proof.unwrap()));
    let wrong = authority.vouched_for(&policy, &asked, Said::Address(Digest([1; 32])), NOW).map(drop);
    assert_refused(wrong, RefusalKind::BadProof, "not for this key and random number");
    let proof = authority.vouched_for(&policy, &asked, said(), NOW).unwrap();
    authority.accept(proof, NOW, |_| true).unwrap();
    let may = authority.rights(&policy, &user, NOW).unwrap();
    assert_eq!(may.prefixes, ["203.0.113.9/32".parse::<IpNet>().unwrap()]);
    assert!(authority.rights(&policy, &user, UnixTime((NOW + ADDRESS_TIME).0 - 1)).is_ok());
    assert_refused(authority.rights(&policy, &user, NOW + ADDRESS_TIME).cloned(), RefusalKind::BadProof, "it ended");
    // It is asked again for a SETUP after a while, and for nothing else.
    let setup = as_setup(asked.clone());
    assert!(authority.prove(&policy, &setup, NOW + ADDRESS_ASKED_AFTER).is_ok());
    let late = NOW + ADDRESS_ASKED_AFTER + Duration::from_secs(1);
    assert_eq!(authority.prove(&policy, &setup, late).map(drop), Err(Unproven::Ask(Question::Address(address))));
    assert!(authority.prove(&policy, &asked, late).is_ok());
    let proof = authority.vouched_for(&policy, &setup, said(), late).unwrap();
    authority.accept(proof, late, |_| true).unwrap();
    assert!(authority.rights(&policy, &user, NOW + ADDRESS_TIME).is_ok(), "that prolongs it");
    // Another address of the same key takes nothing away while modules depend on the first.
    let (_, other) = by_address(2, "203.0.113.10");
    let proof = authority.vouched_for(&policy, &other, said(), late).unwrap();
    assert_refused(authority.accept(proof, late, |_| true), RefusalKind::QuotaExceeded, "modules depend on that");
    let kept = authority.evidence(&user).unwrap().clone();
    let mut restarted = Authority::default();
    restarted.restore(&policy, &user, &kept, late);
    assert!(restarted.rights(&policy, &user, late).is_ok());
    let closed = NodePolicy { address_class: None, ..policy.clone() };
    authority.set_policy(&closed);
    assert_refused(authority.rights(&closed, &user, late).cloned(), RefusalKind::BadProof, "no address vouch");
}

/// Goal: a user whom the operator names while its address is asked has the operator's keys.
#[test]
fn an_answer_gives_nothing_to_a_user_who_is_named_by_then() {
    let (authority, mut policy) = (Authority::default(), address_policy());
    let (user, asked) = by_address(2, "203.0.113.9");
    let said = || Said::Address(digest_of(&asked.address_proof.unwrap()));
    for (named, is_taken) in [(3, false), (2, true)] {
        policy.users.insert(user.clone(), UserPolicy { keys: vec![public(named)], ..UserPolicy::default() });
        let proof = authority.vouched_for(&policy, &asked, said(), NOW);
        assert_eq!(proof.map(|proof| proof.brings_evidence()).ok(), is_taken.then_some(false));
    }
}

/// Goal: a clock that was years ahead when an address was asked does not give its user years.
#[test]
fn an_address_vouches_for_no_longer_since_the_clock_was_set_back() {
    let (mut authority, policy) = (Authority::default(), address_policy());
    let (user, asked) = by_address(2, "203.0.113.9");
    let said = Said::Address(digest_of(&asked.address_proof.unwrap()));
    let proof = authority.vouched_for(&policy, &asked, said, NOW).unwrap();
    authority.accept(proof, NOW, |_| true).unwrap();
    let before = |time: Duration| UnixTime(NOW.0 - u64::try_from(time.as_millis()).unwrap());
    assert!(authority.rights(&policy, &user, before(ADDRESS_TIME)).is_ok(), "a clock that is set right by little");
    let years = before(Duration::from_secs(3 * 365 * 24 * HOUR));
    assert_refused(authority.rights(&policy, &user, years).cloned(), RefusalKind::BadProof, "was set back");
    assert!(matches!(authority.prove(&policy, &asked, years), Err(Unproven::Ask(_))));
}

/// Goal: nobody has a node ask an address without a signed request of a key that the user's name is, and none that vouches for nobody.
#[test]
fn no_address_is_asked_for_nothing() {
    let (authority, policy) = (Authority::default(), address_policy());
    let check = |request: &Request, policy: &NodePolicy, kind: RefusalKind, detail: &str| {
        assert_refused(refused(authority.prove(policy, request, NOW)).map(drop), kind, detail);
    };
    let (_, good) = by_address(2, "203.0.113.9");
    check(&good, &self::policy(), RefusalKind::BadProof, "no address vouch");
    check(&Request { signature: None, ..good.clone() }, &policy, RefusalKind::Unsigned, "");
    let forged = Request { signed_bytes: b"another".to_vec(), ..good.clone() };
    check(&forged, &policy, RefusalKind::BadSignature, "");
    let other = Request { user: Some(user_of(&public(3))), ..good.clone() };
    check(&other, &policy, RefusalKind::BadProof, "the request names");
    let mut served = policy.clone();
    served.container_prefixes = vec!["203.0.113.0/24".parse().unwrap()];
    check(&good, &served, RefusalKind::PrefixNotAllowed, "that of a container");
    for nobody in ["192.0.2.1", "127.0.0.1", "224.0.0.1", "0.0.0.0", "::1", "fe80::1", "ff02::1", "255.255.255.255"] {
        let (_, asked) = by_address(2, nobody);
        check(&asked, &policy, RefusalKind::PrefixNotAllowed, "vouches for nobody");
    }
    let jane: UserId = "jane".parse().unwrap();
    let named = Request { user: Some(jane), ..good };
    check(&named, &policy, RefusalKind::BadSignature, "");
}

/// Goal: whoever has only seen a chain is told that nobody is proven, whatever else is wrong with it: what is refused for other reasons
/// counts as the named user's own where requests take turns. Method: chains that the operator takes none of, without the last key.
#[test]
fn who_does_not_hold_the_last_key_is_nobody() {
    let user = user_of(&public(2));
    let wide = Grant { prefixes: vec!["0.0.0.0/0".parse().unwrap()], ..grant(2) };
    let many = ["10.1.0.0/24", "10.2.0.0/24", "10.3.0.0/24"].map(|one| one.parse().unwrap()).to_vec();
    let mut limited = policy();
    limited.classes.get_mut("guest").unwrap().rights.ports = vec!["5060".parse().unwrap()];
    let ports = Grant { ports: vec!["80".parse().unwrap()], ..grant(2) };
    for (policy, seen) in [(policy(), wide), (policy(), Grant { prefixes: many, ..grant(2) }), (limited, ports)] {
        let grants = [seen.sign(&key(1))];
        for (by, name, kind) in
            [(3, &user, RefusalKind::BadSignature), (3, &user_of(&public(3)), RefusalKind::BadProof)]
        {
            let result = refused(Authority::default().prove(&policy, &request(by, name, &grants), NOW)).map(drop);
            assert_refused(result, kind, "");
        }
    }
}

/// Goal: an issuer has no more users than its class says, whoever vouched for them before. Method: users of another issuer change over.
#[test]
fn who_changes_issuers_counts_as_the_new_ones() {
    let mut policy = policy();
    let second = Issuer { name: "second".to_owned(), keys: vec![public(50)], ..policy.issuers[0].clone() };
    policy.classes.insert("few".to_owned(), Class { users_max: 1, ..policy.classes["guest"].clone() });
    policy.issuers.push(Issuer { class: "few".to_owned(), ..second });
    let mut authority = Authority::default();
    let mut by = |issuer: u8, to: u8, busy: bool| {
        let grants = [Grant { exp: NOW.0 / 1000 + u64::from(issuer) + 60, ..grant(to) }.sign(&key(issuer))];
        ask_at(&mut authority, &policy, to, &grants, NOW, |_| busy)
    };
    for to in [11, 12] {
        by(1, to, false).unwrap();
    }
    by(50, 11, true).unwrap();
    assert_refused(by(50, 12, true), RefusalKind::QuotaExceeded, "1 users");
    assert!(authority.evidence(&user_of(&public(12))).is_some(), "it keeps what it had");
}

/// Goal: modules keep what they run by: also what the class gives. Method: another issuer of a class with less vouches for longer.
#[test]
fn a_grant_of_a_lesser_class_takes_nothing_away_either() {
    let mut policy = policy();
    policy.classes.get_mut("guest").unwrap().rights.listen = vec!["tcp port 80".parse().unwrap()];
    let mut less = policy.classes["guest"].clone();
    less.rights.listen.clear();
    policy.classes.insert("less".to_owned(), less);
    let second = Issuer { name: "second".to_owned(), keys: vec![public(50)], ..policy.issuers[0].clone() };
    policy.issuers.push(Issuer { class: "less".to_owned(), ..second });
    let mut authority = Authority::default();
    let by = |issuer: u8, end: u64| [Grant { exp: NOW.0 / 1000 + end, ..grant(2) }.sign(&key(issuer))];
    ask(&mut authority, &policy, 2, &by(1, 60)).unwrap();
    assert_refused(ask(&mut authority, &policy, 2, &by(50, 600)), RefusalKind::QuotaExceeded, "modules depend on that");
    let may = ask_at(&mut authority, &policy, 2, &by(50, 600), NOW, |_| false).unwrap();
    assert!(may.listen.is_empty(), "without modules the newest holds");
    // It has modules from here on, and a grant with more that ends earlier does not go unseen.
    let refused = ask(&mut authority, &policy, 2, &by(1, 60));
    assert_refused(refused, RefusalKind::QuotaExceeded, "modules depend on that");
}

/// Goal: no clock makes a lease longer than the class or the proof has it. Method: the clock is set before and after the proof's time.
#[test]
fn leases_are_bounded_whatever_the_clock_shows() {
    let (mut authority, mut policy) = (Authority::default(), policy());
    policy.classes.get_mut("guest").unwrap().lease_max = Some(Duration::from_secs(300));
    ask(&mut authority, &policy, 2, &[grant(2).sign(&key(1))]).unwrap();
    let (user, day) = (user_of(&public(2)), Duration::from_secs(24 * HOUR));
    assert_eq!(authority.lease_max(&user, NOW), Some(Duration::from_secs(300)));
    assert_eq!(authority.lease_max(&user, UnixTime(NOW.0 - 24 * HOUR * 1000)), Some(Duration::from_secs(300)));
    assert_eq!(authority.lease_max(&user, NOW + day), Some(Duration::ZERO));
    assert_eq!(authority.lease_max(&"jane".parse().unwrap(), NOW), None);
}

/// Goal: a stranger's name is its key's, also where the operator takes unsigned requests. Method: nobody signs in the name of one who is
/// known.
#[test]
fn nobody_asks_unsigned_in_a_strangers_name() {
    let lax = NodePolicy { accept_unsigned: true, ..policy() };
    let mut authority = Authority::default();
    ask(&mut authority, &lax, 2, &[grant(2).sign(&key(1))]).unwrap();
    let unsigned = Request { signature: None, ..request(2, &user_of(&public(2)), &[]) };
    assert_refused(refused(authority.prove(&lax, &unsigned, NOW)).map(drop), RefusalKind::Unsigned, "");
}

/// Goal: no time in a grant is beyond what is shown and reckoned with. Method: one that would end after the last year of four digits.
#[test]
fn a_grant_ends_in_a_year_of_four_digits() {
    let until = |exp: u64| Grant::verify(&Grant { exp, ..grant(2) }.sign(&key(1)));
    assert!(until(253_402_300_799).is_ok());
    for exp in [253_402_300_800, u64::MAX] {
        assert!(matches!(until(exp), Err(GrantError::Claims(_))), "{exp}");
    }
}

/// Goal: header and claims are objects (RFC 7515 §4, RFC 7519 §7.2), in which each value has a name. Method: the same values in arrays.
#[test]
fn a_grant_without_names_is_none() {
    let (iss, sub) = (public(1), public(2));
    let (header, claims) = (
        r#"{"alg":"EdDSA","typ":"netserv-grant+jwt"}"#,
        format!(r#"{{"iss":"{iss}","sub":"{sub}","nbf":1,"exp":2,"prefixes":["10.0.0.0/8"]}}"#),
    );
    let list = format!(r#"["{iss}","{sub}",1,2,["10.0.0.0/8"],[],null,3]"#);
    let signed = |header: &str, claims: &str| {
        let text = format!("{}.{}", BASE64.encode(header), BASE64.encode(claims));
        format!("{text}.{}", BASE64.encode(key(1).sign(text.as_bytes()).to_bytes()))
    };
    assert!(Grant::verify(&signed(header, &claims)).is_ok());
    assert!(matches!(Grant::verify(&signed(header, &list)), Err(GrantError::Claims(_))));
    let header = r#"["EdDSA","netserv-grant+jwt",null]"#;
    assert_eq!(Grant::verify(&signed(header, &claims)), Err(GrantError::Header));
}
