// SPDX-License-Identifier: Apache-2.0
//! How a worker ends when Java code ends it, and when it does not start.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use netserv_model::effect::ModuleSlot;

use crate::support::{Worker, java_home, java_homes, serve};

/// Has a module do what ends the worker. Returns its code and the end of its standard error.
fn end_by(java_home: &Path, name: &str) -> (Option<i32>, String) {
    let mut worker = Worker::start_on(java_home, Stdio::piped());
    worker.load(9, name);
    worker.node.push(1 << 9, &[&[5; 64]]);
    let code = worker.node.worker.wait().unwrap().code();
    // What the node's watchdog would look at.
    assert_eq!(worker.node.ring.activity().module, Some(ModuleSlot(9)));
    assert_eq!(worker.node.ring.take_outstanding().len(), 1);
    let mut text = String::new();
    worker.node.worker.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (code, text.lines().last().unwrap_or_default().to_owned())
}

#[test]
fn an_exit_is_told_with_its_module() {
    for java_home in java_homes() {
        let (code, line) = end_by(&java_home, "exit");
        assert_eq!(code, Some(71));
        assert!(line.contains("ended with code 0 while module slot 9 had a packet"), "{line}");
        let (code, line) = end_by(&java_home, "halt");
        assert_eq!(code, Some(3));
        assert!(line.contains("ended with code 3") && line.contains("Runtime.halt"), "{line}");
    }
}

#[test]
fn an_exception_of_the_host_ends_the_worker_with_its_text() {
    let (code, line) = end_by(&java_home(), "throws");
    assert_eq!(code, Some(1));
    assert!(line.ends_with("the Java host failed: java.lang.IllegalStateException: thrown by the bridge"), "{line}");
}

#[test]
fn an_endless_loop_is_seen_in_the_activity_word() {
    let mut worker = Worker::start();
    worker.load(6, "endless");
    assert_eq!(worker.node.ring.activity().module, None);
    worker.node.push(1 << 6, &[&[5; 64]]);
    let until = Instant::now() + Duration::from_secs(60);
    while worker.node.ring.activity().module != Some(ModuleSlot(6)) {
        assert!(Instant::now() < until, "the module never runs");
        std::thread::yield_now();
    }
    let before = worker.node.ring.activity();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(worker.node.ring.activity(), before);
    worker.node.worker.kill().unwrap();
    assert_eq!(worker.node.ring.take_outstanding().len(), 1);
}

#[test]
fn what_does_not_start_says_why() {
    let empty = tempfile::tempdir().unwrap();
    let check = |mut worker: Worker, words: &str| {
        assert!(!worker.node.worker.wait().unwrap().success());
        let mut text = String::new();
        worker.node.worker.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(text.contains(words), "{text}");
    };
    check(Worker::begin(empty.path(), Stdio::piped()), "holds no lib/server/libjvm.so");
    let begin = |host: &Path| {
        let data = tempfile::tempdir().unwrap();
        let mut command = serve(&java_home(), host, data.path());
        command.stderr(Stdio::piped());
        Worker { node: crate::node::Node::start(command), data }
    };
    check(begin(empty.path()), "no jar files");
    std::fs::write(empty.path().join("not-a.jar"), "").unwrap();
    check(begin(empty.path()), "NoClassDefFoundError: org/netserv/host/Bridge");
}

#[test]
fn serve_needs_a_node() {
    let arguments = ["serve", "--java-home", "/nowhere", "--memory-bytes", "1"];
    let output = Command::new(env!("CARGO_BIN_EXE_netserv-jvm")).args(arguments).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("started by netservd"));
}
