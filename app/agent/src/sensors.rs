// SPDX-License-Identifier: Apache-2.0
//! What the agent looks at: logs, flows and metrics, opened and closed as the configuration has them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Result;
use netserv_api::AgentLog;
use netserv_placement::RuleId;
use tokio::sync::{mpsc, watch};

use crate::config::{Config, Flows, Log, MetricId};
use crate::event::{Event, Observations};
use crate::flows;
use crate::log::{LogCounts, LogReader, LogSocket, permit};
use crate::task::Task;
use crate::{metric, news};

/// What is looked at. One per agent.
pub struct Sensors {
    observations: Observations,
    events: mpsc::Sender<Event>,
    logs: Vec<OpenLog>,
    flows: Vec<OpenFlows>,
    metrics: BTreeMap<MetricId, Task>,
    /// What nodes tell, with the socket by which they do; nothing while no rule wants it.
    news: Option<(PathBuf, Task)>,
}

struct OpenLog {
    log: Log,
    socket: Arc<LogSocket>,
    counts: Arc<LogCounts>,
    /// Ends with the log.
    _reader: Task,
}

struct OpenFlows {
    flows: Flows,
    /// The rules that they count for.
    rules: watch::Sender<Vec<RuleId>>,
    /// Ends with them.
    _watch: Task,
}

impl Sensors {
    /// Returns those of a configuration, which tell what they see.
    ///
    /// # Errors
    /// A socket cannot be made.
    pub fn open(config: &Config, events: mpsc::Sender<Event>, observations: Observations) -> Result<Sensors> {
        let mut sensors =
            Sensors { observations, events, logs: Vec::new(), flows: Vec::new(), metrics: BTreeMap::new(), news: None };
        sensors.follow(config)?;
        Ok(sensors)
    }

    /// Looks at what another configuration has. What is in both goes on without a loss.
    ///
    /// # Errors
    /// A socket cannot be made; all stays as it was.
    pub fn follow(&mut self, config: &Config) -> Result<()> {
        let sockets = self.sockets(config)?;
        let before = std::mem::take(&mut self.logs);
        for gone in before.iter().filter(|open| !config.logs.iter().any(|log| log.has_socket_of(&open.log))) {
            close(&gone.log);
        }
        for (log, socket) in config.logs.iter().zip(sockets) {
            let known = before.iter().find(|open| open.log == *log);
            let counts = known.map(|open| Arc::clone(&open.counts)).unwrap_or_default();
            let reader = LogReader::new(config, log, Arc::clone(&socket), Arc::clone(&counts));
            let reader = Task(tokio::spawn(reader.run(self.observations.clone())));
            self.logs.push(OpenLog { log: log.clone(), socket, counts, _reader: reader });
        }
        self.follow_flows(config);
        self.metrics.retain(|id, _| config.metrics.iter().any(|metric| metric.id == *id));
        for metric in &config.metrics {
            let watch = || Task(tokio::spawn(metric::watch(metric.clone(), self.events.clone())));
            self.metrics.entry(metric.id).or_insert_with(watch);
        }
        self.follow_news(config);
        Ok(())
    }

    /// Returns what came to each log.
    pub fn logs(&self) -> Vec<AgentLog> {
        let told = |open: &OpenLog| AgentLog {
            name: open.log.name.clone(),
            lines: open.counts.lines.load(Ordering::Relaxed),
            matched: open.counts.matched.load(Ordering::Relaxed),
        };
        self.logs.iter().map(told).collect()
    }

    fn follow_news(&mut self, config: &Config) {
        let is_wanted = config.rules.iter().any(|rule| rule.moves.is_some());
        let known = self.news.take().filter(|(socket, _)| is_wanted && *socket == config.netservd);
        self.news = known.or_else(|| {
            let listen = || news::follow(config.netservd.clone(), config.user.clone(), self.events.clone());
            is_wanted.then(|| (config.netservd.clone(), Task(tokio::spawn(listen()))))
        });
    }

    /// Looks on at the same flows, for the rules that they count for. Others are looked at anew: those that are there count, too.
    fn follow_flows(&mut self, config: &Config) {
        let mut before = std::mem::take(&mut self.flows);
        for flows in &config.flows {
            let own = config.rules.iter().filter(|rule| rule.flows.as_ref() == Some(&flows.name));
            let of_now: Vec<RuleId> = own.map(|rule| rule.id).collect();
            if let Some(place) = before.iter().position(|open| open.flows == *flows) {
                let open = before.swap_remove(place);
                open.rules.send_replace(of_now);
                self.flows.push(open);
                continue;
            }
            let (rules, followed) = watch::channel(of_now);
            let (events, observations) = (self.events.clone(), self.observations.clone());
            let watch = Task(tokio::spawn(flows::follow(flows.clone(), followed, events, observations)));
            self.flows.push(OpenFlows { flows: flows.clone(), rules, _watch: watch });
        }
    }

    /// Returns the sockets of all logs of a configuration, those that are open already and new ones.
    fn sockets(&self, config: &Config) -> Result<Vec<Arc<LogSocket>>> {
        let (mut sockets, mut made) = (Vec::new(), Vec::new());
        for log in &config.logs {
            let socket = match self.logs.iter().find(|open| open.log.has_socket_of(log)) {
                Some(open) => permit(log).map(|()| Arc::clone(&open.socket)),
                None => LogSocket::open(log).map(Arc::new).inspect(|_| made.push(log)),
            };
            match socket {
                Ok(socket) => sockets.push(socket),
                Err(error) => {
                    made.into_iter().for_each(close);
                    // The group may be another one already.
                    self.logs.iter().for_each(|open| drop(permit(&open.log)));
                    return Err(error);
                }
            }
        }
        Ok(sockets)
    }
}

/// Takes a log's socket out of its folder, so that who writes to it knows that nobody reads.
fn close(log: &Log) {
    if let Some(path) = &log.socket {
        // It may be gone already.
        let _ = std::fs::remove_file(path);
    }
}
