// SPDX-License-Identifier: Apache-2.0
use std::net::Ipv4Addr;
use std::time::Duration;

use netserv_sdk::fake;
use netserv_testing::ip;

use super::*;

const SERVER: &str = "198.51.100.7";

/// Returns a SYN of a client.
fn syn(source: IpAddr, destination: &str, port: u16, sequence: u32) -> Vec<u8> {
    let words = [u32::from(port) << 16 | 80, sequence, 0, 5 << 28 | 2 << 16 | 0xffff, 0].map(u32::to_be_bytes);
    ip(source, destination.parse().unwrap(), 6, 61, words.as_flattened())
}

fn v4(number: u32) -> IpAddr {
    Ipv4Addr::from_bits(0x0a00_0000 | number).into()
}

fn passes(guard: &mut SynGuard, packet: &[u8]) -> bool {
    fake::process(guard, packet).0 == Verdict::Pass
}

fn wait(guard: &mut SynGuard, ms: u64) {
    fake::advance(guard, Duration::from_millis(ms));
}

/// Has SYNs of made up sources come, and returns how many pass.
fn flood(guard: &mut SynGuard, destination: &str, sources: std::ops::Range<u32>) -> usize {
    sources.filter(|source| passes(guard, &syn(v4(*source), destination, 1000, *source))).count()
}

/// Goal: so many pass, and of a flood of made up sources no more; a client comes through when its TCP asks again, and from then on at once.
#[test]
fn a_client_that_asks_again_comes_through() {
    fake::reset(&[("limit", "10")]);
    let mut guard = SynGuard::start().unwrap();
    for six in [false, true] {
        let (client, server) = if six { ("2001:db8::9", "2001:db8:1::7") } else { ("192.0.2.9", SERVER) };
        let client: IpAddr = client.parse().unwrap();
        let flood = |guard: &mut SynGuard, from: u32| {
            let source = |number: u32| {
                if six { IpAddr::from([0xfd77, 0, 0, 0, 0, 0, 0, u16::try_from(number).unwrap()]) } else { v4(number) }
            };
            (from..from + 1000).filter(|number| passes(guard, &syn(source(*number), server, 1, *number))).count()
        };
        assert_eq!(flood(&mut guard, 0), 10);
        assert!(!passes(&mut guard, &syn(client, server, 40_000, 7)));
        wait(&mut guard, 300);
        assert_eq!(flood(&mut guard, 1000), 3);
        assert!(!passes(&mut guard, &syn(client, server, 40_001, 8)));
        wait(&mut guard, 900);
        assert_eq!(flood(&mut guard, 2000), 9);
        assert!(passes(&mut guard, &syn(client, server, 40_001, 8)));
        assert!((0..50).all(|number| passes(&mut guard, &syn(client, server, 50_000 + number, number.into()))));
        wait(&mut guard, 20_000);
    }
    fake::with(|node| assert_eq!(node.counter("known"), 2));
}

/// Goal: a TCP that asks again without what middleboxes may have disliked is known: without ECN (RFC 3168 §6.1.1.1), and without the data of a fast
/// open (RFC 7413 §4.1.3).
#[test]
fn a_client_that_asks_again_more_plainly_comes_through() {
    fake::reset(&[("limit", "0")]);
    let mut guard = SynGuard::start().unwrap();
    let plain = syn(v4(1), SERVER, 1000, 7);
    let mut first = plain.clone();
    first[20 + 13] |= 0xc0;
    let first = ip(v4(1), SERVER.parse().unwrap(), 6, 61, &[&first[20..], b"GET / HTTP/1.0"].concat());
    assert!(!passes(&mut guard, &first));
    wait(&mut guard, 1000);
    assert!(passes(&mut guard, &plain));
}

/// Goal: one who sends the same too soon, too late, or with another number, is nobody who asks again.
#[test]
fn what_is_not_sent_again_as_tcp_does_is_dropped() {
    fake::reset(&[("limit", "0")]);
    let mut guard = SynGuard::start().unwrap();
    let first = syn(v4(1), SERVER, 1000, 7);
    assert!(!passes(&mut guard, &first));
    for _ in 0..30 {
        wait(&mut guard, 100);
        assert!(!passes(&mut guard, &first), "it is sent over and over");
    }
    wait(&mut guard, u64::from(AGAIN_MS_MAX) + 1);
    assert!(!passes(&mut guard, &first), "it has been too long");
    wait(&mut guard, 1000);
    for other in [syn(v4(1), SERVER, 1001, 7), syn(v4(1), SERVER, 1000, 8), syn(v4(2), SERVER, 1000, 7)] {
        assert!(!passes(&mut guard, &other));
    }
    assert!(passes(&mut guard, &first));
}

#[test]
fn known_clients_have_a_limit_of_their_own_and_are_forgotten() {
    fake::reset(&[("limit", "0"), ("known-limit", "20"), ("known-s", "60")]);
    let mut guard = SynGuard::start().unwrap();
    let become_known = |guard: &mut SynGuard| {
        let first = syn(v4(1), SERVER, 1, 1);
        passes(guard, &first);
        wait(guard, 1000);
        passes(guard, &first)
    };
    assert!(become_known(&mut guard));
    let connect = |guard: &mut SynGuard, port| passes(guard, &syn(v4(1), SERVER, port, 9));
    assert_eq!((2..100).filter(|port| connect(&mut guard, *port)).count(), 19);
    wait(&mut guard, 60_000);
    assert!(connect(&mut guard, 200));
    wait(&mut guard, 60_001);
    assert!(!connect(&mut guard, 201));
}

/// Goal: a flood to one address leaves others theirs, up to as many as are told apart.
#[test]
fn addresses_have_limits_of_their_own() {
    fake::reset(&[("limit", "5")]);
    let mut guard = SynGuard::start().unwrap();
    for number in 0..u32::try_from(DESTINATIONS_MAX).unwrap() + 3 {
        let server = v4(0x0010_0000 + number).to_string();
        let own = number < u32::try_from(DESTINATIONS_MAX).unwrap();
        let expected = if own || number == u32::try_from(DESTINATIONS_MAX).unwrap() { 5 } else { 0 };
        assert_eq!(flood(&mut guard, &server, 0..20), expected, "{number}");
    }
    assert_eq!(guard.destinations.len(), DESTINATIONS_MAX);
}

/// Goal: a flood that is larger than what can be remembered in the time until clients ask again leaves most of them known.
#[test]
fn a_large_flood_leaves_clients_their_second_chance() {
    fake::reset(&[("limit", "0")]);
    let mut guard = SynGuard::start().unwrap();
    let client = |number: u32| syn(v4(0x0080_0000 + number), SERVER, 1000, number);
    assert!((0..100).all(|number| !passes(&mut guard, &client(number))));
    for part in 0..10 {
        flood(&mut guard, SERVER, part * 10_000..(part + 1) * 10_000);
        wait(&mut guard, 100);
    }
    let through = (0..100).filter(|number| passes(&mut guard, &client(*number))).count();
    assert!(through > 50, "{through} of 100 after 100,000 SYNs");
}

#[test]
fn what_is_no_syn_passes_and_no_bytes_make_it_trap() {
    fake::reset(&[("limit", "0")]);
    let mut guard = SynGuard::start().unwrap();
    let whole = syn(v4(1), SERVER, 1, 1);
    for flags in [0x12, 0x10, 0x04, 0x11, 0x06, 0] {
        let mut other = whole.clone();
        other[33] = flags;
        assert!(passes(&mut guard, &other), "{flags:#x}");
    }
    assert!((0..34).all(|length| passes(&mut guard, &whole[..length])));
    for at in 0..whole.len() {
        for byte in [0, 0x7f, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            passes(&mut guard, &damaged);
        }
    }
}

#[test]
fn properties_have_bounds() {
    for (name, value) in [("limit", "1000001"), ("known-limit", "x"), ("known-s", "86401")] {
        fake::reset(&[(name, value)]);
        assert!(SynGuard::start().is_err(), "{name}");
    }
}
