// SPDX-License-Identifier: Apache-2.0
//! What an idle session takes of a node's memory. The only test of its program: the allocator counts for all of it.

use netserv_lab::scale::idle_bytes;

/// Goal: an idle session takes at most 2 kB of a node, as GIST's state toward both neighbours, the lease and all indexes.
/// Method: 2,500 sessions over two nodes and over three, refreshed twice; bytes that malloc gave out, its headers among them.
#[test]
fn an_idle_session_takes_at_most_2_kb_of_a_node() {
    let idle = idle_bytes(2_500, 0);
    println!("{idle:?}");
    assert!(idle.between <= 2000.0, "a node between two others: {:.0} bytes", idle.between);
    assert!(idle.ends <= 3000.0, "both ends together: {:.0} bytes", idle.ends);
}
