// SPDX-License-Identifier: Apache-2.0
//! The cache as modules use it: `modules/fixtures/cache-tests`.

use std::ffi::OsStr;
use std::fs::File;
use std::thread;

use netserv_worker_base::storage::CACHE_FILE;

use super::{Spec, Worker, compiled, get};

/// What `/slowly` writes: 20 pieces of 20,000 bytes, of zeros, ones and so on.
const SLOWLY: &str = "read 400000 3800000 ended of";

#[test]
fn entries_of_the_first_version_are_those_of_the_next() {
    let (spec, _worker, _store) = start();
    assert_eq!(get(spec.port(), "/first?k"), (200, "20 first Some(20) true".to_owned()));
}

/// Goal: if several requests want an entry that does not exist, one writes it and the others read it meanwhile.
#[test]
fn one_request_writes_what_all_others_read_meanwhile() {
    let (spec, mut worker, _store) = start();
    let port = spec.port();
    let writes = thread::spawn(move || get(port, "/slowly?k"));
    worker.wait_for_line("begun");
    let reads: Vec<_> = (0..20).map(|_| thread::spawn(move || get(port, "/slowly?k"))).collect();
    let part = get(port, "/part?k").1;
    assert_eq!(part, "read 10 70 ended of None, 0 beside it");
    assert!(get(port, "/list?").1.is_empty(), "it is being written");
    let reads: Vec<_> = reads.into_iter().map(|read| read.join().unwrap().1).collect();
    assert_eq!(writes.join().unwrap(), (200, "wrote Ok(())".to_owned()));
    assert!(reads.iter().all(|read| *read == format!("{SLOWLY} None, 0 beside it")), "{reads:?}");
    assert_eq!(get(port, "/list?").1, "k 400000\n");
    assert_eq!(get(port, "/update?k").1, "Ok(true)");
    assert_eq!(get(port, "/slowly?k").1, format!("{SLOWLY} Some(400000), 16384 beside it"));
    assert_eq!(get(port, "/purge?x").1, "Ok(0)");
    assert_eq!(get(port, "/purge-tag?tag").1, "Ok(1)");
    assert_eq!(get(port, "/part?k").1, "nothing is there");
}

#[test]
fn readers_fail_when_the_instance_that_writes_traps() {
    let (spec, mut worker, _store) = start();
    let port = spec.port();
    let writes = thread::spawn(move || get(port, "/trap?k"));
    worker.wait_for_line("begun");
    let reads: Vec<_> = (0..5).map(|_| thread::spawn(move || get(port, "/part?k"))).collect();
    let whole = get(port, "/slowly?k").1;
    assert!(whole.starts_with("read ") && whole.contains("\"abandoned\"") && whole.contains("of None"), "{whole}");
    for read in reads {
        assert_eq!(read.join().unwrap().1, "read 10 70 ended of None, 0 beside it", "what they wanted was there");
    }
    assert_eq!(writes.join().unwrap().0, 500);
    assert_eq!(get(port, "/part?k").1, "nothing is there");
    assert_eq!(worker.counts().failed, 1);
}

/// Starts a worker with a cache of 64 MiB. It is there as long as the folder.
fn start() -> (Spec, Worker, tempfile::TempDir) {
    let store = tempfile::tempdir().unwrap();
    File::create(store.path().join(CACHE_FILE)).unwrap().set_len(64 << 20).unwrap();
    let spec = Spec::of(compiled("cache_tests")).with(|spec| spec.limits.request_ms = 60_000);
    let mut worker = Worker::start_with(&[OsStr::new("--store"), store.path().as_os_str()]);
    worker.load(&spec);
    (spec, worker, store)
}
