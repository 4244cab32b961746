// SPDX-License-Identifier: Apache-2.0
//! What a JVM takes before any framework or module.

use std::process::Stdio;

use crate::support::{Worker, java_homes};

#[test]
fn a_worker_is_small() {
    for java_home in java_homes() {
        let mut worker = Worker::start_on(&java_home, Stdio::inherit());
        worker.load(0, "adder");
        worker.node.round(1, &[5; 64]);
        let [resident, anonymous] = ["VmRSS:", "RssAnon:"].map(|field| worker.node.memory_kib(field));
        println!("{}: resident {resident} KiB, of it anonymous {anonymous} KiB", java_home.display());
        // docs/figures.md: at most 45 MB with the framework and one module, which take 10 MB of it. A program that is not optimised
        // maps 2 MB more.
        let allowed = 37_000_000 / 1024;
        assert!(resident <= allowed, "{resident} KiB");
    }
}
