// SPDX-License-Identifier: Apache-2.0
use std::fs::File;
use std::path::Path;
use std::sync::LazyLock;

use netserv_model::manifest::ModuleLimits;

use super::*;
use crate::error::HostError;
use crate::limits;
use crate::storage::journal::{WriteBatch, cost};
use crate::storage::limits::{KV_CHANGES_MAX, KV_WRITE_DELAY};

static USUAL: LazyLock<ModuleLimits> = LazyLock::new(ModuleLimits::default);
const FILE_BYTES: u64 = 256 * 1024;
const LONG: Duration = Duration::from_secs(60);

fn quota(entries: u32, bytes: u64) -> ModuleLimits {
    ModuleLimits { kv_entries: entries, kv_bytes: bytes, ..ModuleLimits::default() }
}

#[test]
fn entries_and_bytes_are_bounded() {
    let mut store = KvStore::default();
    let quota = quota(2, 10);
    assert_eq!(store.set(b"a", b"1234", &quota), Ok(()));
    assert_eq!(store.set(b"b", b"12345", &quota), Err(HostError::Quota));
    assert_eq!(store.set(b"b", b"1234", &quota), Ok(()));
    assert_eq!(store.set(b"c", b"", &quota), Err(HostError::Quota));
    assert_eq!(store.set(b"a", b"", &quota), Ok(()));
    assert_eq!(store.set(b"b", b"12345678", &quota), Ok(()));
    assert_eq!(store.set(b"b", b"123456789", &quota), Err(HostError::Quota));
    assert_eq!(store.value(b"b"), Some(&b"12345678"[..]));
}

#[test]
fn a_store_over_a_new_quota_may_shrink_but_not_grow() {
    let mut store = KvStore::default();
    store.set(b"a", b"123456789", &quota(9, 10)).unwrap();
    assert_eq!(store.set(b"a", b"12345678", &quota(9, 5)), Ok(()));
    assert_eq!(store.set(b"a", b"123456789", &quota(9, 5)), Err(HostError::Quota));
}

#[test]
fn keys_and_values_are_bounded() {
    let mut store = KvStore::default();
    assert_eq!(store.set(b"", b"", &USUAL), Err(HostError::Invalid));
    assert_eq!(store.set(&[0; limits::KV_KEY_BYTES_MAX], b"", &USUAL), Ok(()));
    assert_eq!(store.set(&[0; limits::KV_KEY_BYTES_MAX + 1], b"", &USUAL), Err(HostError::TooLarge));
    assert_eq!(store.set(b"a", &[0; limits::KV_VALUE_BYTES_MAX], &USUAL), Ok(()));
    assert_eq!(store.set(b"a", &[0; limits::KV_VALUE_BYTES_MAX + 1], &USUAL), Err(HostError::TooLarge));
}

#[test]
fn iteration_goes_by_key() {
    let mut store = KvStore::default();
    for key in [&b"b"[..], b"a", b"ab"] {
        store.set(key, b"", &USUAL).unwrap();
    }
    let mut keys = vec![store.next(b"").unwrap()];
    while let Some(key) = store.next(keys[keys.len() - 1]) {
        keys.push(key);
    }
    assert_eq!(keys, [&b"a"[..], b"ab", b"b"]);
    assert_eq!(store.delete(b"ab"), Ok(()));
    assert_eq!(store.delete(b"ab"), Err(HostError::NotFound));
    assert_eq!(store.next(b"a"), Some(&b"b"[..]));
}

#[test]
fn numbers_are_added_to() {
    let mut store = KvStore::default();
    assert_eq!(store.increment(b"n", 5, &USUAL), Ok(5));
    assert_eq!(store.increment(b"n", -7, &USUAL), Ok(-2));
    assert_eq!(store.value(b"n"), Some(&(-2_i64).to_le_bytes()[..]));
    store.set(b"n", &i64::MAX.to_le_bytes(), &USUAL).unwrap();
    assert_eq!(store.increment(b"n", 1, &USUAL), Ok(i64::MIN));
    store.set(b"text", b"seven", &USUAL).unwrap();
    assert_eq!(store.increment(b"text", 1, &USUAL), Err(HostError::Invalid));
    assert_eq!(store.increment(b"", 1, &USUAL), Err(HostError::Invalid));
    assert_eq!(store.increment(b"m", 1, &quota(2, 10_000)), Err(HostError::Quota));
}

#[test]
fn a_value_is_exchanged_only_for_the_one_that_was_seen() {
    let mut store = KvStore::default();
    let mut swap = |old: Option<&str>, new: Option<&str>| {
        store.compare_and_set(b"k", old.map(str::as_bytes), new.map(str::as_bytes), &USUAL)
    };
    assert_eq!(swap(Some("a"), Some("b")), Ok(false));
    assert_eq!(swap(None, Some("a")), Ok(true));
    assert_eq!(swap(None, Some("b")), Ok(false));
    assert_eq!(swap(Some("a"), Some("b")), Ok(true));
    assert_eq!(swap(Some("a"), None), Ok(false));
    assert_eq!(swap(Some("b"), None), Ok(true));
    assert_eq!(swap(None, None), Ok(true));
    assert!(store.is_empty());
    assert_eq!(store.compare_and_set(b"", None, None, &USUAL), Err(HostError::Invalid));
}

#[test]
fn state_without_a_file_outlives_its_module_by_a_minute() {
    let name: ModuleName = "example.org/a".parse().unwrap();
    let mut stores = KvStores::default();
    let store = stores.open(&name, 1);
    store.lock().set(b"a", b"1", &USUAL).unwrap();
    stores.handle_timeout(Instant::from_millis(0));
    assert_eq!(stores.poll_timeout(), None);
    drop(store);
    stores.handle_timeout(Instant::from_millis(1000));
    assert_eq!(stores.poll_timeout(), Some(Instant::from_millis(61_000)));
    assert_eq!(stores.open(&name, 1).lock().len(), 1);
    assert!(stores.open(&name, 2).lock().is_empty());
    stores.handle_timeout(Instant::from_millis(2000));
    stores.handle_timeout(Instant::from_millis(62_000));
    assert!(stores.open(&name, 1).lock().is_empty());
}

#[test]
fn state_without_a_module_is_bounded() {
    for file in [None, Some(TestFile::new())] {
        let mut stores = file.as_ref().map_or_else(KvStores::default, TestFile::open);
        for n in 0..=limits::KV_KEPT_MAX {
            put(&mut stores, &n.to_string(), b"a", b"1");
            stores.handle_timeout(Instant::from_millis(n as u64));
        }
        assert!(stores.open(&name("0"), 1).lock().is_empty());
        assert!(!stores.open(&name("1"), 1).lock().is_empty());
    }
}

#[test]
fn state_in_a_file_survives_the_process_and_a_crash() {
    let file = TestFile::new();
    let mut stores = file.open();
    put(&mut stores, "a", b"k", b"1");
    put(&mut stores, "a", b"gone", b"1");
    put(&mut stores, "b", b"k", b"2");
    stores.close(LONG);
    let mut stores = file.open();
    stores.open(&name("a"), 1).lock().delete(b"gone").unwrap();
    stores.open(&name("a"), 1).lock().set(b"k", b"3", &USUAL).unwrap();
    assert!(stores.open(&name("a"), 2).lock().is_empty());
    // What is in the file counts after a crash, so this waits for the thread, and then takes the file from it.
    eventually(|| file.value("a", b"k") == Some(b"3".to_vec()));
    assert_eq!(file.value("a", b"gone"), None);
    assert_eq!(file.value("b", b"k"), Some(b"2".to_vec()));
    assert_eq!(stores.failures(), 0);
}

#[test]
fn changes_are_written_together_and_within_a_second() {
    let file = TestFile::new();
    let mut stores = file.open();
    let state = stores.open(&name("a"), 1);
    let began = std::time::Instant::now();
    for n in 0..1000_u32 {
        state.lock().set(b"k", &n.to_le_bytes(), &USUAL).unwrap();
        state.lock().set(&n.to_le_bytes(), b"", &USUAL).unwrap();
        state.lock().delete(&n.to_le_bytes()).unwrap();
    }
    assert!(state.lock().changes.as_ref().unwrap().keys.len() <= 1001);
    eventually(|| file.value("a", b"k") == Some(999_u32.to_le_bytes().to_vec()));
    assert!(began.elapsed() >= KV_WRITE_DELAY);
    assert!(KV_WRITE_DELAY * 2 <= Duration::from_secs(1));
}

#[test]
fn an_unloaded_modules_state_is_written_at_once() {
    let file = TestFile::new();
    let mut stores = file.open();
    let began = std::time::Instant::now();
    put(&mut stores, "a", b"k", b"1");
    stores.handle_timeout(Instant::from_millis(1));
    eventually(|| file.value("a", b"k").is_some());
    assert!(began.elapsed() < KV_WRITE_DELAY);
}

#[test]
fn a_file_is_written_anew_again_and_again() {
    let file = TestFile::new();
    let mut stores = file.open();
    let state = stores.open(&name("a"), 1);
    for n in 0..40_u8 {
        state.lock().set(b"k", &[n; 20_000], &USUAL).unwrap();
        stores.writer.as_ref().unwrap().hurry();
        eventually(|| file.value("a", b"k") == Some(vec![n; 20_000]));
    }
    assert_eq!(stores.failures(), 0);
}

#[test]
fn more_changes_than_are_noted_are_written_all_the_same() {
    let file = TestFile::of(32 << 20);
    let mut stores = file.open();
    let state = stores.open(&name("a"), 1);
    let plenty = ModuleLimits { kv_entries: u32::MAX, ..*USUAL };
    {
        let mut store = state.lock();
        for n in 0..u32::try_from(KV_CHANGES_MAX).unwrap() + 2 {
            store.set(&n.to_be_bytes(), b"", &plenty).unwrap();
        }
        store.delete(&0_u32.to_be_bytes()).unwrap();
        let changes = store.changes.as_ref().unwrap();
        assert!(changes.all && changes.keys.len() == KV_CHANGES_MAX);
    }
    stores.close(LONG);
    let state = file.open().open(&name("a"), 1);
    assert_eq!(state.lock().len(), KV_CHANGES_MAX + 1);
}

#[test]
fn the_modules_of_a_user_share_a_quota_and_state_that_nobody_uses_gives_way() {
    let file = TestFile::new();
    let mut stores = file.open();
    let big = vec![1; 30_000];
    let left = stores.open(&name("left"), 1);
    left.lock().set(b"k", &big, &USUAL).unwrap();
    drop(left);
    stores.handle_timeout(Instant::from_millis(1));
    let (a, b) = (stores.open(&name("a"), 1), stores.open(&name("b"), 1));
    a.lock().set(b"k", &big, &USUAL).unwrap();
    assert_eq!(b.lock().set(b"k", &[1; 36_000], &USUAL), Err(HostError::Quota));
    assert_eq!(b.lock().set(b"k", b"", &USUAL), Ok(()), "little is still there");
    assert_eq!(a.lock().set(b"k", &[2; 29_000], &USUAL), Ok(()), "who shrinks is not refused");
    assert!(stores.poll_timeout().is_some_and(|due| due <= Instant::from_millis(2)));
    stores.handle_timeout(Instant::from_millis(2));
    assert_eq!(stores.poll_timeout(), None);
    assert_eq!(b.lock().set(b"k", &[1; 36_000], &USUAL), Ok(()));
    assert_eq!(b.lock().set(b"l", &[1; 31_000], &USUAL), Err(HostError::Quota));
    drop(a);
    stores.close(LONG);
    assert_eq!((file.value("left", b"k"), file.value("a", b"k")), (None, Some(vec![2; 29_000])));
}

/// Goal: what entries take in memory is what they count for. Method: a process of its own fills states, and looks at what
/// it has of the machine.
#[test]
fn entries_take_no_more_memory_than_they_cost() {
    const NAME: &str = "shared::kv::tests::entries_take_no_more_memory_than_they_cost";
    if std::env::var_os("NETSERV_TEST_ALONE").is_none() {
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        let output = alone.args(["--exact", NAME]).env("NETSERV_TEST_ALONE", "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let plenty = ModuleLimits { kv_entries: u32::MAX, kv_bytes: u64::MAX, ..*USUAL };
    let mut kept = vec![];
    for (key_length, value_length) in [(8, 0), (8, 1), (8, 8), (25, 41), (8, 200)] {
        // In their order, and all over the place.
        for factor in [1, 0x9e37_79b9_7f4a_7c15] {
            let (before, mut store, mut total) = (resident_bytes(), KvStore::default(), 0);
            for number in 0..40_000_u64 {
                let mut key = number.wrapping_mul(factor).to_be_bytes().to_vec();
                key.resize(key_length, 0);
                let value = vec![1; value_length];
                store.set(&key, &value, &plenty).unwrap();
                total += cost(&key, &value);
            }
            let taken = resident_bytes() - before;
            assert!(taken <= total && taken > total / 2, "{key_length} {value_length}: {taken} of {total}");
            kept.push(store);
        }
    }
}

#[test]
fn what_is_over_the_quota_is_not_restored() {
    use crate::storage::journal::Journal;
    let file = TestFile::new();
    let mut all = vec![];
    for (module, bytes) in [("a", 10_000), ("b", 40_000), ("c", 50_000), ("d", 20_000)] {
        let mut batch = WriteBatch::default();
        batch.state(&(name(module), 1));
        batch.set(b"k", &vec![1; bytes]);
        all.push(batch);
    }
    let (mut journal, _) = Journal::open(StoreFile::open(&file.path()).unwrap()).unwrap();
    journal.rewrite(all.into_iter()).unwrap();
    let mut stores = file.open();
    let there = ["a", "b", "c", "d"].map(|module| !stores.open(&name(module), 1).lock().is_empty());
    assert_eq!(there, [true, true, false, true]);
    let reports = stores.take_reports();
    assert!(reports.len() == 1 && reports[0].contains("1 states are forgotten"), "{reports:?}");
    put(&mut stores, "a", b"k", b"1");
    stores.close(LONG);
    let mut stores = file.open();
    assert!(stores.open(&name("c"), 1).lock().is_empty());
    assert_eq!((stores.take_reports(), stores.failures()), (vec![], 0));
}

#[test]
fn an_emptied_state_does_not_come_back() {
    let file = TestFile::new();
    let mut stores = file.open();
    put(&mut stores, "a", b"k", b"1");
    stores.close(LONG);
    let mut stores = file.open();
    stores.open(&name("a"), 1).lock().delete(b"k").unwrap();
    stores.handle_timeout(Instant::from_millis(1));
    assert!(stores.kept.lock().states.is_empty());
    stores.close(LONG);
    assert_eq!(file.value("a", b"k"), None);
}

#[test]
fn a_file_that_cannot_be_used_costs_a_module_nothing() {
    let short = TestFile::of(100);
    let broken = TestFile::new();
    broken.damage();
    for (file, words) in [(short, "of no use"), (broken, "a header is damaged")] {
        let mut stores = file.open();
        put(&mut stores, "a", b"k", b"1");
        let state = stores.open(&name("a"), 1);
        assert_eq!(state.lock().value(b"k"), Some(&b"1"[..]));
        let reports = stores.take_reports();
        assert!(reports.len() == 1 && reports[0].contains(words), "{reports:?}");
        assert_eq!((stores.failures(), stores.take_reports()), (1, vec![]));
        stores.close(LONG);
    }
}

#[test]
fn modules_keep_no_more_than_there_is_memory_for() {
    let file = TestFile::new();
    let mut stores = file.open().within(2 * cost(b"k", &[0; 100]));
    let state = stores.open(&name("a"), 1);
    for key in [b"k", b"l"] {
        state.lock().set(key, &[0; 100], &USUAL).unwrap();
    }
    assert_eq!(stores.open(&name("b"), 1).lock().set(b"k", b"", &USUAL), Err(HostError::Quota));
    stores.close(LONG);
    // What the file has beyond that is forgotten.
    let mut fewer = file.open().within(cost(b"k", &[0; 100]));
    assert!(fewer.open(&name("a"), 1).lock().is_empty());
    assert!(fewer.take_reports()[0].contains("more than modules may keep"));
}

#[test]
fn a_disk_that_fails_is_tried_again_and_then_has_everything() {
    use crate::storage::journal::Journal;
    use crate::storage::testing::Memory;
    let disk = Memory::new(1 << 20);
    let mut stores = KvStores { is_open: true, ..KvStores::default() };
    stores.writer = Some(Writer::start(disk.clone(), Arc::clone(&stores.kept), u64::MAX, Instant::from_millis(0)));
    let state = stores.open(&name("a"), 1);
    disk.break_after(Some(1));
    state.lock().set(b"k", b"1", &USUAL).unwrap();
    stores.writer.as_ref().unwrap().hurry();
    eventually(|| stores.failures() == 1);
    assert!(stores.take_reports()[0].contains("the disk broke"));
    disk.break_after(None);
    state.lock().set(b"l", b"2", &USUAL).unwrap();
    stores.close(LONG);
    let found = Journal::open(disk).map(|(_, found)| found).unwrap();
    assert_eq!(found.states[0].1.len(), 2);
}

struct TestFile {
    directory: tempfile::TempDir,
}

impl TestFile {
    fn new() -> TestFile {
        TestFile::of(FILE_BYTES)
    }

    fn of(bytes: u64) -> TestFile {
        let directory = tempfile::tempdir().unwrap();
        File::create(directory.path().join("kv")).unwrap().set_len(bytes).unwrap();
        TestFile { directory }
    }

    fn open(&self) -> KvStores {
        KvStores::in_file(StoreFile::open(&self.path()))
    }

    /// Returns what a start after a crash right now would find.
    fn value(&self, module: &str, key: &[u8]) -> Option<Vec<u8>> {
        let copy = TestFile::of(0);
        std::fs::copy(self.path(), copy.path()).unwrap();
        let state = copy.open().open(&name(module), 1);
        state.lock().value(key).map(<[u8]>::to_vec)
    }

    fn damage(&self) {
        std::fs::write(self.path(), vec![7; usize::try_from(FILE_BYTES).unwrap()]).unwrap();
    }

    fn path(&self) -> std::path::PathBuf {
        let path: &Path = self.directory.path();
        path.join("kv")
    }
}

fn resident_bytes() -> u64 {
    // Without the program itself, of which more is there the more of it has run.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

fn name(module: &str) -> ModuleName {
    format!("example.org/{module}").parse().unwrap()
}

fn put(stores: &mut KvStores, module: &str, key: &[u8], value: &[u8]) {
    stores.open(&name(module), 1).lock().set(key, value, &USUAL).unwrap();
}

fn eventually(mut condition: impl FnMut() -> bool) {
    let until = std::time::Instant::now() + LONG;
    while !condition() {
        assert!(std::time::Instant::now() < until, "it does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}
