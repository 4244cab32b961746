// SPDX-License-Identifier: Apache-2.0
//! Details that change, `meta` and tags, lists and purges.

use super::*;

#[test]
fn what_is_kept_beside_a_body_comes_back_at_any_size() {
    let disk = Memory::new(BLOCKS * CACHE_BLOCK_BYTES);
    let share = share_of(&disk);
    let sizes = [0, 1, PAYLOAD_BYTES - 300, PAYLOAD_BYTES - 100, PAYLOAD_BYTES, CACHE_META_BYTES_MAX];
    for meta_size in sizes {
        for size in [0, 1, 100, PAYLOAD_BYTES, 3 * PAYLOAD_BYTES + 7] {
            let (meta, body) = (vec![7; meta_size], body(size));
            put_with(&share, "k", &body, Details { meta: meta.clone(), ..tagged(&["a", "b"]) });
            for share in [&share, &share_of(&disk.copy())] {
                let entry = share.get("k").unwrap();
                assert_eq!(share.meta(&entry).unwrap(), meta);
                assert!(read(share, &entry, 0, usize::MAX) == body, "{meta_size} {size}");
                let from = size / 2;
                assert!(
                    read(share, &entry, from as u64, 20) == body[from..(from + 20).min(size)],
                    "{meta_size} {size}"
                );
                assert!(entry.tags().eq(["a", "b"]));
            }
        }
    }
    assert_eq!(share.failures(), 0);
}

#[test]
fn details_are_bounded() {
    let (_, share) = cache();
    put(&share, "k", b"x");
    let tag = |length| Details { tags: vec!["t".repeat(length)], ..Details::default() };
    let tags = |count| Details { tags: vec!["t".to_owned(); count], ..Details::default() };
    let meta = |size| Details { meta: vec![0; size], ..Details::default() };
    let text = |length| Details { etag: "e".repeat(length), ..Details::default() };
    for details in
        [tag(CACHE_TAG_BYTES_MAX), tags(CACHE_TAGS_MAX), meta(CACHE_META_BYTES_MAX), text(CACHE_TEXT_BYTES_MAX)]
    {
        assert!(Writer::alone(&share, "k", details.clone(), 0).is_ok() && share.update("k", &details, 0).unwrap());
    }
    for details in [
        tag(0),
        tag(CACHE_TAG_BYTES_MAX + 1),
        tags(CACHE_TAGS_MAX + 1),
        meta(CACHE_META_BYTES_MAX + 1),
        text(CACHE_TEXT_BYTES_MAX + 1),
    ] {
        assert!(matches!(Writer::alone(&share, "k", details.clone(), 0), Err(CacheError::Invalid)));
        assert!(matches!(share.update("k", &details, 0), Err(CacheError::Invalid)));
    }
}

#[test]
fn an_update_leaves_the_body_and_needs_no_room_for_it() {
    for size in [0, 100, 20 * PAYLOAD_BYTES + 7] {
        let disk = Memory::new(BLOCKS * CACHE_BLOCK_BYTES);
        let share = share_of(&disk);
        let body = body(size);
        put(&share, "k", &body);
        let before = share.get("k").unwrap();
        for round in 1..40_u64 {
            let meta = vec![1; usize::try_from(round % 3).unwrap() * CACHE_META_BYTES_MAX / 2];
            let details = Details { max_age: round, meta: meta.clone(), ..tagged(&["new"]) };
            assert!(share.update("k", &details, 100 + round).unwrap());
            for share in [&share, &share_of(&disk.copy())] {
                let entry = share.get("k").unwrap();
                assert_eq!(
                    (entry.max_age(), entry.age(110 + round), share.meta(&entry).unwrap()),
                    (round, 10, meta.clone())
                );
                assert!(read(share, &entry, 0, usize::MAX) == body && entry.tags().eq(["new"]));
            }
        }
        assert!(read(&share, &before, 0, usize::MAX) == body, "who reads it keeps it");
        assert!(!share.update("other", &Details::default(), 0).unwrap());
        drop(before);
        put(&share, "all", &super::body((BLOCKS - 1) * PAYLOAD_BYTES));
        assert_eq!(share.failures(), 0);
    }
}

#[test]
fn an_update_of_what_was_read_is_of_nothing_else() {
    let (_, share) = cache();
    put(&share, "k", b"first");
    let first = share.get("k").unwrap();
    let fresh_for = |max_age| Details { max_age, ..Details::default() };
    assert!(share.update_read(&first, &fresh_for(7), 0).unwrap());
    assert!(!share.update_read(&first, &fresh_for(8), 0).unwrap(), "it has changed since");
    let revised = share.get("k").unwrap();
    assert_eq!(revised.max_age(), 7);
    put(&share, "k", b"second");
    assert!(!share.update_read(&revised, &fresh_for(9), 0).unwrap());
    let second = share.get("k").unwrap();
    assert!(second.max_age() != 9 && read(&share, &second, 0, usize::MAX) == b"second");
    assert!(share.remove("k"));
    assert!(!share.update_read(&second, &fresh_for(9), 0).unwrap());
}

/// Goal: of two that are written at a time, the one that was begun later stays, whichever is whole first; and after its end others may come.
#[test]
fn what_was_begun_later_stays() {
    let (_, share) = cache();
    for is_first_whole_first in [true, false] {
        let [mut first, mut second] =
            ["first", "second"].map(|_| Writer::alone(&share, "k", Details::default(), 0).unwrap());
        first.write(b"first").unwrap();
        second.write(b"second").unwrap();
        let writers = if is_first_whole_first { [first, second] } else { [second, first] };
        for writer in writers {
            writer.finish().unwrap();
        }
        assert_eq!(value(&share, "k").as_deref(), Some("second"));
    }
    // What is known of it since makes it no younger.
    let mut third = Writer::alone(&share, "k", Details::default(), 0).unwrap();
    third.write(b"third").unwrap();
    assert!(share.update("k", &Details { max_age: 7, ..Details::default() }, 0).unwrap());
    third.finish().unwrap();
    assert_eq!(value(&share, "k").as_deref(), Some("third"));
}

/// Goal: an update that is cut off leaves the entry with the old or the new details. Method: the disk breaks after each
/// number of writes.
#[test]
fn an_update_that_is_cut_off_is_one_or_none() {
    let (mut old, mut new) = (0, 0);
    for writes in 0..5 {
        let disk = Memory::new(BLOCKS * CACHE_BLOCK_BYTES);
        let share = share_of(&disk);
        let body = body(3 * PAYLOAD_BYTES);
        put(&share, "k", &body);
        disk.break_after(Some(writes));
        let details = Details { meta: vec![1; CACHE_META_BYTES_MAX], max_age: 7, ..Details::default() };
        let updated = share.update("k", &details, 0);
        let again = share_of(&disk.copy());
        let entry = again.get("k").unwrap();
        assert!(read(&again, &entry, 0, usize::MAX) == body);
        assert_eq!(entry.max_age() == 7, updated.is_ok(), "{writes}");
        *(if updated.is_ok() { &mut new } else { &mut old }) += 1;
        disk.break_after(None);
        assert!(read(&share, &share.get("k").unwrap(), 0, usize::MAX) == body);
        put(&share, "all", &super::body((BLOCKS - 1) * PAYLOAD_BYTES));
    }
    assert!(old > 0 && new > 0);
}

#[test]
fn keys_are_listed_in_order_and_in_parts() {
    let (cache, share) = cache();
    let other = Arc::new(cache.share(&name("b")));
    for key in ["a/2", "a/1", "b", "a", "a/10", "ä"] {
        put(&share, key, b"x");
    }
    put(&other, "a/3", b"x");
    let keys = |prefix: &str, after: Option<&str>, max| {
        let listed = share.list(prefix, after, max).unwrap();
        listed.iter().map(|entry| entry.key().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(keys("", None, 100), ["a", "a/1", "a/10", "a/2", "b", "ä"]);
    assert_eq!(keys("a/", None, 2), ["a/1", "a/10"]);
    assert_eq!(keys("a/", Some("a/10"), 2), ["a/2"]);
    assert_eq!(keys("a/", Some("a/10x"), 2), ["a/2"]);
    assert_eq!(keys("a/", Some(""), 1), ["a/1"]);
    for (prefix, after) in [("a/", Some("b")), ("c", None), ("a/", Some("a/2")), ("ä", Some("ä"))] {
        assert!(keys(prefix, after, 9).is_empty(), "{prefix} {after:?}");
    }
    assert!(keys("", None, 0).is_empty());
    let long = "k".repeat(CACHE_KEY_BYTES_MAX + 1);
    assert!(matches!(share.list(&long, None, 1), Err(CacheError::Invalid)));
    assert!(matches!(share.list("", Some(&long), 1), Err(CacheError::Invalid)));
}

#[test]
fn what_one_call_lists_is_bounded() {
    let share = roomy();
    (0..=CACHE_LISTED_MAX).for_each(|key| put(&share, &key.to_string(), b""));
    assert_eq!(share.list("", None, u32::MAX).unwrap().len(), CACHE_LISTED_MAX as usize);
}

#[test]
fn a_purge_takes_what_is_in_its_scope_and_nothing_else() {
    let disk = Memory::new(BLOCKS * CACHE_BLOCK_BYTES);
    let cache = Cache::open(disk.clone()).unwrap();
    let share = Arc::new(cache.share(&name("a")));
    let other = Arc::new(cache.share(&name("b")));
    put(&other, "a/1", b"of another module");
    for (key, tags) in [("a/1", &["x"][..]), ("a/2", &["x", "y"]), ("b/1", &["y"]), ("b/2", &[]), ("c", &["x"])] {
        put_with(&share, key, b"x", tagged(tags));
    }
    let keys = |share: &Share| {
        share.list("", None, 9).unwrap().iter().map(|entry| entry.key().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(purge(&share, Scope::Prefix("b/".to_owned())), 2);
    assert_eq!(purge(&share, Scope::Tag("y".to_owned())), 1);
    assert_eq!(keys(&share), ["a/1", "c"]);
    assert!(share.update("c", &tagged(&["z"]), 0).unwrap());
    assert_eq!(purge(&share, Scope::Tag("x".to_owned())), 1);
    let again = Cache::open(disk.copy()).unwrap();
    for cache in [&cache, &again] {
        let (own, others) = (cache.share(&name("a")), cache.share(&name("b")));
        assert_eq!((keys(&own), keys(&others)), (vec!["c".to_owned()], vec!["a/1".to_owned()]), "also after a restart");
    }
    assert_eq!(purge(&share, Scope::Prefix(String::new())), 1);
    assert_eq!(keys(&other), ["a/1"]);
    for bad in
        [Scope::Tag(String::new()), Scope::Tag("t".repeat(65)), Scope::Prefix("k".repeat(CACHE_KEY_BYTES_MAX + 1))]
    {
        assert!(matches!(share.purge(bad), Err(CacheError::Invalid)));
    }
}

#[test]
fn a_purge_goes_in_steps_between_which_others_use_the_cache() {
    let share = roomy();
    let count = 2 * CACHE_PURGE_STEP + 10;
    (0..count).for_each(|key| put_with(&share, &format!("{key:05}"), b"x", tagged(&["x"])));
    let mut purge = share.purge(Scope::Tag("x".to_owned())).unwrap();
    assert!(matches!(share.purge(Scope::Prefix(String::new())), Err(CacheError::Busy)), "one at a time");
    assert!(purge.step());
    assert_eq!(purge.gone(), CACHE_PURGE_STEP as u64);
    assert!(share.get("00000").is_none() && share.get("02000").is_some());
    // What comes meanwhile, before and behind the place where it is.
    put_with(&share, "00000", b"new", tagged(&["x"]));
    assert!(share.remove("01024"), "where it goes on");
    while purge.step() {}
    assert_eq!(purge.gone(), count as u64 - 1);
    drop(purge);
    assert_eq!(value(&share, "00000").as_deref(), Some("new"));
    assert!(share.purge(Scope::Prefix(String::new())).is_ok());
}

fn tagged(tags: &[&str]) -> Details {
    Details { tags: tags.iter().map(ToString::to_string).collect(), ..Details::default() }
}

fn put_with(share: &Arc<Share>, key: &str, body: &[u8], details: Details) {
    let mut writer = Writer::alone(share, key, details, 0).unwrap();
    body.chunks(10_000).for_each(|part| writer.write(part).unwrap());
    writer.finish().unwrap();
}

fn purge(share: &Arc<Share>, scope: Scope) -> u64 {
    let mut purge = share.purge(scope).unwrap();
    while purge.step() {}
    purge.gone()
}
