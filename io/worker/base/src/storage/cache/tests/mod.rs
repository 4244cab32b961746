// SPDX-License-Identifier: Apache-2.0
mod catalog;
mod changes;
mod joined;
mod many;

use std::sync::{Arc, Mutex};
use std::time::Instant;

use netserv_model::ModuleName;

use super::block::PAYLOAD_BYTES;
use super::*;
use crate::compute::Reserved;
use crate::storage::StoreFile;
use crate::storage::limits::{
    CACHE_BLOCK_BYTES, CACHE_FILE_BYTES_MIN, CACHE_GONE_TIME_MIN, CACHE_INDEX_BYTES_MIN, CACHE_JOINED_MAX,
    CACHE_KEY_BYTES_MAX, CACHE_LISTED_MAX, CACHE_META_BYTES_MAX, CACHE_PURGE_STEP, CACHE_READERS_FEW,
    CACHE_RECENT_BLOCKS, CACHE_STALL_TIME_MAX, CACHE_TAG_BYTES_MAX, CACHE_TAGS_MAX, CACHE_TEXT_BYTES_MAX,
    CACHE_WAKE_BYTES, CACHE_WAKE_TIME_MAX, CACHE_WRITERS_MAX,
};
use crate::storage::testing::Memory;

const BLOCKS: usize = 32;

#[test]
fn what_was_put_is_returned_whole_and_in_parts() {
    let (_, share) = cache();
    for size in [0, 1, 100, PAYLOAD_BYTES - 1, PAYLOAD_BYTES, PAYLOAD_BYTES + 1, 5 * PAYLOAD_BYTES + 7] {
        let body = body(size);
        put(&share, "k", &body);
        let entry = share.get("k").unwrap();
        assert_eq!(entry.size(), size as u64);
        assert_eq!(read(&share, &entry, 0, usize::MAX), body, "{size}");
        for (from, length) in [(0, 1), (size / 2, size / 3), (size, 1), (size + 10, 10)] {
            let expected = &body[from.min(size)..(from + length).min(size)];
            assert_eq!(read(&share, &entry, from as u64, length), expected, "{size}: {length} from {from}");
        }
    }
    assert!(share.stat("other").is_none() && share.get("other").is_none());
}

#[test]
fn what_is_known_of_an_entry_comes_back() {
    let (_, share) = cache();
    let details = Details { content_type: "text/html".into(), etag: "\"1\"".into(), max_age: 60, ..Details::default() };
    Writer::alone(&share, "k", details, 1000).unwrap().finish().unwrap();
    let entry = share.stat("k").unwrap();
    assert_eq!((entry.content_type(), entry.etag(), entry.max_age()), ("text/html", "\"1\"", 60));
    assert_eq!((entry.age(1030), entry.age(999)), (30, 0));
}

#[test]
fn names_are_bounded() {
    let (_, share) = cache();
    let put = |key: &str, details: Details| Writer::alone(&share, key, details, 0).map(drop);
    let long = "x".repeat(CACHE_TEXT_BYTES_MAX + 1);
    assert!(matches!(put("", Details::default()), Err(CacheError::Invalid)));
    assert!(put(&"k".repeat(CACHE_KEY_BYTES_MAX), Details::default()).is_ok());
    assert!(matches!(put(&"k".repeat(CACHE_KEY_BYTES_MAX + 1), Details::default()), Err(CacheError::Invalid)));
    let content_type = Details { content_type: long.clone(), ..Details::default() };
    let etag = Details { etag: long, ..Details::default() };
    for details in [content_type, etag] {
        assert!(matches!(put("k", details), Err(CacheError::Invalid)));
    }
}

#[test]
fn the_least_recently_used_gives_way() {
    let (_, share) = cache();
    for key in 0..8 {
        put(&share, &key.to_string(), &body(3 * PAYLOAD_BYTES));
    }
    assert!(share.get("0").is_some());
    assert!(share.stat("1").is_some(), "a look is no use");
    put(&share, "8", &body(3 * PAYLOAD_BYTES));
    let there: String =
        (0..9).filter(|key| share.stat(&key.to_string()).is_some()).map(|key| key.to_string()).collect();
    assert_eq!(there, "0 2345678".replace(' ', ""));
}

#[test]
fn an_entry_over_the_share_is_refused_and_leaves_no_block_behind() {
    let (_, share) = cache();
    for _ in 0..3 {
        let mut writer = Writer::alone(&share, "big", Details::default(), 0).unwrap();
        let mut written = 0;
        let error = loop {
            match writer.write(&body(10_000)) {
                Ok(()) => written += 10_000,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, CacheError::TooLarge));
        assert!(written > (BLOCKS - 2) * PAYLOAD_BYTES && written < (BLOCKS + 1) * PAYLOAD_BYTES, "{written}");
        assert!(writer.write(b"x").is_err() && writer.finish().is_err());
        assert!(share.stat("big").is_none());
    }
    put(&share, "fits", &body((BLOCKS - 1) * PAYLOAD_BYTES));
}

#[test]
fn an_entry_appears_when_it_is_finished_and_replaces_the_one_before() {
    let (_, share) = cache();
    put(&share, "k", b"old");
    let mut writer = Writer::alone(&share, "k", Details::default(), 0).unwrap();
    writer.write(b"new").unwrap();
    assert_eq!(value(&share, "k").as_deref(), Some("old"));
    drop(writer);
    assert_eq!(value(&share, "k").as_deref(), Some("old"));
    let old = share.get("k").unwrap();
    put(&share, "k", b"new");
    assert_eq!(value(&share, "k").as_deref(), Some("new"));
    assert_eq!(read(&share, &old, 0, 9), b"old", "who reads it keeps it");
    assert!(share.remove("k") && !share.remove("k"));
    assert!(share.get("k").is_none());
}

#[test]
fn what_is_being_read_is_not_written_over() {
    let (_, share) = cache();
    let body = body(3 * PAYLOAD_BYTES);
    put(&share, "k", &body);
    let entry = share.get("k").unwrap();
    for key in 0..40 {
        put(&share, &key.to_string(), &[7; 3 * PAYLOAD_BYTES]);
    }
    assert!(share.stat("k").is_none());
    assert_eq!(read(&share, &entry, 0, usize::MAX), body);
}

/// Goal: readers who take their time cost their own module room, and no other one. Method: an entry that is replaced again and again, each
/// time while somebody reads it.
#[test]
fn what_is_read_although_it_is_gone_counts_for_its_module() {
    let (cache, a) = cache();
    let b = Arc::new(cache.share(&name("b")));
    (0..BLOCKS / 2).for_each(|key| put(&b, &key.to_string(), b"b"));
    let bodies: Vec<Vec<u8>> = (0..5).map(|number| vec![number; 3 * PAYLOAD_BYTES]).collect();
    let held: Vec<Arc<Entry>> = bodies[..4].iter().map(|body| put_and_get(&a, body)).collect();
    assert!(matches!(try_put(&a, "k", &bodies[4]), Err(CacheError::TooLarge)), "all of its share is read");
    assert!(held.iter().zip(&bodies).all(|(entry, body)| read(&a, entry, 0, usize::MAX) == *body));
    assert!((0..BLOCKS / 2).all(|key| value(&b, &key.to_string()).as_deref() == Some("b")), "it took another one's");
    drop(held);
    put(&a, "k", &bodies[4]);
}

#[test]
fn who_reads_for_long_what_is_gone_makes_room() {
    let (cache, a) = cache();
    let of_a = name("a");
    let bodies: Vec<Vec<u8>> = (0..9).map(|number| vec![number; 3 * PAYLOAD_BYTES]).collect();
    let held: Vec<Arc<Entry>> = bodies[..8].iter().map(|body| put_and_get(&a, body)).collect();
    assert!(matches!(try_put(&a, "k", &bodies[8]), Err(CacheError::TooLarge)));
    let now = Instant::now();
    assert!(!cache.lock().cut_for(&of_a, now), "they had no time");
    assert!(cache.lock().cut_for(&of_a, now + CACHE_GONE_TIME_MIN));
    put(&a, "k", &bodies[8]);
    assert!(a.read(&held[0], 0, usize::MAX).is_err_and(|error| matches!(error, CacheError::Cut)));
    let others = held[1..].iter().zip(&bodies[1..]);
    assert!(others.clone().all(|(entry, body)| read(&a, entry, 0, usize::MAX) == *body), "the others go on");
    assert!(value(&a, "k").is_some() && a.failures() == 0);
    drop(held);
    put(&a, "all", &body((BLOCKS - 1) * PAYLOAD_BYTES));
}

/// Goal: what two revisions have is counted once, and is nobody's once both are gone, whoever reads them.
#[test]
fn revisions_that_are_gone_give_back_what_they_had_together() {
    let (cache, a) = cache();
    let (of_a, long) = (name("a"), Instant::now() + 2 * CACHE_GONE_TIME_MIN);
    let mut held = vec![put_and_get(&a, &[1; 20 * PAYLOAD_BYTES])];
    for _ in 0..3 {
        assert!(a.update("k", &Details::default(), 0).unwrap());
        held.push(a.get("k").unwrap());
    }
    // 21, and a head for each revision.
    put(&a, "fits", &body((BLOCKS - 25) * PAYLOAD_BYTES));
    assert!(a.stat("fits").is_some() && a.remove("k"));
    for round in 0..4 {
        assert!(cache.lock().cut_for(&of_a, long), "{round}");
        // It has all of its share again, unless the cut one had the rest.
        put(&a, &round.to_string(), b"x");
    }
    put(&a, "all", &body((BLOCKS - 1) * PAYLOAD_BYTES));
    assert!(held.iter().all(|entry| a.read(entry, 0, 1).is_err()));
    drop(held);
    assert!(a.stat("all").is_some() && cache.pool.take().is_none(), "they gave it back twice");
}

#[test]
fn writers_are_bounded() {
    let cache = Cache::open(Memory::new(CACHE_BLOCK_BYTES * 80)).unwrap();
    let share = Arc::new(cache.share(&name("a")));
    let writers: Vec<Writer> =
        (0..CACHE_WRITERS_MAX).map(|_| Writer::alone(&share, "k", Details::default(), 0).unwrap()).collect();
    assert!(matches!(Writer::alone(&share, "k", Details::default(), 0), Err(CacheError::Busy)));
    drop(writers);
    assert!(Writer::alone(&share, "k", Details::default(), 0).is_ok());
}

#[test]
fn modules_share_the_file_and_see_nothing_of_each_other() {
    let (cache, a) = cache();
    for key in 0..BLOCKS {
        put(&a, &key.to_string(), b"a");
    }
    assert_eq!(a.bytes(), (BLOCKS * CACHE_BLOCK_BYTES) as u64);
    let b = Arc::new(cache.share(&name("b")));
    assert_eq!((a.bytes(), b.bytes()), ((BLOCKS * CACHE_BLOCK_BYTES / 2) as u64, a.bytes()));
    assert!(b.stat("31").is_none());
    for key in 0..BLOCKS {
        put(&b, &key.to_string(), b"b");
    }
    let count = |share: &Share| (0..BLOCKS).filter(|key| share.stat(&key.to_string()).is_some()).count();
    assert_eq!((count(&a), count(&b)), (BLOCKS / 2, BLOCKS / 2));
    assert_eq!((value(&a, "31").as_deref(), value(&b, "31").as_deref()), (Some("a"), Some("b")));
    drop(b);
    put(&a, "more", b"a");
    assert_eq!(count(&a), BLOCKS / 2, "who is gone gives way first");
}

#[test]
fn a_next_version_of_a_module_has_what_the_one_before_had() {
    let (cache, before) = cache();
    put(&before, "k", b"kept");
    let after = Arc::new(cache.share(&name("a")));
    assert_eq!(after.bytes(), (BLOCKS * CACHE_BLOCK_BYTES) as u64);
    drop(before);
    assert_eq!(value(&after, "k").as_deref(), Some("kept"));
}

#[test]
fn entries_are_found_again_and_those_that_are_gone_are_not() {
    let disk = Memory::new(BLOCKS * CACHE_BLOCK_BYTES);
    let share = share_of(&disk);
    let big = body(3 * PAYLOAD_BYTES);
    put(&share, "big", &big);
    put(&share, "replaced", b"1");
    put(&share, "replaced", b"2");
    put(&share, "removed", b"3");
    assert!(share.remove("removed"));
    let mut writer = Writer::alone(&share, "unfinished", Details::default(), 0).unwrap();
    writer.write(&big).unwrap();
    let again = share_of(&disk.copy());
    assert_eq!(read(&again, &again.get("big").unwrap(), 0, usize::MAX), big);
    assert_eq!(value(&again, "replaced").as_deref(), Some("2"));
    assert!(again.stat("removed").is_none() && again.stat("unfinished").is_none());
    put(&again, "all", &body((BLOCKS - 1) * PAYLOAD_BYTES));
    assert_eq!(again.failures(), 0);
}

#[test]
fn the_order_of_use_begins_anew_with_the_oldest() {
    let disk = Memory::new(BLOCKS * CACHE_BLOCK_BYTES);
    let share = share_of(&disk);
    (0..BLOCKS).for_each(|key| put(&share, &key.to_string(), b"x"));
    let again = share_of(&disk.copy());
    put(&again, "more", b"x");
    assert!(again.stat("0").is_none() && again.stat("1").is_some());
}

#[test]
fn damage_is_noticed_when_it_is_read_and_costs_one_entry() {
    let disk = Memory::new(BLOCKS * CACHE_BLOCK_BYTES);
    let share = share_of(&disk);
    put(&share, "k", &body(3 * PAYLOAD_BYTES));
    put(&share, "l", b"fine");
    let at = disk.bytes.lock().unwrap().iter().rposition(|byte| *byte == 251).unwrap();
    let inside = disk.bytes.lock().unwrap()[..at].iter().rposition(|byte| *byte == 250).unwrap();
    disk.bytes.lock().unwrap()[inside] ^= 1;
    let entry = share.get("k").unwrap();
    let mut offset = 0;
    let error = loop {
        match share.read(&entry, offset, usize::MAX) {
            Ok(part) if part.bytes.is_empty() => panic!("the damage was not seen"),
            Ok(part) => offset += part.bytes.len() as u64,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, CacheError::Damaged));
    assert!(share.stat("k").is_none());
    assert_eq!((value(&share, "l").as_deref(), share.failures()), (Some("fine"), 1));
}

#[test]
fn a_disk_that_fails_costs_entries_and_is_counted() {
    let disk = Memory::new(BLOCKS * CACHE_BLOCK_BYTES);
    let share = share_of(&disk);
    put(&share, "k", b"x");
    disk.break_after(Some(0));
    let mut writer = Writer::alone(&share, "l", Details::default(), 0).unwrap();
    assert!(matches!(writer.write(&body(3 * PAYLOAD_BYTES)), Err(CacheError::Disk(_))));
    assert!(writer.finish().is_err());
    assert!(matches!(Writer::alone(&share, "l", Details::default(), 0).unwrap().finish(), Err(CacheError::Disk(_))));
    assert!(share.remove("k"));
    assert_eq!(share.failures(), 3);
    disk.break_after(None);
    put(&share, "all", &body((BLOCKS - 1) * PAYLOAD_BYTES));
}

#[test]
fn files_that_are_too_short_are_of_no_use() {
    let least = usize::try_from(CACHE_FILE_BYTES_MIN).unwrap();
    assert!(Cache::open(Memory::new(least - 1)).is_err());
    assert!(Cache::open(Memory::new(least)).is_ok());
}

/// Goal: whatever is in the file, the cache opens, returns only bodies that were put, and takes new ones. Method: random
/// damage of a file with entries.
#[test]
fn any_bytes_are_a_file() {
    let disk = Memory::new(BLOCKS * CACHE_BLOCK_BYTES);
    let share = share_of(&disk);
    let whole = body(5 * PAYLOAD_BYTES);
    (0..5).for_each(|key| put(&share, &key.to_string(), &whole));
    let good = disk.bytes.lock().unwrap().clone();
    let mut random = 88_172_645_463_325_252_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % below as u64).unwrap()
    };
    let (mut whole_ones, mut broken_ones) = (0, 0);
    for _ in 0..300 {
        let mut bytes = good.clone();
        for _ in 0..=next(20) {
            let at = next(BLOCKS) * CACHE_BLOCK_BYTES + [next(40), next(CACHE_BLOCK_BYTES)][next(2)];
            bytes[at] = u8::try_from(next(256)).unwrap();
        }
        if next(2) == 0 {
            let (from, to) = (next(BLOCKS) * CACHE_BLOCK_BYTES, next(BLOCKS) * CACHE_BLOCK_BYTES);
            bytes.copy_within(from..from + CACHE_BLOCK_BYTES, to);
        }
        let share = share_of(&Memory { bytes: Arc::new(Mutex::new(bytes)), ..Memory::default() });
        for key in 0..5 {
            match share.get(&key.to_string()).map(|entry| read_all(&share, &entry)) {
                Some(Ok(read)) => {
                    assert_eq!(read, whole);
                    whole_ones += 1;
                }
                Some(Err(_)) | None => broken_ones += 1,
            }
        }
        put(&share, "all", &body((BLOCKS - 1) * PAYLOAD_BYTES));
    }
    assert!(whole_ones > 300 && broken_ones > 300, "{whole_ones} {broken_ones}");
}

#[test]
fn a_cache_is_opened_when_it_is_used_and_may_not_be_there() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let source = CacheSource::in_memory(CACHE_FILE_BYTES_MIN);
        let (a, b) = (CacheHandle::new(&source, &name("a")), CacheHandle::new(&source, &name("b")));
        assert!(source.cache.get().is_none());
        let blocks = CACHE_FILE_BYTES_MIN / CACHE_BLOCK_BYTES as u64;
        let silent = |error: &CacheError| panic!("{error}");
        assert_eq!(a.share(silent).await.unwrap().bytes(), blocks * CACHE_BLOCK_BYTES as u64);
        assert_eq!(b.share(silent).await.unwrap().bytes(), blocks / 2 * CACHE_BLOCK_BYTES as u64);
        let short = CacheSource::in_memory(CACHE_FILE_BYTES_MIN - 1);
        for (source, words) in [
            (CacheSource::at("/nowhere/at/all", 0), "No such file"),
            (short, "under 262144"),
            (Arc::default(), "not found"),
        ] {
            let (handle, mut said) = (CacheHandle::new(&source, &name("a")), vec![]);
            for _ in 0..2 {
                assert!(handle.share(|error| said.push(error.to_string())).await.is_none());
            }
            assert!(said.len() == 1 && said[0].contains(words), "{said:?}");
            assert_eq!(source.failures(), 1);
        }
    });
}

/// Goal: what is known of entries has its bound in memory, before the file is full. Method: small ones with long names.
#[test]
fn what_is_known_of_entries_is_bounded() {
    let disk = StoreFile::in_memory(256 << 20).unwrap();
    let cache = Cache::open(disk).unwrap();
    let (a, b) = (Arc::new(cache.share(&name("a"))), Arc::new(cache.share(&name("b"))));
    let text = || "x".repeat(CACHE_TEXT_BYTES_MAX);
    let details = || Details { content_type: text(), etag: text(), max_age: 0, ..Details::default() };
    put(&b, "of b", b"x");
    let key = |number: u32| format!("{number:0>width$}", width = CACHE_KEY_BYTES_MAX);
    for number in 0..5000 {
        Writer::alone(&a, &key(number), details(), 0).unwrap().finish().unwrap();
    }
    let one = a.stat(&key(4999)).unwrap().cost();
    let left = (0..5000).filter(|number| a.stat(&key(*number)).is_some()).count() as u64;
    assert!((CACHE_INDEX_BYTES_MIN / one - 2..=CACHE_INDEX_BYTES_MIN / one).contains(&left), "{left} of {one} bytes");
    assert!(a.stat(&key(5000 - u32::try_from(left).unwrap())).is_some(), "the last ones");
    assert!(b.stat("of b").is_some(), "who has less keeps it");
}

/// Goal: of a small container, too, most is left to who runs there. Beside what stays here, instances may take half of it, coders a
/// quarter, and messages of channels an eighth, which is more than there is if all of them do so at a time.
#[test]
fn what_stays_in_memory_is_a_part_of_small_containers() {
    for (container, blocks, index) in [(16, 2, 8), (32, 4, 8), (96, 12, 24), (1024, 16, 256)] {
        let disk = Memory::new(BLOCKS * CACHE_BLOCK_BYTES);
        let share = Cache::open_within(disk, container << 20).unwrap().share(&name("a"));
        let stays = [share.memory().bytes() as u64, share.cache.lock().cost_max()];
        assert_eq!(stays.map(|bytes| bytes >> 20), [blocks, index], "{container}");
        assert!(container < 32 || stays.iter().sum::<u64>() <= (container << 20) / 8 * 3);
    }
}

fn cache() -> (Arc<Cache>, Arc<Share>) {
    let cache = Cache::open(Memory::new(BLOCKS * CACHE_BLOCK_BYTES)).unwrap();
    let share = Arc::new(cache.share(&name("a")));
    (cache, share)
}

fn share_of(disk: &Memory) -> Arc<Share> {
    Arc::new(Cache::open(disk.clone()).unwrap().share(&name("a")))
}

fn name(module: &str) -> ModuleName {
    format!("example.org/{module}").parse().unwrap()
}

fn body(size: usize) -> Vec<u8> {
    (0..size).map(|at| u8::try_from(at % 252).unwrap()).collect()
}

fn put(share: &Arc<Share>, key: &str, body: &[u8]) {
    let mut writer = Writer::alone(share, key, Details::default(), 0).unwrap();
    body.chunks(10_000).for_each(|part| writer.write(part).unwrap());
    writer.finish().unwrap();
}

fn try_put(share: &Arc<Share>, key: &str, body: &[u8]) -> Result<(), CacheError> {
    let mut writer = Writer::alone(share, key, Details::default(), 0)?;
    writer.write(body)?;
    writer.finish()
}

/// Puts an entry in the place of the one before, and returns it as one who reads it.
fn put_and_get(share: &Arc<Share>, body: &[u8]) -> Arc<Entry> {
    put(share, "k", body);
    share.get("k").unwrap()
}

fn value(share: &Share, key: &str) -> Option<String> {
    let entry = share.get(key)?;
    Some(String::from_utf8(read_all(share, &entry).unwrap()).unwrap())
}

fn read_all(share: &Share, entry: &Entry) -> Result<Vec<u8>, CacheError> {
    let mut bytes = vec![];
    loop {
        let part = share.read(entry, bytes.len() as u64, usize::MAX)?.bytes;
        if part.is_empty() {
            return Ok(bytes);
        }
        bytes.extend(part);
    }
}

fn read(share: &Share, entry: &Entry, mut offset: u64, mut length: usize) -> Vec<u8> {
    let mut bytes = vec![];
    while length > 0 {
        let part = share.read(entry, offset, length).unwrap().bytes;
        if part.is_empty() {
            break;
        }
        offset += part.len() as u64;
        length -= part.len();
        bytes.extend(part);
    }
    bytes
}

fn roomy() -> Arc<Share> {
    let cache = Cache::open(StoreFile::in_memory(64 << 20).unwrap()).unwrap();
    Arc::new(cache.share(&name("a")))
}
