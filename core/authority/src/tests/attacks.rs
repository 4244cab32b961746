// SPDX-License-Identifier: Apache-2.0
//! Attempts to get in without a right, or to have more than is granted.

use netserv_model::evidence::Checklist;

use super::*;

const HEADER: &str = r#"{"alg":"EdDSA","typ":"netserv-grant+jwt"}"#;

/// Returns claims as a grant that a key signs, whatever they say.
fn signed(by: u8, header: &str, claims: &str) -> String {
    let text = format!("{}.{}", BASE64.encode(header), BASE64.encode(claims));
    format!("{text}.{}", BASE64.encode(key(by).sign(text.as_bytes()).to_bytes()))
}

/// Returns the claims of a good grant of key 1 for key 2 in hours around now, with a part of them changed.
fn claims(part: &str, changed: &str) -> String {
    let (iss, sub, now) = (public(1), public(2), NOW.0 / 1000);
    let (nbf, exp) = (now - HOUR, now + HOUR);
    let good = format!(
        r#"{{"iss":"{iss}","sub":"{sub}","nbf":{nbf},"exp":{exp},"prefixes":["10.2.0.0/16"],"ports":["80"],"modules-max":1,"delegations":1}}"#
    );
    assert!(good.contains(part), "{part}");
    good.replace(part, changed)
}

/// Goal: a grant means the same to who signs it and to every node, or is none. Method: claims that an issuer's key signed, of which readers might
/// make different things.
#[test]
fn claims_that_can_be_read_in_two_ways_are_none() {
    let ask = |claims: &str| ask(&mut Authority::default(), &policy(), 2, &[signed(1, HEADER, claims)]);
    assert!(ask(&claims("", "")).is_ok());
    let (upper, exp) = (public(2).to_string().to_uppercase().replace("ED25519", "ed25519"), NOW.0 / 1000 + HOUR);
    for (part, changed) in [
        // Names that occur twice, also in other letters, and names that only look like one.
        (r#""ports":["80"]"#, r#""ports":["80"],"ports":[]"#),
        (r#""ports":["80"]"#, r#""ports":["80"],"\u0070orts":["0-65535"]"#),
        (r#""modules-max":1"#, r#""modules-max":1,"modules_max":9"#),
        (r#""prefixes""#, r#""Prefixes""#),
        (r#""prefixes""#, "\"prefi\u{445}es\""),
        (r#""prefixes""#, "\"prefixes\u{200b}\""),
        (r#""exp""#, "\"\u{feff}exp\""),
        // Prefixes that others read as other addresses.
        ("10.2.0.0/16", "010.2.0.0/16"),
        ("10.2.0.0/16", "10.2/16"),
        ("10.2.0.0/16", "10.2.0.0"),
        ("10.2.0.0/16", "10.2.0.0/255.255.0.0"),
        ("10.2.0.0/16", "10.2.0.0/-1"),
        ("10.2.0.0/16", "10.2.0.0/33"),
        ("10.2.0.0/16", "10.2.0.0/16\\u0000"),
        ("10.2.0.0/16", "\u{661}0.2.0.0/16"),
        ("10.2.0.0/16", "0x0a020000/16"),
        ("10.2.0.0/16", "fe80::%1/64"),
        // Ports that wrap, are upside down, or are none.
        (r#""80""#, r#""65536""#),
        (r#""80""#, r#""65535-0""#),
        (r#""80""#, r#""-1""#),
        (r#""80""#, r#""80-""#),
        (r#""80""#, r#""""#),
        (r#""80""#, r#""+80""#),
        (r#""80""#, r#""80 - 90""#),
        (r#""80""#, "80"),
        (r#"["80"]"#, "null"),
        // Numbers that are cut or rounded.
        (r#""modules-max":1"#, r#""modules-max":4294967297"#),
        (r#""modules-max":1"#, r#""modules-max":-1"#),
        (r#""modules-max":1"#, r#""modules-max":1.0"#),
        (r#""modules-max":1"#, r#""modules-max":"1""#),
        (r#""delegations":1"#, r#""delegations":256"#),
        (&format!(r#""exp":{exp}"#), &format!(r#""exp":{exp}.5"#)),
        (&format!(r#""exp":{exp}"#), r#""exp":18446744073709551616"#),
        (&format!(r#""exp":{exp}"#), r#""exp":1e30"#),
        // A key by another spelling.
        (&public(2).to_string(), &upper),
        (&public(2).to_string(), &public(2).to_string().replace("ed25519:", "")),
        (&public(2).to_string(), &format!(" {}", public(2))),
        // More than one object, or something before it.
        (r#""delegations":1}"#, r#""delegations":1}{}"#),
        (r#""delegations":1}"#, "\"delegations\":1}\0"),
        (r#"{"iss""#, "\u{feff}{\"iss\""),
        (r#"{"iss""#, r#"[{"iss""#),
    ] {
        let refusal = ask(&claims(part, changed)).expect_err(changed);
        assert_eq!(refusal.kind, RefusalKind::BadProof, "{changed}: {}", refusal.detail);
    }
}

/// Goal: each grant has one text, so that a list that takes it back takes back every text of it. Method: other texts that the same signature is
/// of, if any reader is lenient.
#[test]
fn a_grant_has_one_text() {
    let text = grant(2).sign(&key(1));
    assert!(Grant::verify(&text).is_ok());
    let (front, last) = text.split_at(text.len() - 1);
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ \n\t";
    for other in letters.chars().map(String::from).filter(|letter| letter != last) {
        assert!(Grant::verify(&format!("{front}{other}")).is_err(), "{other:?}");
    }
    for other in [format!("{text}="), format!("{text}=="), format!(" {text}"), format!("{text}\n"), format!("{text}.")]
    {
        assert!(Grant::verify(&other).is_err(), "{other:?}");
    }
    // The other S of the same signature: S plus the order of the group (RFC 8032 §5.1.7).
    let (front, signature) = text.rsplit_once('.').unwrap();
    let mut bytes = BASE64.decode(signature).unwrap();
    let order = hex::decode("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010").unwrap();
    let mut carry = 0;
    for (byte, add) in bytes[32..].iter_mut().zip(order) {
        let sum = u16::from(*byte) + u16::from(add) + carry;
        (*byte, carry) = ((sum & 0xff) as u8, sum >> 8);
    }
    assert!(Grant::verify(&format!("{front}.{}", BASE64.encode(bytes))).is_err());
}

/// Goal: a delegation gives nothing that the grant before does not, by leaving out or by another word for everything. Method: second grants
/// in hours of the first, whose claims are signed as they are.
#[test]
fn what_is_left_out_gives_nothing_more() {
    let first = |delegations: u8| {
        let ports = vec!["80-90".parse().unwrap()];
        Grant { ports, modules_max: Some(1), delegations, ..grant(3) }.sign(&key(1))
    };
    let second = |change: (&str, &str)| {
        let second = claims(change.0, change.1).replace(r#""delegations":1"#, r#""delegations":0"#);
        signed(3, HEADER, &second.replace(&public(1).to_string(), &public(3).to_string()))
    };
    let ask = |first: String, second: String| ask(&mut Authority::default(), &policy(), 2, &[first, second]);
    assert_eq!(ask(first(1), second(("", ""))).unwrap().modules_max, 1);
    for without in [r#","modules-max":1"#, r#","delegations":1"#] {
        assert_eq!(ask(first(1), second((without, ""))).unwrap().modules_max, 1, "{without}");
    }
    assert_eq!(ask(first(1), second((r#""modules-max":1"#, r#""modules-max":null"#))).unwrap().modules_max, 1);
    assert_eq!(ask(first(1), second((r#""modules-max":1"#, r#""modules-max":0"#))).unwrap().modules_max, 0);
    for (part, changed, detail) in [
        (r#","ports":["80"]"#, "", "for ports beyond"),
        (r#"["80"]"#, "[]", "for ports beyond"),
        (r#"["80"]"#, r#"["80-85","87-91"]"#, "for ports beyond"),
        (r#""modules-max":1"#, r#""modules-max":2"#, "for more modules"),
        (r#"["10.2.0.0/16"]"#, r#"["10.2.0.0/16","10.3.0.0/16"]"#, "for a prefix outside"),
        (r#"["10.2.0.0/16"]"#, r#"["10.2.3.4/15"]"#, "for a prefix outside"),
        (r#"["10.2.0.0/16"]"#, r#"["::ffff:10.2.0.0/112"]"#, "for a prefix outside"),
        (r#"["10.2.0.0/16"]"#, r#"["0.0.0.0/0"]"#, "for a prefix outside"),
        (r#"["10.2.0.0/16"]"#, "[]", "0 prefixes"),
    ] {
        assert_refused(ask(first(1), second((part, changed))), RefusalKind::BadProof, detail);
    }
    let none = "allows no further delegation";
    assert_refused(ask(first(0), second(("", ""))), RefusalKind::BadProof, none);
    let absent =
        signed(1, HEADER, &claims(r#","delegations":1"#, "").replace(&public(2).to_string(), &public(3).to_string()));
    assert_refused(ask(absent, second(("", ""))), RefusalKind::BadProof, none);
}

/// Goal: bits behind a prefix's length give nothing. Method: prefixes with such bits, and what filters lie within.
#[test]
fn bits_behind_a_prefixs_length_give_nothing() {
    let mut authority = Authority::default();
    let policy = policy();
    let odd = Grant { prefixes: vec!["10.2.255.255/24".parse().unwrap()], ..grant(2) };
    ask(&mut authority, &policy, 2, &[odd.sign(&key(1))]).unwrap();
    let check = |filter: &str| {
        let rights = authority.rights(&policy, &user_of(&public(2)), NOW).unwrap();
        scope::check(&policy, rights, &[filter.parse().unwrap()])
    };
    assert_eq!(check("udp dst 10.2.255.1"), Ok(()));
    for outside in ["udp dst 10.2.254.255", "udp dst 10.3.0.0", "udp dst 10.2.255.1/23", "udp dst ::ffff:10.2.255.1"] {
        assert_refused(check(outside), RefusalKind::PrefixNotAllowed, "neither end");
    }
    let beyond = Grant { prefixes: vec!["10.2.0.0/7".parse().unwrap()], ..grant(2) };
    let asked = ask(&mut Authority::default(), &policy, 2, &[beyond.sign(&key(1))]);
    assert_refused(asked, RefusalKind::PrefixNotAllowed, "it may not give");
}

/// Goal: IPv6 that is written with an IPv4 address in it gives nothing of IPv4, and the other way around. Method: an issuer of all of IPv6.
#[test]
fn ipv4_within_ipv6_is_not_ipv4() {
    let mut policy = policy();
    policy.issuers[0].prefixes = vec!["::/0".parse().unwrap()];
    let ask = |prefix: &str| {
        let mut authority = Authority::default();
        let grant = Grant { prefixes: vec![prefix.parse().unwrap()], ..grant(2) };
        ask(&mut authority, &policy, 2, &[grant.sign(&key(1))])
    };
    for prefix in ["::/0", "::ffff:0:0/96", "::ffff:10.2.0.0/112"] {
        let may = ask(prefix).unwrap();
        for filter in ["udp dst 10.2.0.1", "udp src 10.2.0.1", "udp"] {
            let checked = scope::check(&policy, &may, &[filter.parse().unwrap()]);
            assert_refused(checked, RefusalKind::PrefixNotAllowed, filter);
        }
    }
    assert_refused(ask("10.2.0.0/16"), RefusalKind::PrefixNotAllowed, "it may not give");
}

/// Goal: chains that belong to different vouchers do not make one. Method: an issuer's and a holder's grants in one request, in each order, and
/// the evidence of one voucher beside that of another.
#[test]
fn vouchers_do_not_mix() {
    let mut policy = NodePolicy { rpki_class: Some("guest".to_owned()), ..address_policy() };
    let second = Issuer { name: "inn".to_owned(), keys: vec![public(9)], ..policy.issuers[0].clone() };
    policy.issuers.push(second);
    let user = user_of(&public(2));
    let prove =
        |request: &Request| Authority::default().prove(&policy, request, NOW).map(|proof| proof.brings_evidence());
    let refuses = |request: &Request, detail: &str| match prove(request) {
        Err(Unproven::Refused(refusal)) => assert!(refusal.detail.contains(detail), "{refusal:?}"),
        other => panic!("{other:?}"),
    };
    let (of_house, of_inn) = (grant(2).sign(&key(1)), grant(2).sign(&key(9)));
    let of_holder = Grant { delegations: 1, ..grant(2) }.sign(&key(7));
    for grants in [[&of_house, &of_inn], [&of_inn, &of_house], [&of_house, &of_holder], [&of_house, &of_house]] {
        refuses(&request(2, &user, &grants.map(String::clone)), "not signed by the key that the grant before is for");
    }
    // A holder does not become an issuer by a grant of its own for the issuer's key.
    let for_house = Grant { sub: public(1), ..grant(2) }.sign(&key(7));
    let within = Grant { delegations: 0, ..grant(2) }.sign(&key(1));
    refuses(&request(2, &user, &[for_house, within]), "takes no grants of");
    // A checklist without a grant, and an address beside grants, are not looked at.
    let checklist = Some(Checklist::new(vec![1; 9]).unwrap());
    refuses(&Request { checklist: checklist.clone(), ..request(2, &user, &[]) }, "no user `k-");
    let (_, by_address) = by_address(2, "203.0.113.9");
    let beside = Request { grants: vec![of_holder.clone()], ..by_address.clone() };
    refuses(&beside, "takes no grants of");
    assert_eq!(prove(&Request { grants: vec![of_house.clone()], ..by_address.clone() }), Ok(true));
    // An issuer's own grant is its holder's too only if somebody is behind the checklist.
    assert!(matches!(prove(&Request { checklist, ..request(2, &user, &[of_house]) }), Err(Unproven::Ask(_))));
}

/// Goal: evidence of one user is nobody else's. Method: another key brings it, under its own name and under the other's, with each kind of
/// evidence; and a key that the operator names under another name has no more there.
#[test]
fn evidence_of_one_user_is_no_evidence_of_another() {
    let policy = NodePolicy { rpki_class: Some("guest".to_owned()), ..address_policy() };
    let (victim, thief) = (user_of(&public(2)), user_of(&public(3)));
    let grants = [grant(2).sign(&key(1))];
    let proof = by_address(2, "203.0.113.9").1.address_proof;
    let checklist = Some(Checklist::new(vec![1; 9]).unwrap());
    let with = |mut request: Request, kind: u8| {
        match kind {
            0 => request.grants = grants.to_vec(),
            1 => request.address_proof = proof,
            _ => (request.grants, request.checklist) = (grants.to_vec(), checklist.clone()),
        }
        request
    };
    for kind in 0..3 {
        let refusal = |request: Request| {
            let proved = Authority::default().prove(&policy, &with(request, kind), NOW).map(drop);
            refused(proved).expect_err("it is another's").kind
        };
        assert_eq!(refusal(request(3, &thief, &[])), RefusalKind::BadProof, "{kind}");
        assert_eq!(refusal(request(3, &victim, &[])), RefusalKind::BadSignature, "{kind}");
        let unsigned = Request { signature: None, ..request(3, &victim, &[]) };
        assert_eq!(refusal(unsigned), RefusalKind::Unsigned, "{kind}");
    }
    // Key 99 is `jane`: with a grant it is another user, which has what the grant gives and nothing of `jane`'s.
    let mut authority = Authority::default();
    let may = ask(&mut authority, &policy, 99, &[grant(99).sign(&key(1))]).unwrap();
    assert_eq!(may.prefixes, ["10.2.0.0/16".parse::<IpNet>().unwrap()]);
    let jane: UserId = "jane".parse().unwrap();
    assert_eq!(authority.rights(&policy, &jane, NOW).unwrap().prefixes, ["10.9.0.0/16".parse::<IpNet>().unwrap()]);
    for name in [victim.to_string().to_uppercase(), format!("{victim} "), victim.to_string().replace('k', "\u{212a}")] {
        assert!(name.parse::<UserId>().is_err(), "{name}");
    }
}

/// Goal: rights begin and end with the millisecond, whichever voucher gives them. Method: the border and one millisecond beside it.
#[test]
fn rights_begin_and_end_with_the_millisecond() {
    let policy = policy();
    let grants = [grant(2).sign(&key(1))];
    let (from, until) = (UnixTime(NOW.0 - HOUR * 1000), UnixTime(NOW.0 + HOUR * 1000));
    let ask = |now: UnixTime| ask_at(&mut Authority::default(), &policy, 2, &grants, now, |_| true).is_ok();
    assert!(!ask(UnixTime(from.0 - 1)) && ask(from));
    assert!(ask(UnixTime(until.0 - 1)) && !ask(until) && !ask(UnixTime(u64::MAX)) && !ask(UnixTime(0)));
    // Who has rights keeps none for a millisecond more; neither does one whose clock went back and came on again.
    let mut authority = Authority::default();
    ask_at(&mut authority, &policy, 2, &grants, NOW, |_| true).unwrap();
    let has = |now: UnixTime| authority.rights(&policy, &user_of(&public(2)), now).is_ok();
    assert!(has(UnixTime(until.0 - 1)) && !has(until) && has(UnixTime(from.0 - 1)) && !has(until));
}

/// Goal: no address vouches that is not one of a machine beside the node. Method: each kind of address that leads to the node itself, to many or
/// to nobody, in each spelling.
#[test]
fn addresses_that_are_nobodys_vouch_for_nobody() {
    let policy = address_policy();
    for address in [
        "0.0.0.0",
        "0.0.0.9",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "224.0.0.1",
        "239.255.255.250",
        "255.255.255.255",
        "192.0.2.9",
        "::",
        "::1",
        "fe80::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:192.0.2.9",
        "::ffff:0.0.0.0",
    ] {
        let (_, asked) = by_address(2, address);
        let text = format!("{address} {} {}", public(2), Nonce([2; 16]));
        let spelt = Request { address_proof: Some(text.parse().unwrap()), ..asked.clone() };
        for asked in [asked, spelt] {
            let proved = Authority::default().prove(&policy, &asked, NOW).map(drop);
            match proved {
                Err(Unproven::Refused(refusal)) => assert_eq!(refusal.kind, RefusalKind::PrefixNotAllowed, "{address}"),
                other => panic!("{address}: {other:?}"),
            }
        }
    }
}
