// SPDX-License-Identifier: Apache-2.0

use netserv_worker_base::storage::StoreFile;
use netserv_worker_base::storage::cache::{Cache, Details, Share, Writer};

use super::*;
use crate::module::HitMemory;

const SERVED: Kind = Kind { taken_from: None, is_secure: false };

#[test]
fn of_more_targets_than_there_may_be_the_first_is_forgotten() {
    let (share, hits) = (share(), Hits::new(&HitMemory::default().0));
    let entry = entry(&share, 3);
    for number in 0..=limits::HTTP_HITS_MAX {
        put(&hits, &format!("/{number}"), &answer(), &entry).unwrap();
    }
    assert_eq!(hits.count.load(Ordering::Relaxed), limits::HTTP_HITS_MAX);
    assert!(hits.find(target("/0"), SERVED).is_none() && hits.find(target("/1"), SERVED).is_some());
    // One that is put again is the last one from there on.
    put(&hits, "/1", &answer(), &entry).unwrap();
    put(&hits, "/more", &answer(), &entry).unwrap();
    assert!(hits.find(target("/1"), SERVED).is_some() && hits.find(target("/2"), SERVED).is_none());
    let table = hits.lock();
    assert_eq!((table.hits.len(), table.order.len()), (limits::HTTP_HITS_MAX, limits::HTTP_HITS_MAX));
}

#[test]
fn tables_have_the_memory_of_their_container_and_no_more() {
    let (share, room) = (share(), Budget::new(2 * limits::HTTP_HIT_COST + 1000));
    let entry = entry(&share, 3);
    let [one, other] = [(); 2].map(|()| Hits::new(&room));
    for path in ["/a", "/b"] {
        put(&one, path, &answer(), &entry).unwrap();
    }
    let left = room.left();
    let large = Answer { headers: vec![("x".to_owned(), vec![b'x'; left])], ..answer() };
    put(&one, "/c", &large, &entry).unwrap();
    assert!(one.find(target("/a"), SERVED).is_none(), "it gave way");
    assert_eq!(put(&other, "/a", &large, &entry), Err(HitError::Quota), "others' do not");
    assert!(other.is_empty() && one.find(target("/c"), SERVED).is_some());
    drop((one, other));
    assert_eq!(room.left(), room.bytes());
    assert_eq!(HitMemory::of(64 << 20).0.left(), 2 << 20);
    assert_eq!(HitMemory::of(u64::MAX).0.left(), limits::HTTP_HITS_MEMORY_BYTES_MAX);
}

#[test]
fn what_is_too_large_is_not_taken() {
    let (share, hits) = (share(), Hits::new(&HitMemory::default().0));
    let fits = entry(&share, limits::HTTP_HIT_BODY_BYTES_MAX);
    put(&hits, "/", &answer(), &fits).unwrap();
    let large = entry(&share, limits::HTTP_HIT_BODY_BYTES_MAX + 1);
    assert_eq!(put(&hits, "/", &answer(), &large), Err(HitError::TooLarge));
    let said = |bytes| Answer { headers: vec![("x".to_owned(), vec![b'x'; bytes])], ..Answer::default() };
    let most = limits::HTTP_HIT_HEAD_BYTES_MAX - "a.example/x".len();
    assert_eq!(put(&hits, "/", &Answer { status: 200, ..said(most) }, &fits), Ok(()));
    assert_eq!(put(&hits, "/", &Answer { status: 200, ..said(most + 1) }, &fits), Err(HitError::TooLarge));
    let lines = |count| Answer { headers: vec![("x".to_owned(), vec![]); count], ..answer() };
    assert_eq!(put(&hits, "/", &lines(limits::HEADERS_MAX - 2), &fits), Ok(()));
    assert_eq!(put(&hits, "/", &lines(limits::HEADERS_MAX - 1), &fits), Err(HitError::Invalid));
    let unless = |count| Answer { unless: vec!["x".to_owned(); count], ..answer() };
    assert_eq!(put(&hits, "/", &unless(limits::HTTP_HIT_UNLESS_MAX), &fits), Ok(()));
    assert_eq!(put(&hits, "/", &unless(limits::HTTP_HIT_UNLESS_MAX + 1), &fits), Err(HitError::Invalid));
    let vary = Answer { headers: vec![("vary".to_owned(), b"a,".repeat(limits::HTTP_HIT_UNLESS_MAX + 1))], ..answer() };
    assert_eq!(put(&hits, "/", &vary, &fits), Err(HitError::Invalid));
}

#[test]
fn what_is_not_as_it_has_to_be_is_not_taken() {
    let (share, hits) = (share(), Hits::new(&HitMemory::default().0));
    let entry = entry(&share, 3);
    for path in ["", "a", "*", "/a b", "/\r\nx: y", "/#a", "?a", "http://a.example/", "//\u{e9}\0"] {
        assert_eq!(put(&hits, path, &answer(), &entry), Err(HitError::Invalid), "{path:?}");
    }
    for authority in ["", "a b", "a/b", "a\r\n", "a.example:80:80", "[::1"] {
        let target = Target { authority, path_with_query: "/" };
        assert_eq!(hits.put(target, SERVED, &answer(), &entry, 0), Err(HitError::Invalid), "{authority:?}");
    }
    for status in [0, 99, 100, 101, 199, 204, 205, 206, 304, 600, 999, u16::MAX] {
        assert_eq!(put(&hits, "/", &Answer { status, ..answer() }, &entry), Err(HitError::Invalid), "{status}");
    }
    for (name, value) in [
        ("", "a"),
        ("a b", "a"),
        ("a:", "a"),
        ("a", "a\r\nb: c"),
        ("a", "\0"),
        ("vary", "*"),
        ("vary", "a, *"),
        ("Vary", "a b"),
        ("set-cookie", "a"),
        ("Connection", "a"),
        ("keep-alive", "a"),
        ("proxy-connection", "a"),
        ("te", "a"),
        ("trailer", "a"),
        ("Transfer-Encoding", "chunked"),
        ("upgrade", "a"),
        ("content-length", "3"),
        ("AGE", "3"),
    ] {
        let answer = Answer { headers: vec![(name.to_owned(), value.as_bytes().to_vec())], ..answer() };
        assert_eq!(put(&hits, "/", &answer, &entry), Err(HitError::Invalid), "{name:?}: {value:?}");
    }
    let unless = Answer { unless: vec!["a b".to_owned()], ..answer() };
    assert_eq!(put(&hits, "/", &unless, &entry), Err(HitError::Invalid));
    assert!(hits.is_empty());
}

#[test]
fn answers_are_for_connections_of_one_kind_and_requests_without_some_headers() {
    let (share, hits) = (share(), Hits::new(&HitMemory::default().0));
    let entry = entry(&share, 3);
    let vary = Answer { headers: vec![("Vary".to_owned(), b"Accept-Language ,x".to_vec())], ..answer() };
    put(&hits, "/", &vary, &entry).unwrap();
    let server = Some("192.0.2.7:80".parse().unwrap());
    for (taken_from, is_secure) in [(server, false), (None, true), (server, true)] {
        assert!(hits.find(target("/"), Kind { taken_from, is_secure }).is_none());
    }
    let hit = hits.find(target("/"), SERVED).unwrap();
    for (name, is_for) in [("accept", true), ("cookie", false), ("accept-language", false), ("x", false)] {
        let headers = HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static("a"))]);
        assert_eq!(hit.is_for(&headers), is_for, "{name}");
    }
    assert!(hit.is_of(&entry, 1059) && !hit.is_of(&entry, 1060), "it is fresh for a minute");
    let secure = Kind { is_secure: true, ..SERVED };
    hits.put(target("/"), secure, &answer(), &entry, 0).unwrap();
    hits.put(target("/"), Kind { taken_from: server, ..SERVED }, &answer(), &entry, 0).unwrap();
    let other = Kind { taken_from: Some("192.0.2.8:80".parse().unwrap()), ..SERVED };
    assert!(hits.find(target("/"), other).is_none(), "what one server says is not what another one does");
    hits.put(target("/a"), SERVED, &answer(), &entry, 0).unwrap();
    put(&hits, "/", &answer(), &entry).unwrap();
    hits.forget(target("/"), SERVED, &hit);
    assert!(hits.find(target("/"), SERVED).is_some(), "another one is in its place");
    assert!(hits.remove(target("/")) && !hits.remove(target("/")));
    assert!(hits.remove(target("/a")));
    assert!(hits.is_empty() && hits.lock().order.is_empty());
    let (again, old) = (self::entry(&share, 3), entry);
    assert!(!hit.is_of(&again, 1000) && hit.is_of(&old, 1000), "it is of one entry");
}

#[test]
fn requests_are_plain_or_the_modules() {
    let plain = |method: &Method, name: &'static str| {
        let headers = HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static("a"))]);
        is_plain(method, &headers)
    };
    assert!(plain(&Method::GET, "accept") && plain(&Method::HEAD, "cookie") && !plain(&Method::POST, "accept"));
    assert!(NOT_PLAIN.iter().all(|name| {
        let headers = HeaderMap::from_iter([(name.clone(), HeaderValue::from_static("a"))]);
        !is_plain(&Method::GET, &headers)
    }));
}

fn put(hits: &Hits, path: &str, answer: &Answer, entry: &Entry) -> Result<(), HitError> {
    hits.put(target(path), SERVED, answer, entry, 0)
}

fn target(path_with_query: &str) -> Target<'_> {
    Target { authority: "a.example", path_with_query }
}

fn answer() -> Answer {
    Answer { status: 200, unless: vec!["Cookie".to_owned()], ..Answer::default() }
}

fn share() -> Arc<Share> {
    let cache = Cache::open(StoreFile::in_memory(64 << 20).unwrap()).unwrap();
    Arc::new(cache.share(&"example.org/a".parse().unwrap()))
}

/// Returns a new entry of so many bytes, which is fresh for a minute from the 1000th second on.
fn entry(share: &Arc<Share>, bytes: usize) -> Arc<Entry> {
    let details = Details { max_age: 60, ..Details::default() };
    let mut writer = Writer::alone(share, "k", details, 1000).unwrap();
    writer.write(&vec![b'x'; bytes]).unwrap();
    writer.finish().unwrap();
    share.get("k").unwrap()
}
