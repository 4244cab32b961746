// SPDX-License-Identifier: Apache-2.0
//! What a run measured, for people and for programs.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use super::net::{Net, Traffic, WINDOW};

/// What a run measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Nodes of the network.
    pub nodes: u32,
    /// Sessions that were there at a time.
    pub sessions: u32,
    /// What network and sessions are a function of.
    pub seed: u64,
    /// Links of the node that has most.
    pub links_of_a_node_max: usize,
    /// Nodes on a path, both ends among them, on average.
    pub path_nodes: f64,
    /// Rows that are refreshed: one for each session and link of its path.
    pub rows: usize,
    /// Leases of the node that has most.
    pub leases_of_a_node_max: usize,
    /// Connections between nodes.
    pub associations: usize,
    /// What a session takes at one node of its path, on average: rows of the routing table, lease, timers.
    pub bytes_per_session_and_node: f64,
    /// The same at all nodes and of all sessions.
    pub bytes_all: usize,
    /// While sessions were set up.
    pub setup: Phase,
    /// While they were refreshed, and some ended and began.
    pub steady: Phase,
    /// Routes that moved.
    pub moves: Churn,
    /// Nodes that restarted.
    pub restarts: Churn,
    /// What the run took.
    pub seconds: f64,
}

/// What went over links in a time.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// Seconds of the network's time.
    pub virtual_seconds: f64,
    /// Seconds that it took.
    pub wall_seconds: f64,
    /// Messages a second: datagrams and messages over connections.
    pub messages_per_second: f64,
    /// Their bytes.
    pub bytes_per_second: f64,
    /// Queries a second.
    pub queries_per_second: f64,
    /// The most Queries in a [`WINDOW`] over the mean of all windows.
    pub burst: f64,
    /// Messages for each row and Query.
    pub messages_per_query: f64,
    /// Seconds between two Queries of a row.
    pub refresh_seconds: f64,
    /// Requests that the whole path answered.
    pub whole: u64,
    /// Requests that it did not.
    pub incomplete: u64,
    /// The longest time to an answer, in ms.
    pub answer_ms_max: f64,
}

impl Phase {
    pub(super) fn of(traffic: &Traffic, rows: usize, virtual_time: Duration, wall: Duration) -> Phase {
        let seconds = virtual_time.as_secs_f64();
        let messages = traffic.datagrams + traffic.messages;
        Phase {
            virtual_seconds: seconds,
            wall_seconds: wall.as_secs_f64(),
            messages_per_second: float(messages) / seconds,
            bytes_per_second: float(traffic.bytes) / seconds,
            queries_per_second: float(traffic.queries) / seconds,
            burst: burst(&traffic.windows, virtual_time),
            messages_per_query: float(messages) / float(traffic.queries.max(1)),
            refresh_seconds: float(u64::try_from(rows).unwrap_or(0)) * seconds / float(traffic.queries.max(1)),
            whole: traffic.whole,
            incomplete: traffic.incomplete,
            answer_ms_max: traffic.took_max.as_secs_f64() * 1000.0,
        }
    }
}

/// What became of paths that something changed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Churn {
    /// Paths that were concerned.
    pub paths: usize,
    /// Paths that were not repaired in time.
    pub broken: usize,
    /// Messages until the last path was repaired, refreshes among them.
    pub messages: u64,
    /// How long repairs took, in seconds.
    pub repair_seconds: Spread,
    #[serde(skip)]
    times: Vec<Duration>,
}

impl Churn {
    pub(super) fn add(&mut self, net: &mut Net) {
        let (times, broken) = net.take_repaired();
        self.messages += net.traffic().datagrams + net.traffic().messages;
        self.broken += broken;
        self.times.extend(times);
        self.times.sort_unstable();
        let at = |share: usize| {
            self.times.get((self.times.len().max(1) - 1) * share / 100).map_or(0.0, Duration::as_secs_f64)
        };
        self.repair_seconds = Spread { half: at(50), nearly_all: at(99), all: at(100) };
    }
}

/// Within which time something happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// For half of all.
    pub half: f64,
    /// For 99 of a hundred.
    pub nearly_all: f64,
    /// For all.
    pub all: f64,
}

impl Report {
    /// Returns the figures as a table.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{} nodes (the largest has {} links), {} sessions, {:.2} nodes on a path, seed {}: {:.0} s\n",
            self.nodes, self.links_of_a_node_max, self.sessions, self.path_nodes, self.seed, self.seconds
        );
        let mut line = |what: &str, value: String| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {what:<44} {value}");
        };
        line("memory, of a session at one node", format!("{:.0} bytes", self.bytes_per_session_and_node));
        line("memory, all", format!("{:.1} MB", float(u64::try_from(self.bytes_all).unwrap_or(0)) / 1e6));
        line("rows that are refreshed", self.rows.to_string());
        line("leases of the largest node", self.leases_of_a_node_max.to_string());
        line("connections", self.associations.to_string());
        for (name, phase) in [("set-up", &self.setup), ("refresh", &self.steady)] {
            line(&format!("{name}: messages a second"), format!("{:.0}", phase.messages_per_second));
            line(&format!("{name}: bytes a second"), format!("{:.0}", phase.bytes_per_second));
            line(&format!("{name}: Queries a second"), format!("{:.0}", phase.queries_per_second));
            line(&format!("{name}: most Queries in 100 ms over the mean"), format!("{:.2}", phase.burst));
            line(&format!("{name}: the slowest answer"), format!("{:.0} ms", phase.answer_ms_max));
            line(
                &format!("{name}: time that it took"),
                format!("{:.0} s for {:.0} s", phase.wall_seconds, phase.virtual_seconds),
            );
        }
        line("refresh: messages for each Query", format!("{:.2}", self.steady.messages_per_query));
        line("refresh: seconds between two of a row", format!("{:.1}", self.steady.refresh_seconds));
        for (name, churn) in [("routes moved", &self.moves), ("nodes restarted", &self.restarts)] {
            let Spread { half, nearly_all, all } = churn.repair_seconds;
            line(&format!("{name}: paths concerned, not repaired"), format!("{}, {}", churn.paths, churn.broken));
            line(&format!("{name}: repaired, 50, 99, 100 %"), format!("{half:.2}, {nearly_all:.2}, {all:.2} s"));
        }
        text
    }
}

/// Returns the most in a window over the mean of all windows of a time.
pub(super) fn burst(windows: &[u32], time: Duration) -> f64 {
    let count = (time.as_nanos() / WINDOW.as_nanos()).max(1);
    let all: u64 = windows.iter().copied().map(u64::from).sum();
    let mean = float(all) / float(u64::try_from(count).unwrap_or(u64::MAX));
    let most = windows.iter().copied().max().unwrap_or(0);
    if all == 0 { 0.0 } else { f64::from(most) / mean }
}

/// Returns the most in any second over the mean of a time.
pub(super) fn burst_of_a_second(windows: &[u32], time: Duration) -> f64 {
    let count = usize::try_from(Duration::from_secs(1).as_nanos() / WINDOW.as_nanos()).unwrap_or(1);
    let all: u64 = windows.iter().copied().map(u64::from).sum();
    let seconds = windows.windows(count.min(windows.len()).max(1));
    let most = seconds.map(|second| second.iter().copied().map(u64::from).sum::<u64>()).max().unwrap_or(0);
    if all == 0 { 0.0 } else { float(most) * time.as_secs_f64() / float(all) }
}

#[allow(clippy::cast_precision_loss, reason = "a figure for people")]
pub(super) fn float(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_second_is_any_ten_windows_in_a_row() {
        let mut windows = vec![1; 20];
        let time = Duration::from_secs(2);
        assert!((burst_of_a_second(&windows, time) - 1.0).abs() < 1e-9);
        // Half of a burst lies in either second of the clock.
        (windows[9], windows[10]) = (11, 11);
        assert!((burst_of_a_second(&windows, time) - 30.0 / 20.0).abs() < 1e-9);
        // Windows after the last Query are not there.
        assert!((burst_of_a_second(&[20], time) - 2.0).abs() < 1e-9);
        assert!(burst_of_a_second(&[], time).abs() < 1e-9);
    }
}
