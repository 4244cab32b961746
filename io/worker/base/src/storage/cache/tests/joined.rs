// SPDX-License-Identifier: Apache-2.0
//! Entries that are read while they are written.

use std::pin::pin;
use std::time::Duration;

use tokio::time::timeout;

use super::*;

#[test]
fn one_who_wants_a_key_writes_and_the_others_join() {
    let (cache, share) = cache();
    let other = Arc::new(cache.share(&name("b")));
    // As of another instance or version of the module.
    let again = Arc::new(cache.share(&name("a")));
    let mut writer = written(share.open_or_join("k", 0).unwrap());
    drop(written(other.open_or_join("k", 0).unwrap()));
    drop(written(share.open_or_join("l", 0).unwrap()));
    let joined = joined(again.open_or_join("k", 0).unwrap());
    writer.begin(lasting(60), Some(4), 0).unwrap();
    assert!(matches!(writer.begin(lasting(60), None, 0), Err(CacheError::Invalid)));
    writer.write(b"body").unwrap();
    writer.finish().unwrap();
    let Piece::Whole(entry) = joined.piece(0, 10).unwrap() else { panic!("it is whole") };
    assert_eq!(read(&share, &entry, 0, 10), b"body");
    let Opened::Entry(entry) = again.open_or_join("k", 59).unwrap() else { panic!("it is fresh") };
    assert_eq!(entry.size(), 4);
    // It is stale, and still there until another one comes in its place.
    let writer = written(again.open_or_join("k", 60).unwrap());
    assert_eq!(value(&share, "k").as_deref(), Some("body"));
    drop(writer);
    assert!(share.update("k", &lasting(60), 60).unwrap());
    assert!(matches!(share.open_or_join("k", 60).unwrap(), Opened::Entry(_)));
    for key in ["", &"k".repeat(CACHE_KEY_BYTES_MAX + 1)] {
        assert!(matches!(share.open_or_join(key, 0), Err(CacheError::Invalid)));
    }
}

/// Goal: readers get each byte as soon as it is written, from memory or from disk, wherever they are. Method: every reader
/// reads at other places after each write.
#[test]
fn bytes_are_the_same_wherever_they_come_from() {
    for meta in [0, PAYLOAD_BYTES - 200, CACHE_META_BYTES_MAX] {
        let share = roomy();
        let whole = body((CACHE_RECENT_BLOCKS + 20) * PAYLOAD_BYTES + 77);
        let mut writer = written(share.open_or_join("k", 0).unwrap());
        let joined = joined(share.open_or_join("k", 0).unwrap());
        writer.begin(Details { meta: vec![1; meta], ..Details::default() }, None, 0).unwrap();
        let (mut there, mut from_disk) = (0, 0);
        // Others have all memory every other time.
        let mut others = None;
        for part in whole.chunks(9_999) {
            others = if others.is_none() { Some(without_memory(&share)) } else { None };
            assert!(matches!(joined.piece(there as u64, 1).unwrap(), Piece::Nothing));
            writer.write(part).unwrap();
            there += part.len();
            for offset in [0, 1, 300, PAYLOAD_BYTES, there / 2, there - 1] {
                let bytes = match joined.piece(offset as u64, 5000).unwrap() {
                    Piece::Bytes(lent) => lent.bytes.to_vec(),
                    Piece::OnDisk => {
                        from_disk += 1;
                        joined.read(offset as u64, 5000).unwrap().bytes.to_vec()
                    }
                    Piece::Nothing | Piece::Whole(_) => vec![],
                };
                if offset < there {
                    assert!(
                        !bytes.is_empty() && bytes.len() <= 5000 && whole[offset..there].starts_with(&bytes),
                        "{offset}"
                    );
                }
            }
        }
        assert!(from_disk > 10, "{from_disk}");
        writer.finish().unwrap();
        assert!(read(&share, &share.get("k").unwrap(), 0, usize::MAX) == whole);
        assert_eq!(share.failures(), 0);
    }
}

#[test]
fn what_a_writer_keeps_in_memory_is_bounded() {
    let share = roomy();
    let _others = without_memory(&share);
    let mut writer = written(share.open_or_join("k", 0).unwrap());
    let joined = joined(share.open_or_join("k", 0).unwrap());
    writer.begin(Details::default(), None, 0).unwrap();
    writer.write(&body(100 * PAYLOAD_BYTES)).unwrap();
    let blocks = 1..100_u64;
    let in_memory = blocks.filter(|block| !matches!(joined.piece(block * PAYLOAD_BYTES as u64, 1), Ok(Piece::OnDisk)));
    assert_eq!(in_memory.count(), CACHE_RECENT_BLOCKS);
}

#[test]
fn readers_of_one_entry_are_bounded() {
    let (_, share) = cache();
    let writer = written(share.open_or_join("k", 0).unwrap());
    let mut readers: Vec<_> = (0..CACHE_JOINED_MAX).map(|_| joined(share.open_or_join("k", 0).unwrap())).collect();
    assert!(matches!(share.open_or_join("k", 0), Err(CacheError::Crowded)));
    readers.pop();
    drop(joined(share.open_or_join("k", 0).unwrap()));
    drop(writer);
    assert!(readers.iter().all(|reader| matches!(reader.failure(), Some(CacheError::Abandoned))));
    drop(written(share.open_or_join("k", 0).unwrap()));
}

#[test]
fn a_writer_keeps_what_it_promised_or_fails() {
    let (_, share) = cache();
    let begin = |size| {
        let mut writer = share.put("k").unwrap();
        let joined = joined(share.open_or_join("k", 0).unwrap());
        writer.begin(lasting(1), size, 0).unwrap();
        (writer, joined)
    };
    let (mut writer, reader) = begin(Some(3));
    assert!(matches!(writer.write(b"four"), Err(CacheError::Invalid)) && writer.has_failed());
    assert!(matches!(writer.finish(), Err(CacheError::Invalid)));
    assert!(matches!(reader.piece(0, 1), Err(CacheError::Invalid)));
    let (mut writer, reader) = begin(Some(3));
    writer.write(b"tw").unwrap();
    assert!(matches!(writer.finish(), Err(CacheError::Invalid)));
    assert!(matches!(reader.failure(), Some(CacheError::Invalid)));
    let writer = share.put("k").unwrap();
    assert!(matches!(writer.finish(), Err(CacheError::Invalid)), "it was never begun");
    assert!(share.stat("k").is_none());
    let (writer, _) = begin(Some(0));
    writer.finish().unwrap();
    assert_eq!(share.stat("k").unwrap().size(), 0);
}

#[test]
fn a_writer_that_does_nothing_is_given_up() {
    let (_, share) = cache();
    let mut writer = written(share.open_or_join("k", 0).unwrap());
    let mut reader = joined(share.open_or_join("k", 0).unwrap());
    assert_eq!(reader.stall_time_max, CACHE_STALL_TIME_MAX);
    reader.stall_time_max = Duration::from_millis(10);
    writer.begin(lasting(1), None, 0).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    assert!(matches!(runtime.block_on(reader.next(0, 1)), Err(CacheError::Stalled)));
    drop(written(share.open_or_join("k", 0).unwrap()));
    assert!(writer.has_failed() && matches!(writer.write(b"x"), Err(CacheError::Stalled)));
    assert!(matches!(writer.finish(), Err(CacheError::Stalled)));
}

#[test]
fn readers_fail_when_the_disk_does_and_see_nothing_of_others_blocks() {
    let disk = Memory::new(BLOCKS * CACHE_BLOCK_BYTES);
    let share = share_of(&disk);
    let _others = without_memory(&share);
    let mut writer = written(share.open_or_join("k", 0).unwrap());
    let reader = joined(share.open_or_join("k", 0).unwrap());
    writer.begin(lasting(1), None, 0).unwrap();
    writer.write(&body(20 * PAYLOAD_BYTES)).unwrap();
    assert!(matches!(reader.piece(PAYLOAD_BYTES as u64, 1).unwrap(), Piece::OnDisk));
    disk.break_after(Some(0));
    assert!(matches!(writer.write(&body(20 * PAYLOAD_BYTES)), Err(CacheError::Disk(_))));
    drop(writer);
    disk.break_after(None);
    put(&share, "other", &vec![9; 25 * PAYLOAD_BYTES]);
    assert!(reader.piece(0, 1).is_err() && reader.read(PAYLOAD_BYTES as u64, 1).is_err());
    assert_eq!(share.failures(), 1, "that the blocks are another's by now is no failure");
}

/// Goal: a disk that is full amid a fill costs this alone: who joined is told, and its blocks are others' again. Method: the disk
/// takes so many writes and no more, from the first to the head.
#[test]
fn a_disk_that_is_full_amid_a_fill_gives_the_room_back() {
    let disk = Memory::new(BLOCKS * CACHE_BLOCK_BYTES);
    let share = share_of(&disk);
    put(&share, "k", b"of before");
    let mut failed = 0;
    for writes in 0..8 {
        let mut writer = written(share.open_or_join("k", 0).unwrap());
        let reader = joined(share.open_or_join("k", 0).unwrap());
        writer.begin(lasting(60), None, 0).unwrap();
        disk.break_after(Some(writes));
        let written = writer.write(&body(5 * PAYLOAD_BYTES)).and_then(|()| writer.finish());
        disk.break_after(None);
        match written {
            Err(CacheError::Disk(_)) => {
                failed += 1;
                assert!(matches!(reader.failure(), Some(CacheError::Damaged)), "{writes}");
                assert!(reader.piece(0, 1).is_err() && reader.read(0, 1).is_err());
                assert_eq!(value(&share, "k").as_deref(), Some("of before"), "{writes}");
            }
            other => assert!(other.is_ok() && matches!(reader.piece(0, 1), Ok(Piece::Whole(_))), "{writes}"),
        }
        drop(reader);
        put(&share, "all", &body((BLOCKS - 1) * PAYLOAD_BYTES));
        share.remove("all");
        put(&share, "k", b"of before");
    }
    assert_eq!(failed, 6);
}

#[test]
fn what_is_purged_while_it_is_written_is_read_and_not_kept() {
    let disk = Memory::new(BLOCKS * CACHE_BLOCK_BYTES);
    let share = share_of(&disk);
    let tagged = || Details { tags: vec!["t".to_owned()], ..lasting(60) };
    for (scope, details, is_kept) in [
        (Scope::Prefix("k".to_owned()), lasting(60), false),
        (Scope::Prefix("l".to_owned()), lasting(60), true),
        (Scope::Tag("t".to_owned()), tagged(), false),
        (Scope::Tag("u".to_owned()), tagged(), true),
    ] {
        let mut writer = written(share.open_or_join("k", 0).unwrap());
        let reader = joined(share.open_or_join("k", 0).unwrap());
        writer.begin(details, None, 0).unwrap();
        while share.purge(scope.clone()).unwrap().step() {}
        assert_eq!(matches!(share.open_or_join("k", 0).unwrap(), Opened::Joined(_)), is_kept, "{scope:?}");
        writer.write(b"body").unwrap();
        writer.finish().unwrap();
        let Piece::Whole(entry) = reader.piece(0, 1).unwrap() else { panic!("it is whole") };
        assert_eq!(read(&share, &entry, 0, 10), b"body");
        assert_eq!((share.stat("k").is_some(), share_of(&disk.copy()).stat("k").is_some()), (is_kept, is_kept));
        share.remove("k");
    }
    // What tags it will have is not known.
    let mut writer = written(share.open_or_join("k", 0).unwrap());
    while share.purge(Scope::Tag("t".to_owned())).unwrap().step() {}
    writer.begin(tagged(), None, 0).unwrap();
    writer.finish().unwrap();
    assert!(share.stat("k").is_none());
}

#[test]
fn what_is_removed_while_it_is_written_is_read_and_not_kept() {
    let (_, share) = cache();
    put(&share, "l", b"other");
    let mut writer = written(share.open_or_join("k", 0).unwrap());
    let mut other = written(share.open_or_join("m", 0).unwrap());
    let reader = joined(share.open_or_join("k", 0).unwrap());
    writer.begin(lasting(60), None, 0).unwrap();
    other.begin(lasting(60), None, 0).unwrap();
    assert!(!share.remove("k"), "it is not there yet");
    let mut next = written(share.open_or_join("k", 0).unwrap());
    next.begin(lasting(60), None, 0).unwrap();
    next.finish().unwrap();
    writer.write(b"body").unwrap();
    writer.finish().unwrap();
    other.finish().unwrap();
    let Piece::Whole(entry) = reader.piece(0, 1).unwrap() else { panic!("it is whole") };
    assert_eq!(read(&share, &entry, 0, 10), b"body");
    assert_eq!(share.stat("k").unwrap().size(), 0, "what came after stays");
    assert!(share.stat("l").is_some() && share.stat("m").is_some());
}

#[test]
fn what_is_removed_or_purged_while_it_is_written_alone_is_not_kept() {
    let (_, share) = cache();
    let alone = |key: &str| Writer::alone(&share, key, lasting(60), 0).unwrap();
    for by in ["remove", "purge", "other"] {
        let mut writer = alone("k");
        writer.write(b"of before").unwrap();
        match by {
            "remove" => assert!(!share.remove("k"), "it is not there yet"),
            "purge" => while share.purge(Scope::Prefix("k".to_owned())).unwrap().step() {},
            _ => assert!(!share.remove("l")),
        }
        writer.finish().unwrap();
        assert_eq!(share.stat("k").is_some(), by == "other", "{by}");
    }
}

#[test]
fn many_readers_are_woken_soon_for_little_and_at_once_for_much() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let share = roomy();
        let mut writer = written(share.open_or_join("k", 0).unwrap());
        let readers: Vec<_> = (0..=CACHE_READERS_FEW).map(|_| joined(share.open_or_join("k", 0).unwrap())).collect();
        writer.begin(lasting(60), None, 0).unwrap();
        let mut there = 0;
        for length in [10, CACHE_WAKE_BYTES, 1, 20_000] {
            let mut next = pin!(readers[0].next(there, 10));
            assert!(timeout(2 * CACHE_WAKE_TIME_MAX, next.as_mut()).await.is_err());
            let begun = Instant::now();
            writer.write(&body(length)).unwrap();
            let is_at_once = timeout(Duration::ZERO, next.as_mut()).await;
            // On a busy machine the time for little may be over by then.
            let is_due = length == CACHE_WAKE_BYTES || begun.elapsed() >= CACHE_WAKE_TIME_MAX;
            assert!(if is_at_once.is_ok() { is_due } else { length != CACHE_WAKE_BYTES }, "{length}");
            if is_at_once.is_err() {
                timeout(Duration::from_secs(60), next).await.unwrap().unwrap();
            }
            there += length as u64;
        }
        writer.finish().unwrap();
        let whole = timeout(Duration::ZERO, readers[1].next(there, 10)).await.unwrap();
        assert!(matches!(whole, Ok(Piece::Whole(_))));
    });
}

#[test]
fn who_lags_behind_reads_what_others_have_in_memory() {
    let share = roomy();
    let mut writer = written(share.open_or_join("k", 0).unwrap());
    let reader = joined(share.open_or_join("k", 0).unwrap());
    writer.begin(lasting(60), None, 0).unwrap();
    let whole = body((CACHE_RECENT_BLOCKS + 20) * PAYLOAD_BYTES);
    writer.write(&whole).unwrap();
    for offset in (0..whole.len()).step_by(5000) {
        let Piece::Bytes(lent) = reader.piece(offset as u64, 10).unwrap() else { panic!("{offset} is not in memory") };
        assert!(lent.is_shared && lent.bytes == whole[offset..][..lent.bytes.len()]);
    }
    writer.finish().unwrap();
    let entry = share.get("k").unwrap();
    assert!((0..whole.len()).step_by(5000).all(|offset| share.find_bytes(&entry, offset as u64, 10).is_some()));
}

fn lasting(max_age: u64) -> Details {
    Details { max_age, ..Details::default() }
}

fn written(opened: Opened) -> Writer {
    match opened {
        Opened::Writer(writer) => *writer,
        Opened::Entry(_) => panic!("it is there"),
        Opened::Joined(_) => panic!("another one writes it"),
    }
}

fn joined(opened: Opened) -> Joined {
    match opened {
        Opened::Joined(joined) => joined,
        Opened::Entry(_) => panic!("it is there"),
        Opened::Writer(_) => panic!("nobody writes it"),
    }
}

/// Takes all memory for blocks until what is returned is dropped.
fn without_memory(share: &Share) -> Reserved {
    let budget = share.cache.file.memory.budget();
    budget.reserve(budget.left()).unwrap()
}
