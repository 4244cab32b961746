// SPDX-License-Identifier: Apache-2.0
//! Bounds of the node's own, reached.

use netserv_model::SessionId;
use netserv_model::effect::InstalledRecord;
use netserv_model::limits::REQUESTS_PENDING_MAX;
use netserv_model::request::Ask;

use super::*;
use crate::limits::{DRAIN_STEPS_MAX, FRESH_WAITING_MAX, ROUTE_WAITING_MAX};

#[test]
fn a_drain_that_is_cut_off_goes_on_at_once() {
    let (users, modules) = (210, 60);
    let mut script = Script::new(users);
    let records: Vec<InstalledRecord> =
        (0..users).flat_map(|user| (0..modules).map(move |n| record(user, n))).collect();
    let wanted = records.len();
    assert!(wanted > DRAIN_STEPS_MAX);
    let first = script.handle(Input::Restore(Box::new(records.into()))).len();
    assert!(first < wanted && first > DRAIN_STEPS_MAX / 2, "{first} outputs");
    assert_eq!(script.node.poll_output(), None);
    assert_eq!(script.node.poll_timeout(), Some((script.now.instant, "rest of a drain")));
    let rest = script.handle(Input::Timeout).len();
    assert_eq!(first + rest, wanted);
    assert_eq!(script.node.counters().drains_cut, 1);
    assert_ne!(script.node.poll_timeout().map(|(_, what)| what), Some("rest of a drain"));
}

#[test]
fn clients_requests_are_bounded_and_each_is_answered() {
    let mut script = Script::new(1);
    let posts = u64::try_from(REQUESTS_PENDING_MAX).unwrap() + 3;
    for call in 0..posts {
        script.setup(call, "user0", None);
    }
    let over: Vec<u64> = (0..posts).filter(|call| script.outcome(*call).is_some()).collect();
    assert_eq!(over.len(), 3);
    assert!(over.iter().all(|call| script.outcome(*call) == Some(Err(RefusalKind::QuotaExceeded))));
    assert_eq!(script.node.counters().posts_open, REQUESTS_PENDING_MAX);
    script.work(None);
    assert_eq!(script.replies.len(), usize::try_from(posts).unwrap());
    assert_eq!((script.node.counters().posts_open, script.node.counters().requests_open), (0, 0));
}

/// Goal: requests that waited for a route are bounded like those that did not.
#[test]
fn requests_that_waited_for_a_route_are_bounded_too() {
    let mut script = Script::new(1);
    let path = Some(PathSpec { destination: [10, 9, 0, 1].into(), source: None });
    let posts = u64::try_from(ROUTE_WAITING_MAX).unwrap() + 1;
    for call in 0..posts {
        script.setup(call, "user0", path);
    }
    assert_eq!(script.node.counters().route_waiters, ROUTE_WAITING_MAX);
    assert_eq!(script.outcome(posts - 1), Some(Err(RefusalKind::NoNode)));
    let route = script.open.remove(0);
    script.carry_out(&route);
    assert_eq!(script.node.counters().posts_open, REQUESTS_PENDING_MAX);
    assert_eq!(script.replies.len(), ROUTE_WAITING_MAX + 1 - REQUESTS_PENDING_MAX);
}

#[test]
fn calls_over_the_bound_get_counters_as_they_are() {
    let mut script = Script::new(1);
    for call in 0..FRESH_WAITING_MAX {
        script.handle(Input::Ask(CallId(u64::try_from(call).unwrap()), What::Counters));
    }
    assert_eq!(script.handle(Input::Ask(CallId(9999), What::Counters)), [Output::Fresh(CallId(9999))]);
    script.post(0, RequestBuilder::probe(&[Ask::Modules]).user(&"user0".parse().unwrap()), None);
    assert_eq!(script.outcome(0), Some(Ok("probed".to_owned())), "a request does not wait either");
    script.work(None);
    assert_eq!(script.node.counters().count_waiters, 0);
}

fn record(user: usize, n: usize) -> InstalledRecord {
    InstalledRecord {
        user: format!("user{user}").parse().unwrap(),
        module: format!("example.org/m{n}@1.0.0").parse().unwrap(),
        url: "file:///m.nsm".to_owned(),
        digest: Digest([1; 32]),
        evidence: None,
        suspended: None,
        session: SessionId([1; 16]),
        nonce: None,
        filters: vec!["udp dst 10.2.0.0/24".parse().unwrap()],
        intercept: Vec::new(),
        properties: BTreeMap::new(),
        lease_until: START.wall + Duration::from_secs(3600),
        sessions: Vec::new(),
        wish: None,
        order: u64::try_from(n).unwrap(),
        flavour: None,
        epoch: 0,
        floating: Vec::new(),
        given_up: Vec::new(),
        state: None,
        moved_in: None,
    }
}
