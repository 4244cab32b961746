// SPDX-License-Identifier: Apache-2.0
//! The order of effects: those of one user one after the other, those of different users beside each other.

use std::collections::{BTreeMap, VecDeque};

use netserv_model::UserId;
use netserv_model::effect::{Effect, EffectId};

/// A lane for each user with ordered effects, of which one is under way and the others wait in it. It holds a few for each module and request of the user at most, which the
/// controller bounds.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    waiting: BTreeMap<UserId, VecDeque<Effect>>,
    /// The effects under way, by whose lane they are in.
    open: BTreeMap<EffectId, UserId>,
}

impl Lanes {
    /// Takes an effect. Returns it if it can be carried out at once.
    pub(crate) fn push(&mut self, effect: Effect) -> Option<Effect> {
        let Some(user) = effect.user.clone().filter(|_| effect.job.is_ordered()) else { return Some(effect) };
        match self.waiting.get_mut(&user) {
            Some(lane) => {
                lane.push_back(effect);
                None
            }
            None => {
                self.open.insert(effect.id, user.clone());
                self.waiting.insert(user, VecDeque::new());
                Some(effect)
            }
        }
    }

    /// Takes note that an effect is done. Returns the one that can be carried out after it.
    pub(crate) fn done(&mut self, id: EffectId) -> Option<Effect> {
        let user = self.open.remove(&id)?;
        let lane = self.waiting.get_mut(&user)?;
        let Some(next) = lane.pop_front() else {
            self.waiting.remove(&user);
            return None;
        };
        self.open.insert(next.id, user);
        Some(next)
    }

    /// Returns whether no ordered effect is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns how many effects wait for others.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use netserv_model::effect::{FilterChange, Job, PackageJob};
    use proptest::prelude::*;

    use super::*;

    fn effect(id: u64, user: u8, ordered: bool) -> Effect {
        let package = PackageJob::Compose { parts: Vec::new(), names: Vec::new() };
        let job = if ordered { Job::Filters(FilterChange::default()) } else { Job::Packages(package) };
        Effect { id: EffectId(id), user: Some(format!("user{user}").parse().unwrap()), job }
    }

    proptest! {
        /// Whatever the order of outcomes, a user's ordered effects are carried out one at a time, in order, each once,
        /// and no user waits for another.
        #[test]
        fn each_users_effects_are_in_order_and_alone(
            steps in prop::collection::vec((0u8..3, prop::bool::weighted(0.8), 0usize..8, any::<bool>()), 1..200),
        ) {
            let mut lanes = Lanes::default();
            let mut wanted: BTreeMap<UserId, Vec<EffectId>> = BTreeMap::new();
            let mut begun: BTreeMap<UserId, Vec<EffectId>> = BTreeMap::new();
            let mut open: Vec<Effect> = Vec::new();
            let begin = |effect: Effect, begun: &mut BTreeMap<UserId, Vec<EffectId>>, open: &mut Vec<Effect>| {
                let user = effect.user.clone().unwrap();
                if effect.job.is_ordered() {
                    assert!(!open.iter().any(|other| other.user == effect.user && other.job.is_ordered()));
                    begun.entry(user).or_default().push(effect.id);
                }
                open.push(effect);
            };
            for (id, (user, ordered, which, end)) in (0..).zip(steps) {
                if end && !open.is_empty() {
                    let done = open.swap_remove(which % open.len());
                    let next = lanes.done(done.id);
                    prop_assert!(lanes.done(done.id).is_none(), "an effect is done once");
                    if let Some(next) = next {
                        begin(next, &mut begun, &mut open);
                    }
                } else {
                    let effect = effect(id, user, ordered);
                    if ordered {
                        wanted.entry(effect.user.clone().unwrap()).or_default().push(effect.id);
                    }
                    let alone = !open.iter().any(|other| other.user == effect.user && other.job.is_ordered());
                    let now = lanes.push(effect);
                    prop_assert_eq!(now.is_some(), alone || !ordered);
                    if let Some(effect) = now {
                        begin(effect, &mut begun, &mut open);
                    }
                }
            }
            while let Some(done) = open.pop() {
                if let Some(next) = lanes.done(done.id) {
                    begin(next, &mut begun, &mut open);
                }
            }
            prop_assert_eq!(begun, wanted);
            prop_assert!(lanes.waiting.is_empty() && lanes.open.is_empty());
        }
    }
}
