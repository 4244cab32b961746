// SPDX-License-Identifier: Apache-2.0
//! Goal: what was once found stays mended, and a change that breaks a target is seen without a fuzzer.
//! Method: every file of the corpus, and a fixed number of damaged copies of each, goes through its target.

use std::fs;
use std::path::{Path, PathBuf};

use netserv_fuzz::{TARGETS, Target};

/// Damaged copies of each file.
const COPIES: u64 = 200;

/// Returns how many are made here: a fifth in CI, and all where the environment has `NETSERV_FULL`.
fn copies() -> u64 {
    if std::env::var_os("NETSERV_FULL").is_some() { COPIES } else { COPIES / 5 }
}

#[test]
fn the_corpus_does_no_harm() {
    for (name, target) in TARGETS {
        let files = corpus(name);
        assert!(!files.is_empty(), "no corpus for {name}");
        for file in files {
            run(&file.display().to_string(), target, &read(&file));
        }
    }
}

#[test]
fn damaged_copies_do_no_harm() {
    for (name, target) in TARGETS {
        for file in corpus(name) {
            let original = read(&file);
            for copy in 0..copies() {
                let damaged = damage(&original, copy);
                run(&format!("copy {copy} of {}", file.display()), target, &damaged);
            }
        }
    }
}

#[test]
fn every_target_is_built() {
    let targets: Vec<PathBuf> = TARGETS.iter().map(|(name, _)| here(&format!("fuzz_targets/{name}.rs"))).collect();
    assert!(targets.iter().all(|target| target.is_file()));
    let found = fs::read_dir(here("fuzz_targets")).expect("the folder is there").count();
    assert_eq!(found, TARGETS.len());
}

/// Runs a target so that a panic names the input.
fn run(input: &str, target: Target, data: &[u8]) {
    if std::panic::catch_unwind(|| target(data)).is_err() {
        panic!("{input} broke its target: {data:02x?}");
    }
}

/// Returns a copy with a few bytes changed, cut out or repeated, the same for the same number.
fn damage(original: &[u8], number: u64) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ original.len() as u64 | 1;
    let mut random = |below: usize| {
        // xorshift64*: any spread will do.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % below.max(1)
    };
    let mut bytes = original.to_vec();
    for _ in 0..=random(4) {
        let at = random(bytes.len());
        match random(5) {
            0 => bytes.truncate(at),
            1 if !bytes.is_empty() => drop(bytes.remove(at)),
            2 => bytes.extend_from_within(at.min(bytes.len())..),
            3 if !bytes.is_empty() => bytes[at] ^= 1 << random(8),
            _ if !bytes.is_empty() => bytes[at] = u8::try_from(random(256)).expect("below 256"),
            _ => {}
        }
    }
    bytes
}

fn corpus(target: &str) -> Vec<PathBuf> {
    let Ok(folder) = fs::read_dir(here("corpus").join(target)) else { return Vec::new() };
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.expect("the folder can be read").path()).collect();
    files.sort();
    files
}

fn read(file: &Path) -> Vec<u8> {
    fs::read(file).expect("the file is there")
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
