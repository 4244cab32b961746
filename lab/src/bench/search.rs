// SPDX-License-Identifier: Apache-2.0
//! The search for the highest loads at which no more than a goal's share of packets is lost: NDR and PDR of RFC 2544 and of
//! draft-ietf-bmwg-mlrsearch, whose words these are. Short trials find the place; only long ones count.

use anyhow::{Result, ensure};

use super::kilo;
use super::trial::{Outcome, Pace};

/// A goal of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossGoal {
    /// Its name.
    pub name: &'static str,
    /// The share of packets that may be lost or unseen.
    pub ratio: f64,
    /// How far its bounds may lie apart, in resolutions of the search.
    pub width: f64,
}

/// The goal exceed ratio: the share of a load's trials that may lose more than the goal's share. A load reaches a goal if most
/// of its trials do: one trial in which the machine stood still does not hide what the others show.
pub const EXCEED: f64 = 0.5;

/// The partial drop rate of one in a thousand: what ways are compared by.
pub const PDR: LossGoal = LossGoal { name: "PDR 0.1 %", ratio: 0.001, width: 1.0 };
/// The partial drop rate of one in ten thousand.
pub const PDR_SMALL: LossGoal = LossGoal { name: "PDR 0.01 %", ratio: 0.0001, width: 2.0 };
/// The no-drop rate.
pub const NDR: LossGoal = LossGoal { name: "NDR", ratio: 0.0, width: 4.0 };
/// All goals, from the loosest to the strictest.
pub const ALL: [LossGoal; 3] = [PDR, PDR_SMALL, NDR];
/// Where only one rate is wanted.
pub const ONE: [LossGoal; 1] = [PDR];

/// Below that rate nothing is searched any more.
const RATE_MIN: f64 = 1000.0;
/// A goal that is not reached at this share of the load of the goal before it counts as not reached at all.
const FLOOR: f64 = 0.1;
/// Short trials of one search at most.
const SHORT_TRIALS_MAX: usize = 40;
/// How often a short trial with loss is repeated: it only tells where to begin.
const REPEATS: usize = 2;
/// A generator that yields less than that of what it is asked for is late.
const YIELD_MIN: f64 = 0.97;

/// How thorough a search is.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// Length of the trials that close in on the rate.
    pub seconds: f64,
    /// Length of the trials that count.
    pub confirm_seconds: f64,
    /// How many of them decide on a load, an odd number: with their length, the goal duration sum.
    pub confirm_trials: usize,
    /// How near the lower bound is to the upper one, as a share of it.
    pub resolution: f64,
    /// Loads that are tried for one goal, at most: its bounds are then as far apart as they are.
    pub loads_max: usize,
}

/// What a search has found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Every load that was tried.
    pub table: Table,
    /// Whether the generator was the limit, so that the router may do more.
    pub generator_bound: bool,
}

impl Found {
    /// Returns the rate that reaches a goal: its lower bound; 0 if no load does.
    pub fn rate(&self, goal: LossGoal) -> f64 {
        self.table.lower_bound(goal).map_or(0.0, Load::rate)
    }

    /// Returns the highest rate up to which no trial at all lost more than a goal's share; 0 if there is none.
    pub fn steady_rate(&self, goal: LossGoal) -> f64 {
        let bad = self.table.0.iter().filter(|load| load.bad(goal) > 0).map(Load::rate);
        let below = bad.fold(f64::INFINITY, f64::min);
        self.table.0.iter().map(Load::rate).filter(|rate| *rate < below).fold(0.0, f64::max)
    }

    /// Returns the account of the worst trial of the lowest load that does not reach a goal, in words.
    pub fn worst_above(&self, goal: LossGoal) -> Option<String> {
        let upper = self.table.upper_bound(goal)?;
        let load = self.table.0.iter().find(|load| load.rate() >= upper && load.bad(goal) > 0)?;
        let worst = load.trials.iter().max_by(|one, other| one.loss().total_cmp(&other.loss()))?;
        Some(format!("worst trial above it, at {:.0} kpps: {}", kilo(load.rate()), worst.account.as_ref()?.line()))
    }
}

/// Loads with the trials that count, in the order in which they were tried.
#[derive(Clone, Debug, Default)]
pub struct Table(Vec<Load>);

/// A load, and what became of its packets.
#[derive(Clone, Debug)]
pub struct Load {
    /// Packets per second that the generator was asked for; infinite if it was to give what it can.
    asked: f64,
    /// One after the other; one at least.
    trials: Vec<Outcome>,
}

impl Load {
    /// Returns the packets per second that were sent, on average of the trials.
    #[allow(clippy::cast_precision_loss, reason = "trials are few")]
    pub fn rate(&self) -> f64 {
        self.trials.iter().map(|trial| trial.rate.min(self.asked)).sum::<f64>() / self.trials.len() as f64
    }

    /// Returns its trials.
    pub fn trials(&self) -> &[Outcome] {
        &self.trials
    }

    /// Returns how many trials lost more than a goal allows.
    pub fn bad(&self, goal: LossGoal) -> usize {
        self.trials.iter().filter(|trial| trial.loss() > goal.ratio).count()
    }

    /// Returns whether most trials reach a goal.
    #[allow(clippy::cast_precision_loss, reason = "trials are few")]
    fn reaches(&self, goal: LossGoal) -> bool {
        self.bad(goal) as f64 <= EXCEED * self.trials.len() as f64
    }
}

impl Table {
    /// Returns all loads.
    pub fn loads(&self) -> &[Load] {
        &self.0
    }

    /// Returns the relevant upper bound: the lowest load that does not reach the goal.
    pub fn upper_bound(&self, goal: LossGoal) -> Option<f64> {
        self.0.iter().filter(|load| !load.reaches(goal)).map(Load::rate).reduce(f64::min)
    }

    /// Returns the relevant lower bound: the highest load below the upper bound that reaches the goal.
    pub fn lower_bound(&self, goal: LossGoal) -> Option<&Load> {
        let below = self.upper_bound(goal).unwrap_or(f64::INFINITY);
        let reaching = self.0.iter().filter(|load| load.reaches(goal) && load.rate() < below);
        reaching.max_by(|one, other| one.rate().total_cmp(&other.rate()))
    }

    /// Returns the load to try next for a goal; `None` if its bounds are near enough, or there is no lower one.
    fn next(&self, goal: LossGoal, how: Search, stride: f64, floor: f64) -> Option<f64> {
        let width = how.resolution * goal.width;
        match (self.lower_bound(goal).map(Load::rate), self.upper_bound(goal)) {
            (Some(lower), Some(upper)) if upper - lower <= width * upper => None,
            (Some(lower), Some(upper)) if upper - lower <= 3.0 * width * upper => Some(f64::midpoint(lower, upper)),
            // Nearer to the upper bound, below which a search comes by growing steps.
            (Some(lower), Some(upper)) => Some(lower + (upper - lower) * 2.0 / 3.0),
            (Some(lower), None) => Some(lower * (1.0 + width * stride)),
            (None, Some(upper)) => {
                let next = upper * (1.0 - (width * stride).min(0.6));
                (next >= floor).then_some(next)
            }
            (None, None) => None,
        }
    }
}

/// Searches from a guess, if there is one, for goals from the loosest to the strictest; `trial` runs one trial.
///
/// # Errors
/// There is loss at every rate, or a trial fails.
pub fn search(
    how: Search,
    goals: &[LossGoal],
    guess: Option<f64>,
    trial: &mut dyn FnMut(&Pace) -> Result<Outcome>,
) -> Result<Found> {
    let loosest = goals.first().copied().unwrap_or(PDR);
    let (start, saturated) = narrow(how, loosest, guess, trial)?;
    let mut found = Found { table: Table::default(), generator_bound: saturated };
    let mut next = if saturated { None } else { Some(start) };
    for goal in goals {
        let floor = FLOOR * found.table.lower_bound(loosest).map_or(start, Load::rate);
        let mut stride = 1.0;
        for _ in 0..how.loads_max {
            if !found.table.0.is_empty() {
                let at_limit = found.generator_bound && found.table.upper_bound(*goal).is_none();
                next = found.table.next(*goal, how, stride, floor).filter(|_| !at_limit);
                if next.is_none() {
                    break;
                }
                stride *= 2.0;
            }
            let pace = Pace { rate: next, seconds: how.confirm_seconds, timed: false, accounted: true };
            let (load, at_limit) = try_load(how, goals, &pace, trial)?;
            found.generator_bound = at_limit;
            found.table.0.push(load);
        }
    }
    Ok(found)
}

/// Runs trials of a load until all of these goals are decided; returns whether the generator was the limit, too.
fn try_load(
    how: Search,
    goals: &[LossGoal],
    pace: &Pace,
    trial: &mut dyn FnMut(&Pace) -> Result<Outcome>,
) -> Result<(Load, bool)> {
    let asked = pace.rate.unwrap_or(f64::INFINITY);
    let mut load = Load { asked, trials: Vec::new() };
    let majority = how.confirm_trials / 2 + 1;
    let mut limited = 0;
    while load.trials.len() < how.confirm_trials {
        let outcome = trial(pace)?;
        limited += usize::from(outcome.is_saturated() && outcome.rate < YIELD_MIN * asked);
        load.trials.push(outcome);
        let bad = |goal: Option<&LossGoal>| goal.map_or(0, |goal| load.bad(*goal));
        // What exceeds the loosest goal exceeds all, and what reaches the strictest reaches all.
        if bad(goals.first()) >= majority || load.trials.len() - bad(goals.last()) >= majority {
            break;
        }
    }
    let at_limit = 2 * limited > load.trials.len();
    Ok((load, at_limit))
}

/// Finds by short trials about where the loosest goal is reached; returns that rate, and whether it is all that the generator
/// yields.
fn narrow(
    how: Search,
    goal: LossGoal,
    guess: Option<f64>,
    trial: &mut dyn FnMut(&Pace) -> Result<Outcome>,
) -> Result<(f64, bool)> {
    let (mut floor, mut ceiling) = (0.0, f64::INFINITY);
    let (mut next, mut stride) = (guess, 0.03);
    for _ in 0..SHORT_TRIALS_MAX {
        let outcome = patient(trial, goal, &Pace { rate: next, seconds: how.seconds, timed: false, accounted: false })?;
        let asked = next.unwrap_or(outcome.rate);
        if outcome.loss() <= goal.ratio {
            floor = outcome.rate.max(floor);
            if next.is_none() || (outcome.is_saturated() && outcome.rate < YIELD_MIN * asked) {
                return Ok((floor, true));
            }
        } else {
            ceiling = asked.min(ceiling);
            ensure!(ceiling > RATE_MIN, "packets are lost at {ceiling:.0} per second: {outcome:?}");
        }
        if floor > 0.0 && ceiling - floor <= how.resolution * floor {
            break;
        }
        next = Some(match (floor > 0.0, ceiling.is_finite()) {
            (true, true) if ceiling - floor < 3.0 * stride * floor => f64::midpoint(floor, ceiling),
            (true, _) => (floor * (1.0 + stride)).min(ceiling * 0.995),
            (false, _) => (outcome.delivered() * 0.98).min(ceiling * (1.0 - stride)).max(RATE_MIN / 2.0),
        });
        stride = f64::min(stride * 2.0, 0.5);
    }
    ensure!(floor > 0.0, "packets are lost at every rate down to {ceiling:.0} per second");
    Ok((floor, false))
}

/// Runs a short trial once more if it lost packets.
fn patient(trial: &mut dyn FnMut(&Pace) -> Result<Outcome>, goal: LossGoal, load: &Pace) -> Result<Outcome> {
    let mut outcome = trial(load)?;
    for _ in 0..REPEATS {
        // What loses much will not get better.
        if outcome.loss() <= goal.ratio || outcome.loss() > 0.03 {
            break;
        }
        outcome = trial(load)?;
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOW: Search =
        Search { seconds: 1.0, confirm_seconds: 2.0, confirm_trials: 5, resolution: 0.01, loads_max: 8 };

    /// A router that forwards so many packets per second and loses `pauses` of each trial besides, and a generator that makes
    /// so many.
    fn router(capacity: f64, generator: f64, pauses: f64, trials: &mut u32) -> impl FnMut(&Pace) -> Result<Outcome> {
        move |load| {
            *trials += 1;
            let rate = load.rate.unwrap_or(generator).min(generator);
            // Below half of its rate its rings hold what comes in a pause.
            let paused = if rate > capacity / 2.0 { rate * pauses } else { 0.0 };
            Ok(Outcome {
                sent: count(rate, load.seconds),
                received: count(rate.min(capacity) - paused, load.seconds),
                rate,
                waited: if rate < generator { 0.5 } else { 0.0 },
                ..Outcome::default()
            })
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
    fn count(rate: f64, seconds: f64) -> u64 {
        (rate * seconds) as u64
    }

    #[test]
    fn the_rate_is_found_from_any_guess() {
        for guess in [None, Some(100.0), Some(700_000.0), Some(790_000.0), Some(5_000_000.0)] {
            let mut trials = 0;
            let found = search(HOW, &ALL, guess, &mut router(800_000.0, 3_000_000.0, 0.0, &mut trials)).unwrap();
            for goal in ALL {
                let rate = found.rate(goal);
                assert!(rate <= 801_000.0 && rate > 768_000.0, "{guess:?}: {} {rate}", goal.name);
                assert!(found.table.upper_bound(goal).is_some_and(|upper| upper > rate));
            }
            assert!(!found.generator_bound);
            assert!(trials < 100, "{guess:?}: {trials} trials");
        }
    }

    #[test]
    fn stricter_goals_have_lower_rates() {
        let mut trials = 0;
        let mut router = router(800_000.0, 3_000_000.0, 0.0005, &mut trials);
        let found = search(HOW, &ALL, None, &mut router).unwrap();
        assert!(found.rate(PDR) > 780_000.0, "{}", found.rate(PDR));
        for goal in [PDR_SMALL, NDR] {
            let rate = found.rate(goal);
            assert!(rate <= 400_000.0 && rate > 250_000.0, "{} {rate}", goal.name);
        }
    }

    #[test]
    fn a_generator_that_is_slower_than_the_router_is_told() {
        for guess in [None, Some(1_000.0), Some(500_000.0), Some(5_000_000.0)] {
            let found = search(HOW, &ALL, guess, &mut router(9_000_000.0, 600_000.0, 0.0, &mut 0)).unwrap();
            let rate = found.rate(NDR);
            assert!(found.generator_bound && (rate - 600_000.0).abs() < 1.0, "{guess:?}: {rate}");
        }
    }

    #[test]
    fn a_generator_that_is_late_is_not_at_its_limit() {
        let mut late = 0;
        let mut trials = 0;
        let mut inner = router(800_000.0, 3_000_000.0, 0.0, &mut trials);
        let found = search(HOW, &ONE, Some(400_000.0), &mut |load| {
            late += 1;
            // Every third trial the generator stands still for a tenth of the time.
            let rate = load.rate.map(|rate| if late % 3 == 0 { rate * 0.9 } else { rate });
            inner(&Pace { rate, ..*load })
        });
        let found = found.unwrap();
        assert!(!found.generator_bound && found.rate(PDR) > 700_000.0, "{}", found.rate(PDR));
    }

    #[test]
    fn what_is_not_seen_is_lost() {
        let mut trials = 0;
        let mut inner = router(800_000.0, 3_000_000.0, 0.0, &mut trials);
        let found = search(HOW, &ALL, None, &mut |load| {
            let outcome = inner(load)?;
            let seen = Some(outcome.sent.min(count(500_000.0, load.seconds)));
            Ok(Outcome { seen, ..outcome })
        });
        let rate = found.unwrap().rate(PDR);
        assert!(rate <= 500_600.0 && rate > 485_000.0, "{rate}");
    }

    #[test]
    fn a_goal_that_no_load_reaches_has_no_rate() {
        // One packet of each trial is lost at every load.
        let mut trials = 0;
        let mut inner = router(800_000.0, 3_000_000.0, 0.0, &mut trials);
        let found = search(HOW, &ALL, None, &mut |load| {
            let outcome = inner(load)?;
            Ok(Outcome { received: outcome.received - 1, ..outcome })
        });
        let found = found.unwrap();
        assert!(found.rate(NDR) < 1.0 && found.rate(PDR) > 780_000.0, "{}", found.rate(NDR));
        assert!(found.table.upper_bound(NDR).is_some_and(|upper| upper < 400_000.0));
    }

    #[test]
    fn bounds_are_of_all_loads() {
        let load = |rate, lost: &[u64]| Load {
            asked: rate,
            trials: lost
                .iter()
                .map(|lost| Outcome { sent: 10_000, received: 10_000 - lost, rate, ..Outcome::default() })
                .collect(),
        };
        // 300 reached it, but 200 did not: what is above the lowest failure does not count.
        let table = Table(vec![load(100.0, &[0]), load(200.0, &[11]), load(300.0, &[0]), load(150.0, &[1])]);
        assert_eq!(table.upper_bound(PDR), Some(200.0));
        assert_eq!(table.lower_bound(PDR).map(Load::rate), Some(150.0));
        assert_eq!(table.upper_bound(NDR), Some(150.0));
        assert_eq!(table.lower_bound(NDR).map(Load::rate), Some(100.0));
        assert!(Table::default().lower_bound(NDR).is_none());
        // Most trials decide, and the steady rate says that there were others.
        let table =
            Table(vec![load(100.0, &[0, 0, 0]), load(200.0, &[50, 0, 50, 0, 0]), load(300.0, &[50, 0, 50, 50])]);
        let found = Found { table, generator_bound: false };
        assert_eq!((found.rate(PDR), found.steady_rate(PDR)), (200.0, 100.0));
        assert_eq!(found.table.upper_bound(PDR), Some(300.0));
    }

    #[test]
    fn one_bad_trial_of_a_load_is_outvoted() {
        let mut trials = 0;
        let mut inner = router(800_000.0, 3_000_000.0, 0.0, &mut trials);
        let mut count = 0;
        let found = search(HOW, &ALL, None, &mut |pace| {
            count += 1;
            let outcome = inner(pace)?;
            // Every third trial loses a twentieth.
            let received = if count % 3 == 0 { outcome.received / 20 * 19 } else { outcome.received };
            Ok(Outcome { received, ..outcome })
        });
        let found = found.unwrap();
        assert!(found.rate(NDR) > 760_000.0 && found.steady_rate(PDR) < found.rate(PDR), "{}", found.rate(NDR));
    }

    #[test]
    fn a_router_that_forwards_nothing_is_an_error() {
        assert!(search(HOW, &ALL, None, &mut router(0.0, 600_000.0, 0.0, &mut 0)).is_err());
    }
}
