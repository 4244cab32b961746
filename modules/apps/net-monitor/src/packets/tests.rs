// SPDX-License-Identifier: Apache-2.0
use netserv_sdk::fake;
use netserv_testing::udp;

use super::*;

fn owned((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

fn packet(host: u8, ttl: u8) -> Vec<u8> {
    udp(&format!("10.1.0.{host}:1"), "10.2.0.1:5060", ttl, b"x")
}

#[test]
fn packets_are_counted_by_source_destination_and_ttl() {
    fake::reset(&[]);
    let mut module = NetMonitor::start().unwrap();
    for (host, ttl) in [(1, 61), (1, 61), (2, 61), (1, 60), (1, 61)] {
        assert_eq!(fake::process(&mut module, &packet(host, ttl)).0, Verdict::Pass);
    }
    fake::with(|node| assert_eq!(node.counter("packets"), 0));
    fake::advance(&mut module, FLUSH_PERIOD);
    fake::with(|node| {
        assert_eq!(node.counter("packets"), 5);
        assert_eq!(node.counter("10.1.0.1 10.2.0.1 61"), 3);
        assert_eq!(node.counter("10.1.0.2 10.2.0.1 61"), 1);
        assert_eq!(node.counter("10.1.0.1 10.2.0.1 60"), 1);
        assert_eq!(node.kv[&b"10.1.0.1 10.2.0.1 61"[..]], b"3 3 87");
        assert_eq!(node.sent, [FLUSHED]);
    });
}

#[test]
fn counts_outlive_an_upgrade_that_overlaps() {
    fake::reset(&[]);
    let mut old = NetMonitor::start().unwrap();
    fake::process(&mut old, &packet(1, 61));
    old.stop();
    let mut old = NetMonitor::start().unwrap();
    let mut new = NetMonitor::start().unwrap();
    fake::with(|node| assert_eq!(node.counter("10.1.0.1 10.2.0.1 61"), 1));
    fake::process(&mut old, &packet(1, 61));
    fake::process(&mut new, &packet(1, 61));
    old.stop();
    new.stop();
    fake::with(|node| assert_eq!(node.counter("10.1.0.1 10.2.0.1 61"), 3));
}

/// What versions without bytes kept is gone on with, also where one of them moved here from another node.
#[test]
fn counts_of_versions_without_bytes_go_on() {
    fake::reset(&[]);
    let kept = |name: &str, value: &str| {
        fake::with(|node| node.kv.insert(name.as_bytes().to_vec(), value.as_bytes().to_vec()));
    };
    kept("10.1.0.1 10.2.0.1 61", "40");
    kept("10.1.0.3 10.2.0.1 61", "50");
    let mut module = NetMonitor::start().unwrap();
    fake::with(|node| assert_eq!(node.counter("10.1.0.1 10.2.0.1 61"), 40));
    module.import_state(&2_u64.to_be_bytes()).unwrap();
    (0..2).for_each(|_| drop(fake::process(&mut module, &packet(1, 61))));
    assert_eq!(module.export_state().unwrap(), 2_u64.to_be_bytes());
    fake::with(|node| {
        assert_eq!(node.kv[&b"10.1.0.1 10.2.0.1 61"[..]], b"42 41 29");
        assert_eq!(node.kv[&b"10.1.0.3 10.2.0.1 61"[..]], b"50");
        assert_eq!(node.counter("10.1.0.1 10.2.0.1 61"), 42);
    });
}

#[test]
fn totals_go_on_in_the_next_version() {
    fake::reset(&[]);
    for seen in 1..=2 {
        let mut module = NetMonitor::start().unwrap();
        fake::process(&mut module, &packet(1, 61));
        module.stop();
        assert_eq!(totals(), Totals { seen, counted: seen, bytes: 29 * seen, sample: 1, ..Totals::default() });
    }
}

#[test]
fn a_sample_counts_for_all() {
    fake::reset(&[("sample", "10")]);
    let mut module = NetMonitor::start().unwrap();
    for _ in 0..25 {
        fake::process(&mut module, &packet(1, 61));
    }
    module.stop();
    fake::with(|node| {
        assert_eq!(node.counter("packets"), 25);
        assert_eq!(node.counter("10.1.0.1 10.2.0.1 61"), 20);
        assert_eq!(node.kv[&b"10.1.0.1 10.2.0.1 61"[..]], b"20 2 58");
    });
    let totals = totals();
    assert_eq!((totals.seen, totals.counted, totals.bytes, totals.sampled_away()), (25, 2, 58, 23));
    assert_eq!(totals.sample, 10);
    fake::reset(&[("sample", "0")]);
    assert!(NetMonitor::start().is_err());
}

#[test]
fn its_user_changes_the_sample_and_switches_it_off_and_on() {
    fake::reset(&[]);
    let mut module = NetMonitor::start().unwrap();
    let tell = |module: &mut NetMonitor, topic: &str, body: &[u8]| {
        fake::tell(module, &control::Message { topic, seq: 1, body });
        for _ in 0..20 {
            fake::process(module, &packet(1, 61));
        }
        fake::advance(module, FLUSH_PERIOD);
        fake::with(|node| node.counter("10.1.0.1 10.2.0.1 61"))
    };
    assert_eq!(tell(&mut module, "sample", b"10"), 20);
    assert_eq!(tell(&mut module, "sample", b"0"), 20);
    assert_eq!(tell(&mut module, "sample", b"many"), 20);
    assert_eq!(tell(&mut module, "other", b"1"), 20);
    fake::with(|node| node.info = [("id", "n1"), ("place", "berlin"), ("fact.uplink", "10G")].map(owned).into());
    assert_eq!(tell(&mut module, "where", b""), 20);
    assert_eq!(tell(&mut module, "sample", b"1\n"), 40);
    let said: Vec<String> = fake::with(|node| node.notified.clone())
        .into_iter()
        .map(|(topic, body)| format!("{topic}: {}", String::from_utf8(body).unwrap()))
        .collect();
    assert_eq!(said[..2], ["sample: sample is 10", "sample: sample is 0"]);
    assert_eq!(said[2..4], ["sample: sample is a number", "other: nothing is known of other"]);
    assert_eq!(said[4], "where: n1 in berlin, uplink 10G");
    fake::with(|node| assert_eq!(node.counter("packets"), 120));
}

#[test]
fn keys_are_bounded() {
    fake::reset(&[]);
    let mut module = NetMonitor::start().unwrap();
    for n in 0..=u16::try_from(KEYS_MAX).unwrap() + 1 {
        let [high, low] = n.to_be_bytes();
        fake::process(&mut module, &udp(&format!("10.1.{high}.{low}:1"), "10.2.0.1:5060", 61, b""));
        assert!(module.counts.len() <= KEYS_MAX);
    }
    fake::with(|node| assert_eq!(node.kv.len(), KEYS_MAX));
    module.stop();
    fake::with(|node| assert_eq!(node.kv.len(), KEYS_MAX + 3));
}

#[test]
fn damaged_packets_pass() {
    fake::reset(&[]);
    let mut module = NetMonitor::start().unwrap();
    assert_eq!(fake::process(&mut module, &[0x45; 19]).0, Verdict::Pass);
    module.stop();
    fake::with(|node| assert_eq!(node.kv.len(), 1));
    assert_eq!(totals(), Totals { seen: 1, not_ip: 1, sample: 1, ..Totals::default() });
}

fn totals() -> Totals {
    Totals::parse(&kv::value(TOTALS).unwrap()).unwrap()
}
