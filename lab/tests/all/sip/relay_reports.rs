// SPDX-License-Identifier: Apache-2.0
//! Cases of [`super::relay_cases`] in which parties leave a call's media or reject what others want of it.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use serde_json::{Value, json};

use super::relay_cases::{Relay, destination, of, sdp_of};

/// Longer than a relay learns.
const LEARNED: Duration = Duration::from_millis(4200);

/// sipwise/rtpengine#1416
pub(super) fn other_codec_and_port(relay: &Relay<'_>) -> Vec<String> {
    let (a, b, elsewhere) = (relay.phone("receiver"), relay.phone("sender"), relay.phone("receiver"));
    let b_to = relay.offer("a", "", end(&a));
    let a_to = relay.answer(("a", "b"), end(&b), &[]);
    relay.talk(&a, 5, 1, a_to, &[]);
    relay.talk(&b, 5, 2, b_to, &[]);
    std::thread::sleep(LEARNED);
    let told = |command: &str, phone| described(relay, command, &TAGS, &sdp(phone, "audio").replace("AVP 0", "AVP 8"));
    let b_to = destination(&told("offer", &elsewhere)).unwrap();
    let a_to = destination(&told("answer", &b)).unwrap();
    // As parties that take media from nowhere else.
    b.connect(b_to).unwrap();
    elsewhere.connect(a_to).unwrap();
    let there = relay.talk(&elsewhere, 5, 9, a_to, &[&b])[0];
    vec![of(there, 5), of(relay.talk(&b, 5, 2, b_to, &[&elsewhere])[0], 5)]
}

/// sipwise/rtpengine#1376: the relay sends to itself then.
pub(super) fn left_by_pbx(relay: &Relay<'_>) -> Vec<String> {
    let other = relay.other_call();
    let (a, b) = (relay.phone("receiver"), relay.phone("sender"));
    let [pbx_a, pbx_b] = [(); 2].map(|()| relay.phone("sender"));
    let pbx_to_a = relay.offer("a", "", end(&a));
    let a_to = relay.answer(("a", "pbx"), end(&pbx_a), &[]);
    let b_to = other.offer("pbx", "", end(&pbx_b));
    let pbx_to_b = other.answer(("pbx", "b"), end(&b), &[]);
    for (phone, to) in [(&a, a_to), (&pbx_a, pbx_to_a), (&b, b_to), (&pbx_b, pbx_to_b)] {
        relay.talk(phone, 5, 1, to, &[]);
    }
    std::thread::sleep(LEARNED);
    let b_to = other.offer("pbx", "b", pbx_to_a);
    other.answer(("pbx", "b"), end(&b), &[]);
    let a_to = relay.offer("pbx", "a", pbx_to_b);
    relay.answer(("pbx", "a"), end(&a), &[]);
    let there = relay.talk(&a, 5, 1, a_to, &[&b])[0];
    vec![of(there, 5), of(relay.talk(&b, 5, 2, b_to, &[&a])[0], 5)]
}

/// sipwise/rtpengine#1046
pub(super) fn rejected_fax(relay: &Relay<'_>) -> Vec<String> {
    let (a, b, fax) = (relay.phone("receiver"), relay.phone("sender"), relay.phone("sender"));
    let b_to = relay.offer("a", "", end(&a));
    let a_to = relay.answer(("a", "b"), end(&b), &[]);
    let names = [("from-tag", "b"), ("to-tag", "a"), ("via-branch", "fax")];
    described(relay, "offer", &names, &sdp(&fax, "image").replace("RTP/AVP 0", "udptl t38"));
    relay.ask("delete", &names, None);
    if relay.ask("query", &[], None)["result"] != "ok" {
        // Its ports are another case's.
        return vec!["the call is over".to_owned()];
    }
    let there = relay.talk(&a, 5, 1, a_to, &[&b])[0];
    vec![of(there, 5), of(relay.talk(&b, 5, 2, b_to, &[&a])[0], 5)]
}

const TAGS: [(&str, &str); 2] = [("from-tag", "a"), ("to-tag", "b")];

fn described(relay: &Relay<'_>, command: &str, names: &[(&str, &str)], sdp: &str) -> Value {
    let mut request = relay.request(command, None);
    request.extend(names.iter().chain([&("sdp", sdp)]).map(|(name, value)| ((*name).to_owned(), json!(value))));
    relay.send_request(&Value::Object(request))
}

fn sdp(phone: &UdpSocket, kind: &str) -> String {
    sdp_of(end(phone).ip(), &[(kind, end(phone).port())])
}

fn end(phone: &UdpSocket) -> SocketAddr {
    phone.local_addr().unwrap()
}
