// SPDX-License-Identifier: Apache-2.0
//! One of the operator's services: its conditions, and what was asked of the node for it.

use std::time::{Duration, Instant};

use netserv_api::{ConditionInfo, OperatorServiceInfo};
use netserv_model::api::{PostRequest, RequestResult};
use netserv_model::effect::EffectOutcome;
use netserv_model::request::Outcome;
use netserv_model::{Refusal, RefusalKind};
use netserv_plane::DestinationCount;
use netserv_wire::nslp::RequestBuilder;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::rate::{Rate, Watch};
use crate::caller::{Caller, Reply};
use crate::config::services::{Quantity, Service as ServiceConfig};
use crate::event::{Call, Event};
use crate::limits::{PACKAGE_LOOK, SERVICE_LEASE, SERVICE_RETRY_FIRST, SERVICE_RETRY_MAX};
use crate::operator::Identity;

type Answer = oneshot::Receiver<Result<RequestResult, Refusal>>;

/// A service at work.
pub struct Service {
    config: ServiceConfig,
    lease: Duration,
    rates: Vec<Rate>,
    watch: Watch,
    /// Whether it is to run; nothing before the conditions have been looked at for a while.
    wanted: Option<bool>,
    state: State,
    ready: bool,
    /// When the package is asked for next; nothing while it is.
    fetch_at: Option<Instant>,
    fetch_after: Duration,
    refused: Option<String>,
    retry_at: Option<Instant>,
    retry_after: Duration,
}

/// What is known of the module on the node.
enum State {
    /// It may be there, as from before a restart.
    Unknown,
    Absent,
    Installed {
        renew_at: Instant,
    },
    Asked(Ask, Answer),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Setup,
    Remove,
}

impl Service {
    /// Returns a service of which nothing is known.
    pub fn new(config: ServiceConfig, ttl_max: Duration, now: Instant) -> Service {
        let rates = config.when.iter().map(|_| Rate::default()).collect();
        let watch = Watch::new(Duration::from_secs(config.hold_s));
        let (wanted, refused, retry_at) = (None, None, None);
        let (state, ready, retry_after) = (State::Unknown, false, SERVICE_RETRY_FIRST);
        let lease = SERVICE_LEASE.min(ttl_max);
        let (fetch_at, fetch_after) = (Some(now), SERVICE_RETRY_FIRST);
        Service {
            config,
            lease,
            rates,
            watch,
            wanted,
            state,
            ready,
            fetch_at,
            fetch_after,
            refused,
            retry_at,
            retry_after,
        }
    }

    /// Takes what its conditions' counters show, the first ones of those given.
    pub fn look(&mut self, now: Instant, counts: &mut impl Iterator<Item = DestinationCount>) {
        for (condition, rate) in self.config.when.iter().zip(&mut self.rates) {
            let Some(DestinationCount { packets, syns }) = counts.next() else { return };
            rate.look(now, if condition.quantity == Quantity::Syns { syns } else { packets });
        }
        let Some(rates) = self.rates.iter().map(Rate::per_second).collect::<Option<Vec<_>>>() else { return };
        let bounds = self.config.when.iter().map(|condition| condition.over);
        let wanted = self.watch.note(now, rates.iter().copied().zip(bounds));
        if wanted != self.wanted.unwrap_or(false) {
            let (service, conditions) = (&self.config.name, self.conditions_text());
            tracing::info!(service, conditions, "a condition of the operator's service {}", is_or_was(wanted));
            // What was refused before is asked for at once.
            self.retry_at = None;
        }
        self.wanted = Some(wanted);
    }

    /// Asks the node for what is to be done, and hears what came of it.
    pub fn drive(&mut self, now: Instant, operator: &Identity, events: &mpsc::Sender<Event>) {
        if let State::Asked(ask, reply) = &mut self.state {
            match reply.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => return,
                Err(oneshot::error::TryRecvError::Closed) => self.state = State::Unknown,
                Ok(result) => {
                    let ask = *ask;
                    self.answered(now, ask, result);
                }
            }
        }
        if self.retry_at.is_some_and(|at| now < at) {
            return;
        }
        match (&self.state, self.wanted) {
            (_, None) | (State::Absent, Some(false)) | (State::Asked(..), _) => {}
            (State::Installed { renew_at }, Some(true)) if now < *renew_at => {}
            (State::Unknown | State::Absent | State::Installed { .. }, Some(true)) => {
                self.ask(now, Ask::Setup, operator, events);
            }
            (State::Unknown | State::Installed { .. }, Some(false)) => self.ask(now, Ask::Remove, operator, events),
        }
    }

    /// Returns what is to be fetched now, before it is wanted; how that ends is told by [`Service::fetched`]. A package that is
    /// there is asked for again from time to time, so that others do not take its place.
    pub fn fetch(&mut self, now: Instant) -> Option<&ServiceConfig> {
        self.fetch_at.take_if(|at| *at <= now).map(|_| &self.config)
    }

    /// Hears what came of having the package before it is wanted.
    pub fn fetched(&mut self, now: Instant, outcome: EffectOutcome) {
        let EffectOutcome::Refused(refusal) = outcome else {
            self.ready = true;
            (self.fetch_at, self.fetch_after) = (Some(now + PACKAGE_LOOK), SERVICE_RETRY_FIRST);
            return;
        };
        let (service, text) = (&self.config.name, refusal.to_string());
        tracing::warn!(service, refusal = text, "the package of the operator's service cannot be had yet");
        (self.ready, self.refused) = (false, Some(text));
        self.fetch_at = Some(now + self.fetch_after);
        self.fetch_after = (2 * self.fetch_after).min(SERVICE_RETRY_MAX);
    }

    /// Returns what the API tells of it.
    pub fn info(&self) -> OperatorServiceInfo {
        let conditions = self.config.when.iter().zip(&self.rates).map(|(condition, rate)| ConditionInfo {
            when: condition.to_string(),
            per_second: rate.per_second().unwrap_or(0),
        });
        OperatorServiceInfo {
            name: self.config.name.clone(),
            module: self.config.module.clone(),
            ready: self.ready,
            wanted: self.wanted.unwrap_or(false),
            installed: matches!(self.state, State::Installed { .. }),
            refused: self.refused.clone(),
            conditions: conditions.collect(),
        }
    }

    fn conditions_text(&self) -> String {
        let of = |info: ConditionInfo| format!("{} ({} now)", info.when, info.per_second);
        self.info().conditions.into_iter().map(of).collect::<Vec<_>>().join(", ")
    }

    fn ask(&mut self, now: Instant, ask: Ask, operator: &Identity, events: &mpsc::Sender<Event>) {
        let ServiceConfig { module, url, digest, filters, properties, .. } = &self.config;
        let builder = match ask {
            Ask::Setup => {
                let setup = RequestBuilder::setup(module, url, *digest, self.lease);
                let setup = filters.iter().fold(setup, |setup, filter| setup.filter(&filter.clone().into()));
                properties.iter().fold(setup, |setup, (key, value)| setup.property(key, value))
            }
            Ask::Remove => RequestBuilder::remove(&module.name),
        };
        let message = match operator.sign(builder) {
            Ok(message) => message,
            Err(error) => return self.failed(now, format!("{error:#}")),
        };
        let request = PostRequest { message, path: None, session: None, timeout_ms: 0 };
        let (to, answered) = oneshot::channel();
        let reply = Reply { caller: Caller::Node, to };
        match events.try_send(Event::Api(Call::Request(Box::new(request), reply))) {
            Ok(()) => self.state = State::Asked(ask, answered),
            // The next turn tries again; the node may be about to end.
            Err(TrySendError::Full(_) | TrySendError::Closed(_)) => {}
        }
    }

    fn answered(&mut self, now: Instant, ask: Ask, result: Result<RequestResult, Refusal>) {
        self.state = State::Unknown;
        let outcome = result.map_or_else(Outcome::Refused, |result| {
            let none = || Outcome::Refused(Refusal::new(RefusalKind::NodeFailed, "the node gave no answer"));
            result.nodes.into_iter().next().map_or_else(none, |node| node.outcome)
        });
        let installed = outcome.lease_s().map(Duration::from_secs);
        match (ask, installed, outcome) {
            (Ask::Setup, Some(lease), _) => {
                (self.state, self.ready) = (State::Installed { renew_at: now + lease / 2 }, true);
                self.succeeded();
            }
            (Ask::Remove, _, Outcome::Removed) => {
                self.state = State::Absent;
                self.succeeded();
            }
            (Ask::Remove, _, Outcome::Refused(refusal)) if refusal.kind == RefusalKind::NotInstalled => {
                self.state = State::Absent;
            }
            (_, _, Outcome::Refused(refusal)) => self.failed(now, refusal.to_string()),
            (_, _, outcome) => self.failed(now, format!("the node answers {outcome:?}")),
        }
    }

    fn succeeded(&mut self) {
        (self.refused, self.retry_at, self.retry_after) = (None, None, SERVICE_RETRY_FIRST);
    }

    fn failed(&mut self, now: Instant, why: String) {
        tracing::warn!(service = self.config.name, why, "the operator's service is refused");
        self.refused = Some(why);
        self.retry_at = Some(now + self.retry_after);
        self.retry_after = (2 * self.retry_after).min(SERVICE_RETRY_MAX);
    }
}

fn is_or_was(holds: bool) -> &'static str {
    if holds { "holds" } else { "is over" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// Goal: a package that cannot be fetched at the start is asked for again, and one that is there now and then.
    #[test]
    fn a_package_is_asked_for_until_it_is_there_and_then_looked_at() {
        let text = format!(
            "[[service]]\nname = \"guard\"\nmodule = \"example.org/guard@1.0.0\"\nurl = \"https://www.example.org/g.nsm\"\n\
             digest = \"sha256:{:064}\"\nsigner = \"ed25519:{:064}\"\nwhen = [\"syns/s to 192.0.2.7 > 10\"]\n",
            0, 0
        );
        let config = Config::parse(&text).unwrap().services.remove(0);
        let start = Instant::now();
        let mut service = Service::new(config, Duration::from_secs(3600), start);
        let refused = || EffectOutcome::Refused(Refusal::new(RefusalKind::FetchFailed, "away"));
        assert!(service.fetch(start).is_some() && service.fetch(start).is_none(), "it is under way");
        let mut now = start;
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            service.fetched(now, refused());
            let due = now + Duration::from_secs(seconds);
            assert!(service.fetch(due - Duration::from_millis(1)).is_none() && !service.info().ready);
            assert!(service.fetch(due).is_some());
            now = due;
        }
        service.fetched(now, EffectOutcome::Done);
        assert!(service.info().ready && service.fetch(now + PACKAGE_LOOK).is_some());
        service.fetched(now, refused());
        assert!(!service.info().ready, "it is not there any more");
    }
}
