// SPDX-License-Identifier: Apache-2.0
//! Figures that other programs of the project measure: the demo as a whole, and what a call of a module costs.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::Plan;
use super::goals::Goal;
use super::summary::{Figure, Row};
use crate::netns::program;
use crate::node::workspace;

/// Measures the demo, from its start to its end.
///
/// # Errors
/// The demo fails.
pub fn demo(plan: &Plan) -> Result<Vec<Figure>> {
    let mut took = Vec::new();
    for _ in 0..plan.demos {
        let started = Instant::now();
        let output = Command::new(program("netserv-lab")?).arg("demo").stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "the demo failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        took.push(started.elapsed().as_secs_f64());
    }
    let how = "netserv-lab demo, built and with warm files: five namespaces, three daemons, Kamailio, nginx, 200 \
               keep-alives, two SETUPs, a PROBE, two REMOVEs.";
    let rows = vec![Row::new("the demo", "s", &took).goal(Goal::Demo)];
    Ok(vec![Figure { name: "Demo", how: how.to_owned(), rows }])
}

/// Runs the worker's own bench as often as wanted, and takes its table over.
///
/// # Errors
/// It does not build, or prints something else.
pub fn calls(plan: &Plan) -> Result<Vec<Figure>> {
    let mut rows: Vec<(String, [Vec<f64>; 2])> = Vec::new();
    for _ in 0..plan.call_rounds {
        for (name, times) in worker_bench()? {
            let at = rows.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                rows.push((name, Default::default()));
                rows.len() - 1
            });
            rows[at].1.iter_mut().zip(times).for_each(|(all, time)| all.push(time));
        }
    }
    let mut shown = Vec::new();
    for (name, [one, many]) in &rows {
        let row = Row::new(format!("{name}, batch of 64"), "ns per packet", many);
        // The null module does nothing, so all of its time is the call's.
        shown.push(if name == "null 64 B mapped" { row.goal(Goal::Call) } else { row });
        shown.push(Row::new(format!("{name}, batch of 1"), "ns per packet", one));
    }
    ensure!(!shown.is_empty(), "the worker's bench printed no times");
    let how = "The worker's side of a ring with one module: packets taken from the ring, copied to the module or pointed to \
               where they are mapped, the call, the answers. Both ways in turn, best of 20 runs of 10 ms each; the null \
               module passes everything, so its time is what a call costs. `cargo test --release -p netserv-worker \
               --test all -- --ignored --nocapture bench`";
    Ok(vec![Figure { name: "Calls of modules", how: how.to_owned(), rows: shown }])
}

/// Returns name, and times for batches of 1 and of 64, of each line of the worker's bench.
fn worker_bench() -> Result<Vec<(String, [f64; 2])>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["test", "--quiet", "--release", "-p", "netserv-worker", "--test", "all", "--"])
        .args(["--ignored", "--nocapture", "bench"])
        .current_dir(workspace())
        .stdin(Stdio::null())
        .output()
        .context("cannot run cargo")?;
    ensure!(output.status.success(), "the worker's bench: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(times).collect())
}

fn times(line: &str) -> Option<(String, [f64; 2])> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (name, numbers) = words.split_at_checked(words.len().checked_sub(2)?)?;
    let [one, many] = numbers else { return None };
    let times = [one.parse().ok()?, many.parse().ok()?];
    (!name.is_empty()).then(|| (name.join(" "), times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_two_times_are_taken() {
        assert_eq!(
            times("null          33 B                   31.5        6.8"),
            Some(("null 33 B".into(), [31.5, 6.8]))
        );
        assert_eq!(times("module        packets          batch of 1  of 64, ns per packet"), None);
        assert_eq!(times("test result: ok. 1 passed"), None);
        assert_eq!(times(""), None);
    }
}
