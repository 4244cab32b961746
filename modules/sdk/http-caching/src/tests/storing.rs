// SPDX-License-Identifier: Apache-2.0
//! What is stored, and for how long it is fresh.

use super::*;

/// Checks for how many seconds a response is fresh, as it comes.
fn check(response: Lines<'_>, seconds: u64) {
    let fresh = kept_by(&policy(), &[], 200, response).map_or(0, |stored| stored.fresh_for(at(0)).as_secs());
    assert_eq!(fresh, seconds, "{response:?}");
}

#[test]
fn what_a_response_says_of_its_lifetime_counts_in_this_order() {
    let cdn = ("CDN-Cache-Control", "max-age=10");
    let both = ("Cache-Control", "s-maxage=20, max-age=30");
    let (max_age, expires) = (("Cache-Control", "max-age=30"), ("Expires", "{40}"));
    let modified = ("Last-Modified", "{-1000}");
    check(&[cdn, both, expires, modified], 10);
    check(&[both, expires, modified], 20);
    check(&[max_age, expires, modified], 30);
    check(&[expires, modified], 40);
    check(&[modified], 100);
    check(&[], 0);
    check(&[("Cache-Control", "max-age=0"), expires], 0);
    check(&[("Expires", "0"), modified], 0);
    check(&[("Expires", "{10}"), ("Date", "foo")], 10);
    check(&[("Expires", "{300}"), ("Date", "{400}")], 0);
    check(&[("Last-Modified", "{-99999999}")], 86_400);
    check(&[("Last-Modified", "{5}")], 0);
}

#[test]
fn a_response_may_be_old_when_it_comes() {
    let hour = ("Cache-Control", "max-age=3600");
    check(&[hour, ("Age", "600")], 3000);
    check(&[hour, ("Age", "3600")], 0);
    // Without a cache on its way it is as old as it took: the origin's clock may be late.
    check(&[hour, ("Date", "{-600}")], 3600);
    check(&[hour, ("Date", "{-600}"), ("Via", "1.1 cache")], 3000);
    check(&[hour, ("Date", "{-600}"), ("Age", "900")], 2700);
    check(&[hour, ("Date", "{600}")], 3600);
    // Of several the first counts; what is no age may be any.
    check(&[hour, ("Age", "0,7200")], 3600);
    check(&[hour, ("Age", "7200"), ("Age", "0")], 0);
    for age in ["abc", "-7200", "7200.0", "7200;foo=bar", "99999999999999999999"] {
        check(&[hour, ("Age", age)], 0);
    }
    let slow = Times { requested: at(0), received: at(7) };
    let headers = fields(&[hour, ("Age", "10"), ("Date", "{7}")]);
    let stored = policy().keep(&get(&[]), &Head { status: 200, headers: &headers }, &slow).unwrap();
    assert_eq!(stored.age_at(at(10)), Duration::from_secs(20));
}

#[test]
fn what_may_not_be_stored_is_not() {
    let hour = ("Cache-Control", "max-age=3600");
    let check = |request: Lines<'_>, status, response: Lines<'_>, wanted: Option<NotKept>| {
        let kept = kept_by(&policy(), request, status, response);
        assert_eq!(kept.err(), wanted, "{request:?} {status} {response:?}");
    };
    check(&[], 200, &[hour], None);
    for status in [299, 302, 404, 499, 500, 599] {
        check(&[], status, &[hour], None);
    }
    for status in [100, 206, 304] {
        check(&[], status, &[hour], Some(NotKept::Status));
    }
    check(&[], 599, &[("Cache-Control", "max-age=3600, must-understand")], Some(NotKept::Status));
    check(&[], 200, &[("Cache-Control", "max-age=3600, must-understand, no-store")], None);
    for control in ["no-store", "max-age=9, No-StOrE", "private, max-age=9"] {
        check(&[], 200, &[("Cache-Control", control), ("Expires", "{9}")], Some(NotKept::Forbidden));
    }
    let known = [("Authorization", "FOO")];
    check(&known, 200, &[hour], Some(NotKept::Authorized));
    for control in ["max-age=9, public", "max-age=9, must-revalidate", "s-maxage=9"] {
        check(&known, 200, &[("Cache-Control", control)], None);
    }
    check(&[("Cache-Control", "no-store")], 200, &[hour], Some(NotKept::Request));
    for vary in ["*", "Foo, *", "a,b,c,d,e,f,g,h,i"] {
        check(&[], 200, &[hour, ("Vary", vary)], Some(NotKept::Vary));
    }
    // Nothing to go by, or stale and without a validator.
    check(&[], 200, &[], Some(NotKept::Stale));
    check(&[], 200, &[("Cache-Control", "max-age=0")], Some(NotKept::Stale));
    check(&[], 200, &[("Cache-Control", "no-cache, max-age=9")], Some(NotKept::Stale));
    check(&[], 200, &[("Cache-Control", "no-cache"), ("ETag", "\"a\"")], None);
    check(&[], 404, &[("Cache-Control", "no-cache"), ("ETag", "\"a\"")], Some(NotKept::Stale));
}

#[test]
fn lifetimes_are_guessed_of_few() {
    let day = [("Last-Modified", "{-86400}")];
    for status in [200, 203, 204, 404, 405, 410, 414, 501] {
        assert_eq!(kept_by(&policy(), &[], status, &day).unwrap().lifetime.as_secs(), 8640, "{status}");
    }
    for status in [201, 202, 403, 502, 503, 504, 599] {
        let kept = kept_by(&policy(), &[], status, &day);
        assert!(kept.is_err() || kept.unwrap().lifetime.is_zero(), "{status}");
    }
    let public = [day[0], ("Cache-Control", "public")];
    assert_eq!(kept_by(&policy(), &[], 599, &public).unwrap().lifetime.as_secs(), 8640);
    // Not of what is for one user.
    let tagged = [day[0], ("ETag", "\"a\"")];
    assert!(kept_by(&policy(), &[("Cookie", "a=b")], 200, &tagged).unwrap().lifetime.is_zero());
    let named = kept_by(&policy(), &[], 200, &[&tagged[..], &[("Set-Cookie", "a=b")]].concat());
    assert_eq!(named, Err(NotKept::Personal), "a name that one viewer is given");
    let for_all = kept_by(&policy(), &[], 200, &[("Cache-Control", "max-age=60"), ("Set-Cookie", "a=b")]).unwrap();
    assert!(for_all.is_for_all && for_all.headers.iter().any(|(name, _)| name == "Set-Cookie"));
    assert!(kept_by(&policy(), &[], 200, &[day[0], ("Set-Cookie", "a=b")]).is_err(), "a date asks of nobody's page");
    let generous = Policy { lifetime: Duration::from_secs(60), lifetime_of_errors: Duration::from_secs(2), ..policy() };
    for (status, seconds) in [(200, 60), (404, 2), (501, 2)] {
        assert_eq!(kept_by(&generous, &[], status, &[]).unwrap().lifetime.as_secs(), seconds, "{status}");
    }
    assert!(kept_by(&generous, &[], 503, &[]).is_err() && kept_by(&generous, &[("Cookie", "a=b")], 200, &[]).is_err());
    assert!(kept_by(&generous, &[], 200, &[("Cache-Control", "max-age=0")]).is_err());
}

#[test]
fn fields_of_one_connection_or_one_user_are_not_kept() {
    let stored = kept(&[
        ("Connection", "a, B"),
        ("a", "1"),
        ("b", "2"),
        ("c", "3"),
        ("Keep-Alive", "x"),
        ("Transfer-Encoding", "chunked"),
        ("Proxy-Authenticate", "x"),
        ("Cache-Control", "max-age=60, no-cache=\"d\", private=\"e, f\""),
        ("d", "4"),
        ("e", "5"),
        ("F", "6"),
        ("Age", "0"),
        ("Set-Cookie", "g=7"),
    ]);
    let names: Vec<&str> = stored.headers.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["c", "Cache-Control", "Set-Cookie", "date", "via"]);
    assert_eq!(header(&stored.headers, "date"), Some(&*date::format(at(0))));
    assert_eq!(header(&stored.headers, "via"), Some("1.1 test"));
}

/// Goal: what says nothing of others is never an answer for who is known by a cookie, however the origin lets it be guessed or
/// validated, and is not stale for others.
#[test]
fn what_may_be_made_for_one_viewer_is_no_answer_for_another() {
    let alice: Lines<'_> = &[("Cookie", "a=alice")];
    let (tag, day) = (("ETag", "W/\"a\""), ("Last-Modified", "{-86400}"));
    for control in [None, Some("max-age=0"), Some("max-age=0, must-revalidate"), Some("s-maxage=0, must-revalidate")] {
        let said: Vec<_> = control.map(|control| ("Cache-Control", control)).into_iter().collect();
        let with = |lines: &[(&'static str, &'static str)]| [lines, &said].concat();
        for stored in [kept_by(&policy(), alice, 200, &with(&[tag, day])).unwrap(), kept(&with(&[tag, day]))] {
            for request in [alice, &[alice[0], ("Cache-Control", "max-stale")]] {
                let decision = decided(&stored, request, 0);
                assert!(matches!(decision, Decision::Validate { or_stale: false, .. }), "{control:?}: {decision:?}");
            }
            let asked = stored.conditions(&get(&fields(alice)));
            assert_eq!(
                asked,
                [("if-none-match".to_owned(), b"W/\"a\"".to_vec())],
                "{control:?}: a date asks of nobody's page"
            );
        }
        // What it could not be asked about is not kept at all.
        assert_eq!(kept_by(&policy(), alice, 200, &with(&[day])), Err(NotKept::Stale), "{control:?}");
    }
    let generous = Policy { stale_if_error: Duration::from_secs(60), ..policy() };
    let never_fresh = kept_by(&generous, &[], 200, &[tag, ("Cache-Control", "max-age=0")]).unwrap();
    assert_eq!((never_fresh.stale_if_error, never_fresh.forbids_stale), (0, true));
    // Nor is it anybody else's by a date; what comes old, or is to be asked about, says nothing of others.
    for lines in [
        &[tag, day][..],
        &[tag, day, ("Cache-Control", "public, max-age=60"), ("Age", "100")],
        &[tag, day, ("Cache-Control", "no-cache, max-age=60")],
    ] {
        let stored = kept_by(&policy(), alice, 200, lines).unwrap();
        assert_eq!(stored.conditions(&get(&[])).len(), 1, "{lines:?}");
        assert!(!stored.is_for_all && stored.is_personal, "{lines:?}");
    }
    for said in ["public, max-age=60", "max-age=60", "s-maxage=60"] {
        let stored = kept_by(&policy(), alice, 200, &[tag, day, ("Cache-Control", said)]).unwrap();
        assert_eq!(decided(&stored, alice, 5), Decision::Serve, "{said}");
        assert_eq!(stored.conditions(&get(&fields(alice))).len(), 2, "{said}");
    }
}

/// Goal: what was made for one viewer stays that, whoever asks about it later, and takes the place of nothing that is for others.
#[test]
fn what_was_made_for_one_viewer_stays_that() {
    let alice: Lines<'_> = &[("Cookie", "a=alice")];
    let tag = ("ETag", "\"a\"");
    let page =
        kept_by(&policy(), alice, 200, &[tag, ("Cache-Control", "max-age=0, stale-while-revalidate=60")]).unwrap();
    for request in [alice, &[]] {
        let decision = decided(&page, request, 5);
        assert!(matches!(decision, Decision::Validate { or_stale: false, .. }), "{decision:?}");
    }
    let day = ("Last-Modified", "{-86400}");
    let page = kept_by(&policy(), alice, 200, &[tag, day]).unwrap();
    let none = fields(&[]);
    let head = |lines: Lines<'_>| {
        page.after_head(&policy(), &get(&none), &Head { status: 200, headers: &fields(lines) }, &times(9), None)
    };
    assert_eq!(head(&[day]), Refresh::Gone, "it may be another viewer's");
    let Refresh::Kept(same) = head(&[tag, day]) else { panic!("it is the same") };
    assert!(same.is_personal && matches!(decided(&same, &[], 10), Decision::Validate { .. }));
    let shared = kept(&[tag, day]);
    assert!(page.is_less_than(&shared) && !shared.is_less_than(&page) && !page.is_less_than(&page));
}
