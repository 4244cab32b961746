// SPDX-License-Identifier: Apache-2.0
//! Where code is compiled, and whose is next: that of the user whose code took the least processor time of late.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use netserv_model::UserId;

use crate::limits::{
    BUILD_WAIT_PER_CPU_TIME, MIDDLE_COMPILE_CPU_TIME, QUICK_COMPILE_CPU_TIME, QUICK_COMPILES_MAX, SPENT_HALF_LIFE,
};

/// A lane for code that takes so much processor time to compile. All code begins in the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CompileLane {
    /// For code that takes [`QUICK_COMPILE_CPU_TIME`] at most.
    Quick,
    /// For code that takes [`MIDDLE_COMPILE_CPU_TIME`] at most.
    Middle,
    /// For all other.
    Slow,
}

impl CompileLane {
    /// All of them.
    pub const ALL: [CompileLane; 3] = [CompileLane::Quick, CompileLane::Middle, CompileLane::Slow];

    /// Returns the lane for code that takes longer.
    pub fn next(self) -> Option<CompileLane> {
        match self {
            CompileLane::Quick => Some(CompileLane::Middle),
            CompileLane::Middle => Some(CompileLane::Slow),
            CompileLane::Slow => None,
        }
    }

    /// Returns how much processor time code may have taken that is compiled here; no bound of its own in the last.
    pub fn cpu_time(self) -> Duration {
        match self {
            CompileLane::Quick => QUICK_COMPILE_CPU_TIME,
            CompileLane::Middle => MIDDLE_COMPILE_CPU_TIME,
            CompileLane::Slow => Duration::MAX,
        }
    }

    fn places(self) -> usize {
        match self {
            CompileLane::Quick => QUICK_COMPILES_MAX,
            CompileLane::Middle | CompileLane::Slow => 1,
        }
    }
}

/// The number of a build under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BuildId(u64);

/// Builds that wait, and those under way: one of each user in each lane.
#[derive(Debug)]
pub struct Lanes<T> {
    waiting: VecDeque<(UserId, CompileLane, T)>,
    running: BTreeMap<BuildId, (UserId, CompileLane)>,
    /// What users' code took of late.
    spent: BTreeMap<UserId, Spent>,
    next: u64,
}

/// Processor time that counts half after [`SPENT_HALF_LIFE`].
#[derive(Clone, Copy, Debug)]
struct Spent {
    seconds: f64,
    at: Instant,
}

impl Spent {
    fn at(self, now: Instant) -> f64 {
        let age = now.saturating_duration_since(self.at).as_secs_f64();
        self.seconds * (-age / SPENT_HALF_LIFE.as_secs_f64()).exp2()
    }
}

impl<T> Lanes<T> {
    /// Returns lanes in which nothing waits.
    pub fn new() -> Lanes<T> {
        Lanes { waiting: VecDeque::new(), running: BTreeMap::new(), spent: BTreeMap::new(), next: 0 }
    }

    /// Adds a build to a lane, behind the others of its user: of those who want it, the one whose code took least.
    pub fn push<'a>(&mut self, now: Instant, users: impl IntoIterator<Item = &'a UserId>, lane: CompileLane, build: T) {
        let by_spent = users.into_iter().map(|user| (self.spent(user, now), user));
        if let Some((_, user)) = by_spent.min_by(|(one, _), (other, _)| one.total_cmp(other)) {
            self.waiting.push_back((user.clone(), lane, build));
        }
    }

    /// Returns a build that waits. It is `user`'s from here on if that one's code took less than its user's.
    pub fn claim(&mut self, now: Instant, user: &UserId, is_it: impl Fn(&T) -> bool) -> Option<&mut T> {
        let place = self.waiting.iter().position(|(_, _, build)| is_it(build))?;
        if self.spent(user, now) < self.spent(&self.waiting[place].0, now) {
            self.waiting[place].0 = user.clone();
        }
        Some(&mut self.waiting[place].2)
    }

    /// Takes the next build that has a place. [`Lanes::end`] must follow.
    pub fn next(&mut self, now: Instant) -> Option<(BuildId, CompileLane, T)> {
        let place = CompileLane::ALL.into_iter().find_map(|lane| self.next_in(lane, now))?;
        let (user, lane, build) = self.waiting.remove(place)?;
        let id = BuildId(self.next);
        self.next += 1;
        self.running.insert(id, (user, lane));
        Some((id, lane, build))
    }

    fn next_in(&self, lane: CompileLane, now: Instant) -> Option<usize> {
        let candidates =
            self.waiting.iter().enumerate().filter(|(_, (user, of, _))| *of == lane && self.may(user, lane));
        let by_spent = candidates.map(|(place, (user, ..))| (self.spent(user, now), place));
        // Among equals the first stays.
        by_spent.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, place)| place)
    }

    fn may(&self, user: &UserId, lane: CompileLane) -> bool {
        let inside = self.running.values().filter(|(_, of)| *of == lane);
        inside.clone().count() < lane.places() && !inside.clone().any(|(one, _)| one == user)
    }

    fn spent(&self, user: &UserId, now: Instant) -> f64 {
        self.spent.get(user).map_or(0.0, |spent| spent.at(now))
    }

    /// Has a build that takes longer go on in the next lane, if there is a place that nobody waits for.
    pub fn promote(&mut self, id: BuildId) -> Option<CompileLane> {
        let (user, lane) = self.running.get(&id).cloned()?;
        let next = lane.next().filter(|next| self.may(&user, *next))?;
        if self.waiting.iter().any(|(user, of, _)| *of == next && self.may(user, next)) {
            return None;
        }
        self.running.insert(id, (user, next));
        Some(next)
    }

    /// Takes note that a build ended, which took so much.
    pub fn end(&mut self, id: BuildId, now: Instant, cpu_time: Duration, time: Duration) {
        let Some((user, _)) = self.running.remove(&id) else { return };
        let seconds = self.spent(&user, now) + counted(cpu_time, time).as_secs_f64();
        self.spent.insert(user, Spent { seconds, at: now });
        self.spent.retain(|_, spent| spent.at(now) >= 0.001);
    }

    /// Returns the builds that wait.
    pub fn waiting_mut(&mut self) -> impl Iterator<Item = (&UserId, &mut T)> {
        self.waiting.iter_mut().map(|(user, _, build)| (&*user, build))
    }

    /// Takes out the builds that wait and are not to be kept.
    pub fn take_out(&mut self, mut keep: impl FnMut(&UserId, &mut T) -> bool) {
        self.waiting.retain_mut(|(user, _, build)| keep(user, build));
    }
}

/// Returns the processor time that counts for a build. A compiler that waits has a place, too.
pub fn counted(cpu_time: Duration, time: Duration) -> Duration {
    cpu_time.max(time / BUILD_WAIT_PER_CPU_TIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Lanes with a clock; a build's name is its user's and how much processor time it takes.
    struct Machine {
        lanes: Lanes<Work>,
        running: BTreeMap<BuildId, (CompileLane, Work, Duration)>,
        now: Instant,
    }

    type Work = (&'static str, Duration);

    impl Machine {
        fn new() -> Machine {
            Machine { lanes: Lanes::new(), running: BTreeMap::new(), now: Instant::now() }
        }

        fn want(&mut self, user: &'static str, takes: Duration) {
            self.lanes.push(self.now, [&user.parse().unwrap()], CompileLane::Quick, (user, takes));
        }

        /// Works as two processors would, which builds of the quick lane share; others have one of five milliseconds. Returns when each
        /// user's code was compiled.
        fn work(
            &mut self,
            until: impl Fn(&BTreeMap<&'static str, Duration>) -> bool,
        ) -> BTreeMap<&'static str, Duration> {
            let begun = self.now;
            let mut done = BTreeMap::new();
            while !until(&done) {
                while let Some((id, lane, build)) = self.lanes.next(self.now) {
                    self.running.insert(id, (lane, build, Duration::ZERO));
                }
                let (quick, others): (Vec<BuildId>, Vec<BuildId>) =
                    self.running.keys().copied().partition(|id| self.running[id].0 == CompileLane::Quick);
                self.now += MS;
                let tick = usize::try_from((self.now - begun).as_millis()).unwrap();
                let of_others = quick.is_empty() || tick.is_multiple_of(5);
                let turn = if of_others && !others.is_empty() { others } else { quick };
                for place in 0..turn.len().min(2) {
                    let id = turn[(tick * 2 + place) % turn.len()];
                    let (lane, (user, takes), took) = self.running.get_mut(&id).unwrap();
                    *took += MS;
                    if took >= takes {
                        done.entry(*user).or_insert(self.now - begun);
                    } else if *took >= lane.cpu_time() {
                        if let Some(next) = self.lanes.promote(id) {
                            *lane = next;
                            continue;
                        }
                        let next = lane.next().unwrap();
                        self.lanes.push(self.now, [&user.parse().unwrap()], next, (*user, *takes));
                    } else {
                        continue;
                    }
                    let (_, _, took) = self.running.remove(&id).unwrap();
                    self.lanes.end(id, self.now, took, took);
                }
            }
            done
        }
    }

    const BOMB: Duration = Duration::from_secs(60);
    const BOMBERS: [&str; 8] = ["b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8"];

    /// Goal: eight users with endless bombs, all asked for before, share the processors with quick code of another, and no more.
    #[test]
    fn quick_code_shares_the_processors_with_one_build_of_each_other_user() {
        let mut machine = Machine::new();
        for _ in 0..16 {
            BOMBERS.into_iter().for_each(|user| machine.want(user, BOMB));
        }
        machine.want("honest", MS * 150);
        let first = machine.work(|done| done.contains_key("honest"))["honest"];
        assert!(first <= MS * 150 * 9 / 2 * 5 / 4 + MS * 10, "{first:?}");
        // Also while all places are taken, who has spent nothing is next.
        const OTHERS: [&str; QUICK_COMPILES_MAX] =
            ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "ca", "cb", "cc", "cd", "ce", "cf"];
        OTHERS.into_iter().chain(OTHERS).for_each(|user| machine.want(user, BOMB));
        machine.want("late", MS * 150);
        let late = machine.work(|done| done.contains_key("late"))["late"];
        let most = (QUICK_COMPILE_CPU_TIME + MS * 150) * u32::try_from(QUICK_COMPILES_MAX).unwrap() / 2 * 5 / 4;
        assert!(late <= most, "{late:?}");
    }

    /// Goal: a user whose code was slow once has quick code compiled at once, also while more of its own slow code is.
    #[test]
    fn quick_code_is_quick_whoevers_it_is() {
        let mut machine = Machine::new();
        machine.want("user", BOMB);
        machine.work(|done| done.contains_key("user"));
        machine.want("user", BOMB);
        machine.want("user", MS * 100);
        let took = machine.work(|done| done.contains_key("user"))["user"];
        // Its own slow code has its quick turn before.
        assert!(took <= (QUICK_COMPILE_CPU_TIME + MS * 100) * 5 / 4, "{took:?}");
    }

    /// Goal: code that is neither quick nor a bomb is compiled beside endless bombs, by the processor time that its user took.
    #[test]
    fn larger_code_is_not_behind_all_bombs() {
        let mut machine = Machine::new();
        for _ in 0..16 {
            BOMBERS.into_iter().for_each(|user| machine.want(user, BOMB));
        }
        // All have had a turn in the middle.
        machine.want("quick", MS);
        machine.work(|done| done.contains_key("quick"));
        machine.now += Duration::from_secs(1);
        machine.want("honest", MS * 1500);
        let took = machine.work(|done| done.contains_key("honest"))["honest"];
        // A fifth of a processor's time, once the one that has the place is through.
        assert!(took <= (MIDDLE_COMPILE_CPU_TIME + MS * 1500) * 5 + Duration::from_secs(6), "{took:?}");
    }

    #[test]
    fn what_was_spent_counts_half_after_a_while() {
        let mut machine = Machine::new();
        machine.want("user", MS * 200);
        machine.work(|done| done.contains_key("user"));
        let (user, now) = ("user".parse().unwrap(), machine.now);
        let ratio = machine.lanes.spent(&user, now + SPENT_HALF_LIFE) / machine.lanes.spent(&user, now);
        assert!((ratio - 0.5).abs() < 0.001, "{ratio}");
        machine.now += SPENT_HALF_LIFE * 30;
        machine.want("other", MS);
        machine.work(|done| done.contains_key("other"));
        assert!(!machine.lanes.spent.contains_key(&user), "who took nothing of late is forgotten");
    }

    /// Goal: who wants what a bomber wants, too, does not wait behind its bombs.
    #[test]
    fn a_build_is_that_of_the_user_whose_code_took_least() {
        let mut machine = Machine::new();
        machine.want("bomber", MS * 200);
        machine.work(|done| done.contains_key("bomber"));
        for takes in [1, 2, 3] {
            machine.want("bomber", MS * takes);
        }
        let (bomber, honest): (UserId, UserId) = ("bomber".parse().unwrap(), "honest".parse().unwrap());
        assert!(machine.lanes.claim(machine.now, &honest, |build| build.1 == MS * 3).is_some());
        assert!(machine.lanes.claim(machine.now, &bomber, |build| build.1 == MS * 3).is_some());
        assert_eq!(machine.lanes.next(machine.now).map(|(_, _, build)| build.1), Some(MS * 3));
        machine.lanes.push(machine.now, [&bomber, &honest], CompileLane::Middle, ("honest", MS * 4));
        assert_eq!(machine.lanes.waiting.back().map(|(user, ..)| user), Some(&honest));
    }

    #[test]
    fn a_compiler_that_waits_counts_too() {
        assert_eq!(counted(MS * 10, MS * 20), MS * 10);
        assert_eq!(counted(MS, MS * BUILD_WAIT_PER_CPU_TIME * 5), MS * 5);
    }
}
