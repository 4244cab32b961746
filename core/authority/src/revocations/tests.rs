// SPDX-License-Identifier: Apache-2.0
//! What issuers take back.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ed25519_dalek::Signer as _;
use ipnet::IpNet;
use netserv_model::RefusalKind;
use netserv_model::evidence::{Checklist, Evidence, Holder};
use netserv_model::policy::RevocationSource;
use netserv_model::request::Request;
use proptest::prelude::*;

use super::*;
use crate::grant::{Grant, user_of};
use crate::tests::{HOUR, NOW, ask, assert_refused, at, grant, key, policy, public, refused, request};
use crate::{Authority, Said};

const DAY: u64 = 24 * HOUR;

/// A policy that wants lists of `house` which are a day old at most.
fn with_lists() -> NodePolicy {
    let mut policy = policy();
    let (every, age_max) = (Duration::from_secs(30), Duration::from_secs(DAY));
    policy.issuers[0].keys.push(public(9));
    policy.issuers[0].revocations = Some(RevocationSource { url: "https://lists.example/".to_owned(), every, age_max });
    policy
}

/// An empty list of a number, made now and good for a week.
fn list(number: u64) -> Revocations {
    let (iss, iat) = (PublicKey([0; 32]), NOW.0 / 1000);
    Revocations { iss, iat, exp: iat + 7 * DAY, number, grants: BTreeSet::new(), keys: BTreeSet::new() }
}

fn of_grants(number: u64, texts: &[&String]) -> Revocations {
    Revocations { grants: texts.iter().map(|text| digest_of_grant(text)).collect(), ..list(number) }
}

fn of_keys(number: u64, keys: &[u8]) -> Revocations {
    Revocations { keys: keys.iter().map(|key| public(*key)).collect(), ..list(number) }
}

fn set(authority: &mut Authority, list: Revocations) -> Result<bool, RevocationsError> {
    authority.set_list(&with_lists(), "house", &list.sign(&key(1)))
}

/// An authority with an empty list.
fn listening() -> Authority {
    let mut authority = Authority::default();
    assert_eq!(set(&mut authority, list(1)), Ok(true));
    authority
}

fn long_chain(last: u8) -> Vec<String> {
    let (nbf, exp) = (NOW.0 / 1000 - 2 * DAY, NOW.0 / 1000 + 90 * DAY);
    (1..last).map(|by| Grant { delegations: 4 - by, nbf, exp, ..grant(by + 1) }.sign(&key(by))).collect()
}

/// Goal: whoever changes a list in the smallest way has none. Method: each bit of its text is flipped, one after the other.
#[test]
fn a_list_with_a_flipped_bit_is_none() {
    let list = Revocations { keys: [public(3)].into(), ..of_grants(7, &[&grant(2).sign(&key(1))]) };
    let text = list.sign(&key(1));
    assert_eq!(Revocations::verify(&text).unwrap().number, 7);
    let mut authority = Authority::default();
    for at in 0..text.len() * 8 {
        let mut bytes = text.clone().into_bytes();
        bytes[at / 8] ^= 1 << (at % 8);
        if let Ok(text) = String::from_utf8(bytes) {
            assert!(authority.set_list(&with_lists(), "house", &text).is_err(), "bit {at}");
        }
    }
    assert_eq!(authority.list_of("house"), None);
}

/// Goal: a list may be made by any program that writes JWS, and what it says that nodes do not know makes it none. Method: headers
/// and claims of others, signed as they are.
#[test]
fn lists_of_other_programs_are_taken_as_far_as_they_are_understood() {
    let signed = |header: &str, claims: &str| {
        let text = format!("{}.{}", BASE64.encode(header), BASE64.encode(claims));
        format!("{text}.{}", BASE64.encode(key(1).sign(text.as_bytes()).to_bytes()))
    };
    let header = r#"{"typ":"netserv-revocations+jwt", "kid":"a","alg":"Ed25519"}"#;
    let claims = |more: &str| format!(r#"{{"number":3, "iss":"{}","iat":1,"exp":2{more}}}"#, public(1));
    assert_eq!(Revocations::verify(&signed(header, &claims(""))).unwrap().number, 3);
    assert_eq!(Revocations::verify(&grant(2).sign(&key(1))), Err(RevocationsError::Header));
    for bad in [
        r#","serials":[1]"#,
        r#","grants":["sha256:00"]"#,
        r#","keys":["ed25519:"]"#,
        r#","number":4"#,
        r#","grants":null"#,
    ] {
        assert!(
            matches!(Revocations::verify(&signed(header, &claims(bad))), Err(RevocationsError::Claims(_))),
            "{bad}"
        );
    }
    for (claim, bad) in
        [(r#""number":3"#, r#""number":-1"#), (r#""exp":2"#, r#""exp":1"#), (r#""exp":2"#, r#""exp":253402300800"#)]
    {
        let claims = claims("").replace(claim, bad);
        assert!(matches!(Revocations::verify(&signed(header, &claims)), Err(RevocationsError::Claims(_))), "{bad}");
    }
    let own = of_keys(1, &[1]).sign(&key(1));
    assert!(matches!(Revocations::verify(&own), Err(RevocationsError::Claims(_))), "no list could follow it");
    for no_list in ["", ".", "..", "a.b.c", "\u{1f980}.a.b", "<html>"] {
        assert!(Revocations::verify(no_list).is_err(), "{no_list}");
    }
}

#[test]
fn a_list_is_bounded_and_one_at_the_bound_is_taken() {
    let full = |entries: usize| {
        let digest = |at: usize| digest_of_grant(&at.to_string());
        let (grants, keys) = ((1..entries).map(digest).collect(), [public(3)].into());
        Revocations { grants, keys, ..list(u64::MAX) }.sign(&key(1))
    };
    assert!(full(REVOKED_MAX).len() <= REVOCATIONS_BYTES_MAX);
    assert_eq!(Revocations::verify(&full(REVOKED_MAX)).unwrap().grants.len(), REVOKED_MAX - 1);
    let one_more = Revocations::verify(&full(REVOKED_MAX + 1)).unwrap_err();
    assert!(one_more.to_string().contains("at most 512 are taken back"), "{one_more}");
    assert_eq!(Revocations::parse(&"a".repeat(REVOCATIONS_BYTES_MAX)), Err(RevocationsError::NotCompact));
    assert_eq!(Revocations::parse(&"a".repeat(REVOCATIONS_BYTES_MAX + 1)), Err(RevocationsError::TooLong));
}

/// Goal: a chain ends with each of its grants and keys, and no other chain does. Method: a list with one of them after the other, and
/// a chain of four beside another of the same issuer.
#[test]
fn a_chain_ends_with_each_of_its_grants_and_keys() {
    let policy = with_lists();
    let chain = long_chain(5);
    let lists = chain.iter().map(|text| of_grants(2, &[text])).chain((2..=5).map(|key| of_keys(2, &[key])));
    let other = [grant(20).sign(&key(1))];
    for taken in lists {
        let mut authority = listening();
        ask(&mut authority, &policy, 5, &chain).unwrap();
        ask(&mut authority, &policy, 20, &other).unwrap();
        assert_eq!(set(&mut authority, taken.clone()), Ok(true));
        let user = user_of(&public(5));
        assert_refused(authority.rights(&policy, &user, NOW).cloned(), RefusalKind::BadProof, "list 2 of 2027-01-15");
        assert_refused(ask(&mut authority, &policy, 5, &chain), RefusalKind::BadProof, "ask for another grant");
        assert!(authority.rights(&policy, &user_of(&public(20)), NOW).is_ok());
        // It is forgotten once it has nothing on the node.
        let [gone] = &authority.forget_ended(at(NOW), |_| false)[..] else { panic!("it is forgotten") };
        assert!(gone.user == user && gone.basis.starts_with("grant of house sha256:"), "{gone:?}");
        assert!(gone.why.detail.starts_with("grant of `house`"), "{}", gone.why);
        // What the list names no more counts again.
        assert_eq!(set(&mut authority, list(3)), Ok(true));
        assert!(ask(&mut authority, &policy, 5, &chain).is_ok());
    }
    // A key of the issuer's takes another one back, with all that it signed.
    let mut authority = listening();
    ask(&mut authority, &policy, 5, &chain).unwrap();
    assert_eq!(authority.set_list(&policy, "house", &of_keys(2, &[1]).sign(&key(9))), Ok(true));
    assert_refused(ask(&mut authority, &policy, 5, &chain), RefusalKind::BadProof, &public(1).to_string());
    let own = authority.set_list(&policy, "house", &list(3).sign(&key(1)));
    assert_eq!(own, Err(RevocationsError::Revoked(public(1))), "it cannot undo that");
}

#[test]
fn only_the_issuers_own_newest_list_counts() {
    let mut policy = with_lists();
    let second = Issuer { name: "second".to_owned(), keys: vec![public(50)], ..policy.issuers[0].clone() };
    policy.issuers.push(second);
    let mut authority = listening();
    let chain = [grant(2).sign(&key(1))];
    ask(&mut authority, &policy, 2, &chain).unwrap();
    let taken = of_grants(2, &[&chain[0]]);
    for (issuer, by, error) in [
        ("house", 50, Some(RevocationsError::Issuer(public(50)))),
        ("house", 2, Some(RevocationsError::Issuer(public(2)))),
        ("second", 1, Some(RevocationsError::Issuer(public(1)))),
        ("second", 50, None),
        ("nobody", 1, None),
    ] {
        assert_eq!(authority.set_list(&policy, issuer, &taken.clone().sign(&key(by))).err(), error, "{issuer} {by}");
        assert!(authority.rights(&policy, &user_of(&public(2)), NOW).is_ok(), "{issuer} {by}");
    }
    assert_eq!(set(&mut authority, of_grants(7, &[&chain[0]])), Ok(true));
    for (number, list) in [(6, list(6)), (1, list(1)), (7, list(7))] {
        let error = RevocationsError::Older { number, in_force: 7 };
        assert_eq!(set(&mut authority, list), Err(error), "an older list is played back");
    }
    assert_eq!(set(&mut authority, of_grants(7, &[&chain[0]])), Ok(false), "it is the same");
    assert!(authority.rights(&policy, &user_of(&public(2)), NOW).is_err());
    // The operator no longer trusts the key that signed it: nothing holds of it, also not its number.
    let mut other = policy.clone();
    other.issuers[0].keys = vec![public(9)];
    authority.set_policy(&other);
    assert_eq!(authority.list_of("house"), None);
    assert_eq!(authority.set_list(&other, "house", &list(2).sign(&key(9))), Ok(true));
}

/// Goal: without a list that is good, nobody has rights by grants of the issuer; those who had some keep them while the first list is on its way.
/// Method: no list, one that ends, one that is too old, and the node's clock a day before and after.
#[test]
fn grants_count_while_a_list_is_good() {
    let policy = with_lists();
    let chain = long_chain(2);
    let user = user_of(&public(2));
    let mut authority = Authority::default();
    let refuses = |authority: &Authority, now: UnixTime, detail: &str| {
        assert_refused(authority.rights(&policy, &user, now).cloned(), RefusalKind::BadProof, detail);
        let asks = request(2, &user, &chain);
        let asked = refused(authority.prove(&policy, &asks, now)).map(drop);
        assert_refused(asked, RefusalKind::BadProof, detail);
    };
    let asked = ask(&mut authority, &policy, 2, &chain);
    assert_refused(asked, RefusalKind::BadProof, "no revocation list: wait, or ask the operator");
    authority.restore(&policy, &user, &Evidence::Grants(chain.clone()), NOW);
    refuses(&authority, NOW, "no revocation list");
    authority.set_awaited("house", true);
    assert!(authority.rights(&policy, &user, NOW).is_ok());
    let asks = request(2, &user, &chain);
    assert!(authority.prove(&policy, &asks, NOW).is_err(), "nobody new is taken meanwhile");
    authority.set_awaited("house", false);
    refuses(&authority, NOW, "no revocation list");

    set(&mut authority, list(1)).unwrap();
    let (day, end) = (Duration::from_secs(DAY), NOW + Duration::from_secs(DAY));
    assert_eq!(authority.next_end(NOW), Some(end));
    assert!(authority.rights(&policy, &user, UnixTime(end.0 - 1)).is_ok());
    refuses(&authority, end, &format!("the revocation list was good until {end}, it is {end} here"));
    // The clock is set back again, and by a day more: a node that has a wrong time still takes what is taken back.
    let before = UnixTime(NOW.0 - DAY * 1000);
    assert!(authority.rights(&policy, &user, NOW).is_ok());
    assert!(authority.rights(&policy, &user, before).is_ok());
    set(&mut authority, of_keys(2, &[2])).unwrap();
    refuses(&authority, before, "takes back key");
    // Also what is too old takes back, and so it does while another one is awaited.
    authority.set_awaited("house", true);
    refuses(&authority, NOW + day, "takes back key");
    authority.set_awaited("house", false);

    let short = Revocations { exp: NOW.0 / 1000 + 60, ..list(3) };
    set(&mut authority, short).unwrap();
    assert_eq!(authority.next_end(NOW), Some(NOW + Duration::from_secs(60)));
    refuses(&authority, NOW + Duration::from_secs(60), "was good until");
    // The operator wants no lists any more.
    authority.set_policy(&crate::tests::policy());
    assert!(authority.rights(&crate::tests::policy(), &user, NOW + day).is_ok());
    assert_eq!(authority.list_of("house"), None);
}

/// Goal: what was taken back stands in nobody's way. Method: a grant in force that has all of another one is taken back, before and after
/// a restart.
#[test]
fn another_grant_takes_the_place_of_one_that_was_taken_back() {
    let (policy, user) = (with_lists(), user_of(&public(2)));
    let wide = [grant(2).sign(&key(1))];
    let narrow =
        [Grant { prefixes: vec!["10.2.1.0/24".parse().unwrap()], exp: NOW.0 / 1000 + 60, ..grant(2) }.sign(&key(1))];
    let taken = of_grants(2, &[&wide[0]]);
    let mut authority = listening();
    ask(&mut authority, &policy, 2, &wide).unwrap();
    assert_eq!(ask(&mut authority, &policy, 2, &narrow).unwrap().prefixes, ["10.2.0.0/16".parse::<IpNet>().unwrap()]);
    set(&mut authority, taken.clone()).unwrap();
    assert_eq!(ask(&mut authority, &policy, 2, &narrow).unwrap().prefixes, ["10.2.1.0/24".parse::<IpNet>().unwrap()]);
    let mut restarted = Authority::default();
    set(&mut restarted, taken).unwrap();
    for evidence in [&narrow, &wide] {
        restarted.restore(&policy, &user, &Evidence::Grants(evidence.to_vec()), NOW);
    }
    assert!(restarted.rights(&policy, &user, NOW).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Goal: no order in which lists come lets an older one undo a newer one, or makes a chain count that the newest list takes back. Method: lists of
    /// random numbers that take random keys back, in random order, beside what the numbers say.
    #[test]
    fn the_highest_number_is_in_force(lists in prop::collection::vec((0..6_u64, prop::collection::btree_set(2..5_u8, 0..3)), 1..8)) {
        let policy = with_lists();
        let chain = long_chain(4);
        let mut authority = listening();
        ask(&mut authority, &policy, 4, &chain).unwrap();
        let mut newest = (1, BTreeSet::new());
        for (number, keys) in lists {
            let next = Revocations { keys: keys.iter().map(|key| public(*key)).collect(), ..list(number) };
            let taken = set(&mut authority, next);
            if number > newest.0 {
                newest = (number, keys.clone());
                prop_assert_eq!(taken, Ok(true));
            } else if (number, &keys) == (newest.0, &newest.1) {
                prop_assert_eq!(taken, Ok(false));
            } else {
                prop_assert!(taken.is_err());
            }
            prop_assert_eq!(authority.list_of("house").unwrap().number, newest.0);
            prop_assert_eq!(authority.rights(&policy, &user_of(&public(4)), NOW).is_ok(), newest.1.is_empty());
        }
    }

    #[test]
    fn no_text_is_too_odd_for_a_list(text in "[A-Za-z0-9_.-]{0,90}|\\PC{0,20}") {
        prop_assert!(Revocations::verify(&text).is_err());
    }
}

/// Goal: what an issuer took back stays so, also if a checklist names it. Method: grants of an issuer who holds the prefixes, too, with its list
/// before they come, and after.
#[test]
fn a_checklist_brings_back_nothing_that_an_issuer_took() {
    let policy = NodePolicy { rpki_class: Some("guest".to_owned()), ..with_lists() };
    let text = grant(2).sign(&key(1));
    let user = user_of(&public(2));
    let checklist = Some(Checklist::new(vec![7; 9]).unwrap());
    let asked = Request { checklist, ..request(2, &user, std::slice::from_ref(&text)) };
    let holder = || {
        let prefixes = vec!["10.0.0.0/8".parse().unwrap()];
        Said::Holder(Holder { prefixes, until: NOW + Duration::from_secs(HOUR) })
    };
    let mut authority = listening();
    let proof = authority.vouched_for(&policy, &asked, holder(), NOW).unwrap();
    authority.accept(proof, NOW, |_| true).unwrap();
    assert_eq!(set(&mut authority, of_grants(2, &[&text])), Ok(true));
    let takes = "takes back grant";
    assert_refused(authority.rights(&policy, &user, NOW).cloned(), RefusalKind::BadProof, takes);
    assert_refused(authority.vouched_for(&policy, &asked, holder(), NOW).map(drop), RefusalKind::BadProof, takes);
    assert_refused(refused(authority.prove(&policy, &asked, NOW)).map(drop), RefusalKind::BadProof, takes);
}
