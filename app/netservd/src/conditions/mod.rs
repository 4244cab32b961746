// SPDX-License-Identifier: Apache-2.0
//! The conditions of the operator's services, and what is asked of the node when they hold.
//!
//! One thread reads the forwarding plane's counters every [`CONDITIONS_INTERVAL`], and asks the control loop for what is to be
//! done by the same signed requests as everybody.

mod rate;
mod service;

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ipnet::IpNet;
use netserv_model::effect::EffectId;
use netserv_plane::{DestinationCount, DestinationCounters};
use tokio::sync::mpsc;

use crate::config::Config;
use crate::config::services::Service as ServiceConfig;
use crate::effects::packages::PackageRequest;
use crate::effects::ticket::{Answer, Ticket};
use crate::event::Event;
use crate::limits::CONDITIONS_INTERVAL;
use crate::operator::Operator;
use service::Service;

/// Starts to watch the conditions, if there are services. Packages are fetched and compiled before they are wanted.
///
/// # Errors
/// The plane cannot count what the conditions name, or the system gives no thread.
pub fn start(
    operator: &Operator,
    config: &Config,
    counters: Arc<dyn DestinationCounters>,
    events: mpsc::Sender<Event>,
    packages: Option<&Sender<PackageRequest>>,
) -> Result<()> {
    if operator.configured().is_empty() {
        return Ok(());
    }
    let prefixes: Vec<IpNet> =
        operator.configured().iter().flat_map(|service| &service.when).map(|condition| condition.to).collect();
    counters.count(&prefixes).context("the conditions of [[service]]")?;
    let (answers, fetched) = mpsc::unbounded_channel();
    let now = Instant::now();
    let ttl_max = Duration::from_secs(config.admission.ttl_max_s);
    let services = operator.configured().iter().map(|config| Service::new(config.clone(), ttl_max, now)).collect();
    let watching = Watching {
        operator: operator.clone(),
        services,
        counters,
        events,
        packages: packages.cloned(),
        answers,
        fetched,
        is_blind: false,
    };
    let thread = std::thread::Builder::new().name("conditions".to_owned());
    thread.spawn(move || watching.run()).context("thread for conditions")?;
    Ok(())
}

/// The thread that watches.
struct Watching {
    operator: Operator,
    services: Vec<Service>,
    counters: Arc<dyn DestinationCounters>,
    events: mpsc::Sender<Event>,
    packages: Option<Sender<PackageRequest>>,
    answers: mpsc::UnboundedSender<Answer>,
    fetched: mpsc::UnboundedReceiver<Answer>,
    /// The counters could not be read last time.
    is_blind: bool,
}

impl Watching {
    /// Runs until the control loop has ended.
    fn run(mut self) {
        let mut due = Instant::now();
        while !self.events.is_closed() {
            let now = Instant::now();
            while let Ok(answer) = self.fetched.try_recv() {
                let number = usize::try_from(u64::MAX - answer.id.0).unwrap_or(usize::MAX);
                if let Some(service) = self.services.get_mut(number) {
                    service.fetched(now, answer.outcome);
                }
            }
            self.fetch(now);
            if let Some(counts) = self.read() {
                let mut counts = counts.into_iter();
                self.services.iter_mut().for_each(|service| service.look(now, &mut counts));
            }
            for service in &mut self.services {
                service.drive(now, self.operator.identity(), &self.events);
            }
            let told = self.services.iter().map(Service::info).collect();
            self.operator.tell(told);
            due = (due + CONDITIONS_INTERVAL).max(now);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }

    /// Has packages fetched and compiled before they are wanted.
    fn fetch(&mut self, now: Instant) {
        let Some(packages) = &self.packages else { return };
        for (number, service) in (0_u64..).zip(&mut self.services) {
            let Some(ServiceConfig { url, digest, signer, .. }) = service.fetch(now) else { continue };
            // No effect of the node's has such a name: its own count from 0.
            let ticket = Ticket::new(EffectId(u64::MAX - number), self.answers.clone());
            let (user, url, digest, keys) =
                (self.operator.identity().user.clone(), url.clone(), *digest, vec![*signer]);
            // If the thread for packages has ended, so does the node.
            let _ = packages.send(PackageRequest::Fetch { user, url, digest, keys, state: None, ticket });
        }
    }

    fn read(&mut self) -> Option<Vec<DestinationCount>> {
        let read = self.counters.read();
        if let (Err(error), false) = (&read, self.is_blind) {
            tracing::warn!(%error, "conditions of services cannot be looked at");
        }
        self.is_blind = read.is_err();
        read.ok()
    }
}
