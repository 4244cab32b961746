// SPDX-License-Identifier: Apache-2.0
//! How signaling grows: a small form of what docs/scale.md shows, and refreshes without bursts.

use netserv_lab::scale::{Occasion, Options, refreshes, run};

/// Goal: refreshes come one after the other. Method: 10,000 rows between two nodes, set up over a round of refreshes or in half
/// a second, or whose peer restarts; Queries of any 100 ms over the mean of all. With so few rows, chance alone makes 1.6.
#[test]
#[ignore = "simulates for two minutes; `./dev truth` runs it"]
fn many_rows_are_refreshed_without_a_burst() {
    for (occasion, factor_max) in [(Occasion::Steady, 2.0), (Occasion::AtOnce, 3.5)] {
        let burst = refreshes(10_000, occasion, 0);
        println!("{occasion:?}: {burst:?}");
        assert_eq!(burst.rows, 10_000);
        assert!(burst.factor <= factor_max, "{occasion:?}: {burst:?}");
    }
    // 9,900 rows beyond those that may ask at once have 1.98 s: 500 in 100 ms.
    let burst = refreshes(10_000, Occasion::Restart, 0);
    println!("{burst:?}");
    assert_eq!(burst.rows, 10_000);
    assert!(burst.factor * burst.queries_per_second / 10.0 <= 700.0, "{burst:?}");
}

/// Goal: in a simulated network of 200 nodes and 2,000 sessions, moved routes are repaired within 2 s, paths across a
/// restarted node within 10 s, and the refresh of a row takes three messages.
#[test]
fn a_network_of_200_nodes_carries_2000_sessions_through_churn() {
    let options =
        Options { nodes: 200, sessions: 2000, setups_per_second: 5000, seed: 1, seconds: 40, moves: 4, restarts: 3 };
    let report = run(&options).unwrap();
    print!("{}", report.table());
    assert_eq!((report.setup.whole, report.setup.incomplete), (2000, 0));
    assert_eq!((report.steady.whole, report.steady.incomplete), (100, 0));
    let (moves, restarts) = (&report.moves, &report.restarts);
    assert!(report.path_nodes > 3.0 && moves.paths > 50 && restarts.paths > 200, "{report:?}");
    // Each row is asked once in 15 to 22.5 s, with three messages: Query, Response, Confirm.
    assert!((15.0..=22.5).contains(&report.steady.refresh_seconds), "{report:?}");
    assert!((3.0..3.3).contains(&report.steady.messages_per_query), "{report:?}");
    // Of few sessions, each takes more: connections and what is answered lately are counted, too. Of 8,000 sessions on the same
    // nodes, each takes 1,857 bytes.
    assert!(report.bytes_per_session_and_node < 5000.0, "{report:?}");
    assert_eq!((moves.broken, restarts.broken), (0, 0));
    assert!(moves.repair_seconds.all <= 2.0 && restarts.repair_seconds.all <= 10.0, "{report:?}");
}
