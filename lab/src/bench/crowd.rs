// SPDX-License-Identifier: Apache-2.0
//! A hundred users who install within two seconds: what clients of the API and the node's timers see of it.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::goals::Goal;
use super::summary::{Figure, Row};
use super::{Plan, progress};
use crate::crowd::{Crowd, USERS};

/// Timers that a run has to see, so that one of a hundred is more than one.
const TIMERS_MIN: u64 = 100;

/// Measures the API and the timers, each round with a node of its own.
///
/// # Errors
/// A SETUP is refused, or the API does not answer.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let (mut answers, mut lateness, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.crowds {
        let met = Crowd::up()?.install()?;
        ensure!(met.lateness.count() >= TIMERS_MIN, "only {} timers came", met.lateness.count());
        progress(&format!("{USERS} users: {} answers, {} timers", met.answers.len(), met.lateness.count()));
        answers.push(millis(met.answer_p99()));
        lateness.push(millis(met.lateness_p99()));
        whole.push(millis(met.took));
    }
    let how = format!(
        "sender (host) – node – receiver, on one machine; {USERS} users of the node send a signed SETUP each over GIST, one every \
         20 ms, of eight packages that the node has not seen, while one client asks GET /v1/node again and again on connections of \
         its own. The receiver says nothing, so that the node looks for a further one by its timers. How late the node comes to \
         them is from its histogram timer_lateness_seconds, in proportion between its bounds. Each round has a node of its own."
    );
    let rows = vec![
        Row::new("GET /v1/node, 99th percentile", "ms", &answers).goal(Goal::CrowdApi),
        Row::new("timers late, 99th percentile", "ms", &lateness).goal(Goal::CrowdTimers),
        Row::new("until the last SETUP was answered", "ms", &whole),
    ];
    Ok(vec![Figure { name: "A hundred users who install within two seconds", how, rows }])
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
