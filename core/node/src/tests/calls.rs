// SPDX-License-Identifier: Apache-2.0
//! Calls of clients, and what waits for the machine to be looked at.

use netserv_gist::{Disposition, InterfaceId};
use netserv_model::request::Ask;
use netserv_model::route::RouteChange;

use super::*;
use crate::{OwnedDatagram, Token};

#[test]
fn calls_see_counters_that_are_no_older_than_they() {
    let mut script = Script::new(1);
    let first = script.handle(Input::Ask(CallId(1), What::Counters));
    let [(measure, Job::Measure)] = effects(&first)[..] else { panic!("{first:?}") };
    assert_eq!(script.handle(Input::Ask(CallId(2), What::Counters)), [], "one measurement at a time");
    let then = script.handle(Input::Done(measure, outcome(&Job::Measure)));
    let [Output::Fresh(CallId(1)), Output::Do(Effect { id: next, job: Job::Measure, .. })] = then[..] else {
        panic!("{then:?}")
    };
    // One that failed serves what there is.
    let refused = EffectOutcome::Refused(Refusal::new(RefusalKind::NodeFailed, "no"));
    assert_eq!(script.handle(Input::Done(next, refused)), [Output::Fresh(CallId(2))]);
    assert_eq!(script.node.counters().count_waiters, 0);
}

#[test]
fn a_probe_of_modules_waits_for_counters() {
    let mut script = Script::new(1);
    let probe = RequestBuilder::probe(&[Ask::Modules]).user(&"user0".parse().unwrap());
    script.post(0, probe, None);
    assert_eq!(script.outcome(0), None);
    script.work(None);
    assert_eq!(script.outcome(0), Some(Ok("probed".to_owned())));
}

#[test]
fn a_repeated_request_gets_the_same_answer_once_for_each_call() {
    let mut script = Script::new(1);
    let message = RequestBuilder::probe(&[]).build(script.now.wall, Nonce([1; 16])).unwrap().into_message();
    let session = Some(netserv_model::SessionId([3; 16]));
    let request =
        |message: &str| PostRequest { message: message.to_owned(), path: None, session, timeout_ms: u64::MAX };
    for call in 0..3 {
        script.handle(Input::Post(CallId(call), Box::new(request(message.as_str()))));
    }
    script.handle(Input::Post(CallId(3), Box::new(request("no request"))));
    let outcomes: Vec<_> = (0..4).map(|call| script.outcome(call).unwrap()).collect();
    let probed = || Ok("probed".to_owned());
    assert_eq!(outcomes, [probed(), probed(), probed(), Err(RefusalKind::BadRequest)]);
    assert_eq!(script.node.counters().posts_open, 0);
}

#[test]
fn a_route_is_asked_for_once_for_each_destination() {
    let mut script = Script::new(1);
    let to = |last: u8| Some(PathSpec { destination: [10, 9, 0, last].into(), source: None });
    assert_eq!(effects(&script.setup(0, "user0", to(1))).len(), 1);
    assert_eq!(effects(&script.setup(1, "user0", to(1))).len(), 0, "it is being asked for");
    assert_eq!(effects(&script.setup(2, "user0", to(2))).len(), 1);
    assert_eq!(script.node.counters().route_waiters, 3);
    script.work(None);
    assert_eq!(script.node.counters().route_waiters, 0);
    let routes = |outputs: &[Output]| effects(outputs).iter().filter(|(_, job)| matches!(job, Job::Route(_))).count();
    assert_eq!(routes(&script.setup(3, "user0", to(1))), 0, "it is known");
    script.handle(Input::RoutesChanged(RouteChange::All));
    assert_eq!(routes(&script.setup(4, "user0", to(1))), 1);
}

#[test]
fn without_a_route_a_request_is_refused() {
    let mut script = Script::new(1);
    let path = Some(PathSpec { destination: [10, 9, 0, 1].into(), source: None });
    let outputs = script.setup(0, "user0", path);
    let [(route, _)] = effects(&outputs)[..] else { panic!("{outputs:?}") };
    script.handle(Input::Done(route, EffectOutcome::Routed(None)));
    assert_eq!(script.outcome(0), Some(Err(RefusalKind::NoNode)));
}

#[test]
fn what_is_intercepted_is_released_at_once() {
    let mut script = Script::new(1);
    let magic = [0x4e, 0x04, 0xbd, 0xa5];
    let payloads = [vec![], vec![0; 9], magic.to_vec(), [&magic[..], &[1; 60]].concat(), query()];
    for (token, payload) in (0..).zip(payloads) {
        // Only what begins with the magic number can be GIST's.
        let goes_on = !payload.starts_with(&magic);
        let outputs = script.handle(Input::Intercepted(Token(token), Box::new(datagram(payload))));
        let released: Vec<_> = outputs
            .iter()
            .filter_map(|output| if let Output::Release(token, what) = output { Some((token.0, what)) } else { None })
            .collect();
        assert_eq!((released.len(), released[0].0), (1, token));
        assert!(!goes_on || matches!(released[0].1, Disposition::Forward { payload: None }), "{token}: {released:?}");
    }
}

/// Returns a Query of another node for the same NSLP, as it goes over the wire.
fn query() -> Vec<u8> {
    let mut other = Script::new(1);
    let path = PathSpec { destination: [10, 9, 0, 9].into(), source: Some([10, 0, 0, 2].into()) };
    other.setup(0, "user0", Some(path));
    let route = other.open[0].id;
    let outputs = other.handle(Input::Done(route, EffectOutcome::Routed(Some([10, 0, 0, 2].into()))));
    let payload = outputs.into_iter().find_map(|output| match output {
        Output::Send(netserv_gist::Transmit::QMode { payload, .. }) => Some(payload),
        Output::Send(_)
        | Output::Attach(..)
        | Output::Release(..)
        | Output::Do(_)
        | Output::Abandon(_)
        | Output::Reply(..)
        | Output::Fresh(_)
        | Output::Applied(..)
        | Output::Notice(_)
        | Output::Application(..)
        | Output::Stopped => None,
    });
    payload.unwrap()
}

fn datagram(payload: Vec<u8>) -> OwnedDatagram {
    OwnedDatagram {
        interface: InterfaceId(1),
        local: [10, 0, 0, 1].into(),
        source: "10.0.0.2:270".parse().unwrap(),
        destination: [10, 9, 0, 9].into(),
        ttl: 63,
        payload,
    }
}
