// SPDX-License-Identifier: Apache-2.0
//! Of calls that were forked, and of offers within calls.

use super::*;

#[test]
fn of_a_forked_call_the_last_answer_counts() {
    let mut relay = relay(&[]);
    offer(&mut relay, "1", &sdp("10.0.0.9", &[4000]), &[]);
    answer(&mut relay, "1", &sdp("10.0.0.8", &[6000]), &[]);
    let before = entries(&mut relay)[2];
    let other = sdp("10.0.0.7", &[6000]);
    let second = [("command", "answer"), ("call-id", "1"), ("from-tag", "a"), ("to-tag", "c"), ("sdp", &other)];
    described(&ask(&mut relay, &second));
    let after = entries(&mut relay)[2];
    assert_eq!(
        (after.peer.unwrap().ip().to_string(), after.generation),
        ("10.0.0.7".to_owned(), before.generation + 1)
    );
}

#[test]
fn a_branch_is_deleted_alone() {
    let good = sdp("10.0.0.9", &[4000]);
    let forked = || {
        let mut relay = relay(&[]);
        for branch in [".0", ".1", ".1"] {
            described(&offer(&mut relay, "1", &good, &[("via-branch", branch)]));
        }
        relay
    };
    let delete = |relay: &mut Relay, more: &[(&str, &str)]| {
        let deleted = ask(relay, &[&[("command", "delete"), ("call-id", "1"), ("from-tag", "a")], more].concat());
        text(deleted.as_dict().unwrap(), "warning").map(|why| String::from_utf8(why.to_vec()).unwrap())
    };
    let (goes_on, nothing) = (Some("Other branches of the call go on".to_owned()), Some(NOTHING_TO_DELETE.to_owned()));
    // One that lost, after the answer of the other one and before it, by the name of who rejected, and without.
    let mut answered = forked();
    described(&answer(&mut answered, "1", &good, &[("via-branch", ".0")]));
    assert_eq!(delete(&mut answered, &[("via-branch", ".1")]), goes_on);
    let mut early = forked();
    assert_eq!(delete(&mut early, &[("to-tag", "b1"), ("via-branch", ".1")]), goes_on);
    described(&answer(&mut early, "1", &good, &[("via-branch", ".0")]));
    // Early media of one that then rejects.
    let mut rejected = forked();
    described(&answer(&mut rejected, "1", &good, &[("via-branch", ".1")]));
    assert_eq!(delete(&mut rejected, &[("to-tag", "b"), ("via-branch", ".1")]), goes_on);
    // What is of no branch, and of the same one once more.
    for relay in [&mut answered, &mut early, &mut rejected] {
        assert_eq!(delete(relay, &[("via-branch", ".9")]), nothing);
        assert_eq!(delete(relay, &[("via-branch", ".1")]), nothing);
        assert_eq!(delete(relay, &[("to-tag", "b1"), ("via-branch", ".1")]), nothing);
        assert_eq!(relay.len(), 1);
    }
    // The last one, a request in the dialog with a branch of its own, and one without.
    for last in [&[("via-branch", ".0")][..], &[("to-tag", "b"), ("via-branch", ".9")], &[("to-tag", "b")]] {
        let mut relay = forked();
        delete(&mut relay, &[("via-branch", ".1")]);
        described(&answer(&mut relay, "1", &good, &[]));
        assert_eq!((delete(&mut relay, last), relay.len()), (None, 0), "{last:?}");
    }
    // A client that names branches only here.
    let mut plain = relay(&[]);
    described(&offer(&mut plain, "1", &good, &[]));
    assert_eq!((delete(&mut plain, &[("via-branch", ".1")]), plain.len()), (None, 0));

    let mut many = relay(&[]);
    let names: Vec<String> = (0..=BRANCHES_MAX).map(|number| number.to_string()).collect();
    for name in &names[..BRANCHES_MAX] {
        described(&offer(&mut many, "1", &good, &[("via-branch", name)]));
    }
    let long = "x".repeat(NAME_BYTES_MAX + 1);
    for bad in [&names[BRANCHES_MAX], &long] {
        let refused = offer(&mut many, "1", &good, &[("via-branch", bad)]);
        assert_eq!(reason(&refused), "The via-branch is too long, or one too many");
    }
}

/// Goal: where two callees of a fork have early media and the one that came last rejects, its branch's end leads back to the other one, who need not
/// describe itself again (RFC 3262 §5; sipwise/rtpengine#439). Method: three branches, of which two are deleted.
#[test]
fn the_end_of_the_branch_that_answered_last_leads_back_to_the_one_before() {
    let mut relay = relay(&[]);
    for branch in [".0", ".1", ".2"] {
        described(&offer(&mut relay, "1", &sdp("10.0.0.9", &[4000]), &[("via-branch", branch)]));
    }
    let answers = |relay: &mut Relay, number: u8, port: u16| {
        let (tag, branch) = (format!("b{number}"), format!(".{number}"));
        let description = sdp(&format!("10.0.0.{number}"), &[port]);
        described(&answer(relay, "1", &description, &[("to-tag", &tag), ("via-branch", &branch)]));
    };
    for (number, port) in [(0, 6000), (1, 6100), (2, 6200), (0, 6002)] {
        answers(&mut relay, number, port);
    }
    let ends = |relay: &mut Relay, branch: &str| {
        let generation = relay.calls[&b"1"[..]].streams[0].sides[1].generation;
        let deleted = [("command", "delete"), ("call-id", "1"), ("from-tag", "a"), ("via-branch", branch)];
        ask(relay, &deleted);
        let call = &relay.calls[&b"1"[..]];
        let callee = &call.streams[0].sides[1];
        let tag = String::from_utf8(call.tags[1].clone().unwrap()).unwrap();
        (callee.peers[0].unwrap().to_string(), tag, callee.generation - generation)
    };
    assert_eq!(ends(&mut relay, ".1"), ("10.0.0.0:6002".to_owned(), "b0".to_owned(), 0), "another one counts");
    assert_eq!(ends(&mut relay, ".0"), ("10.0.0.2:6200".to_owned(), "b2".to_owned(), 1));
}

/// Goal: the end of the newest branch leads back to the one before also after a restart of the module, and where answers name no branch but a To tag.
/// Method: three branches; what was kept is taken by another relay before two of them end.
#[test]
fn the_branch_before_is_led_back_to_after_a_restart_and_by_its_tag() {
    for names_branch in [true, false] {
        let mut before = relay(&[]);
        for branch in [".0", ".1", ".2"] {
            described(&offer(&mut before, "1", &sdp("10.0.0.9", &[4000]), &[("via-branch", branch)]));
        }
        for number in 0..3 {
            let (tag, branch) = (format!("b{number}"), format!(".{number}"));
            let description = sdp(&format!("10.0.0.{number}"), &[6000]);
            let names = [("to-tag", &*tag), ("via-branch", &*branch)];
            let names = if names_branch { &names[..] } else { &names[..1] };
            described(&answer(&mut before, "1", &description, names));
        }
        let mut saved = None;
        while let Some(change) = before.poll_change() {
            saved = Some(change);
        }
        let Some(Change::Put { number, saved, .. }) = saved else { panic!("no change") };
        let mut after = relay(&[]);
        after.restore(number, &saved, NOW);
        assert_eq!(after.calls, before.calls);
        for (ended, left) in [(2, 1), (1, 0)] {
            let (tag, branch) = (format!("b{ended}"), format!(".{ended}"));
            let names = [("from-tag", "a"), ("to-tag", &*tag), ("via-branch", &*branch)];
            ask(&mut after, &[&[("command", "delete"), ("call-id", "1")], &names[..]].concat());
            let call = &after.calls[&b"1"[..]];
            let callee = (call.tags[1].clone().unwrap(), call.streams[0].sides[1].peers[0].unwrap().to_string());
            assert_eq!(callee, (format!("b{left}").into_bytes(), format!("10.0.0.{left}:6000")), "{names_branch}");
        }
    }
}

/// Goal: offers in a dialog, of which there may be any number (hold, session timers), make no branches, each of which would have to be deleted.
#[test]
fn an_offer_in_a_dialog_is_no_branch() {
    let good = sdp("10.0.0.9", &[4000]);
    let mut relay = relay(&[]);
    described(&offer(&mut relay, "1", &good, &[("via-branch", ".0")]));
    described(&answer(&mut relay, "1", &good, &[]));
    for number in 0..3 * BRANCHES_MAX {
        let branch = format!("z9hG4bK-{number}");
        described(&offer(&mut relay, "1", &good, &[("to-tag", "b"), ("via-branch", &branch)]));
        described(&answer(&mut relay, "1", &good, &[("via-branch", &branch)]));
    }
    assert_eq!(relay.calls[&b"1"[..]].branches, [b".0"]);
    let ended = [("command", "delete"), ("call-id", "1"), ("from-tag", "a"), ("to-tag", "b"), ("via-branch", "bye")];
    ask(&mut relay, &ended);
    assert!(relay.is_empty());
}

/// Goal: a re-INVITE that is rejected ends no call, if the client has the relay delete that request's branch, as its module does for a failure
/// (RFC 6337 §3.4; sipwise/rtpengine#1046); a BYE at the same time does. Method: both parties offer, and are rejected, before and after a restart.
#[test]
fn the_end_of_an_offer_in_a_dialog_is_not_that_of_the_call() {
    let good = sdp("10.0.0.9", &[4000]);
    let mut before = relay(&[]);
    described(&offer(&mut before, "1", &good, &[("via-branch", ".0")]));
    described(&answer(&mut before, "1", &good, &[("via-branch", ".0")]));
    let again = |relay: &mut Relay, tags: [&str; 2], branch: &str| {
        described(&offer(relay, "1", &good, &[("from-tag", tags[0]), ("to-tag", tags[1]), ("via-branch", branch)]));
    };
    let delete = |relay: &mut Relay, tags: [&str; 2], branch: &str| {
        let names = [("from-tag", tags[0]), ("to-tag", tags[1]), ("via-branch", branch)];
        let deleted = ask(relay, &[&[("command", "delete"), ("call-id", "1")], &names[..]].concat());
        text(deleted.as_dict().unwrap(), "warning").map(|why| String::from_utf8(why.to_vec()).unwrap())
    };
    let only_the_offer = Some("Only that offer is deleted".to_owned());
    again(&mut before, ["b", "a"], "fax");
    again(&mut before, ["a", "b"], "hold");
    let mut saved = None;
    while let Some(change) = before.poll_change() {
        saved = Some(change);
    }
    let Some(Change::Put { number, saved, .. }) = saved else { panic!("no change") };
    let mut after = relay(&[]);
    after.restore(number, &saved, NOW);
    assert_eq!(after.calls, before.calls);
    for relay in [&mut before, &mut after] {
        assert_eq!(
            [delete(relay, ["b", "a"], "fax"), delete(relay, ["a", "b"], "hold")],
            [(); 2].map(|()| only_the_offer.clone())
        );
        // One that was answered is over.
        again(relay, ["b", "a"], "video");
        described(&answer(relay, "1", &good, &[("from-tag", "b"), ("to-tag", "a"), ("via-branch", "video")]));
        again(relay, ["b", "a"], "fax");
        assert_eq!((delete(relay, ["a", "b"], "bye"), relay.len()), (None, 0));
    }
}

/// Goal: of a fork to phones of both versions of IP each is sent to from the address that it was told, whichever was offered last, and after a restart.
/// Method: two branches that answer in turn, of which the newer one ends.
#[test]
fn branches_of_both_versions_of_ip_have_addresses_of_their_own() {
    for families in [["IP4", "IP6"], ["IP6", "IP4"]] {
        let mut before = relay(&[]);
        for (branch, family) in [".0", ".1"].into_iter().zip(families) {
            let more = [("via-branch", branch), ("address-family", family)];
            described(&offer(&mut before, "1", &sdp("10.0.0.9", &[4000]), &more));
        }
        let mut saved = None;
        while let Some(change) = before.poll_change() {
            saved = Some(change);
        }
        let Some(Change::Put { number, saved, .. }) = saved else { panic!("no change") };
        let mut after = relay(&[]);
        after.restore(number, &saved, NOW);
        assert_eq!(after.calls, before.calls);
        for relay in [&mut before, &mut after] {
            let callee = |relay: &mut Relay| entries(relay)[2];
            let way = |callee: Entry| (callee.local.to_string(), callee.peer.map(|peer| peer.to_string()).unwrap());
            let [v4, v6] = [("192.0.2.1", "10.0.0.8:6000"), ("2001:db8::1", "[2001:db8::8]:6000")]
                .map(|(local, peer)| (local.to_owned(), peer.to_owned()));
            let answers = |relay: &mut Relay, tag: &str, branch: &str, address: &str| {
                let more = [("to-tag", tag), ("via-branch", branch)];
                described(&answer(relay, "1", &sdp(address, &[6000]), &more));
            };
            let [of_v4, of_v6] = if families[0] == "IP4" { [".0", ".1"] } else { [".1", ".0"] };
            answers(relay, "b4", of_v4, "10.0.0.8");
            assert_eq!(way(callee(relay)), v4, "{families:?}");
            answers(relay, "b6", of_v6, "2001:db8::8");
            assert_eq!(way(callee(relay)), v6, "{families:?}");
            let deleted = [("command", "delete"), ("call-id", "1"), ("from-tag", "a"), ("via-branch", of_v6)];
            ask(relay, &deleted);
            assert_eq!(way(callee(relay)), v4, "{families:?}");
        }
    }
}
