// SPDX-License-Identifier: Apache-2.0
//! What a log says of what was done to it.

use std::time::Duration;

use netserv_model::audit::{AuditEntry, AuditReport};
use netserv_model::limits::AUDIT_DETAIL_BYTES_MAX;
use netserv_model::{Digest, Instant, PublicKey, SessionId, UnixTime};
use proptest::prelude::*;

use crate::check::{DAMAGED, LEFT_OUT, LOST};
use crate::limits::{
    LEFT_OUT_INTERVAL, LINE_BYTES_MAX, SHARE_LINE_INTERVAL, SHARE_LINES_BURST, SHARES_MAX, STRANGERS_LINE_INTERVAL,
    STRANGERS_LINES_BURST,
};
use crate::{Chain, Check, Found, Reader, Share, Shares, Whose, first_of_file, name_of_file};

#[test]
fn a_log_as_it_was_written_is_whole() {
    let (mut chain, mut text) = (Chain::default(), String::new());
    (0..5).for_each(|_| text += &chain.add(entry("installed")));
    text += &chain.add(AuditEntry { count: Some(7), ..entry(LOST) });
    text += &chain.add(AuditEntry { count: Some(9), ..entry(LEFT_OUT) });
    let report = check(&[text.as_bytes()]);
    assert_eq!(report.broken, None);
    assert_eq!((report.lines, report.first, report.last, report.newest), (7, Some(1), Some(7), Some(chain.digest())));
    assert_eq!((report.lost, report.left_out, report.damaged), (7, 9, 0));
    assert_eq!(check(&[]), AuditReport::default());
}

/// Goal: what is done to a log is found, at the line where it was done. Method: every way to change single lines; the end that is cut off is
/// told by the newest digest alone.
#[test]
fn lines_taken_out_put_in_changed_or_moved_are_found() {
    let lines = lines(6);
    let at = |lines: &[String]| check(&[lines.concat().as_bytes()]).broken.map(|fault| fault.line);
    for which in 0..lines.len() {
        let mut less = lines.clone();
        less.remove(which);
        let expected = match which {
            // As if it had been deleted with its file.
            0 => None,
            5 => None,
            _ => Some(which as u64 + 1),
        };
        assert_eq!(at(&less), expected, "without {which}");
        let mut more = lines.clone();
        more.insert(which, lines[which].clone());
        assert_eq!(at(&more), Some(which as u64 + 2), "twice {which}");
        let mut other = lines.clone();
        other[which] = lines[which].replace("installed", "removed");
        let expected = (which < 5).then_some(which as u64 + 2);
        assert_eq!(at(&other), expected, "another {which}");
        let mut moved = lines.clone();
        moved.swap(which, (which + 1) % lines.len());
        assert!(at(&moved).is_some(), "moved {which}");
    }
    let cut = check(&[lines[..5].concat().as_bytes()]);
    assert_eq!((cut.broken, cut.last), (None, Some(5)));
    assert_ne!(cut.newest, check(&[lines.concat().as_bytes()]).newest, "only this tells it");
}

#[test]
fn the_first_line_of_all_has_nothing_before_it() {
    let lines = lines(2);
    let forged = lines[0].replace(&"0".repeat(64), &"1".repeat(64));
    assert_eq!(check(&[forged.as_bytes()]).broken.map(|fault| fault.line), Some(1));
}

proptest! {
    /// One changed bit anywhere is found, but in the last line, whose digest is another one.
    #[test]
    fn one_flipped_bit_is_found(at in 0_usize..2000, bit in 0_u8..8) {
        let whole = lines(6).concat().into_bytes();
        let mut bytes = whole.clone();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        let (before, after) = (check(&[&whole]), check(&[&bytes]));
        prop_assert!(after.broken.is_some() || after.newest != before.newest, "{at} {bit}: {after:?}");
    }

    /// Whatever the bytes and however they are cut, reading them ends, and no line is made up.
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0_usize..300) {
        let cut = cut.min(bytes.len());
        let whole = check(&[&bytes]);
        prop_assert_eq!(whole.lines, 0);
        let mut reader = Reader::default();
        let mut check = Check::default();
        reader.take(&bytes[..cut], &mut |found| check.take(&found));
        reader.take(&bytes[cut..], &mut |found| check.take(&found));
        reader.end_file(&mut |found| check.take(&found));
        reader.end(&mut |found| check.take(&found));
        prop_assert_eq!(check.end(), whole);
    }
}

/// Goal: what a crash leaves is no break, once the node has said what it found; it is one if that is changed later, or never said.
#[test]
fn damage_counts_only_if_the_next_line_says_so() {
    let (mut chain, first) = begun();
    let half = "{\"line\":2,\"ti";
    let damaged = damage(half.as_bytes());
    let note = chain.add(AuditEntry { damaged: Some(damaged), ..entry(DAMAGED) });
    let with = |half: &str, note: &str| check(&[format!("{first}{half}\n{note}").as_bytes()]);
    let report = with(half, &note);
    assert_eq!((report.broken, report.damaged, report.lines), (None, 1, 2));
    for changed in ["", "{\"line\":2,\"to", "{\"line\":2,\"ti\n", "{\"line\":2,\"ti\n{"] {
        assert_eq!(with(changed, &note).broken.map(|fault| fault.line), Some(2), "{changed:?}");
    }
    assert_eq!(check(&[format!("{first}{note}").as_bytes()]).broken.map(|fault| fault.line), Some(2));
    assert_eq!(check(&[format!("{first}{half}").as_bytes()]).broken.map(|fault| fault.line), Some(2), "not said yet");
    let (mut chain, _) = begun();
    let silent = chain.add(entry("installed"));
    assert_eq!(with(half, &silent).broken.map(|fault| fault.line), Some(2));
    // The half line may end its file.
    let files = [format!("{first}{half}"), note];
    assert_eq!(check(&[files[0].as_bytes(), files[1].as_bytes()]).broken, None);
}

#[test]
fn a_line_of_more_than_line_bytes_max_is_damaged() {
    let long = |detail: usize| {
        let (mut chain, first) = begun();
        let line = chain.add(AuditEntry { detail: "x".repeat(detail), ..entry("installed") });
        (line.len() - 1, check(&[format!("{first}{line}").as_bytes()]))
    };
    let fill = LINE_BYTES_MAX - long(1).0 + 1;
    assert_eq!((long(fill).0, long(fill).1.broken), (LINE_BYTES_MAX, None));
    assert!(long(fill + 1).1.broken.is_some());
    let bytes = vec![b'{'; 40 * LINE_BYTES_MAX];
    let mut found = Vec::new();
    let mut reader = Reader::default();
    bytes.chunks(999).for_each(|chunk| reader.take(chunk, &mut |_| unreachable!("it has no end")));
    reader.end_file(&mut |_| unreachable!("it is none"));
    reader.end(&mut |one| found.extend(if let Found::Damaged(digest) = one { Some(digest) } else { None }));
    assert_eq!(found, [damage(&bytes)], "however long it is, and nothing of it is kept");
}

/// Goal: no entry makes a line that is none. Method: the longest of each field.
#[test]
fn the_longest_entry_is_a_line() {
    let worst = "\"".repeat(2 * AUDIT_DETAIL_BYTES_MAX);
    let module = format!("example.org/{}@{}", "m".repeat(116), "1.0.0-".to_owned() + &"a".repeat(1000));
    let entry = AuditEntry {
        user: Some("u".repeat(32).parse().unwrap()),
        key: Some(PublicKey([255; 32])),
        evidence: Some(AuditEntry::new(UnixTime(0), node(), "", "", &worst).detail),
        module: Some(module),
        package: Some(Digest([255; 32])),
        session: Some(SessionId([255; 16])),
        from: Some("2001:0db8:ffff:ffff:ffff:ffff:ffff:ffff".to_owned()),
        count: Some(u64::MAX),
        damaged: Some(Digest([255; 32])),
        ..AuditEntry::new(
            UnixTime::from_secs(u32::MAX.into()),
            "n".repeat(64).parse().unwrap(),
            "UNDRAIN",
            "refreshed",
            &worst,
        )
    };
    let mut chain = Chain::after(u64::MAX - 1, b"");
    assert!(chain.add(entry).len() <= LINE_BYTES_MAX);
}

#[test]
fn files_are_in_the_order_of_their_lines() {
    let names: Vec<String> = [1, 9, 10, 1 << 40, u64::MAX].into_iter().map(name_of_file).collect();
    assert!(names.is_sorted());
    assert!(names.iter().zip([1, 9, 10, 1 << 40, u64::MAX]).all(|(name, first)| first_of_file(name) == Some(first)));
    for other in ["1.jsonl", "00000000000000000001.json", "x.jsonl", "", "+0000000000000000001.jsonl"] {
        assert_eq!(first_of_file(other), None, "{other}");
    }
}

/// Goal: a flood of one leaves the room of others, is counted, and ends by itself.
#[test]
fn a_share_has_share_lines_burst_lines_at_once() {
    let (mut shares, mut now) = (Shares::default(), Instant::from_millis(1000));
    let jane = || share(Some("jane"), false);
    let take = |shares: &mut Shares, now, share: Share, times: u64| {
        (0..times).filter(|_| shares.take(now, share.clone())).count() as u64
    };
    assert_eq!(take(&mut shares, now, jane(), SHARE_LINES_BURST + 40), SHARE_LINES_BURST);
    assert_eq!(take(&mut shares, now, share(None, true), SHARE_LINES_BURST + 2), SHARE_LINES_BURST);
    assert_eq!(take(&mut shares, now, share(Some("jane"), true), 1), 1, "her refusals count by themselves");
    assert_eq!(take(&mut shares, now, share(Some("john"), false), 1), 1);
    now = now + SHARE_LINE_INTERVAL * 3 / 2;
    assert_eq!(take(&mut shares, now, jane(), 2), 1);
    assert!(shares.left_out(now, false).is_empty(), "it is not time");
    now = now + LEFT_OUT_INTERVAL;
    let left_out: Vec<_> = shares.left_out(now, false).into_iter().collect();
    assert_eq!(left_out, [(Whose::User("jane".parse().unwrap()), 41), (Whose::Nobody, 2)]);
    assert!(shares.left_out(now, true).is_empty());
    let rest = (LEFT_OUT_INTERVAL.as_millis() + SHARE_LINE_INTERVAL.as_millis() / 2) / SHARE_LINE_INTERVAL.as_millis();
    assert_eq!(u128::from(take(&mut shares, now, jane(), 99)), rest, "nothing of an interval is lost");
    now = now + Duration::from_secs(1 << 40);
    assert_eq!(take(&mut shares, now, jane(), 9999), SHARE_LINES_BURST, "it saves up no more");
}

/// Goal: who may make as many keys as it likes has no more room by that. Method: strangers, each with fewer lines than its own share has.
#[test]
fn strangers_together_have_strangers_lines_burst_lines_at_once() {
    let (mut shares, now) = (Shares::default(), Instant::from_millis(1000));
    let stranger = |number: u64| Share { is_stranger: true, ..share(Some(&format!("k-{}", number / 100)), false) };
    let taken = (0..2 * STRANGERS_LINES_BURST).filter(|number| shares.take(now, stranger(*number))).count() as u64;
    assert_eq!(taken, STRANGERS_LINES_BURST);
    assert!(shares.take(now, Share { refused: true, ..stranger(1) }), "their refusals count by themselves");
    assert!(shares.take(now, share(Some("jane"), false)) && shares.take(now, share(None, false)));
    let later = now + STRANGERS_LINE_INTERVAL;
    assert!(shares.take(later, stranger(1 << 20)) && !shares.take(later, stranger(1 << 20)));
    let left_out = shares.left_out(later, true);
    assert_eq!(left_out.into_iter().collect::<Vec<_>>(), [(Whose::Strangers, STRANGERS_LINES_BURST + 1)], "one line");
    // A stranger that fills its own share counts by its name.
    let mut shares = Shares::default();
    let one = || Share { is_stranger: true, ..share(Some("k-1"), false) };
    assert!((0..=SHARE_LINES_BURST).filter(|_| shares.take(now, one())).count() as u64 == SHARE_LINES_BURST);
    let left_out = shares.left_out(now, true);
    assert_eq!(left_out.into_iter().collect::<Vec<_>>(), [(Whose::User("k-1".parse().unwrap()), 1)]);
}

#[test]
fn shares_max_shares_are_known_at_a_time() {
    let (mut shares, now) = (Shares::default(), Instant::from_millis(1000));
    for number in 0..SHARES_MAX {
        assert!(shares.take(now, share(Some(&format!("u{number}")), false)));
    }
    for _ in 0..STRANGERS_LINES_BURST {
        assert!(shares.take(now, share(Some("late"), false)), "those who come later share that of strangers");
    }
    assert!(!shares.take(now, share(Some("later"), false)));
    assert!(shares.take(now, share(Some("u1"), false)));
    let later = now + SHARE_LINE_INTERVAL * 2;
    assert!(shares.take(later, share(Some("later"), false)), "and those who are full again make room");
}

fn share(user: Option<&str>, refused: bool) -> Share {
    Share { user: user.map(|user| user.parse().unwrap()), is_stranger: false, refused }
}

fn node() -> netserv_model::NodeId {
    "n1".parse().unwrap()
}

fn entry(outcome: &str) -> AuditEntry {
    AuditEntry::new(UnixTime::from_secs(1_795_226_400), node(), "SETUP", outcome, "")
}

fn lines(count: usize) -> Vec<String> {
    let mut chain = Chain::default();
    (0..count).map(|_| chain.add(entry("installed"))).collect()
}

fn begun() -> (Chain, String) {
    let mut chain = Chain::default();
    let first = chain.add(entry("installed"));
    (chain, first)
}

/// Returns the digest of one damaged line.
fn damage(line: &[u8]) -> Digest {
    crate::chain::digest(&[line, b"\n"].concat())
}

fn check(files: &[&[u8]]) -> AuditReport {
    let (mut reader, mut check) = (Reader::default(), Check::default());
    for file in files {
        reader.take(file, &mut |found| check.take(&found));
        reader.end_file(&mut |found| check.take(&found));
    }
    reader.end(&mut |found| check.take(&found));
    check.end()
}
