// SPDX-License-Identifier: Apache-2.0
//! How evenly many rows are refreshed.

use std::time::Duration;

use super::graph::Graph;
use super::net::Net;
use super::report::{burst, burst_of_a_second, float};

/// What many rows began together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// They were set up one after the other, over a time in which each is refreshed once.
    Steady,
    /// They were set up as fast as the nodes can.
    AtOnce,
    /// The responding node restarted.
    Restart,
}

/// What Queries were counted.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    /// The most in 100 ms over the mean.
    pub factor: f64,
    /// The most in any second over the mean.
    pub factor_of_second: f64,
    /// The mean of a second.
    pub queries_per_second: f64,
    /// The rows that are refreshed.
    pub rows: usize,
}

/// Sets sessions up between two nodes and counts the Queries of the refreshes that follow. Each run has random numbers of its own.
pub fn refreshes(sessions: u32, occasion: Occasion, run: u32) -> Burst {
    let mut net = Net::of_run(Graph::chain(2), run, |_| {});
    let pace = match occasion {
        Occasion::Steady => ROUND / sessions,
        Occasion::AtOnce | Occasion::Restart => AT_ONCE,
    };
    let sessions: Vec<_> = (0..sessions)
        .map(|_| {
            let session = net.begin(0, 1, LEASE);
            net.run_for(pace);
            session
        })
        .collect();
    if occasion == Occasion::Restart {
        net.run_for(ROUND);
        net.count_from_here();
        net.restart(1, &sessions);
    } else {
        net.run_for(Duration::from_secs(1));
        net.count_from_here();
    }
    // The validity is that of the number of rows.
    let time = TIME.max(Duration::from_millis(1) * u32::try_from(sessions.len()).unwrap_or(u32::MAX));
    net.run_for(time);
    let traffic = net.traffic();
    Burst {
        factor: burst(&traffic.windows, time),
        factor_of_second: burst_of_a_second(&traffic.windows, time),
        queries_per_second: float(traffic.queries) / time.as_secs_f64(),
        rows: net.rows(),
    }
}

const LEASE: Duration = Duration::from_secs(24 * 3600);
/// The mean time between two refreshes of a row.
const ROUND: Duration = Duration::from_millis(18_750);
const AT_ONCE: Duration = Duration::from_micros(100);
/// Some rounds.
const TIME: Duration = Duration::from_secs(100);
