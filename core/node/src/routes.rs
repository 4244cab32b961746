// SPDX-License-Identifier: Apache-2.0
//! The node's own address toward each destination, and what waits until it is known.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use netserv_gist::{ApiCall, MessageHandle};
use netserv_model::api::PostRequest;
use netserv_model::effect::EffectId;

use crate::applications::ClientId;
use crate::input::CallId;
use crate::limits::{APPLICATION_ROUTE_WAITING_MAX, ROUTE_WAITING_MAX, ROUTES_KNOWN_MAX};

/// Something that needs the node's own address toward a destination.
#[derive(Debug)]
pub(crate) enum Waiter {
    /// A message of the NSLP.
    Message(Box<ApiCall>),
    /// A client's request without a source.
    Post(CallId, Box<PostRequest>),
    /// A call of a program, by the number of its line.
    Application(ClientId, u64, Box<ApiCall>),
}

/// What is known of the routes. What waits for one destination stays in order.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    known: BTreeMap<IpAddr, Option<IpAddr>>,
    asked: BTreeMap<IpAddr, Asked>,
    by_effect: BTreeMap<EffectId, IpAddr>,
    waiting: usize,
    /// Programs' calls among those that wait.
    of_applications: usize,
}

#[derive(Debug)]
struct Asked {
    effect: EffectId,
    /// Routes changed since: the answer is to be asked for again.
    stale: bool,
    waiters: VecDeque<Waiter>,
}

/// What to do for somebody who needs an address.
#[derive(Debug)]
pub(crate) enum Look {
    /// It is known: go on.
    Known(Waiter, Option<IpAddr>),
    /// It is to be asked for, by this effect.
    Ask,
    /// Somebody else asked already.
    Wait,
}

impl Routes {
    /// Looks an address up. `effect` is the name of the effect by which it is asked for, if need be.
    pub(crate) fn look(&mut self, destination: IpAddr, waiter: Waiter, effect: EffectId) -> Look {
        if let Some(asked) = self.asked.get_mut(&destination) {
            if self.waiting >= ROUTE_WAITING_MAX {
                return Look::Known(waiter, None);
            }
            self.of_applications += usize::from(is_of_application(&waiter));
            asked.waiters.push_back(waiter);
            self.waiting += 1;
            return Look::Wait;
        }
        if let Some(local) = self.known.get(&destination) {
            return Look::Known(waiter, *local);
        }
        if self.waiting >= ROUTE_WAITING_MAX {
            return Look::Known(waiter, None);
        }
        self.waiting += 1;
        self.of_applications += usize::from(is_of_application(&waiter));
        self.by_effect.insert(effect, destination);
        self.asked.insert(destination, Asked { effect, stale: false, waiters: VecDeque::from([waiter]) });
        Look::Ask
    }

    /// Takes an answer. Returns who goes on with it, and the destination to ask for once more by `again`, if the answer
    /// is older than the last change of routes.
    pub(crate) fn answered(
        &mut self,
        effect: EffectId,
        local: Option<IpAddr>,
        again: EffectId,
    ) -> (VecDeque<Waiter>, Option<IpAddr>) {
        let none = (VecDeque::new(), None);
        let Some(destination) = self.by_effect.remove(&effect) else { return none };
        let Some(asked) = self.asked.get_mut(&destination).filter(|asked| asked.effect == effect) else { return none };
        if asked.stale {
            (asked.effect, asked.stale) = (again, false);
            self.by_effect.insert(again, destination);
            return (VecDeque::new(), Some(destination));
        }
        let waiters = self.asked.remove(&destination).map(|asked| asked.waiters).unwrap_or_default();
        self.waiting -= waiters.len();
        self.of_applications -= waiters.iter().filter(|waiter| is_of_application(waiter)).count();
        if self.known.len() >= ROUTES_KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(destination, local);
        (waiters, None)
    }

    /// Takes a message of a program back that waits; returns whether it did.
    pub(crate) fn withdraw(&mut self, message: MessageHandle) -> bool {
        let is_it = |waiter: &Waiter| match waiter {
            Waiter::Application(_, _, call) => {
                matches!(&**call, ApiCall::SendMessage { handle, .. } if *handle == message)
            }
            Waiter::Message(_) | Waiter::Post(..) => false,
        };
        for asked in self.asked.values_mut() {
            if let Some(at) = asked.waiters.iter().position(is_it) {
                asked.waiters.remove(at);
                self.waiting -= 1;
                self.of_applications -= 1;
                return true;
            }
        }
        false
    }

    /// Forgets what is known, since routes changed.
    pub(crate) fn changed(&mut self) {
        self.known.clear();
        self.asked.values_mut().for_each(|asked| asked.stale = true);
    }

    /// Returns how many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns whether as many calls of programs wait as may.
    pub(crate) fn is_full_of_applications(&self) -> bool {
        self.of_applications >= APPLICATION_ROUTE_WAITING_MAX
    }

    /// Returns whether an effect asks for an address.
    pub(crate) fn is_asking(&self, effect: EffectId) -> bool {
        self.by_effect.contains_key(&effect)
    }
}

fn is_of_application(waiter: &Waiter) -> bool {
    match waiter {
        Waiter::Application(..) => true,
        Waiter::Message(_) | Waiter::Post(..) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const AGAIN: EffectId = EffectId(99);

    fn there(n: u8) -> IpAddr {
        [10, 1, 0, n].into()
    }

    fn waiter(n: u64) -> Waiter {
        let text = r#"{"message":""}"#;
        Waiter::Post(CallId(n), Box::new(serde_json::from_str(text).unwrap()))
    }

    fn calls(waiters: VecDeque<Waiter>) -> Vec<u64> {
        let call = |waiter| if let Waiter::Post(CallId(n), _) = waiter { n } else { unreachable!() };
        waiters.into_iter().map(call).collect()
    }

    #[test]
    fn one_question_serves_all_who_wait_in_order() {
        let mut routes = Routes::default();
        assert!(matches!(routes.look(there(1), waiter(1), EffectId(0)), Look::Ask));
        assert!(matches!(routes.look(there(1), waiter(2), EffectId(1)), Look::Wait));
        let (waiters, again) = routes.answered(EffectId(0), Some(HERE), AGAIN);
        assert_eq!((calls(waiters), again), (vec![1, 2], None));
        assert!(matches!(routes.look(there(1), waiter(3), EffectId(2)), Look::Known(_, Some(HERE))));
        assert_eq!(routes.answered(EffectId(0), None, AGAIN).0.len(), 0, "an answer counts once");
    }

    #[test]
    fn an_answer_from_before_a_change_is_asked_for_again() {
        let mut routes = Routes::default();
        routes.look(there(1), waiter(1), EffectId(0));
        routes.changed();
        let (waiters, again) = routes.answered(EffectId(0), Some(HERE), AGAIN);
        assert_eq!((waiters.len(), again), (0, Some(there(1))));
        let (waiters, _) = routes.answered(AGAIN, None, EffectId(100));
        assert_eq!(calls(waiters), [1]);
        routes.changed();
        assert!(matches!(routes.look(there(1), waiter(2), EffectId(2)), Look::Ask));
    }

    #[test]
    fn what_is_known_and_what_waits_is_bounded() {
        let mut routes = Routes::default();
        for n in 0..=u32::try_from(ROUTES_KNOWN_MAX).unwrap() {
            routes.look(std::net::Ipv4Addr::from(n).into(), waiter(0), EffectId(u64::from(n)));
            routes.answered(EffectId(u64::from(n)), Some(HERE), AGAIN);
        }
        assert_eq!(routes.known.len(), 1);
        routes.changed();
        for n in 0..ROUTE_WAITING_MAX {
            routes.look(there(1), waiter(0), EffectId(u64::try_from(n).unwrap()));
        }
        assert!(matches!(routes.look(there(1), waiter(0), AGAIN), Look::Known(_, None)));
        assert!(matches!(routes.look(there(2), waiter(0), AGAIN), Look::Known(_, None)));
    }
}
