// SPDX-License-Identifier: Apache-2.0
//! The sizes of docs/figures.md. They do not depend on what else a machine does, so every run of the tests compares them.

use netserv_lab::bench::{Part, sizes, verdicts};
use netserv_lab::netns::program;
use netserv_skips::skipped;

#[test]
fn programs_and_code_keep_to_their_sizes() {
    if ["netservd", "netserv", "netserv-worker", "netserv-java"].iter().any(|name| program(name).is_err()) {
        return skipped("programs_and_code_keep_to_their_sizes", "not all is built: ./dev build");
    }
    let figures = sizes::measure().unwrap();
    figures.iter().for_each(|figure| print!("{}", figure.table()));
    let verdicts = verdicts::verdicts(&[Part::Sizes], &figures);
    assert_eq!(verdicts.len(), 7, "{verdicts:?}");
    let missed: Vec<String> = verdicts.iter().filter(|verdict| !verdict.is_met()).map(ToString::to_string).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
