// SPDX-License-Identifier: Apache-2.0
//! What outlives a container on disk, and what a worker that was taken over can do to it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use crate::common::{Guest, LIMITS, Node, can_run, user};
use netserv_container::{ExitCause, LaunchSpec, STORE_CACHE, STORE_KV, Storage, retain_storage};
use netserv_model::policy::ContainerLimits;
use netserv_model::{Flavour, UserId};

const KV_BYTES: u64 = 1 << 20;
const CACHE_BYTES: u64 = 3 << 20;

#[test]
fn files_outlive_their_container_and_go_with_their_user() {
    let Some(node) = StoringNode::start("files_outlive_their_container_and_go_with_their_user") else { return };
    let first = node.launch(user());
    for (path, text) in [(STORE_KV, "state"), (STORE_CACHE, "cache")] {
        assert_eq!(write(&first, path, text, 0), "done");
    }
    let other: UserId = "john".parse().unwrap();
    let stranger = node.launch(&other);
    assert_eq!(read(&stranger, STORE_KV, 5), "\0\0\0\0\0");
    drop(first);
    let second = node.launch(user());
    assert_eq!((read(&second, STORE_KV, 5), read(&second, STORE_CACHE, 5)), ("state".into(), "cache".into()));
    let owners =
        [node.file("janedoe.wasm.kv"), node.file("john.wasm.kv")].map(|file| fs::metadata(file).unwrap().uid());
    assert!(owners[0] != owners[1] && owners.iter().all(|owner| *owner >= netserv_container::limits::UID_BASE));
    drop(second);
    assert_eq!(retain_storage(&node.directory(), &BTreeSet::from([other])).unwrap(), 2);
    assert_eq!(read(&node.launch(user()), STORE_KV, 5), "\0\0\0\0\0");
}

#[test]
fn a_worker_has_what_it_was_granted_and_nothing_beyond() {
    let Some(node) = StoringNode::start("a_worker_has_what_it_was_granted_and_nothing_beyond") else { return };
    let guest = node.launch(user());
    for attempt in ["store-create", "store-remove", "store-rename", "store-link", "store-exec"] {
        let said = guest.attempt(attempt);
        assert!(said.starts_with("refused"), "{attempt}: {said}");
    }
    for path in [STORE_KV, STORE_CACHE] {
        let said = guest.attempt_on("store-fill", &[("path", path.to_owned())]);
        assert_eq!(said, format!("refused {}", libc::EFBIG), "{path}");
    }
    // The limit is one for all files, so the shorter one may become as long as the longer one, until the next start.
    assert_eq!([node.length("kv"), node.length("cache")], [CACHE_BYTES, CACHE_BYTES]);
    drop(node.launch(user()));
    assert_eq!([node.length("kv"), node.length("cache")], [KV_BYTES, CACHE_BYTES]);
}

#[test]
fn a_worker_without_storage_keeps_nothing() {
    let Some(node) = StoringNode::start("a_worker_without_storage_keeps_nothing") else { return };
    let mut guest = node.node.launch(&LIMITS);
    guest.ready();
    for path in [STORE_KV, STORE_CACHE] {
        let said = write(&guest, path, "x", 0);
        assert!([libc::EROFS, libc::EACCES].map(|error| format!("refused {error}")).contains(&said), "{path}: {said}");
    }
}

#[test]
fn files_that_cannot_be_made_cost_a_worker_nothing_else() {
    let Some(node) = StoringNode::start("files_that_cannot_be_made_cost_a_worker_nothing_else") else { return };
    fs::create_dir_all(node.file("janedoe.wasm.kv")).unwrap();
    let guest = node.launch(user());
    assert!(write(&guest, STORE_KV, "x", 0).starts_with("refused"));
    assert_eq!(write(&guest, STORE_CACHE, "x", 0), "done");
}

#[test]
fn no_two_workers_write_to_the_same_files() {
    let Some(node) = StoringNode::start("no_two_workers_write_to_the_same_files") else { return };
    let mut first = node.launch(user());
    let second = node.launch(user());
    let exit = first.process.wait(Duration::from_secs(60)).map(|exit| exit.cause);
    assert_eq!(exit, Some(ExitCause::Signal(libc::SIGKILL)));
    assert_eq!(write(&second, STORE_KV, "x", 0), "done");
}

struct StoringNode {
    node: Node,
}

impl StoringNode {
    fn start(test: &str) -> Option<StoringNode> {
        can_run(test).then(|| StoringNode { node: Node::start() })
    }

    fn directory(&self) -> PathBuf {
        self.node.state_dir().join("modules")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory().join(name)
    }

    fn length(&self, kind: &str) -> u64 {
        fs::metadata(self.file(&format!("janedoe.wasm.{kind}"))).unwrap().len()
    }

    fn launch(&self, user: &UserId) -> Guest {
        let directory = self.directory();
        let storage = Storage { directory: &directory, kv_bytes: KV_BYTES, cache_bytes: CACHE_BYTES };
        let limits = ContainerLimits { disk_bytes: 1 << 16, ..LIMITS };
        let spec = LaunchSpec { storage: Some(storage), ..LaunchSpec::new(user, Flavour::Wasm, &limits) };
        let mut guest = self.node.launch_as(&spec).unwrap();
        guest.ready();
        guest
    }
}

fn write(guest: &Guest, path: &str, text: &str, offset: u64) -> String {
    let properties = [("path", path.to_owned()), ("text", text.to_owned()), ("offset", offset.to_string())];
    guest.attempt_on("store-write", &properties)
}

fn read(guest: &Guest, path: &str, length: u64) -> String {
    guest.attempt_on("store-read", &[("path", path.to_owned()), ("length", length.to_string())])
}
