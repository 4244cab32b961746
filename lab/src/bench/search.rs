// SPDX-License-Identifier: Apache-2.0
//! The search for the highest rate without loss, as in RFC 2544 §26.1.

use anyhow::{Result, ensure};

use super::trial::{Outcome, Pace};

/// The share of packets that may be lost in a trial without loss: a pause of the machine is not the router's.
pub const LOSS_MAX: f64 = 0.0001;
/// How often a trial with loss is repeated before it counts.
const REPEATS: usize = 2;
/// Below that rate nothing is searched any more.
const RATE_MIN: f64 = 1000.0;

/// How thorough a search is.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// Length of the trials that close in on the rate.
    pub seconds: f64,
    /// Length of the trial that the found rate has to stand.
    pub confirm_seconds: f64,
    /// How near the rate is to one with loss, as a share of it.
    pub resolution: f64,
}

/// The highest rate without loss.
#[derive(Clone, Debug)]
pub struct Found {
    /// Packets per second.
    pub rate: f64,
    /// Processor time of the whole machine per packet at that rate.
    pub cpu_ns: f64,
    /// Whether the generator was the limit, so that the router may do more.
    pub generator_bound: bool,
    /// What happened to the packets in the last trial.
    pub outcome: Outcome,
}

/// Searches from a guess, if there is one; `trial` runs one trial.
///
/// # Errors
/// There is loss at every rate, or a trial fails.
pub fn search(how: Search, guess: Option<f64>, trial: &mut dyn FnMut(&Pace) -> Result<Outcome>) -> Result<Found> {
    let mut ceiling = f64::INFINITY;
    let mut floor = 0.0;
    let (mut next, mut stride) = (guess, 0.03);
    let mut generator_bound = false;
    while floor == 0.0 || (ceiling - floor) > how.resolution * floor {
        let outcome = patient(trial, &Pace { rate: next, seconds: how.seconds, timed: false })?;
        let asked = next.unwrap_or(outcome.rate);
        if is_lossless(&outcome) {
            floor = outcome.rate.max(floor);
            generator_bound = next.is_none() || outcome.rate < 0.97 * asked;
            if generator_bound {
                break;
            }
        } else {
            ceiling = asked.min(ceiling);
            ensure!(ceiling > RATE_MIN, "packets are lost at {ceiling:.0} per second: {outcome:?}");
        }
        next = Some(match (floor > 0.0, ceiling.is_finite()) {
            (true, true) if ceiling - floor < 3.0 * stride * floor => f64::midpoint(floor, ceiling),
            (true, _) => (floor * (1.0 + stride)).min(ceiling * 0.995),
            (false, _) => (outcome.delivered() * 0.98).min(ceiling * (1.0 - stride)),
        });
        stride *= 2.0;
    }
    confirm(how, floor, generator_bound, trial)
}

/// Goes down from a rate until a long trial passes.
fn confirm(
    how: Search,
    mut rate: f64,
    mut generator_bound: bool,
    trial: &mut dyn FnMut(&Pace) -> Result<Outcome>,
) -> Result<Found> {
    loop {
        let asked = if generator_bound { None } else { Some(rate) };
        let outcome = patient(trial, &Pace { rate: asked, seconds: how.confirm_seconds, timed: false })?;
        if is_lossless(&outcome) {
            return Ok(Found { rate: outcome.rate, cpu_ns: outcome.cpu_ns, generator_bound, outcome });
        }
        generator_bound = false;
        rate *= 1.0 - how.resolution;
        ensure!(rate > RATE_MIN, "packets are lost at {rate:.0} per second: {outcome:?}");
    }
}

/// Runs a trial once more if it lost packets.
fn patient(trial: &mut dyn FnMut(&Pace) -> Result<Outcome>, load: &Pace) -> Result<Outcome> {
    let mut outcome = trial(load)?;
    for _ in 0..REPEATS {
        // What loses much will not get better.
        if is_lossless(&outcome) || outcome.loss() > 0.03 {
            break;
        }
        outcome = trial(load)?;
    }
    Ok(outcome)
}

fn is_lossless(outcome: &Outcome) -> bool {
    outcome.loss() <= LOSS_MAX
}

#[cfg(test)]
mod tests {
    use super::super::trial::Latency;
    use super::*;

    const HOW: Search = Search { seconds: 1.0, confirm_seconds: 2.0, resolution: 0.01 };

    /// A router that forwards so many packets per second, and a generator that makes so many.
    fn router(capacity: f64, generator: f64, trials: &mut u32) -> impl FnMut(&Pace) -> Result<Outcome> {
        move |load| {
            *trials += 1;
            let rate = load.rate.unwrap_or(generator).min(generator);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
            let count = |rate: f64| (rate * load.seconds) as u64;
            Ok(Outcome {
                sent: count(rate),
                received: count(rate.min(capacity)),
                duplicates: 0,
                reordered: 0,
                rate,
                cpu_ns: 1.0,
                latency_us: Latency::default(),
            })
        }
    }

    #[test]
    fn the_rate_is_found_from_any_guess() {
        for guess in [None, Some(100.0), Some(700_000.0), Some(790_000.0), Some(5_000_000.0)] {
            let mut trials = 0;
            let found = search(HOW, guess, &mut router(800_000.0, 3_000_000.0, &mut trials)).unwrap();
            assert!(found.rate <= 800_100.0 && found.rate > 785_000.0, "{guess:?}: {}", found.rate);
            assert!(!found.generator_bound);
            assert!(trials < 25, "{guess:?}: {trials} trials");
        }
    }

    #[test]
    fn a_generator_that_is_slower_than_the_router_is_told() {
        for guess in [None, Some(1_000.0), Some(500_000.0), Some(5_000_000.0)] {
            let found = search(HOW, guess, &mut router(9_000_000.0, 600_000.0, &mut 0)).unwrap();
            assert!(found.generator_bound && (found.rate - 600_000.0).abs() < 1.0, "{guess:?}: {}", found.rate);
        }
    }

    #[test]
    fn a_router_that_forwards_nothing_is_an_error() {
        assert!(search(HOW, None, &mut router(0.0, 600_000.0, &mut 0)).is_err());
    }
}
