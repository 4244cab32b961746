// SPDX-License-Identifier: Apache-2.0
//! Signaling: how fast it is, between running nodes and within one, what it takes, and how evenly it goes on.

use anyhow::{Result, ensure};

use super::goals::Goal;
use super::summary::{Figure, Row};
use super::{Plan, moved, progress, setup, tls};
use crate::scale::{Occasion, idle_bytes, refreshes};

/// Sessions whose memory is counted.
const IDLE: u32 = 10_000;
/// Sessions that are refreshed.
const REFRESHED: u32 = 100_000;

/// Measures everything of signaling but handshakes in memory, which are a part of their own.
///
/// # Errors
/// A node refuses or does not answer, or state is missing.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let (tls, setup, tell) = (tls::measure(plan)?, setup::over_five(plan)?, setup::tell_three(plan)?);
    Ok(vec![tls, setup, tell, moved::measure(plan)?, idle(plan), refreshing(plan)?])
}

/// Counts what sessions take that nothing happens to but refreshes.
fn idle(plan: &Plan) -> Figure {
    let (mut between, mut ends) = (Vec::new(), Vec::new());
    for round in 0..plan.idle_rounds {
        let idle = idle_bytes(IDLE, round);
        between.push(idle.between);
        ends.push(idle.ends);
    }
    progress("idle sessions");
    let how = format!(
        "{IDLE} sessions over two and over three nodes in memory, GIST and NSLP as in the daemon, each refreshed twice: bytes that \
         malloc has given out, its headers among them. What a third node adds is what a node between two others keeps: rows \
         toward both, lease and indexes."
    );
    let rows = vec![
        Row::new("a session, node between two others", "bytes", &between).goal(Goal::IdleSession),
        Row::new("a session, both ends together", "bytes", &ends),
    ];
    Figure { name: "Idle sessions", how, rows }
}

/// Counts the Queries of refreshes by when they are sent.
fn refreshing(plan: &Plan) -> Result<Figure> {
    let (mut rows, mut at_a_time) = (Vec::new(), 0.0);
    for (occasion, what, goal) in [
        (Occasion::Steady, "set up over one round of refreshes", Goal::RefreshBurst),
        (Occasion::AtOnce, "set up as fast as nodes can", Goal::RefreshBurstAtOnce),
    ] {
        let mut factors = Vec::new();
        for round in 0..plan.refresh_rounds {
            let burst = refreshes(REFRESHED, occasion, round);
            ensure!(burst.rows == REFRESHED as usize, "{} of {REFRESHED} sessions are there", burst.rows);
            factors.push(burst.factor_of_second);
            at_a_time = burst.queries_per_second;
        }
        progress(&format!("sessions {what}"));
        rows.push(Row::new(format!("{what}: busiest second / mean"), "ratio", &factors).goal(goal));
    }
    let how = format!(
        "{REFRESHED} sessions between two nodes in memory, GIST and NSLP as in the daemon, in virtual time: Queries of any second \
         over the mean of 100 s, which is {at_a_time:.0} a second. Each round draws random numbers of its own."
    );
    Ok(Figure { name: "Refreshes", how, rows })
}
