// SPDX-License-Identifier: Apache-2.0
use std::iter::once;

use super::*;
use crate::storage::testing::Memory;

const LENGTH: usize = 512 * 1024;
const LEAST: usize = 128 * 1024;

#[test]
fn what_was_written_is_found_again() {
    let disk = Memory::new(LENGTH);
    let mut journal = open(&disk);
    journal.rewrite(once(batch("a", &[("k", Some("1")), ("l", Some("2"))]))).unwrap();
    journal.append(&batch("a", &[("k", Some("3")), ("l", None)])).unwrap();
    journal.append(&batch("b", &[("x", Some(""))])).unwrap();
    assert_eq!(contents(&disk), "a:k=3; b:x=;");
    let mut gone = batch("a", &[]);
    gone.forget();
    journal.append(&gone).unwrap();
    assert_eq!(contents(&disk), "b:x=;");
    assert!(!open(&disk).is_begun(), "what is behind the last batch is not known");
}

#[test]
fn an_empty_state_is_no_damage() {
    let disk = Memory::new(LENGTH);
    assert_eq!(contents(&disk), "");
    open(&disk).rewrite(std::iter::empty()).unwrap();
    assert_eq!(contents(&disk), "");
}

#[test]
fn a_full_area_takes_nothing_more_until_everything_is_written_anew() {
    let disk = Memory::new(LEAST);
    let mut journal = open(&disk);
    let value = "x".repeat(1000);
    journal.rewrite(std::iter::empty()).unwrap();
    let mut appended = 0;
    while journal.append(&batch("a", &[("k", Some(&value))])).is_ok() {
        appended += 1;
    }
    assert!((50..62).contains(&appended), "{appended}");
    journal.rewrite(once(batch("a", &[("k", Some("new"))]))).unwrap();
    journal.append(&batch("a", &[("l", Some("more"))])).unwrap();
    assert_eq!(contents(&disk), "a:k=new l=more;");
    let whole = batch("a", &[("k", Some(&"x".repeat(60_000))), ("l", Some(&"x".repeat(10_000)))]);
    assert!(matches!(journal.rewrite(once(whole)), Err(JournalError::Full)));
    assert_eq!(contents(&disk), "a:k=new l=more;");
}

#[test]
fn a_batch_may_be_longer_than_a_record_and_still_counts_as_a_whole() {
    let disk = Memory::new(6 << 20);
    let mut journal = open(&disk);
    journal.rewrite(std::iter::empty()).unwrap();
    let mut long = batch("a", &[]);
    (0..30_u8).for_each(|key| long.set(&[key], &[key; KV_VALUE_BYTES_MAX]));
    assert!(long.records.len() > 5 && long.records.iter().all(|record| record.len() <= KV_RECORD_BYTES_MAX));
    disk.break_after(Some(long.records.len() - 1));
    assert!(journal.append(&long).is_err());
    assert_eq!(found(&disk).states.len(), 0);
    disk.break_after(None);
    journal.rewrite(once(long)).unwrap();
    let states = found(&disk).states;
    assert_eq!(states[0].1.len(), 30);
    assert!(states[0].1.iter().all(|(key, value)| value.iter().all(|byte| *byte == key[0])));
}

#[test]
fn files_that_are_too_short_are_of_no_use() {
    assert_eq!(u64::try_from(LEAST).unwrap(), KV_FILE_BYTES_MIN);
    assert!(Journal::open(Memory::new(LEAST - 1)).is_err());
    assert!(Journal::open(Memory::new(LEAST)).is_ok());
}

/// Goal: whatever write or sync the machine dies in, the next start finds all that was reported safe, and at most the
/// batch under way beyond it, whole. Method: a script of 200 changes, cut at its n-th call, for every n.
#[test]
fn a_power_cut_at_any_point_loses_nothing_that_was_safe() {
    for cut in 0..1000 {
        let disk = Memory::new(LEAST);
        disk.break_after(Some(cut));
        let Outcome { safe, tried } = script(&disk, |_| false);
        check_kept(&disk, &format!("cut at {cut}"), safe, tried);
        if safe == Some(CHANGES - 1) {
            return;
        }
    }
    panic!("the script has fewer calls");
}

/// Goal: the same, of a disk that fails at one call, works again, and is cut off later. Method: every pair of a call
/// that fails and one of the next calls at which power is cut.
#[test]
fn a_power_cut_after_a_failed_write_loses_nothing_that_was_safe() {
    for first in (0..140).chain(390..420) {
        for second in 0..8 {
            let disk = Memory::new(LEAST);
            disk.break_after(Some(first));
            let mut failures = 0;
            let Outcome { safe, tried } = script(&disk, |disk| {
                failures += 1;
                disk.break_after(Some(second));
                failures < 2
            });
            check_kept(&disk, &format!("{first}, then {second}"), safe, tried);
        }
    }
}

const CHANGES: u32 = 200;

struct Outcome {
    safe: Option<u32>,
    tried: Option<u32>,
}

/// Makes changes; after one that fails, `goes_on` says whether the next one is tried.
fn script(disk: &Memory, mut goes_on: impl FnMut(&Memory) -> bool) -> Outcome {
    let mut journal = open(disk);
    let mut outcome = Outcome { safe: None, tried: None };
    for number in 0..CHANGES {
        outcome.tried = Some(number);
        let text = format!("{number}{}", "x".repeat(900));
        let change = batch("a", &[("k", Some(&text)), ("l", Some(&text))]);
        let written = match journal.append(&change) {
            Err(JournalError::Full) => journal.rewrite(once(change)),
            other => other,
        };
        match written {
            Ok(()) => outcome.safe = Some(number),
            Err(_) if goes_on(disk) => {}
            Err(_) => break,
        }
    }
    outcome
}

fn check_kept(disk: &Memory, what: &str, safe: Option<u32>, tried: Option<u32>) {
    let states = found(&disk.copy()).states;
    let kept = states.first().map(|(_, entries)| {
        assert_eq!(entries[&b"k"[..]], entries[&b"l"[..]], "a batch is whole");
        String::from_utf8_lossy(&entries[&b"k"[..]]).trim_end_matches('x').parse::<u32>().unwrap()
    });
    assert!(safe <= kept && kept <= tried, "{what}: {kept:?}, safe {safe:?}, tried {tried:?}");
}

#[test]
fn damage_is_noticed_and_costs_no_more_than_what_it_hit() {
    let disk = Memory::new(LENGTH);
    let mut journal = open(&disk);
    journal.rewrite(once(batch("a", &[("first", Some("1"))]))).unwrap();
    journal.append(&batch("a", &[("second", Some("2"))])).unwrap();
    let at = disk.bytes.lock().unwrap().windows(6).position(|bytes| bytes == b"second").unwrap();
    disk.bytes.lock().unwrap()[at] ^= 1;
    let (mut journal, found) = Journal::open(disk.clone()).unwrap();
    assert!(found.damage.is_some_and(|text| text.contains("cut off")));
    assert_eq!(found.states[0].1.len(), 1);
    assert!(!journal.is_begun());
    assert!(matches!(journal.append(&WriteBatch::default()), Err(JournalError::Full)));
    journal.rewrite(once(batch("a", &[("first", Some("1"))]))).unwrap();
    assert_eq!(contents(&disk), "a:first=1;");
}

/// Goal: no bytes whatsoever make opening fail or panic. Method: random damage of a good file, in headers and in records,
/// whose checksums are then made right now and then.
#[test]
fn any_bytes_are_a_file() {
    let disk = Memory::new(LEAST);
    let mut journal = open(&disk);
    let mut big = batch("a", &[]);
    (0..50_u8).for_each(|key| big.set(&[key; 3], &[key; 500]));
    journal.rewrite(once(big)).unwrap();
    journal.append(&batch("b", &[("k", Some("v"))])).unwrap();
    let good = disk.bytes.lock().unwrap().clone();
    let mut random = 88_172_645_463_325_252_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % below as u64).unwrap()
    };
    let mut noticed = 0;
    for round in 0..2000 {
        let mut bytes = good.clone();
        for _ in 0..=next(6) {
            let places = [next(40), 4096 + next(40), 8192 + next(64), 8192 + next(30_000)];
            bytes[places[next(4)]] = u8::try_from(next(256)).unwrap();
        }
        if round % 2 == 0 {
            make_right(&mut bytes);
        }
        let broken = Memory { bytes: std::sync::Arc::new(std::sync::Mutex::new(bytes)), ..Memory::default() };
        let (mut journal, found) = Journal::open(broken.clone()).unwrap();
        noticed += usize::from(found.damage.is_some());
        journal.rewrite(once(batch("c", &[("k", Some("v"))]))).unwrap();
        assert_eq!(states_of(&Journal::open(broken).unwrap().1), "c:k=v;");
    }
    assert!(noticed > 1000, "{noticed}");
}

#[test]
fn a_file_that_grew_is_used_as_a_whole_and_one_that_shrank_starts_anew() {
    let disk = Memory::new(LEAST);
    let mut journal = open(&disk);
    journal.rewrite(once(batch("a", &[("k", Some("1"))]))).unwrap();
    journal.rewrite(once(batch("a", &[("k", Some("2"))]))).unwrap();
    disk.bytes.lock().unwrap().resize(LENGTH, 0);
    let value = "x".repeat(60_000);
    for _ in 0..3 {
        assert!(contents(&disk).starts_with("a:k="));
        let whole = batch("a", &[("k", Some(&value)), ("l", Some(&value)), ("m", Some(&value))]);
        open(&disk).rewrite(once(whole)).unwrap();
    }
    assert_eq!(found(&disk).states[0].1.len(), 3);
    disk.bytes.lock().unwrap().truncate(LEAST);
    assert!(found(&disk).damage.is_some());
    open(&disk).rewrite(once(batch("a", &[("k", Some("4"))]))).unwrap();
    assert_eq!(states_of(&found(&disk)), "a:k=4;");
}

/// Goal: pieces of a batch that a power cut left never count. Method: of a batch of two records, the first one is lost;
/// what is written next is as long.
#[test]
fn pieces_of_a_batch_that_was_cut_off_never_count() {
    let disk = Memory::new(4 << 20);
    let mut journal = open(&disk);
    journal.rewrite(once(batch("a", &[("k", Some("1"))]))).unwrap();
    let values = |keys: Range<u8>, value: u8| {
        let mut batch = batch("a", &[]);
        keys.for_each(|key| batch.set(&[key], &[value; KV_VALUE_BYTES_MAX]));
        batch
    };
    let at = usize::try_from(journal.active.as_ref().unwrap().end).unwrap();
    let lost = values(0..5, 1);
    assert_eq!(lost.records.len(), 2);
    journal.append(&lost).unwrap();
    disk.bytes.lock().unwrap()[at..at + RECORD_HEADER_BYTES].fill(0);
    let mut journal = open(&disk);
    let next = values(0..3, 2);
    assert_eq!(next.records[0].len(), lost.records[0].len());
    if journal.append(&next).is_err() {
        journal.rewrite(once(next)).unwrap();
    }
    let keys: Vec<u8> = found(&disk).states[0].1.keys().map(|key| key[0]).collect();
    assert_eq!(keys, [0, 1, 2]);
}

/// Goal: no header leaves so little room beside its area that state cannot be written any more. Method: headers with
/// right checksums and areas of all places and lengths; then as much state as may be kept.
#[test]
fn no_header_stops_what_comes_after_it() {
    let (mut taken, mut damaged) = (0, 0);
    let step = 32 * 1024;
    for start in (8192..LENGTH as u64).step_by(step) {
        for end in (start..=LENGTH as u64).step_by(step) {
            let disk = Memory::new(LENGTH);
            let area = Area { range: start..end, generation: 5, end: start, sequence: 0 };
            disk.write_at(HEADER_PLACES[1], &area.header()).unwrap();
            let (mut journal, found) = Journal::open(disk.clone()).unwrap();
            // An area without a record is damage as well, but one that is read.
            let is_taken = found.damage.is_some_and(|text| text.contains("cut off"));
            *(if is_taken { &mut taken } else { &mut damaged }) += 1;
            let mut whole = batch("a", &[]);
            let (value, mut cost) = ([1; 4000], 0);
            for key in (0..u16::MAX).map(u16::to_be_bytes) {
                cost += super::cost(&key, &value);
                if cost > journal.usable() {
                    break;
                }
                whole.set(&key, &value);
            }
            journal.rewrite(once(whole)).unwrap_or_else(|error| panic!("{start} to {end}: {error}"));
            assert!(journal.usable() > LENGTH as u64 / 8, "{start} to {end}");
        }
    }
    assert!(taken > 30 && damaged > 10, "{taken} {damaged}");
}

/// Goal: a file whose entries take more in memory than on the disk does not take the memory of all else.
#[test]
fn what_is_found_is_bounded_by_what_may_be_kept() {
    let disk = Memory::new(LENGTH);
    let mut journal = open(&disk);
    let mut small = batch("a", &[]);
    (0..15_000_u16).for_each(|key| small.set(&key.to_be_bytes(), b""));
    journal.rewrite(once(small)).unwrap();
    let (found, most) = (found(&disk), journal.usable() * KV_RESTORED_TIMES_MAX);
    assert!(found.damage.is_some_and(|text| text.contains("more than there is memory for")));
    let cost: u64 = found.states.iter().map(|(_, entries)| cost_of(entries)).sum();
    assert!(cost > most / 2 && cost < most + 1000, "{cost} of {most}");
    // Names without an entry take memory too.
    let mut names = WriteBatch::default();
    for number in 0..4000 {
        names.state(&id(&number.to_string()));
        names.set(b"k", b"");
        names.delete(b"k");
    }
    journal.rewrite(once(names)).unwrap();
    let (_, found) = Journal::open(disk).unwrap();
    assert!(found.damage.is_some() && found.states.len() < 2000, "{}", found.states.len());
}

fn open(disk: &Memory) -> Journal<Memory> {
    Journal::open(disk.clone()).unwrap().0
}

fn found(disk: &Memory) -> Found {
    Journal::open(disk.clone()).unwrap().1
}

fn id(name: &str) -> StateId {
    (format!("example.org/{name}").parse().unwrap(), 1)
}

fn batch(name: &str, changes: &[(&str, Option<&str>)]) -> WriteBatch {
    let mut batch = WriteBatch::default();
    batch.state(&id(name));
    for (key, value) in changes {
        match value {
            Some(value) => batch.set(key.as_bytes(), value.as_bytes()),
            None => batch.delete(key.as_bytes()),
        }
    }
    batch
}

/// Returns what is in a file without damage.
fn contents(disk: &Memory) -> String {
    let found = found(disk);
    assert_eq!(found.damage, None);
    states_of(&found)
}

fn states_of(found: &Found) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let states = found.states.iter().map(|((name, _), entries)| {
        let entries: Vec<String> =
            entries.iter().map(|(key, value)| format!("{}={}", text(key), text(value))).collect();
        format!("{}:{};", name.as_str().trim_start_matches("example.org/"), entries.join(" "))
    });
    states.collect::<Vec<_>>().join(" ")
}

/// Makes the checksums of both headers and of the first record right, whatever is in them.
fn make_right(bytes: &mut [u8]) {
    for place in [0, 4096] {
        let sum = xxh3_64(&bytes[place..place + 32]);
        bytes[place + 32..place + 40].copy_from_slice(&sum.to_le_bytes());
    }
    let length = u32_at(bytes, 8192) as usize;
    if let Some(payload) = bytes.get(8224..8224 + length) {
        let sum = record_sum(&bytes[8192..8216], payload);
        bytes[8216..8224].copy_from_slice(&sum.to_le_bytes());
    }
}
