// SPDX-License-Identifier: Apache-2.0

use super::*;
use crate::oc::Sequence;

const SECOND: u64 = 1000;

/// Sends so many requests a second from each source for a while, and returns how many of each went on.
fn offered(control: &mut Control, rates: &[f64], from_ms: u64, to_ms: u64, feedback: Option<Feedback>) -> Vec<f64> {
    // They begin one after the other.
    let mut due: Vec<f64> = (0..rates.len()).map(|number| number as f64 / rates.len() as f64).collect();
    let mut admitted = vec![0.0; rates.len()];
    for now in from_ms..to_ms {
        if let Some(feedback) = feedback.filter(|_| now % 200 == 0) {
            control.take(feedback, now);
        }
        for (number, rate) in rates.iter().enumerate() {
            due[number] += rate / 1000.0;
            while due[number] >= 1.0 {
                due[number] -= 1.0;
                let source = IpAddr::from([192, 0, 2, u8::try_from(number).unwrap()]);
                let fate = control.decide(source, &(number, now, due[number].to_bits()), now);
                admitted[number] += f64::from(u8::from(fate == Fate::Admitted));
            }
        }
    }
    let seconds = (to_ms - from_ms) as f64 / 1000.0;
    admitted.iter().map(|count| count / seconds).collect()
}

fn rate(a_second: f64) -> Option<Feedback> {
    Some(Feedback { limit: Some(Limit::Rate(a_second)), validity_ms: 1000 })
}

#[test]
fn without_feedback_all_go_on() {
    let mut control = Control::new(1);
    let got: f64 = offered(&mut control, &[2000.0, 10.0], 0, 2 * SECOND, None).iter().sum();
    assert!(got >= 2008.0, "{got}");
    let demand = u32::from_le_bytes(control.demand(2 * SECOND));
    assert!((1980..=2040).contains(&demand), "{demand}");
}

#[test]
fn a_rate_is_kept_and_who_asks_for_little_has_it() {
    let mut control = Control::new(1);
    let got = offered(&mut control, &[170.0, 1830.0], 0, 10 * SECOND, rate(180.0));
    let all: f64 = got.iter().sum();
    assert!((171.0..=189.0).contains(&all), "{got:?}");
    assert!((got[0] - got[1]).abs() < 15.0, "the same for both: {got:?}");

    // One that asks for less than its share beside one that asks for ten times as much.
    let mut control = Control::new(1);
    let got = offered(&mut control, &[60.0, 600.0], 0, 10 * SECOND, rate(180.0));
    assert!(got[0] >= 57.0 && got[0] + got[1] <= 189.0 && got[1] > 100.0, "{got:?}");
}

#[test]
fn many_sources_of_a_request_each_now_and_then_have_the_rate_together() {
    let mut control = Control::new(1);
    let got = offered(&mut control, &[2.0; 200], 0, 10 * SECOND, rate(100.0));
    let all: f64 = got.iter().sum();
    assert!((85.0..=120.0).contains(&all), "{all}");
    assert!(got.iter().all(|rate| *rate > 0.0), "{got:?}");
}

#[test]
fn a_loss_is_that_part_of_what_comes() {
    let mut control = Control::new(1);
    let feedback = Some(Feedback { limit: Some(Limit::Loss(0.75)), validity_ms: 1000 });
    let got: f64 = offered(&mut control, &[400.0, 400.0], 0, 10 * SECOND, feedback).iter().sum();
    assert!((180.0..=220.0).contains(&got), "{got}");
}

#[test]
fn after_a_burst_all_go_on_again() {
    let mut control = Control::new(1);
    offered(&mut control, &[100.0, 1900.0], 0, 5 * SECOND, rate(180.0));
    // What is said last counts for a second.
    let got = offered(&mut control, &[100.0], 7 * SECOND, 9 * SECOND, None);
    assert!(got[0] >= 99.0, "{got:?}");
    let got = offered(&mut control, &[100.0], 9 * SECOND, 11 * SECOND, rate(180.0));
    assert!(got[0] >= 98.0, "{got:?}");
}

#[test]
fn a_request_that_comes_again_has_the_same_fate() {
    let mut control = Control::new(1);
    control.take(Feedback { limit: Some(Limit::Rate(10.0)), validity_ms: 60_000 }, 0);
    let source = IpAddr::from([192, 0, 2, 1]);
    let fates: Vec<Fate> = (0..100).map(|call| control.decide(source, &call, 2000)).collect();
    assert!(fates.contains(&Fate::Admitted) && fates.contains(&Fate::Rejected));
    for now in [2500, 4000, 31_000] {
        let again: Vec<Fate> = (0..100).map(|call| control.decide(source, &call, now)).collect();
        assert_eq!(again, fates, "{now}");
    }
}

#[test]
fn what_comes_again_and_again_locks_nobody_out() {
    let mut control = Control::new(1);
    let [greedy, polite] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
    let mut admitted = 0;
    for now in 0..20_000 {
        if now % 200 == 0 {
            control.take(rate(50.0).unwrap(), now);
        }
        // One call, a thousand times a second; and ten calls a second.
        admitted += u32::from(control.decide(greedy, &"again", now) == Fate::Admitted);
        if now % 100 == 0 && now >= 5000 {
            assert!(now < 6000 || control.decide(polite, &now, now) == Fate::Admitted, "{now}");
        }
    }
    assert!(admitted <= 1 + u32::from(REPEATS_MAX), "{admitted}");
}

#[test]
fn no_loss_is_no_limit() {
    let mut control = Control::new(1);
    control.take(Feedback { limit: Some(Limit::Loss(0.0)), validity_ms: 60_000 }, 0);
    assert!((0..1000).all(|call| control.decide(IpAddr::from([192, 0, 2, 1]), &call, 5000) == Fate::Admitted));
}

#[test]
fn what_went_on_when_all_did_is_decided_again() {
    let mut control = Control::new(1);
    let source = IpAddr::from([192, 0, 2, 1]);
    assert!((0..500).all(|call| control.decide(source, &call, 0) == Fate::Admitted));
    assert!((0..500).all(|call| control.decide(source, &call, 400) == Fate::Admitted));
    control.take(Feedback { limit: Some(Limit::Rate(100.0)), validity_ms: 60_000 }, 500);
    let again = (0..500).filter(|call| control.decide(source, call, 510) == Fate::Admitted).count();
    assert!(again <= 20, "{again}");
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut control = Control::new(1);
    control.take(Feedback { limit: Some(Limit::Rate(1e6)), validity_ms: 60_000 }, 0);
    for number in 0..200_000_u32 {
        control.decide(IpAddr::from((0x0a00_0000 + number).to_be_bytes()), &number, 1);
    }
    assert!(
        control.sources.len() <= SOURCES_MAX + usize::try_from(OTHER_PLACES).unwrap()
            && control.decided.young.len() <= DECIDED_MAX
    );
    assert!(control.decided.old.len() <= DECIDED_MAX);
    // Addresses of one network of IPv6 are one source.
    let mut control = Control::new(1);
    for number in 0..100_u16 {
        control.decide(IpAddr::from([0x2001, 0xdb8, 0, 1, number, 0, 0, number]), &number, 1);
    }
    assert_eq!(control.sources.len(), 1);
    // And all is forgotten.
    control.decide(IpAddr::from([192, 0, 2, 1]), &1000, 100_000);
    assert_eq!(control.sources.len(), 1);
}

#[test]
fn two_parts_of_a_module_share_a_rate() {
    let (mut packets, mut stream) = (Control::new(1), Control::new(2));
    let mut all = 0.0;
    for second in 0..10 {
        let (from, to) = (second * SECOND, (second + 1) * SECOND);
        packets.other_demand(&stream.demand(from), to);
        stream.other_demand(&packets.demand(from), to);
        let got = [
            offered(&mut packets, &[900.0], from, to, rate(200.0))[0],
            offered(&mut stream, &[300.0], from, to, rate(200.0))[0],
        ];
        if second >= 2 {
            all += (got[0] + got[1]) / 8.0;
            assert!(got[0] > got[1], "{got:?}");
        }
    }
    assert!((180.0..=220.0).contains(&all), "{all}");
}

fn said(limit: Option<Limit>, validity_ms: u64) -> Said {
    Said { limit, validity_ms, sequence: None, is_servers_own: true }
}

#[test]
fn what_the_server_says_is_for_whom_it_says_it_to() {
    let [told, other] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
    let mut control = Control::new(1);
    let admitted = |control: &mut Control, source, from: u64| {
        (from..from + 1000).filter(|now| control.decide(source, now, *now) == Fate::Admitted).count()
    };
    control.said(told, &said(Some(Limit::Rate(50.0)), 10_000), 0);
    let kept = admitted(&mut control, told, 0);
    assert!((50..=54).contains(&kept), "{kept}");
    assert_eq!(admitted(&mut control, other, 1000), 1000);
    control.said(told, &said(Some(Limit::Loss(0.75)), 10_000), 2000);
    let kept = admitted(&mut control, told, 2000);
    assert!((200..=300).contains(&kept), "{kept}");
    control.said(other, &said(None, 0), 2999);
    // Beside what the user says of all, the stricter one counts.
    control.take(Feedback { limit: Some(Limit::Rate(20.0)), validity_ms: 2000 }, 3000);
    let kept = admitted(&mut control, told, 3000);
    assert!(kept <= 25, "{kept}");
    control.said(told, &said(None, 0), 5000);
    assert_eq!(admitted(&mut control, told, 5000), 1000);
    control.said(told, &said(Some(Limit::Rate(0.0)), 500), 7000);
    assert_eq!(admitted(&mut control, told, 7000), 500, "then it is over");
}

/// Goal: of many clients that call seldom as many are rejected as of few that call often.
#[test]
fn a_loss_is_also_for_those_to_whom_nothing_was_said() {
    let mut control = Control::new(1);
    let mut number = 0;
    let mut admitted = |control: &mut Control, now: u64| {
        let strangers = (0..1000).map(|_| {
            number += 1;
            control.decide(IpAddr::from((0x0a00_0000_u32 + number).to_be_bytes()), &number, now)
        });
        strangers.filter(|fate| *fate == Fate::Admitted).count()
    };
    let [one, two] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
    control.said(one, &said(Some(Limit::Rate(0.0)), 5000), 0);
    assert_eq!(admitted(&mut control, 10), 1000, "a rate is one client's");
    control.said(two, &Said { is_servers_own: false, ..said(Some(Limit::Loss(1.0)), 10) }, 10);
    assert_eq!(control.decide(two, &"of who is called", 15), Fate::Rejected);
    assert_eq!(admitted(&mut control, 15), 1000, "what who is called writes is for who calls");
    control.said(one, &said(Some(Limit::Loss(0.75)), 2000), 20);
    let kept = admitted(&mut control, 30);
    assert!((200..=300).contains(&kept), "{kept}");
    // What one has of its own is for it: here nothing.
    control.said(two, &said(Some(Limit::Rate(1e6)), 2000), 40);
    assert_eq!(control.decide(two, &"two", 50), Fate::Admitted);
    let kept = admitted(&mut control, 2019);
    assert!((200..=300).contains(&kept), "{kept}");
    assert_eq!(admitted(&mut control, 2020), 1000, "then it is over");
    let at = |seconds, limit| Said { sequence: Sequence::parse(seconds), ..said(limit, 2000) };
    control.said(one, &at("5.2", Some(Limit::Loss(1.0))), 3000);
    control.said(two, &at("5.1", Some(Limit::Loss(0.0))), 3010);
    assert_eq!(admitted(&mut control, 3020), 0, "what was said before does not count");
    control.said(two, &at("5.3", None), 3030);
    assert_eq!(admitted(&mut control, 3040), 1000, "an end is one for all");
    control.said(one, &at("5.25", Some(Limit::Loss(1.0))), 3050);
    assert_eq!(admitted(&mut control, 3060), 1000, "and stays it");
}

#[test]
fn what_was_overtaken_does_not_count() {
    let source = IpAddr::from([192, 0, 2, 1]);
    let mut control = Control::new(1);
    let at = |text: &str, limit| {
        let message = format!("SIP/2.0 200 OK\r\nVia: a;oc=100;oc-algo=loss;oc-edge=e;oc-seq={text}\r\n\r\n");
        let head = netserv_sip::message::Head::parse(message.as_bytes()).unwrap();
        Said { limit, ..Said::of(&head, |mark| mark == "e").unwrap() }
    };
    let all = Some(Limit::Loss(1.0));
    control.said(source, &at("5.1", all), 0);
    control.said(source, &at("5.05", None), 10);
    assert_eq!(control.decide(source, &1, 20), Fate::Rejected);
    control.said(source, &at("5.2", None), 30);
    control.said(source, &at("5.15", all), 40);
    assert_eq!(control.decide(source, &2, 50), Fate::Admitted);
    // Another server's clock may be behind; it is heard when what this one said is over.
    control.said(source, &at("1.0", all), 30 + VALIDITY_MS);
    assert_eq!(control.decide(source, &3, 40 + VALIDITY_MS), Fate::Rejected);
}

#[test]
fn sources_to_which_the_server_says_something_are_bounded() {
    let mut control = Control::new(1);
    for number in 0..2 * u32::try_from(SOURCES_MAX).unwrap() {
        let source = IpAddr::from((0x0a00_0000 + number).to_be_bytes());
        control.said(source, &said(Some(Limit::Loss(1.0)), 1000), 0);
    }
    assert_eq!(control.sources.len(), SOURCES_MAX);
    control.decide(IpAddr::from([192, 0, 2, 1]), &1, 2000);
    assert_eq!(control.sources.len(), 1);
}

#[test]
fn feedback_is_understood() {
    let told = |text: &str| Feedback::parse(text).map(|feedback| (feedback.limit, feedback.validity_ms));
    assert_eq!(told("rate=170.5 validity-ms=2000"), Some((Some(Limit::Rate(170.5)), 2000)));
    assert_eq!(told("loss=25"), Some((Some(Limit::Loss(0.25)), VALIDITY_MS)));
    assert_eq!(told("off"), Some((None, VALIDITY_MS)));
    assert_eq!(told("rate=1 validity-ms=999999999"), Some((Some(Limit::Rate(1.0)), VALIDITY_MS_MAX)));
    for wrong in
        ["", "rate", "rate=-1", "rate=nan", "rate=inf", "loss=101", "rate=1 loss=2", "rate=1 x=2", "validity-ms=3"]
    {
        assert_eq!(told(wrong), None, "{wrong}");
    }
}
