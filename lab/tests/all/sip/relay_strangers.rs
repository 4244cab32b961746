// SPDX-License-Identifier: Apache-2.0
//! Cases of [`super::relay_cases`] in which somebody else sends to a call's ports, or would hear what is sent there.

use std::net::{SocketAddr, UdpSocket};
use std::thread::sleep;

use serde_json::{Value, json};

use super::relay_cases::{
    BEHIND_NAT, Call, LAST_WAIT, PACKET_EACH, Relay, destination, destination_of, hear_sources, of, sdp_of, send_one,
};
use netserv_lab::patience::grown;

const OF_A: u8 = 1;
const OF_B: u8 = 2;
const OF_STRANGER: u8 = 99;

pub(super) fn ringing(relay: &Relay<'_>) -> Vec<String> {
    stranger_from_the_offer_on(relay, 25, &[])
}

pub(super) fn ringing_strict(relay: &Relay<'_>) -> Vec<String> {
    stranger_from_the_offer_on(relay, 125, &["strict-source"])
}

/// The stranger knows the ports that the relay says it has, which nobody told it. It sends when so many packets of a party have gone.
fn stranger_from_the_offer_on(relay: &Relay<'_>, each: u16, flags: &[&str]) -> Vec<String> {
    let (a, b, stranger) = (relay.phone("receiver"), relay.phone("sender"), relay.phone("receiver"));
    let ask = |command: &str, phone: &UdpSocket, tags: &[(&str, &str)]| {
        let mut request = relay.request(command, Some(phone.local_addr().unwrap()));
        request.extend(tags.iter().map(|(name, tag)| ((*name).to_owned(), json!(tag))));
        request.insert("flags".to_owned(), json!(flags));
        destination(&relay.send_request(&Value::Object(request))).unwrap()
    };
    let b_to = ask("offer", &a, &[("from-tag", "a")]);
    let mut ports = vec![b_to.port()];
    local_ports(&relay.ask("query", &[], None), &mut ports);
    ports.sort_unstable();
    ports.dedup();
    let strange = |number: u16| {
        for port in ports.iter().filter(|_| number.is_multiple_of(each)) {
            send_one(&stranger, number, OF_STRANGER, SocketAddr::new(b_to.ip(), *port));
        }
    };
    for number in 0..200 {
        strange(number);
        sleep(PACKET_EACH);
    }
    let a_to = ask("answer", &b, &[("from-tag", "a"), ("to-tag", "b")]);
    let mut phones = [(&a, Vec::new()), (&b, Vec::new()), (&stranger, Vec::new())];
    for number in 0..200 {
        send_one(&a, number, OF_A, a_to);
        send_one(&b, number, OF_B, b_to);
        strange(200 + number);
        phones.iter_mut().for_each(|(phone, heard)| heard.extend(hear_sources(phone, PACKET_EACH / 20)));
        sleep(PACKET_EACH);
    }
    phones.iter_mut().for_each(|(phone, heard)| heard.extend(hear_sources(phone, grown(LAST_WAIT))));
    let [(_, at_a), (_, at_b), (_, at_stranger)] = &phones;
    vec![some(count(at_a, OF_B).min(count(at_b, OF_A)), 200), some(at_stranger.len(), 200)]
}

fn local_ports(told: &Value, found: &mut Vec<u16>) {
    match told {
        Value::Object(entries) => {
            found.extend(entries.get("local port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok()));
            entries.values().for_each(|value| local_ports(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| local_ports(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

pub(super) fn one_packet_while_silent(relay: &Relay<'_>) -> Vec<String> {
    let call = Call::begin(relay, Some(BEHIND_NAT), "receiver");
    call.described_again(relay);
    send_one(&call.elsewhere, 0, OF_STRANGER, call.a_to);
    sleep(PACKET_EACH);
    let heard = relay.talk(&call.b, 40, OF_B, call.b_to, &[&call.a, &call.elsewhere]);
    heard.into_iter().map(|heard| of(heard, 40)).collect()
}

pub(super) fn ten_a_second_while_silent(relay: &Relay<'_>) -> Vec<String> {
    let call = Call::begin(relay, Some(BEHIND_NAT), "receiver");
    call.described_again(relay);
    for number in 0..40 {
        send_one(&call.elsewhere, number, OF_STRANGER, call.a_to);
        sleep(5 * PACKET_EACH);
    }
    [&call.a, &call.b, &call.elsewhere].iter().for_each(|phone| _ = hear_sources(phone, grown(LAST_WAIT)));
    for number in 0..50 {
        send_one(&call.a, number, OF_A, call.a_to);
        send_one(&call.b, number, OF_B, call.b_to);
        if number % 5 == 0 {
            send_one(&call.elsewhere, 40 + number / 5, OF_STRANGER, call.a_to);
        }
        sleep(PACKET_EACH);
    }
    let heard = |phone, source| some(count(&hear_sources(phone, grown(LAST_WAIT)), source), 50);
    vec![heard(&call.b, OF_A), heard(&call.a, OF_B), heard(&call.elsewhere, OF_B)]
}

pub(super) fn rejected_while_silent(relay: &Relay<'_>) -> Vec<String> {
    let call = Call::begin(relay, None, "sender");
    relay.offer("b", "a", call.elsewhere.local_addr().unwrap());
    vec![of(relay.talk(&call.a, 40, OF_A, call.a_to, &[&call.b])[0], 40)]
}

pub(super) fn changed_lines(relay: &Relay<'_>) -> Vec<String> {
    const OF_VIDEO: u8 = 3;
    let [a, a_video] = [(); 2].map(|()| relay.phone("receiver"));
    let [b, b_video] = [(); 2].map(|()| relay.phone("sender"));
    let ask = |command: &str, tags: [&str; 2], lines: [(&str, &UdpSocket); 2]| {
        let ends = lines.map(|(kind, phone)| (kind, phone.local_addr().unwrap()));
        let mut request = relay.request(command, None);
        let sdp = sdp_of(ends[0].1.ip(), &ends.map(|(kind, end)| (kind, end.port())));
        let values = [("from-tag", tags[0]), ("to-tag", tags[1]), ("sdp", &sdp)];
        let given = values.into_iter().filter(|(_, value)| !value.is_empty());
        request.extend(given.map(|(name, value)| (name.to_owned(), json!(value))));
        let told = relay.send_request(&Value::Object(request));
        ["audio", "video"].map(|kind| destination_of(&told, kind).unwrap_or_else(|| panic!("{told}")))
    };
    let [to_audio, to_video] = ask("offer", ["a", ""], [("audio", &a), ("video", &a_video)]);
    ask("answer", ["a", "b"], [("audio", &b), ("video", &b_video)]);
    let hear = |phone| hear_sources(phone, grown(LAST_WAIT));
    relay.talk(&b, 5, OF_B, to_audio, &[]);
    relay.talk(&b_video, 5, OF_VIDEO, to_video, &[]);
    let _ = [&a, &a_video].map(hear);

    ask("offer", ["b", "a"], [("video", &b_video), ("audio", &b)]);
    let [audio, video] = ask("answer", ["b", "a"], [("video", &a_video), ("audio", &a)]);
    relay.talk(&b, 5, OF_B, to_audio, &[]);
    relay.talk(&b_video, 5, OF_VIDEO, to_video, &[]);
    let wrong = count(&hear(&a), OF_VIDEO) + count(&hear(&a_video), OF_B);
    relay.talk(&b, 5, OF_B, audio, &[]);
    relay.talk(&b_video, 5, OF_VIDEO, video, &[]);
    vec![of(wrong, 10), of(count(&hear(&a), OF_B), 5), of(count(&hear(&a_video), OF_VIDEO), 5)]
}

fn count(heard: &[u8], source: u8) -> usize {
    heard.iter().filter(|known| **known == source).count()
}

/// What is neither all nor nothing depends on moments.
fn some(heard: usize, sent: usize) -> String {
    match heard {
        0 => of(0, sent),
        heard if heard == sent => of(heard, sent),
        _ => format!("some of {sent}"),
    }
}
