// SPDX-License-Identifier: Apache-2.0

use super::*;

const OFFER: &str = "v=0\r\no=alice 1 2 IN IP4 10.0.0.9\r\ns=-\r\nc=IN IP4 10.0.0.9\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0 8\r\n\
                     a=rtpmap:0 PCMU/8000\r\na=rtcp:4001 IN IP4 10.0.0.9\r\na=sendrecv\r\n";
const PORTS: Option<Ports> = Some(Ports { rtp: 30000, rtcp: 30001 });

fn check(text: &str, address: &str, ports: &[Option<Ports>], origin: bool, expected: &str) {
    let sdp = Sdp::parse(text.as_bytes()).unwrap();
    let written = sdp.rewrite(address.parse().unwrap(), ports, origin);
    assert_eq!(String::from_utf8(written).unwrap(), expected);
}

#[test]
fn addresses_and_ports_are_replaced_and_the_rest_stays() {
    let expected = OFFER.replace("c=IN IP4 10.0.0.9", "c=IN IP4 192.0.2.1").replace("audio 4000", "audio 30000");
    let expected = expected.replace("rtcp:4001 IN IP4 10.0.0.9", "rtcp:30001 IN IP4 192.0.2.1");
    check(OFFER, "192.0.2.1", &[PORTS], false, &expected);
    check(OFFER, "192.0.2.1", &[PORTS], true, &expected.replace("2 IN IP4 10.0.0.9", "2 IN IP4 192.0.2.1"));
    let v6 = expected.replace("IP4 192.0.2.1", "IP6 2001:db8::1");
    check(OFFER, "2001:db8::1", &[PORTS], false, &v6);
    check(&OFFER.replace("\r\n", "\n"), "192.0.2.1", &[PORTS], false, &expected);
}

#[test]
fn ends_are_what_the_description_says() {
    let ends = |text: &str| {
        let sdp = Sdp::parse(text.as_bytes()).unwrap();
        let (rtp, rtcp) = sdp.media[0].ends();
        (rtp.map(|end| end.to_string()), rtcp.map(|end| end.to_string()))
    };
    let some = |rtp: &str, rtcp: &str| (Some(rtp.to_owned()), Some(rtcp.to_owned()));
    assert_eq!(ends(OFFER), some("10.0.0.9:4000", "10.0.0.9:4001"));
    assert_eq!(ends(&OFFER.replace("4001 IN IP4 10.0.0.9", "4000")), some("10.0.0.9:4000", "10.0.0.9:4000"));
    assert_eq!(ends(&OFFER.replace("4001 IN IP4 10.0.0.9", "5 IN IP4 10.0.0.8")), some("10.0.0.9:4000", "10.0.0.8:5"));
    assert_eq!(ends(&format!("{OFFER}c=IN IP6 2001:db8::7\r\n")), some("[2001:db8::7]:4000", "[2001:db8::7]:4001"));
    for nowhere in ["0.0.0.0", "127.0.0.1", "224.2.1.1/127", "169.254.169.254", "255.255.255.255", "phone.example.com"]
    {
        assert_eq!(
            ends(&OFFER.replace("c=IN IP4 10.0.0.9", &format!("c=IN IP4 {nowhere}"))),
            (None, None),
            "{nowhere}"
        );
    }
    assert_eq!(ends(&OFFER.replace("4000", "0")), (None, None));
    assert_eq!(ends(&OFFER.replace("4000", "65535").replace("a=rtcp:", "a=x:")).1.unwrap(), "10.0.0.9:65535");
}

#[test]
fn streams_on_hold_and_rejected_ones_stay_so() {
    let held = OFFER.replace("c=IN IP4 10.0.0.9", "c=IN IP4 0.0.0.0");
    assert!(Sdp::parse(held.as_bytes()).unwrap().media[0].is_still);
    let expected = held.replace("audio 4000", "audio 30000");
    check(&held, "192.0.2.1", &[PORTS], false, &expected.replace("4001 IN IP4 10.0.0.9", "30001 IN IP4 192.0.2.1"));
    let rejected = format!("{}m=video 0 RTP/AVP 99\r\na=ice-ufrag:x\r\n", OFFER.replace("a=rtcp", "a=x"));
    let expected = rejected.replace("audio 4000", "audio 30000").replace("c=IN IP4 10.0.0.9", "c=IN IP4 192.0.2.1");
    check(&rejected, "192.0.2.1", &[PORTS, None], false, &expected);
    assert!(Sdp::parse(OFFER.replace("sendrecv", "inactive").as_bytes()).unwrap().media[0].is_still);
}

#[test]
fn ice_and_bundles_are_left_out() {
    let more = "a=ice-ufrag:F7gI\r\na=ice-pwd:x9cml\r\na=candidate:1 1 UDP 1 10.0.0.9 4000 typ host\r\na=ice-options:trickle\r\n\
                a=end-of-candidates\r\na=remote-candidates:1 10.0.0.9 1\r\na=bundle-only\r\n";
    let kept = "a=rtcp-mux\r\na=fingerprint:sha-256 AA\r\na=setup:actpass\r\na=crypto:1 x inline:y\r\n";
    let head = OFFER.replace("t=0 0\r\n", "t=0 0\r\na=group:BUNDLE 0 1\r\na=ice-lite\r\n");
    let expected = OFFER.replace("c=IN IP4 10.0.0.9", "c=IN IP4 192.0.2.1").replace("audio 4000", "audio 30000");
    let expected = expected.replace("4001 IN IP4 10.0.0.9", "30001 IN IP4 192.0.2.1");
    check(&format!("{head}{more}{kept}"), "192.0.2.1", &[PORTS], false, &format!("{expected}{kept}"));
    assert!(Sdp::parse(format!("{head}{kept}").as_bytes()).unwrap().media[0].has_mux);
}

#[test]
fn streams_over_tcp_keep_where_they_are() {
    let text = format!("{OFFER}m=message 7 TCP/MSRP *\r\na=path:msrp://10.0.0.9:7/x;tcp\r\n");
    let sdp = Sdp::parse(text.as_bytes()).unwrap();
    assert_eq!([sdp.media[0].is_relayed, sdp.media[1].is_relayed], [true, false]);
    let written = String::from_utf8(sdp.rewrite("192.0.2.1".parse().unwrap(), &[PORTS, None], false)).unwrap();
    assert!(
        written.contains("m=message 7 TCP/MSRP *\r\nc=IN IP4 10.0.0.9\r\na=path:msrp://10.0.0.9:7/x;tcp\r\n"),
        "{written}"
    );
}

#[test]
fn a_count_of_ports_is_left_out() {
    let text = OFFER.replace("4000", "4000/2");
    let written = Sdp::parse(text.as_bytes()).unwrap().rewrite("192.0.2.1".parse().unwrap(), &[PORTS], false);
    assert!(String::from_utf8(written).unwrap().contains("m=audio 30000 RTP/AVP 0 8\r\n"));
}

/// Goal: what phones write that others' parsers refused ends no call, and no address of theirs is left in what is relayed. Method: the descriptions of
/// reports to rtpengine (52, 77, 371, 942, 2122), Kamailio (3406, 3982) and pjsip (662, 1233).
#[test]
fn odd_descriptions_of_phones_are_relayed() {
    let (session, audio) = ("v=0\r\no=- 1 1 IN IP4 phone\r\ns=-\r\n", "m=audio 4000 RTP/AVP 0\r\n");
    let at = "c=IN IP4 10.0.0.9\r\n";
    let written = |text: &str, ports: &[Option<Ports>]| {
        let sdp = Sdp::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error:?}: {text}"));
        assert_eq!(sdp.media.len(), ports.len(), "{text}");
        let ends = sdp.media.iter().find(|media| media.port > 0).unwrap().ends();
        assert_eq!(ends, (Some("10.0.0.9:4000".parse().unwrap()), Some("10.0.0.9:4001".parse().unwrap())), "{text}");
        String::from_utf8(sdp.rewrite("192.0.2.1".parse().unwrap(), ports, false)).unwrap()
    };
    for (text, ports) in [
        (format!("{session}{at}t=0 0\r\n{audio}\r\n\r\n"), vec![PORTS]),
        (format!("{session}{at}t=0 0\r\n{audio}a=sendrecv"), vec![PORTS]),
        (format!("{session}c=IN IP4 10.9.9.9\r\nt=0 0\r\n{audio}{at}"), vec![PORTS]),
        (format!("{session}t=0 0\r\n{audio}{at}{at}"), vec![PORTS]),
        (format!("{session}t=0 0\r\n{audio}{at}m=video 0 RTP/AVPF 96\r\na=inactive\r\n"), vec![PORTS, None]),
        (format!("{session}t=0 0\r\nm=audio 0 RTP/AVP\r\n{audio}{at}"), vec![None, PORTS]),
        (format!("{session}{at}t=0 0\r\n{audio}m=video 0 RTP/AVP 255\r\n"), vec![PORTS, None]),
    ] {
        let written = written(&text, &ports);
        assert!(written.contains("m=audio 30000 ") && written.contains("c=IN IP4 192.0.2.1\r\n"), "{written}");
        assert!(!written.contains(" 10.") && written.ends_with("\r\n") && !written.contains("\r\n\r\n"), "{written}");
    }
    for rtcp in ["a=rtcp:", "a=rtcp:x", "a=rtcp:99999 IN IP4 10.0.0.9", "a=rtcp: "] {
        let written = written(&format!("{session}{at}t=0 0\r\n{audio}{rtcp}\r\n"), &[PORTS]);
        assert!(written.contains("\r\na=rtcp:30001"), "{written}");
    }
}

#[test]
fn what_is_no_description_is_refused() {
    let check = |text: &str, error| assert_eq!(Sdp::parse(text.as_bytes()).unwrap_err(), error, "{text}");
    for bad in [
        "",
        "hello",
        "v=0\r\nm=audio",
        "v=0\r\nm=audio x RTP/AVP 0",
        "v=0\r\nm=audio 70000 RTP/AVP 0",
        "v=0\r\nc=IN IP5 1.2.3.4\r\n",
        "v=0\r\nc=IN IP4\r\n",
    ] {
        check(bad, SdpError::Damaged);
    }
    check("v=0\r\nm=audio 4000 RTP/AVP 0\r\n", SdpError::Incomplete);
    check(&format!("{OFFER}{}", "a".repeat(SDP_BYTES_MAX)), SdpError::Damaged);
    check(&format!("v=0\r\nm={} 1 RTP/AVP 0", "a".repeat(WORD_BYTES_MAX + 1)), SdpError::Damaged);
    let many = |count: usize| format!("v=0\r\nc=IN IP4 10.0.0.9\r\n{}", "m=audio 4000 RTP/AVP 0\r\n".repeat(count));
    assert_eq!(Sdp::parse(many(STREAMS_MAX).as_bytes()).unwrap().media.len(), STREAMS_MAX);
    check(&many(STREAMS_MAX + 1), SdpError::TooMany);
    check(&many(1000), SdpError::TooMany);
}

/// Goal: nothing that comes from outside stops the module. Method: descriptions with a byte changed, cut off, and doubled.
#[test]
fn damaged_descriptions_do_no_harm() {
    let bytes =
        format!("{OFFER}m=video 6000/2 UDP/TLS/RTP/SAVPF 99\r\nc=IN IP6 2001:db8::9\r\na=rtcp:6001\r\n").into_bytes();
    for at in 0..bytes.len() {
        for byte in [0, b' ', b'\n', b'=', b'9', 0xff] {
            let mut changed = bytes.clone();
            changed[at] = byte;
            for bytes in [&changed[..], &changed[..at]] {
                if let Ok(sdp) = Sdp::parse(bytes) {
                    let ports = vec![PORTS; sdp.media.len()];
                    let _ = sdp.media.iter().map(Media::ends).collect::<Vec<_>>();
                    let written = sdp.rewrite("192.0.2.1".parse().unwrap(), &ports, true);
                    assert!(written.starts_with(b"v="));
                }
            }
        }
    }
}
