// SPDX-License-Identifier: Apache-2.0
//! Grants whose first one a checklist names.

use netserv_model::evidence::{Checklist, Holder};
use sha2::{Digest as _, Sha256};

use super::*;
use crate::digest_of_grant;
use crate::limits::DOUBTED_TIME;

fn rpki_policy() -> NodePolicy {
    NodePolicy { rpki_class: Some("guest".to_owned()), ..policy() }
}

fn holder(prefix: &str, hours: u64) -> Holder {
    Holder { prefixes: vec![prefix.parse().unwrap()], until: NOW + Duration::from_secs(hours * HOUR) }
}

fn checklist(byte: u8) -> Checklist {
    Checklist::new(vec![byte; 100]).unwrap()
}

/// A request of key 3, by two grants from key 7 on, whom no operator knows.
fn by_checklist(byte: u8) -> (UserId, Request) {
    let user = user_of(&public(3));
    let first = Grant { delegations: 1, ..grant(2) }.sign(&key(7));
    let second = Grant { delegations: 0, ..grant(3) }.sign(&key(2));
    (user.clone(), Request { checklist: Some(checklist(byte)), ..request(3, &user, &[first, second]) })
}

#[test]
fn the_holder_of_prefixes_vouches_by_a_checklist() {
    let (mut authority, policy) = (Authority::default(), rpki_policy());
    let (user, asked) = by_checklist(1);
    let question = Question::Holder { checklist: checklist(1), grant: digest_of_grant(&asked.grants[0]) };
    assert_eq!(authority.prove(&policy, &asked, NOW).map(drop), Err(Unproven::Ask(question.clone())));
    let found = |said| authority.vouched_for(&policy, &asked, said, NOW);
    let others = Said::Holder(holder("10.3.0.0/16", 5));
    assert_refused(found(others).map(drop), RefusalKind::PrefixNotAllowed, "it may not give 10.2.0.0/16");
    assert_refused(found(Said::Holder(holder("10.2.0.0/16", 0))).map(drop), RefusalKind::BadProof, "it ended");
    assert_refused(found(Said::Address(Digest([1; 32]))).map(drop), RefusalKind::Unsigned, "no evidence");
    let proof = found(Said::Holder(holder("10.0.0.0/8", 5))).unwrap();
    authority.accept(proof, NOW, |_| true).unwrap();
    let may = authority.rights(&policy, &user, NOW).unwrap();
    assert_eq!((may.prefixes.clone(), may.modules_max), (vec!["10.2.0.0/16".parse::<IpNet>().unwrap()], 2));
    assert_eq!(authority.end_of(&user), Some(NOW + Duration::from_secs(HOUR)), "the grants end first");
    assert!(authority.prove(&policy, &asked, NOW).is_ok(), "it is not asked again for that");
    let (_, other) = by_checklist(2);
    assert!(matches!(authority.prove(&policy, &other, NOW), Err(Unproven::Ask(_))));
    let kept = authority.evidence(&user).unwrap().clone();
    let mut restarted = Authority::default();
    restarted.restore(&policy, &user, &kept, NOW);
    assert!(restarted.rights(&policy, &user, NOW).is_ok());
    let closed = self::policy();
    authority.set_policy(&closed);
    assert_refused(authority.rights(&closed, &user, NOW).cloned(), RefusalKind::BadProof, "takes no checklists");
}

/// Goal: rights by a checklist are those of its holder as it is now, and end when nobody is behind it any more.
#[test]
fn who_is_behind_a_checklist_is_found_out_again() {
    let (mut authority, policy) = (Authority::default(), rpki_policy());
    let (user, asked) = by_checklist(1);
    assert_eq!(authority.next_checklist(None), None);
    let proof = authority.vouched_for(&policy, &asked, Said::Holder(holder("10.0.0.0/8", 5)), NOW).unwrap();
    authority.accept(proof, NOW, |_| true).unwrap();
    let (first, question) = authority.next_checklist(None).unwrap();
    assert!(*first == user && matches!(question, Question::Holder { .. }));
    assert_eq!(authority.next_checklist(Some(&user)), None);

    let mut again = |of: Checklist, said| {
        let now = at(NOW).instant;
        authority.checked_again(&policy, (now, now), &user, &of, said)
    };
    assert!(!again(checklist(1), Ok(holder("10.2.0.0/15", 5))), "it has all that is needed");
    assert!(!again(checklist(9), Err(Refusal::new(RefusalKind::BadProof, "of another"))));
    assert!(again(checklist(1), Ok(Holder { until: NOW + Duration::from_secs(9), ..holder("10.2.0.0/15", 0) })));
    assert!(again(checklist(1), Ok(holder("10.3.0.0/16", 5))), "the prefixes are another's now");
    assert!(!again(checklist(1), Err(Refusal::new(RefusalKind::BadProof, "revoked"))), "there was nothing to lose");
    assert_refused(authority.rights(&policy, &user, NOW).cloned(), RefusalKind::BadProof, "revoked");
    // The cache may be there again later.
    assert!(!authority.checked_again(
        &policy,
        (at(NOW).instant, at(NOW).instant),
        &user,
        &checklist(1),
        Ok(holder("10.2.0.0/16", 5))
    ));
    assert!(authority.rights(&policy, &user, NOW).is_ok());
}

/// Goal: nobody has a node look at a checklist without a signed request of the last key of good grants.
#[test]
fn no_checklist_is_looked_at_for_nothing() {
    let (authority, policy) = (Authority::default(), rpki_policy());
    let check = |request: &Request, policy: &NodePolicy, kind: RefusalKind, detail: &str| {
        assert_refused(refused(authority.prove(policy, request, NOW)).map(drop), kind, detail);
    };
    let (_, good) = by_checklist(1);
    check(&good, &self::policy(), RefusalKind::BadProof, "takes no checklists");
    check(&Request { signature: None, ..good.clone() }, &policy, RefusalKind::Unsigned, "");
    check(&Request { signed_bytes: b"another".to_vec(), ..good.clone() }, &policy, RefusalKind::BadSignature, "");
    let other = Request { user: Some(user_of(&public(2))), ..good.clone() };
    check(&other, &policy, RefusalKind::BadProof, "the request names");
    // The first grant by a key that is not the one it names: its signature is nobody's.
    let signed = Grant { delegations: 1, ..grant(2) }.sign(&key(7));
    let (text, _) = signed.rsplit_once('.').unwrap();
    let signature = BASE64.encode(key(8).sign(text.as_bytes()).to_bytes());
    let forged = Request { grants: vec![format!("{text}.{signature}"), good.grants[1].clone()], ..good.clone() };
    check(&forged, &policy, RefusalKind::BadProof, "did not sign");
    let without = Request { checklist: None, ..good };
    check(&without, &policy, RefusalKind::BadProof, "takes no grants of");
}

/// Goal: a reload gives nobody back what the RPKI took.
#[test]
fn a_reload_does_not_bring_back_who_was_behind_a_checklist() {
    let (mut authority, policy) = (Authority::default(), rpki_policy());
    let (user, asked) = by_checklist(1);
    let proof = authority.vouched_for(&policy, &asked, Said::Holder(holder("10.0.0.0/8", 5)), NOW).unwrap();
    authority.accept(proof, NOW, |_| true).unwrap();
    let revoked = Refusal::new(RefusalKind::BadProof, "revoked");
    assert!(authority.checked_again(&policy, (at(NOW).instant, at(NOW).instant), &user, &checklist(1), Err(revoked)));
    authority.set_policy(&policy);
    assert_refused(authority.rights(&policy, &user, NOW).cloned(), RefusalKind::BadProof, "revoked");
    assert!(matches!(authority.prove(&policy, &asked, NOW), Err(Unproven::Ask(_))));
}

/// Has a user whose rights came by a checklist have none since the cache is too old.
fn unknown(policy: &NodePolicy) -> (UserId, Authority) {
    let mut authority = Authority::default();
    let (user, asked) = by_checklist(1);
    let proof = authority.vouched_for(policy, &asked, Said::Holder(holder("10.0.0.0/8", 50)), NOW).unwrap();
    authority.accept(proof, NOW, |_| true).unwrap();
    let began = at(NOW + (Duration::from_secs(HOUR) - DOUBTED_TIME)).instant;
    for (ms, is_lost) in [(0, false), (5000, false), (19_999, false), (20_000, true)] {
        let (now, late) = (began + Duration::from_millis(ms), Refusal::new(RefusalKind::FetchFailed, "old"));
        assert_eq!(authority.checked_again(policy, (began, now), &user, &checklist(1), Err(late)), is_lost, "{ms}");
    }
    assert!(authority.rights(policy, &user, NOW).is_err());
    (user, authority)
}

fn look(authority: &mut Authority, user: &UserId, hours: u64, kind: RefusalKind) -> bool {
    let now = at(NOW + Duration::from_secs(hours * HOUR)).instant;
    authority.checked_again(&rpki_policy(), (now, now), user, &checklist(1), Err(Refusal::new(kind, "old")))
}

/// Goal: nobody loses what its modules kept since the relying party is down for some hours; what is denied is over at once.
#[test]
fn who_is_behind_a_checklist_is_waited_for_over_unknown_kept_time() {
    let forget = |authority: &mut Authority, hours: u64| {
        let gone = authority.forget_ended(at(NOW + Duration::from_secs(hours * HOUR)), |_| false);
        gone.into_iter().map(|gone| gone.user).collect::<Vec<_>>()
    };
    let (user, mut authority) = unknown(&rpki_policy());
    look(&mut authority, &user, 5, RefusalKind::FetchFailed);
    assert_eq!(forget(&mut authority, 24), []);
    assert_eq!(forget(&mut authority, 25), [user], "a day after it was not known for the first time");
    let (user, mut authority) = unknown(&rpki_policy());
    look(&mut authority, &user, 5, RefusalKind::BadProof);
    assert_eq!(forget(&mut authority, 5), [user], "nobody is behind it");
    let (user, mut authority) = unknown(&rpki_policy());
    authority.set_policy(&policy());
    assert_eq!(forget(&mut authority, 5), [user], "the operator takes no checklists");
}

/// Goal: who is waited for takes no place of a user with rights, neither of its class's nor of all.
#[test]
fn who_is_waited_for_gives_way() {
    let mut policy = rpki_policy();
    policy.classes.get_mut("guest").unwrap().users_max = GRANTED_USERS_MAX;
    let (user, mut authority) = unknown(&policy);
    let mut come = |number: usize| {
        let by = SigningKey::from_bytes(&Sha256::digest(number.to_be_bytes()).into());
        let sub = PublicKey(by.verifying_key().to_bytes());
        let (other, grants) = (user_of(&sub), [Grant { sub, ..grant(2) }.sign(&key(1))]);
        let signature = Some(Signature(by.sign(b"a request").to_bytes()));
        let asked = Request { signature, ..request(2, &other, &grants) };
        let proof = refused(authority.prove(&policy, &asked, NOW)).unwrap();
        authority.accept(proof, NOW, |other| *other != user)
    };
    for number in 0..GRANTED_USERS_MAX - 1 {
        assert_eq!(come(number).unwrap(), []);
    }
    let gone = come(GRANTED_USERS_MAX).unwrap();
    assert_eq!(gone.into_iter().map(|gone| gone.user).collect::<Vec<_>>(), [user]);
}

/// Goal: users of whom it was not known who is behind their checklists do not come back beside as many others as the class has places.
#[test]
fn who_is_waited_for_gives_way_to_others_of_its_class() {
    let mut policy = rpki_policy();
    policy.classes.get_mut("guest").unwrap().users_max = 1;
    let (user, mut authority) = unknown(&policy);
    let other = user_of(&public(4));
    let asked = Request { checklist: Some(checklist(2)), ..request(4, &other, &[grant(4).sign(&key(7))]) };
    let come =
        |authority: &Authority| authority.vouched_for(&policy, &asked, Said::Holder(holder("10.0.0.0/8", 5)), NOW);
    let proof = come(&authority).unwrap();
    assert_refused(authority.accept(proof, NOW, |_| true).map(drop), RefusalKind::QuotaExceeded, "by checklists");
    let proof = come(&authority).unwrap();
    let gone = authority.accept(proof, NOW, |_| false).unwrap();
    assert!(gone.len() == 1 && gone[0].user == user);
    assert!(!authority.checked_again(
        &policy,
        (at(NOW).instant, at(NOW).instant),
        &user,
        &checklist(1),
        Ok(holder("10.0.0.0/8", 50))
    ));
    assert!(authority.rights(&policy, &user, NOW).is_err() && authority.rights(&policy, &other, NOW).is_ok());
}
